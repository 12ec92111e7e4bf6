// SPDX-License-Identifier: MIT
/* Columns: each record is a row, parts are the whole, and Arrow holds what it gets. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <kbarman/arrow.h>
#include <kbarman/columns.h>

#include "../lib/tap.h"

#define KERNEL	0xffffffff81000000
#define ROUNDS	1000U

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

/* In each round: a task runs, is sampled, halts its CPU, writes a mark and a value. */
static void add_round(struct kb_barman_writer *writer, uint32_t round)
{
	uint64_t chain[] = { KERNEL + 0x10, KERNEL + 0x100, 0x1000 + round % 7 }, counter = round;
	uint64_t now = 1000 * round;

	add(writer, (struct kb_event) { .type = KB_EVENT_TASK_SWITCH, .timestamp = now,
		.task_id = 1 + round % 2, .task_switch = { .reason = round % 2, .prev_state = 1,
			.nr_chain = round % 4, .chain = chain } });
	add(writer, (struct kb_event) { .type = KB_EVENT_SAMPLE, .timestamp = now + 100,
		.task_id = 1 + round % 2,
		.sample = { .has_pc = true, .pc = chain[0], .nr_counters = 1, .counters = &counter,
			    .nr_chain = 3, .nr_chain_kernel = 2, .chain = chain } });
	add(writer, (struct kb_event) { .type = KB_EVENT_HALT, .timestamp = now + 200,
		.halt = { .entered = true, .idle_state = 2 } });
	add(writer, (struct kb_event) { .type = KB_EVENT_HALT, .timestamp = now + 300 });
	add(writer, (struct kb_event) { .type = KB_EVENT_ANNOTATION, .timestamp = now + 400,
		.task_id = 1, .annotation = { .type = round % 2 ? 99 : KB_ANNOTATION_BOOKMARK,
			.text = "a\xff mark", .text_length = 7 } });
	add(writer, (struct kb_event) { .type = KB_EVENT_CUSTOM_COUNTER, .timestamp = now + 500,
		.custom_counter = { .value = round } });
	add(writer, (struct kb_event) { .type = KB_EVENT_CUSTOM_COUNTER, .timestamp = now + 600,
		.task_id = 1, .custom_counter = { .value = 1, .what = KB_WHAT_WAKING, .id = 2,
			.context = 200 } });
}

#define RECORDS_IN_ROUND	7U

/* The bytes of a capture. */
static const void *make_capture(size_t *size)
{
	const struct kb_barman_layout layout = {
		.size = sizeof(layout), .max_cores = 1, .max_task_infos = 4, .max_mmap_layout = 4,
		.max_pmu_counters = 1, .max_string_table_length = 4096, .max_custom_charts = 1,
		.max_custom_series = 1,
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
	     kb_barman_writer_chart(writer, &(struct kb_chart){ .name = "chart" }) ||
	     kb_barman_writer_series(writer, &(struct kb_series){ .name = "heat", .units = "K",
		.description = "", .multiplier = -0.5, .series_class = KB_SERIES_ABSOLUTE }) ||
	     kb_barman_writer_task(writer, &(struct kb_task){ .task_id = 1, .name = "one" }) ||
	     kb_barman_writer_task(writer, &(struct kb_task){ .task_id = 2, .name = "two" }),
	     "tables");
	for (uint32_t round = 0; round < ROUNDS; round++)
		add_round(writer, round);
	must(kb_barman_writer_finish(writer, true, &err), "a capture");
	kb_barman_writer_destroy(writer);
	*size = (size_t)lseek(fd, 0, SEEK_END);
	data = mmap(NULL, *size, PROT_READ, MAP_PRIVATE, fd, 0);
	must(data == MAP_FAILED, "a map");
	close(fd);
	return data;
}

static struct kb_columns *begin(struct kb_trace *trace, const char *tables)
{
	const struct kb_columns_options options = { .size = sizeof(options), .tables = tables };
	struct kb_columns *columns;
	struct kb_error err;

