// SPDX-License-Identifier: MIT
/*
 * Words for the numbers in events. Softirqs have the order of include/linux/interrupt.h, which is
 * the same in every Linux that the module builds for.
 */
#include <stddef.h>

#include <kbarman/event.h>

#include "base/array.h"

static const char *const whats[] = {
	[KB_WHAT_VALUE]		= "value",
	[KB_WHAT_WAKING]	= "waking",
	[KB_WHAT_WAKING_NEW]	= "waking_new",
	[KB_WHAT_MIGRATE]	= "migrate",
	[KB_WHAT_IRQ_ENTRY]	= "irq_entry",
	[KB_WHAT_IRQ_EXIT]	= "irq_exit",
	[KB_WHAT_IPI_ENTRY]	= "ipi_entry",
	[KB_WHAT_IPI_EXIT]	= "ipi_exit",
	[KB_WHAT_SOFTIRQ_RAISE]	= "softirq_raise",
	[KB_WHAT_SOFTIRQ_ENTRY]	= "softirq_entry",
	[KB_WHAT_SOFTIRQ_EXIT]	= "softirq_exit",
	[KB_WHAT_FREQUENCY]	= "frequency",
	[KB_WHAT_IDLE_MISS]	= "idle_miss",
	[KB_WHAT_SYSCALL]	= "syscall",
	[KB_WHAT_FAULT]		= "fault",
	[KB_WHAT_BLOCK]		= "block",
};

static const char *const objects[] = {
	[KB_OBJECT_CALL]	= "call",
	[KB_OBJECT_NO_CALL]	= "no_call",
	[KB_OBJECT_FILE]	= "file",
	[KB_OBJECT_DEVICE]	= "device",
	[KB_OBJECT_PIPE]	= "pipe",
	[KB_OBJECT_SOCKET]	= "socket",
	[KB_OBJECT_ANON]	= "anon",
	[KB_OBJECT_FUTEX]	= "futex",
	[KB_OBJECT_MUTEX]	= "mutex",
	[KB_OBJECT_SEMAPHORE]	= "semaphore",
	[KB_OBJECT_RWSEM_READ]	= "rwsem_read",
	[KB_OBJECT_RWSEM_WRITE]	= "rwsem_write",
	[KB_OBJECT_FAULT]	= "fault",
};

static const char *const contexts[] = {
	[KB_CONTEXT_TASK]	= "task",
	[KB_CONTEXT_SOFTIRQ]	= "softirq",
	[KB_CONTEXT_IRQ]	= "irq",
	[KB_CONTEXT_IDLE]	= "idle",
};

/* Linux's REQ_OP_*, as those of 5.10 and later agree on them. */
static const char *const operations[] = {
	[0] = "read", [1] = "write", [2] = "flush", [3] = "discard", [5] = "secure_erase",
	[9] = "write_zeroes", [34] = "drv_in", [35] = "drv_out",
};

static const char *const softirqs[] = {
	"HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER",
	"RCU",
};

static const char *const ipis[] = {
	[KB_IPI_OTHER]		= "Other interrupts",
	[KB_IPI_TIMER]		= "Local timer interrupts",
	[KB_IPI_RESCHEDULE]	= "Rescheduling interrupts",
	[KB_IPI_CALL]		= "Function call interrupts",
	[KB_IPI_CALL_ONE]	= "Single function call interrupts",
	[KB_IPI_WORK]		= "IRQ work interrupts",
	[KB_IPI_TICK]		= "Timer broadcast interrupts",
	[KB_IPI_STOP]		= "CPU stop interrupts",
};

const char *kb_object_name(uint8_t object)
{
	return object < ARRAY_SIZE(objects) ? objects[object] : NULL;
}

const char *kb_what_name(uint8_t what)
{
	return what < ARRAY_SIZE(whats) ? whats[what] : NULL;
}

const char *kb_block_operation_name(uint8_t operation)
{
	return operation < ARRAY_SIZE(operations) ? operations[operation] : NULL;
}

const char *kb_context_name(uint8_t context)
{
	return context < ARRAY_SIZE(contexts) ? contexts[context] : NULL;
}

const char *kb_softirq_name(uint32_t softirq)
{
	return softirq < ARRAY_SIZE(softirqs) ? softirqs[softirq] : NULL;
}

const char *kb_ipi_name(uint32_t ipi)
{
	return ipis[ipi < ARRAY_SIZE(ipis) ? ipi : KB_IPI_OTHER];
}
