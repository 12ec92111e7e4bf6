/* SPDX-License-Identifier: GPL-2.0-only */
/* The life of a capture: its memory, and the empty header with which a recording begins. */
#ifndef KBARMAN_STORAGE_H
#define KBARMAN_STORAGE_H

#include <linux/types.h>

struct kbarman_capture;
struct kbarman_layout;

/* Fill in the out fields of @layout. -EINVAL if a size is too large. */
int kbarman_layout_init(struct kbarman_layout *layout);

/* Bytes that kbarman_capture_create() allocates, but for a half. The rings are not included. */
u64 kbarman_layout_memory(const struct kbarman_layout *layout);
/* Bytes of a half that the header and @rings rings take. */
u64 kbarman_layout_reserved(const struct kbarman_layout *layout, unsigned int rings);

/*
 * Allocate the header and the tables, without rings, and charge them to @user. With @reuse,
 * rows of the tables can be used again. Returns the capture with one reference, or an ERR_PTR:
 * -ENOMEM, or -EDQUOT if @user has too much memory; or as kbarman_half_take(). Context: task.
 */
struct kbarman_capture *kbarman_capture_create(const struct kbarman_layout *layout, bool reuse,
					       u32 user);
void kbarman_capture_get(struct kbarman_capture *capture);
void kbarman_capture_put(struct kbarman_capture *capture);	/* NULL is allowed */

/*
 * Charge more @bytes to the user of @capture, or fewer. 0, -ENOMEM or -EDQUOT. Context: task,
 * session's lock held.
 */
int kbarman_capture_charge(struct kbarman_capture *capture, u64 bytes);
void kbarman_capture_refund(struct kbarman_capture *capture, u64 bytes);

/*
 * Allocate the ring of @cpu, if it has none. 0, -ENOMEM or -EDQUOT. Context: task, session's lock
 * held.
 */
int kbarman_capture_add_ring(struct kbarman_capture *capture, int cpu);

/*
 * Make room for @bytes of symbols beside the rings, of which there may be @rings. The capture has no symbols yet.
 * 0, -ENOMEM, -EDQUOT, or -ENOSPC: its half has no room. Context: as kbarman_capture_add_ring().
 */
int kbarman_capture_add_symbols(struct kbarman_capture *capture, u64 bytes, unsigned int rings);

/*
 * Bytes that readers have not given back, or may read, of the ring that has most; with @positions
 * those behind the position of the CPU. Context: any.
 */
u64 kbarman_capture_fill(const struct kbarman_capture *capture, const u64 *positions);

/* The memory at @offset in the map of @cpu, or NULL. */
void *kbarman_capture_at(struct kbarman_capture *capture, int cpu, size_t offset);

/*
 * Empty the tables and write the fixed fields and the charts. Context: task; no other task writes
 * to the tables.
 */
void kbarman_capture_reset(struct kbarman_capture *capture, const char *target_name,
			   u32 sample_rate);

#endif /* KBARMAN_STORAGE_H */