	if (kb_columns_create(&columns, trace, &options, &err))
		must(1, kb_error_text(&err));
	return columns;
}

static struct kb_columns_part *whole(struct kb_trace *trace, const char *tables)
{
	struct kb_columns *columns = begin(trace, tables);
	struct kb_columns_part *part = NULL, *none = NULL;

	must(kb_columns_next(columns, UINT64_MAX, UINT64_MAX, &part, NULL) != 1, "a part");
	must(kb_columns_next(columns, UINT64_MAX, UINT64_MAX, &none, NULL) != 0 || none,
	     "the end");
	kb_columns_destroy(columns);
	return part;
}

static struct kb_column_values look(const struct kb_columns_part *part, const char *table,
				    const char *column)
{
	struct kb_column_values values = { 0 };
	uint32_t at;
	int found = kb_columns_find(table, &at, column);

	if (found < 0 || !kb_columns_values(part, (uint32_t)found, at, &values))
		must(1, column);
	return values;
}

static uint64_t rows(const struct kb_columns_part *part, const char *table)
{
	return kb_columns_rows(part, (uint32_t)kb_columns_find(table, NULL, NULL));
}

#define VALUE(part, table, column, type, row) \
	(((const type *)look(part, table, column).values)[row])

/* ---- what there is ---- */

static void test_tables(void)
{
	uint32_t nr, at = 0;
	const struct kb_column_table *tables = kb_columns_tables(&nr);
	bool good = nr > 15, words = true;
	int runs;

	for (uint32_t i = 0; i < nr; i++) {
		good &= kb_columns_find(tables[i].name, NULL, NULL) == (int)i && *tables[i].about;
		for (uint32_t j = 0; j < tables[i].nr_columns; j++) {
			good &= kb_columns_find(tables[i].name, &at, tables[i].columns[j].name) ==
				(int)i && at == j && *tables[i].columns[j].about;
			words &= !tables[i].columns[j].words ==
				 !tables[i].columns[j].nr_words;
		}
	}
	tap_ok(good, "each_table_and_column_is_found_by_its_name");
	tap_ok(words, "columns_have_words_or_none");
	runs = kb_columns_find("runs", &at, "ns");
	tap_ok(runs >= 0 && at < tables[runs].nr_columns &&
	       !strcmp(tables[runs].columns[at].name, "at_ns"),
	       "names_that_they_had_before_work");
	tap_ok(kb_columns_find("nothing", &at, "at_ns") == -1 && at == UINT32_MAX &&
	       kb_columns_find("marks", &at, "nothing") >= 0 && at == UINT32_MAX,
	       "and_nothing_else_is_found");
	kb_columns_find("details", &at, "what");
	for (uint8_t what = 0; words && kb_what_name(what); what++) {
		const struct kb_column *column =
			&tables[kb_columns_find("details", NULL, NULL)].columns[at];

		words = what && !strcmp(column->words[what], kb_what_name(what));
		words |= !what;
	}
	tap_ok(words, "words_of_details_are_those_of_the_library");
}

static void test_wishes(struct kb_trace *trace)
{
	struct kb_columns_options options = { .size = sizeof(options), .tables = "marks nothing" };
	struct kb_columns *columns;
	struct kb_error err;

	tap_ok(kb_columns_create(&columns, trace, &options, &err) == -EINVAL && !columns &&
	       strstr(kb_error_text(&err), "nothing"), "an_unknown_table_is_told");
	options.tables = "marks.nothing";
	tap_ok(kb_columns_create(&columns, trace, &options, &err) == -EINVAL &&
	       strstr(kb_error_text(&err), "nothing"), "an_unknown_column_is_told");
	kb_columns_destroy(NULL);
	kb_columns_part_free(NULL);
}

/* ---- rows ---- */

