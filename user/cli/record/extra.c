// SPDX-License-Identifier: MIT
/* See extra.h. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "cli/base/cli.h"
#include "cli/record/extra.h"

void record_extra_init(struct record_extra *extra)
{
	*extra = (struct record_extra){ .epoll = -1 };
}

static int want_polls(struct record_extra *extra)
{
	if (!extra->polls)
		extra->polls = record_polls_create();
	return extra->polls ? 0 : cli_fail("out of memory");
}

int record_extra_poll(struct record_extra *extra, const char *text)
{
	return want_polls(extra) ?: record_polls_add_file(extra->polls, text);
}

int record_extra_chart(struct record_extra *extra, const char *text)
{
	return want_polls(extra) ?: record_polls_add_charts(extra->polls, text);
}

static int watch(struct record_extra *extra, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	if (extra->epoll < 0)
		extra->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (extra->epoll < 0 || epoll_ctl(extra->epoll, EPOLL_CTL_ADD, fd, &event))
		return cli_fail("epoll: %s", strerror(errno));
	return 0;
}

int record_extra_open(struct record_extra *extra)
{
	int ret = 0;

	if (extra->socket)
		ret = record_annotate_open(&extra->annotate) ?:
		      watch(extra, record_annotate_fd(extra->annotate));
	if (!ret && extra->polls)
		ret = record_polls_open(extra->polls) ?:
		      watch(extra, record_polls_fd(extra->polls));
	return ret;
}

int record_extra_start(struct record_extra *extra, struct kb_device *device,
		       struct kb_recorder *recorder, const char *final)
{
	int ret = 0;

	if (extra->annotate)
		ret = record_annotate_start(extra->annotate, device, recorder, final);
	return ret || !extra->polls ? ret : record_polls_start(extra->polls, device, recorder);
}

int record_extra_serve(struct record_extra *extra, struct kb_error *err)
{
	int ret = extra->polls ? record_polls_serve(extra->polls, err) : 0;

	return ret || !extra->annotate ? ret : record_annotate_serve(extra->annotate, err);
}

int record_extra_finish(struct record_extra *extra, struct kb_error *err)
{
	int ret = extra->polls ? record_polls_finish(extra->polls, err) : 0;

	return ret || !extra->annotate ? ret : record_annotate_finish(extra->annotate, err);
}

int record_extra_commit(struct record_extra *extra)
{
	return extra->annotate ? record_annotate_commit(extra->annotate) : 0;
}

void record_extra_close(struct record_extra *extra, bool kept)
{
	record_annotate_close(extra->annotate, kept);
	record_polls_close(extra->polls);
	if (extra->epoll >= 0)
		close(extra->epoll);
}
