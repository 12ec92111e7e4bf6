/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * maps/: executable mappings of the tasks that are sampled, as rows of the mmap table. Probes put
 * facts into a queue (queue.h), and a worker looks them up among the address spaces that
 * it knows (spaces.h). Beside them: where stacks and code of a task are (thread_stacks.h,
 * code_bounds.h). This header is what others report. All functions do nothing while the source does
 * not run for the session.
 */
#ifndef KBARMAN_MAPS_H
#define KBARMAN_MAPS_H

#include <linux/sched.h>
#include <linux/types.h>

#include "source.h"

struct kbarman_range;
struct kbarman_session;
struct pt_regs;

extern const struct kbarman_source kbarman_source_maps;

/*
 * All threads to record are chosen. The mappings that they have by now are looked up, because
 * mappings made before they were chosen may have been missed. Context: task, session's lock held.
 */
void kbarman_maps_begin(struct kbarman_session *session);

/*
 * The current thread is about to be sampled in user space, so its process needs rows. Costs a bit
 * test, except for the first sample of the process. Call this before the record is made: rows that
 * replace those of a former owner of the id are stamped with the time of this call.
 * Context: overflow handler, any level up to NMI, preemption off.
 */
void kbarman_maps_sampled(const struct kbarman_session *session);

/*
 * Where the current task's libraries are, as far as the session knows: KBARMAN_LIBRARY_RANGES
 * ranges. False: it does not know. Context: as kbarman_maps_sampled().
 */
bool kbarman_maps_libraries(const struct kbarman_session *session, struct kbarman_range *ranges);

/*
 * The range of the stack that @regs of the current task's user code point into. False: the session
 * does not know it, and may know it at the thread's next sample. Context: as
 * kbarman_maps_sampled().
 */
bool kbarman_maps_stack(const struct kbarman_session *session, struct pt_regs *regs,
			struct kbarman_range *range);

/*
 * @parent, the current task, has created @child, which has not run yet. A child process starts with
 * the mappings of its parent. Context: task, no sleeping.
 */
void kbarman_maps_fork(const struct kbarman_session *session, struct task_struct *parent,
		       struct task_struct *child);

/* @task, the current task, has executed a new image. Context: task, no sleeping. */
void kbarman_maps_exec(const struct kbarman_session *session, struct task_struct *task);

/* The last thread of process @id exits. Context: task, no sleeping. */
void kbarman_maps_exit(const struct kbarman_session *session, u32 id);

#endif /* KBARMAN_MAPS_H */
