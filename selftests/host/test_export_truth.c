// SPDX-License-Identifier: MIT
/*
 * What a capture says and what its exports say is the same: a random machine is run,
 * which counts what it does, recorded by the library's writer, exported, and counted
 * again in each export.
 */
#include <errno.h>
#include <sys/mman.h>

#include <kbarman/annotate.h>
#include <kbarman/export.h>
#include <kbarman/heph.h>

#include "../lib/random.h"
#include "../lib/tap.h"

#define CPUS		3
#define TASKS		8	/* 0 is the idle task */
#define COUNTERS	2	/* the second one has another name on CPU 1 */
#define SERIES		3	/* the last one is "Lost records" */
#define NAMES		3	/* of counters: cycles, misses, branches */
#define RECORDS		60000
#define BASE		1000000u
#define UNIX_BASE	1700000000000000000u
#define RAW_BASE	123456789u

/* What happened, or is said to have happened. */
struct truth {
	uint64_t switched_in[TASKS];
	uint64_t put_on[TASKS];			/* switched in, or awake after a halt */
	uint64_t switched_out[TASKS][2];	/* preempted, blocked */
	uint64_t run_ns[TASKS];
	uint64_t idle_ns[CPUS];
	uint64_t samples[TASKS];
	uint64_t counted[NAMES];
	uint64_t custom[SERIES];
	uint64_t annotations[4];		/* by type */
	uint64_t lost;
};

static const char *const task_names[TASKS] = {
	"swapper", "bash", "a \"quoted\" task", "back\\slash", "caf\xc3\xa9", "broken\xff",
	"worker/0:1-events", "tab\there",
};
static const char *const plain_names[TASKS] = {		/* as an existing Heph reader can take */
	"swapper", "bash", "a 'quoted' task", "back/slash", "caf\xc3\xa9", "broken\xef\xbf\xbd",
	"worker/0:1-events", "tab here",
};
static const char *const counter_names[NAMES] = { "cycles", "misses", "branches" };
static const char *const series_names[SERIES] = { "temperature", "requests", "Lost records" };

static struct truth want;
static struct kb_barman_writer *writer;
static int file;

struct cpu {
	uint32_t task;
	bool known, halted;
	uint64_t since, last;
};

static struct cpu cpus[CPUS];

static uint32_t name_of_counter(uint32_t core, uint32_t index)
{
	return index == 1 && core == 1 ? 2 : index;
}

/* ---- the machine ---- */

static void emit(struct kb_event *event, uint32_t core, uint64_t now)
{
	event->core = core;
	event->timestamp = BASE + now;
	if (kb_barman_writer_event(writer, event)) {
		printf("Bail out! can't write a record\n");
		exit(1);
	}
}

static void leave(struct cpu *cpu, uint64_t now)
{
	if (cpu->halted)
		want.idle_ns[cpu - cpus] += now - cpu->since;
	else if (cpu->known)
		want.run_ns[cpu->task] += now - cpu->since;
	cpu->since = now;
}

static void do_switch(uint32_t core, uint64_t now)
{
	struct cpu *cpu = &cpus[core];
	struct kb_event event = { .type = KB_EVENT_TASK_SWITCH };

	event.task_id = random_below(TASKS);
	event.task_switch.reason = (uint8_t)random_below(2);
	event.task_switch.prev_state = event.task_switch.reason;
	leave(cpu, now);
	if (cpu->known && !cpu->halted)
		want.switched_out[cpu->task][event.task_switch.reason]++;
	cpu->halted = false;
	cpu->known = true;
	cpu->task = event.task_id;
	want.switched_in[cpu->task]++;
	want.put_on[cpu->task]++;
	emit(&event, core, now);
}

static void do_halt(uint32_t core, uint64_t now)
{
	struct cpu *cpu = &cpus[core];
	struct kb_event event = { .type = KB_EVENT_HALT };

	leave(cpu, now);
	cpu->halted = !cpu->halted;
	if (!cpu->halted && cpu->known)
		want.put_on[cpu->task]++;
	event.halt.entered = cpu->halted;
	event.halt.idle_state = cpu->halted ? (int)random_below(3) : KB_STATE_UNKNOWN;
	emit(&event, core, now);
}