static void test_switches(const struct kb_columns_part *part)
{
	const struct kb_column_values chain = look(part, "switches", "stack");

	tap_is(rows(part, "switches"), ROUNDS, "each_switch_is_a_row");
	tap_ok(VALUE(part, "switches", "at_ns", int64_t, 3) == 3000 &&
	       VALUE(part, "switches", "next_tid", uint32_t, 3) == 2 &&
	       VALUE(part, "switches", "tid", uint32_t, 3) == 1 &&
	       VALUE(part, "switches", "known", uint8_t, 3) == 1 &&
	       VALUE(part, "switches", "known", uint8_t, 0) == 0 &&
	       VALUE(part, "switches", "blocked", uint8_t, 3) == 1 &&
	       VALUE(part, "switches", "prev_state", int32_t, 3) == 1 &&
	       VALUE(part, "switches", "state", uint8_t, 3) == 1, "with_who_ran_before");
	tap_ok(chain.offsets[0] == 0 && chain.offsets[1] == 0 && chain.offsets[4] == 6 &&
	       chain.nr_values == ROUNDS * 3 / 2 &&
	       ((const uint64_t *)chain.values)[5] == 0x1000 + 3, "and_its_chain");
}

static void test_samples(const struct kb_columns_part *part)
{
	const struct kb_column_values counters = look(part, "samples", "counters");
	const struct kb_column_values frames = look(part, "samples", "frames");
	const struct kb_column_values symbol = look(part, "functions", "symbol");
	uint32_t greatest = 0;

	tap_ok(rows(part, "samples") == ROUNDS && counters.nr_values == ROUNDS &&
	       ((const uint64_t *)counters.values)[9] == 9 &&
	       VALUE(part, "samples", "pc", uint64_t, 9) == KERNEL + 0x10,
	       "each_sample_is_a_row_with_its_counters");
	for (uint64_t i = 0; i < frames.nr_values; i++)
		if (((const uint32_t *)frames.values)[i] > greatest)
			greatest = ((const uint32_t *)frames.values)[i];
	tap_ok(frames.nr_values == ROUNDS * 3 && greatest + 1 == rows(part, "functions") &&
	       symbol.offsets[0] == 0, "each_frame_has_a_row_of_functions");
}

static void test_others(const struct kb_columns_part *part)
{
	const struct kb_column_values text = look(part, "marks", "text");

	tap_ok(rows(part, "idle") == ROUNDS && VALUE(part, "idle", "at_ns", int64_t, 1) == 1200 &&
	       VALUE(part, "idle", "end_ns", int64_t, 1) == 1300 &&
	       VALUE(part, "idle", "idle_state", int32_t, 1) == 2, "halts_are_times");
	tap_ok(rows(part, "halts") == 2 * ROUNDS && rows(part, "runs") == 2 * ROUNDS,
	       "so_are_runs");
	tap_ok(rows(part, "marks") == ROUNDS && text.offsets[1] == 9 &&
	       !memcmp(text.values, "a\xef\xbf\xbd mark", 9) &&
	       VALUE(part, "marks", "type", uint8_t, 0) == 1 &&
	       VALUE(part, "marks", "type", uint8_t, 1) == 4,
	       "texts_are_utf8_and_numbers_have_words");
	tap_ok(rows(part, "series") == ROUNDS && rows(part, "counters") == ROUNDS &&
	       VALUE(part, "series", "value", double, 4) == -2.0, "values_are_scaled");
	tap_ok(rows(part, "details") == ROUNDS && rows(part, "wakeups") == ROUNDS &&
	       VALUE(part, "wakeups", "woken_tid", uint32_t, 0) == 2 &&
	       VALUE(part, "wakeups", "context", uint8_t, 0) == 4, "wakeups_are_rows");
	tap_ok(rows(part, "tasks") == 2 && rows(part, "losses") == 3 && rows(part, "facts") == 2 &&
	       rows(part, "header") == 1 && rows(part, "series_names") == 1 &&
	       rows(part, "events") == 1,
	       "the_header_is_in_tables");
	tap_ok(rows(part, "records") == RECORDS_IN_ROUND * ROUNDS &&
	       kb_columns_records(part) == RECORDS_IN_ROUND * ROUNDS &&
	       VALUE(part, "records", "type", uint8_t, 5) == 3 &&
	       VALUE(part, "records", "type", uint8_t, 6) == 6, "each_record_is_a_row_of_records");
	tap_ok(rows(part, "gaps") == 1 && VALUE(part, "gaps", "records", uint64_t, 0) == 7,
	       "what_is_lost_at_the_end_comes_last");
}

