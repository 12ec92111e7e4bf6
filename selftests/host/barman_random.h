/* SPDX-License-Identifier: MIT */
/*
 * Random captures: a layout, tables and events, as the writer takes them and the
 * reader has to give them back.
 */
#ifndef SELFTESTS_BARMAN_RANDOM_H
#define SELFTESTS_BARMAN_RANDOM_H

#include <stdbool.h>
#include <string.h>

#include <kbarman/barman.h>
#include <uapi/barman_v2.h>
#include <uapi/kbarman.h>

#include "../lib/random.h"

#define RANDOM_EVENTS	400
#define RANDOM_ROWS	20
#define RANDOM_TEXT	40

struct random_capture {
	struct kb_barman_layout layout;
	struct kb_header header;
	bool extended;
	bool wide_states;		/* with 16 bits of a task's state */
	struct kb_pmu pmus[8];
	uint32_t counter_types[8][6];
	struct kb_task tasks[RANDOM_ROWS];
	struct kb_map maps[RANDOM_ROWS];
	struct kb_chart charts[4];
	struct kb_series series[6];
	uint32_t nr_tasks, nr_maps, nr_charts, nr_series, nr_events;
	struct kb_event events[RANDOM_EVENTS];

	/* What they point to. */
	char names[3 * RANDOM_ROWS + 40][RANDOM_TEXT];
	unsigned int nr_names;
	uint64_t counters[RANDOM_EVENTS][6], chains[RANDOM_EVENTS][5];
	uint64_t arguments[RANDOM_EVENTS][KB_SYSCALL_ARGUMENTS];
	struct kb_custom_value custom[RANDOM_EVENTS][6];
	char texts[RANDOM_EVENTS][RANDOM_TEXT];
};

/* Any bytes but NUL; often no UTF-8. */
static inline const char *random_name(struct random_capture *c)
{
	char *name = c->names[c->nr_names++];
	size_t length = random_below(RANDOM_TEXT);

	for (size_t i = 0; i < length; i++)
		name[i] = 1 + random_below(255);
	name[length] = '\0';
	return name;
}

static inline uint64_t random_address(const struct random_capture *c)
{
	uint64_t address = random_magnitude();

	return c->layout.word_size == 4 ? (uint32_t)address : address;
}

static inline void random_tables(struct random_capture *c)
{
	struct kb_header *h = &c->header;

	h->target_name = random_name(c);
	h->timestamp_base = random_magnitude();
	h->timestamp_multiplier = random_magnitude();
	h->timestamp_divisor = random_magnitude() | 1;
	h->unix_base_ns = random_u64();
	h->timer_sample_rate = random_u64();
	for (uint32_t core = 0; core < c->layout.max_cores; core++) {
		struct kb_pmu *pmu = &c->pmus[core];

		*pmu = (struct kb_pmu){
			.configuration_timestamp = random_u64(),
			.midr = random_u64(),
			.mpidr = random_address(c),
			.cluster_id = random_u64(),
			.num_counters = random_below(c->layout.max_pmu_counters + 1),
			.counter_types = c->counter_types[core],
		};
		for (uint32_t i = 0; i < pmu->num_counters; i++)
			pmu->counter_types[i] = random_u64();
	}
	c->nr_tasks = random_below(c->layout.max_task_infos + 1);
	for (uint32_t i = 0; i < c->nr_tasks; i++)
		c->tasks[i] = (struct kb_task){
			.timestamp = random_u64(),
			.task_id = random_u64(),
			.name = random_name(c),
		};
	c->nr_maps = random_below(c->layout.max_mmap_layout + 1);
	for (uint32_t i = 0; i < c->nr_maps; i++)
		c->maps[i] = (struct kb_map){
			.timestamp = c->layout.max_task_infos ? random_u64() : 0,
			.task_id = c->layout.max_task_infos ? random_u64() : 0,
			.base_address = random_address(c),
			.length = random_address(c),
			.image_offset = random_address(c),
			.image = random_name(c),
		};
	c->nr_charts = c->layout.max_custom_charts;
	for (uint32_t i = 0; i < c->nr_charts; i++)
		c->charts[i] = (struct kb_chart){
			.name = random_name(c),
			.series_composition = 1 + random_below(3),
			.rendering_type = 1 + random_below(3),
			.boolean_flags = random_below(16),
		};
	c->nr_series = c->layout.max_custom_series;
	for (uint32_t i = 0; i < c->nr_series; i++)
		c->series[i] = (struct kb_series){
			.chart_index = random_below(c->nr_charts),
			.name = random_name(c),
			.units = random_name(c),
			.description = random_name(c),
			.colour = random_u64(),
			.multiplier = (double)random_magnitude() / (1 + random_below(1000)),
			.series_class = 1 + random_below(3),
			.boolean_flags = random_below(2),
		};
	/* Of absolute values average, maximum or minimum; of others sum or rate. */
	for (uint32_t i = 0; i < c->nr_series; i++) {
		static const uint8_t absolute[] = { 2, 4, 5 }, other[] = { 1, 3 };

		c->series[i].display = c->series[i].series_class == 3 ? absolute[random_below(3)]
								      : other[random_below(2)];
	}
}