static void do_sample(uint32_t core, uint64_t now)
{
	uint64_t counters[COUNTERS];
	struct kb_custom_value custom = { random_below(2), random_below(1000) };
	struct kb_event event = { .type = KB_EVENT_SAMPLE, .task_id = cpus[core].task };
	uint32_t i;

	for (i = 0; i < COUNTERS; i++) {
		counters[i] = random_below(50) ? random_u64() >> 20 : KB_COUNTER_INVALID;
		if (counters[i] != KB_COUNTER_INVALID)
			want.counted[name_of_counter(core, i)] += counters[i];
	}
	event.sample.has_pc = true;
	event.sample.pc = random_u64();
	event.sample.nr_counters = COUNTERS;
	event.sample.counters = counters;
	event.sample.nr_custom = random_below(2);
	event.sample.custom = &custom;
	if (event.sample.nr_custom)
		want.custom[custom.id] += custom.value;
	want.samples[event.task_id]++;
	emit(&event, core, now);
}

static void do_custom(uint32_t core, uint64_t now)
{
	struct kb_event event = { .type = KB_EVENT_CUSTOM_COUNTER, .task_id = cpus[core].task };

	event.custom_counter.counter = random_below(2);
	event.custom_counter.value = random_below(1000);
	want.custom[event.custom_counter.counter] += event.custom_counter.value;
	emit(&event, core, now);
}

/* A gap: the records before it are the last thing that is known of the CPU. */
static void do_loss(uint32_t core, uint64_t now)
{
	struct cpu *cpu = &cpus[core];
	struct kb_event event = { .type = KB_EVENT_CUSTOM_COUNTER };

	leave(cpu, cpu->last);
	cpu->known = cpu->halted = false;
	cpu->task = 0;
	event.custom_counter.counter = SERIES - 1;
	event.custom_counter.value = 1 + random_below(500);
	want.custom[SERIES - 1] += event.custom_counter.value;
	want.lost += event.custom_counter.value;
	emit(&event, core, now);
	cpu->last = now;
	do_switch(core, now);
}

static void do_annotation(uint32_t core, uint64_t now)
{
	static const char text[] = "an annotation: \"\\\xfe\n";
	struct kb_event event = { .type = KB_EVENT_ANNOTATION, .task_id = cpus[core].task };

	event.annotation.type = (uint8_t)random_below(4);
	event.annotation.channel = random_below(5);
	event.annotation.group = random_below(5);
	event.annotation.colour = random_below(2) ? 0x1b112233 : 0;
	event.annotation.text = text;
	event.annotation.text_length = event.annotation.type ? sizeof(text) - 1 :
							       random_below(sizeof(text));
	event.annotation.data_length = event.annotation.text_length + 1;
	want.annotations[event.annotation.type]++;
	emit(&event, core, now);
}

static void run_machine(void)
{
	uint64_t now = 0;
	uint32_t i, core, what;

	for (core = 0; core < CPUS; core++)
		do_switch(core, now);
	for (i = 0; i < RECORDS; i++) {
		/* some records of a CPU have the same time, as on a machine with a slow clock */
		now += random_below(4) ? random_below(2000) : 0;
		core = random_below(CPUS);
		what = random_below(1000);
		if (what < 500)
			do_switch(core, now);
		else if (what < 750)
			do_halt(core, now);
		else if (what < 900)
			do_sample(core, now);
		else if (what < 950)
			do_custom(core, now);
		else if (what < 998)
			do_annotation(core, now);
		else
			do_loss(core, now);
		cpus[core].last = now;
	}
	for (core = 0; core < CPUS; core++)
		leave(&cpus[core], now);
}

static void need(int error, const char *what)
{
	if (!error)
		return;
	printf("Bail out! can't write the %s: %s\n", what, strerror(-error));
	exit(1);
}

