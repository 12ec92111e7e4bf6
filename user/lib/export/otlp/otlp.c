// SPDX-License-Identifier: MIT
/*
 * See otlp.h. Rows are added up as for pprof. When the time of a request is over, they are written
 * and forgotten; only the call chains stay, which later requests are likely to have as well.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <kbarman/version.h>

#include "analysis/facts/process_notes.h"
#include "base/digest.h"
#include "base/hash.h"
#include "base/io/out_packet.h"
#include "base/table.h"
#include "export/label.h"
#include "export/otlp/otlp.h"
#include "export/otlp/tables.h"
#include "export/run.h"
#include "format/gzip.h"
#include "format/protobuf.h"

#define SMALL		256		/* bytes: room for the numbers of a message */
#define MINUTE_NS	UINT64_C(60000000000)
#define MAX_ROWS	100000		/* of a request; with more it ends before its time */
#define MAX_COUNTERS	64		/* largest number of counters that become profiles */

enum { VALUE_CPU, VALUE_SAMPLES, VALUE_OFF_CPU, VALUE_COUNTERS };

/* What one task did in one call chain. Its values follow. */
struct row {
	uint64_t key[2];	/* task number, node */
	uint32_t program;	/* number of its resource in this request */
	uint64_t values[];
};

/* The attributes of a task in this request. */
struct thread {
	uint64_t key;		/* task number */
	uint32_t name, tid, pid;
};

/* A program in this request. */
struct program {
	uint64_t key;		/* hash of its name and its cgroup */
	uint32_t task;		/* number of a task that is called so */
	const char *cgroup;	/* NULL: not known */
};

struct otlp {
	KB_RUN;				/* out: the body of a request */
	const struct kb_otlp_options *how;
	const struct kb_process_notes *notes;
	uint32_t nr_values;

	/* of the request that is being filled */
	struct kb_table rows, threads, programs;
	struct kb_otlp_tables tables;
	struct kb_otlp_request request;
	bool open;			/* its times are known */
	int64_t from, last;		/* ns, as kb_barman_ns() */

	struct kb_out *resource, *scope, *profile;
	uint64_t identity[2];		/* of the capture */
	uint64_t nr_requests, nr_rows;
	int error;			/* of take() */
};

#define SINK struct otlp
#include "export/sink.h"

/* ---- adding up ---- */

/* The number of the program of a task: its process is called so at that time. */
static int64_t find_program(struct otlp *x, uint32_t task, uint64_t timestamp)
{
	uint32_t tgid = kb_task_id(&x->tasks, task)->tgid;
	int64_t process = kb_task_table_find(&x->tasks, tgid, timestamp);
	const char *cgroup = kb_process_notes_find(x->notes, tgid, timestamp).cgroup;
	char label[KB_TASK_LABEL];
	struct program *program;
	uint64_t key;

	if (process < 0)
		return process;
	key = kb_hash_bytes(x->programs.seed, label,
			    kb_task_label(&x->tasks, (uint32_t)process, label));
	if (cgroup)
		key = kb_hash_bytes(key, cgroup, strlen(cgroup) + 1);
	program = kb_table_get(&x->programs, &key);
	if (!program)
		return -ENOMEM;
	program->task = (uint32_t)process;
	program->cgroup = cgroup;
	return ((char *)program - x->programs.rows) / x->programs.row_size;
}

static struct row *find_row(struct otlp *x, uint32_t task_id, uint64_t timestamp, int64_t node)
{
	int64_t task = kb_task_table_find(&x->tasks, task_id, timestamp), program;
	uint64_t key[2] = { (uint64_t)task, (uint64_t)node };
	uint32_t before = x->rows.nr;
	struct row *row = node < 0 || task < 0 ? NULL : kb_table_get(&x->rows, key);

	if (row && x->rows.nr != before) {
		program = find_program(x, (uint32_t)task, timestamp);
		row->program = (uint32_t)program;
		x->no_memory |= program < 0;
	}
	x->no_memory |= !row;
	return row;
}

static void take_wait(void *context, const struct kb_wait *wait)
{
	struct otlp *x = context;
	struct row *row = find_row(x, wait->task_id, wait->ticks, wait->mark);

	if (!row)
		return;
	row->values[VALUE_OFF_CPU] += wait->ns;
	x->request.waits++;
	x->request.wait_ns += wait->ns;
}

