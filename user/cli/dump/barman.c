// SPDX-License-Identifier: MIT
/* kbarman dump of a Barman capture: header, tables, store, records. */
#include <inttypes.h>
#include <string.h>

#include <kbarman/losses.h>
#include <kbarman/trace.h>

#include "analysis/facts/counted.h"
#include "cli/base/cli.h"
#include "cli/dump/formats.h"

bool probe_barman(const uint8_t *start, size_t length)
{
	static const char *const magics[] = { "BARMAN32", "23NAMRAB", "BARMAN64", "46NAMRAB" };

	for (size_t i = 0; length >= 8 && i < 4; i++) {
		if (memcmp(start, magics[i], 8) == 0)
			return true;
	}
	return false;
}

static void dump_header(struct kb_json *json, const struct kb_header *h)
{
	kb_json_begin(json, "header");
	kb_json_string(json, "magic", h->word_size == 8 ? "BARMAN64" : "BARMAN32");
	kb_json_string(json, "endian", h->big_endian ? "big" : "little");
	kb_json_u64(json, "version", h->protocol_version);
	kb_json_u64(json, "header_length", h->header_length);
	kb_json_u64(json, "data_store_type", h->data_store_type);
	kb_json_string(json, "target_name", h->target_name);
	kb_json_u64(json, "last_timestamp", h->last_timestamp);
	kb_json_u64(json, "timer_sample_rate", h->timer_sample_rate);
	kb_json_u64(json, "max_cores", h->max_cores);
	kb_json_u64(json, "max_task_infos", h->max_task_infos);
	kb_json_u64(json, "max_mmap_layout", h->max_mmap_layout);
	kb_json_u64(json, "max_pmu_counters", h->max_pmu_counters);
	kb_json_u64(json, "max_string_table_length", h->max_string_table_length);
	kb_json_u64(json, "num_custom_counters", h->num_custom_counters);
	kb_json_u64(json, "timestamp_base", h->timestamp_base);
	kb_json_u64(json, "timestamp_multiplier", h->timestamp_multiplier);
	kb_json_u64(json, "timestamp_divisor", h->timestamp_divisor);
	kb_json_u64(json, "unix_base_ns", h->unix_base_ns);
	kb_json_end(json);
}

static void dump_pmus(struct kb_json *json, const struct kb_header *h)
{
	for (uint32_t core = 0; core < h->max_cores; core++) {
		const struct kb_pmu *pmu = &h->pmus[core];

		if (!pmu->num_counters)
			continue;
		kb_json_begin(json, "pmu");
		kb_json_u64(json, "cpu", core);
		kb_json_u64(json, "configuration_timestamp", pmu->configuration_timestamp);
		kb_json_u64(json, "midr", pmu->midr);
		kb_json_u64(json, "mpidr", pmu->mpidr);
		kb_json_u64(json, "cluster_id", pmu->cluster_id);
		kb_json_array(json, "counter_types");
		for (uint32_t i = 0; i < pmu->num_counters; i++)
			kb_json_u64(json, NULL, pmu->counter_types[i]);
		kb_json_array_end(json);
		kb_json_end(json);
	}
}

static void dump_tasks(struct kb_json *json, const struct kb_header *h)
{
	for (uint32_t i = 0; i < h->nr_tasks; i++) {
		kb_json_begin(json, "task");
		kb_json_u64(json, "index", i);
		kb_json_u64(json, "timestamp", h->tasks[i].timestamp);
		kb_json_u64(json, "tid", h->tasks[i].task_id);
		kb_json_string(json, "task", h->tasks[i].name);
		kb_json_end(json);
	}
}

static void dump_maps(struct kb_json *json, const struct kb_header *h)
{
	for (uint32_t i = 0; i < h->nr_maps; i++) {
		const struct kb_map *map = &h->maps[i];

		kb_json_begin(json, "image");
		kb_json_u64(json, "index", i);
		if (h->max_task_infos) {
			kb_json_u64(json, "timestamp", map->timestamp);
			kb_json_u64(json, "tid", map->task_id);
		}
		kb_json_u64(json, "address", map->base_address);
		kb_json_u64(json, "length", map->length);
		kb_json_u64(json, "offset", map->image_offset);
		kb_json_string(json, "image", map->image);
		if (map->file.length)
			kb_json_text(json, "identity", map->file.data, map->file.length);
		kb_json_end(json);
	}
}