static void write_tables(void)
{
	struct kb_header header = {
		.target_name = "target", .timestamp_base = BASE, .timestamp_multiplier = 1,
		.timestamp_divisor = 1, .unix_base_ns = UNIX_BASE,
	};
	struct kb_chart chart = { .name = "chart", .series_composition = 2, .rendering_type = 2,
				  .boolean_flags = 0x0b };
	uint32_t types[COUNTERS] = { 0x11, 0x08 }, i, core;
	char key[32], value[16];

	need(kb_barman_writer_set_header(writer, &header), "header");
	need(kb_barman_writer_fact(writer, "ext", "1"), "fact");
	snprintf(value, sizeof(value), "%u", RAW_BASE);
	need(kb_barman_writer_fact(writer, "raw_base", value), "fact");
	for (core = 0; core < CPUS; core++) {
		struct kb_pmu pmu = { .num_counters = COUNTERS, .counter_types = types };

		need(kb_barman_writer_pmu(writer, core, &pmu), "PMU");
		for (i = 0; i < COUNTERS; i++) {
			snprintf(key, sizeof(key), "counter.%u.%u", core, i);
			need(kb_barman_writer_fact(writer, key,
						   counter_names[name_of_counter(core, i)]), "fact");
		}
	}
	for (i = 0; i < TASKS; i++) {
		struct kb_task task = { .timestamp = BASE, .task_id = i, .name = task_names[i] };

		need(kb_barman_writer_task(writer, &task), "task");
		snprintf(key, sizeof(key), "tgid.%u", i);
		snprintf(value, sizeof(value), "%u", i / 2);
		need(kb_barman_writer_fact(writer, key, value), "fact");
	}
	need(kb_barman_writer_chart(writer, &chart), "chart");
	for (i = 0; i < SERIES; i++) {
		struct kb_series series = { .name = series_names[i], .units = "u",
					    .description = "d", .colour = UINT32_MAX,
					    .multiplier = i == 0 ? 0.001 : 1.0,
					    .series_class = (uint8_t)(i + 1), .display = 1 };

		need(kb_barman_writer_series(writer, &series), "series");
	}
}

static struct kb_trace *make_capture(void)
{
	struct kb_barman_layout layout = {
		.size = sizeof(layout),
		.max_cores = CPUS, .max_task_infos = 64, .max_mmap_layout = 4,
		.max_pmu_counters = COUNTERS, .max_string_table_length = 4096,
		.max_custom_charts = 1, .max_custom_series = SERIES,
	};
	struct kb_trace *trace;
	struct kb_error err;
	char path[64];

	file = memfd_create("capture", 0);
	need(kb_barman_writer_create(&writer, file, &layout, &err), "capture");
	write_tables();
	run_machine();
	need(kb_barman_writer_finish(writer, true, &err), "end");
	kb_barman_writer_destroy(writer);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	if (kb_trace_open(&trace, path, NULL, &err)) {
		printf("Bail out! %s\n", err.text);
		exit(1);
	}
	return trace;
}

/* ---- comparing ---- */

static void compare(const char *export, const struct truth *got)
{
	char name[80];

#define SAME(member, what) do { \
	snprintf(name, sizeof(name), "%s_has_the_same_%s", export, what); \
	tap_ok(memcmp(&want.member, &got->member, sizeof(want.member)) == 0, name); \
} while (0)
	SAME(switched_in, "switches_to_each_task");
	SAME(put_on, "arrivals_of_each_task_on_a_cpu");
	SAME(switched_out, "switches_from_each_task_by_reason");
	SAME(run_ns, "run_time_of_each_task");
	SAME(idle_ns, "idle_time_of_each_cpu");
	SAME(samples, "samples_of_each_task");
	SAME(counted, "counter_totals");
	SAME(custom, "series_totals");
	SAME(annotations, "annotations_by_type");
	SAME(lost, "lost_records");
#undef SAME
}

