/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The pages that say where the parts of a capture are (uapi/beacon.h). Those of a part stand behind it, in the same
 * memory; maps end before them.
 */
#ifndef KBARMAN_BEACON_H
#define KBARMAN_BEACON_H

#include <linux/types.h>

struct kbarman_capture;

/* What the beacons of a part of @bytes, whole pages, need: whole pages as well. */
u64 kbarman_beacon_bytes(u64 bytes);

/* As kbarman_memory_pages(), with room for beacons behind @bytes. */
void *kbarman_beacon_pages(u64 bytes, int node);

/*
 * Write the beacons of @part (KBARMAN_BEACON_*), which is @bytes at @memory of kbarman_beacon_pages(); put them out,
 * and free @memory, or NULL. Context: task.
 */
void kbarman_beacon_light(const struct kbarman_capture *capture, u64 part, void *memory, u64 bytes);
void kbarman_beacon_free(void *memory, u64 bytes);

#endif /* KBARMAN_BEACON_H */
