// SPDX-License-Identifier: MIT
/*
 * What CPUs did tiles their time: of captures of a simulated machine, whose times are known, of
 * captures of random records, and of real ones in the folder $KBARMAN_CAPTURES.
 */
#include <dirent.h>

#include "../lib/tap.h"
#include "detail_capture.h"

#define ROUNDS	60

/* ---- what has to hold ---- */

struct tiled {
	bool seen, bad;
	int64_t first, end;
	uint64_t sum, kinds[KB_TILE_KINDS];
};

static void check_tile(struct tiled *cpus, const struct kb_tile *tile)
{
	struct tiled *cpu = &cpus[tile->core];

	if (!cpu->seen) {
		cpu->seen = true;
		cpu->first = cpu->end = tile->start;
	}
	cpu->bad |= tile->start != cpu->end || tile->end < tile->start ||
		    tile->began > tile->start || (tile->start == tile->end && !tile->ends) ||
		    tile->own < (uint64_t)(tile->end - tile->start);
	cpu->end = tile->end;
	cpu->sum += (uint64_t)(tile->end - tile->start);
	cpu->kinds[tile->kind] += (uint64_t)(tile->end - tile->start);
}

/* Are there tiles for all time from the first record of each CPU to the end of the capture? */
static bool is_tiled(struct kb_trace *trace, struct tiled *cpus)
{
	uint32_t max_cores = kb_trace_header(trace)->max_cores, i;
	int64_t *first = calloc(max_cores + 1, sizeof(*first));
	bool *seen = calloc(max_cores + 1, sizeof(*seen)), good = true;
	struct kb_tile tiles[KB_TILES_MOST];
	const struct kb_walk *walk;
	struct kb_tiles *tiling;
	int n, tile;

	must(kb_trace_rewind(trace, NULL) || kb_tiles_create(&tiling, trace, NULL), "tiles");
	while (kb_trace_next(trace, &walk, NULL) > 0) {
		if (walk->event.core < max_cores && walk->event.type != KB_EVENT_UNKNOWN &&
		    !seen[walk->event.core]) {
			seen[walk->event.core] = true;
			first[walk->event.core] = walk->ns;
		}
		n = kb_tiles_feed(tiling, walk, tiles);
		for (tile = 0; tile < n; tile++)
			check_tile(cpus, &tiles[tile]);
	}
	while (kb_tiles_end(tiling, tiles))
		check_tile(cpus, tiles);
	for (i = 0; i < max_cores; i++) {
		if (!cpus[i].seen)	/* its one record is the last one of the capture */
			good &= !seen[i] || first[i] == kb_trace_last(trace);
		else
			good &= !cpus[i].bad && seen[i] && cpus[i].first == first[i] &&
				cpus[i].end == kb_trace_last(trace) &&
				cpus[i].sum == (uint64_t)(kb_trace_last(trace) - first[i]);
	}
	kb_tiles_destroy(tiling);
	free(first);
	free(seen);
	return good;
}

static uint64_t sum_of(const uint64_t *parts, unsigned int nr)
{
	uint64_t sum = 0;

	while (nr)
		sum += parts[--nr];
	return sum;
}

/* Do the parts of all waits add up to them, and the sums of CPUs to their time? */
static bool adds_up(struct kb_trace *trace)
{
	const struct kb_latency *latency;
	struct kb_error err;
	bool good = true;
	uint32_t i;

	must(kb_latency_create(&latency, trace, NULL, &err) < 0, "latencies");
	good &= sum_of(latency->woken_parts, KB_PARTS) == latency->woken.sum_ns &&
		sum_of(latency->preempted_parts, KB_PARTS) == latency->preempted.sum_ns &&
		sum_of(latency->woken_powers, 64) == latency->woken.count;
	for (i = 0; i < latency->nr_tasks; i++)
		good &= sum_of(latency->tasks[i].woken_parts, KB_PARTS) ==
			latency->tasks[i].woken.sum_ns;
	for (i = 0; i < latency->nr_worst; i++)
		good &= sum_of(latency->worst[i].parts, KB_PARTS) == latency->worst[i].ns;
	for (i = 0; i < kb_trace_header(trace)->max_cores; i++)
		good &= sum_of(latency->cpus[i].ns, KB_TILE_KINDS) ==
			(uint64_t)(latency->cpus[i].last - latency->cpus[i].first);
	kb_latency_destroy(latency);
	return good;
}

/* ---- random records ---- */

static void add_random(struct made *made, uint64_t when)
{
	uint32_t core = random_below(CORES), task = random_below(5);

	switch (random_below(6)) {
	case 0:
		add_switch(made, core, when, task, random_below(2));
		break;
	case 1:
		add_halt(made, core, when, random_below(2), (int)random_below(3));
		break;
	case 2:
		if (!random_below(8))
			add_loss(made, core, when);
		break;
	default:
		add_detail(made, core, when, task, random_below(14), random_below(4),
			   random_below(4), random_below(5));
	}
}

