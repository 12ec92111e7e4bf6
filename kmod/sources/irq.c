// SPDX-License-Identifier: GPL-2.0-only
/*
 * Interrupts: the handlers of Linux's table, and interrupts that have none there, most of which one
 * CPU sends to another one.
 *
 * Context of the probes: hard interrupt, interrupts off. Some run where RCU does not watch.
 */
#include <linux/interrupt.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <trace/events/irq.h>

#include "compat/tracepoint.h"
#include "here.h"
#include "ring/record.h"
#include "sources/sources.h"

static __always_inline void irq_record(void *data, enum bm_kbarman_what what, u32 id,
				       unsigned int behind)
{
	struct kbarman_ring *ring = &kbarman_here(data)->ring;
	bool entry = what == BM_KBARMAN_IRQ_ENTRY || what == BM_KBARMAN_IPI_ENTRY;

	kbarman_record_detail(ring, current->pid, KBARMAN_SERIES_INTERRUPTS, entry,
			      kbarman_detail(what, BM_KBARMAN_IN_IRQ, id, behind));
}

/* ---- handlers ---- */

/*
 * How many handlers of the interrupt come after @action. That is the same number at each of its
 * entries, and the number of a handler in /proc/interrupts counts from the other end.
 */
static __always_inline unsigned int irq_handlers_behind(const struct irqaction *action)
{
	unsigned int count = 0;

	while ((action = READ_ONCE(action->next)))
		count++;
	return count;
}

static notrace void on_irq_entry(void *data, int irq, struct irqaction *action)
{
	irq_record(data, BM_KBARMAN_IRQ_ENTRY, irq, irq_handlers_behind(action));
}

static notrace void on_irq_exit(void *data, int irq, struct irqaction *action, int ret)
{
	irq_record(data, BM_KBARMAN_IRQ_EXIT, irq, irq_handlers_behind(action));
}

#define IRQ_ENTRY_PROBE	{ KBARMAN_PROBE(irq_handler_entry, on_irq_entry) }
#define IRQ_EXIT_PROBE	{ KBARMAN_PROBE(irq_handler_exit, on_irq_exit) }

/* ---- interrupts without a handler there ---- */

#if defined(CONFIG_X86_LOCAL_APIC)
#include <asm/irq_vectors.h>
#include <asm/trace/irq_vectors.h>

static __always_inline enum bm_kbarman_ipi irq_ipi_of(int vector)
{
	switch (vector) {
	case LOCAL_TIMER_VECTOR:
		return BM_KBARMAN_IPI_TIMER;
	case RESCHEDULE_VECTOR:
		return BM_KBARMAN_IPI_RESCHEDULE;
	case CALL_FUNCTION_VECTOR:
		return BM_KBARMAN_IPI_CALL;
	case CALL_FUNCTION_SINGLE_VECTOR:
		return BM_KBARMAN_IPI_CALL_ONE;
	case IRQ_WORK_VECTOR:
		return BM_KBARMAN_IPI_WORK;
	default:
		return BM_KBARMAN_IPI_OTHER;
	}
}

static notrace void on_ipi_entry(void *data, int vector)
{
	irq_record(data, BM_KBARMAN_IPI_ENTRY, irq_ipi_of(vector), 0);
}

static notrace void on_ipi_exit(void *data, int vector)
{
	irq_record(data, BM_KBARMAN_IPI_EXIT, irq_ipi_of(vector), 0);
}

/* All these tracepoints are of one class, and some kernels do not declare all of them. */
#define IPI_PROBES(ipi)							\
	{ .name = ipi "_entry", .function = on_ipi_entry, .optional = true },	\
	{ .name = ipi "_exit", .function = on_ipi_exit, .optional = true }

static struct kbarman_probe irq_probes[] = {
	IRQ_ENTRY_PROBE,
	IRQ_EXIT_PROBE,
	{ KBARMAN_PROBE(local_timer_entry, on_ipi_entry), .optional = true },
	{ KBARMAN_PROBE(local_timer_exit, on_ipi_exit), .optional = true },
	IPI_PROBES("reschedule"),
	IPI_PROBES("call_function"),
	IPI_PROBES("call_function_single"),
	IPI_PROBES("irq_work"),
};
#elif defined(CONFIG_ARM64) || defined(CONFIG_ARM)
#include <trace/events/ipi.h>

/* By the names in /proc/interrupts. */
static __always_inline enum bm_kbarman_ipi irq_ipi_of(const char *reason)
{
	switch (reason[0]) {
	case 'R':	/* Rescheduling interrupts */
		return BM_KBARMAN_IPI_RESCHEDULE;
	case 'F':	/* Function call interrupts */
		return BM_KBARMAN_IPI_CALL;
	case 'S':	/* Single function call interrupts */
		return BM_KBARMAN_IPI_CALL_ONE;
	case 'I':	/* IRQ work interrupts */
		return BM_KBARMAN_IPI_WORK;
	case 'T':	/* Timer broadcast interrupts */
		return BM_KBARMAN_IPI_TICK;
	default:	/* CPU stop interrupts, CPU wake-up interrupts ... */
		return strncmp(reason, "CPU stop", strlen("CPU stop")) ? BM_KBARMAN_IPI_OTHER :
									 BM_KBARMAN_IPI_STOP;
	}
}

static notrace void on_ipi_entry(void *data, const char *reason)
{
	irq_record(data, BM_KBARMAN_IPI_ENTRY, irq_ipi_of(reason), 0);
}

static notrace void on_ipi_exit(void *data, const char *reason)
{
	irq_record(data, BM_KBARMAN_IPI_EXIT, irq_ipi_of(reason), 0);
}

static struct kbarman_probe irq_probes[] = {
	IRQ_ENTRY_PROBE,
	IRQ_EXIT_PROBE,
	{ KBARMAN_PROBE(ipi_entry, on_ipi_entry), .optional = true },
	{ KBARMAN_PROBE(ipi_exit, on_ipi_exit), .optional = true },
};
#else
static struct kbarman_probe irq_probes[] = { IRQ_ENTRY_PROBE, IRQ_EXIT_PROBE };
#endif

/* ---- the source ---- */

const struct kbarman_source kbarman_source_irq = {
	.name = "irq",
	.bit = KBARMAN_SOURCE_IRQ,
	.absent = KBARMAN_SOURCE_IRQ,
	.probes = irq_probes,
	.nr_probes = ARRAY_SIZE(irq_probes),
};
