// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tasks that go to another CPU.
 *
 * Context of the probe: pi_lock of the task and maybe an rq lock held, interrupts off; no sleeping,
 * no printk. The CPU is the one that moves the task, which may be neither of the two.
 */
#include <linux/mm_types.h>	/* 6.12: <trace/events/sched.h> needs this */
#include <linux/sched.h>
#include <trace/events/sched.h>

#include "compat/tracepoint.h"
#include "here.h"
#include "ring/record.h"
#include "sources/sources.h"

/* The task is still on its former CPU. */
static void on_migrate(void *data, struct task_struct *task, int cpu)
{
	struct kbarman_cpu *here = kbarman_here(data);
	u32 mover = current->pid;

	if (kbarman_wants(here->session, task->pid))
		kbarman_record_detail(&here->ring, mover, KBARMAN_SERIES_MIGRATIONS, 1,
				      kbarman_detail(BM_KBARMAN_MIGRATE, kbarman_context(mover),
						     task->pid, cpu));
}

static struct kbarman_probe migrate_probes[] = {
	{ KBARMAN_PROBE(sched_migrate_task, on_migrate) },
};

const struct kbarman_source kbarman_source_migrate = {
	.name = "migrate",
	.bit = KBARMAN_SOURCE_MIGRATE,
	.absent = KBARMAN_SOURCE_MIGRATE,
	.probes = migrate_probes,
	.nr_probes = ARRAY_SIZE(migrate_probes),
};