static struct kb_trace *random_capture(void)
{
	unsigned int nr = random_below(400);
	struct made made;
	uint64_t now = 1000;

	begin(&made);
	while (nr--) {
		/* now and then at the same time, or out of order */
		now += random_below(8) ? random_below(100) : 0;
		add_random(&made, random_below(20) ? now : now - random_below(now));
	}
	return finish(&made);
}

static void test_random(void)
{
	bool tiled = true, sums = true;
	struct kb_trace *trace;
	int round;

	for (round = 0; round < ROUNDS; round++) {
		struct tiled cpus[CORES] = { 0 };

		trace = random_capture();
		tiled &= is_tiled(trace, cpus);
		sums &= adds_up(trace);
		kb_trace_close(trace);
	}
	tap_ok(tiled, "random_records_tile_the_time_of_each_cpu");
	tap_ok(sums, "parts_of_waits_add_up_whatever_the_records_say");
}

/* ---- a machine ---- */

struct machine {
	struct made made;
	uint64_t now[CORES];
	uint64_t kinds[CORES][KB_TILE_KINDS];
	uint32_t task[CORES];
};

/* Some time in which @core does that. */
static void pass(struct machine *machine, uint32_t core, enum kb_tile_kind kind)
{
	uint64_t ns = random_below(4) ? random_below(1000) : 0;

	machine->now[core] += ns;
	machine->kinds[core][kind] += ns;
}

static void interrupt(struct machine *machine, uint32_t core, unsigned int depth)
{
	bool ipi = random_below(2);
	uint32_t id = depth * 4 + random_below(3);	/* none is inside of itself */

	add_detail(&machine->made, core, machine->now[core], machine->task[core],
		   ipi ? KB_WHAT_IPI_ENTRY : KB_WHAT_IRQ_ENTRY, id, 0, KB_CONTEXT_IRQ);
	pass(machine, core, ipi ? KB_TILE_IPI : KB_TILE_IRQ);
	if (depth < 3 && !random_below(4)) {
		interrupt(machine, core, depth + 1);
		pass(machine, core, ipi ? KB_TILE_IPI : KB_TILE_IRQ);
	}
	add_detail(&machine->made, core, machine->now[core], machine->task[core],
		   ipi ? KB_WHAT_IPI_EXIT : KB_WHAT_IRQ_EXIT, id, 0, KB_CONTEXT_IRQ);
}

static void softirq(struct machine *machine, uint32_t core)
{
	uint32_t id = random_below(10);

	add_detail(&machine->made, core, machine->now[core], machine->task[core],
		   KB_WHAT_SOFTIRQ_ENTRY, id, 0, KB_CONTEXT_SOFTIRQ);
	pass(machine, core, KB_TILE_SOFTIRQ);
	if (!random_below(3)) {
		interrupt(machine, core, 0);
		pass(machine, core, KB_TILE_SOFTIRQ);
	}
	add_detail(&machine->made, core, machine->now[core], machine->task[core],
		   KB_WHAT_SOFTIRQ_EXIT, id, 0, KB_CONTEXT_SOFTIRQ);
}

static void halt(struct machine *machine, uint32_t core)
{
	bool inside = !random_below(3);

	add_halt(&machine->made, core, machine->now[core], true, (int)random_below(3));
	pass(machine, core, KB_TILE_HALT);
	if (inside) {		/* as some idle states do */
		interrupt(machine, core, 0);
		pass(machine, core, KB_TILE_HALT);
	}
	add_halt(&machine->made, core, machine->now[core], false, 0);
	if (!inside)
		interrupt(machine, core, 0);
}

static void step(struct machine *machine, uint32_t core)
{
	pass(machine, core, machine->task[core] ? KB_TILE_TASK : KB_TILE_IDLE);
	switch (random_below(4)) {
	case 0:
		interrupt(machine, core, 0);
		break;
	case 1:
		softirq(machine, core);
		break;
	case 2:
		if (!machine->task[core])
			halt(machine, core);
		break;
	default:
		machine->task[core] = random_below(4);
		add_switch(&machine->made, core, machine->now[core], machine->task[core],
			   random_below(2));
	}
}

