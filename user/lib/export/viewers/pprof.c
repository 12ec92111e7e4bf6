// SPDX-License-Identifier: MIT
/*
 * The samples of a capture as a gzip-compressed profile in pprof's format. Samples with the
 * same task, CPU and call chain become one, so memory and file grow only with different
 * samples.
 *
 * The value "cpu" is measured: the CPU time of the task since its previous sample, from the
 * scheduler's records, or what a clock counted if a clock samples. If task switches have call
 * chains, waits are samples with the value "off-cpu".
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/io/out_packet.h"
#include "base/table.h"
#include "export/label.h"
#include "export/list.h"
#include "export/run.h"
#include "export/viewers/pprof.h"
#include "export/viewers/pprof_fields.h"
#include "format/gzip.h"
#include "format/protobuf.h"

#define SMALL		256	/* bytes: room for the numbers of a message */
#define MAX_COUNTERS	64	/* largest number of counters that become types of values */
#define NO_STRING	UINT32_MAX

enum { VALUE_SAMPLES, VALUE_CPU, VALUE_WAITS, VALUE_OFF_CPU, VALUE_COUNTERS };

/* The samples of one task, CPU and chain. Their values follow. */
struct row {
	uint64_t key[3];	/* task number, core, node */
	uint64_t values[];
};

struct pprof {
	KB_RUN;
	struct kb_out *profile;	/* before it is packed */
	struct kb_pprof_sums *sums;
	struct kb_table rows, functions;
	uint32_t nr_counters;	/* that have values */
	uint32_t nr_strings;
};

#define SINK struct pprof
#include "export/sink.h"

/* ---- adding up ---- */

static struct row *find_row(struct pprof *x, uint32_t task_id, uint64_t timestamp,
			    uint32_t core, int64_t node)
{
	int64_t task = kb_task_table_find(&x->tasks, task_id, timestamp);
	uint64_t key[3] = { (uint64_t)task, core, (uint64_t)node };
	struct row *row = node < 0 || task < 0 ? NULL : kb_table_get(&x->rows, key);

	x->no_memory |= !row;
	return row;
}

static void take_wait(void *context, const struct kb_wait *wait)
{
	struct pprof *x = context;
	struct row *row = find_row(x, wait->task_id, wait->ticks, wait->core, wait->mark);

	if (!row)
		return;
	row->values[VALUE_WAITS]++;
	row->values[VALUE_OFF_CPU] += wait->ns;
}

static void add_sample(struct pprof *x, const struct kb_walk *walk, uint32_t known, uint32_t node)
{
	const struct kb_event *event = &walk->event;
	struct row *row = find_row(x, event->task_id, event->timestamp, event->core, node);

	if (!row)
		return;
	row->values[VALUE_SAMPLES]++;
	for (uint32_t i = 0; i < known; i++) {
		uint32_t id = kb_names_counter_id(x->trace->names, event->core, i);

		if (event->sample.counters[i] != KB_COUNTER_INVALID && id < x->nr_counters)
			row->values[VALUE_COUNTERS + id] += event->sample.counters[i];
	}
	row->values[VALUE_CPU] += x->cpu_ns;
}

/* ---- writing ---- */

/* The number of a string. A new string is written, so do not call it inside another message. */
static uint32_t put_string(struct pprof *x, const char *text, size_t length)
{
	uint8_t *at = kb_out_reserve(x->profile, length + SMALL);

	if (at)
		kb_out_commit(x->profile, kb_proto_put_bytes(at, PROFILE_STRING, text, length));
	return x->nr_strings++;
}

static uint32_t put_text(struct pprof *x, const char *text)
{
	char label[KB_STACK_LABEL];

	return put_string(x, label, kb_label(label, sizeof(label), text, strlen(text), false));
}

static void put_value_type(struct pprof *x, uint32_t field, uint32_t type, uint32_t unit)
{
	uint8_t *at = kb_out_reserve(x->profile, SMALL), *message;

	if (!at)
		return;
	message = kb_proto_begin(at, field, KB_PROTO_EVENT);
	at = kb_proto_put_uint(message, TYPE_TYPE, type);
	kb_out_commit(x->profile, kb_proto_end(message, kb_proto_put_uint(at, TYPE_UNIT, unit),
					   KB_PROTO_EVENT));
}