static void add_sample(struct otlp *x, const struct kb_walk *walk, uint32_t known, uint32_t node)
{
	const struct kb_event *event = &walk->event;
	struct row *row = find_row(x, event->task_id, event->timestamp, node);

	if (!row)
		return;
	x->request.samples++;
	row->values[VALUE_SAMPLES]++;
	for (uint32_t i = 0; i < known; i++) {
		uint32_t id = kb_names_counter_id(x->trace->names, event->core, i);

		if (event->sample.counters[i] != KB_COUNTER_INVALID && VALUE_COUNTERS + id < x->nr_values)
			row->values[VALUE_COUNTERS + id] += event->sample.counters[i];
	}
	row->values[VALUE_CPU] += x->cpu_ns;
}

/* ---- writing: names, resources ---- */

static void put_text_attribute(struct kb_out *out, const char *key, const char *value,
			       size_t length)
{
	size_t key_length = strlen(key);
	uint8_t *at = kb_out_reserve(out, key_length + KB_STACK_LABEL + SMALL), *message, *inner;
	char label[KB_STACK_LABEL];

	if (!at)
		return;
	length = kb_label(label, sizeof(label), value, length, false);
	message = kb_proto_begin(at, KB_OTLP_RESOURCE_ATTRIBUTES, KB_PROTO_PACKET);
	at = kb_proto_put_bytes(message, KB_OTLP_KEY, key, key_length);
	inner = kb_proto_begin(at, KB_OTLP_VALUE, KB_PROTO_EVENT);
	at = kb_proto_put_bytes(inner, KB_OTLP_VALUE_TEXT, label, length);
	at = kb_proto_end(inner, at, KB_PROTO_EVENT);
	kb_out_commit(out, kb_proto_end(message, at, KB_PROTO_PACKET));
}

/* An attribute of the capture, unless the options have one with this key. */
static void put_own(struct otlp *x, struct kb_out *out, const char *key, const char *value,
		    size_t length)
{
	size_t i;

	for (i = 0; i < x->how->nr_attributes; i++)
		if (!strcmp(x->how->attributes[i].key, key))
			return;
	if (length)
		put_text_attribute(out, key, value, length);
}

static void put_fact(struct otlp *x, struct kb_out *out, const char *key, const char *fact)
{
	const char *value = kb_barman_fact(x->trace->barman, fact);

	put_own(x, out, key, value, value ? strlen(value) : 0);
}

/* Write what is known of a program into x->resource. `profile` has the message meanwhile. */
static void put_resource(struct otlp *x, const struct program *program)
{
	struct kb_out *out = x->profile;
	const char *host = kb_barman_fact(x->trace->barman, "host") ?:
			   kb_trace_header(x->trace)->target_name ?: "";
	char name[KB_TASK_LABEL];
	size_t length = kb_task_label(&x->tasks, program->task, name), i;
	const char *cgroup = program->cgroup ?: "";
	struct kb_text service = kb_cgroup_service(cgroup), container = kb_cgroup_container(cgroup);

	if (service.length)
		put_own(x, out, "service.name", service.data, service.length);
	else
		put_own(x, out, "service.name", name, length);
	put_own(x, out, "container.id", container.data, container.length);
	put_own(x, out, "process.linux.cgroup", cgroup, strlen(cgroup));
	put_own(x, out, "host.name", host, strlen(host));
	put_own(x, out, "os.type", "linux", strlen("linux"));
	put_fact(x, out, "os.version", "release");
	put_own(x, out, "process.executable.name", name, length);
	for (i = 0; i < x->how->nr_attributes; i++)
		put_text_attribute(out, x->how->attributes[i].key,
				   x->how->attributes[i].value,
				   strlen(x->how->attributes[i].value));
	kb_otlp_nest(x->resource, KB_OTLP_RESOURCE, out);
}

static void put_scope(struct otlp *x)
{
	static const char name[] = "kbarman";
	uint8_t *at = kb_out_reserve(x->scope, SMALL), *message;

	if (!at)
		return;
	message = kb_proto_begin(at, KB_OTLP_SCOPE, KB_PROTO_EVENT);
	at = kb_proto_put_bytes(message, KB_OTLP_SCOPE_NAME, name, strlen(name));
	at = kb_proto_put_bytes(at, KB_OTLP_SCOPE_VERSION, kb_version(), strlen(kb_version()));
	kb_out_commit(x->scope, kb_proto_end(message, at, KB_PROTO_EVENT));
}

