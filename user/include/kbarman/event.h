/* SPDX-License-Identifier: MIT */
/*
 * The event: one decoded record of a capture, in host byte order. It does not depend on the
 * word size and byte order of the capture. All analyses and exports read events.
 */
#ifndef KBARMAN_EVENT_H
#define KBARMAN_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum kb_event_type {
	KB_EVENT_UNKNOWN = 0,		/* a record type that the library does not know */
	KB_EVENT_SAMPLE,		/* counters, with or without a PC */
	KB_EVENT_TASK_SWITCH,
	KB_EVENT_CUSTOM_COUNTER,
	KB_EVENT_ANNOTATION,
	KB_EVENT_HALT,
};

/*
 * What a value of a series of kbarman's own is about. Source: enum bm_kbarman_what of
 * kmod/uapi/barman_v2.h.
 */
enum kb_what {
	KB_WHAT_VALUE		= 0,	/* nothing but its value */
	KB_WHAT_WAKING		= 1,	/* `id` is woken; cpu: where it ran last */
	KB_WHAT_WAKING_NEW	= 2,	/* `id` may run for the first time; cpu: where */
	KB_WHAT_MIGRATE		= 3,	/* `id` goes to CPU `cpu` */
	KB_WHAT_IRQ_ENTRY	= 4,	/* interrupt `id`; cpu: number of handlers behind this one */
	KB_WHAT_IRQ_EXIT	= 5,
	KB_WHAT_IPI_ENTRY	= 6,	/* id: enum kb_ipi */
	KB_WHAT_IPI_EXIT	= 7,
	KB_WHAT_SOFTIRQ_RAISE	= 8,	/* softirq `id` */
	KB_WHAT_SOFTIRQ_ENTRY	= 9,
	KB_WHAT_SOFTIRQ_EXIT	= 10,
	KB_WHAT_FREQUENCY	= 11,	/* the value is kHz, of CPU `cpu` */
	KB_WHAT_IDLE_MISS	= 12,	/* CPU `cpu`, idle state `id`; context 0: too deep, 1: not
					 * deep enough */
	/* These have taken time: see begin, result and arguments. */
	KB_WHAT_SYSCALL		= 14,	/* system call `id` ends; cpu: KB_SYSCALL_* */
	KB_WHAT_FAULT		= 15,	/* a page fault ends; cpu: KB_FAULT_* */
	KB_WHAT_BLOCK		= 16,	/* a request to a block device ends; id: the task that gave it to
					 * Linux's queue, 0: not known; cpu: KB_BLOCK_* */
};

#define KB_SYSCALL_COMPAT	0x01	/* `id` is a number of the machine's other kind of programs */
#define KB_SYSCALL_ARGUMENTS	3

#define KB_FAULT_KERNEL		0x01	/* Linux wanted the page, in the task's place */
#define KB_FAULT_MAJOR		1	/* the result of a fault that waited for a disk, or for another task */
#define KB_FAULT_ADDRESS	0	/* which argument it is: what the program wanted */
#define KB_FAULT_PC		1

/* Source: Linux's REQ_OP_* and REQ_*, as enum bm_kbarman_what of barman_v2.h has them. */
#define KB_BLOCK_OPERATION	0x00ff	/* see kb_block_operation_name() */
#define KB_BLOCK_SYNC		0x0100
#define KB_BLOCK_META		0x0200
#define KB_BLOCK_AHEAD		0x0400
#define KB_BLOCK_FUA		0x0800
#define KB_BLOCK_PREFLUSH	0x1000
#define KB_BLOCK_SECTOR		0	/* which argument it is: the first sector, of 512 bytes */
#define KB_BLOCK_DEVICE		1	/* MAJOR << 20 | MINOR; 0: none */
#define KB_BLOCK_BYTES		2

/* In what it happened. Source: enum bm_kbarman_context. */
enum kb_context {
	KB_CONTEXT_TASK		= 0,
	KB_CONTEXT_SOFTIRQ	= 1,
	KB_CONTEXT_IRQ		= 2,
	KB_CONTEXT_IDLE		= 3,
};

