// SPDX-License-Identifier: GPL-2.0-only
#include <linux/compiler.h>
#include <linux/kernel.h>
#include <linux/minmax.h>
#include <linux/mm.h>

#include "capture/beacon.h"
#include "capture/capture.h"
#include "capture/memory.h"
#include "capture/reserved.h"
#include "uapi/beacon.h"

/* Of one beacon. */
#define FRAMES	((PAGE_SIZE - sizeof(struct kbarman_beacon)) / sizeof(__u64))

u64 kbarman_beacon_bytes(u64 bytes)
{
	return DIV_ROUND_UP_ULL(bytes / PAGE_SIZE, FRAMES) * PAGE_SIZE;
}

static void beacon_light(const struct kbarman_capture *capture, u64 part, void *memory, u64 bytes)
{
	u64 pages = bytes / PAGE_SIZE, first, i;
	struct kbarman_beacon *beacon = memory + bytes;

	for (first = 0; first < pages; first += FRAMES, beacon = (void *)beacon + PAGE_SIZE) {
		*beacon = (struct kbarman_beacon) {
			.capture = capture->beacon,
			.page_bytes = PAGE_SIZE,
			.header_bytes = capture->layout.header_bytes,
			.map_bytes = capture->layout.map_bytes,
			.part = part,
			.first = first,
			.count = min_t(u64, pages - first, FRAMES),
		};
		for (i = 0; i < beacon->count; i++)
			beacon->frames[i] = kbarman_half_frame(capture->half, memory + (first + i) * PAGE_SIZE);
		beacon->sum = kbarman_beacon_sum(beacon);
		/* Only a whole beacon is one. On 32-bit machines there is no release of 64 bits. */
		smp_wmb();
		WRITE_ONCE(beacon->magic, KBARMAN_BEACON_MAGIC);
	}
}

void *kbarman_beacon_pages(const struct kbarman_capture *capture, u64 part, u64 bytes, int node)
{
	const u64 all = bytes + kbarman_beacon_bytes(bytes);
	void *memory = capture->half ? kbarman_half_pages(capture->half, all) : kbarman_memory_pages(all, node);

	if (memory)
		beacon_light(capture, part, memory, bytes);
	return memory;
}

void kbarman_beacon_free(const struct kbarman_capture *capture, void *memory, u64 bytes)
{
	const u64 end = bytes + kbarman_beacon_bytes(bytes);
	u64 at;

	for (at = bytes; memory && at < end; at += PAGE_SIZE)
		WRITE_ONCE(((struct kbarman_beacon *)(memory + at))->magic, 0);
	if (!capture->half)
		kbarman_memory_free(memory);
}
