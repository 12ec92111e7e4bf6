// SPDX-License-Identifier: MIT
/* See encode.h. Requests come through a pipe, each behind a head of fixed size. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kbarman/export.h>
#include <kbarman/trace.h>

#include "base/io/whole.h"
#include "cli/base/cli.h"
#include "cli/base/sandbox.h"
#include "export/otlp/parca.h"
#include "export/viewers/pprof.h"
#include "push/encode.h"

/* Both processes are one program, so the form is that of its memory. */
struct head {
	uint64_t size;			/* of the data behind it; 0: the end */
	int64_t status;			/* at the end */
	struct push_counts counts;
};

static int send_request(int fd, const struct push_counts *counts, const void *data, size_t size)
{
	struct head head = { .size = size, .counts = *counts };

	if (size > PUSH_BYTES_MAX)
		return -EFBIG;
	return kb_write_whole(fd, &head, sizeof(head)) ?: kb_write_whole(fd, data, size);
}

static void say(void *context, const char *sentence)
{
	(void)context;
	cli_warn("%s", sentence);
}

static int take(void *context, const struct kb_otlp_request *request)
{
	const int *fd = context;
	const struct push_counts counts = {
		.samples = request->samples, .waits = request->waits, .wait_ns = request->wait_ns,
		.profiles = request->profiles, .from = request->from, .until = request->until,
	};

	return send_request(*fd, &counts, request->data, request->size);
}

static int encode_otlp(const struct push_encoder *encoder, struct kb_trace *trace, int fd,
		       struct kb_error *err)
{
	const struct kb_otlp_options options = {
		.attributes = encoder->attributes, .nr_attributes = encoder->nr_attributes,
		.take = take, .say = say, .context = &fd,
	};

	return kb_otlp_run(trace, &options, err);
}

/* Passes on what was exported, in the form of Parca if that is wanted. */
static int send_profile(const struct push_encoder *encoder, struct kb_trace *trace,
			const struct kb_out *profile, const struct kb_pprof_sums *sums, int fd)
{
	uint64_t epoch = kb_trace_header(trace)->unix_base_ns;
	const struct push_counts counts = {
		.samples = sums->samples, .waits = sums->waits, .profiles = 1,
		.from = epoch + (uint64_t)kb_trace_first(trace),
		.until = epoch + (uint64_t)kb_trace_last(trace),
	};
	struct kb_out *json;
	const void *data;
	size_t size;
	int error;

	data = kb_out_data(profile, &size);
	if (!encoder->parca)
		return send_request(fd, &counts, data, size);
	if (kb_out_memory(&json))
		return -ENOMEM;
	kb_parca_write(json, encoder->attributes, encoder->nr_attributes, data, size);
	error = kb_out_error(json);
	data = kb_out_data(json, &size);
	if (!error)
		error = send_request(fd, &counts, data, size);
	kb_out_destroy(json);
	return error;
}

static int encode_pprof(const struct push_encoder *encoder, struct kb_trace *trace, int fd,
			struct kb_error *err)
{
	const struct kb_export_options options = { .size = sizeof(options), .say = say };
	struct kb_pprof_sums sums;
	struct kb_out *out;
	int error, result;

	if (kb_out_memory(&out))
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	result = kb_pprof_run(trace, &options, out, &sums, err);
	if (result >= 0) {
		error = send_profile(encoder, trace, out, &sums, fd);
		if (error)
			result = kb_error_set(err, error, KB_NO_OFFSET,
					      "can't pass on a profile: %s", strerror(-error));
	}
	kb_out_destroy(out);
	return result;
}

