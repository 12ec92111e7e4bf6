// SPDX-License-Identifier: MIT
/*
 * kbarman info: prints a summary of a capture, without names and tables: where it was made, how
 * long it is, how many records of each kind each CPU has, and what is missing.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <kbarman/losses.h>
#include <kbarman/names.h>
#include <kbarman/trace.h>

#include "analysis/facts/counted.h"
#include "analysis/facts/end.h"
#include "analysis/facts/recorded.h"
#include "analysis/facts/stops.h"
#include "analysis/facts/triggered.h"
#include "base/array.h"
#include "base/text/utf8.h"
#include "cli/base/cli.h"
#include "cli/base/end_line.h"
#include "cli/base/fact_lines.h"
#include "cli/base/sandbox.h"
#include "cli/base/trigger_lines.h"
#include "cli/session/per_core.h"
#include "sym/files/side.h"
#include "sym/symbolizer/bundle.h"
#include "sym/symbolizer/kernel.h"

#define NR_TYPES	(KB_EVENT_HALT + 1)

static const struct cli_option options[] = {
	{ 'i', "input", "FILE", "the same as the argument FILE" },
	{ 'j', "json", NULL, "print JSON, one object per line" },
	{ 0 },
};

static const struct cli_usage usage = {
	.head =
	"usage: kbarman info [OPTIONS] [FILE]\n"
	"\n"
	"Print what the capture FILE (default kbarman.cap; '-' is standard input) contains: where\n"
	"and when it was recorded, its CPUs, counters, records and tables, and what is missing.\n"
	"\n",
	.options = options,
	.column = 21,
	.tail =
	"\n"
	"Exit status: 0 FILE was read; 1 FILE is damaged; 2 FILE can't be read.\n",
};

static const char *const type_names[NR_TYPES] = {
	[KB_EVENT_UNKNOWN] = "unknown",
	[KB_EVENT_SAMPLE] = "samples",
	[KB_EVENT_TASK_SWITCH] = "task_switches",
	[KB_EVENT_CUSTOM_COUNTER] = "custom_counters",
	[KB_EVENT_ANNOTATION] = "annotations",
	[KB_EVENT_HALT] = "halts",
};

struct core {
	uint64_t records[NR_TYPES];
	uint64_t nr;
};

struct info {
	const char *path;
	struct kb_trace *trace;
	const struct kb_barman *barman;
	const struct kb_header *header;
	const struct kb_names *names;
	const struct kb_losses *losses;
	struct kb_stops *stops;
	struct kb_uncounted *uncounted;	/* events that some CPUs do not count, */
	struct kb_uncounted *unsampled;	/* and which therefore take no samples there */
	uint32_t nr_uncounted, nr_unsampled;
	struct core *cores;		/* max_cores entries, and one for records of no core */
	struct core all;
	uint32_t nr_cores;		/* cores with records */
	uint64_t chains;		/* samples with a call chain */
	uint64_t whats[KB_WHAT_BLOCK + 1];	/* values of series, by what they are about */
	struct kb_recorded recorded;
	unsigned int damage;
	struct kb_json json;
	bool people;
};

/* ---- reading ---- */

static void count(struct info *info, const struct kb_event *event)
{
	uint32_t core = event->core < info->header->max_cores ? event->core :
			info->header->max_cores;
	int64_t ns = kb_barman_ns(info->barman, event->timestamp);

	if (!info->cores[core].nr++ && core < info->header->max_cores)
		info->nr_cores++;
	info->cores[core].records[event->type]++;
	info->all.records[event->type]++;
	info->chains += event->type == KB_EVENT_SAMPLE && event->sample.nr_chain;
	if (event->type == KB_EVENT_CUSTOM_COUNTER &&
	    event->custom_counter.what < ARRAY_SIZE(info->whats))
		info->whats[event->custom_counter.what]++;
	kb_stops_feed(info->stops, event, ns);
	if (event->type == KB_EVENT_UNKNOWN)
		return;		/* an unknown record may have no timestamp */
	info->all.nr++;
	kb_recorded_add(&info->recorded, ns);
}