/* Source: enum bm_kbarman_ipi. */
enum kb_ipi {
	KB_IPI_OTHER		= 0,
	KB_IPI_TIMER		= 1,
	KB_IPI_RESCHEDULE	= 2,
	KB_IPI_CALL		= 3,
	KB_IPI_CALL_ONE		= 4,
	KB_IPI_WORK		= 5,
	KB_IPI_TICK		= 6,
	KB_IPI_STOP		= 7,
};

#define KB_COUNTER_INVALID	UINT64_MAX	/* a counter value that was not valid */
#define KB_STATE_UNKNOWN	(-1)

/*
 * Why a task switch took the previous task off its CPU. Source: "Barman V2 Protocol", the
 * record of a task switch.
 */
enum kb_switch_reason {
	KB_SWITCH_PREEMPTED	= 0,	/* the task could have run on */
	KB_SWITCH_BLOCKED	= 1,	/* the task waits */
};

/* Source: "Barman V2 Protocol", the record of an annotation. */
enum kb_annotation_type {
	KB_ANNOTATION_STRING	= 0,	/* on its channel up to the next one; empty: the end */
	KB_ANNOTATION_BOOKMARK	= 1,	/* a moment */
	KB_ANNOTATION_CHANNEL	= 2,	/* the text names `channel`, which is in `group` */
	KB_ANNOTATION_GROUP	= 3,	/* the text names `group` */
};

/* A colour of an annotation, 0xTTRRGGBB. TT: see KB_ANNOTATE_RGB() of kbarman/annotate.h. */
#define KB_ANNOTATION_RGB(rgb)	(0x1b000000U | (uint32_t)(rgb))

/*
 * Bits of prev_state. Source: TASK_* of include/linux/sched.h. These bits are the same in every
 * Linux that the module builds for, 5.10 and later. What other bits mean depends on the recorded
 * kernel: see kb_state_letter().
 */
enum kb_task_state {
	KB_TASK_INTERRUPTIBLE	= 0x001,
	KB_TASK_UNINTERRUPTIBLE	= 0x002,
	KB_TASK_STOPPED		= 0x004,
	KB_TASK_TRACED		= 0x008,
	KB_TASK_NOLOAD		= 0x400,
	KB_TASK_IDLE		= KB_TASK_UNINTERRUPTIBLE | KB_TASK_NOLOAD,
};

/*
 * The core of a record that belongs to no core, which protocol version 3 allows. Only
 * annotations, custom counters and unknown records may have it. All other cores of known
 * records are below the header's max_cores. The core of an unknown record is not checked.
 */
#define KB_CORE_NONE		UINT32_MAX

struct kb_custom_value {
	uint32_t id;			/* index into the custom series, in range */
	uint64_t value;
};

/* Source: enum bm_kbarman_object_kind of kmod/uapi/barman_v2.h. */
enum kb_object_kind {
	KB_OBJECT_NONE = 0,		/* not known, or it does not wait */
	KB_OBJECT_CALL = 1,
	KB_OBJECT_NO_CALL = 2,
	KB_OBJECT_FILE = 3,
	KB_OBJECT_DEVICE = 4,
	KB_OBJECT_PIPE = 5,
	KB_OBJECT_SOCKET = 6,
	KB_OBJECT_ANON = 7,
	KB_OBJECT_FUTEX = 8,
	KB_OBJECT_MUTEX = 9,		/* this and those below: locks of Linux */
	KB_OBJECT_SEMAPHORE = 10,
	KB_OBJECT_RWSEM_READ = 11,
	KB_OBJECT_RWSEM_WRITE = 12,
	KB_OBJECT_FAULT = 13,
};

#define KB_OBJECT_IOWAIT	0x01
#define KB_OBJECT_COMPAT	0x02
#define KB_OBJECT_OUTSIDE	0x04

/*
 * What a task waits for, or what the call is about by which it wakes: struct bm_kbarman_object of
 * barman_v2.h says what the numbers are.
 */
struct kb_object {
	uint8_t kind;			/* enum kb_object_kind; unknown ones are possible */
	uint8_t flags;			/* KB_OBJECT_*; these four: by `kind` */
	uint16_t call;			/* number of the machine's system call */
	uint32_t id;
	uint64_t value;
};