/* ---- writing: profiles ---- */

static const struct thread *find_thread(struct otlp *x, uint32_t task)
{
	struct thread *thread = kb_table_get(&x->threads, &(uint64_t){ task });
	char label[KB_TASK_LABEL];
	struct kb_task_id *id;

	x->no_memory |= !thread;
	if (!thread || thread->name)
		return thread;
	id = kb_task_id(&x->tasks, task);
	thread->name = kb_otlp_attribute(&x->tables, "thread.name", label,
					 kb_task_label(&x->tasks, task, label));
	thread->tid = kb_otlp_number(&x->tables, "thread.id", id->key[0]);
	thread->pid = kb_otlp_number(&x->tables, "process.pid", id->tgid);
	return thread;
}

static void put_sample(struct otlp *x, const struct row *row, uint64_t value)
{
	uint32_t chain = kb_otlp_chain(&x->tables, (uint32_t)row->key[1]);
	const struct thread *thread = find_thread(x, (uint32_t)row->key[0]);
	uint8_t *at = thread ? kb_out_reserve(x->profile, SMALL) : NULL, *message, *list;

	if (!at)
		return;
	message = kb_proto_begin(at, KB_OTLP_PROFILE_SAMPLES, KB_PROTO_EVENT);
	at = kb_proto_put_uint(message, KB_OTLP_SAMPLE_STACK, chain);
	list = kb_proto_begin(at, KB_OTLP_SAMPLE_ATTRIBUTES, KB_PROTO_EVENT);
	at = kb_proto_put_varint(list, thread->name);
	at = kb_proto_put_varint(at, thread->tid);
	at = kb_proto_put_varint(at, thread->pid);
	at = kb_proto_end(list, at, KB_PROTO_EVENT);
	at = kb_proto_put_one(at, KB_OTLP_SAMPLE_VALUES, value);
	kb_out_commit(x->profile, kb_proto_end(message, at, KB_PROTO_EVENT));
}

/* The name of a kind of values, and whether these are times. */
static struct kb_text value_name(const struct otlp *x, uint32_t value, bool *time)
{
	static const char *const names[] = { "cpu", "samples", "off_cpu" };
	struct kb_text name;

	*time = value == VALUE_CPU || value == VALUE_OFF_CPU;
	if (value < VALUE_COUNTERS)
		return kb_text(names[value]);
	name = kb_names_counter(x->trace->names, value - VALUE_COUNTERS);
	*time = kb_cputime_is_clock(name);
	return name;
}

/*
 * A profile has the same id whenever this capture is encoded, so that a collector that gets it
 * twice can tell.
 */
static void make_id(const struct otlp *x, uint32_t program, uint32_t value, uint64_t id[2])
{
	int i;

	for (i = 0; i < 2; i++) {
		id[i] = kb_hash_word(x->identity[i], x->nr_requests);
		id[i] = htole64(kb_hash_word(kb_hash_word(id[i], program + 1), value));
	}
}

static void put_head(struct otlp *x, uint32_t program, uint32_t value)
{
	uint32_t type, unit;
	struct kb_text name;
	uint8_t *at, *message;
	uint64_t id[2];
	bool time;

	name = value_name(x, value, &time);
	type = kb_otlp_text(&x->tables, name.data, name.length);
	unit = kb_otlp_text(&x->tables, time ? "nanoseconds" : "count", time ? 11 : 5);
	make_id(x, program, value, id);
	at = kb_out_reserve(x->profile, SMALL);
	if (!at)
		return;
	message = kb_proto_begin(at, KB_OTLP_PROFILE_TYPE, KB_PROTO_EVENT);
	at = kb_proto_put_uint(message, KB_OTLP_TYPE_NAME, type);
	at = kb_proto_put_uint(at, KB_OTLP_TYPE_UNIT, unit);
	at = kb_proto_end(message, at, KB_PROTO_EVENT);
	at = kb_proto_put_fixed64(at, KB_OTLP_PROFILE_TIME, x->request.from);
	at = kb_proto_put_uint(at, KB_OTLP_PROFILE_DURATION, x->request.until - x->request.from);
	kb_out_commit(x->profile, kb_proto_put_bytes(at, KB_OTLP_PROFILE_ID, id, sizeof(id)));
}

/* The counter @value counts what VALUE_CPU has anyway. */
static bool is_double(const struct otlp *x, uint32_t value)
{
	return x->times.clock && value == VALUE_COUNTERS;
}