static bool is_power(uint64_t room)
{
	return !(room & (room - 1));
}

/* ---- parts ---- */

#define EVERYTHING	"samples.frames records switches samples halts runs idle gaps wakeups " \
			"interrupts syscalls faults block counters series details marks functions handlers tasks " \
			"images series_names events " \
			"losses facts header switches.frames"

/* Append each value of each column of @part to @sums, by table and column. */
static void sum_up(const struct kb_columns_part *part, uint64_t sums[32][16])
{
	uint32_t nr;
	const struct kb_column_table *tables = kb_columns_tables(&nr);
	struct kb_column_values values;

	for (uint32_t i = 0; i < nr; i++) {
		for (uint32_t j = 0; j < tables[i].nr_columns; j++) {
			enum kb_column_type type = tables[i].columns[j].type;
			uint64_t rows_of = kb_columns_rows(part, i), *sum = &sums[i][j];
			unsigned int size = type == KB_COLUMN_U32 || type == KB_COLUMN_I32 ||
					    type == KB_COLUMN_LIST32 ? 4 :
					    type == KB_COLUMN_U64 || type == KB_COLUMN_I64 ||
					    type == KB_COLUMN_F64 ||
					    type == KB_COLUMN_LIST64 ? 8 : 1;

			if (!kb_columns_values(part, i, j, &values))
				continue;
			for (uint64_t at = 0; at < values.nr_values * size; at++)
				*sum = *sum * 31 + ((const uint8_t *)values.values)[at];
			for (uint64_t at = 0; values.offsets && at < rows_of; at++)
				*sum = *sum * 31 + (uint64_t)(values.offsets[at + 1] -
							      values.offsets[at]);
		}
	}
}

static void test_parts(struct kb_trace *trace)
{
	static uint64_t one[32][16], many[32][16];
	struct kb_columns_part *part = whole(trace, EVERYTHING), *kept = NULL;
	const struct kb_column_values room = look(part, "marks", "text");
	struct kb_columns *columns;
	unsigned int parts = 0;
	uint64_t largest = 0;

	tap_ok(is_power(room.room) && is_power(room.offsets_room) && room.room >= room.nr_values &&
	       room.offsets_room > rows(part, "marks") * sizeof(int64_t), "room_is_a_power_of_two");
	test_switches(part);
	test_samples(part);
	test_others(part);
	/* texts and lists of a part are one behind the other: their bytes and lengths in turn */
	kb_columns_part_free(part);
	part = whole(trace, "records switches.at_ns halts runs idle gaps wakeups header marks.at_ns");
	sum_up(part, one);
	kb_columns_part_free(part);
	columns = begin(trace, "records switches.at_ns halts runs idle gaps wakeups header marks.at_ns");
	part = NULL;
	while (kb_columns_next(columns, 10, UINT64_MAX, &part, NULL) > 0) {
		sum_up(part, many);
		if (kb_columns_records(part) > largest)
			largest = kb_columns_records(part);
		if (parts++ == 7) {
			kept = part;
			part = NULL;	/* is not given back */
		}
	}
	/* one more for what is open at the end */
	tap_ok(!part && parts == RECORDS_IN_ROUND * ROUNDS / 10 + 1 && largest == 10,
	       "parts_have_as_many_records_as_asked_for");
	tap_ok(!memcmp(one, many, sizeof(one)), "parts_are_together_what_the_whole_is");
	tap_ok(kb_columns_rows(kept, 0) == 10 &&
	       VALUE(kept, "records", "at_ns", int64_t, 0) == 10000, "a_part_that_is_kept_stays");
	kb_columns_destroy(columns);
	tap_is(VALUE(kept, "records", "at_ns", int64_t, 0), 10000, "also_without_its_columns");
	kb_columns_part_free(kept);
}

