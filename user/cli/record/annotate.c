// SPDX-License-Identifier: MIT
/* See annotate.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kbarman/annotate.h>

#include "base/io/create.h"
#include "cli/base/cli.h"
#include "cli/record/annotate.h"
#include "export/arm/annotate_side.h"
#include "record/device/annotate_server.h"

#define COUNTERS_MAX	4096
#define SAID_MAX	10	/* complaints about clients */
#define LATE_MS		500	/* from a client's timestamp to the arrival here */

/* A counter of a client. */
struct counter {
	int32_t pid, key;		/* pid 0: the key holds for the whole system */
	bool side;			/* the counter and its values are in the side file */
	uint32_t series;
};

struct record_annotate {
	struct annotate_server *server;
	struct kb_device *device;
	struct kb_recorder *recorder;
	struct kb_error *err;		/* that of the current call */
	struct counter *counters;	/* nr_counters, with room for COUNTERS_MAX */
	unsigned int nr_counters;
	char *final, *partial;
	FILE *side;
	unsigned int side_client;	/* the client whose setup was written last, + 1 */
	uint64_t messages, kept_aside, unheard;
	uint64_t negative;		/* negative values of clients before version 5 */
	unsigned int nr_cpus;
	unsigned int bad;
};

/* ---- the side file ---- */

static int side_failed(struct record_annotate *annotate)
{
	return kb_error_set(annotate->err, -errno, KB_NO_OFFSET, "can't write %s: %s",
			    annotate->partial, strerror(errno));
}

/* Begins the stream of another client in the side file. */
static int write_setup(struct record_annotate *annotate, const struct annotate_client *client)
{
	uint8_t setup[KB_ANNOTATE_SETUP_BYTES];
	size_t length = annotate_client_setup(client, setup);

	annotate->side_client = client->number + 1;
	return fwrite(setup, length, 1, annotate->side) == 1 ? 0 : side_failed(annotate);
}

/* Writes the message to the side file as it came. */
static int keep_aside(struct record_annotate *annotate, const struct annotate_client *client,
		      const uint8_t *bytes, size_t length)
{
	int ret = 0;

	if (!annotate->final) {
		annotate->unheard++;
		return 0;
	}
	if (!annotate->side) {
		int fd = kb_create(AT_FDCWD, annotate->partial, KB_CREATE_NEW, KB_CREATE_PRIVATE);

		annotate->side = fd < 0 ? NULL : fdopen(fd, "w");
		if (!annotate->side) {
			errno = fd < 0 ? -fd : ENOMEM;
			if (fd >= 0)
				close(fd);
			return side_failed(annotate);
		}
	}
	if (annotate->side_client != client->number + 1)
		ret = write_setup(annotate, client);
	if (!ret && fwrite(bytes, length, 1, annotate->side) != 1)
		ret = side_failed(annotate);
	annotate->kept_aside++;
	return ret;
}

/* ---- texts ---- */

/*
 * The kernel knows the process at the other end of a Unix socket. A client that gives another
 * process number is in another pid namespace, or lies: then the kernel's number is used.
 */
static uint32_t task_of(const struct annotate_client *client)
{
	if (client->pid && client->pid != (uint32_t)client->setup.pid)
		return client->pid;
	return (uint32_t)client->setup.tid;
}

static int put_text(struct record_annotate *annotate, const struct annotate_client *client,
		    const struct kb_annotate_message *m, uint32_t type, struct kb_text text,
		    uint32_t group)
{
	struct kbarman_mark mark = {
		.type = type,
		.text_bytes = (uint32_t)text.length,
		.channel = (uint32_t)m->note.channel,
		.group = group,
		/* 0xRRGGBBTT -> 0xTTRRGGBB */
		.colour = m->note.color >> 8 | m->note.color << 24,
	};

	return kb_recorder_annotation(annotate->recorder, m->timestamp, task_of(client), &mark,
				      text.data, annotate->err);
}

/*
 * Writes the message with its picture to the side file, and the text to the capture too, marked as
 * one that is also in the side file.
 */