/* Pointers belong to the decoder and hold until its next call. */
struct kb_event {
	enum kb_event_type type;
	uint32_t core;			/* < max_cores; see KB_CORE_NONE */
	uint64_t timestamp;		/* ticks; kb_barman_ns() converts to nanoseconds */
	uint32_t task_id;		/* 0 where the capture has no tasks; in a task switch:
					 * the next task */
	uint64_t offset;		/* offset of the record (behind its length word) in the
					 * capture, bytes */
	union {
		struct {
			bool has_pc;
			uint64_t pc;
			uint32_t nr_counters;
			uint32_t nr_custom;
			uint32_t nr_chain;		/* 0 = no call chain */
			uint32_t nr_chain_kernel;	/* of these, in front: kernel code */
			const uint64_t *counters;	/* deltas; KB_COUNTER_INVALID: no value */
			const struct kb_custom_value *custom;
			const uint64_t *chain;		/* addresses as recorded,
							 * innermost first: see
							 * kbarman/chain.h */
		} sample;
		struct {
			uint8_t reason;		/* enum kb_switch_reason */
			int prev_state;		/* of the previous task, as its kernel stores
						 * it: 16 bits, 8 in older captures, or
						 * KB_STATE_UNKNOWN; see enum kb_task_state,
						 * kb_state_letter() */
			/* The call chain of the previous task at the switch, as in a sample. */
			uint32_t nr_chain;
			uint32_t nr_chain_kernel;
			const uint64_t *chain;
			struct kb_object object;	/* what the previous task waits for */
		} task_switch;
		struct {
			uint32_t counter;	/* index into the custom series, in range */
			uint64_t value;
			/*
			 * If the value is a number of lost records: why, as kb_loss_name() counts the
			 * reasons, + 1 (0: not known), and the ticks of the first of them, or a little
			 * earlier. Of what has taken time: the ticks of its begin; 0: not known.
			 */
			uint8_t lost;
			uint64_t begin;
			/* 0 = a value and nothing else; of kbarman's own series: what it is about. */
			uint8_t what;		/* enum kb_what; unknown ones are possible */
			uint8_t context;	/* enum kb_context; these three: by `what` */
			uint16_t cpu;
			uint32_t id;
			/*
			 * Of a wakeup: the call in which the task is that runs. By this call it woke, if the
			 * context is KB_CONTEXT_TASK; it may have caused the softirq that woke.
			 */
			struct kb_object object;
			/*
			 * Of what has taken time: what it returned, from -4095 to -1 an errno, and
			 * KB_SYSCALL_ARGUMENTS arguments: those of the call, KB_FAULT_* or KB_BLOCK_*.
			 */
			int64_t result;
			const uint64_t *arguments;
		} custom_counter;
		struct {
			uint8_t type;		/* enum kb_annotation_type */
			uint32_t channel;
			uint32_t group;
			uint32_t colour;	/* as KB_ANNOTATION_RGB() makes it; 0: none */
			uint64_t data_length;	/* as the record says, including its NUL */
			const char *text;	/* not NUL-terminated, may be invalid UTF-8 */
			uint32_t text_length;	/* bytes; one trailing NUL is not counted */
		} annotation;
		struct {
			bool entered;
			int idle_state;		/* cpuidle index, or KB_STATE_UNKNOWN */
		} halt;
		struct {
			uint32_t record_type;
			uint64_t length;	/* of the whole record, in bytes */
			const void *record;	/* the whole record, in the capture's layout */
		} unknown;
	};
};

/* The word for an enum kb_object_kind but the first: "call"; NULL: a kind of a later release. */
const char *kb_object_name(uint8_t object);

/* The word for an enum kb_what, such as "waking"; NULL: a kind of a later release. */
const char *kb_what_name(uint8_t what);

/* The word for KB_BLOCK_OPERATION, such as "read"; NULL: it has none here. */
const char *kb_block_operation_name(uint8_t operation);

/* The word for an enum kb_context: "task", "softirq", "irq", "idle"; NULL: of a later release. */
const char *kb_context_name(uint8_t context);

/* A softirq as Linux calls it in its traces, such as "NET_RX"; NULL: a number of a later Linux. */
const char *kb_softirq_name(uint32_t softirq);

/* An enum kb_ipi in words of /proc/interrupts; "Other interrupts" also for unknown numbers. */
const char *kb_ipi_name(uint32_t ipi);

#ifdef __cplusplus
}
#endif

#endif
