// SPDX-License-Identifier: MIT
/*
 * See metrics_show.h. This process reads no capture: it gets texts from the one that does, adds what
 * it knows itself, and shows them.
 */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/base/cli.h"
#include "cli/base/sandbox.h"
#include "cli/net/serve.h"
#include "push/http_server.h"
#include "push/metrics_read.h"
#include "push/metrics_show.h"

#define PATIENCE_MS	5000
#define CLIENTS_WAITING	64
#define LONGEST_MS	1000	/* after which a signal is seen at the latest */

struct showing {
	const struct push_metrics *how;
	struct metrics_reader reader;
	bool is_file;
	struct http_server *server;
	struct kb_out *page;		/* of the last request */
	uint64_t written, failed;	/* files */
};

/* ---- the text ---- */

/* What this process knows; counters of it begin with its start, as the others do. */
static void put_own(const struct showing *showing, enum kb_openmetrics_form form,
		    struct kb_out *out)
{
	const struct kb_openmetrics_value age = {
		.name = "kbarman_read_age_seconds", .unit = "seconds", .digits = 3,
		.help = "How long ago the numbers were read.",
		.value = (uint64_t)(kb_clock_ms() - showing->reader.at_ms),
	};
	const struct kb_openmetrics_value cpu = {
		.name = "kbarman_server_cpu_seconds", .unit = "seconds", .digits = 9,
		.help = "CPU time of the process that shows the metrics.", .counter = true,
		.value = (uint64_t)kb_clock_ns(CLOCK_PROCESS_CPUTIME_ID),
	};
	struct http_server_sums sums;
	struct kb_openmetrics_value value = { .counter = true };

	kb_openmetrics_value(&age, form, out);
	kb_openmetrics_value(&cpu, form, out);
	if (!showing->server)
		return;
	sums = http_server_sums(showing->server);
	value.name = "kbarman_server_requests";
	value.help = "Requests that were answered.";
	value.value = sums.requests;
	kb_openmetrics_value(&value, form, out);
	value.name = "kbarman_server_refused";
	value.help = "Requests that are none, or for something that is not there.";
	value.value = sums.refused;
	kb_openmetrics_value(&value, form, out);
	value.name = "kbarman_server_dropped";
	value.help = "Connections that were ended: too slow, too many, or cut off.";
	value.value = sums.dropped;
	kb_openmetrics_value(&value, form, out);
}

static int put_all(const struct showing *showing, enum kb_openmetrics_form form, struct kb_out *out)
{
	kb_out_bytes(out, showing->reader.texts[form], showing->reader.sizes[form]);
	put_own(showing, form, out);
	return kb_openmetrics_eof(form, out);
}

/* ---- a file ---- */

/* node_exporter reads files with this name, in the older form. */
static enum kb_openmetrics_form form_of(const char *path)
{
	size_t length = strlen(path);

	return length > 5 && !strcmp(path + length - 5, ".prom") ? KB_OPENMETRICS_PROMETHEUS :
								   KB_OPENMETRICS;
}

static int write_file(struct showing *showing)
{
	struct cli_output file;
	struct kb_out *out;
	int error;

	if (cli_output_open(&file, showing->how->where))
		return CLI_IMPOSSIBLE;
	error = kb_out_fd(&out, file.fd);
	if (!error) {
		error = put_all(showing, form_of(showing->how->where), out) ?: kb_out_flush(out);
		kb_out_destroy(out);
	}
	if (error) {
		cli_warn("can't write %s: %s", file.path, strerror(-error));
		cli_output_abandon(&file);
		return CLI_IMPOSSIBLE;
	}
	return cli_output_commit(&file);
}

/* A file that can't be written now may be next time: the last one stays. */
static void renew_file(struct showing *showing)
{
	if (write_file(showing))
		showing->failed++;
	else
		showing->written++;
}

/* ---- a server ---- */