static void dump_custom(struct kb_json *json, const struct kb_header *h)
{
	for (uint32_t i = 0; i < h->nr_charts; i++) {
		kb_json_begin(json, "chart");
		kb_json_u64(json, "index", i);
		kb_json_string(json, "name", h->charts[i].name);
		kb_json_u64(json, "series_composition", h->charts[i].series_composition);
		kb_json_u64(json, "rendering_type", h->charts[i].rendering_type);
		kb_json_u64(json, "boolean_flags", h->charts[i].boolean_flags);
		kb_json_end(json);
	}
	for (uint32_t i = 0; i < h->nr_series; i++) {
		const struct kb_series *series = &h->series[i];

		kb_json_begin(json, "series");
		kb_json_u64(json, "index", i);
		kb_json_u64(json, "chart_index", series->chart_index);
		kb_json_string(json, "name", series->name);
		kb_json_string(json, "units", series->units);
		kb_json_string(json, "description", series->description);
		kb_json_u64(json, "colour", series->colour);
		kb_json_double(json, "multiplier", series->multiplier);
		kb_json_u64(json, "class", series->series_class);
		kb_json_u64(json, "display", series->display);
		kb_json_u64(json, "boolean_flags", series->boolean_flags);
		kb_json_end(json);
	}
}

static void dump_store(struct kb_json *json, const struct kb_header *h)
{
	kb_json_begin(json, "store");
	kb_json_u64(json, "buffer_length", h->buffer_length);
	kb_json_u64(json, "write_offset", h->write_offset);
	kb_json_u64(json, "read_offset", h->read_offset);
	kb_json_u64(json, "total_written", h->total_written);
	kb_json_end(json);
}

static void dump_chain(struct kb_json *json, const uint64_t *chain, uint32_t nr)
{
	uint32_t i;

	if (!nr)
		return;
	kb_json_array(json, "stack");
	for (i = 0; i < nr; i++)
		kb_json_u64(json, NULL, chain[i]);
	kb_json_array_end(json);
}

static void dump_sample(struct kb_json *json, const struct kb_header *h,
			const struct kb_event *event)
{
	if (h->max_task_infos)
		kb_json_u64(json, "tid", event->task_id);
	if (event->sample.has_pc)
		kb_json_u64(json, "pc", event->sample.pc);
	kb_json_array(json, "counters");
	for (uint32_t i = 0; i < event->sample.nr_counters; i++)
		kb_json_u64(json, NULL, event->sample.counters[i]);
	kb_json_array_end(json);
	if (h->num_custom_counters) {
		kb_json_array(json, "custom");
		for (uint32_t i = 0; i < event->sample.nr_custom; i++) {
			kb_json_array(json, NULL);
			kb_json_u64(json, NULL, event->sample.custom[i].id);
			kb_json_u64(json, NULL, event->sample.custom[i].value);
			kb_json_array_end(json);
		}
		kb_json_array_end(json);
	}
	dump_chain(json, event->sample.chain, event->sample.nr_chain);
}

static void dump_word(struct kb_json *json, const char *key, const char *word, uint8_t number)
{
	char text[8];

	snprintf(text, sizeof(text), "%u", number);
	kb_json_string(json, key, word ?: text);
}

static void dump_object(struct kb_json *json, const struct kb_object *object)
{
	dump_word(json, "object", kb_object_name(object->kind), object->kind);
	kb_json_u64(json, "call", object->call);
	kb_json_u64(json, "object_id", object->id);
	kb_json_u64(json, "object_value", object->value);
	kb_json_bool(json, "iowait", object->flags & KB_OBJECT_IOWAIT);
	kb_json_bool(json, "compat", object->flags & KB_OBJECT_COMPAT);
}

/* What a value of kbarman's own series is about; a kind of a later release is a number. */
static void dump_detail(struct kb_json *json, const struct kb_event *event)
{
	dump_word(json, "what", kb_what_name(event->custom_counter.what),
		  event->custom_counter.what);
	dump_word(json, "context", kb_context_name(event->custom_counter.context),
		  event->custom_counter.context);
	kb_json_u64(json, "about_cpu", event->custom_counter.cpu);
	kb_json_u64(json, "about_id", event->custom_counter.id);
	if (event->custom_counter.object.kind)
		dump_object(json, &event->custom_counter.object);
	if (!event->custom_counter.arguments)
		return;
	kb_json_u64(json, "begin", event->custom_counter.begin);
	kb_json_i64(json, "result", event->custom_counter.result);
	kb_json_array(json, "arguments");
	for (unsigned int i = 0; i < KB_SYSCALL_ARGUMENTS; i++)
		kb_json_u64(json, NULL, event->custom_counter.arguments[i]);
	kb_json_array_end(json);
}

