// SPDX-License-Identifier: MIT
/*
 * Call chains of short waits are left out, and nothing else. Random tasks run on random CPUs; the
 * test knows how long each of them really waited.
 */
#include <stdlib.h>
#include <string.h>

#include <kbarman/device.h>

#include "record/recorder/short_waits.h"

#include "../lib/random.h"
#include "../lib/tap.h"

#define RECORDS	20000U
#define CPUS	4U
#define TASKS	300U
#define MIN	1000U
#define LONGEST	240U	/* bytes of a record */
#define NEVER	UINT64_MAX
#define CHAIN	((size_t)BM_TASK_SWITCH_CHAIN_OFFSET)
#define EMPTY	(CHAIN + sizeof(struct bm_kbarman_callchain))	/* behind an empty chain */
#define OBJECT	sizeof(struct bm_kbarman_object)

/* What the test knows of a record. */
struct truth {
	uint8_t bytes[LONGEST];
	size_t length;
	uint64_t timestamp;
	bool chain, object;
	uint64_t wait;		/* of the task that leaves here, from then on */
	bool gone;		/* the ring did not keep it */
};

static struct truth truth[RECORDS];

struct world {
	unsigned int nr_cpus, nr_tasks;
	bool loses;		/* records now and then, and tells of it */
	bool begins_late;	/* each ring at another time, as in overwrite mode */
	size_t max_bytes;
};

struct counts {
	unsigned int wrong, missing, surplus, cut, kept;
	size_t most;		/* bytes that waited */
};

static void put(struct truth *t, uint32_t type, uint32_t cpu, uint64_t timestamp, size_t length)
{
	struct bm_protocol_record_header header = { type, cpu, timestamp };

	*t = (struct truth) { .length = length, .timestamp = timestamp, };
	for (size_t i = 0; i < LONGEST; i++)
		t->bytes[i] = (uint8_t)random_u64();
	memcpy(t->bytes, &header, sizeof(header));
}

static void put_switch(struct truth *t, uint32_t cpu, uint64_t timestamp, uint32_t task, bool chain)
{
	bool object = random_below(2);
	size_t length = chain ? EMPTY + 8 + 8 * random_below((LONGEST - EMPTY - OBJECT) / 8) :
			object ? EMPTY : CHAIN;

	put(t, BM_RECORD_TASK_SWITCH, cpu, timestamp, length + (object ? OBJECT : 0));
	memcpy(t->bytes + 16, &task, sizeof(task));
	t->bytes[CHAIN - 1] = object ? BM_TASK_SWITCH_OBJECT : 0;
	if (!chain)
		memset(t->bytes + CHAIN, 0, EMPTY - CHAIN);
	t->chain = chain;
	t->object = object;
	t->wait = NEVER;
}

/* A CPU runs another task or idles, and it may be that nobody hears of it. */
static void make(const struct world *world)
{
	uint32_t running[CPUS], on[TASKS + 1];
	struct truth *left[TASKS + 1] = { NULL };	/* where a task waits */
	uint64_t now = 1;

	memset(on, 0xff, sizeof(on));
	for (uint32_t cpu = 0; cpu < CPUS; cpu++)
		running[cpu] = 0;
	for (unsigned int i = 0; i < RECORDS; i++) {
		struct truth *t = &truth[i];
		uint32_t cpu = (uint32_t)random_below(world->nr_cpus), task;
		unsigned int what = (unsigned int)random_below(100);

		now += random_below(10) ? random_below(20) : random_below(3 * MIN);
		if (what < 20) {
			put(t, BM_RECORD_SAMPLE_WITH_PC, cpu, now, 32 + 8 * random_below(20));
			continue;
		}
		task = random_below(3) ? (uint32_t)random_below(world->nr_tasks) + 1 : 0;
		if (task && on[task] < CPUS)
			task = 0;
		if (left[task] && task) {
			left[task]->wait = now - left[task]->timestamp;
			left[task] = NULL;
		}
		if (world->loses && what < 25) {
			/* the switch is lost */
			struct bm_protocol_custom_counter counter = { .task_id = 0, .counter = 0 };

			put(t, BM_RECORD_CUSTOM_COUNTER, cpu, now, sizeof(counter));
			memcpy(t->bytes + 16, (char *)&counter + 16, sizeof(counter) - 16);
			on[running[cpu]] = UINT32_MAX;
		} else {
			put_switch(t, cpu, now, task, running[cpu] && random_below(10));
			if (t->chain)
				left[running[cpu]] = t;
			on[running[cpu]] = UINT32_MAX;
		}
		running[cpu] = task;
		if (task)
			on[task] = cpu;
	}
	for (unsigned int i = 0; world->begins_late && i < RECORDS / 4; i++) {
		uint32_t cpu;

		memcpy(&cpu, truth[i].bytes + 4, sizeof(cpu));
		truth[i].gone = i < RECORDS / 4 / (cpu + 1);
	}
}