/* Write the profiles of the program whose rows have the numbers @rows. */
static void put_program(struct otlp *x, uint32_t program, const uint32_t *rows, uint32_t nr)
{
	uint64_t before = x->request.profiles;
	uint32_t value, i;

	put_resource(x, kb_table_row(&x->programs, program));
	put_scope(x);
	for (value = 0; value < x->nr_values; value++) {
		bool any = false;

		if (is_double(x, value))
			continue;
		for (i = 0; i < nr; i++) {
			const struct row *row = kb_table_row(&x->rows, rows[i]);

			if (!row->values[value])
				continue;
			if (!any)
				put_head(x, program, value);
			any = true;
			put_sample(x, row, row->values[value]);
		}
		if (any) {
			kb_otlp_nest(x->scope, KB_OTLP_SCOPE_PROFILES, x->profile);
			x->request.profiles++;
		}
	}
	kb_otlp_nest(x->resource, KB_OTLP_RESOURCE_SCOPES, x->scope);
	if (x->request.profiles != before)
		kb_otlp_nest(x->out, KB_OTLP_REQUEST_RESOURCES, x->resource);
	x->resource->at = x->resource->buffer;	/* else its waits took no time at all */
}

/* Sort the rows by program, each program's in their order. Returns them, to be freed. */
static uint32_t *sort_rows(const struct otlp *x, uint32_t *starts)
{
	uint32_t *order = calloc((size_t)x->rows.nr + 1, sizeof(*order)), i;

	if (!order)
		return NULL;
	for (i = 0; i < x->rows.nr; i++)
		starts[((struct row *)kb_table_row(&x->rows, i))->program + 1]++;
	for (i = 0; i < x->programs.nr; i++)
		starts[i + 1] += starts[i];
	for (i = 0; i < x->rows.nr; i++)
		order[starts[((struct row *)kb_table_row(&x->rows, i))->program]++] = i;
	return order;
}

static void put_programs(struct otlp *x)
{
	uint32_t *starts = calloc((size_t)x->programs.nr + 1, sizeof(*starts)), i, start = 0;
	uint32_t *order = starts ? sort_rows(x, starts) : NULL;

	/* starts[i] is now where the rows of program i end */
	for (i = 0; order && i < x->programs.nr && !x->no_memory; i++) {
		put_program(x, i, order + start, starts[i] - start);
		start = starts[i];
	}
	x->no_memory |= !order;
	free(order);
	free(starts);
}

/* ---- requests ---- */

static void open_request(struct otlp *x)
{
	x->request = (struct kb_otlp_request){ 0 };
	x->open = false;
	kb_table_init(&x->rows, sizeof(struct row) + x->nr_values * sizeof(uint64_t), 2);
	kb_table_init(&x->threads, sizeof(struct thread), 1);
	kb_table_init(&x->programs, sizeof(struct program), 1);
	kb_otlp_tables_init(&x->tables, &x->stacks);
}

static void close_request(struct otlp *x)
{
	kb_otlp_tables_release(&x->tables);
	kb_table_release(&x->programs);
	kb_table_release(&x->threads);
	kb_table_release(&x->rows);
}

static int hand_over(struct otlp *x, struct kb_out *packed)
{
	struct kb_gzip *gzip;
	struct kb_out *in;
	const void *data;
	size_t size;
	int error = kb_gzip_create(&gzip, packed, &in);

	if (error)
		return error;
	data = kb_out_data(x->out, &size);
	kb_out_bytes(in, data, size);
	error = kb_out_error(x->out);
	if (!error)
		error = kb_gzip_finish(gzip);
	kb_gzip_destroy(gzip);
	if (error)
		return error;
	x->request.data = kb_out_data(packed, &x->request.size);
	return x->how->take(x->how->context, &x->request);
}

/* Encode what was added up, pass it on, and begin with nothing. */
static void end_request(struct otlp *x)
{
	uint64_t epoch = kb_trace_header(x->trace)->unix_base_ns;
	struct kb_out *packed;

	if (!x->rows.nr || x->no_memory || x->error)
		return;
	x->nr_rows += x->rows.nr;
	x->request.from = epoch + (uint64_t)x->from;
	x->request.until = epoch + (uint64_t)x->last;
	put_programs(x);
	kb_otlp_tables_write(&x->tables, x->out);
	x->no_memory |= x->tables.no_memory || kb_out_error(x->out);
	if (!x->no_memory && x->request.profiles && !kb_out_memory(&packed)) {
		x->error = hand_over(x, packed);
		x->no_memory |= x->error != 0;		/* no further record is read */
		kb_out_destroy(packed);
	} else {
		x->no_memory |= x->request.profiles != 0;
	}
	x->nr_requests++;
	x->out->at = x->out->buffer;
	close_request(x);
	open_request(x);
}

