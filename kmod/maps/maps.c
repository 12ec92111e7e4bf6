// SPDX-License-Identifier: GPL-2.0-only
/*
 * Executable mappings: see maps.h.
 *
 * The kprobes (probes.c), the fork probe and the overflow handler put facts into a queue of
 * the session (queue.c). A worker, which may sleep, takes them out, looks up paths, and adds rows
 * (spaces.h).
 *
 * Without kprobes the worker looks up the mappings of a process at its first sample, and again at
 * the first sample after it has executed a new image.
 */
#include <linux/bitops.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/random.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/threads.h>
#include <linux/vmalloc.h>

#include "capture/header.h"
#include "capture/work.h"
#include "here.h"
#include "maps/maps.h"
#include "maps/probes.h"
#include "maps/queue.h"
#include "maps/spaces.h"
#include "ring/clock.h"
#include "session.h"

#define SOON	(HZ / 50 + 1)	/* jiffies that the worker waits for more facts */

/* ---- reports of other sources ---- */

/* The current process, which has the memory @mm, was sampled, maybe for the first time. */
static noinline void maps_claim_process(struct kbarman_maps *maps, struct mm_struct *mm)
{
	struct kbarman_fact *fact;

	if (test_and_set_bit(current->tgid, maps->sampled))
		return;
	fact = kbarman_fact_claim(maps, 1);
	if (!fact) {
		clear_bit(current->tgid, maps->sampled);	/* the next sample tries again */
		kbarman_fact_leave_out(maps);
		return;
	}
	mmgrab(mm);
	fact->mm = mm;
	fact->task_id = current->tgid;
	kbarman_fact_publish(maps, fact, KBARMAN_FACT_SAMPLED);
}

void kbarman_maps_sampled(const struct kbarman_session *session)
{
	struct kbarman_maps *maps = READ_ONCE(session->maps);

	if (unlikely(maps && !test_bit(current->tgid, maps->sampled)) && current->mm)
		maps_claim_process(maps, current->mm);
}

bool kbarman_maps_libraries(const struct kbarman_session *session, struct kbarman_range *ranges)
{
	const struct kbarman_maps *maps = READ_ONCE(session->maps);

	/* New code is known when the worker has seen it: until then all of the memory may be code. */
	return maps && !kbarman_facts_are_pending(maps) &&
	       kbarman_code_bounds_find(&maps->bounds, current->mm, ranges);
}

static void fact_push_stack(struct kbarman_maps *maps, struct pt_regs *regs)
{
	struct kbarman_fact *fact = kbarman_fact_claim(maps, 1);

	if (!fact)
		return;
	mmgrab(current->mm);
	fact->mm = current->mm;
	fact->question = kbarman_stack_question(regs);
	kbarman_fact_publish(maps, fact, KBARMAN_FACT_STACK);
}

bool kbarman_maps_stack(const struct kbarman_session *session, struct pt_regs *regs,
			struct kbarman_range *range)
{
	struct kbarman_maps *maps = READ_ONCE(session->maps);
	bool known, ask;

	if (!maps || !maps->stacks)
		return false;
	known = kbarman_thread_stacks_find(maps->stacks, user_stack_pointer(regs), range, &ask);
	if (ask)
		fact_push_stack(maps, regs);
	return known;
}

static void fact_push_fork(struct kbarman_maps *maps, struct mm_struct *parent,
			   struct mm_struct *child, u32 child_id)
{
	struct kbarman_fact *fact = kbarman_fact_claim(maps, 1);

	if (!fact) {
		kbarman_fact_leave_out_for_good(maps, child);
		return;
	}
	mmgrab(parent);
	mmgrab(child);
	fact->parent = parent;
	fact->mm = child;
	fact->task_id = child_id;
	kbarman_fact_publish(maps, fact, KBARMAN_FACT_FORK);
}

void kbarman_maps_fork(const struct kbarman_session *session, struct task_struct *parent,
		       struct task_struct *child)
{
	struct kbarman_maps *maps;

	preempt_disable_notrace();
	maps = READ_ONCE(session->maps);
	if (maps) {
		if (child->pid == child->tgid)
			clear_bit(child->tgid, maps->sampled);
		if (maps->stacks && child->mm && kbarman_wants(session, child->pid))
			kbarman_thread_stacks_fork(maps->stacks, parent, child);
		if (parent->mm && child->mm && child->mm != parent->mm &&
		    kbarman_wants(session, child->pid))
			fact_push_fork(maps, parent->mm, child->mm, child->pid);
	}
	preempt_enable_notrace();
}

void kbarman_maps_exec(const struct kbarman_session *session, struct task_struct *task)
{
	struct kbarman_maps *maps;

	preempt_disable_notrace();
	maps = READ_ONCE(session->maps);
	if (maps)
		clear_bit(task->tgid, maps->sampled);
	preempt_enable_notrace();
}

/*
 * If the queue is full, the process's bit in `sampled` is cleared instead, and the worker later
 * finds the processes whose bit is cleared.
 */