/*
 * Write the types of values. String 0 is "", and the first strings are the same in every
 * profile.
 */
static void put_types(struct pprof *x)
{
	uint32_t count, nanoseconds, type, cpu, first = NO_STRING, i;
	struct kb_text name;
	uint8_t *at;

	put_text(x, "");
	count = put_text(x, "count");
	nanoseconds = put_text(x, "nanoseconds");
	put_value_type(x, PROFILE_SAMPLE_TYPE, put_text(x, "samples"), count);
	cpu = put_text(x, "cpu");
	put_value_type(x, PROFILE_SAMPLE_TYPE, cpu, nanoseconds);
	if (x->waits.nr) {
		put_value_type(x, PROFILE_SAMPLE_TYPE, put_text(x, "waits"), count);
		put_value_type(x, PROFILE_SAMPLE_TYPE, put_text(x, "off-cpu"), nanoseconds);
	}
	for (i = 0; i < x->nr_counters; i++) {
		char label[KB_STACK_LABEL];

		name = kb_names_counter(x->trace->names, i);
		type = put_string(x, label, kb_label(label, sizeof(label), name.data, name.length,
						     false));
		put_value_type(x, PROFILE_SAMPLE_TYPE, type,
			       kb_cputime_is_clock(name) ? nanoseconds : count);
		if (!i)
			first = type;
	}
	if (first != NO_STRING)
		put_value_type(x, PROFILE_PERIOD_TYPE, first, x->times.clock ? nanoseconds : count);
	else
		put_value_type(x, PROFILE_PERIOD_TYPE, cpu, nanoseconds);
	at = kb_out_reserve(x->profile, SMALL);
	if (at)
		kb_out_commit(x->profile, kb_proto_put_uint(at, PROFILE_DEFAULT_TYPE, cpu));
}

static bool is_program(const struct kb_stack_image *image)
{
	return image->mapped && !image->kernel && image->path[0] == '/' &&
	       !strstr(image->base_name, ".so");
}

/*
 * Readers take the first mapping for the main binary. It is the program with the most samples, also in
 * what it called; images.nr: there is none.
 */
static uint32_t main_image(struct pprof *x)
{
	uint64_t *samples = calloc(x->stacks.images.nr + 1, sizeof(*samples));
	uint32_t best = x->stacks.images.nr, i, node, image;

	for (i = 0; samples && i < x->rows.nr; i++) {
		const struct row *row = kb_table_row(&x->rows, i);

		for (node = (uint32_t)row->key[2]; node; node = kb_stack_node(&x->stacks, node)->parent) {
			image = kb_stack_frame(&x->stacks, kb_stack_node(&x->stacks, node)->frame)->image;
			if (!is_program(kb_stack_image(&x->stacks, image)))
				continue;
			samples[image] += row->values[VALUE_SAMPLES];
			break;
		}
	}
	for (i = 0; samples && i < x->stacks.images.nr; i++)
		if (samples[i] && (best == x->stacks.images.nr || samples[i] > samples[best]))
			best = i;
	x->no_memory |= !samples;
	free(samples);
	return best;
}

/* What some frame of an image has not. */
struct lacks {
	bool name, file;
};

/* An image that no row maps is left out, because the format needs its start and end. */
static void put_image(struct pprof *x, uint32_t i, const struct lacks *lacks)
{
	const struct kb_stack_image *image = kb_stack_image(&x->stacks, i);
	char hex[KB_BUILD_ID_TEXT];
	uint32_t file, build_id;
	uint8_t *at, *message;

	if (!image->mapped)
		return;
	kb_build_id_text(hex, image->build_id);
	file = put_text(x, image->path);
	build_id = image->build_id ? put_text(x, hex) : 0;
	at = kb_out_reserve(x->profile, SMALL);
	if (!at)
		return;
	message = kb_proto_begin(at, PROFILE_MAPPING, KB_PROTO_EVENT);
	at = kb_proto_put_uint(message, MAPPING_ID, i + 1);
	at = kb_proto_put_uint(at, MAPPING_START, image->start);
	at = kb_proto_put_uint(at, MAPPING_LIMIT, image->end);
	at = kb_proto_put_uint(at, MAPPING_OFFSET, image->offset);
	at = kb_proto_put_uint(at, MAPPING_FILE, file);
	if (build_id)
		at = kb_proto_put_uint(at, MAPPING_BUILD_ID, build_id);
	at = kb_proto_put_uint(at, MAPPING_HAS_FUNCTIONS, !lacks->name);
	at = kb_proto_put_uint(at, MAPPING_HAS_FILENAMES, !lacks->file);
	at = kb_proto_put_uint(at, MAPPING_HAS_LINES, !lacks->file);
	kb_out_commit(x->profile, kb_proto_end(message, at, KB_PROTO_EVENT));
}