static int put_visual(struct record_annotate *annotate, const struct annotate_client *client,
		      const struct kb_annotate_message *m, const uint8_t *bytes, size_t length)
{
	struct kb_annotate_message line = { .timestamp = m->timestamp };
	int ret = keep_aside(annotate, client, bytes, length);

	return ret ?: put_text(annotate, client, &line, KBARMAN_MARK_STRING, m->visual.text,
			       annotate->final ? ANNOTATE_SIDE_GROUP : 0);
}

/* ---- counters ---- */

static struct counter *find_counter(struct record_annotate *annotate,
				    const struct annotate_client *client, int32_t key)
{
	int32_t pid = client->setup.dont_mangle ? 0 : client->setup.pid;

	for (unsigned int i = 0; i < annotate->nr_counters; i++) {
		if (annotate->counters[i].key == key && annotate->counters[i].pid == pid)
			return &annotate->counters[i];
	}
	return NULL;
}

/* False: the name does not fit. A shortened name could be that of another series. */
static bool put_name(char *to, size_t room, struct kb_text text)
{
	if (text.length >= room || memchr(text.data, 0, text.length))
		return false;
	memcpy(to, text.data, text.length);
	return true;
}

/* A counter of the same name in another process is another series. */
static bool name_is_taken(const struct record_annotate *annotate, uint32_t series)
{
	for (unsigned int i = 0; i < annotate->nr_counters; i++) {
		if (!annotate->counters[i].side && annotate->counters[i].series == series)
			return true;
	}
	return false;
}

static bool describe(struct kbarman_mark_series *series, const struct kb_annotate_counter *c)
{
	static const uint8_t classes[] = {
		[KB_ANNOTATE_DELTA] = BM_SERIES_CLASS_DELTA,
		[KB_ANNOTATE_ABSOLUTE] = BM_SERIES_CLASS_ABSOLUTE,
		[KB_ANNOTATE_INCIDENT] = BM_SERIES_CLASS_INCIDENT,
	};
	static const uint8_t displays[] = {
		[KB_ANNOTATE_AVERAGE] = BM_SERIES_DISPLAY_AVERAGE,
		[KB_ANNOTATE_ACCUMULATE] = BM_SERIES_DISPLAY_ACCUMULATE,
		[KB_ANNOTATE_HERTZ] = BM_SERIES_DISPLAY_HERTZ,
		[KB_ANNOTATE_MAXIMUM] = BM_SERIES_DISPLAY_MAXIMUM,
		[KB_ANNOTATE_MINIMUM] = BM_SERIES_DISPLAY_MINIMUM,
	};
	double multiplier = c->modifier ? 1.0 / c->modifier : 1.0;

	*series = (struct kbarman_mark_series){
		.colour = c->color ? c->color >> 8 : BM_SERIES_COLOUR_AUTOMATIC,
		.series_composition = (uint8_t)c->series_composition,
		.rendering_type = (uint8_t)c->rendering_type,
		.chart_flags = (c->average_selection ? BM_CHART_AVERAGE_SELECTION : 0) |
			       (c->average_cores ? BM_CHART_AVERAGE_CORES : 0) |
			       (c->percentage ? BM_CHART_PERCENTAGE : 0) |
			       (c->per_cpu ? BM_CHART_PER_CPU : 0),
	};
	memcpy(&series->multiplier, &multiplier, sizeof(multiplier));
	if (c->series_class < KB_ANNOTATE_DELTA || c->series_class > KB_ANNOTATE_INCIDENT ||
	    !classes[c->series_class] || c->display < KB_ANNOTATE_AVERAGE ||
	    c->display > KB_ANNOTATE_MINIMUM || c->series_composition < KB_ANNOTATE_STACKED ||
	    c->series_composition > KB_ANNOTATE_LOG10 || c->rendering_type < KB_ANNOTATE_FILLED ||
	    c->rendering_type > KB_ANNOTATE_BAR || c->nr_activities)
		return false;
	series->series_class = classes[c->series_class];
	series->display = displays[c->display];
	return put_name(series->chart, sizeof(series->chart), c->title) &&
	       put_name(series->name, sizeof(series->name), c->name) &&
	       put_name(series->units, sizeof(series->units), c->units) &&
	       put_name(series->description, sizeof(series->description), c->description) &&
	       *series->chart && *series->name;
}

