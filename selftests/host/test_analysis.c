// SPDX-License-Identifier: MIT
/* The accumulators under the report: tables, times of tasks and CPUs, losses, trees. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <kbarman/barman.h>
#include <kbarman/chain.h>

#include "../lib/tap.h"
#include "analysis/facts/losses_read.h"
#include "analysis/samples/calltree.h"
#include "analysis/time/sched.h"
#include "base/table.h"

struct row {
	uint64_t key[2];
	uint64_t count;
};

static void test_table(void)
{
	enum { KEYS = 5000 };
	static uint32_t counts[KEYS];
	struct kb_table table;
	unsigned int i, wrong = 0;

	srand(9);
	kb_table_init(&table, sizeof(struct row), 2);
	tap_ok(!kb_table_find(&table, (uint64_t[]) { 1, 2 }), "an_empty_table_finds_nothing");
	for (i = 0; i < 200000; i++) {
		unsigned int key = rand() % KEYS;
		struct row *row = kb_table_get(&table, (uint64_t[]) { key % 7, key });

		row->count++;
		counts[key]++;
	}
	for (i = 0; i < KEYS; i++) {
		struct row *row = kb_table_find(&table, (uint64_t[]) { i % 7, i });

		wrong += (row ? row->count : 0) != counts[i];
	}
	tap_is(wrong, 0, "rows_keep_their_sums_as_the_table_grows");
	tap_is(table.nr, KEYS, "a_key_has_one_row");
	tap_ok(!kb_table_find(&table, (uint64_t[]) { 9, 1 }), "other_keys_are_not_there");
	kb_table_release(&table);
}

static void run_slice(struct kb_sched *sched, uint32_t core, uint32_t task, int64_t start,
		      int64_t end, enum kb_slice_end how, uint32_t next)
{
	const struct kb_slice slice = {
		.kind = KB_SLICE_RUN, .how = how, .core = core, .task_id = task, .has_task = true,
		.next_task = next, .start = start, .end = end,
	};

	if (kb_sched_add(sched, &slice, end))
		abort();
}

static const struct kb_sched_task *task_of(const struct kb_sched_task *tasks, uint32_t nr,
					   uint64_t id)
{
	while (nr--)
		if (tasks[nr].key == id)
			return &tasks[nr];
	return NULL;
}

static void test_sched(void)
{
	const struct kb_slice idle = {
		.kind = KB_SLICE_IDLE, .how = KB_END_RESUME, .core = 1, .idle_state = 3,
		.start = 100, .end = 250,
	}, lost = {
		.kind = KB_SLICE_LOST, .how = KB_END_FOUND, .core = 1, .start = 250, .end = 260,
		.lost = 17,
	};
	const struct kb_sched_task *tasks, *one, *two;
	struct kb_sched *sched;
	uint32_t nr;

	if (kb_sched_create(&sched, 2, NULL))
		abort();
	run_slice(sched, 0, 1, 0, 100, KB_END_BLOCKED, 2);
	run_slice(sched, 0, 2, 100, 150, KB_END_PREEMPTED, 3);
	run_slice(sched, 0, 3, 150, 180, KB_END_BLOCKED, 1);
	run_slice(sched, 1, 2, 160, 170, KB_END_BLOCKED, 0);	/* told late: 180 came first */
	run_slice(sched, 0, 1, 180, 400, KB_END_CAPTURE, 0);
	kb_sched_add(sched, &idle, 250);
	kb_sched_add(sched, &lost, 260);
	run_slice(sched, 0, 4, INT64_MIN, INT64_MAX, KB_END_BLOCKED, 4);
	run_slice(sched, 7, 4, 0, 5, KB_END_BLOCKED, 4);	/* no such CPU */
	run_slice(sched, 0, 4, 5, 0, KB_END_BLOCKED, 4);	/* backwards */

	tasks = kb_sched_tasks(sched, &nr);
	one = task_of(tasks, nr, 1);
	two = task_of(tasks, nr, 2);
	tap_is(one->run_ns, 320, "times_of_runs_add_up");
	tap_is(one->blocked_ns, 80, "a_wait_lasts_until_the_next_run");
	tap_ok(one->longest_ns == 80 && one->longest_at == 100 && one->longest_blocked,
	       "the_longest_wait_is_known");
	tap_is(two->preempted_ns, 10, "waits_cross_cpus");
	tap_is(two->migrations, 1, "migrations_are_counted");
	tap_is(one->runs, 1, "switches_to_a_task_are_counted");
	tap_is(tasks[0].key, 4, "tasks_are_ordered_by_time");
	tap_is(kb_sched_cpu(sched, 1)->states[4].ns, 150, "idle_states_add_up");
	tap_is(kb_sched_cpu(sched, 1)->lost, 17, "gaps_are_counted");
	tap_is(kb_sched_cpu(sched, 1)->busy_ns, 10, "cpus_have_their_own_times");
	kb_sched_destroy(sched);
}