static int open_capture(struct info *info)
{
	struct kb_error err = { 0 };

	cli_progress(NULL, false);
	cli_sandbox_reading(info->path);
	if (kb_trace_open(&info->trace, info->path, NULL, &err))
		return cli_fail_error(&err);
	info->barman = kb_trace_barman(info->trace);
	info->header = kb_trace_header(info->trace);
	info->cores = calloc((size_t)info->header->max_cores + 1, sizeof(*info->cores));
	if (!info->cores)
		return cli_fail("out of memory");
	info->losses = kb_trace_losses(info->trace, &err);
	info->names = info->losses ? kb_trace_names(info->trace, &err) : NULL;
	if (!info->names || kb_stops_create(&info->stops, info->header, info->losses, &err))
		return cli_fail_error(&err);
	if (kb_uncounted_read(info->header, &info->uncounted, &info->nr_uncounted) ||
	    kb_unsampled_read(info->header, &info->unsampled, &info->nr_unsampled))
		return cli_fail("out of memory");
	kb_recorded_init(&info->recorded, info->barman, info->losses);
	return CLI_OK;
}

static int read_capture(struct info *info)
{
	const struct kb_error *first;
	struct kb_error err = { 0 };
	struct kb_barman *barman;
	struct kb_event event;
	int ret = open_capture(info);

	if (ret)
		return ret;
	barman = kb_trace_barman(info->trace);
	while ((ret = kb_barman_next(barman, &event, &err)) > 0)
		count(info, &event);
	kb_stops_end(info->stops, kb_recorded_last(&info->recorded));
	cli_progress_end();
	info->all.nr += info->all.records[KB_EVENT_UNKNOWN];
	info->damage = kb_barman_damage(info->barman, &first) + (ret < 0);
	if (info->damage)
		cli_warn("%s", ret < 0 ? kb_error_text(&err) : kb_error_text(first));
	return CLI_OK;
}

/* ---- output for people ---- */

/* Names come from the file and must not control the terminal. */
static void line(struct info *info, const char *what, const char *text)
{
	char clean[512];
	size_t length = text ? strlen(text) : 0;

	if (!length)
		return;
	length = kb_utf8_shown(clean, text, length < sizeof(clean) ? length : sizeof(clean) - 1);
	clean[length] = '\0';
	kb_out_printf(info->json.out, "%-10s %s\n", what, clean);
}

static void line_of_time(struct info *info)
{
	uint64_t duration = kb_recorded_duration(&info->recorded);
	time_t seconds = info->header->unix_base_ns / 1000000000;
	char text[64] = "";
	struct tm tm;

	if (info->header->unix_base_ns && gmtime_r(&seconds, &tm))
		strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC, ", &tm);
	kb_out_printf(info->json.out, "%-10s %s%.6f s\n", "recorded", text, duration / 1e9);
}

static void line_of_counters(struct info *info)
{
	uint32_t nr = kb_names_nr_counters(info->names);
	char text[512] = "";
	size_t used = 0;

	for (uint32_t i = 0; i < nr && used < sizeof(text); i++) {
		struct kb_text name = kb_names_counter(info->names, i);

		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%.*s", i ? ", " : "",
					 (int)name.length, name.data);
	}
	line(info, "counters", nr ? text : "none");
}

/* On machines with CPUs of several kinds: which of them do not count what. */
static void lines_of_rows(struct info *info, const char *title, const struct kb_uncounted *rows,
			  uint32_t nr)
{
	char text[512];

	for (uint32_t i = 0; i < nr; i++) {
		snprintf(text, sizeof(text), "%s on CPU %s", rows[i].name, rows[i].cpus);
		line(info, i ? "" : title, text);
	}
}

static void lines_of_uncounted(struct info *info)
{
	lines_of_rows(info, "uncounted", info->uncounted, info->nr_uncounted);
	lines_of_rows(info, "unsampled", info->unsampled, info->nr_unsampled);
}

/* The records of the sources that are values of kbarman's own series. */
static void put_whats(struct info *info)
{
	for (uint8_t what = KB_WHAT_WAKING; what < ARRAY_SIZE(info->whats); what++)
		if (info->whats[what])
			kb_out_printf(info->json.out, ", %" PRIu64 " %s", info->whats[what],
				      kb_what_name(what));
}