/* Half of the time none; how many addresses. */
static inline uint32_t random_chain(struct random_capture *c, uint32_t index, uint32_t *kernel)
{
	uint32_t nr = random_below(2) ? 1 + random_below(5) : 0, i;

	*kernel = nr ? random_below(nr + 1) : 0;
	for (i = 0; i < nr; i++)
		c->chains[index][i] = random_address(c);
	return nr;
}

static inline void random_sample(struct random_capture *c, uint32_t index)
{
	struct kb_event *e = &c->events[index];

	e->type = KB_EVENT_SAMPLE;
	e->sample.has_pc = random_below(2);
	e->sample.pc = e->sample.has_pc ? random_address(c) : 0;
	e->sample.nr_counters = c->pmus[e->core].num_counters;
	e->sample.counters = c->counters[index];
	for (uint32_t i = 0; i < e->sample.nr_counters; i++)
		c->counters[index][i] = random_below(8) ? random_u64() : KB_COUNTER_INVALID;
	e->sample.nr_custom = random_below(c->nr_series + 1);
	e->sample.custom = c->custom[index];
	for (uint32_t i = 0; i < e->sample.nr_custom; i++)
		c->custom[index][i] = (struct kb_custom_value){
			.id = random_below(c->nr_series),
			.value = random_u64(),
		};
	e->sample.chain = c->chains[index];
	if (e->sample.has_pc && c->extended)
		e->sample.nr_chain = random_chain(c, index, &e->sample.nr_chain_kernel);
}

/* One, or none; of this release or a later one. */
static inline struct kb_object random_object(void)
{
	if (random_below(2))
		return (struct kb_object){ .kind = KB_OBJECT_NONE };
	return (struct kb_object){ .kind = 1 + random_below(UINT8_MAX), .flags = random_u64(), .call = random_u64(),
				   .id = random_u64(), .value = random_u64() };
}

static inline void random_switch(struct random_capture *c, uint32_t index)
{
	struct kb_event *e = &c->events[index];

	e->type = KB_EVENT_TASK_SWITCH;
	e->task_switch.reason = random_below(2);
	e->task_switch.prev_state = !c->extended ? KB_STATE_UNKNOWN :
				    (int)random_below(c->wide_states ? 65536 : 256);
	e->task_switch.chain = c->chains[index];
	if (c->extended)
		e->task_switch.nr_chain = random_chain(c, index, &e->task_switch.nr_chain_kernel);
	if (c->extended)
		e->task_switch.object = random_object();
}

static inline void random_annotation(struct random_capture *c, uint32_t index)
{
	struct kb_event *e = &c->events[index];
	uint32_t length = random_below(RANDOM_TEXT);

	e->type = KB_EVENT_ANNOTATION;
	for (uint32_t i = 0; i < length; i++)
		c->texts[index][i] = 1 + random_below(255);
	e->annotation.type = random_below(4);
	e->annotation.channel = random_u64();
	e->annotation.group = random_u64();
	e->annotation.colour = random_u64();
	e->annotation.text = c->texts[index];
	e->annotation.text_length = length;
	/* With its NUL or without; without a text that is the end of one. */
	e->annotation.data_length = length + random_below(2);
}