/*
 * Makes a series of the capture. False: the capture can't hold this counter; for example, a GPU's
 * counter may have more cores than the machine.
 */
static bool make_series(struct record_annotate *annotate, const struct annotate_client *client,
			const struct kb_annotate_counter *c, uint32_t *number)
{
	struct kbarman_mark_series series;
	char name[64 + 16];

	if (c->per_cpu && c->cores > 0 && (uint32_t)c->cores > annotate->nr_cpus)
		return false;
	if (!describe(&series, c) || kb_device_series(annotate->device, &series, NULL))
		return false;
	if (name_is_taken(annotate, series.series)) {
		snprintf(name, sizeof(name), "%s (%d)", series.name, client->setup.pid);
		if (strlen(name) >= sizeof(series.name))
			return false;
		memcpy(series.name, name, strlen(name) + 1);
		if (kb_device_series(annotate->device, &series, NULL) ||
		    name_is_taken(annotate, series.series))
			return false;
	}
	*number = series.series;
	return true;
}

static int put_counter(struct record_annotate *annotate, const struct annotate_client *client,
		       const struct kb_annotate_counter *c, const uint8_t *bytes, size_t length)
{
	struct counter *counter = find_counter(annotate, client, c->key);

	/* Each thread of a process may declare a counter that another thread has declared. */
	if (counter && !counter->side)
		return 0;
	if (!counter && annotate->nr_counters < COUNTERS_MAX) {
		struct counter new = {
			.pid = client->setup.dont_mangle ? 0 : client->setup.pid, .key = c->key };

		new.side = !make_series(annotate, client, c, &new.series);
		annotate->counters[annotate->nr_counters++] = new;
		if (!new.side)
			return 0;
	}
	return keep_aside(annotate, client, bytes, length);
}

static int put_value(struct record_annotate *annotate, const struct annotate_client *client,
		     const struct kb_annotate_message *m, const uint8_t *bytes, size_t length)
{
	const struct counter *counter = find_counter(annotate, client, m->value.key);

	if (client->setup.version < 5 && m->value.value < 0 && m->value.value >= INT32_MIN)
		annotate->negative++;
	if (!counter || counter->side)
		return keep_aside(annotate, client, bytes, length);
	return kb_recorder_value(annotate->recorder, m->timestamp, (uint32_t)m->value.core,
				 task_of(client), counter->series, (uint64_t)m->value.value,
				 annotate->err);
}

/* ---- clients ---- */

static int on_message(void *context, const struct annotate_client *client,
		      const struct kb_annotate_message *m, const uint8_t *bytes, size_t length)
{
	struct record_annotate *annotate = context;

	annotate->messages++;
	switch (m->type) {
	case KB_ANNOTATE_STRING:
	case KB_ANNOTATE_COLOR_STRING:
		return put_text(annotate, client, m, KBARMAN_MARK_STRING, m->note.text, 0) ? 1 : 0;
	case KB_ANNOTATE_CHANNEL:
		return put_text(annotate, client, m, KBARMAN_MARK_CHANNEL, m->note.text,
				(uint32_t)m->note.group) ? 1 : 0;
	case KB_ANNOTATE_GROUP:
		return put_text(annotate, client, m, KBARMAN_MARK_GROUP, m->note.text,
				(uint32_t)m->note.group) ? 1 : 0;
	case KB_ANNOTATE_MARKER:
	case KB_ANNOTATE_COLOR_MARKER:
		return put_text(annotate, client, m, KBARMAN_MARK_BOOKMARK, m->note.text, 0) ? 1
											     : 0;
	case KB_ANNOTATE_VISUAL:
		return put_visual(annotate, client, m, bytes, length) ? 1 : 0;
	case KB_ANNOTATE_COUNTER:
		return put_counter(annotate, client, &m->counter, bytes, length) ? 1 : 0;
	case KB_ANNOTATE_VALUE:
		return put_value(annotate, client, m, bytes, length) ? 1 : 0;
	case KB_ANNOTATE_ACTIVITY:
	case KB_ANNOTATE_CAM_TRACK:
	case KB_ANNOTATE_CAM_JOB:
	case KB_ANNOTATE_CAM_VIEW:
	case KB_ANNOTATE_CAM_START:
	case KB_ANNOTATE_CAM_DEPS:
	case KB_ANNOTATE_CAM_STOP:
		break;
	}
	return keep_aside(annotate, client, bytes, length) ? 1 : 0;
}

