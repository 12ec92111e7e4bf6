// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tasks. Adds a row for every task that exists at start, is created, or changes its name; notes the
 * end of each task; and decides which tasks the session records.
 *
 * Context of the probes: the task itself, or its parent at fork; no sleeping. on_rename() runs
 * under task_lock(). The probes may take raw spinlocks and no other locks.
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

/*
 * The user that is charged for the rows of @task. Tasks that are not recorded need rows too,
 * because task switches from a recorded task name them. All of them are charged to
 * KBARMAN_USER_UNWANTED.
 */
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

/* Copy the task's current name. */
static void get_name(char name[TASK_COMM_LEN], const struct task_struct *task)
{
	/* If another CPU changes the name at this moment, on_rename() adds the right row. */
	data_race(memcpy(name, task->comm, TASK_COMM_LEN));
	name[TASK_COMM_LEN - 1] = '\0';
}

/* True if @child is the first thread of a process whose id was in the configuration. */
static bool asked_for(const struct kbarman_session *session, struct task_struct *child)
{
	u32 i;

	for (i = 0; i < session->config.nr_pids; i++)
		if (session->pids[i] == task_pid(child))
			return true;
	return false;
}

/*
 * The child is recorded if its parent is recorded, and the child is a thread of the same process or
 * KBARMAN_CONFIGURE_INHERIT is set. The bit is written at every fork: a former owner of the thread
 * id may have left another value.
 *
 * At start, choose_tasks() sets bits at the same time. It sets the bit of a parent before the bits
 * of the threads that the parent created. This function clears the child's bit before it reads the
 * parent's bit. So the child's bit is set in the end, in whichever order the two write it. A
 * process of the configuration may be in creation at this moment. It keeps its bit, even if its
 * parent is not recorded.
 */
static void inherit_filter(const struct task_struct *parent, struct task_struct *child)
{
	struct kbarman_session *session = &kbarman_session;
	bool chosen;

	if (!session->tasks)
		return;
	/* Fully ordered, like the setting of bits in choose_tasks(). */
	chosen = test_and_clear_bit(child->pid, session->tasks);
	if ((kbarman_wants(parent->pid) && (session->config.flags & KBARMAN_CONFIGURE_INHERIT ||
					    parent->tgid == child->tgid)) ||
	    (chosen && asked_for(session, child)))
		set_bit(child->pid, session->tasks);
}

/* The child has not run yet. Context: the parent. */
static void on_fork(void *unused, struct task_struct *parent, struct task_struct *child)
{
	char name[TASK_COMM_LEN];

	inherit_filter(parent, child);
	get_name(name, child);
	add_task(kbarman_clock(), child, name);
	kbarman_maps_fork(parent, child);
}

/* @new is the new name of @task; it may be longer than TASK_COMM_LEN and is then cut. */
static void on_rename(void *unused, struct task_struct *task, const char *new)
{
	char name[TASK_COMM_LEN];

	strscpy(name, new, sizeof(name));
	if (strncmp(name, task->comm, sizeof(name)))
		add_task(kbarman_clock(), task, name);
}

/*
 * In an exec, a thread that is not the leader takes over the leader's id. The thread's own id ends
 * here, without sched_process_exit. The leader's id, for which there was a sched_process_exit, goes
 * on.
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

/* No CPU runs @task any more: its last switch was an RCU grace period ago. Context: softirq. */
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
 * Called with the probes attached, so that no task is missed. A task that is seen twice gets one
 * row: a row without a change is dropped.
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
	.absent = KBARMAN_ABSENT_TASKS,
	.probes = probes,
	.nr_probes = ARRAY_SIZE(probes),
	.start = start,
	.stop = stop,
};