static void test_bytes(struct kb_trace *trace)
{
	struct kb_columns *columns = begin(trace, "samples");
	struct kb_columns_part *part = NULL;
	uint64_t all = 0, most = 0;

	while (kb_columns_next(columns, UINT64_MAX, 1000, &part, NULL) > 0) {
		all += rows(part, "samples");
		if (rows(part, "samples") > most)
			most = rows(part, "samples");
	}
	tap_ok(all == ROUNDS && most > 5 && most < 15, "a_part_ends_with_its_bytes");
	kb_columns_destroy(columns);
}

static void test_damage(const void *data, size_t size)
{
	struct kb_columns_part *part = NULL;
	struct kb_columns *columns;
	struct kb_trace *trace;
	struct kb_error err;

	must(kb_trace_open_memory(&trace, data, size - 100, NULL, &err), "a damaged trace");
	columns = begin(trace, "records");
	tap_is(kb_columns_next(columns, UINT64_MAX, UINT64_MAX, &part, &err), 1,
	       "all_that_is_whole_comes");
	tap_ok(rows(part, "records") > RECORDS_IN_ROUND * (ROUNDS - 1), "up_to_the_damage");
	tap_ok(kb_columns_next(columns, UINT64_MAX, UINT64_MAX, &part, &err) < 0 && !part &&
	       strstr(kb_error_text(&err), "missing"), "then_the_damage_is_told");
	tap_is(kb_columns_next(columns, UINT64_MAX, UINT64_MAX, &part, &err), 0, "once");
	kb_columns_destroy(columns);
	kb_trace_close(trace);
}

/* ---- Arrow ---- */

/* A reader takes children out, and frees their parent first. */
static void test_arrow(struct kb_trace *trace)
{
	struct kb_columns_part *part = whole(trace, "marks samples.counters switches.state");
	uint32_t marks = (uint32_t)kb_columns_find("marks", NULL, NULL);
	struct ArrowArray array, text, type;
	struct ArrowSchema schema;

	tap_is(kb_arrow_part(part, (uint32_t)kb_columns_find("facts", NULL, NULL), &schema, &array),
	       -ENOENT, "what_was_not_asked_for_is_no_arrow");
	must(kb_arrow_part(part, marks, &schema, &array), "an array");
	kb_columns_part_free(part);
	tap_ok(!strcmp(schema.format, "+s") && schema.n_children == array.n_children &&
	       array.length == ROUNDS && array.n_children == 8 && array.null_count == 0,
	       "a_table_is_a_struct_of_its_columns");
	tap_ok(!strcmp(schema.children[0]->format, "l") && !strcmp(schema.children[0]->name, "at_ns") &&
	       ((const int64_t *)array.children[0]->buffers[1])[2] == 2400, "with_their_values");
	text = *array.children[7];
	type = *array.children[3];
	array.children[7]->release = array.children[3]->release = NULL;
	array.release(&array);
	tap_ok(!array.release && !strcmp(schema.children[7]->format, "U") && text.n_buffers == 3 &&
	       !memcmp((const char *)text.buffers[2] + ((const int64_t *)text.buffers[1])[1],
		       "a\xef\xbf\xbd mark", 9), "a_column_outlives_its_table");
	tap_ok(!strcmp(schema.children[3]->dictionary->format, "U") && type.dictionary->length == 5 &&
	       !memcmp((const char *)type.dictionary->buffers[2] +
		       ((const int64_t *)type.dictionary->buffers[1])[1], "bookmark", 8),
	       "words_are_a_dictionary");
	schema.release(&schema);
	text.release(&text);
	type.release(&type);
}