static void judge(const struct world *world, struct counts *counts, const struct truth *t,
		  const struct kb_raw_record *record)
{
	uint8_t without[EMPTY + OBJECT] = { 0 };
	size_t least = t->object ? sizeof(without) : CHAIN;
	bool cut = t->chain && record->length == least;

	/* The chain is empty, or not there; what the task waits for is behind it. */
	memcpy(without, t->bytes, CHAIN);
	memcpy(without + EMPTY, t->bytes + t->length - OBJECT, OBJECT);
	counts->wrong += record->length != (cut ? least : t->length) || record->timestamp != t->timestamp ||
			 memcmp(record->data, cut ? without : t->bytes, record->length) != 0;
	counts->missing += cut && t->wait >= MIN;
	/* Where records are not there, nobody knows how short a wait was. */
	counts->surplus += !cut && t->chain && t->wait < MIN && !world->loses &&
			   !world->begins_late;
	counts->cut += cut;
	counts->kept += t->chain && !cut;
}

static struct counts run(const struct world *world)
{
	struct counts counts = { 0 };
	struct kb_short_waits *waits;
	struct kb_raw_record record;
	unsigned int out = 0;
	size_t bytes = 0;

	make(world);
	if (kb_short_waits_create(&waits, MIN, world->nr_cpus, world->max_bytes))
		abort();
	for (unsigned int i = 0; i <= RECORDS; i++) {
		if (i < RECORDS && truth[i].gone)
			continue;
		if (i < RECORDS) {
			record = (struct kb_raw_record) {
				.data = truth[i].bytes, .length = truth[i].length,
				.timestamp = truth[i].timestamp,
			};
			counts.wrong += kb_short_waits_add(waits, &record) != 0;
			bytes += truth[i].length;
		}
		while (kb_short_waits_first(waits, i < RECORDS ? 0 : UINT64_MAX, &record)) {
			while (out < RECORDS && truth[out].gone)
				out++;
			if (out == RECORDS)
				abort();
			bytes -= truth[out].length;
			judge(world, &counts, &truth[out++], &record);
			kb_short_waits_remove_first(waits);
		}
		counts.most = bytes > counts.most ? bytes : counts.most;
	}
	counts.wrong += out != RECORDS || kb_short_waits_count(waits) != counts.cut;
	kb_short_waits_destroy(waits);
	return counts;
}

static void try_world(const char *name, const struct world *world)
{
	struct counts counts = run(world);

	if (!tap_ok(!counts.wrong && !counts.missing && !counts.surplus &&
		    counts.cut > 50 && counts.kept > 50, name))
		tap_note("%u differ, %u chains are missing, %u are too many; %u cut, %u kept",
			 counts.wrong, counts.missing, counts.surplus, counts.cut, counts.kept);
}

/* More records than may wait. */
static void limit(void)
{
	struct world world = { .nr_cpus = 4, .nr_tasks = 40, .max_bytes = 4096 };
	struct counts counts = run(&world);

	tap_ok(!counts.wrong && !counts.missing, "beyond_the_limit_nothing_is_lost_either");
	tap_ok(counts.surplus && counts.cut, "what_does_not_fit_keeps_its_chain");
	tap_ok(counts.most <= world.max_bytes + LONGEST, "no_more_waits_than_the_limit");
}

/* Task 7 leaves CPU 0 with a chain at 100, and does not run again. */
static void time_goes_by(void)
{
	struct truth to, from, later;
	struct kb_short_waits *waits;
	struct kb_raw_record record;
	bool early, first, second;

	put_switch(&to, 0, 50, 7, false);
	put_switch(&from, 0, 100, 0, true);
	put(&later, BM_RECORD_SAMPLE_WITH_PC, 0, 200, 40);
	if (kb_short_waits_create(&waits, MIN, 1, 1 << 20))
		abort();
	for (unsigned int i = 0; i < 3; i++) {
		const struct truth *t = i == 0 ? &to : i == 1 ? &from : &later;

		record = (struct kb_raw_record) {
			.data = t->bytes, .length = t->length, .timestamp = t->timestamp,
		};
		if (kb_short_waits_add(waits, &record))
			abort();
	}
	tap_ok(kb_short_waits_first(waits, 0, &record) && record.timestamp == 50,
	       "what_came_before_a_wait_does_not_wait");
	kb_short_waits_remove_first(waits);
	early = kb_short_waits_first(waits, 100 + MIN - 1, &record);
	first = kb_short_waits_first(waits, 100 + MIN, &record) && record.length == from.length;
	if (first)
		kb_short_waits_remove_first(waits);
	second = kb_short_waits_first(waits, 0, &record) && record.timestamp == 200;
	tap_ok(!early && first && second, "a_wait_is_long_when_the_time_has_gone_by_without_records");
	kb_short_waits_destroy(waits);
}

int main(void)
{
	random_start();
	try_world("one_cpu", &(struct world) { 1, 5, .max_bytes = SIZE_MAX });
	try_world("tasks_that_change_their_cpu", &(struct world) { 4, 10, .max_bytes = SIZE_MAX });
	try_world("many_tasks", &(struct world) { 4, TASKS, .max_bytes = SIZE_MAX });
	try_world("records_that_are_lost",
		  &(struct world) { 4, 10, .loses = true, .max_bytes = SIZE_MAX });
	try_world("rings_that_begin_in_the_middle",
		  &(struct world) { 4, 10, .begins_late = true, .max_bytes = SIZE_MAX });
	limit();
	time_goes_by();
	return tap_done();
}
