/* SPDX-License-Identifier: GPL-2.0-only */
/* What is done with a session as a whole: configure, start, stop, and looking at it. */
#ifndef KBARMAN_SESSION_CALLS_H
#define KBARMAN_SESSION_CALLS_H

#include <linux/cpumask.h>
#include <linux/poll.h>
#include <linux/types.h>

#include "uapi/kbarman.h"

struct file;
struct kbarman_capture;
struct kbarman_session;

/* The argument of KBARMAN_CONFIGURE, with what its pointers point to. */
struct kbarman_wanted {
	struct kbarman_configure config;
	const struct kbarman_event *events;	/* [config.nr_events] */
	const u32 *pids;			/* [config.nr_pids] */
	cpumask_var_t cpus;
};

/* How far a descriptor has read the rings of a session that it does not own. */
struct kbarman_observer {
	u64 *positions;		/* [nr_cpu_ids], of this configuration and recording; NULL = it has told
				 * nothing */
	u64 session, recording;
	bool done;		/* it waits for another recording */
};

/* The field of a struct kbarman_configure that is refused, and why. */
#define KBARMAN_REFUSE(config, field, error) \
	((config)->bad_offset = offsetof(struct kbarman_configure, field), -(error))

/*
 * The ioctls. The caller has checked the arguments, except for what depends on the session's state.
 * @file is the descriptor that the call is made on; NULL for the first two: the session has no owner.
 * -EINTR if the caller is killed while it waits for another call. Context: task, without the
 * session's lock.
 */
int kbarman_session_configure(struct kbarman_session *session, struct file *file,
			      struct kbarman_wanted *wanted);
int kbarman_session_start(struct kbarman_session *session, struct file *file,
			  struct kbarman_start *report);
int kbarman_session_stop(struct kbarman_session *session, struct file *file);
/* Of one CPU. */
int kbarman_session_consume(struct kbarman_session *session, struct file *file,
			    const struct kbarman_consume *consume);
/* Moves nothing but the observer; no CPU: it has done. One call at a time for each observer. */
int kbarman_session_observe(struct kbarman_session *session, struct kbarman_observer *observer,
			    const struct kbarman_consume *consume);
int kbarman_session_turn(struct kbarman_session *session, struct file *file, u32 turn);
/* @file becomes the owner of a session that has none, and that no other call gives away. */
int kbarman_session_adopt(struct kbarman_session *session, struct file *file);
/* @cpus: [@words], all zero: gets the CPUs that can be mapped. */
int kbarman_session_query(struct kbarman_session *session, struct file *file,
			  struct kbarman_query *query, u64 *cpus, u32 words);
int kbarman_session_stats(struct kbarman_session *session, u32 cpu, struct kbarman_stats *stats);
/* @row: NULL to try whether @file may add rows. */
int kbarman_session_add_map(struct kbarman_session *session, struct file *file,
			    const struct kbarman_map_row *row, const char *image);
/* The capture, to be put, which has room for @bytes of symbols now; or an ERR_PTR. */
struct kbarman_capture *kbarman_session_add_symbols(struct kbarman_session *session, struct file *file, u64 bytes);
int kbarman_session_clock(struct kbarman_session *session, struct kbarman_clock *clock);
/* What KBARMAN_SESSIONS tells @file of the session. */
int kbarman_session_tell(struct kbarman_session *session, struct file *file,
			 struct kbarman_session_info *info);

/* What happened to the records of all CPUs. Context: session's lock held. */
void kbarman_session_fill_stats(struct kbarman_stats *stats, struct kbarman_session *session);

/*
 * Take the session's lock for a call on @file that changes the session. -ENODATA if none is
 * configured, -EPERM if @file may not, -EINTR; the lock is not held then. Context: task.
 */
int kbarman_session_lock_own(struct kbarman_session *session, const struct file *file);

/* The owner @file is closed, or NULL: it never had one. Stop the session, which has no owner from now on. Context: task. */
void kbarman_session_abandon(struct kbarman_session *session, struct file *file);

/* From before a session's first timestamp until after its last conversion. Context: task. */
void kbarman_clocks_hold(void);
void kbarman_clocks_release(void);

/*
 * The current capture with a reference, or NULL if none is configured. Context: task, with or
 * without mmap_lock and the session's lock.
 */
struct kbarman_capture *kbarman_session_capture(struct kbarman_session *session);

/* @capture is it from now on; NULL: none is. Context: task, session's lock held. */
void kbarman_session_set_capture(struct kbarman_session *session, struct kbarman_capture *capture);

/* EPOLL* as the UAPI header says. @observer: NULL for the owner. */
__poll_t kbarman_session_poll(struct kbarman_session *session, struct file *file,
			      struct poll_table_struct *wait, const struct kbarman_observer *observer);

#endif /* KBARMAN_SESSION_CALLS_H */
