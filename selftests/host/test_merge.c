// SPDX-License-Identifier: MIT
/* The merge of rings, against rings written by the test: record by record, and by runs. */
#include <errno.h>
#include <stdio.h>

#include <kbarman/merge.h>

#include "../lib/tap.h"
#include "ring_writer.h"

#define MAX_RINGS	70

static struct ring_writer rings[MAX_RINGS];
static unsigned int nr_rings;
static struct kb_merge *merge;
static struct kb_error error;

/* ---- records, one at a time ---- */

static bool by_runs;
static struct kb_raw_run run;		/* what is left of it */
static const uint8_t *at;		/* its next block */

static bool run_is_good(void)
{
	const struct bm_protocol_record_header *header = (const void *)(at + WORD);

	return run.records && run.bytes && at == run.blocks && header->timestamp == run.first &&
	       run.first <= run.last;
}

/* The next record of the run. */
static void take_of_run(struct kb_raw_record *record)
{
	bm_uintptr length = *(const bm_uintptr *)at;
	const struct bm_protocol_record_header *header = (const void *)(at + WORD);

	*record = (struct kb_raw_record){ header, length, header->timestamp, run.source };
	if (!run.records-- || run.bytes < WORD + length)
		abort();
	run.bytes -= WORD + length;
	at += WORD + length;
	if (!run.bytes != !run.records)
		abort();
}

static int take(struct kb_raw_record *record)
{
	int ret = 1;

	if (!by_runs)
		return kb_merge_next(merge, record, &error);
	if (!run.records) {
		ret = kb_merge_next_run(merge, &run, &error);
		at = run.blocks;
		if (ret == 1 && !run_is_good())
			abort();
	}
	if (ret == 1)
		take_of_run(record);
	return ret;
}

static void ok(bool good, const char *promise)
{
	char name[128];

	snprintf(name, sizeof(name), "%s%s", promise, by_runs ? "_by_runs" : "");
	tap_ok(good, name);
}

static void equal(uint64_t got, uint64_t wanted, const char *promise)
{
	if (got != wanted)
		tap_note("%llu, not %llu", (unsigned long long)got, (unsigned long long)wanted);
	ok(got == wanted, promise);
}

/* ---- the tests ---- */

static void begin(unsigned int count, uint64_t size, bool overwrite)
{
	nr_rings = count;
	if (kb_merge_create(&merge, count, &error))
		abort();
	for (unsigned int i = 0; i < count; i++) {
		ring_writer_init(&rings[i], size, overwrite);
		if (kb_merge_add(merge, rings[i].bytes, size, 0, &error) != (int)i)
			abort();
	}
}

static void end(void)
{
	kb_merge_destroy(merge);
	for (unsigned int i = 0; i < nr_rings; i++)
		free(rings[i].bytes);
}

static void extend(uint64_t horizon)
{
	for (unsigned int i = 0; i < nr_rings; i++)
		kb_merge_extend(merge, i, rings[i].write);
	kb_merge_horizon(merge, horizon);
}

static uint32_t mark_of(const struct kb_raw_record *record)
{
	uint32_t mark;

	memcpy(&mark, (const uint8_t *)record->data + 16, sizeof(mark));
	return mark;
}

/* The next timestamps, in this order, and then no more for now. */
static bool gives(const uint64_t *timestamps, unsigned int count)
{
	struct kb_raw_record record;
	unsigned int i;
	int ret;

	for (i = 0; (ret = take(&record)) == 1; i++) {
		if (i >= count || record.timestamp != timestamps[i]) {
			tap_note("record %u is of %llu", i, (unsigned long long)record.timestamp);
			return false;
		}
	}
	if (ret || i != count)
		tap_note("%u records, then %d", i, ret);
	return !ret && i == count;
}

#define GIVES(...) \
	gives((const uint64_t[]){ __VA_ARGS__ }, \
	      sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))

static void order_of_time(void)
{
	static const uint64_t times[3][4] = { { 1, 4, 9, 20 }, { 2, 3, 10, 11 }, { 5, 6, 7, 8 } };

	begin(3, 4096, false);
	for (unsigned int i = 0; i < 3; i++)
		for (unsigned int j = 0; j < 4; j++)
			ring_put(&rings[i], i, times[i][j], 24, 0);
	extend(UINT64_MAX);
	ok(GIVES(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 20), "records_come_in_the_order_of_time");
	ok(kb_merge_position(merge, 0) == rings[0].write &&
	       kb_merge_position(merge, 2) == rings[2].write, "positions_are_at_the_end_then");
	equal(kb_merge_unordered(merge), 0, "and_none_is_out_of_order");
	end();
}

static void dry_rings(void)
{
	begin(2, 4096, false);
	ring_put(&rings[0], 0, 10, 24, 0);
	ring_put(&rings[0], 0, 20, 24, 0);
	ring_put(&rings[0], 0, 30, 24, 0);
	extend(15);
	ok(GIVES(10), "what_is_newer_than_the_horizon_waits_for_an_empty_ring");
	equal(kb_merge_position(merge, 0), 24 + WORD, "what_waits_is_not_given_back");
	ring_put(&rings[1], 1, 18, 24, 0);
	ring_put(&rings[1], 1, 25, 24, 0);
	extend(15);
	ok(GIVES(18, 20, 25), "the_last_record_of_a_ring_is_a_bound_too");
	extend(40);
	ok(GIVES(30), "a_later_horizon_sets_free_what_waited");
	ring_put(&rings[1], 1, 22, 24, 0);
	extend(UINT64_MAX);
	ok(GIVES(22) && kb_merge_unordered(merge) == 1, "late_records_are_given_and_counted");
	end();
}

