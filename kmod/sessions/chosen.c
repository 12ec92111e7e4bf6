// SPDX-License-Identifier: GPL-2.0-only
#include <linux/bitops.h>
#include <linux/minmax.h>
#include <linux/numa.h>
#include <linux/overflow.h>
#include <linux/pid.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/threads.h>

#include "capture/memory.h"
#include "session.h"
#include "sessions/calls.h"
#include "sessions/chosen.h"

u32 kbarman_chosen_choose(struct kbarman_session *session)
{
	u32 i, gone = session->config.nr_pids;
	struct task_struct *leader, *thread;

	for (i = 0; i < session->config.nr_pids; i++) {
		rcu_read_lock();
		leader = pid_task(session->pids[i], PIDTYPE_TGID);
		if (!leader)
			gone = min(gone, i);
		else
			for_each_thread(leader, thread)
				test_and_set_bit(thread->pid, session->tasks);
		rcu_read_unlock();
		cond_resched();
	}
	return gone;
}

int kbarman_chosen_allocate(struct kbarman_session *session, struct kbarman_wanted *wanted)
{
	u32 i, count = session->config.nr_pids;

	if (!count)
		return 0;
	session->tasks = kbarman_memory_pages(BITS_TO_LONGS(PID_MAX_LIMIT) * sizeof(long),
					      NUMA_NO_NODE);
	session->pids = kbarman_memory_pages(array_size(count, sizeof(*session->pids)),
					     NUMA_NO_NODE);
	if (!session->tasks || !session->pids)
		return -ENOMEM;
	for (i = 0; i < count; i++)
		session->pids[i] = find_get_pid(wanted->pids[i]);
	i = kbarman_chosen_choose(session);
	if (i == count)
		return 0;
	wanted->config.bad_index = i;
	return KBARMAN_REFUSE(&wanted->config, pids_ptr, ESRCH);
}

void kbarman_chosen_forget(struct kbarman_session *session)
{
	u32 i;

	for (i = 0; session->pids && i < session->config.nr_pids; i++)
		put_pid(session->pids[i]);
	kbarman_memory_free(session->pids);
	session->pids = NULL;
	kbarman_memory_free(session->tasks);
	session->tasks = NULL;
}