/* The request that the record belongs to. Records of a hostile capture may be in any order. */
static void choose_request(struct otlp *x, const struct kb_walk *walk)
{
	int64_t ns = walk->ns;
	uint64_t every = x->how->every_ns ? x->how->every_ns : MINUTE_NS;

	if (x->open && ns > x->from && (uint64_t)ns - (uint64_t)x->from >= every) {
		/* its time was all of it, whatever came last */
		x->last = (int64_t)((uint64_t)x->from + every);
		end_request(x);
		/* the next one begins where this one ended, or later at a multiple of that */
		x->from = (int64_t)((uint64_t)ns - ((uint64_t)ns - (uint64_t)x->from) % every);
		x->open = true;
	} else if (!x->open) {
		x->from = ns;
		x->last = ns;
		x->open = true;
	} else if (x->rows.nr >= MAX_ROWS) {
		end_request(x);
		x->from = x->last;
		x->open = true;
	}
	if (x->last < x->from || ns > x->last)
		x->last = ns > x->from ? ns : x->from;
}

/* ---- all of it ---- */

/* What tells this capture from others: host, clocks, texts. Not the name of the file. */
static void identify(struct otlp *x)
{
	const struct kb_header *header = kb_trace_header(x->trace);
	uint8_t name[KB_DIGEST_BYTES];
	struct kb_digest digest;

	kb_digest_begin(&digest);
	kb_digest_number(&digest, header->unix_base_ns);
	kb_digest_bytes(&digest, header->strings, header->string_table_length);
	kb_digest_end(&digest, name);
	for (size_t i = 0; i < sizeof(name); i++)
		x->identity[i / 8] |= (uint64_t)name[i] << (8 * (i % 8));
}

static int begin(struct otlp *x)
{
	uint32_t nr = kb_names_nr_counters(x->trace->names);

	x->nr_values = VALUE_COUNTERS + (nr < MAX_COUNTERS ? nr : MAX_COUNTERS);
	identify(x);
	open_request(x);
	x->notes = kb_trace_notes(x->trace, NULL);
	if (!x->notes || kb_out_memory(&x->resource) || kb_out_memory(&x->scope) || kb_out_memory(&x->profile))
		return kb_run_no_memory(&x->run);
	return 0;
}

/* What the capture has that requests can't hold, or has not. */
static void complain(const struct otlp *x)
{
	if (!x->nr_rows && !x->rows.nr)
		kb_export_say(x->options, "the capture has no samples with an address");
	if (kb_names_nr_counters(x->trace->names) > MAX_COUNTERS)
		kb_export_say(x->options, "only the first %d of %u counters were written", MAX_COUNTERS,
			      kb_names_nr_counters(x->trace->names));
}

static int end(struct otlp *x)
{
	complain(x);
	end_request(x);
	return !x->error ? 0 : kb_error_set(x->err, x->error, KB_NO_OFFSET, "can't pass on a request: %s",
					    strerror(-x->error));
}

static void release(struct otlp *x)
{
	close_request(x);
	kb_out_destroy(x->profile);
	kb_out_destroy(x->scope);
	kb_out_destroy(x->resource);
}

static const struct sink sink = {
	.uses = KB_USES_STACKS | KB_USES_ADDRESSES | KB_USES_TIMES,
	.begin = begin,
	.end = end,
	.release = release,
	.before = choose_request,
	.waited = take_wait,
	.call = add_sample,
};

int kb_otlp_run(struct kb_trace *trace, const struct kb_otlp_options *options,
		struct kb_error *err)
{
	const struct kb_export_options say = { .say = options->say, .context = options->context };
	struct otlp x = { .how = options };
	struct kb_out *body;
	int result = kb_out_memory(&body);

	if (result)
		return kb_error_set(err, result, KB_NO_OFFSET, "out of memory");
	kb_run_init(&x.run, trace, &say, body, err);
	result = sink_run(&x, &sink);
	kb_out_destroy(body);
	return result;
}
