// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tasks: a row for every one there is at start, that is made, or that changes its
 * name; the end of each; and which of them the session records.
 *
 * Context of the probes: the task itself, or its parent at fork; no sleeping.
 * on_rename() runs under task_lock(). Raw spinlocks are all that may be taken.
 */
#include <linux/pid.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/string.h>
#include <trace/events/sched.h>
#include <trace/events/task.h>

#include "clock.h"
#include "compat/tracepoint.h"
#include "session.h"
#include "source_maps.h"
#include "sources.h"
#include "tables.h"
#include "users.h"

/* Tasks that are not recorded are named where one that is gives way to them. */
static u32 user_of(const struct task_struct *task)
{
	u32 user = KBARMAN_USER_UNWANTED;

	if (kbarman_wants(task->pid)) {
		rcu_read_lock();
		user = kbarman_user_of(__task_cred(task));
		rcu_read_unlock();
	}
	return user;
}

static void add_task(u64 timestamp, const struct task_struct *task, const char *name)
{
	kbarman_tables_add_task(kbarman_session.capture, timestamp, task->pid, task->tgid,
				user_of(task), name);
}

/* The name as it is now. */
static void get_name(char name[TASK_COMM_LEN], const struct task_struct *task)
{
	/* If another CPU changes it just now, on_rename() adds the right row. */
	data_race(memcpy(name, task->comm, TASK_COMM_LEN));
	name[TASK_COMM_LEN - 1] = '\0';
}

/* @child is the first thread of a process that was asked for by its id. */
static bool asked_for(const struct kbarman_session *session, struct task_struct *child)
{
	u32 i;

	for (i = 0; i < session->config.nr_pids; i++)
		if (session->pids[i] == task_pid(child))
			return true;
	return false;
}

/*
 * The child is recorded if its parent is, and it is a thread of the same process or
 * inheriting was asked for. The bit is written at every fork, so that what a former
 * owner of the thread id left there does not count.
 *
 * At start choose_tasks() sets bits meanwhile. It sets the one of a parent before those of the
 * threads that the parent made. So the child's is cleared before the parent's is read: whichever
 * of the two comes first at the child's bit, the child's is set in the end. A process that was
 * asked for while it was being made has nobody to inherit from.
 */
static void inherit_filter(const struct task_struct *parent, struct task_struct *child)
{
	struct kbarman_session *session = &kbarman_session;
	bool chosen;

	if (!session->tasks)
		return;
	/* Fully ordered, as is the setting. */
	chosen = test_and_clear_bit(child->pid, session->tasks);
	if ((kbarman_wants(parent->pid) && (session->config.flags & KBARMAN_CONFIGURE_INHERIT ||
					    parent->tgid == child->tgid)) ||
	    (chosen && asked_for(session, child)))
		set_bit(child->pid, session->tasks);
}

/* The child has not run yet. */
static void on_fork(void *unused, struct task_struct *parent, struct task_struct *child)
{
	char name[TASK_COMM_LEN];

	inherit_filter(parent, child);
	get_name(name, child);
	add_task(kbarman_clock(), child, name);
	kbarman_maps_fork(parent, child);
}

/* @new is the name that @task is about to get, if need be cut to what there is room for. */
static void on_rename(void *unused, struct task_struct *task, const char *new)
{
	char name[TASK_COMM_LEN];

	strscpy(name, new, sizeof(name));
	if (strncmp(name, task->comm, sizeof(name)))
		add_task(kbarman_clock(), task, name);
}

/*
 * A thread that is not the leader takes the leader's id over: its own ends here,
 * without an exit, and the leader's, which has seen one, goes on.
 */
static void on_exec(void *unused, struct task_struct *task, pid_t old_pid,
		    struct linux_binprm *bprm)
{
	if (old_pid != task->pid) {
		u64 now = kbarman_clock();
		char name[TASK_COMM_LEN];

		kbarman_tables_exit_task(kbarman_session.capture, now, old_pid);
		kbarman_tables_free_task(kbarman_session.capture, now, old_pid);
		kbarman_maps_exit(old_pid);
		get_name(name, task);
		add_task(now, task, name);
	}
	kbarman_maps_exec(task);
}

static void task_exits(const struct task_struct *task)
{
	kbarman_tables_exit_task(kbarman_session.capture, kbarman_clock(), task->pid);
	kbarman_maps_exit(task->pid);
}

#ifdef KBARMAN_HAVE_EXIT_GROUP_DEAD
static void on_exit(void *unused, struct task_struct *task, bool group_dead)
{
	task_exits(task);
}
#else
static void on_exit(void *unused, struct task_struct *task)
{
	task_exits(task);
}
#endif

/* Nobody runs it any more: its last switch was a grace period ago. Context: softirq. */
static void on_free(void *unused, struct task_struct *task)
{
	kbarman_tables_free_task(kbarman_session.capture, kbarman_clock(), task->pid);
}

static struct kbarman_probe probes[] = {
	{ .name = "sched_process_fork", .function = on_fork },
	{ .name = "task_rename", .function = on_rename },
	{ .name = "sched_process_exec", .function = on_exec },
	{ .name = "sched_process_exit", .function = on_exit },
	{ .name = "sched_process_free", .function = on_free },
};

/*
 * With the probes attached, so that none is missed; who is seen twice gets one row, as
 * a row that says nothing new is dropped.
 */
static void add_all_tasks(u64 timestamp)
{
	struct task_struct *process, *thread;
	char name[TASK_COMM_LEN];

	kbarman_tables_add_task(kbarman_session.capture, timestamp, 0, 0, KBARMAN_USER_ROOT,
				"swapper");
	rcu_read_lock();
	for_each_process_thread(process, thread) {
		get_name(name, thread);
		add_task(timestamp, thread, name);
	}
	rcu_read_unlock();
}

static int start(struct kbarman_session *session)
{
	int error;

	check_trace_callback_type_sched_process_fork(on_fork);
	check_trace_callback_type_task_rename(on_rename);
	check_trace_callback_type_sched_process_exec(on_exec);
	check_trace_callback_type_sched_process_exit(on_exit);
	check_trace_callback_type_sched_process_free(on_free);
	error = kbarman_probes_attach(probes, ARRAY_SIZE(probes));
	if (!error)
		add_all_tasks(session->started.timestamp);
	return error;
}

static void stop(struct kbarman_session *session)
{
	kbarman_probes_detach(probes, ARRAY_SIZE(probes));
}

const struct kbarman_source kbarman_source_tasks = {
	.name = "tasks",
	.start = start,
	.stop = stop,
};