static bool is(struct kb_text text, const char *string)
{
	return text.length == strlen(string) && !memcmp(text.data, string, text.length);
}

static struct kb_out *export(struct kb_trace *trace, const char *name,
			     const struct kb_export_options *options)
{
	struct kb_error err = { .text = "" };
	struct kb_out *out;
	char text[64];
	int result;

	if (kb_out_memory(&out))
		exit(1);
	result = kb_export_run(kb_export_find(name), trace, options, out, &err);
	snprintf(text, sizeof(text), "%s_exports_the_whole_capture", name);
	if (!tap_is(result, 0, text))
		tap_note("%s", err.text);
	return out;
}

/* ---- Heph ---- */

struct heph_attributes {
	uint64_t tid, tgid, value, lost;
	bool has_tid, has_value, has_lost, has_pc;
	int out;		/* 0 preempted, 1 blocked, -1 neither */
	int annotation;		/* type, -1 none */
	double scaled;
};

static void take_attributes(struct kb_heph_reader *reader, struct heph_attributes *a)
{
	static const char *const kinds[] = { "end", "bookmark", "channel", "group" };
	struct kb_heph_attribute attribute;
	int i;

	memset(a, 0, sizeof(*a));
	a->out = a->annotation = -1;
	while (kb_heph_next_attribute(reader, &attribute)) {
		const union kb_heph_value *value = attribute.values;

		if (is(attribute.name, "tid")) {
			a->tid = value->u64;
			a->has_tid = true;
		} else if (is(attribute.name, "tgid")) {
			a->tgid = value->u64;
		} else if (is(attribute.name, "switched out")) {
			a->out = is(value->string, "blocked");
		} else if (is(attribute.name, "value")) {
			a->value = value->u64;
			a->has_value = true;
		} else if (is(attribute.name, "lost")) {
			a->lost = value->u64;
			a->has_lost = true;
		} else if (is(attribute.name, "pc")) {
			a->has_pc = true;
		} else if (is(attribute.name, "scaled")) {
			a->scaled = value->f64;
		} else if (is(attribute.name, "channel")) {
			a->annotation = a->annotation < 0 ? 0 : a->annotation;
		} else if (is(attribute.name, "annotation")) {
			for (i = 0; i < 4; i++)
				if (is(value->string, kinds[i]))
					a->annotation = i;
		}
	}
}

/* How many things are wrong with the event, which goes into @got. */
static int count_heph(struct truth *got, const struct kb_heph_event *e,
		      const struct heph_attributes *a)
{
	uint32_t task = (uint32_t)(e->substream == 2147483647u ? 0 : e->substream);
	int i, bad = 0;

	if (e->stream == 0)
		return !is(e->description, "target");
	if (a->has_tid) {
		bad += a->tid >= TASKS || !is(e->description, plain_names[a->tid]) ||
		       a->tgid != a->tid / 2;
		got->run_ns[a->tid] += e->end - e->start;
		if (a->out >= 0)
			got->switched_out[a->tid][a->out]++;
	} else if (is(e->description, "idle") && !a->has_pc && a->annotation < 0) {
		got->idle_ns[e->stream - 1] += e->end - e->start;
	} else if (a->has_lost) {
		got->lost += a->lost;
	} else if (a->has_pc) {
		got->samples[task]++;
	} else if (a->has_value) {
		for (i = 0; i < NAMES; i++)
			if (is(e->description, counter_names[i]))
				got->counted[i] += a->value;
		for (i = 0; i < SERIES; i++)
			if (is(e->description, series_names[i]))
				got->custom[i] += a->value;
		if (is(e->description, series_names[0]))
			bad += a->scaled != (double)a->value * 0.001;
	} else if (a->annotation >= 0) {
		got->annotations[a->annotation]++;
	} else {
		bad++;
	}
	return bad;
}

/* Order, size and place of packets as the existing reader needs them. */
struct heph_rules {
	uint64_t last_end[CPUS + 1];		/* of the row */
	uint32_t counters[CPUS + 1];
	int too_long, out_of_row, miscounted, instants_in_row, unordered;
	uint64_t last;
};

