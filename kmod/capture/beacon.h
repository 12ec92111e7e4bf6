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

/*
 * As kbarman_memory_pages() and kbarman_memory_free(), or pages of the half of @capture: the memory of @part
 * (KBARMAN_BEACON_*), with beacons behind @bytes as long as it is there. @capture has its layout and its beacons'
 * number. Context: task.
 */
void *kbarman_beacon_pages(const struct kbarman_capture *capture, u64 part, u64 bytes, int node);
/* @memory: NULL is allowed. */
void kbarman_beacon_free(const struct kbarman_capture *capture, void *memory, u64 bytes);

#endif /* KBARMAN_BEACON_H */
