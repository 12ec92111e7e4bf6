// SPDX-License-Identifier: GPL-2.0-only
/*
 * Executable mappings: see maps.h.
 *
 * The kprobes (probes.c), the fork probe and the overflow handler put facts into a queue of
 * the session (queue.c). A worker takes them out (worker.c).
 *
 * Without kprobes the worker looks up the mappings of a process at its first sample, and again at
 * the first sample after it has executed a new image.
 *
 * Kernel modules that are loaded during the session get rows of task 0.
 */
#include <linux/bitops.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/rculist.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>

#include "capture/header.h"
#include "capture/shares.h"
#include "capture/tables.h"
#include "compat/module.h"
#include "here.h"
#include "maps/maps.h"
#include "maps/probes.h"
#include "maps/queue.h"
#include "maps/worker.h"
#include "ring/clock.h"

/* ---- reports of other sources ---- */

/* The current process, which has the memory @mm, was sampled, maybe for the first time. */
static noinline void maps_claim_process(struct kbarman_maps *maps, struct mm_struct *mm)
{
	struct kbarman_fact *fact;

	if (test_and_set_bit(current->tgid, maps->sampled))
		return;
	fact = kbarman_fact_claim(maps);
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

	return maps && kbarman_code_bounds_find(&maps->bounds, current->mm, ranges);
}

static void fact_push_stack(struct kbarman_maps *maps, struct pt_regs *regs)
{
	struct kbarman_fact *fact = kbarman_fact_claim(maps);

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
	struct kbarman_fact *fact = kbarman_fact_claim(maps);

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
		fact = kbarman_fact_claim(maps);
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

/* ---- modules ---- */

/*
 * The sessions that may know where modules are. The notifier waits for nobody who holds this lock:
 * only this list is changed under it.
 */
static LIST_HEAD(modules_sessions);
static DEFINE_MUTEX(modules_lock);

static int on_module(struct notifier_block *unused, unsigned long state, void *argument)
{
	const struct module *module = argument;
	char name[MODULE_NAME_LEN + 2];
	unsigned long start, length;
	struct kbarman_maps *maps;
	int name_length;

	if (state != MODULE_STATE_COMING)
		return NOTIFY_DONE;
	start = kbarman_module_text(module, &length);
	name_length = scnprintf(name, sizeof(name), "[%s]", module->name);
	mutex_lock(&modules_lock);
	list_for_each_entry(maps, &modules_sessions, modules_list)
		kbarman_tables_add_map(maps->session->capture, kbarman_clock(),
				       KBARMAN_USER_ROOT, 0, start, length, 0, name, name_length,
				       0);
	mutex_unlock(&modules_lock);
	return NOTIFY_OK;
}

static struct notifier_block module_notifier = { .notifier_call = on_module };

/* ---- the source ---- */

static int maps_start(struct kbarman_session *session)
{
	struct kbarman_maps *maps = kbarman_maps_create(session);

	if (!maps)
		return -ENOMEM;
	kbarman_maps_worker_init(maps);
	session->maps_made = maps;
	return 0;
}

static void maps_begin(struct kbarman_session *session)
{
	struct kbarman_maps *maps = session->maps_made;

	mutex_lock(&modules_lock);
	if (session->kernel_addresses)
		list_add(&maps->modules_list, &modules_sessions);
	else
		INIT_LIST_HEAD(&maps->modules_list);
	mutex_unlock(&modules_lock);
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
	if (session->maps)
		kbarman_maps_worker_begin(session->maps);
}

static void maps_stop(struct kbarman_session *session)
{
	struct kbarman_maps *maps = session->maps;

	if (!maps)
		return;
	kbarman_maps_probes_remove(maps);
	mutex_lock(&modules_lock);
	list_del(&maps->modules_list);
	mutex_unlock(&modules_lock);
}

/* All probes have finished, and have kicked the worker. */
static void maps_end(struct kbarman_session *session)
{
	struct kbarman_maps *maps = session->maps_made;

	session->maps = NULL;
	session->maps_made = NULL;
	kbarman_maps_worker_end(maps);
	kbarman_maps_free(maps);
}

const struct kbarman_source kbarman_source_maps = {
	.name = "maps",
	.bit = KBARMAN_SOURCE_MAPS,
	.start = maps_start,
	.begin = maps_begin,
	.stop = maps_stop,
	.end = maps_end,
};

/* ---- init and exit ---- */

int __init kbarman_source_maps_init(void)
{
	kbarman_maps_probes_find();
	return register_module_notifier(&module_notifier);
}

void kbarman_source_maps_exit(void)
{
	unregister_module_notifier(&module_notifier);
}