static void check_heph_rules(struct heph_rules *rules, const struct kb_heph_packet *packet)
{
	const struct kb_heph_event *e = &packet->event;

	rules->too_long += packet->size > 128;
	rules->miscounted += e->counter != rules->counters[e->stream]++;
	if (!e->stream || e->substream)
		return;
	rules->instants_in_row += e->start == e->end;
	rules->unordered += e->end < rules->last_end[e->stream];
	rules->out_of_row += rules->last_end[e->stream] &&
			     e->start < rules->last_end[e->stream];
	rules->last_end[e->stream] = e->end;
}

static void check_heph(struct kb_trace *trace)
{
	struct kb_export_options options = { .size = sizeof(options) };
	struct kb_out *out = export(trace, "heph", &options);
	struct heph_rules rules = { 0 };
	struct heph_attributes attributes;
	struct kb_heph_reader *reader;
	struct kb_heph_packet packet;
	const struct kb_error *first;
	struct truth got = { 0 };
	const void *data;
	size_t size;
	int bad = 0;

	data = kb_out_data(out, &size);
	if (kb_heph_open_memory(&reader, data, size, NULL))
		exit(1);
	tap_ok(kb_heph_next(reader, &packet, NULL) == 1 && packet.metadata.is_epoch &&
	       packet.metadata.epoch == UNIX_BASE, "heph_starts_with_the_epoch");
	while (kb_heph_next(reader, &packet, NULL) == 1) {
		bad += packet.magic != KB_HEPH_EVENT_MAGIC || packet.event.stream > CPUS;
		if (bad)
			break;
		take_attributes(reader, &attributes);
		check_heph_rules(&rules, &packet);
		bad += count_heph(&got, &packet.event, &attributes);
	}
	tap_is(bad, 0, "heph_has_names_and_attributes_as_the_capture");
	tap_is(kb_heph_damage(reader, &first), 0, "heph_is_all_utf8_and_in_time");
	tap_is(rules.too_long, 0, "heph_packets_have_128_bytes_at_the_most");
	tap_is(rules.miscounted, 0, "heph_streams_count_their_events");
	tap_is(rules.instants_in_row, 0, "heph_rows_hold_no_instants");
	tap_is(rules.unordered, 0, "heph_rows_are_in_order_of_ends");
	tap_is(rules.out_of_row, 0, "heph_rows_do_not_overlap");
	kb_heph_close(reader);
	kb_out_destroy(out);
	/* the row says it by who comes next: see switched_out */
	memcpy(got.switched_in, want.switched_in, sizeof(got.switched_in));
	memcpy(got.put_on, want.put_on, sizeof(got.put_on));
	compare("heph", &got);
}

/* ---- Annotate ---- */

#define KEY_COUNTERS	3

static int annotate_task(struct kb_text name)
{
	int i;

	for (i = 0; i < TASKS; i++)
		if (is(name, i == 5 ? plain_names[i] : task_names[i]))
			return i;
	return -1;
}

static int count_job(struct truth *got, const struct kb_annotate_job *job)
{
	int task = annotate_task(job->name);
	unsigned long long lost;

	if (task >= 0)
		got->run_ns[task] += (uint64_t)job->duration;
	else if (is(job->name, "idle"))
		got->idle_ns[job->track - 1] += (uint64_t)job->duration;
	else if (sscanf(job->name.data, "%llu records lost", &lost) == 1)
		got->lost += lost;
	else
		return 1;
	return job->primary != -1 || job->nr_deps || job->start < RAW_BASE;
}