/* The CPUs take turns in the capture; each is in order. Both end with the end of the slowest. */
static bool machine_is_tiled(void)
{
	struct machine machine = { .task = { 0 } };
	struct tiled cpus[CORES] = { 0 };
	struct kb_trace *trace;
	uint64_t last = 0;
	bool good;
	uint32_t i;

	begin(&machine.made);
	for (i = 0; i < CORES; i++)
		add_switch(&machine.made, i, 0, 0, false);
	for (i = 0; i < 2000; i++)
		step(&machine, random_below(CORES));
	for (i = 0; i < CORES; i++) {
		add_switch(&machine.made, i, machine.now[i], 0, true);
		last = machine.now[i] > last ? machine.now[i] : last;
	}
	for (i = 0; i < CORES; i++)
		machine.kinds[i][KB_TILE_IDLE] += last - machine.now[i];
	trace = finish(&machine.made);
	good = is_tiled(trace, cpus);
	for (i = 0; i < CORES; i++)
		good &= memcmp(cpus[i].kinds, machine.kinds[i], sizeof(cpus[i].kinds)) == 0;
	good &= adds_up(trace);
	kb_trace_close(trace);
	return good;
}

static void test_machine(void)
{
	bool good = true;
	int round;

	for (round = 0; round < ROUNDS; round++)
		good &= machine_is_tiled();
	tap_ok(good, "times_of_a_machine_are_exact_to_the_nanosecond");
}

/* ---- cases ---- */

/* The n-th tile of a capture. */
static struct kb_tile tile_of(struct kb_trace *trace, unsigned int n)
{
	struct kb_tile tiles[KB_TILES_MOST] = { 0 };
	const struct kb_walk *walk;
	struct kb_tiles *tiling;
	int nr, i;

	must(kb_trace_rewind(trace, NULL) || kb_tiles_create(&tiling, trace, NULL), "tiles");
	while (kb_trace_next(trace, &walk, NULL) > 0) {
		nr = kb_tiles_feed(tiling, walk, tiles);
		for (i = 0; i < nr; i++)
			if (!n--)
				goto found;
	}
	for (i = 0; kb_tiles_end(tiling, tiles); )
		if (!n--)
			goto found;
	must(1, "no such tile");
found:
	kb_tiles_destroy(tiling);
	return tiles[i];
}

static void test_loss(void)
{
	struct kb_trace *trace;
	struct kb_tile tile;
	struct made made;

	begin(&made);
	add_switch(&made, 0, 100, 1, false);
	add_detail(&made, 0, 200, 1, KB_WHAT_IRQ_ENTRY, 1, 0, KB_CONTEXT_IRQ);
	add_loss(&made, 0, 500);
	add_switch(&made, 0, 600, 2, false);
	trace = finish(&made);
	tile = tile_of(trace, 1);
	tap_ok(tile.kind == KB_TILE_LOST && tile.start == 200 && tile.end == 500 && !tile.has_task,
	       "a_gap_begins_with_the_last_record_before_it");
	tile = tile_of(trace, 2);
	tap_ok(tile.kind == KB_TILE_UNKNOWN && tile.end == 600, "behind_it_nothing_is_known");
	kb_trace_close(trace);
}

/* As with PREEMPT_RT. */
static void test_parked(void)
{
	struct kb_trace *trace;
	struct kb_tile tile;
	struct made made;

	begin(&made);
	add_switch(&made, 0, 100, 1, false);
	add_detail(&made, 0, 200, 1, KB_WHAT_SOFTIRQ_ENTRY, 3, 0, KB_CONTEXT_SOFTIRQ);
	add_switch(&made, 0, 300, 2, false);
	add_switch(&made, 0, 350, 1, false);
	add_detail(&made, 0, 400, 1, KB_WHAT_SOFTIRQ_EXIT, 3, 0, KB_CONTEXT_SOFTIRQ);
	add_switch(&made, 0, 450, 2, false);
	trace = finish(&made);
	tile = tile_of(trace, 2);
	tap_ok(tile.kind == KB_TILE_TASK && tile.task_id == 2, "another_task_runs_in_a_softirq");
	tile = tile_of(trace, 3);
	tap_ok(tile.kind == KB_TILE_SOFTIRQ && tile.start == 350 && tile.ends &&
	       tile.began == 200 && tile.own == 150, "a_softirq_goes_on_with_its_task");
	kb_trace_close(trace);
}

static bool is_capture(const char *name)
{
	size_t length = strlen(name);

	return length > 4 && strcmp(name + length - 4, ".cap") == 0;
}

/* What a CPU of a capture did, by kind, to its end. */
static struct tiled kinds_of(struct kb_trace *trace)
{
	struct tiled cpus[CORES] = { 0 };

	is_tiled(trace, cpus);
	kb_trace_close(trace);
	return cpus[0];
}

