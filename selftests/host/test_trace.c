// SPDX-License-Identifier: MIT
/* Traces: each part is made once, the walk knows what its records mean, and options have a size. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <kbarman/filter.h>
#include <kbarman/losses.h>
#include <kbarman/names.h>
#include <kbarman/progress.h>
#include <kbarman/report.h>
#include <kbarman/trace.h>

#include "../lib/tap.h"

#define KERNEL	0xffffffff81000000

static void must(int ret, const char *what)
{
	if (ret) {
		printf("Bail out! %s\n", what);
		exit(1);
	}
}

static void add(struct kb_barman_writer *writer, struct kb_event event)
{
	must(kb_barman_writer_event(writer, &event), "a record");
}

/* Task 1 runs from 100 to 300, then task 2; a call chain of each, and the capture ends at 500. */
static void add_records(struct kb_barman_writer *writer)
{
	uint64_t chain[] = { KERNEL + 0x10, KERNEL + 0x100 }, one = 1;

	add(writer, (struct kb_event) { .type = KB_EVENT_TASK_SWITCH, .timestamp = 100,
		.task_id = 1, .task_switch.prev_state = KB_STATE_UNKNOWN });
	add(writer, (struct kb_event) { .type = KB_EVENT_SAMPLE, .timestamp = 200, .task_id = 1,
		.sample = { .has_pc = true, .pc = chain[0], .nr_counters = 1, .counters = &one,
			    .nr_chain = 2, .nr_chain_kernel = 2, .chain = chain } });
	add(writer, (struct kb_event) { .type = KB_EVENT_TASK_SWITCH, .timestamp = 300,
		.task_id = 2, .task_switch = { .reason = KB_SWITCH_BLOCKED, .prev_state = 1,
			.nr_chain = 2, .nr_chain_kernel = 2, .chain = chain } });
	add(writer, (struct kb_event) { .type = KB_EVENT_SAMPLE, .timestamp = 500, .task_id = 2,
		.sample = { .has_pc = true, .pc = 0x1000, .nr_counters = 1, .counters = &one } });
}

/* The bytes of a capture. */
static const void *make_capture(size_t *size)
{
	const struct kb_barman_layout layout = {
		.size = sizeof(layout), .max_cores = 1, .max_task_infos = 4, .max_mmap_layout = 4,
		.max_pmu_counters = 1, .max_string_table_length = 4096,
	};
	const struct kb_header header = { .timestamp_multiplier = 1, .timestamp_divisor = 1 };
	uint32_t type = 17;
	const struct kb_pmu pmu = { .num_counters = 1, .counter_types = &type };
	struct kb_barman_writer *writer;
	int fd = memfd_create("capture", 0);
	struct kb_error err;
	void *data;

	must(kb_barman_writer_create(&writer, fd, &layout, &err), "a writer");
	must(kb_barman_writer_set_header(writer, &header) ||
	     kb_barman_writer_fact(writer, "ext", "1") ||
	     kb_barman_writer_fact(writer, "lost.0.full", "7") ||
	     kb_barman_writer_pmu(writer, 0, &pmu) ||
	     kb_barman_writer_task(writer, &(struct kb_task){ .task_id = 1, .name = "one" }) ||
	     kb_barman_writer_task(writer, &(struct kb_task){ .task_id = 2, .name = "two" }),
	     "tables");
	add_records(writer);
	must(kb_barman_writer_finish(writer, true, &err), "a capture");
	kb_barman_writer_destroy(writer);
	*size = (size_t)lseek(fd, 0, SEEK_END);
	data = mmap(NULL, *size, PROT_READ, MAP_PRIVATE, fd, 0);
	must(data == MAP_FAILED, "a map");
	close(fd);
	return data;
}