static int count_counter(const struct kb_annotate_counter *c)
{
	static const int32_t classes[] = { 1, 4, 2 };	/* of Barman's delta, incident, absolute */
	int series = c->key - KEY_COUNTERS - NAMES;

	if (!c->series_class || !c->display || !c->series_composition || !c->rendering_type)
		return 1;
	if (series < 0)
		return c->key >= KEY_COUNTERS && !is(c->name, counter_names[c->key - KEY_COUNTERS]);
	return !is(c->name, series_names[series]) || !is(c->title, "chart") ||
	       c->series_class != classes[series] || c->display != KB_ANNOTATE_ACCUMULATE ||
	       c->modifier != (series == 0 ? 1000 : 1) || c->color != 0 || c->per_cpu != 1 ||
	       c->average_selection != 1 || c->average_cores != 1 || c->percentage != 0 ||
	       c->series_composition != 2 || c->rendering_type != 2;
}

static int count_annotate(struct truth *got, const struct kb_annotate_message *m)
{
	int key;

	switch (m->type) {
	case KB_ANNOTATE_COUNTER:
		return count_counter(&m->counter);
	case KB_ANNOTATE_VALUE:
		key = m->value.key - KEY_COUNTERS;
		if (key >= NAMES)
			got->custom[key - NAMES] += (uint64_t)m->value.value;
		else if (key >= 0)
			got->counted[key] += (uint64_t)m->value.value;
		else
			got->samples[0] += (uint64_t)m->value.value;
		return 0;
	case KB_ANNOTATE_ACTIVITY:
		if (m->activity.activity && m->activity.tid >= 0)
			got->put_on[m->activity.tid]++;
		return m->activity.activity ? m->activity.tid < 0 : m->activity.tid != -1;
	case KB_ANNOTATE_CAM_JOB:
		return count_job(got, &m->job);
	case KB_ANNOTATE_STRING:
	case KB_ANNOTATE_COLOR_STRING:
		got->annotations[0]++;
		return m->type == KB_ANNOTATE_COLOR_STRING && m->note.color != 0x1122331b;
	case KB_ANNOTATE_MARKER:
	case KB_ANNOTATE_COLOR_MARKER:
		got->annotations[1]++;
		return 0;
	case KB_ANNOTATE_CHANNEL:
		got->annotations[2]++;
		return 0;
	case KB_ANNOTATE_GROUP:
		got->annotations[3]++;
		return 0;
	case KB_ANNOTATE_CAM_VIEW:
		return !is(m->view.name, "Scheduling");
	case KB_ANNOTATE_CAM_TRACK:
		return m->track.parent != -1 || m->track.track > CPUS;
	default:
		return 1;
	}
}

static void check_annotate(struct kb_trace *trace)
{
	struct kb_export_options options = { .size = sizeof(options) };
	struct kb_out *out = export(trace, "annotate", &options);
	struct kb_annotate_reader *reader;
	struct kb_annotate_message m;
	const struct kb_error *first;
	struct truth got = { 0 };
	const void *data;
	uint64_t samples = 0;
	size_t size;
	int bad = 0, i;

	data = kb_out_data(out, &size);
	if (kb_annotate_open_memory(&reader, data, size, NULL))
		exit(1);
	while (kb_annotate_next(reader, &m, NULL) == 1)
		bad += count_annotate(&got, &m);
	tap_is(bad, 0, "annotate_has_names_and_values_as_the_capture");
	tap_is(kb_annotate_damage(reader, &first), 0, "annotate_has_no_value_without_a_meaning");
	kb_annotate_close(reader);
	kb_out_destroy(out);
	for (i = 0; i < TASKS; i++)
		samples += want.samples[i];
	tap_is(got.samples[0], samples, "annotate_has_the_same_number_of_samples");
	/* what Annotate has no place for */
	memcpy(got.samples, want.samples, sizeof(got.samples));
	memcpy(got.switched_out, want.switched_out, sizeof(got.switched_out));
	memcpy(got.switched_in, want.switched_in, sizeof(got.switched_in));
	compare("annotate", &got);
}

int main(void)
{
	struct kb_trace *trace;

	random_start();
	trace = make_capture();
	check_heph(trace);
	check_annotate(trace);
	kb_trace_close(trace);
	close(file);
	return tap_done();
}