static void dump_annotation(struct kb_json *json, const struct kb_header *h,
			    const struct kb_event *event)
{
	if (h->max_task_infos)
		kb_json_u64(json, "tid", event->task_id);
	kb_json_u64(json, "annotation_type", event->annotation.type);
	kb_json_u64(json, "channel", event->annotation.channel);
	kb_json_u64(json, "group_id", event->annotation.group);
	kb_json_u64(json, "colour", event->annotation.colour);
	kb_json_u64(json, "data_length", event->annotation.data_length);
	kb_json_text(json, "text", event->annotation.text, event->annotation.text_length);
}

static const char *type_name(const struct kb_event *event)
{
	switch (event->type) {
	case KB_EVENT_SAMPLE:
		return event->sample.has_pc ? "sample_pc" : "sample";
	case KB_EVENT_TASK_SWITCH:
		return "task_switch";
	case KB_EVENT_CUSTOM_COUNTER:
		return "custom_counter";
	case KB_EVENT_ANNOTATION:
		return "annotation";
	case KB_EVENT_HALT:
		return "halt";
	default:
		return "unknown";
	}
}

/* The recorded number, and the letter of the state that it means. */
static void dump_state(struct kb_json *json, const struct kb_header *h, int state)
{
	const char letter[] = { kb_state_letter(h, state), '\0' };

	kb_json_i64(json, "prev_state", state);
	kb_json_string(json, "prev_state_letter", letter);
}

static void dump_event(struct kb_json *json, const struct kb_barman *barman, uint64_t index,
		       const struct kb_event *event)
{
	const struct kb_header *h = kb_barman_header(barman);

	kb_json_begin(json, "record");
	kb_json_u64(json, "index", index);
	kb_json_string(json, "type", type_name(event));
	kb_json_u64(json, "cpu", event->core);
	kb_json_u64(json, "timestamp", event->timestamp);
	kb_json_i64(json, "at_ns", kb_barman_ns(barman, event->timestamp));
	switch (event->type) {
	case KB_EVENT_SAMPLE:
		dump_sample(json, h, event);
		break;
	case KB_EVENT_TASK_SWITCH:
		kb_json_u64(json, "tid", event->task_id);
		kb_json_bool(json, "blocked", event->task_switch.reason != KB_SWITCH_PREEMPTED);
		if (event->task_switch.prev_state != KB_STATE_UNKNOWN)
			dump_state(json, h, event->task_switch.prev_state);
		dump_chain(json, event->task_switch.chain, event->task_switch.nr_chain);
		if (event->task_switch.object.kind)
			dump_object(json, &event->task_switch.object);
		break;
	case KB_EVENT_CUSTOM_COUNTER:
		if (h->max_task_infos)
			kb_json_u64(json, "tid", event->task_id);
		kb_json_u64(json, "counter", event->custom_counter.counter);
		kb_json_u64(json, "value", event->custom_counter.value);
		if (event->custom_counter.lost) {
			dump_word(json, "reason", kb_loss_name(event->custom_counter.lost - 1U),
				  event->custom_counter.lost - 1U);
			kb_json_u64(json, "begin", event->custom_counter.begin);
		}
		if (event->custom_counter.what != KB_WHAT_VALUE)
			dump_detail(json, event);
		break;
	case KB_EVENT_ANNOTATION:
		dump_annotation(json, h, event);
		break;
	case KB_EVENT_HALT:
		kb_json_bool(json, "entered", event->halt.entered);
		if (event->halt.idle_state != KB_STATE_UNKNOWN)
			kb_json_i64(json, "idle_state", event->halt.idle_state);
		break;
	default:
		kb_json_u64(json, "record_type", event->unknown.record_type);
		kb_json_u64(json, "length", event->unknown.length);
		break;
	}
	kb_json_end(json);
}

/* Prints the findings, and how many more there are. */
static int complain(const struct kb_barman *barman, void (*say)(const char *sentence))
{
	unsigned int count = kb_barman_damage(barman, NULL), told = 0;
	const struct kb_error *finding;
	char more[64];

	while ((finding = kb_barman_finding(barman, told))) {
		say(kb_error_text(finding));
		told++;
	}
	if (count > told) {
		snprintf(more, sizeof(more), "and %u more findings", count - told);
		say(more);
	}
	return count ? CLI_DAMAGED : CLI_OK;
}

static void warn(const char *sentence)
{
	cli_warn("%s", sentence);
}

