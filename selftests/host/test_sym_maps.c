// SPDX-License-Identifier: MIT
/* Mappings by task and time, against a search that looks at every row. */
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <kbarman/barman.h>
#include <kbarman/tasks.h>

#include "../lib/tap.h"
#include "sym/tasks/maps.h"


enum { MOST_ROWS = 65536 };

static struct kb_map rows[MOST_ROWS];
static struct kb_task tasks[64];
static struct { uint32_t row, tgid; } tgids[64];

struct capture {
	struct kb_barman *barman;
	struct kb_tasks *tasks;
	struct kb_maps *maps;
	int fd;
};

static void must(int ret)
{
	if (ret < 0) {
		fprintf(stderr, "can't make a capture: %s\n", strerror(-ret));
		exit(2);
	}
}

static void make_capture(struct capture *capture, unsigned int nr_rows, unsigned int nr_tasks,
			 unsigned int nr_tgids)
{
	const struct kb_barman_layout layout = {
		.size = sizeof(layout),
		.max_cores = 1, .max_task_infos = 64, .max_mmap_layout = MOST_ROWS,
		.max_string_table_length = 1 << 16,
	};
	const struct kb_header header = {
		.target_name = "test", .timestamp_multiplier = 1, .timestamp_divisor = 1,
	};
	struct kb_barman_writer *writer;
	struct kb_error err = { 0 };
	unsigned int i;

	capture->fd = memfd_create("capture", 0);
	must(kb_barman_writer_create(&writer, capture->fd, &layout, &err));
	must(kb_barman_writer_set_header(writer, &header));
	for (i = 0; i < nr_tasks; i++)
		must(kb_barman_writer_task(writer, &tasks[i]));
	for (i = 0; i < nr_rows; i++)
		must(kb_barman_writer_map(writer, &rows[i]));
	for (i = 0; i < nr_tgids; i++) {
		char key[32], value[32];

		snprintf(key, sizeof(key), "tgid.%u", tgids[i].row);
		snprintf(value, sizeof(value), "%u", tgids[i].tgid);
		must(kb_barman_writer_fact(writer, key, value));
	}
	must(kb_barman_writer_finish(writer, true, &err));
	kb_barman_writer_destroy(writer);

	char path[32];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", capture->fd);
	must(kb_barman_open(&capture->barman, path, &err));
	must(kb_tasks_create(&capture->tasks, capture->barman));
	must(kb_maps_create(&capture->maps, capture->barman));
}

static void drop_capture(struct capture *capture)
{
	kb_maps_destroy(capture->maps);
	kb_tasks_destroy(capture->tasks);
	kb_barman_close(capture->barman);
	close(capture->fd);
}

static bool covers(const struct kb_map *row, uint64_t pc)
{
	return pc >= row->base_address && pc - row->base_address < row->length;
}

/* The row of @task_id that is right, -1 for none. */
static int naive_rows(unsigned int nr, uint32_t task_id, uint64_t timestamp, uint64_t pc,
		      bool later)
{
	int best = -1;
	unsigned int i;

	for (i = 0; i < nr; i++) {
		if (rows[i].task_id != task_id || !covers(&rows[i], pc) ||
		    (rows[i].timestamp > timestamp) != later)
			continue;
		if (best < 0 || (later ? rows[i].timestamp < rows[best].timestamp :
				 rows[i].timestamp >= rows[best].timestamp))
			best = i;
	}
	return best;
}

static int naive_find(unsigned int nr, uint32_t task_id, uint32_t tgid, uint64_t timestamp,
		      uint64_t pc)
{
	uint32_t ids[] = { task_id, tgid, 0 };
	int i, later, found;

	for (later = 0; later < 2; later++)
		for (i = 0; i < 3; i++) {
			found = naive_rows(nr, ids[i], timestamp, pc, later);
			if (found >= 0)
				return found;
		}
	return -1;
}

static struct kb_maps_hit find(struct capture *capture, uint32_t task_id, uint64_t timestamp,
			       uint64_t pc)
{
	struct kb_maps_hit hit;

	must(kb_maps_find(capture->maps, capture->tasks, task_id, timestamp, pc, &hit));
	return hit;
}

static bool same_row(const struct kb_maps_hit *hit, int index)
{
	return index < 0 ? !hit->row : hit->row && hit->index == (uint32_t)index;
}

