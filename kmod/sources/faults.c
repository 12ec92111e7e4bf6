// SPDX-License-Identifier: GPL-2.0-only
/*
 * Page faults, each when it ends: as perf's software events tell them, of which each CPU has three. A fault that
 * brings no page has no such end. Its record is written when its task's next fault begins, or when the task
 * exits. Until then nothing but the registers with which the task entered the kernel tells it from one that goes on.
 *
 * Context of the handlers: the task that faults, preemption off.
 */
#include <linux/err.h>
#include <linux/mm_types.h>	/* 6.12: for <trace/events/sched.h> */
#include <linux/perf_event.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <trace/events/sched.h>

#include "capture/memory.h"
#include "compat/task.h"
#include "compat/tracepoint.h"
#include "here.h"
#include "ring/record.h"
#include "sources/object.h"
#include "sources/sources.h"

/* A fault that is under way. Its task alone writes it, from when the task has put its number here. */
struct kbarman_fault {
	u32 task_id;			/* 0 = nobody's */
	u16 flags;			/* BM_KBARMAN_FAULT_* */
	u64 begin;
	u64 address;
	u64 pc;
	u64 entry;
};

#define PLACES	16384

static struct kbarman_fault *faults_place(const struct kbarman_session *session, u32 task_id)
{
	struct kbarman_fault *faults = READ_ONCE(session->faults);

	return faults ? &faults[task_id % PLACES] : NULL;
}

static void faults_record(struct kbarman_cpu *here, const struct kbarman_fault *fault, s64 result)
{
	const struct kbarman_ended ended = {
		.begin = fault->begin << KBARMAN_BEGIN_SHIFT,
		.result = result,
		.numbers = { fault->address, fault->pc },
	};

	kbarman_record_ended(&here->ring, current->pid, KBARMAN_SERIES_FAULTS,
			     kbarman_detail(BM_KBARMAN_FAULT, BM_KBARMAN_IN_TASK, 0, fault->flags), &ended,
			     KBARMAN_FAULT_NUMBERS);
}

static u64 faults_address(const struct perf_sample_data *data)
{
#ifdef KBARMAN_HAVE_SAMPLE_FLAGS
	if (!(data->sample_flags & PERF_SAMPLE_ADDR))
		return 0;
#endif
	return data->addr;
}

static u16 faults_flags(struct pt_regs *regs)
{
	return user_mode(regs) ? 0 : BM_KBARMAN_FAULT_KERNEL;
}

/* 0 in place of an address that the session's owner may not see. */
static u64 faults_pc(const struct kbarman_session *session, struct pt_regs *regs)
{
	return user_mode(regs) || session->kernel_addresses ? instruction_pointer(regs) : 0;
}

/* From where, and with what, the current task entered the kernel last: another call or fault has another number. */
static u64 faults_entry(void)
{
	struct pt_regs *regs = task_pt_regs(current);
	u64 entry = rol64(instruction_pointer(regs), 32) ^ user_stack_pointer(regs);
	unsigned int i;

	for (i = 0; i < 3; i++)
		entry = rol64(entry, 7) ^ kbarman_call_argument(regs, i);
	return entry;
}

bool kbarman_fault_here(const struct kbarman_session *session, u64 *address)
{
	const struct kbarman_fault *place = faults_place(session, current->pid);

	if (!place || READ_ONCE(place->task_id) != current->pid || place->entry != faults_entry())
		return false;
	*address = place->address;
	return true;
}

static void on_fault_begin(struct perf_event *event, struct perf_sample_data *data, struct pt_regs *regs)
{
	struct kbarman_cpu *here = event->overflow_handler_context;
	struct kbarman_fault *place = faults_place(here->session, current->pid);

	if (!place || !kbarman_wants(here->session, current->pid))
		return;
	if (READ_ONCE(place->task_id) == current->pid)
		faults_record(here, place, -EFAULT);
	else if (cmpxchg(&place->task_id, 0, current->pid))
		return;
	place->flags = faults_flags(regs);
	place->begin = kbarman_clock();
	place->address = faults_address(data);
	place->pc = faults_pc(here->session, regs);
	place->entry = faults_entry();
}