void kbarman_maps_exit(const struct kbarman_session *session, u32 id)
{
	struct kbarman_maps *maps;
	struct kbarman_fact *fact;

	preempt_disable_notrace();
	maps = READ_ONCE(session->maps);
	if (maps && test_bit(id, maps->sampled)) {
		fact = kbarman_fact_claim(maps, 1);
		if (fact) {
			fact->task_id = id;
			kbarman_fact_publish(maps, fact, KBARMAN_FACT_EXIT);
		} else {
			clear_bit(id, maps->sampled);
			set_bit(KBARMAN_WANTED_EXITS, &maps->wanted);
			kbarman_maps_kick(maps);
		}
	}
	preempt_enable_notrace();
}

/* ---- the worker ---- */

static void fact_handle(struct kbarman_maps *maps, const struct kbarman_fact *fact)
{
	if (fact->kind == KBARMAN_FACT_STACK)
		kbarman_thread_stacks_look(maps->stacks, fact->mm, fact->task_id, &fact->question);
	/* If there was no memory for the process, its next sample reports it again. */
	else if (!kbarman_spaces_take(maps->spaces, fact))
		clear_bit(fact->task_id, maps->sampled);
	if (fact->kind != KBARMAN_FACT_EXIT)
		mmdrop(fact->mm);
	if (fact->kind == KBARMAN_FACT_FORK)
		mmdrop(fact->parent);
}

/*
 * Heeds gaps before the facts that come after them: the thread that left out a fact did set_bit()
 * before its next kbarman_fact_publish().
 */
static void maps_heed_gaps(struct kbarman_maps *maps, u64 timestamp)
{
	struct mm_struct *mm;
	unsigned int at = 0;

	if (likely(!test_bit(KBARMAN_WANTED_GAPS, &maps->wanted)) ||
	    !test_and_clear_bit(KBARMAN_WANTED_GAPS, &maps->wanted))
		return;
	while ((mm = kbarman_maps_next_gap(maps, &at))) {
		kbarman_spaces_distrust(maps->spaces, mm, timestamp);
		mmdrop(mm);
	}
}

/*
 * Handles all facts whose places are claimed by now. Returns false if one of them is not written
 * yet; its writer kicks the worker afterwards.
 */
static bool maps_drain(struct kbarman_maps *maps)
{
	unsigned int end = READ_ONCE(maps->head);
	struct kbarman_fact fact;
	int got;

	while ((got = kbarman_fact_take(maps, end, &fact)) > 0) {
		maps_heed_gaps(maps, fact.timestamp);
		fact_handle(maps, &fact);
		kbarman_fact_done(maps);
		cond_resched();
	}
	return !got;
}

/*
 * Work on all address spaces or threads, at most once a second: otherwise a process that makes it
 * necessary all the time could keep the worker busy with it. Returns in how many jiffies it must be
 * called again.
 */
static unsigned long maps_look_at_all(struct kbarman_maps *maps)
{
	u64 now = get_jiffies_64();

	if (!test_bit(KBARMAN_WANTED_DISTRUST, &maps->wanted) &&
	    !test_bit(KBARMAN_WANTED_EXITS, &maps->wanted))
		return MAX_SCHEDULE_TIMEOUT;
	if (now < maps->all_due)
		return maps->all_due - now;
	if (test_and_clear_bit(KBARMAN_WANTED_DISTRUST, &maps->wanted))
		kbarman_spaces_distrust_all(maps->spaces, kbarman_clock());
	if (test_and_clear_bit(KBARMAN_WANTED_EXITS, &maps->wanted))
		kbarman_spaces_exits(maps->spaces, maps->sampled);
	maps->all_due = get_jiffies_64() + HZ;
	return MAX_SCHEDULE_TIMEOUT;
}

static void maps_work(struct work_struct *work)
{
	struct kbarman_maps *maps = container_of(work, struct kbarman_maps, worker);
	struct kbarman_capture *capture = maps->session->capture;
	unsigned long pause, other_pause;

	clear_bit(KBARMAN_WANTED_SOON, &maps->wanted);
	smp_mb();	/* before the queue is read: pairs with that of kbarman_fact_publish() */
	if (test_and_clear_bit(KBARMAN_WANTED_TELL, &maps->wanted))
		kbarman_maps_probes_tell(capture);
	if (test_and_clear_bit(KBARMAN_WANTED_WALK, &maps->wanted))
		kbarman_spaces_walk_all(maps->spaces);
	/*
	 * Facts occupy places in the queue that others need. So facts are handled between any two
	 * slices of walks.
	 */
	do {
		maps_drain(maps);
		maps_heed_gaps(maps, kbarman_clock());
		kbarman_header_miss(capture, KBARMAN_MISSED_QUEUE,
				    atomic_xchg(&maps->left_out, 0));
		if (kbarman_spaces_condemn(maps->spaces) && maps_drain(maps))
			kbarman_spaces_free_unused(maps->spaces);
		other_pause = maps_look_at_all(maps);
	} while (kbarman_spaces_walk(maps->spaces, &pause));
	pause = min(pause, other_pause);
	if (READ_ONCE(maps->stopping))
		return;
	if (pause != MAX_SCHEDULE_TIMEOUT)
		mod_delayed_work(kbarman_wq, &maps->later, pause);
	smp_mb();	/* a kick meanwhile may have wanted less than `pause` */
	if (test_bit(KBARMAN_WANTED_SOON, &maps->wanted))
		mod_delayed_work(kbarman_wq, &maps->later, SOON);
}