static void test_parts(struct kb_trace *trace)
{
	struct kb_error err;
	const struct kb_tasks *tasks = kb_trace_tasks(trace, &err);
	struct kb_symbolizer *symbolizer = kb_trace_symbolizer(trace, &err);
	const struct kb_losses *losses = kb_trace_losses(trace, &err);
	struct kb_names *names = kb_trace_names(trace, &err);

	tap_ok(tasks && tasks == kb_trace_tasks(trace, &err), "tasks_are_indexed_once");
	tap_ok(symbolizer && symbolizer == kb_trace_symbolizer(trace, &err),
	       "there_is_one_symbolizer");
	tap_ok(losses && losses->lost == 7 && losses == kb_trace_losses(trace, &err),
	       "losses_are_read_once");
	tap_ok(names && kb_names_nr_counters(names) == 1 && names == kb_trace_names(trace, &err),
	       "names_are_read_once");
}

/* Reads everything; the number of records. */
static unsigned int walk_all(struct kb_trace *trace)
{
	const struct kb_frame *frame;
	const struct kb_walk *walk;
	struct kb_error err;
	unsigned int nr = 0;

	while (kb_trace_next(trace, &walk, &err) > 0) {
		if (nr == 0)
			tap_ok(!walk->known && !walk->nr_slices, "at_first_nothing_is_known");
		if (nr == 1)
			tap_ok(walk->known && walk->running == 1 && walk->ns == 200,
			       "then_it_is_known_what_runs");
		if (nr == 2) {
			tap_ok(walk->nr_slices == 1 && walk->slices[0].task_id == 1 &&
			       walk->slices[0].start == 100 && walk->slices[0].end == 300,
			       "a_switch_ends_a_slice");
			tap_ok(kb_trace_frames(trace, 0, &frame) == 1 && frame->symbol.kernel,
			       "its_chain_can_be_resolved");
		}
		nr++;
	}
	return nr;
}

static void test_walk(struct kb_trace *trace)
{
	struct kb_slice slice;
	struct kb_error err;

	tap_is(walk_all(trace), 4, "all_records_come");
	tap_ok(kb_trace_end(trace, &slice) && slice.task_id == 2 && slice.start == 300 &&
	       slice.how == KB_END_LOST, "the_open_slice_comes_at_the_end");
	tap_ok(kb_trace_end(trace, &slice) && slice.kind == KB_SLICE_LOST && slice.lost == 7,
	       "and_what_is_lost_behind_it");
	tap_ok(!kb_trace_end(trace, &slice), "and_no_more");
	tap_is(kb_trace_duration(trace), 400, "the_recorded_time_is_known");
	tap_is(kb_trace_rewind(trace, &err), 0, "it_can_be_read_again");
	tap_is(walk_all(trace), 4, "from_its_first_record_on");
}

static void test_report(struct kb_trace *trace)
{
	const struct kb_report_options options = { .size = sizeof(options), .sort = KB_SORT_TASK };
	const struct kb_report *report;
	struct kb_sample_row row;
	struct kb_error err;

	must(kb_report_create(&report, trace, &options, &err), "a report");
	tap_ok(report->samples.nr == 2 && report->totals.samples == 2 && report->totals.weight == 2 &&
	       report->tasks.nr == 2, "a_report_reads_all_wherever_the_walk_is");
	row = kb_report_sample(&report->samples, 0);
	tap_is(kb_report_counter(&report->samples, &row, 0), 1,
	       "and_has_the_counters_of_a_row");
	tap_ok(!kb_report_ipc(report, NULL, NULL, NULL), "without_cycles_there_is_no_ipc");
	kb_report_destroy(report);
	kb_report_destroy(NULL);
}

/* A bit for each record that @filter wants, the first one lowest. */
static unsigned int wanted(struct kb_trace *trace, const struct kb_filter *filter)
{
	unsigned int bits = 0, bit = 1;
	const struct kb_walk *walk;
	struct kb_error err;

	must(kb_trace_rewind(trace, &err), "another walk");
	for (; kb_trace_next(trace, &walk, &err) > 0; bit <<= 1)
		if (kb_trace_wants(trace, filter))
			bits |= bit;
	return bits;
}