/* Write the images with what is known of all their frames; servers look up the rest. */
static void put_images(struct pprof *x)
{
	struct lacks *lacks = calloc(x->stacks.images.nr + 1, sizeof(*lacks));
	uint32_t first = main_image(x), i;

	for (i = 0; lacks && i < x->stacks.frames.nr; i++) {
		const struct kb_stack_frame *frame = kb_stack_frame(&x->stacks, i);

		lacks[frame->image].name |= !frame->name[0];
		lacks[frame->image].file |= !frame->file[0];
	}
	if (lacks && first < x->stacks.images.nr)
		put_image(x, first, &lacks[first]);
	for (i = 0; lacks && i < x->stacks.images.nr; i++)
		if (i != first)
			put_image(x, i, &lacks[i]);
	x->no_memory |= !lacks;
	free(lacks);
}

/* The number of a frame's function. A new one is written. */
static uint32_t put_function(struct pprof *x, uint32_t i)
{
	const struct kb_stack_frame *frame = kb_stack_frame(&x->stacks, i);
	uint64_t *row, key[2] = { frame->key[0], (uintptr_t)frame->file };
	uint32_t before = x->functions.nr, id, name, system, file;
	char label[KB_STACK_LABEL];
	uint8_t *at, *message;

	row = kb_table_get(&x->functions, key);
	if (!row) {
		x->no_memory = true;
		return 0;
	}
	id = (uint32_t)(((char *)row - x->functions.rows) / x->functions.row_size) + 1;
	if (x->functions.nr == before)
		return id;
	name = put_string(x, label, kb_stack_label(&x->stacks, i, label));
	/* where both are the same, pprof demangles and shortens the name itself */
	system = frame->raw_name[0] ? put_text(x, frame->raw_name) : name;
	file = frame->file[0] ? put_text(x, frame->file) : 0;
	at = kb_out_reserve(x->profile, SMALL);
	if (!at)
		return id;
	message = kb_proto_begin(at, PROFILE_FUNCTION, KB_PROTO_EVENT);
	at = kb_proto_put_uint(message, FUNCTION_ID, id);
	at = kb_proto_put_uint(at, FUNCTION_NAME, name);
	at = kb_proto_put_uint(at, FUNCTION_SYSTEM_NAME, system);
	if (file)
		at = kb_proto_put_uint(at, FUNCTION_FILE, file);
	kb_out_commit(x->profile, kb_proto_end(message, at, KB_PROTO_EVENT));
	return id;
}

/* Write a frame as a location. A frame without a name has no line, so that servers look it up. */
static void put_location(struct pprof *x, uint32_t i)
{
	const struct kb_stack_frame *frame = kb_stack_frame(&x->stacks, i);
	uint32_t function = frame->name[0] ? put_function(x, i) : 0;
	uint8_t *at = kb_out_reserve(x->profile, SMALL), *message, *line;

	if (!at)
		return;
	message = kb_proto_begin(at, PROFILE_LOCATION, KB_PROTO_EVENT);
	at = kb_proto_put_uint(message, LOCATION_ID, i + 1);
	if (kb_stack_image(&x->stacks, frame->image)->mapped)
		at = kb_proto_put_uint(at, LOCATION_MAPPING, frame->image + 1);
	at = kb_proto_put_uint(at, LOCATION_ADDRESS, frame->address);
	if (function) {
		line = kb_proto_begin(at, LOCATION_LINE, KB_PROTO_EVENT);
		at = kb_proto_put_uint(line, LINE_FUNCTION, function);
		if (frame->line)
			at = kb_proto_put_uint(at, LINE_LINE, frame->line);
		at = kb_proto_end(line, at, KB_PROTO_EVENT);
	}
	kb_out_commit(x->profile, kb_proto_end(message, at, KB_PROTO_EVENT));
}