static void on_fault_end(struct perf_event *event, struct perf_sample_data *data, struct pt_regs *regs)
{
	struct kbarman_cpu *here = event->overflow_handler_context;
	struct kbarman_fault *place = faults_place(here->session, current->pid);
	bool major = event->attr.config == PERF_COUNT_SW_PAGE_FAULTS_MAJ;
	struct kbarman_fault unbegun;

	if (!place || !kbarman_wants(here->session, current->pid))
		return;
	if (READ_ONCE(place->task_id) == current->pid) {
		faults_record(here, place, major);
		smp_store_release(&place->task_id, 0);
		return;
	}
	unbegun = (struct kbarman_fault) {
		.flags = faults_flags(regs),
		.address = faults_address(data),
		.pc = faults_pc(here->session, regs),
	};
	faults_record(here, &unbegun, major);
}

static void on_exit(KBARMAN_EXIT_ARGUMENTS)
{
	struct kbarman_cpu *here;
	struct kbarman_fault *place;

	preempt_disable_notrace();
	here = kbarman_here(data);
	place = faults_place(here->session, current->pid);
	if (place && READ_ONCE(place->task_id) == current->pid) {
		faults_record(here, place, -EFAULT);
		smp_store_release(&place->task_id, 0);
	}
	preempt_enable_notrace();
}

static struct kbarman_probe faults_probes[] = {
	{ KBARMAN_PROBE(sched_process_exit, on_exit) },
};

/* The events come before the table, and go before it. */
static int faults_start(struct kbarman_session *session)
{
	struct kbarman_fault *faults = kbarman_memory_pages(PLACES * sizeof(*faults), NUMA_NO_NODE);
	int error;

	if (!faults)
		return -ENOMEM;
	error = kbarman_probes_attach(faults_probes, ARRAY_SIZE(faults_probes), kbarman_probe_data(session));
	if (error)
		kbarman_memory_free(faults);
	else
		WRITE_ONCE(session->faults, faults);
	return error;
}

static void faults_stop(struct kbarman_session *session)
{
	kbarman_probes_detach(faults_probes, ARRAY_SIZE(faults_probes), kbarman_probe_data(session));
}

static void faults_end(struct kbarman_session *session)
{
	kbarman_memory_free(session->faults);
	session->faults = NULL;
}

/* ---- the events of a CPU ---- */

static const struct {
	u64 config;
	perf_overflow_handler_t handler;
} faults_events[KBARMAN_FAULT_EVENTS] = {
	{ PERF_COUNT_SW_PAGE_FAULTS_MIN, on_fault_end },
	{ PERF_COUNT_SW_PAGE_FAULTS_MAJ, on_fault_end },
	{ PERF_COUNT_SW_PAGE_FAULTS, on_fault_begin },
};

static int faults_cpu_prepare(struct kbarman_session *session, int cpu, struct kbarman_start *report)
{
	struct kbarman_cpu *percpu = per_cpu_ptr(session->each, cpu);
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.sample_period = 1,
	};
	struct perf_event *event;
	int i;

	for (i = 0; i < KBARMAN_FAULT_EVENTS; i++) {
		attr.config = faults_events[i].config;
		event = perf_event_create_kernel_counter(&attr, cpu, NULL, faults_events[i].handler, percpu);
		if (IS_ERR(event))
			return PTR_ERR(event);
		percpu->faults[i] = event;
	}
	return 0;
}

static void faults_cpu_stop(struct kbarman_session *session, int cpu)
{
	struct kbarman_cpu *percpu = per_cpu_ptr(session->each, cpu);
	int i;

	for (i = 0; i < KBARMAN_FAULT_EVENTS; i++) {
		if (percpu->faults[i])
			perf_event_release_kernel(percpu->faults[i]);
		percpu->faults[i] = NULL;
	}
}

const struct kbarman_source kbarman_source_faults = {
	.name = "faults",
	.bit = KBARMAN_SOURCE_FAULTS,
	.absent = KBARMAN_SOURCE_FAULTS,
	.probes = faults_probes,
	.nr_probes = ARRAY_SIZE(faults_probes),
	.start = faults_start,
	.stop = faults_stop,
	.end = faults_end,
	.cpu_prepare = faults_cpu_prepare,
	.cpu_stop = faults_cpu_stop,
};