static void padding(void)
{
	begin(2, 256, false);
	ring_put_padding(&rings[0], 0);
	ring_put_padding(&rings[0], 40);
	ring_put(&rings[0], 0, 5, 24, 0);
	ring_put_padding(&rings[0], 8);
	extend(UINT64_MAX);
	ok(GIVES(5), "padding_is_passed_over");
	equal(kb_merge_position(merge, 0), rings[0].write, "and_given_back");
	end();
}

/* Everything that goes in comes out once, whatever the batches. */
static void nothing_lost(void)
{
	static uint32_t next[MAX_RINGS], seen[MAX_RINGS];
	struct kb_raw_record record;
	uint64_t now = 0, last = 0, given = 0, put = 0;
	bool good = true;

	srand(1);
	begin(MAX_RINGS, 2048, false);
	for (int round = 0; round < 3000; round++) {
		for (int i = 0; i < 200; i++) {
			unsigned int ring = (unsigned int)rand() % MAX_RINGS;

			now += (unsigned int)rand() % 3;
			if (ring_put(&rings[ring], ring, now, 24 + 8 * ((unsigned int)rand() % 6),
				     next[ring])) {
				next[ring]++;
				put++;
			}
		}
		extend(round == 2999 ? UINT64_MAX : now);
		while (take(&record) == 1) {
			good &= record.timestamp >= last;
			good &= mark_of(&record) == seen[record.source]++;
			last = record.timestamp;
			given++;
		}
		for (unsigned int i = 0; i < MAX_RINGS; i++)
			rings[i].read = kb_merge_position(merge, i);
	}
	ok(good, "70_rings_in_random_batches_stay_in_order");
	equal(given, put, "and_every_record_comes_once");
	end();
}

static void overwritten(void)
{
	struct kb_raw_record record;
	uint32_t expected = 0;
	bool good = true;

	ring_writer_init(&rings[0], 1024, true);
	for (uint32_t i = 0; i < 1000; i++)
		ring_put(&rings[0], 0, i, 24 + 8 * (i % 3), i);
	if (kb_merge_create(&merge, 1, &error) ||
	    kb_merge_add(merge, rings[0].bytes, 1024, rings[0].read, &error))
		abort();
	nr_rings = 1;
	extend(UINT64_MAX);
	for (uint32_t n = 0; take(&record) == 1; n++) {
		good &= !n || mark_of(&record) == expected;
		expected = mark_of(&record) + 1;
	}
	ok(good && expected == 1000, "a_ring_that_wrapped_is_read_from_its_oldest_block");
	end();
}

static bool survives(const char *what)
{
	struct kb_raw_record record;
	int ret, told = 0;

	extend(UINT64_MAX);
	while ((ret = take(&record)))
		told += ret == -EBADMSG;
	if (told != 1)
		tap_note("%s: told %d times", what, told);
	return told == 1 && kb_merge_position(merge, 0) == rings[0].write;
}

/* A length word that can't be, in the middle of good blocks. */
static bool survives_word(bm_uintptr word)
{
	bool good;

	begin(2, 512, false);
	ring_put(&rings[0], 0, 1, 24, 0);
	ring_put(&rings[0], 0, 2, 24, 0);
	*ring_word(&rings[0], 24 + WORD) = word;
	ring_put(&rings[1], 1, 3, 24, 0);
	good = survives("bad length word");
	ring_put(&rings[0], 0, 4, 24, 0);
	extend(UINT64_MAX);
	good &= GIVES(4);
	end();
	return good;
}

static void damage(void)
{
	static const bm_uintptr words[] = {
		0, 8, 25, 1000, 1 << 20, (bm_uintptr)-1, (bm_uintptr)-8, BM_BLOCK_PADDING | 25,
		BM_BLOCK_PADDING | 1000, ~BM_BLOCK_PADDING, ~BM_BLOCK_PADDING & ~(bm_uintptr)7,
	};
	bool good = true;

	for (unsigned int i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		good &= survives_word(words[i]);
	ok(good, "a_bad_length_word_costs_one_message_and_no_other_ring");

	begin(1, 512, false);
	rings[0].write = 12345 * 8;
	ok(survives("end behind the ring"), "an_end_that_is_too_far_is_damage");
	end();
	begin(1, 512, false);
	*ring_word(&rings[0], 0) = 0;
	rings[0].write = WORD + 1;
	ok(survives("odd end"), "an_end_within_a_block_is_damage");
	end();
}

static void refusals(void)
{
	static uint64_t bytes[8];

	if (kb_merge_create(&merge, 1, &error))
		abort();
	tap_ok(kb_merge_add(merge, bytes, 48, 0, &error) == -EINVAL &&
	       kb_merge_add(merge, bytes, 0, 0, &error) == -EINVAL &&
	       kb_merge_add(merge, (char *)bytes + 1, 32, 0, &error) == -EINVAL &&
	       kb_merge_add(merge, bytes, 64, 3, &error) == -EINVAL &&
	       kb_merge_add(merge, bytes, 64, 0, &error) == 0 &&
	       kb_merge_add(merge, bytes, 64, 0, &error) == -EINVAL,
	       "rings_that_are_none_and_one_too_many_are_refused");
	kb_merge_destroy(merge);
}

int main(void)
{
	for (int runs = 0; runs < 2; runs++) {
		by_runs = runs;
		order_of_time();
		dry_rings();
		padding();
		nothing_lost();
		overwritten();
		damage();
	}
	refusals();
	return tap_done();
}
