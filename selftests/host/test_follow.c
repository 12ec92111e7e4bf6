// SPDX-License-Identifier: MIT
/*
 * The rings of a running session, written by the test between two looks and, as an interrupt may do
 * it, in the middle of one: what is given out is in order, whole, and all that was not overwritten;
 * what is missing is told.
 */
#include <stdio.h>

#include "record/merge/follow.h"

#include "../lib/random.h"
#include "../lib/tap.h"
#include "ring_writer.h"

#define CPUS	3
#define BYTES	16384
#define ROUNDS	20000

/* ---- a device ---- */

static struct cpu {
	struct ring_writer ring;
	struct bm_datastore_header_data store;
	uint32_t written;		/* number of the last record */
	uint32_t seen;			/* ... that was given out, */
	uint64_t seen_at;		/* ... and its time; without any, when the test began */
} cpus[CPUS];

static uint64_t now;
static unsigned int surprises;		/* how often the writer may write while a ring is copied */

int kb_device_query(struct kb_device *device, struct kbarman_query *query, struct kb_error *err)
{
	(void)device;
	(void)err;
	*query = (struct kbarman_query){ .nr_cpus = CPUS };
	return 0;
}

int kb_device_stats(struct kb_device *device, unsigned int cpu, struct kbarman_stats *stats,
		    struct kb_error *err)
{
	(void)device;
	(void)stats;
	(void)err;
	return cpu < CPUS ? 0 : -1;
}

int kb_device_clock(struct kb_device *device, struct kbarman_clock *clock, struct kb_error *err)
{
	(void)device;
	(void)err;
	*clock = (struct kbarman_clock){ .now.timestamp = now };
	return 0;
}

int kb_device_map(struct kb_device *device, unsigned int cpu, struct kb_mapped *mapped,
		  struct kb_error *err)
{
	(void)device;
	(void)err;
	*mapped = (struct kb_mapped){
		.store = &cpus[cpu].store, .ring = cpus[cpu].ring.bytes, .ring_bytes = BYTES,
	};
	return 0;
}

void kb_mapped_unmap(struct kb_mapped *mapped)
{
	(void)mapped;
}

static void publish(struct cpu *cpu)
{
	cpu->store.read_offset = cpu->ring.read;
	cpu->store.write_offset = cpu->ring.write;
}

static void write_some(struct cpu *cpu, unsigned int most)
{
	for (unsigned int n = random_below(most + 1); n; n--) {
		now += random_below(3);
		ring_put(&cpu->ring, (unsigned int)(cpu - cpus), now, 24 + 8 * random_below(20),
			 ++cpu->written);
	}
	publish(cpu);
}

uint64_t kb_mapped_write_offset(const struct kb_mapped *mapped, uint64_t near)
{
	(void)near;
	return mapped->store->write_offset;
}

/* A look at read_offset stands in front of the copy and behind it: here the writer comes in between. */
uint64_t kb_mapped_read_offset(const struct kb_mapped *mapped, uint64_t near)
{
	uint64_t offset = mapped->store->read_offset;

	(void)near;
	for (unsigned int i = 0; i < CPUS && surprises; i++) {
		if (mapped->store != &cpus[i].store || random_below(4))
			continue;
		surprises--;
		write_some(&cpus[i], 60);
	}
	return random_below(2) ? offset : mapped->store->read_offset;
}

/* ---- promises ---- */

static uint32_t mark_of(const struct kb_followed *record)
{
	uint32_t mark;

	memcpy(&mark, (const uint8_t *)record->block + WORD + sizeof(struct bm_protocol_record_header),
	       sizeof(mark));
	return mark;
}

struct found {
	bool ordered, whole, told;
	uint64_t given, gaps;
};

static void take(struct found *found, const struct kb_followed *record, uint64_t *last)
{
	struct cpu *cpu = &cpus[record->cpu];
	uint32_t mark = mark_of(record);

	found->given++;
	found->ordered &= record->timestamp >= *last;
	*last = record->timestamp;
	found->whole &= mark > cpu->seen && mark <= cpu->written;
	/* numbers that are missing are told, and what is told is missing */
	found->told &= record->behind_gap == (mark != cpu->seen + 1) && record->gap_from == cpu->seen_at;
	cpu->seen_at = record->timestamp;
	found->gaps += record->behind_gap;
	cpu->seen = mark;
}

/* The round has read all that it may, and the horizon was right: nothing older comes later. */
static void drain(struct kb_follow *follow, uint64_t horizon, struct found *found, uint64_t *last)
{
	struct kb_followed record;

	while (kb_follow_next(follow, horizon, &record) > 0)
		take(found, &record, last);
}

enum how { SLOWLY, FAST, HELD };	/* HELD: records often wait for the horizon while more is lost */

static void test_random(enum how how)
{
	static const char *const names[][3] = {
		{ "records_are_in_order", "each_is_whole_and_comes_once", "none_is_missing" },
		{ "also_those_written_meanwhile", "also_where_others_are_overwritten", "what_is_missing_is_told" },
		{ "also_those_that_wait", "also_while_others_are_overwritten", "what_is_missing_behind_these_is_told" },
	};
	bool slowly = how == SLOWLY;
	struct found found = { true, true, true, 0, 0 };
	struct kb_follow_stats stats;
	struct kb_follow *follow;
	uint64_t last = 0, look, all = 0;

	now += 1000;
	for (unsigned int i = 0; i < CPUS; i++) {
		cpus[i] = (struct cpu){ .seen_at = now };
		ring_writer_init(&cpus[i].ring, BYTES, true);
		publish(&cpus[i]);
	}
	if (kb_follow_create(&follow, NULL, NULL))
		return;
	for (int round = 0; round < ROUNDS; round++) {
		for (unsigned int i = 0; i < CPUS; i++)
			write_some(&cpus[i], slowly ? 20 : random_below(how == HELD ? 5 : 50) ? 20 : 400);
		surprises = slowly ? 0 : random_below(4);
		if (kb_follow_look(follow, &look, NULL))
			break;
		/* What is written in the middle of a look is stamped later. */
		drain(follow, how == HELD && random_below(3) ? 0 : look, &found, &last);
	}
	surprises = 0;
	if (!kb_follow_look(follow, &look, NULL))
		drain(follow, UINT64_MAX, &found, &last);
	kb_follow_stats(follow, &stats);
	kb_follow_destroy(follow);
	for (unsigned int i = 0; i < CPUS; i++) {
		all += cpus[i].written;
		found.whole &= cpus[i].seen == cpus[i].written;
		free(cpus[i].ring.bytes);
	}
	tap_ok(found.ordered, names[how][0]);
	tap_ok(found.whole, names[how][1]);
	tap_ok(found.told, names[how][2]);
	if (slowly)
		tap_ok(found.given == all && !found.gaps && !stats.lost_times, "nothing_is_lost_slowly");
	else
		tap_ok(found.gaps > 100 && stats.lost_times >= found.gaps && stats.lost_bytes > 0 &&
		       found.given > all / 16, how == FAST ? "and_counted" : "and_counted_as_well");
}

int main(void)
{
	test_random(SLOWLY);
	test_random(FAST);
	test_random(HELD);
	return tap_done();
}