int dump_barman(const char *path, struct kb_json *json)
{
	/* The values as they are in the file. */
	const struct kb_trace_options how = {
		.size = sizeof(how), .counters = KB_COUNTERS_DELTA,
	};
	struct kb_barman *barman;
	struct kb_trace *trace;
	struct kb_event event;
	struct kb_error err;
	uint64_t index = 0;
	int status;

	if (kb_trace_open(&trace, path, &how, &err))
		return cli_fail_error(&err);
	barman = kb_trace_barman(trace);
	dump_header(json, kb_barman_header(barman));
	dump_pmus(json, kb_barman_header(barman));
	dump_tasks(json, kb_barman_header(barman));
	dump_maps(json, kb_barman_header(barman));
	dump_custom(json, kb_barman_header(barman));
	dump_store(json, kb_barman_header(barman));
	while (!kb_out_error(json->out) && kb_barman_next(barman, &event, &err) == 1)
		dump_event(json, barman, index++, &event);
	kb_out_flush(json->out);
	status = complain(barman, warn);
	kb_trace_close(trace);
	return status;
}

/*
 * For a capture that was cut off, says how much of it is whole and what to do. The findings have
 * reported other damage already.
 */
static void say_what_is_whole(struct kb_barman *barman, const char *path,
			      const struct kb_validation *sum, void (*say)(const char *sentence))
{
	struct kb_validation whole;
	struct kb_salvage salvage;
	char text[4096 + 256];

	if (kb_barman_salvage(barman, &salvage, NULL) ||
	    !(salvage.untold + salvage.dropped + salvage.missing))
		return;
	kb_barman_validate(barman, &whole, NULL);
	if (salvage.missing || !salvage.untold)
		snprintf(text, sizeof(text), "%s: cut off: %" PRIu64 " records in %" PRIu64 " bytes are "
			 "whole; 'kbarman recover' makes a capture of them", path, whole.records,
			 salvage.told + salvage.untold);
	else
		snprintf(text, sizeof(text), "%s: cut off: %" PRIu64 " records in %" PRIu64 " bytes are "
			 "whole after the %" PRIu64 " records that the header counts; 'kbarman "
			 "recover' adds them", path, whole.records - sum->records, salvage.untold,
			 sum->records);
	say(text);
}

/*
 * Compares the values of all samples with what the counters counted, which the capture says. Only a
 * capture that is whole has all samples.
 */
static int check_sums(struct kb_barman *barman, const char *path, void (*say)(const char *sentence))
{
	struct kb_miscounted difference = { 0 };
	struct kb_counted *counted;
	struct kb_event event;
	struct kb_error err;
	char text[4096 + 256];
	int status = CLI_OK;

	if (kb_counted_create(&counted, kb_barman_header(barman)))
		return cli_fail("out of memory");
	if (!counted)
		return CLI_OK;
	/* A pipe can't be read twice. */
	if (kb_barman_rewind(barman)) {
		kb_counted_destroy(counted);
		return CLI_OK;
	}
	while (kb_barman_next(barman, &event, &err) == 1)
		kb_counted_feed(counted, &event);
	while (kb_counted_next(counted, &difference)) {
		status = CLI_DAMAGED;
		snprintf(text, sizeof(text), "%s: counter %" PRIu32 " of CPU %" PRIu32 ": the values of its "
			 "samples add up to %" PRIu64 ", but the counter counted %" PRIu64 ", %" PRIu64
			 " of it in no record", path, difference.index, difference.core,
			 difference.sum, difference.counted, difference.unrecorded);
		say(text);
	}
	kb_counted_destroy(counted);
	return status;
}

/* The format allows them, but who follows the tasks of a CPU takes the records in order. */
static void say_order(const char *path, const struct kb_validation *sum,
		      void (*say)(const char *sentence))
{
	char text[4096 + 128];

	if (!sum->backwards)
		return;
	snprintf(text, sizeof(text), "%s: %" PRIu64 " records are older than the one before them on "
		 "their CPU; the format allows it", path, sum->backwards);
	say(text);
}

int check_barman(const char *path, void (*say)(const char *sentence))
{
	struct kb_barman *barman;
	struct kb_validation sum;
	struct kb_trace *trace;
	struct kb_error err;
	int status;

	if (kb_trace_open(&trace, path, NULL, &err)) {
		say(kb_error_text(&err));
		return CLI_IMPOSSIBLE;
	}
	barman = kb_trace_barman(trace);
	kb_barman_validate(barman, &sum, NULL);
	status = complain(barman, say);
	say_order(path, &sum, say);
	say_what_is_whole(barman, path, &sum, say);
	if (status == CLI_OK)
		status = check_sums(barman, path, say);
	kb_trace_close(trace);
	return status;
}
