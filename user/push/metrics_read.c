// SPDX-License-Identifier: MIT
/* See metrics_read.h. Texts come through a pipe, each pair behind a head of fixed size. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io/whole.h"
#include "cli/base/cli.h"
#include "cli/base/sandbox.h"
#include "push/metrics_live.h"
#include "push/metrics_read.h"

#define TEXT_MAX	(64U << 20)

/* Both processes are one program, so the form is that of its memory. */
struct head {
	uint64_t sizes[METRICS_FORMS];	/* all 0: the end */
	int64_t status;			/* at the end */
};

/* ---- the process that reads ---- */

struct reading {
	const struct metrics_reader *reader;
	int fd, life;
	struct kb_openmetrics *metrics;
	uint64_t bytes, wakeups;
};

static uint64_t resident_bytes(void)
{
	unsigned long long pages = 0;
	FILE *file = fopen("/proc/self/statm", "re");

	if (file) {
		if (fscanf(file, "%*u %llu", &pages) != 1)
			pages = 0;
		fclose(file);
	}
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static int tell_cost(struct reading *reading)
{
	const struct kb_openmetrics_cost cost = {
		.size = sizeof(cost), .bytes = reading->bytes, .wakeups = reading->wakeups,
		.cpu_ns = (uint64_t)kb_clock_ns(CLOCK_PROCESS_CPUTIME_ID),
		.resident = resident_bytes(),
	};

	return kb_openmetrics_cost(reading->metrics, &cost, NULL);
}

static int send_texts(struct reading *reading)
{
	struct kb_out *outs[METRICS_FORMS] = { NULL };
	const void *data[METRICS_FORMS] = { NULL };
	struct head head = { 0 };
	int error = tell_cost(reading);

	for (unsigned int i = 0; i < METRICS_FORMS && !error; i++) {
		size_t size;

		error = kb_out_memory(&outs[i]);
		if (error)
			break;
		error = kb_openmetrics_metrics(reading->metrics, (enum kb_openmetrics_form)i, outs[i]);
		data[i] = kb_out_data(outs[i], &size);
		head.sizes[i] = size;
	}
	error = error ?: kb_write_whole(reading->fd, &head, sizeof(head));
	for (unsigned int i = 0; i < METRICS_FORMS; i++) {
		error = error ?: kb_write_whole(reading->fd, data[i], head.sizes[i]);
		kb_out_destroy(outs[i]);
	}
	return error ? cli_fail("can't pass on metrics: %s", strerror(-error)) : 0;
}

static uint64_t size_of(const char *path)
{
	struct stat st;

	return stat(path, &st) || !S_ISREG(st.st_mode) ? 0 : (uint64_t)st.st_size;
}

static int read_capture(struct reading *reading, const char *path)
{
	struct kb_error err = { 0 };
	struct kb_trace *trace;
	int ret;

	reading->bytes += size_of(path);
	if (kb_trace_open(&trace, path, NULL, &err))
		return cli_fail_error(&err);
	ret = kb_openmetrics_read(reading->metrics, trace, NULL, &err);
	cli_progress_end();
	kb_trace_close(trace);
	if (ret < 0)
		return cli_fail_error(&err);
	if (ret > 0)
		cli_warn("%s: %s", path, kb_error_text(&err));
	return ret ? CLI_DAMAGED : CLI_OK;
}

static int read_captures(struct reading *reading)
{
	const struct metrics_reader *reader = reading->reader;
	int worst = CLI_OK, status;
	bool any = false;

	cli_sandbox(&(struct cli_sandbox) { .inputs = reader->inputs,
					    .nr_inputs = reader->nr_inputs });
	reading->wakeups = 1;
	for (int i = 0; i < reader->nr_inputs; i++) {
		status = read_capture(reading, reader->inputs[i]);
		any |= status <= CLI_DAMAGED;
		if (status > worst)
			worst = status;
	}
	status = any ? send_texts(reading) : worst;
	return status > worst ? status : worst;
}

/* Returns false if the parent has ended. */
static bool wait_for_more(const struct reading *reading, int64_t ms)
{
	struct pollfd life = { .fd = reading->life };

	return poll(&life, 1, (int)ms) == 0;
}

static int read_session(struct reading *reading)
{
	int64_t interval = (int64_t)(reading->reader->interval * 1000), wait;
	struct metrics_live live = { 0 };
	int status = metrics_live_open(&live);

	/* the first ones soon, because it is not known yet how fast the rings fill */
	wait = interval < 500 ? interval : 500;
	while (!status && wait_for_more(reading, wait)) {
		wait = interval;
		reading->wakeups++;
		status = metrics_live_read(&live, reading->metrics, &wait);
		reading->bytes = live.bytes;
		status = status ?: send_texts(reading);
	}
	metrics_live_close(&live);
	return status;
}

/* All of the process. Signals are for the parent, which ends this one. */
static int run(const struct metrics_reader *reader, int fd, int life)
{
	struct reading reading = { .reader = reader, .fd = fd, .life = life };
	struct head head = { 0 };
	struct kb_error err;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	if (kb_openmetrics_create(&reading.metrics, NULL, &err))
		head.status = cli_fail_error(&err);
	else
		head.status = reader->nr_inputs ? read_captures(&reading) : read_session(&reading);
	kb_openmetrics_destroy(reading.metrics);
	kb_write_whole(fd, &head, sizeof(head));
	fflush(NULL);
	return (int)head.status;
}

/* ---- the process that starts it ---- */

int metrics_reader_start(struct metrics_reader *reader)
{
	int texts[2], life[2];

	if (pipe2(texts, O_CLOEXEC))
		return cli_fail("can't make a pipe: %s", strerror(errno));
	if (pipe2(life, O_CLOEXEC)) {
		close(texts[0]);
		close(texts[1]);
		return cli_fail("can't make a pipe: %s", strerror(errno));
	}
	fflush(NULL);
	reader->pid = fork();
	if (!reader->pid) {
		close(texts[0]);
		close(life[1]);
		_exit(run(reader, texts[1], life[0]));
	}
	close(texts[1]);
	close(life[0]);
	reader->fd = texts[0];
	reader->life = life[1];
	if (reader->pid < 0 || fcntl(reader->fd, F_SETFL, O_NONBLOCK)) {
		int error = errno;

		metrics_reader_close(reader);
		return cli_fail("can't start a process: %s", strerror(error));
	}
	return 0;
}

static void end(struct metrics_reader *reader, int status)
{
	reader->ended = true;
	reader->status = status == CLI_OK || status == CLI_DAMAGED ? status : CLI_IMPOSSIBLE;
}

/* The bytes that are to come with the head that is there. */
static size_t want(const struct metrics_reader *reader)
{
	const struct head *head = reader->partly;

	if (reader->got < sizeof(*head))
		return sizeof(*head);
	return sizeof(*head) + (size_t)head->sizes[0] + (size_t)head->sizes[1];
}

static bool is_sane(const struct head *head)
{
	return head->sizes[0] <= TEXT_MAX && head->sizes[1] <= TEXT_MAX;
}

/* All is there. Returns false without memory. */
static bool take_texts(struct metrics_reader *reader)
{
	const struct head *head = reader->partly;
	const char *at = (const char *)(head + 1);

	for (unsigned int i = 0; i < METRICS_FORMS; i++) {
		char *text = malloc((size_t)head->sizes[i] + 1);

		if (!text)
			return false;
		memcpy(text, at, (size_t)head->sizes[i]);
		at += head->sizes[i];
		free(reader->texts[i]);
		reader->texts[i] = text;
		reader->sizes[i] = (size_t)head->sizes[i];
	}
	reader->at_ms = kb_clock_ms();
	return true;
}

/* Reads up to @size bytes of the present texts. False: no more for now. */
static bool fill(struct metrics_reader *reader, size_t size)
{
	void *larger = realloc(reader->partly, size);
	ssize_t got;

	if (!larger) {
		end(reader, CLI_IMPOSSIBLE);
		return false;
	}
	reader->partly = larger;
	got = read(reader->fd, (char *)larger + reader->got, size - reader->got);
	if (got > 0) {
		reader->got += (size_t)got;
	} else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
		cli_warn("the process that reads ended early");
		end(reader, CLI_IMPOSSIBLE);
	}
	return got > 0;
}

bool metrics_reader_take(struct metrics_reader *reader)
{
	bool news = false;

	while (!reader->ended && fill(reader, want(reader))) {
		const struct head *head = reader->partly;

		if (reader->got >= sizeof(*head) && !is_sane(head)) {
			end(reader, CLI_IMPOSSIBLE);
		} else if (reader->got >= sizeof(*head) && reader->got == want(reader)) {
			if (!head->sizes[0])
				end(reader, (int)head->status);
			else if (take_texts(reader))
				news = true;
			reader->got = 0;
		}
	}
	return news;
}

void metrics_reader_close(struct metrics_reader *reader)
{
	if (!reader->pid)
		return;
	close(reader->life);
	close(reader->fd);
	/* in the middle of a capture it sees nothing, but ends with this process */
	if (reader->pid > 0 && (reader->ended || !reader->nr_inputs))
		waitpid(reader->pid, NULL, 0);
	reader->pid = 0;
	free(reader->partly);
	for (unsigned int i = 0; i < METRICS_FORMS; i++)
		free(reader->texts[i]);
}
