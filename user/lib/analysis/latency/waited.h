/* SPDX-License-Identifier: MIT */
/* What an object says that a task waits for, as a row of a table of waits, and what tells it from others. */
#ifndef KB_LIB_ANALYSIS_LATENCY_WAITED_H
#define KB_LIB_ANALYSIS_LATENCY_WAITED_H

#include <kbarman/names.h>
#include <kbarman/waits.h>

#define KB_WAITED_KEY	3	/* words */
#define KB_WAITED_TEXT	640	/* bytes */

/* Whether the number of an object of this kind says which one it is. */
bool kb_waited_has_identity(uint8_t object);

static inline bool kb_waited_is_lock(uint8_t object)
{
	return object >= KB_OBJECT_FUTEX && object <= KB_OBJECT_RWSEM_WRITE;
}

/* Whether the task of @slice, which ends with @event, waits from then on. */
static inline bool kb_waited_begins(const struct kb_event *event, const struct kb_slice *slice)
{
	return event->type == KB_EVENT_TASK_SWITCH && slice->how == KB_END_BLOCKED && slice->has_task &&
	       slice->task_id;
}

/*
 * Whether something holds the task of @slice up, which waits from @event on: a lock that somebody has, a disk, or where
 * no signal helps. *@holder is who has the lock; 0: it is none, or that is not known.
 */
bool kb_waited_is_held_up(const struct kb_header *header, const struct kb_names *names, const struct kb_event *event,
			  const struct kb_slice *slice, uint32_t *holder);

/*
 * What @task_id, whose wait begins or ended at @ticks, waits for by @object: the members of the row that say what it
 * is. A fault has its address.
 */
struct kb_waits_row kb_waited(const struct kb_names *names, const struct kb_tasks *tasks,
			      const struct kb_object *object, uint32_t task_id, uint64_t ticks);

/*
 * Makes @row, what kb_waited() says of @object, one of all that are the same: a fault has no address then. Fills @key;
 * the upper 32 bits of its first word, and the upper 31 of its second one, are the caller's.
 */
void kb_waited_unite(struct kb_waits_row *row, const struct kb_object *object, uint64_t key[KB_WAITED_KEY]);

/* Makes @row, with that @key, the one of all others of its task and kind. The caller's part of the second word goes. */
void kb_waited_others(struct kb_waits_row *row, uint64_t key[KB_WAITED_KEY]);

/* The name of the call, or what stands in its place. */
const char *kb_waited_call(const struct kb_waits_row *row);

/*
 * What of @row is the same in another run that does the same: "fsync /srv/log (disk)", "read a deleted file of /tmp",
 * "read pipe sh -> cat", "recvfrom tcp 10.0.0.1:80 -> 10.0.0.7", "futex". Names may have any bytes.
 */
void kb_waited_lasting(const struct kb_waits_row *row, char text[KB_WAITED_TEXT]);

#endif