static void on_bad(void *context, const struct annotate_client *client, const char *why)
{
	struct record_annotate *annotate = context;

	if (annotate->bad++ < SAID_MAX)
		cli_warn("an Annotate client (process %d) was dropped: %s",
			 client->pid ? (int)client->pid : client->setup.pid, why);
}

int record_annotate_open(struct record_annotate **out)
{
	struct record_annotate *annotate = calloc(1, sizeof(*annotate));
	struct annotate_sink sink = { on_message, on_bad, annotate };
	struct kb_error err;

	*out = annotate;
	if (!annotate)
		return cli_fail("out of memory");
	annotate->counters = calloc(COUNTERS_MAX, sizeof(*annotate->counters));
	if (!annotate->counters)
		return cli_fail("out of memory");
	if (annotate_server_open(&annotate->server, &sink, &err))
		return cli_fail("--annotate-socket: %s", kb_error_text(&err));
	return 0;
}

int record_annotate_start(struct record_annotate *annotate, struct kb_device *device,
			  struct kb_recorder *recorder, const char *final)
{
	struct kb_recorder_totals totals;
	struct kb_error err;

	annotate->device = device;
	annotate->recorder = recorder;
	kb_recorder_totals(recorder, &totals);
	annotate->nr_cpus = totals.nr_cpus;
	if (!final || asprintf(&annotate->final, "%s" ANNOTATE_SIDE_SUFFIX, final) < 0)
		annotate->final = NULL;
	if (annotate->final &&
	    asprintf(&annotate->partial, "%s.partial" ANNOTATE_SIDE_SUFFIX, final) < 0) {
		free(annotate->final);
		annotate->final = annotate->partial = NULL;
	}
	annotate_server_begin(annotate->server);
	return kb_recorder_expect(recorder, LATE_MS, &err) ? cli_fail_error(&err) : 0;
}

int record_annotate_fd(const struct record_annotate *annotate)
{
	return annotate_server_fd(annotate->server);
}

int record_annotate_serve(struct record_annotate *annotate, struct kb_error *err)
{
	annotate->err = err;
	return annotate_server_serve(annotate->server) ? err->code : 0;
}

int record_annotate_finish(struct record_annotate *annotate, struct kb_error *err)
{
	annotate->err = err;
	return annotate_server_finish(annotate->server) ? err->code : 0;
}

int record_annotate_commit(struct record_annotate *annotate)
{
	int ret = 0;

	if (annotate->side) {
		ret = fclose(annotate->side) ? errno : 0;
		annotate->side = NULL;
		if (!ret && rename(annotate->partial, annotate->final))
			ret = errno;
		if (ret)
			return cli_fail("can't write %s: %s", annotate->final, strerror(ret));
	}
	if (annotate->bad > SAID_MAX)
		cli_warn("%u connections of Annotate clients were dropped in all", annotate->bad);
	if (annotate->negative)
		cli_warn("Annotate clients of a version before 5 sent %" PRIu64 " negative values: "
			 "if these are Arm's clients, which send 32 bits, add 4294967296 to each "
			 "value", annotate->negative);
	if (annotate->unheard)
		cli_warn("%" PRIu64 " messages of Annotate clients were dropped: a capture has no "
			 "place for them; record to a file, which gets a side file",
			 annotate->unheard);
	if (annotate->kept_aside)
		cli_warn("%" PRIu64 " of %" PRIu64 " messages of Annotate clients are in the side "
			 "file %s", annotate->kept_aside, annotate->messages, annotate->final);
	return 0;
}

void record_annotate_close(struct record_annotate *annotate, bool kept)
{
	if (!annotate)
		return;
	annotate_server_close(annotate->server);
	if (annotate->side) {
		fclose(annotate->side);
		if (!kept)
			unlink(annotate->partial);
	}
	free(annotate->final);
	free(annotate->partial);
	free(annotate->counters);
	free(annotate);
}
