/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The worker of a session's mappings. It may sleep. It takes facts out of the queue, looks up
 * paths, and adds rows (spaces.h).
 */
#ifndef KBARMAN_MAPS_WORKER_H
#define KBARMAN_MAPS_WORKER_H

struct kbarman_maps;

void kbarman_maps_worker_init(struct kbarman_maps *maps);

/* Begin with a walk of all address spaces. Context: task. */
void kbarman_maps_worker_begin(struct kbarman_maps *maps);

/*
 * Wait until all that was reported is handled, in bounded time. Nobody reports anything any more.
 * Context: task.
 */
void kbarman_maps_worker_end(struct kbarman_maps *maps);

#endif /* KBARMAN_MAPS_WORKER_H */