static void test_against_naive(void)
{
	unsigned int round, wrong = 0, unstable = 0;

	srand(4);
	for (round = 0; round < 150; round++) {
		unsigned int i, nr = 1 + rand() % (round % 3 ? 80 : 16), nr_ids = 1 + rand() % 4;
		uint64_t top = round % 5 ? 0 : UINT64_MAX - 220;
		struct capture capture;

		for (i = 0; i < nr; i++)
			rows[i] = (struct kb_map) {
				.timestamp = rand() % 20,
				.task_id = rand() % nr_ids,
				.base_address = top + rand() % 200,
				.length = rand() % 7 ? (uint64_t)rand() % 60 : UINT64_MAX,
				.image = "image",
			};
		for (i = 0; i < nr_ids; i++) {
			tasks[i] = (struct kb_task) { .task_id = i, .name = "task" };
			tgids[i].row = i;
			tgids[i].tgid = rand() % nr_ids;
		}
		make_capture(&capture, nr, nr_ids, nr_ids);
		for (i = 0; i < 3000; i++) {
			uint32_t task_id = rand() % (nr_ids + 1);
			uint32_t tgid = task_id && task_id < nr_ids ? tgids[task_id].tgid : task_id;
			uint64_t timestamp = rand() % 22, pc = top + rand() % 220;
			struct kb_maps_hit hit = find(&capture, task_id, timestamp, pc);
			int want = naive_find(nr, task_id, tgid, timestamp, pc);

			wrong += !same_row(&hit, want);
			unstable += pc < hit.low || pc > hit.high || timestamp < hit.since ||
				    timestamp > hit.until;
			/* what the hit promises for its corners */
			unstable += !same_row(&hit, naive_find(nr, task_id, tgid, hit.since,
							       hit.low));
			unstable += !same_row(&hit, naive_find(nr, task_id, tgid, hit.until,
							       hit.high));
		}
		drop_capture(&capture);
	}
	tap_is(wrong, 0, "rows_agree_with_a_naive_search");
	tap_is(unstable, 0, "hits_hold_where_they_say");
}

static void test_order_of_preference(void)
{
	struct capture capture;
	struct kb_maps_hit hit;

	rows[0] = (struct kb_map) { 10, 7, 0, 0x1000, 0x1000, 0, "first", { NULL, 0 } };
	rows[1] = (struct kb_map) { 20, 7, 0, 0x1800, 0x100, 0, "over it", { NULL, 0 } };
	rows[2] = (struct kb_map) { 0, 5, 0, 0x4000, 0x1000, 0, "the group's", { NULL, 0 } };
	rows[3] = (struct kb_map) { 0, 0, 0, 1ULL << 63, 0x1000, 0, "[kernel.kallsyms]", { NULL, 0 } };
	tasks[0] = (struct kb_task) { .task_id = 7, .name = "seven" };
	tgids[0].row = 0;
	tgids[0].tgid = 5;
	make_capture(&capture, 4, 1, 1);
	hit = find(&capture, 7, 15, 0x1850);
	tap_ok(same_row(&hit, 0), "a_mapping_holds_until_it_is_replaced");
	hit = find(&capture, 7, 20, 0x1850);
	tap_ok(same_row(&hit, 1), "a_newer_mapping_replaces_an_older_one");
	hit = find(&capture, 7, 25, 0x1900);
	tap_ok(same_row(&hit, 0), "only_where_it_is");
	hit = find(&capture, 7, 5, 0x1850);
	tap_ok(same_row(&hit, 0), "a_later_row_is_better_than_none");
	hit = find(&capture, 7, 5, 0x4000);
	tap_ok(same_row(&hit, 2), "the_thread_group_is_asked");
	hit = find(&capture, 99, 5, (1ULL << 63) + 5);
	tap_ok(same_row(&hit, 3), "kernel_rows_hold_for_every_task");
	hit = find(&capture, 99, 5, 0x1000);
	tap_ok(!hit.row, "rows_of_others_do_not");
	drop_capture(&capture);
}

/* Of this program on a processor. */
static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

/* All rows nested in each other, which is the worst there is: how long 200,000 searches take. */
static double search_nested(unsigned int nr, unsigned int *wrong)
{
	struct capture capture;
	unsigned int i;
	double begin;

	for (i = 0; i < nr; i++)
		rows[i] = (struct kb_map) { i, 1, 0, i, 2 * (nr - i), 0, "nested", { NULL, 0 } };
	tasks[0] = (struct kb_task) { .task_id = 1, .name = "one" };
	make_capture(&capture, nr, 1, 0);
	find(&capture, 1, 0, 0);	/* which builds the tree */
	begin = seconds();
	for (i = 0; i < 200000; i++) {
		uint64_t pc = (uint64_t)rand() % nr, timestamp = rand() % nr;
		struct kb_maps_hit hit = find(&capture, 1, timestamp, pc);

		*wrong += !same_row(&hit, timestamp < pc ? timestamp : pc);
	}
	begin = seconds() - begin;
	drop_capture(&capture);
	return begin;
}

/* 64 times the rows; a search that looked at each would take 64 times as long. */
static void test_worst_case(void)
{
	unsigned int wrong = 0;
	double few = search_nested(MOST_ROWS / 64, &wrong), many = search_nested(MOST_ROWS, &wrong);

	tap_is(wrong, 0, "65536_nested_rows_are_found");
	if (!tap_ok(many < 24 * few, "no_search_among_nested_rows_is_linear"))
		tap_note("%.3f s among %u rows, %.3f s among %u", few, MOST_ROWS / 64, many, MOST_ROWS);
}

int main(void)
{
	test_order_of_preference();
	test_against_naive();
	test_worst_case();
	return tap_done();
}
