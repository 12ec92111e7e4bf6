// SPDX-License-Identifier: MIT
/*
 * The header is copied once, because the decoder needs no more of it: the layout, the counters of the
 * CPUs, the series, the facts. What changes is read where it is: names of tasks and of series, and the
 * counters of a CPU that comes online. Names of interrupts, which no session has, become facts of the
 * copy.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/facts/losses_read.h"
#include "analysis/trace/parts.h"
#include "format/barman/inside.h"
#include "record/recorder/disk_table.h"
#include "record/recorder/irq_table.h"
#include "trigger/live.h"
#include "trigger/live_tasks.h"

struct kb_live {
	struct kb_device *device;
	struct kb_follow *follow;
	struct kb_trace *trace;
	struct kb_barman *barman;	/* of the trace */
	uint8_t *copy;			/* of the header */
	size_t copy_bytes;
	struct kb_live_tasks tasks;
	struct kb_detector_names names;
	uint32_t lost_series;
	bool *new_counters;		/* by CPU: it has some, and nobody was told */
	bool has_record;		/* it comes behind the record of a loss */
	struct kb_followed record;
};

/* ---- the header ---- */

/* Where the part of a map is that is at @part in @m. */
static void *place(const struct kb_live *live, const struct kb_mapped *m, const void *part)
{
	return live->copy + ((const uint8_t *)part - (const uint8_t *)m->bytes);
}

static void copy_part(struct kb_live *live, const struct kb_mapped *m, const void *part, size_t bytes)
{
	memcpy(place(live, m, part), part, bytes);
}

/* "kbarman.@what.@number=@text": a fact that the recorder writes at its end. */
static int add_fact(struct kb_live *live, const char *what, uint32_t number, const char *text)
{
	struct bm_protocol_header_start *header = (void *)live->copy;
	char *strings = (char *)(header + 1);
	uint32_t used = header->string_table_length;
	size_t room = header->config_constants.max_string_table_length - used;
	int length = snprintf(strings + used, room, "kbarman.%s.%u=%s", what, number, text);

	if (length > 0 && (size_t)length < room)
		header->string_table_length = used + (uint32_t)length + 1;
	else if (room)
		strings[used] = '\0';
	return 0;
}

static int add_irq(void *context, uint32_t irq, const char *names)
{
	return add_fact(context, "irq", irq, names);
}

static int add_disk(void *context, uint32_t device, const char *name)
{
	return add_fact(context, "disk", device, name);
}

/* Rows of tasks and mappings stay out: they come and go. */
static void copy_header(struct kb_live *live)
{
	const struct kb_mapped *m = kb_follow_header(live->follow);
	const struct bm_protocol_config_values *config = &m->header->config_constants;
	struct bm_protocol_header_start *header = (void *)live->copy;
	uint32_t strings = kb_mapped_count(&m->header->string_table_length);

	copy_part(live, m, m->header, sizeof(*m->header));
	header->string_table_length = strings < config->max_string_table_length ?
				      strings : config->max_string_table_length;
	copy_part(live, m, m->strings, header->string_table_length);
	copy_part(live, m, m->pmus, (size_t)config->max_cores * sizeof(*m->pmus));
	if (m->series) {
		copy_part(live, m, (const uint8_t *)m->charts - sizeof(__u32), sizeof(__u32));
		copy_part(live, m, m->charts, m->nr_charts * sizeof(*m->charts));
		copy_part(live, m, m->series, config->num_custom_counters * sizeof(*m->series));
	}
	kb_irq_table_read(NULL, add_irq, live);	/* without names they have numbers */
	kb_disk_table_read(NULL, add_disk, live);
}

static int open_header(struct kb_live *live, struct kb_error *err)
{
	const struct kb_mapped *m = kb_follow_header(live->follow);
	int ret;

	live->copy_bytes = (size_t)((const uint8_t *)m->store - (const uint8_t *)m->bytes) +
			   sizeof(*m->store);
	live->copy = calloc(1, live->copy_bytes);
	if (!live->copy)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	copy_header(live);
	ret = kb_trace_open_memory(&live->trace, live->copy, live->copy_bytes, NULL, err);
	if (ret)
		return ret;
	live->barman = kb_trace_barman(live->trace);
	live->new_counters = calloc((size_t)kb_trace_header(live->trace)->max_cores + 1,
				    sizeof(*live->new_counters));
	if (!live->new_counters)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	live->lost_series = kb_losses_series(kb_trace_header(live->trace));
	return kb_trace_timeline(live->trace, err) ? 0 : -ENOMEM;
}

/* ---- names ---- */

