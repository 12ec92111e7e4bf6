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
#include <linux/smp.h>
#include <linux/string.h>
#include <trace/events/sched.h>
#include <trace/events/task.h>

#include "capture/tables.h"
#include "capture/users.h"
#include "compat/task.h"
#include "compat/tracepoint.h"
#include "here.h"
#include "maps/maps.h"
#include "ring/clock.h"
#include "sources/sources.h"

#define TASKS_AT_ONCE	256	/* without a pause */
#define TRIES		8	/* with pauses: where tasks end all the time, the last has none */

/*
 * The user that is charged for the rows of @task. Tasks that are not recorded need rows too,
 * because task switches from a recorded task name them. All of them are charged to
 * KBARMAN_USER_UNWANTED.
 */
static u32 task_payer(const struct kbarman_session *session, const struct task_struct *task)
{
	u32 user = KBARMAN_USER_UNWANTED;

	if (kbarman_wants(session, task->pid)) {
		rcu_read_lock();
		user = kbarman_user_of(__task_cred(task));
		rcu_read_unlock();
	}
	return user;
}

static void task_add(struct kbarman_session *session, u64 timestamp,
		     const struct task_struct *task, const char *name, u32 flags)
{
	kbarman_tables_add_task(session->capture, timestamp, task->pid, task->tgid,
				task_payer(session, task), name, flags);
}

/* Of a task that is no new one. A thread that leads may have exited long before the others do. */
static u32 task_flags(const struct task_struct *task)
{
	return KBARMAN_TASK_GOES_ON |
	       (data_race(task->flags) & PF_EXITING ? KBARMAN_TASK_EXITED : 0);
}

/* Copy the task's current name. */
static void task_get_name(char name[TASK_COMM_LEN], const struct task_struct *task)
{
	/* If another CPU changes the name at this moment, on_rename() adds the right row. */
	data_race(memcpy(name, task->comm, TASK_COMM_LEN));
	name[TASK_COMM_LEN - 1] = '\0';
}

/* True if @child is the first thread of a process whose id was in the configuration. */
static bool task_is_asked_for(const struct kbarman_session *session, struct task_struct *child)
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
 * At start, kbarman_chosen_choose() sets bits at the same time. It sets the bit of a parent before
 * the bits of the threads that the parent created. This function clears the child's bit before it
 * reads the parent's bit. So the child's bit is set in the end, in whichever order the two write
 * it. A process of the configuration may be in creation at this moment. It keeps its bit, even if
 * its parent is not recorded.
 */
static void task_inherit_filter(const struct kbarman_session *session,
				const struct task_struct *parent, struct task_struct *child)
{
	bool chosen;

	if (!session->tasks)
		return;
	/* Fully ordered, like the setting of bits in kbarman_chosen_choose(). */
	chosen = test_and_clear_bit(child->pid, session->tasks);
	if ((kbarman_wants(session, parent->pid) &&
	     (session->config.flags & KBARMAN_CONFIGURE_INHERIT || parent->tgid == child->tgid)) ||
	    (chosen && task_is_asked_for(session, child)))
		set_bit(child->pid, session->tasks);
}

/*
 * The session of a probe, or NULL: its tables are those of the former recording yet. tasks_begin()
 * finds what the probe leaves out.
 */
static struct kbarman_session *tasks_session(void *data)
{
	struct kbarman_session *session = data;

	/* The tables are empty. Pairs with the release in tasks_begin(). */
	return smp_load_acquire(&session->tables_begun) ? session : NULL;
}

/* The child has not run yet. Context: the parent. */
static void on_fork(void *data, struct task_struct *parent, struct task_struct *child)
{
	struct kbarman_session *session = tasks_session(data);
	char name[TASK_COMM_LEN];

	if (!session)
		return;
	task_inherit_filter(session, parent, child);
	task_get_name(name, child);
	task_add(session, kbarman_clock(), child, name, 0);
	kbarman_maps_fork(session, parent, child);
}

/* @new is the new name of @task; it may be longer than TASK_COMM_LEN and is then cut. */
static void on_rename(void *data, struct task_struct *task, const char *new)
{
	struct kbarman_session *session = tasks_session(data);
	char name[TASK_COMM_LEN];

	strscpy(name, new, sizeof(name));
	if (session && strncmp(name, task->comm, sizeof(name)))
		task_add(session, kbarman_clock(), task, name, task_flags(task));
}

/*
 * In an exec, a thread that is not the leader takes over the leader's id. The thread's own id ends
 * here, without sched_process_exit. The leader's id, for which there was a sched_process_exit, goes
 * on.
 */