/* Only queues the worker, so it never does the worker's work at the same time. */
static void maps_work_again(struct work_struct *work)
{
	struct kbarman_maps *maps = container_of(to_delayed_work(work), struct kbarman_maps,
						 later);

	queue_work(kbarman_wq, &maps->worker);
}

/* Context: hard interrupt; a thread on PREEMPT_RT. */
static void maps_kick(struct irq_work *work)
{
	struct kbarman_maps *maps = container_of(work, struct kbarman_maps, kick);

	if (test_and_clear_bit(KBARMAN_WANTED_NOW, &maps->wanted))
		queue_work(kbarman_wq, &maps->worker);
	else
		mod_delayed_work(kbarman_wq, &maps->later, SOON);
}

static void maps_worker_init(struct kbarman_maps *maps)
{
	init_irq_work(&maps->kick, maps_kick);
	INIT_WORK(&maps->worker, maps_work);
	INIT_DELAYED_WORK(&maps->later, maps_work_again);
}

/*
 * Wait until all that was reported is handled, in bounded time. Nobody reports anything any more.
 */
static void maps_worker_end(struct kbarman_maps *maps)
{
	irq_work_sync(&maps->kick);
	/* The worker does its other work once more, in bounded time, and then stops. */
	kbarman_spaces_hurry(maps->spaces);
	WRITE_ONCE(maps->stopping, true);
	queue_work(kbarman_wq, &maps->worker);
	flush_work(&maps->worker);
	cancel_delayed_work_sync(&maps->later);
	flush_work(&maps->worker);
}

/* ---- the source ---- */

static void maps_free(struct kbarman_maps *maps)
{
	kbarman_spaces_destroy(maps->spaces);
	vfree(maps->stacks);
	vfree(maps->queue);
	vfree(maps->sampled);
	kvfree(maps);
}

/* NULL: there is no memory. */
static struct kbarman_maps *maps_create(struct kbarman_session *session)
{
	bool stacks = session->chain_parts & KBARMAN_CONFIGURE_CHAIN_STACK;
	struct kbarman_maps *maps = kvzalloc(sizeof(*maps), GFP_KERNEL);

	if (!maps)
		return NULL;
	maps->session = session;
	maps->share_salt = get_random_u32();
	maps->sampled = vzalloc(BITS_TO_LONGS(PID_MAX_LIMIT) * sizeof(long));
	maps->queue = vzalloc(array_size(KBARMAN_QUEUE_SIZE, sizeof(*maps->queue)));
	maps->spaces = kbarman_spaces_create(session, &maps->bounds);
	maps->stacks = stacks ? vzalloc(sizeof(*maps->stacks)) : NULL;
	if (maps->sampled && maps->queue && maps->spaces && (maps->stacks || !stacks))
		return maps;
	maps_free(maps);
	return NULL;
}

static int maps_start(struct kbarman_session *session)
{
	struct kbarman_maps *maps = maps_create(session);

	if (!maps)
		return -ENOMEM;
	maps_worker_init(maps);
	session->maps_made = maps;
	return 0;
}

static void maps_begin(struct kbarman_session *session)
{
	struct kbarman_maps *maps = session->maps_made;

	/*
	 * The queue and the bitmap exist before a probe can find them. Pairs with the probe's
	 * READ_ONCE() and its address dependency.
	 */
	smp_store_release(&session->maps, maps);
	kbarman_header_fact(session->capture, "maps", "process");
	kbarman_maps_probes_add(maps);
	kbarman_maps_probes_tell(session->capture);
}

/* Called after the probes are attached, so that no mapping is missed in between. */
void kbarman_maps_begin(struct kbarman_session *session)
{
	struct kbarman_maps *maps = session->maps;

	if (!maps)
		return;
	set_bit(KBARMAN_WANTED_WALK, &maps->wanted);
	queue_work(kbarman_wq, &maps->worker);
}

static void maps_stop(struct kbarman_session *session)
{
	if (session->maps)
		kbarman_maps_probes_remove(session->maps);
}

/* All probes have finished, and have kicked the worker. */
static void maps_end(struct kbarman_session *session)
{
	struct kbarman_maps *maps = session->maps_made;

	session->maps = NULL;
	session->maps_made = NULL;
	maps_worker_end(maps);
	maps_free(maps);
}

const struct kbarman_source kbarman_source_maps = {
	.name = "maps",
	.bit = KBARMAN_SOURCE_MAPS,
	.start = maps_start,
	.begin = maps_begin,
	.stop = maps_stop,
	.end = maps_end,
};