/* Returns an exit status, after a message if it is not 0. */
static int encode(const struct push_encoder *encoder, const char *path, int fd)
{
	const struct kb_trace_options how = { .size = sizeof(how), .symbols = encoder->symbols };
	struct kb_symbolizer *symbolizer;
	struct kb_error err = { 0 };
	struct kb_trace *trace;
	int result;

	if (kb_trace_open(&trace, path, &how, &err))
		return cli_fail_error(&err);
	symbolizer = kb_trace_symbolizer(trace, &err);
	if (!symbolizer) {
		kb_trace_close(trace);
		return cli_fail_error(&err);
	}
	result = encoder->pprof ? encode_pprof(encoder, trace, fd, &err) :
				  encode_otlp(encoder, trace, fd, &err);
	cli_progress_end();
	if (result < 0) {
		result = cli_fail_error(&err);
	} else {
		kb_symbolizer_complaints(symbolizer, say, NULL);
		if (result > 0)
			cli_warn("%s: %s", path, kb_error_text(&err));
		result = result > 0 ? CLI_DAMAGED : CLI_OK;
	}
	kb_trace_close(trace);
	return result;
}

/* All of the process. Signals that end the parent in good order must not lose what is not sent. */
static int run(const struct push_encoder *encoder, int fd)
{
	struct head head = { 0 };
	int i, status;

	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	cli_sandbox(&(struct cli_sandbox) { .inputs = encoder->inputs,
					    .nr_inputs = encoder->nr_inputs });
	for (i = 0; i < encoder->nr_inputs; i++) {
		status = encode(encoder, encoder->inputs[i], fd);
		if (status > head.status)
			head.status = status;
	}
	kb_write_whole(fd, &head, sizeof(head));
	fflush(NULL);
	return (int)head.status;
}

int push_encode_start(struct push_encoder *encoder)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC))
		return cli_fail("can't make a pipe: %s", strerror(errno));
	fflush(NULL);
	encoder->pid = fork();
	if (encoder->pid < 0) {
		close(fds[0]);
		close(fds[1]);
		return cli_fail("can't start a process: %s", strerror(errno));
	}
	if (!encoder->pid) {
		close(fds[0]);
		_exit(run(encoder, fds[1]));
	}
	close(fds[1]);
	encoder->fd = fds[0];
	return 0;
}

static bool read_all(int fd, void *data, size_t size)
{
	return kb_read_whole(fd, data, size) == (ssize_t)size;
}

/* The process has ended, or does not do what it should. Returns its exit status. */
static int end(struct push_encoder *encoder, bool in_order)
{
	int status = 0;

	close(encoder->fd);
	if (waitpid(encoder->pid, &status, 0) < 0)
		status = 0;
	encoder->pid = 0;
	if (in_order)
		return 0;
	if (WIFSIGNALED(status))
		cli_warn("the process that reads the capture was ended by signal %d: what follows "
			 "was not sent", WTERMSIG(status));
	else
		cli_warn("the process that reads the capture ended early: what follows was not "
			 "sent");
	return CLI_IMPOSSIBLE;
}

int push_encode_next(struct push_encoder *encoder, struct push_request *request, int *status)
{
	struct head head;

	*request = (struct push_request){ 0 };
	if (!read_all(encoder->fd, &head, sizeof(head)) || head.size > PUSH_BYTES_MAX) {
		*status = end(encoder, false);
		return 0;
	}
	if (!head.size) {
		*status = head.status == CLI_OK || head.status == CLI_DAMAGED ? (int)head.status :
										CLI_IMPOSSIBLE;
		end(encoder, true);
		return 0;
	}
	request->counts = head.counts;
	request->size = (size_t)head.size;
	request->data = malloc(request->size);
	if (!request->data || !read_all(encoder->fd, request->data, request->size)) {
		free(request->data);
		request->data = NULL;
		*status = end(encoder, false);
		return 0;
	}
	return 1;
}

void push_encode_abandon(struct push_encoder *encoder)
{
	if (!encoder->pid)
		return;
	kill(encoder->pid, SIGKILL);
	close(encoder->fd);
	waitpid(encoder->pid, NULL, 0);
	encoder->pid = 0;
}