static void answer(void *context, const struct http_request *request, struct http_answer *answer)
{
	static const char index[] = "kbarman: the metrics are at /metrics\n";
	static const char not_yet[] = "nothing was read yet: ask again\n";
	struct showing *showing = context;
	bool open = http_accepts(request->accept, "application/openmetrics-text");
	enum kb_openmetrics_form form = open ? KB_OPENMETRICS : KB_OPENMETRICS_PROMETHEUS;

	kb_out_destroy(showing->page);
	showing->page = NULL;
	if (!strcmp(request->path, "/")) {
		answer->status = 200;
		answer->data = index;
		answer->size = sizeof(index) - 1;
	} else if (!strcmp(request->path, "/metrics") && !showing->reader.at_ms) {
		answer->status = 503;
		answer->data = not_yet;
		answer->size = sizeof(not_yet) - 1;
	} else if (!strcmp(request->path, "/metrics")) {
		answer->status = 500;
		if (kb_out_memory(&showing->page) || put_all(showing, form, showing->page))
			return;
		answer->status = 200;
		answer->type = open ? KB_OPENMETRICS_TYPE : KB_OPENMETRICS_TYPE_PROMETHEUS;
		answer->data = kb_out_data(showing->page, &answer->size);
	}
}

static int open_server(struct showing *showing)
{
	char host[NI_MAXHOST], port[NI_MAXSERV];
	struct http_server_options options = {
		.patience_ms = PATIENCE_MS, .answer = answer, .context = showing,
	};
	int error;

	options.listener = cli_listen("--openmetrics", showing->how->where, CLIENTS_WAITING);
	if (options.listener < 0)
		return CLI_IMPOSSIBLE;
	error = http_server_open(&showing->server, &options);
	if (error) {
		close(options.listener);
		return cli_fail("can't serve: %s", strerror(-error));
	}
	if (cli_listens_on(options.listener, host, port))
		cli_note(strchr(host, ':') ? "metrics are at http://[%s]:%s/metrics" :
					     "metrics are at http://%s:%s/metrics", host, port);
	return 0;
}

/* ---- both ---- */

/* Is it a file, and no [HOST:]PORT? */
static bool is_file(const char *where)
{
	const char *colon = strrchr(where, ':'), *port = colon ? colon + 1 : where;

	return strchr(where, '/') || !*port || port[strspn(port, "0123456789")];
}

static void step(struct showing *showing)
{
	struct pollfd fds[HTTP_FDS + 1];
	int64_t wait = LONGEST_MS;
	unsigned int nr = 0;

	if (showing->server)
		nr = http_server_fds(showing->server, fds, &wait);
	fds[nr] = (struct pollfd){
		.fd = showing->reader.ended ? -1 : showing->reader.fd, .events = POLLIN,
	};
	if (poll(fds, nr + 1, (int)wait) < 0)
		return;
	if (fds[nr].revents && metrics_reader_take(&showing->reader) && showing->is_file)
		renew_file(showing);
	if (showing->server)
		http_server_serve(showing->server, fds, nr);
}

/* A server of captures goes on until a signal comes; a file of them is written once. */
static bool is_done(const struct showing *showing)
{
	bool captures = showing->how->nr_inputs;

	if (*showing->how->stop)
		return true;
	if (!showing->reader.ended)
		return false;
	return !captures || showing->is_file || !showing->reader.at_ms;
}

static int show(struct showing *showing)
{
	while (!is_done(showing))
		step(showing);
	if (showing->reader.ended && showing->reader.status > CLI_DAMAGED)
		return showing->reader.status;
	if (showing->is_file && showing->failed && !showing->written)
		return CLI_IMPOSSIBLE;
	return showing->failed ? CLI_DAMAGED : showing->reader.status;
}

int push_metrics(const struct push_metrics *how)
{
	struct showing showing = {
		.how = how, .is_file = is_file(how->where),
		.reader = { .inputs = how->inputs, .nr_inputs = how->nr_inputs,
			    .interval = how->interval },
	};
	/* first, so that it does not inherit the socket */
	int status = metrics_reader_start(&showing.reader);

	if (!status && !showing.is_file)
		status = open_server(&showing);
	if (!status) {
		how->catch_signals();
		cli_sandbox(&(struct cli_sandbox) { .output = showing.is_file ? how->where : NULL,
						    .network = !showing.is_file, .child = true });
		status = show(&showing);
	}
	metrics_reader_close(&showing.reader);
	http_server_close(showing.server);
	kb_out_destroy(showing.page);
	return status;
}