static const char *task_name(void *context, uint32_t task_id, uint64_t ticks, char *buffer)
{
	const struct kb_live *live = context;

	return kb_live_tasks_name(&live->tasks, task_id, ticks, buffer);
}

static const char *series_name(void *context, uint32_t series)
{
	const struct kb_live *live = context;
	const struct kb_mapped *m = kb_follow_header(live->follow);

	return m->series ? kb_mapped_string(m, m->series[series].name_ptr) : NULL;
}

/* ---- records ---- */

/* The number of counters is what a sample's length depends on. */
static int look_at_counters(struct kb_live *live, struct kb_error *err)
{
	const struct kb_mapped *m = kb_follow_header(live->follow);
	const struct kb_header *header = kb_trace_header(live->trace);

	for (uint32_t core = 0; core < header->max_cores; core++) {
		uint32_t nr = kb_mapped_count(&m->pmus[core].num_counters);

		if (nr == header->pmus[core].num_counters || nr > BM_MAX_PMU_COUNTERS)
			continue;
		if (barman_set_nr_counters(live->barman, core, nr))
			return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
		live->new_counters[core] = true;
	}
	return 0;
}

uint32_t kb_live_new_counters(struct kb_live *live, uint32_t *as)
{
	const struct kb_mapped *m = kb_follow_header(live->follow);
	const struct bm_protocol_header_pmu_settings *first = place(live, m, m->pmus);
	uint32_t max_cores = kb_trace_header(live->trace)->max_cores, core = 0;

	*as = UINT32_MAX;
	while (core < max_cores && !live->new_counters[core])
		core++;
	if (core == max_cores)
		return UINT32_MAX;
	live->new_counters[core] = false;
	for (uint32_t i = 0; i < max_cores && *as == UINT32_MAX; i++)
		if (first[i].num_counters && first[i].num_counters == m->pmus[core].num_counters &&
		    memcmp(first[i].counter_types, m->pmus[core].counter_types,
			   sizeof(first[i].counter_types)) == 0)
			*as = i;
	return core;
}

int kb_live_look(struct kb_live *live, uint64_t *now, struct kb_error *err)
{
	struct kbarman_query query;
	int ret = kb_follow_look(live->follow, now, err) ?:
		  kb_device_query(live->device, &query, err);

	if (ret)
		return ret;
	if (kb_live_tasks_look(&live->tasks, query.generation))
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	return look_at_counters(live, err);
}

static const struct kb_walk *tell_loss(struct kb_live *live)
{
	const struct kb_event event = {
		.type = KB_EVENT_CUSTOM_COUNTER,
		.core = live->record.cpu,
		.timestamp = live->record.timestamp,
		.custom_counter = { .counter = live->lost_series, .value = 1, .begin = live->record.gap_from },
	};

	return kb_trace_feed(live->trace, &event);
}

int kb_live_next(struct kb_live *live, uint64_t horizon, const struct kb_walk **walk)
{
	struct kb_event event;
	int ret;

	for (;;) {
		if (!live->has_record) {
			ret = kb_follow_next(live->follow, horizon, &live->record);
			if (ret <= 0)
				return ret;
			live->has_record = true;
			if (live->record.behind_gap && live->lost_series != UINT32_MAX) {
				*walk = tell_loss(live);
				return 1;
			}
		}
		live->has_record = false;
		if (barman_decode_block(live->barman, live->record.block, live->record.bytes, &event) != 1)
			continue;
		*walk = kb_trace_feed(live->trace, &event);
		return 1;
	}
}

/* ---- create and destroy ---- */

struct kb_trace *kb_live_trace(const struct kb_live *live)
{
	return live->trace;
}

struct kb_follow *kb_live_follow(const struct kb_live *live)
{
	return live->follow;
}

const struct kb_detector_names *kb_live_names(const struct kb_live *live)
{
	return &live->names;
}

int kb_live_create(struct kb_live **out, struct kb_device *device, struct kb_error *err)
{
	struct kb_live *live = calloc(1, sizeof(*live));
	int ret;

	*out = NULL;
	if (!live)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	live->device = device;
	live->names = (struct kb_detector_names){ task_name, series_name, live };
	ret = kb_follow_create(&live->follow, device, err) ?: open_header(live, err);
	if (!ret && kb_live_tasks_init(&live->tasks, kb_follow_header(live->follow)))
		ret = kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	if (ret)
		kb_live_destroy(live);
	else
		*out = live;
	return ret;
}

void kb_live_destroy(struct kb_live *live)
{
	if (!live)
		return;
	kb_trace_close(live->trace);
	kb_live_tasks_release(&live->tasks);
	kb_follow_destroy(live->follow);
	free(live->new_counters);
	free(live->copy);
	free(live);
}