/* The interrupt that closes the gate of a CPU has a begin and no end. */
static void test_endless(void)
{
	struct made made;
	struct tiled cpu;

	begin(&made);
	add_switch(&made, 0, 100, 1, false);
	add_detail(&made, 0, 200, 1, KB_WHAT_IRQ_ENTRY, 1, 0, KB_CONTEXT_IRQ);
	add_detail(&made, 0, 210, 1, KB_WHAT_IPI_ENTRY, 4, 0, KB_CONTEXT_IRQ);
	add_switch(&made, 1, 9000, 0, false);
	cpu = kinds_of(finish(&made));
	tap_ok(cpu.kinds[KB_TILE_IRQ] == 10 && cpu.kinds[KB_TILE_IPI] == 0 &&
	       cpu.kinds[KB_TILE_TASK] == 8890, "an_interrupt_does_not_last_until_the_recording_ends");

	begin(&made);
	add_switch(&made, 0, 100, 1, false);
	add_detail(&made, 0, 200, 1, KB_WHAT_IPI_ENTRY, 4, 0, KB_CONTEXT_IRQ);
	add_switch(&made, 0, 900, 0, true);
	add_halt(&made, 0, 1000, true, 1);
	add_detail(&made, 0, 2000, 0, KB_WHAT_IPI_ENTRY, 4, 0, KB_CONTEXT_IRQ);
	add_halt(&made, 0, 9000, false, 0);
	cpu = kinds_of(finish(&made));
	tap_ok(cpu.kinds[KB_TILE_IPI] == 0 && cpu.kinds[KB_TILE_TASK] == 800 &&
	       cpu.kinds[KB_TILE_HALT] == 8000, "nor_until_the_next_switch_or_halt");

	begin(&made);
	add_switch(&made, 0, 100, 1, false);
	add_detail(&made, 0, 200, 1, KB_WHAT_IRQ_ENTRY, 1, 0, KB_CONTEXT_IRQ);
	add_detail(&made, 0, 500, 1, KB_WHAT_SOFTIRQ_ENTRY, 3, 0, KB_CONTEXT_SOFTIRQ);
	add_detail(&made, 0, 600, 1, KB_WHAT_IRQ_ENTRY, 1, 0, KB_CONTEXT_IRQ);
	add_detail(&made, 0, 800, 1, KB_WHAT_SOFTIRQ_EXIT, 3, 0, KB_CONTEXT_SOFTIRQ);
	cpu = kinds_of(finish(&made));
	tap_ok(cpu.kinds[KB_TILE_IRQ] == 0 && cpu.kinds[KB_TILE_TASK] == 400 &&
	       cpu.kinds[KB_TILE_SOFTIRQ] == 300, "a_softirq_begins_and_ends_in_no_interrupt");
}

/* A softirq of PREEMPT_RT that ended in a gap does not go on behind it. */
static void test_parked_gap(void)
{
	struct made made;
	struct tiled cpu;

	begin(&made);
	add_switch(&made, 0, 100, 1, false);
	add_detail(&made, 0, 200, 1, KB_WHAT_SOFTIRQ_ENTRY, 3, 0, KB_CONTEXT_SOFTIRQ);
	add_switch(&made, 0, 300, 2, false);
	add_loss(&made, 0, 400);
	add_switch(&made, 0, 500, 1, false);
	add_switch(&made, 0, 900, 2, true);
	add_switch(&made, 0, 1000, 1, false);
	add_switch(&made, 0, 2000, 0, true);
	cpu = kinds_of(finish(&made));
	tap_ok(cpu.kinds[KB_TILE_SOFTIRQ] == 100 && cpu.kinds[KB_TILE_TASK] == 1600,
	       "a_softirq_is_over_behind_a_gap");
}

static void test_real(void)
{
	const char *folder = getenv("KBARMAN_CAPTURES");
	DIR *dir = folder ? opendir(folder) : NULL;
	unsigned int nr = 0, bad = 0;
	struct dirent *entry;
	char path[4096];

	if (!dir) {
		tap_skip("real_captures_are_tiled", "KBARMAN_CAPTURES names no folder");
		return;
	}
	while ((entry = readdir(dir))) {
		struct kb_trace *trace;
		struct tiled *cpus;

		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		if (!is_capture(entry->d_name))
			continue;
		nr++;
		if (kb_trace_open(&trace, path, NULL, NULL)) {
			bad++;
			tap_note("%s does not open", path);
			continue;
		}
		cpus = calloc(kb_trace_header(trace)->max_cores + 1, sizeof(*cpus));
		if (!is_tiled(trace, cpus) || !adds_up(trace)) {
			bad++;
			tap_note("%s", path);
		}
		free(cpus);
		kb_trace_close(trace);
	}
	closedir(dir);
	tap_note("%u captures", nr);
	tap_ok(nr && !bad, "real_captures_are_tiled");
}

int main(void)
{
	random_start();
	test_loss();
	test_parked();
	test_parked_gap();
	test_endless();
	test_machine();
	test_random();
	test_real();
	return tap_done();
}