static void lines_of_records(struct info *info)
{
	double seconds = kb_recorded_duration(&info->recorded) / 1e9;
	struct kb_out *out = info->json.out;

	kb_out_printf(out, "%-10s %" PRIu64, "records", info->all.nr);
	if (seconds > 0)
		kb_out_printf(out, ", %.0f a second", info->all.nr / seconds);
	kb_out_printf(out, "\n");
	for (unsigned int i = 0; i < NR_TYPES; i++) {
		if (!info->all.records[i])
			continue;
		kb_out_printf(out, "%10s %" PRIu64 " %s", "", info->all.records[i], type_names[i]);
		if (i == KB_EVENT_SAMPLE && info->chains)
			kb_out_printf(out, ", %" PRIu64 " with a call chain", info->chains);
		if (i == KB_EVENT_CUSTOM_COUNTER)
			put_whats(info);
		kb_out_printf(out, "\n");
	}
	for (uint32_t i = 0; i < info->header->max_cores; i++)
		if (info->cores[i].nr)
			kb_out_printf(out, "%10s CPU %u: %" PRIu64 "\n", "", i, info->cores[i].nr);
}

static void lines_of_losses(struct info *info)
{
	const struct kb_losses *losses = info->losses;
	struct kb_out *out = info->json.out;

	if (!losses->stated)
		line(info, "lost", "the capture does not say");
	else
		kb_out_printf(out, "%-10s %" PRIu64 " of %" PRIu64 " records\n", "lost",
			      losses->lost, losses->lost + losses->written);
	for (uint32_t i = 0; i < losses->nr_rows; i++)
		if (losses->rows[i].count)
			kb_out_printf(out, "%10s CPU %u: %" PRIu64 " (%s): %s\n", "",
				      losses->rows[i].core, losses->rows[i].count,
				      losses->rows[i].what, kb_loss_advice(losses->rows[i].what));
	if (losses->overwritten)
		kb_out_printf(out, "%10s %" PRIu64 " older records were overwritten\n", "",
			      losses->overwritten);
	for (uint32_t i = 0; i < losses->nr_missed; i++)
		if (losses->missed[i].count)
			kb_out_printf(out, "%10s missed %" PRIu64 " (%s): %s\n", "",
				      losses->missed[i].count, losses->missed[i].what,
				      kb_loss_advice(losses->missed[i].what));
}

static void lines_of_stops(struct info *info)
{
	struct kb_out *out = info->json.out;
	struct kb_stop stop;

	for (uint32_t i = 0; kb_stops_get(info->stops, i, &stop); i++) {
		kb_out_printf(out, "%-10s CPU %u: %" PRIu64 " time%s (%s)", i ? "" : "stopped",
			      stop.core, stop.times, stop.times == 1 ? "" : "s", stop.reason);
		if (stop.ns)
			kb_out_printf(out, ", %.3f ms at most", stop.ns / 1e6);
		kb_out_printf(out, ": %s\n", kb_stop_advice(stop.reason));
	}
}

static const char *fact(const struct info *info, const char *key)
{
	return kb_barman_fact(info->barman, key);
}

static const char *host(const struct info *info)
{
	return fact(info, "host") ? fact(info, "host") : info->header->target_name;
}

/* Where verbs that resolve addresses will find the names of programs and libraries. */
static void line_of_symbols(struct info *info)
{
	char *saved = kb_side_find(info->barman, info->path, KB_BUNDLE_SUFFIX), text[640];
	const char *name = kb_side_name(info->barman);

	if (saved)
		snprintf(text, sizeof(text), "saved beside the capture, in %s", saved);
	else if (kb_kernel_is_elsewhere(info->barman))
		snprintf(text, sizeof(text), "not on this machine: the capture was made on %.100s; "
			 "copy %.200s" KB_BUNDLE_SUFFIX " from there (see kbarman bundle)",
			 host(info), name ? name : "CAPTURE");
	else
		snprintf(text, sizeof(text), "taken from the images (see kbarman bundle)");
	free(saved);
	if (strcmp(info->path, "-"))
		line(info, "symbols", text);
}

static void lines_of_triggers(struct info *info)
{
	uint64_t more = kb_triggered_number(info->barman, KB_TRIGGERED_FACT ".suppressed");
	struct kb_triggered told;
	char text[512];

	for (uint32_t i = 0; kb_triggered_get(info->barman, i, &told); i++) {
		snprintf(text, sizeof(text), "%s: %s", told.expression, told.reason);
		line(info, i ? "" : "trigger", text);
	}
	if (more)
		kb_out_printf(info->json.out, "%10s %" PRIu64 " others came too soon after the capture "
			      "before this one\n", "", more);
}