static void test_filter(struct kb_trace *trace)
{
	const uint64_t cpus[] = { 1, 0 }, others[] = { 2 };
	struct kb_filter filter = { .size = sizeof(filter) };

	tap_is(wanted(trace, NULL) & wanted(trace, &filter), 0xf, "without_a_choice_all_is_wanted");
	filter.task = "one";
	tap_is(wanted(trace, &filter), 0x7, "a_switch_is_of_the_task_that_goes_and_of_the_one_that_comes");
	filter.task = "two";
	tap_is(wanted(trace, &filter), 0xc, "and_a_sample_of_the_one_that_runs");
	filter = (struct kb_filter){ .size = sizeof(filter), .has_tid = true, .tid = 2 };
	tap_is(wanted(trace, &filter), 0xc, "tasks_are_chosen_by_number_too");
	filter = (struct kb_filter){ .size = sizeof(filter), .has_time = true, .from = 100, .until = 200 };
	tap_is(wanted(trace, &filter), 0x6, "both_ends_belong_to_a_time_that_counts_from_the_first_record");
	filter.cpus = cpus;
	filter.nr_cpu_words = 2;
	tap_is(wanted(trace, &filter), 0x6, "its_cpu_is_wanted");
	filter.cpus = others;
	filter.nr_cpu_words = 1;
	tap_is(wanted(trace, &filter), 0, "or_another_one_is");
	filter = (struct kb_filter){ .size = 0 };
	tap_is(wanted(trace, &filter), 0, "a_filter_without_its_size_wants_nothing");
}

/* As a program does that knows one more option than this library. */
struct later {
	struct kb_trace_options known;
	uint64_t other;
};

static void test_options(const void *data, size_t size)
{
	struct later later = { .known.size = sizeof(later) };
	struct kb_trace_options options = { .size = 0 };
	struct kb_trace *trace;
	struct kb_error err;

	tap_is(kb_trace_open_memory(&trace, data, size, &options, &err), -EINVAL,
	       "options_need_their_size");
	options.size = sizeof(options.size);
	tap_is(kb_trace_open_memory(&trace, data, size, &options, &err), 0,
	       "those_of_an_older_program_are_enough");
	kb_trace_close(trace);
	tap_is(kb_trace_open_memory(&trace, data, size, &later.known, &err), 0,
	       "those_of_a_newer_one_too");
	kb_trace_close(trace);
	later.other = 1;
	tap_is(kb_trace_open_memory(&trace, data, size, &later.known, &err), -EINVAL,
	       "unless_they_ask_for_what_is_not_known");
	kb_trace_close(NULL);
}

static void remove_capture(void *path, const char *what, uint64_t done, uint64_t total)
{
	(void)what, (void)done, (void)total;
	unlink(path);
}

/* As the bound of a folder does it. */
static void test_removed(const void *data, size_t size)
{
	char folder[] = "/tmp/kbarman-trace.XXXXXX", path[64], symbols[80];
	struct kb_error err;
	FILE *file;

	must(!mkdtemp(folder), "a folder");
	snprintf(path, sizeof(path), "%s/a.cap", folder);
	snprintf(symbols, sizeof(symbols), "%s.symbols", path);
	file = fopen(path, "w");
	must(!file || fwrite(data, 1, size, file) != size || fclose(file), "a file");
	tap_is(kb_capture_save_symbols(path, NULL, NULL, NULL, &err) || unlink(symbols), 0,
	       "symbols_are_saved_beside_a_capture");
	kb_progress_listen(remove_capture, path);
	tap_is(kb_capture_save_symbols(path, NULL, NULL, NULL, &err), -ENOENT,
	       "but_not_of_one_that_is_removed_meanwhile");
	kb_progress_listen(NULL, NULL);
	tap_is(access(path, F_OK) && access(symbols, F_OK), 1, "nothing_is_left_of_both");
	rmdir(folder);
}

int main(void)
{
	struct kb_trace *trace;
	struct kb_error err;
	const void *data;
	size_t size;

	data = make_capture(&size);
	must(kb_trace_open_memory(&trace, data, size, NULL, &err), "a trace");
	test_parts(trace);
	test_walk(trace);
	test_report(trace);
	test_filter(trace);
	kb_trace_close(trace);
	test_options(data, size);
	test_removed(data, size);
	return tap_done();
}