/*
 * Labels are texts, also where they are numbers: the format can't have the number 0. These are
 * the numbers of the strings for the names of labels and for CPU 0, behind which the other CPUs
 * follow.
 */
struct labels {
	uint32_t thread, tid, pid, cpu;
	uint32_t cpu_0;
};

static uint32_t put_number(struct pprof *x, uint64_t number)
{
	char text[24];

	return put_string(x, text, (size_t)snprintf(text, sizeof(text), "%" PRIu64, number));
}

static uint8_t *put_label(uint8_t *at, uint32_t key, uint32_t string)
{
	uint8_t *label = kb_proto_begin(at, SAMPLE_LABEL, KB_PROTO_EVENT);

	at = kb_proto_put_uint(label, LABEL_KEY, key);
	return kb_proto_end(label, kb_proto_put_uint(at, LABEL_STR, string), KB_PROTO_EVENT);
}

/*
 * The string with a task's name. The strings behind it are the ids of the task and of its
 * process.
 */
static uint32_t put_task(struct pprof *x, uint32_t i)
{
	struct kb_task_id *task = kb_task_id(&x->tasks, i);
	char label[KB_TASK_LABEL];

	if (task->user)
		return task->user;
	task->user = put_string(x, label, kb_task_label(&x->tasks, i, label));
	put_number(x, task->key[0]);
	put_number(x, task->tgid);
	return task->user;
}

static void put_row(struct pprof *x, const struct row *row, const struct labels *labels)
{
	uint32_t depth = kb_stack_node(&x->stacks, (uint32_t)row->key[2])->depth, node, i;
	uint32_t task = put_task(x, (uint32_t)row->key[0]);
	uint8_t *at, *message;

	at = kb_out_reserve(x->profile, (depth + MAX_COUNTERS) * KB_PROTO_UINT + SMALL);
	if (!at)
		return;
	message = kb_proto_begin(at, PROFILE_SAMPLE, KB_PROTO_PACKET);
	at = message;
	for (node = (uint32_t)row->key[2]; node; node = kb_stack_node(&x->stacks, node)->parent)
		at = kb_proto_put_uint(at, SAMPLE_LOCATION,
				       kb_stack_node(&x->stacks, node)->frame + 1);
	for (i = 0; i < VALUE_COUNTERS + x->nr_counters; i++)
		if (x->waits.nr || (i != VALUE_WAITS && i != VALUE_OFF_CPU))
			at = kb_proto_put_uint(at, SAMPLE_VALUE, row->values[i]);
	at = put_label(at, labels->thread, task);
	at = put_label(at, labels->tid, task + 1);
	at = put_label(at, labels->pid, task + 2);
	at = put_label(at, labels->cpu, labels->cpu_0 + (uint32_t)row->key[1]);
	kb_out_commit(x->profile, kb_proto_end(message, at, KB_PROTO_PACKET));
}

static void put_rows(struct pprof *x)
{
	struct labels labels = {
		.thread = put_text(x, "thread"),
		.tid = put_text(x, "tid"),
		.pid = put_text(x, "pid"),
		.cpu = put_text(x, "cpu"),
	};
	uint64_t cpus = 0, i;

	for (i = 0; i < x->rows.nr; i++) {
		const struct row *row = kb_table_row(&x->rows, (uint32_t)i);

		if (row->key[1] >= cpus)
			cpus = row->key[1] + 1;
	}
	labels.cpu_0 = x->nr_strings;
	for (i = 0; i < cpus; i++)
		put_number(x, i);
	for (i = 0; i < x->rows.nr; i++)
		put_row(x, kb_table_row(&x->rows, (uint32_t)i), &labels);
}