static struct kb_barman *open_facts(const char *const *facts, int *fd)
{
	const struct kb_barman_layout layout = {
		.size = sizeof(layout),
		.max_cores = 1, .max_task_infos = 1, .max_string_table_length = 4096,
	};
	const struct kb_header header = {
		.target_name = "t", .timestamp_multiplier = 1, .timestamp_divisor = 1,
	};
	struct kb_barman_writer *writer;
	struct kb_barman *barman;
	struct kb_error err;
	char path[32];

	*fd = memfd_create("facts", 0);
	if (kb_barman_writer_create(&writer, *fd, &layout, &err) ||
	    kb_barman_writer_set_header(writer, &header))
		abort();
	for (; *facts; facts += 2)
		if (kb_barman_writer_fact(writer, facts[0], facts[1]))
			abort();
	if (kb_barman_writer_finish(writer, true, &err))
		abort();
	kb_barman_writer_destroy(writer);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", *fd);
	if (kb_barman_open(&barman, path, &err))
		abort();
	return barman;
}

static void test_losses(void)
{
	static const char *const facts[] = {
		"written.0", "100", "lost.3.full", "5", "lost.1.nested", "6", "lost.x.full", "7",
		"lost.1", "8", "lost.1.odd", "-x", "missed.map", "9", "overwritten.2", "10",
		"lost.99999999999.full", "11",
		"lost.0.a_reason_that_is_longer_than_the_room_for_it", "1", NULL,
	};
	static const char *const none[] = { "host", "x", NULL };
	struct kb_losses losses;
	struct kb_barman *barman;
	int fd;

	barman = open_facts(facts, &fd);
	if (kb_losses_read(&losses, barman))
		abort();
	tap_ok(losses.stated && losses.written == 100, "what_was_written_is_read");
	tap_is(losses.lost, 12, "losses_add_up_without_the_broken_ones");
	tap_is(losses.overwritten, 10, "overwritten_is_not_lost");
	tap_ok(losses.nr_rows == 3 && losses.rows[0].core == 0 && losses.rows[1].core == 1 &&
	       losses.rows[2].core == 3, "losses_are_ordered_by_cpu");
	tap_is(strlen(losses.rows[0].what), sizeof(losses.rows[0].what) - 1,
	       "long_reasons_are_cut");
	tap_ok(losses.nr_missed == 1 && losses.missed[0].count == 9, "missed_facts_are_read");
	tap_ok(strstr(kb_loss_advice("full"), "-m") && kb_loss_advice("anything")[0],
	       "there_is_always_an_advice");
	kb_losses_release(&losses);
	kb_barman_close(barman);
	close(fd);

	barman = open_facts(none, &fd);
	if (kb_losses_read(&losses, barman))
		abort();
	tap_ok(!losses.stated && !losses.nr_rows, "silence_is_not_taken_for_no_loss");
	kb_losses_release(&losses);
	kb_barman_close(barman);
	close(fd);
}