static void on_exec(void *data, struct task_struct *task, pid_t old_pid,
		    struct linux_binprm *bprm)
{
	struct kbarman_session *session = tasks_session(data);

	if (!session)
		return;
	if (old_pid != task->pid) {
		u64 now = kbarman_clock();
		char name[TASK_COMM_LEN];

		kbarman_tables_exit_task(session->capture, now, old_pid);
		kbarman_tables_free_task(session->capture, now, old_pid);
		task_get_name(name, task);
		task_add(session, now, task, name, KBARMAN_TASK_GOES_ON);
	}
	kbarman_maps_exec(session, task);
}

static void on_task_exit(KBARMAN_EXIT_ARGUMENTS)
{
	struct kbarman_session *session = tasks_session(data);

	if (!session)
		return;
	kbarman_tables_exit_task(session->capture, kbarman_clock(), task->pid);
	/* Threads that exit at the same time may find this, each of them. */
	if (!atomic_read(&task->signal->live))
		kbarman_maps_exit(session, task->tgid);
}

/* No CPU runs @task any more: its last switch was an RCU grace period ago. Context: softirq. */
static void on_free(void *data, struct task_struct *task)
{
	struct kbarman_session *session = tasks_session(data);

	if (session)
		kbarman_tables_free_task(session->capture, kbarman_clock(), task->pid);
}

static struct kbarman_probe task_probes[] = {
	{ KBARMAN_PROBE(sched_process_fork, on_fork) },
	{ KBARMAN_PROBE(task_rename, on_rename) },
	{ KBARMAN_PROBE(sched_process_exec, on_exec) },
	{ KBARMAN_PROBE(sched_process_exit, on_task_exit) },
	{ KBARMAN_PROBE(sched_process_free, on_free) },
};

/*
 * Let others run in the middle of all tasks, between @process's @thread and the next one. False: it
 * has ended meanwhile, so that nothing says what the next one is. Context: in an RCU section.
 */
static bool tasks_pause(struct task_struct *process, struct task_struct *thread)
{
	bool alive;

	get_task_struct(process);
	get_task_struct(thread);
	rcu_read_unlock();
	cond_resched();
	rcu_read_lock();
	alive = pid_alive(process) && pid_alive(thread);
	put_task_struct(thread);
	put_task_struct(process);
	return alive;
}

/* Returns false if it has to begin again, as @pauses may make necessary. */
static bool tasks_try_add_all(struct kbarman_session *session, bool pauses)
{
	struct task_struct *process, *thread;
	char name[TASK_COMM_LEN];
	unsigned int count = 0;

	for_each_process_thread(process, thread) {
		task_get_name(name, thread);
		task_add(session, kbarman_clock(), thread, name, task_flags(thread));
		if (pauses && !(++count % TASKS_AT_ONCE) && !tasks_pause(process, thread))
			return false;
	}
	return true;
}

/*
 * Called with the probes attached, so that no task is missed. A task that is seen twice gets one
 * row: a row without a change is dropped.
 */
static void tasks_add_all(struct kbarman_session *session)
{
	unsigned int tries = TRIES;	/* with pauses */

	kbarman_tables_add_task(session->capture, kbarman_clock(), 0, 0, KBARMAN_USER_ROOT,
				"swapper", 0);
	rcu_read_lock();
	while (!tasks_try_add_all(session, tries))
		tries--;
	rcu_read_unlock();
}

static int tasks_start(struct kbarman_session *session)
{
	return kbarman_probes_attach(task_probes, ARRAY_SIZE(task_probes), session);
}

static void tasks_begin(struct kbarman_session *session)
{
	smp_store_release(&session->tables_begun, true);	/* pairs with tasks_session() */
	/* What a probe on another CPU has left out before this is seen below. */
	kick_all_cpus_sync();
	tasks_add_all(session);
}

static void tasks_stop(struct kbarman_session *session)
{
	kbarman_probes_detach(task_probes, ARRAY_SIZE(task_probes), session);
}

static void tasks_end(struct kbarman_session *session)
{
	WRITE_ONCE(session->tables_begun, false);
}

const struct kbarman_source kbarman_source_tasks = {
	.name = "tasks",
	.absent = KBARMAN_ABSENT_TASKS,
	.probes = task_probes,
	.nr_probes = ARRAY_SIZE(task_probes),
	.start = tasks_start,
	.begin = tasks_begin,
	.stop = tasks_stop,
	.end = tasks_end,
};