static void line_of_end(struct info *info)
{
	char words[KB_END_WORDS];
	struct kb_end end;

	if (kb_end_get(info->barman, &end))
		line(info, "ended", kb_end_words(&end, words));
}

static void print_text(struct info *info)
{
	const struct kb_header *h = info->header;
	const char *filter = fact(info, "filter");
	struct kb_out *out = info->json.out;
	struct stat st;

	kb_out_printf(out, "%-10s Barman protocol %u, %u-bit, %s-endian, %s%s\n", "format",
		      h->protocol_version, h->word_size * 8, h->big_endian ? "big" : "little",
		      h->data_store_type == KB_STORE_CIRCULAR ? "circular" : "linear",
		      h->extended ? ", with extensions of kbarman" : "");
	if (strcmp(info->path, "-") && !stat(info->path, &st))
		kb_out_printf(out, "%-10s %" PRIu64 " bytes\n", "size", (uint64_t)st.st_size);
	line(info, "host", host(info));
	line(info, "release", fact(info, "release"));
	line(info, "command", fact(info, "command"));
	if (filter && strcmp(filter, "none"))
		line(info, "filter", filter);
	line_of_time(info);
	line_of_end(info);
	lines_of_triggers(info);
	if (fact(info, "clock_unsteady"))
		line(info, "clock", "during the recording the kernel found the CPU's counter (TSC) "
		     "unstable; times may be wrong");
	kb_out_printf(out, "%-10s %u with records, of %u\n", "CPUs", info->nr_cores, h->max_cores);
	line_of_counters(info);
	lines_of_uncounted(info);
	line(info, "fallback", fact(info, "fallback"));
	line(info, "sources", fact(info, "sources"));
	for (uint32_t i = 0; i < h->nr_series; i++)
		line(info, i ? "" : "series", h->series[i].name);
	kb_out_printf(out, "%-10s %u tasks, %u mappings, %u bytes of strings\n", "tables",
		      h->nr_tasks, h->nr_maps, h->string_table_length);
	lines_of_records(info);
	lines_of_losses(info);
	lines_of_stops(info);
	line_of_symbols(info);
}

/* ---- output for programs ---- */

static void json_counts(struct info *info, const char *kind, int64_t core, const struct core *counts)
{
	struct kb_json *json = &info->json;

	kb_json_begin(json, kind);
	if (core >= 0)
		kb_json_i64(json, "cpu", core);
	kb_json_u64(json, "records", counts->nr);
	for (unsigned int i = 0; i < NR_TYPES; i++)
		kb_json_u64(json, type_names[i], counts->records[i]);
	if (core < 0)
		kb_json_u64(json, "call_chains", info->chains);
	kb_json_end(json);
}

static void json_losses(struct info *info)
{
	const struct kb_losses *losses = info->losses;
	struct kb_json *json = &info->json;

	kb_json_begin(json, "losses");
	kb_json_bool(json, "stated", losses->stated);
	kb_json_u64(json, "written", losses->written);
	kb_json_u64(json, "overwritten", losses->overwritten);
	kb_json_u64(json, "lost", losses->lost);
	kb_json_u64(json, "damage", info->damage);
	kb_json_end(json);
	for (uint32_t i = 0; i < losses->nr_missed; i++) {
		kb_json_begin(json, "missed");
		kb_json_string(json, "what", losses->missed[i].what);
		kb_json_u64(json, "count", losses->missed[i].count);
		kb_json_end(json);
	}
}

static void json_stops(struct info *info)
{
	struct kb_json *json = &info->json;
	struct kb_stop stop;

	for (uint32_t i = 0; kb_stops_get(info->stops, i, &stop); i++) {
		kb_json_begin(json, "stopped");
		kb_json_u64(json, "cpu", stop.core);
		kb_json_string(json, "reason", stop.reason);
		kb_json_u64(json, "times", stop.times);
		kb_json_u64(json, "duration_ns", stop.ns);
		kb_json_end(json);
	}
}