static void test_stack(void)
{
	const uint64_t chain[] = { 100, 200, 300, 400 };
	struct kb_event event = { .type = KB_EVENT_SAMPLE };

	event.sample.pc = 100;
	tap_is(kb_chain_depth(&event), 1, "without_a_chain_there_is_one_frame");
	tap_is(kb_chain_lookup(&event, 0), 100, "it_is_where_the_sample_fell");
	event.sample.chain = chain;
	event.sample.nr_chain = 4;
	event.sample.nr_chain_kernel = 2;
	tap_is(kb_chain_depth(&event), 4, "a_chain_has_its_frames");
	tap_is(kb_chain_lookup(&event, 1), 199, "callers_are_looked_up_at_the_call");
	tap_is(kb_chain_lookup(&event, 2), 300, "the_entry_into_the_kernel_is_no_call");
	tap_is(kb_chain_lookup(&event, 3), 399, "user_callers_are_calls");
	event.sample.pc = 50;
	tap_is(kb_chain_depth(&event), 5, "a_chain_without_the_pc_gets_it");
	tap_is(kb_chain_lookup(&event, 0), 50, "in_front");
	tap_is(kb_chain_lookup(&event, 3), 300, "and_the_entry_moves_behind");
}

/* Random trees: sums, order and ancestry hold. */
static void test_calltree(void)
{
	static const char *const none[] = { NULL };
	const struct kb_calltree_node *nodes;
	struct kb_symbolizer *symbolizer;
	struct kb_calltree *tree;
	struct kb_barman *barman;
	struct kb_tasks *tasks;
	uint64_t chain[8], weight, want = 0, sum = 0;
	uint32_t nr, i, wrong = 0, seen = 0;
	const uint32_t *order;
	int fd;

	barman = open_facts(none, &fd);
	if (kb_symbolizer_create(&symbolizer, barman, NULL, NULL, NULL) ||
	    kb_tasks_create(&tasks, barman) || kb_calltree_create(&tree, tasks, NULL))
		abort();
	srand(10);
	for (i = 0; i < 5000; i++) {
		struct kb_event event = { .type = KB_EVENT_SAMPLE, .task_id = rand() % 5 };
		uint32_t k;

		event.sample.nr_chain = 1 + rand() % 8;
		for (k = 0; k < event.sample.nr_chain; k++)	/* kernel, and not */
			chain[k] = rand() % 2 ? 1ULL << 63 : 4096;
		event.sample.has_pc = true;
		event.sample.pc = chain[0];
		event.sample.chain = chain;
		weight = rand() % 100;
		want += weight;
		event.sample.counters = &weight;
		event.sample.nr_counters = 1;
		if (kb_calltree_add(tree, &event, symbolizer))
			abort();
	}
	nodes = kb_calltree_finish(tree, false, &nr, &order);
	for (i = 0; i < nr; i++) {
		const struct kb_calltree_node *node = &nodes[order[i]];

		sum += node->self;
		seen += order[i];
		if (i == 0)
			continue;
		/* depth first: what stands in front is its parent, or deeper than that */
		wrong += node->depth > nodes[order[i - 1]].depth + 1;
		wrong += node->depth != nodes[node->parent].depth + 1;
		wrong += node->total > nodes[node->parent].total;
		if (nodes[order[i - 1]].depth + 1 == node->depth)
			wrong += node->parent != order[i - 1];
	}
	tap_is(sum, want, "weights_are_all_in_the_tree");
	tap_is(nodes[0].total, want, "the_root_has_them_all");
	tap_is(wrong, 0, "the_order_is_depth_first");
	tap_is(seen, nr * (nr - 1) / 2, "every_node_comes_once");
	kb_calltree_destroy(tree);
	kb_tasks_destroy(tasks);
	kb_symbolizer_destroy(symbolizer);
	kb_barman_close(barman);
	close(fd);
}

int main(void)
{
	test_table();
	test_sched();
	test_losses();
	test_stack();
	test_calltree();
	return tap_done();
}