static void put_facts(struct pprof *x)
{
	static const char *const keys[] = { "command", "host", "release" };
	int64_t first = kb_shown_first(x->trace), last = kb_shown_last(x->trace);
	uint64_t epoch = kb_trace_header(x->trace)->unix_base_ns;
	char comment[KB_STACK_LABEL];
	uint32_t string;
	uint8_t *at;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(keys); i++) {
		const char *fact = kb_barman_fact(x->trace->barman, keys[i]);

		if (!fact)
			continue;
		snprintf(comment, sizeof(comment), "%s: %s", keys[i], fact);
		string = put_text(x, comment);
		at = kb_out_reserve(x->profile, SMALL);
		if (at)
			kb_out_commit(x->profile, kb_proto_put_uint(at, PROFILE_COMMENT, string));
	}
	at = kb_out_reserve(x->profile, SMALL);
	if (!at)
		return;
	at = kb_proto_put_uint(at, PROFILE_TIME, epoch + (uint64_t)first);
	kb_out_commit(x->profile, kb_proto_put_uint(at, PROFILE_DURATION,
						last > first ? (uint64_t)last - (uint64_t)first : 0));
}

static void put_all(struct pprof *x)
{
	uint32_t i;

	put_types(x);
	put_facts(x);
	put_images(x);
	for (i = 0; i < x->stacks.frames.nr && !x->no_memory; i++)
		put_location(x, i);
	put_rows(x);
}

/* ---- all of it ---- */

static int begin(struct pprof *x)
{
	x->nr_counters = kb_names_nr_counters(x->trace->names);
	if (x->nr_counters > MAX_COUNTERS)
		x->nr_counters = MAX_COUNTERS;
	kb_table_init(&x->rows, sizeof(struct row) + (VALUE_COUNTERS + x->nr_counters) *
		      sizeof(uint64_t), 3);
	kb_table_init(&x->functions, 2 * sizeof(uint64_t), 2);
	return 0;
}

static void add_up(struct pprof *x, struct kb_pprof_sums *sums)
{
	*sums = (struct kb_pprof_sums){ 0 };
	for (uint32_t i = 0; i < x->rows.nr; i++) {
		const struct row *row = kb_table_row(&x->rows, i);

		sums->samples += row->values[VALUE_SAMPLES];
		sums->waits += row->values[VALUE_WAITS];
	}
}

static int end(struct pprof *x)
{
	struct kb_gzip *gzip = NULL;

	if (!x->rows.nr)
		kb_export_say(x->options, "the capture has no samples with an address");
	if (kb_names_nr_counters(x->trace->names) > MAX_COUNTERS)
		kb_export_say(x->options, "only the first %d of %u counters were written", MAX_COUNTERS,
			      kb_names_nr_counters(x->trace->names));
	x->no_memory |= kb_gzip_create(&gzip, x->out, &x->profile) != 0;
	if (!x->no_memory) {
		put_all(x);
		kb_gzip_finish(gzip);
	}
	kb_gzip_destroy(gzip);
	add_up(x, x->sums);
	return 0;
}

static void release(struct pprof *x)
{
	kb_table_release(&x->functions);
	kb_table_release(&x->rows);
}

static const struct sink sink = {
	.uses = KB_USES_STACKS | KB_USES_ADDRESSES | KB_USES_TIMES | KB_USES_CALLS_ALONE,
	.begin = begin,
	.end = end,
	.release = release,
	.waited = take_wait,
	.call = add_sample,
};

int kb_pprof_run(struct kb_trace *trace, const struct kb_export_options *options,
		 struct kb_out *out, struct kb_pprof_sums *sums, struct kb_error *err)
{
	struct pprof x = { .sums = sums };

	kb_run_init(&x.run, trace, options, out, err);
	return sink_run(&x, &sink);
}

static int run(struct kb_trace *trace, const struct kb_export_options *options,
	       struct kb_out *out, struct kb_error *err)
{
	struct kb_pprof_sums sums;

	return kb_pprof_run(trace, options, out, &sums, err);
}

const struct kb_export kb_export_pprof = {
	.name = "pprof",
	.extension = ".pb.gz",
	.description = "a profile for pprof, Pyroscope, Parca: samples, CPU time, counters",
	.run = run,
};
