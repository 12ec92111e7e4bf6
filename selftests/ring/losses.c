// SPDX-License-Identifier: MIT
/* What is lost is told in front of the next record that is written: record.c. */
#include <stdio.h>
#include <stdlib.h>

#include "ring/record.h"

#define SIZE		KBARMAN_RING_MIN
#define BLOCK		(sizeof(bm_uintptr) + sizeof(struct kbarman_small_record))

static struct {
	struct bm_datastore_header_data header;
	u8 data[SIZE];
} memory __attribute__((aligned(4096)));
static struct kbarman_ring_page pages[SIZE / KBARMAN_RING_PAGE];
static struct kbarman_ring ring;
static u64 now;

u64 ring_clock(void)
{
	return ++now;
}

u64 ring_counter(void)
{
	return ++now;
}

bool ring_clock_is_called(void)
{
	return false;
}

void ring_pages_crossed(struct kbarman_ring *ring, unsigned long pages)
{
	(void)ring;
	(void)pages;
}

void ring_write_barrier(void)
{
}

void ring_read_barrier(void)
{
}

static void expect(bool is, const char *what)
{
	if (is)
		return;
	printf("Bail out! %s\n", what);
	exit(1);
}

/* A large record is lost where a small one fits, and what tells of the loss does not. */
static void no_record_hides_a_loss(void)
{
	const struct bm_protocol_custom_counter *first;
	unsigned long full;

	while (SIZE - kbarman_ring_fill(ring.header) >= 2 * BLOCK)
		kbarman_record_switch(&ring, 1, 0, 0);
	full = ring.w;
	kbarman_record_detail(&ring, 1, KBARMAN_SERIES_WAKEUPS, 1, (struct kbarman_detail) { });
	expect(local_read(&ring.lost[KBARMAN_LOST_FULL]) == 1, "a large record fits");
	kbarman_record_switch(&ring, 2, 0, 0);
	kbarman_record_switch_object(&ring, 2, 0, 0, (struct kbarman_object) { });
	kbarman_record_wakeup(&ring, 2, (struct kbarman_detail) { }, (struct kbarman_object) { });
	kbarman_record_ended(&ring, 2, KBARMAN_SERIES_SYSCALLS, (struct kbarman_detail) { },
			     &(struct kbarman_ended) { }, KBARMAN_SYSCALL_NUMBERS);
	expect(ring.w == full, "a record stands in front of what tells of an earlier loss");
	expect(local_read(&ring.lost[KBARMAN_LOST_FULL]) == 5, "a loss is not counted");

	expect(!kbarman_ring_consume(&ring, 8 * BLOCK), "blocks can't be given back");
	kbarman_record_wakeup(&ring, 3, (struct kbarman_detail) { }, (struct kbarman_object) { });
	first = (const void *)(memory.data + full % SIZE);
	if (*(const bm_uintptr *)first & BM_BLOCK_PADDING)
		first = (const void *)memory.data;
	first = (const void *)((const u8 *)first + sizeof(bm_uintptr));
	expect(first->counter == KBARMAN_SERIES_LOST && first->value == 5,
	       "the first record behind a loss does not tell of it");
	expect(kbarman_ring_owes(&ring) == KBARMAN_LOST_REASONS, "a loss is not told");
}

int main(void)
{
	ring.stamp = kbarman_record_stamp(0);
	kbarman_ring_init(&ring, &memory, pages, SIZE, 0, false);
	printf("1..1\n");
	no_record_hides_a_loss();
	printf("ok 1 - no record hides a loss\n");
	return 0;
}