static void test_stream(struct kb_trace *trace)
{
	struct kb_columns_part *part = whole(trace, "samples.counters facts");
	struct ArrowArrayStream stream;
	struct ArrowSchema schema;
	struct ArrowArray array;

	must(kb_arrow_stream(part, (uint32_t)kb_columns_find("samples", NULL, NULL), &stream),
	     "a stream");
	kb_columns_part_free(part);
	must(stream.get_schema(&stream, &schema) || stream.get_next(&stream, &array), "a batch");
	tap_ok(array.length == ROUNDS && !strcmp(schema.children[0]->format, "+L") &&
	       array.children[0]->children[0]->length == ROUNDS &&
	       ((const uint64_t *)array.children[0]->children[0]->buffers[1])[5] == 5,
	       "lists_have_their_values");
	array.release(&array);
	schema.release(&schema);
	tap_ok(!stream.get_next(&stream, &array) && !array.release &&
	       !stream.get_last_error(&stream), "a_stream_has_one_batch");
	stream.release(&stream);
}

/* Reads it to its end, and frees it; the number of rows. */
static uint64_t drain(struct ArrowArrayStream *stream, unsigned int *batches, int *error)
{
	struct ArrowArray array;
	uint64_t length = 0;

	*batches = 0;
	for (;;) {
		*error = stream->get_next(stream, &array);
		if (*error || !array.release)
			break;
		length += (uint64_t)array.length;
		*batches += 1;
		array.release(&array);
	}
	return length;
}

static void test_reader(const void *data, size_t size)
{
	uint32_t marks = (uint32_t)kb_columns_find("marks", NULL, NULL);
	struct ArrowArrayStream stream;
	struct kb_columns *columns;
	struct ArrowSchema schema;
	struct kb_trace *trace;
	unsigned int batches;
	struct kb_error err;
	int error;

	must(kb_trace_open_memory(&trace, data, size, NULL, &err), "a trace");
	columns = begin(trace, "marks.text");
	tap_is(kb_arrow_reader(columns, trace, marks + 1, 70, UINT64_MAX, &stream), -ENOENT,
	       "a_reader_needs_its_table");
	must(kb_arrow_reader(columns, trace, marks, 70, UINT64_MAX, &stream), "a reader");
	must(stream.get_schema(&stream, &schema), "a schema");
	tap_ok(schema.n_children == 1, "its_schema_comes_first");
	schema.release(&schema);
	tap_ok(drain(&stream, &batches, &error) == ROUNDS && batches == ROUNDS / 10 && !error &&
	       !stream.get_last_error(&stream), "a_reader_reads_batch_by_batch");
	stream.release(&stream);
	must(kb_trace_open_memory(&trace, data, size - 100, NULL, &err), "a damaged trace");
	must(kb_arrow_reader(begin(trace, "marks"), trace, marks, 10000, UINT64_MAX, &stream),
	     "a reader");
	tap_ok(drain(&stream, &batches, &error) >= ROUNDS - 1 && error > 0 &&
	       strstr(stream.get_last_error(&stream), "missing"), "damage_is_told_at_the_end");
	stream.release(&stream);
}

int main(void)
{
	struct kb_trace *trace;
	struct kb_error err;
	const void *data;
	size_t size;

	data = make_capture(&size);
	must(kb_trace_open_memory(&trace, data, size, NULL, &err), "a trace");
	test_tables();
	test_wishes(trace);
	test_parts(trace);
	test_bytes(trace);
	test_arrow(trace);
	test_stream(trace);
	kb_trace_close(trace);
	test_damage(data, size);
	test_reader(data, size);
	return tap_done();
}
