/* SPDX-License-Identifier: MIT */
/* Records that wait, in the order in which they came: copies, because their ring goes on. */
#ifndef KB_LIB_RECORD_RECORDER_WAITING_H
#define KB_LIB_RECORD_RECORDER_WAITING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kbarman/merge.h>

struct kb_waiting {	/* zeroed: empty */
	uint8_t *bytes;
	size_t first, end, max;
	uint64_t removed;	/* bytes, of all records that have left */
};

static inline bool kb_waiting_is_empty(const struct kb_waiting *waiting)
{
	return waiting->first == waiting->end;
}

static inline size_t kb_waiting_bytes(const struct kb_waiting *waiting)
{
	return waiting->end - waiting->first;
}

/* Where the next record will be. This stays its place until it is removed. */
static inline uint64_t kb_waiting_place(const struct kb_waiting *waiting)
{
	return waiting->removed + kb_waiting_bytes(waiting);
}

/* Returns 0 or -ENOMEM. */
int kb_waiting_add(struct kb_waiting *waiting, const struct kb_raw_record *record);

/* The first one; its source is 0. It is valid until the next change. There has to be one. */
struct kb_raw_record kb_waiting_first(const struct kb_waiting *waiting);
void kb_waiting_remove_first(struct kb_waiting *waiting);

/*
 * The record at *@at, which is 0 for the first one that waits and then that of the next one. False:
 * there is no other. It is valid until the next change.
 */
bool kb_waiting_next(const struct kb_waiting *waiting, size_t *at, struct kb_raw_record *record);

/*
 * If the record at @place still waits: its bytes, and how many they are, until the next change. They
 * may be changed, and cut to @length, which are not more than it has. NULL: it does not wait.
 */
uint8_t *kb_waiting_at(struct kb_waiting *waiting, uint64_t place, size_t *length);
void kb_waiting_cut(struct kb_waiting *waiting, uint64_t place, size_t length);

void kb_waiting_release(struct kb_waiting *waiting);

#endif
