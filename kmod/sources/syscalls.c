// SPDX-License-Identifier: GPL-2.0-only
/*
 * System calls, each when it ends. When a task went into its call is in a table of the session: a word for each
 * task, which that task alone writes, unless two tasks have one place.
 *
 * Context of the probes: the task itself, on its way into a call and out of it. Preemption is on from Linux 6.13
 * on, so they switch it off where they use what a CPU has.
 */
#include <linux/sched.h>
#include <asm/syscall.h>
#include <asm/unistd.h>

#include "capture/memory.h"
#include "compat/tracepoint.h"
#include "here.h"
#include "ring/record.h"
#include "sources/object.h"
#include "sources/sources.h"

#ifdef CONFIG_HAVE_SYSCALL_TRACEPOINTS
#include <trace/events/syscalls.h>
#endif

/* A word: the upper bits of the task's number below, and the time above them. */
#define PLACES		65536
#define TAG(task_id)	((task_id) / PLACES)
#define TAGS		GENMASK(KBARMAN_BEGIN_SHIFT - 1, 0)

static u64 *syscalls_place(const struct kbarman_session *session, u32 task_id)
{
	static_assert(PID_MAX_LIMIT <= PLACES << KBARMAN_BEGIN_SHIFT);

	return &session->syscalls[task_id % PLACES];
}

static void syscalls_note(const struct kbarman_session *session, u32 task_id, u64 begin)
{
	WRITE_ONCE(*syscalls_place(session, task_id), begin << KBARMAN_BEGIN_SHIFT | TAG(task_id));
}

/* When the call of @task_id began, as struct kbarman_ended has it. Its place is empty then. */
static u64 syscalls_take(const struct kbarman_session *session, u32 task_id)
{
	u64 *place = syscalls_place(session, task_id), word = READ_ONCE(*place);

	if (!word || (word & TAGS) != TAG(task_id))
		return 0;
	WRITE_ONCE(*place, 0);
	return word & ~(u64)TAGS;
}

#ifdef CONFIG_HAVE_SYSCALL_TRACEPOINTS
/* What does not end leaves nothing for the next task that has the number. */
static bool syscalls_ends(long call)
{
	return call == __NR_exit || call == __NR_exit_group;
}

static notrace void on_sys_enter(void *data, struct pt_regs *regs, long call)
{
	const struct kbarman_session *session = data;

	if (kbarman_wants(session, current->pid))
		syscalls_note(session, current->pid, syscalls_ends(call) ? 0 : kbarman_clock());
}

static notrace void on_sys_exit(void *data, struct pt_regs *regs, long result)
{
	struct kbarman_cpu *here;
	struct kbarman_ended ended = { .result = result };
	int i, call = syscall_get_nr(current, regs);

	preempt_disable_notrace();
	here = kbarman_here(data);
	/* -1: it was a return from a signal. */
	if (call >= 0 && kbarman_wants(here->session, current->pid)) {
		ended.begin = syscalls_take(here->session, current->pid);
		for (i = 0; i < KBARMAN_SYSCALL_NUMBERS; i++)
			ended.numbers[i] = kbarman_call_argument(regs, i);
		kbarman_record_ended(&here->ring, current->pid, KBARMAN_SERIES_SYSCALLS,
				     kbarman_detail(BM_KBARMAN_SYSCALL, BM_KBARMAN_IN_TASK, call,
						    kbarman_call_is_compat() ? BM_KBARMAN_SYSCALL_COMPAT : 0),
				     &ended, KBARMAN_SYSCALL_NUMBERS);
	}
	preempt_enable_notrace();
}

#define ENTER	KBARMAN_PROBE(sys_enter, on_sys_enter)
#define EXIT	KBARMAN_PROBE(sys_exit, on_sys_exit)
#else
#define ENTER	.name = "sys_enter"
#define EXIT	.name = "sys_exit"
#endif

static struct kbarman_probe syscalls_probes[] = { { ENTER }, { EXIT } };

static void syscalls_detach(struct kbarman_session *session, unsigned int count)
{
	if (count > 1)
		kbarman_probes_detach(&syscalls_probes[1], 1, kbarman_probe_data(session));
	kbarman_probes_detach(&syscalls_probes[0], 1, session);
}

static void syscalls_end(struct kbarman_session *session)
{
	kbarman_memory_free(session->syscalls);
	session->syscalls = NULL;
}

static int syscalls_start(struct kbarman_session *session)
{
	int error;

	session->syscalls = kbarman_memory_pages(PLACES * sizeof(*session->syscalls), NUMA_NO_NODE);
	if (!session->syscalls)
		return -ENOMEM;
	error = kbarman_probes_attach(&syscalls_probes[0], 1, session);
	if (!error) {
		error = kbarman_probes_attach(&syscalls_probes[1], 1, kbarman_probe_data(session));
		if (!error)
			return 0;
		syscalls_detach(session, 1);
		kbarman_probes_wait();
	}
	syscalls_end(session);
	return error;
}

static void syscalls_stop(struct kbarman_session *session)
{
	syscalls_detach(session, 2);
}

const struct kbarman_source kbarman_source_syscalls = {
	.name = "syscalls",
	.bit = KBARMAN_SOURCE_SYSCALLS,
	.absent = KBARMAN_SOURCE_SYSCALLS,
	.probes = syscalls_probes,
	.nr_probes = ARRAY_SIZE(syscalls_probes),
	.start = syscalls_start,
	.stop = syscalls_stop,
	.end = syscalls_end,
};
