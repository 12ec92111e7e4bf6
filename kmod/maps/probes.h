/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What sees new mappings, for all sessions: kprobes, and for kernel modules a notifier. Modules
 * that are loaded while a session records get rows of task 0.
 *
 * Linux calls perf_event_mmap() for every new mapping, whatever creates it. A kprobe there sees all
 * mappings, even of a process that lives for a few milliseconds. There are two exceptions. Mappings
 * that mremap() moves are seen by a kprobe at copy_vma(). Mappings that mremap() extends in place
 * are not seen.
 */
#ifndef KBARMAN_MAPS_PROBES_H
#define KBARMAN_MAPS_PROBES_H

#include <linux/types.h>

struct kbarman_capture;
struct kbarman_maps;

/* Find out which new mappings can be seen when they are made, and whether modules can. */
int kbarman_maps_probes_init(void);
void kbarman_maps_probes_exit(void);

/* KBARMAN_FEATURE_MAPS*, as found at module init or by the last start or stop. Context: any. */
u32 kbarman_maps_features(void);

/*
 * They report to @maps, as far as this kernel has them; they do no more. Wait for an RCU
 * grace period after kbarman_maps_probes_remove() for those that still run. Context: task.
 */
void kbarman_maps_probes_add(struct kbarman_maps *maps);
void kbarman_maps_probes_remove(struct kbarman_maps *maps);

/* Write into the capture which mappings are not seen. Context: any but NMI. */
void kbarman_maps_probes_tell(struct kbarman_capture *capture);

#endif /* KBARMAN_MAPS_PROBES_H */