/* What a value of kbarman's own series is about, of this release or a later one. */
static inline void random_detail(struct random_capture *c, uint32_t index, struct kb_event *e)
{
	e->custom_counter.what = 1 + random_below(BM_KBARMAN_BLOCK + 2);
	if (e->custom_counter.what == BM_KBARMAN_LOST) {
		e->custom_counter.what = 0;
		e->custom_counter.lost = 1 + random_below(KBARMAN_LOST_REASONS + 1);
		e->custom_counter.begin = random_u64();
		return;
	}
	e->custom_counter.context = random_below(5);
	e->custom_counter.cpu = random_below(c->layout.max_cores);
	e->custom_counter.id = random_u64();
	if (e->custom_counter.what >= BM_KBARMAN_SYSCALL && e->custom_counter.what <= BM_KBARMAN_BLOCK) {
		e->custom_counter.begin = random_u64() & e->timestamp;	/* not behind its end */
		e->custom_counter.result = (int64_t)random_u64();
		for (uint32_t i = 0; i < KB_SYSCALL_ARGUMENTS; i++)
			c->arguments[index][i] = random_u64();
		/* What such a record has no room for. */
		if (e->custom_counter.what == BM_KBARMAN_FAULT)
			c->arguments[index][2] = 0;
		if (e->custom_counter.what == BM_KBARMAN_BLOCK) {
			c->arguments[index][KB_BLOCK_DEVICE] &= UINT32_MAX;
			c->arguments[index][KB_BLOCK_BYTES] &= UINT32_MAX;
		}
		e->custom_counter.arguments = c->arguments[index];
	}
	if (e->custom_counter.what <= BM_KBARMAN_WAKING_NEW)
		e->custom_counter.object = random_object();
}

static inline void random_event(struct random_capture *c, uint32_t index)
{
	struct kb_event *e = &c->events[index];
	bool has_tasks = c->layout.max_task_infos, done = false;

	*e = (struct kb_event){
		.core = random_below(c->layout.max_cores),
		.timestamp = random_magnitude(),
		.task_id = has_tasks ? random_u64() : 0,
	};
	while (!done) {
		done = true;
		switch (random_below(5)) {
		case 0:
			random_sample(c, index);
			break;
		case 1:
			done = has_tasks;
			if (done)
				random_switch(c, index);
			break;
		case 2:
			e->type = KB_EVENT_HALT;
			e->task_id = 0;
			e->halt.entered = random_below(2);
			e->halt.idle_state = c->extended ? (int)random_below(256) - 1
							 : KB_STATE_UNKNOWN;
			if (e->halt.idle_state == 255)
				e->halt.idle_state = 254;
			break;
		case 3:
			e->type = KB_EVENT_CUSTOM_COUNTER;
			done = c->nr_series > 0;
			if (!done)
				break;
			e->custom_counter.counter = random_below(c->nr_series);
			e->custom_counter.value = random_u64();
			if (c->extended && random_below(2))
				random_detail(c, index, e);
			break;
		default:
			random_annotation(c, index);
			break;
		}
	}
}

/* A capture of the given layout; everything else is left to chance. */
static inline void random_capture(struct random_capture *c, unsigned int word, bool big,
				  bool circular)
{
	memset(c, 0, sizeof(*c));
	c->layout = (struct kb_barman_layout){
		.size = sizeof(c->layout),
		.word_size = word,
		.big_endian = big,
		.circular = circular,
		.buffer_length = circular ? 256 + random_below(8192) : 0,
		.max_cores = 1 + random_below(8),
		.max_task_infos = random_below(4) ? random_below(RANDOM_ROWS + 1) : 0,
		.max_mmap_layout = random_below(4) ? random_below(RANDOM_ROWS + 1) : 0,
		.max_pmu_counters = random_below(7),
		.max_string_table_length = 4000 + random_below(100),
	};
	if (random_below(3)) {
		c->layout.max_custom_charts = 1 + random_below(4);
		c->layout.max_custom_series = 1 + random_below(6);
	}
	c->extended = random_below(2);
	c->wide_states = random_below(2);
	random_tables(c);
	c->nr_events = random_below(RANDOM_EVENTS + 1);
	for (uint32_t i = 0; i < c->nr_events; i++)
		random_event(c, i);
}