static void json_whats(struct info *info)
{
	struct kb_json *json = &info->json;

	for (uint8_t what = KB_WHAT_WAKING; what < ARRAY_SIZE(info->whats); what++) {
		if (!info->whats[what])
			continue;
		kb_json_begin(json, "what");
		kb_json_string(json, "what", kb_what_name(what));
		kb_json_u64(json, "records", info->whats[what]);
		kb_json_end(json);
	}
}

static void json_uncounted(struct info *info)
{
	per_core_json(&info->json, "uncounted", info->uncounted, info->nr_uncounted);
	per_core_json(&info->json, "unsampled", info->unsampled, info->nr_unsampled);
}

static void print_json(struct info *info)
{
	const struct kb_header *h = info->header;
	struct kb_json *json = &info->json;

	kb_json_begin(json, "capture");
	kb_json_string(json, "file", info->path);
	kb_json_u64(json, "protocol_version", h->protocol_version);
	kb_json_u64(json, "word_size", h->word_size);
	kb_json_string(json, "endian", h->big_endian ? "big" : "little");
	kb_json_bool(json, "circular", h->data_store_type == KB_STORE_CIRCULAR);
	kb_json_bool(json, "extended", h->extended);
	kb_json_string(json, "host", host(info));
	kb_json_string(json, "release", fact(info, "release"));
	kb_json_string(json, "command", fact(info, "command"));
	kb_json_string(json, "filter", fact(info, "filter"));
	kb_json_string(json, "fallback", fact(info, "fallback"));
	kb_json_string(json, "clock_unsteady", fact(info, "clock_unsteady"));
	kb_json_u64(json, "unix_base_ns", h->unix_base_ns);
	kb_json_i64(json, "first_ns", kb_recorded_first(&info->recorded));
	kb_json_i64(json, "last_ns", kb_recorded_last(&info->recorded));
	kb_json_u64(json, "duration_ns", kb_recorded_duration(&info->recorded));
	kb_json_u64(json, "max_cpus", h->max_cores);
	kb_json_u64(json, "cpus", info->nr_cores);
	kb_json_u64(json, "tasks", h->nr_tasks);
	kb_json_u64(json, "images", h->nr_maps);
	kb_json_u64(json, "strings", h->string_table_length);
	kb_json_array(json, "counters");
	for (uint32_t i = 0; i < kb_names_nr_counters(info->names); i++) {
		struct kb_text name = kb_names_counter(info->names, i);

		kb_json_text(json, NULL, name.data, name.length);
	}
	kb_json_array_end(json);
	kb_json_array(json, "series");
	for (uint32_t i = 0; i < h->nr_series; i++)
		if (h->series[i].name && *h->series[i].name)
			kb_json_string(json, NULL, h->series[i].name);
	kb_json_array_end(json);
	kb_json_string(json, "sources", fact(info, "sources"));
	kb_json_end(json);
	end_line(json, info->barman);
	trigger_lines(json, info->barman);
	json_counts(info, "records", -1, &info->all);
	for (uint32_t i = 0; i < h->max_cores; i++)
		if (info->cores[i].nr)
			json_counts(info, "cpu", i, &info->cores[i]);
	json_whats(info);
	json_uncounted(info);
	json_losses(info);
	json_stops(info);
}

static int run(struct info *info)
{
	int ret = read_capture(info);

	if (!ret)
		ret = lines_open(&info->json, info->people);
	if (ret)
		return ret;
	if (info->people)
		print_text(info);
	else
		print_json(info);
	return lines_close(&info->json, info->damage ? CLI_DAMAGED : CLI_OK);
}

int cmd_info(int argc, char **argv)
{
	struct info info = { .people = true };
	int option, ret;

	while ((option = cli_getopt(argc, argv, &usage)) != -1) {
		switch (option) {
		case 'i':
			info.path = optarg;
			break;
		case 'j':
			info.people = false;
			break;
		default:
			return cli_usage(option == 'h', &usage);
		}
	}
	info.path = cli_input(info.path, argc, argv, CLI_CAPTURE);
	if (!info.path)
		return CLI_IMPOSSIBLE;
	ret = run(&info);
	kb_uncounted_free(info.uncounted, info.nr_uncounted);
	kb_uncounted_free(info.unsampled, info.nr_unsampled);
	kb_stops_destroy(info.stops);
	free(info.cores);
	kb_trace_close(info.trace);
	return ret;
}