static inline bool same_sample(const struct kb_event *a, const struct kb_event *b)
{
	if (a->sample.has_pc != b->sample.has_pc || a->sample.pc != b->sample.pc ||
	    a->sample.nr_counters != b->sample.nr_counters ||
	    a->sample.nr_custom != b->sample.nr_custom ||
	    a->sample.nr_chain != b->sample.nr_chain ||
	    a->sample.nr_chain_kernel != b->sample.nr_chain_kernel)
		return false;
	for (uint32_t i = 0; i < a->sample.nr_counters; i++) {
		if (a->sample.counters[i] != b->sample.counters[i])
			return false;
	}
	for (uint32_t i = 0; i < a->sample.nr_custom; i++) {
		if (a->sample.custom[i].id != b->sample.custom[i].id ||
		    a->sample.custom[i].value != b->sample.custom[i].value)
			return false;
	}
	return !memcmp(a->sample.chain, b->sample.chain, a->sample.nr_chain * sizeof(uint64_t));
}

static inline bool same_object(const struct kb_object *a, const struct kb_object *b)
{
	return a->kind == b->kind &&
	       (!a->kind || (a->flags == b->flags && a->call == b->call && a->id == b->id && a->value == b->value));
}

static inline bool same_event(const struct kb_event *a, const struct kb_event *b)
{
	if (a->type != b->type || a->core != b->core || a->timestamp != b->timestamp ||
	    a->task_id != b->task_id)
		return false;
	switch (a->type) {
	case KB_EVENT_SAMPLE:
		return same_sample(a, b);
	case KB_EVENT_TASK_SWITCH:
		return a->task_switch.reason == b->task_switch.reason &&
		       a->task_switch.prev_state == b->task_switch.prev_state &&
		       same_object(&a->task_switch.object, &b->task_switch.object) &&
		       a->task_switch.nr_chain == b->task_switch.nr_chain &&
		       a->task_switch.nr_chain_kernel == b->task_switch.nr_chain_kernel &&
		       !memcmp(a->task_switch.chain, b->task_switch.chain,
			       a->task_switch.nr_chain * sizeof(uint64_t));
	case KB_EVENT_CUSTOM_COUNTER:
		return a->custom_counter.counter == b->custom_counter.counter &&
		       a->custom_counter.value == b->custom_counter.value &&
		       a->custom_counter.what == b->custom_counter.what &&
		       a->custom_counter.context == b->custom_counter.context &&
		       a->custom_counter.cpu == b->custom_counter.cpu &&
		       a->custom_counter.id == b->custom_counter.id &&
		       same_object(&a->custom_counter.object, &b->custom_counter.object) &&
		       !a->custom_counter.arguments == !b->custom_counter.arguments &&
		       (!a->custom_counter.arguments ||
			(a->custom_counter.begin == b->custom_counter.begin &&
			 a->custom_counter.result == b->custom_counter.result &&
			 memcmp(a->custom_counter.arguments, b->custom_counter.arguments,
				KB_SYSCALL_ARGUMENTS * sizeof(uint64_t)) == 0));
	case KB_EVENT_ANNOTATION:
		return a->annotation.type == b->annotation.type &&
		       a->annotation.channel == b->annotation.channel &&
		       a->annotation.group == b->annotation.group &&
		       a->annotation.colour == b->annotation.colour &&
		       a->annotation.data_length == b->annotation.data_length &&
		       a->annotation.text_length == b->annotation.text_length &&
		       !memcmp(a->annotation.text, b->annotation.text, a->annotation.text_length);
	case KB_EVENT_HALT:
		return a->halt.entered == b->halt.entered &&
		       a->halt.idle_state == b->halt.idle_state;
	default:
		return false;
	}
}

#endif
