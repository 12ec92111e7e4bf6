/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * The Barman v2 wire format, in the byte order of this machine.
 *
 * A capture has the word size of the kernel that made it, which a program of 32 bits on a 64-bit
 * kernel does not have. The magic says which it is. Three structs and the words of the record
 * buffer depend on it: what begins with bm64_ or BM64_ is for captures with
 * BM64_PROTOCOL_MAGIC_BYTES, bm32_ and BM32_ for those with BM32_PROTOCOL_MAGIC_BYTES. All other
 * structs are those of both. No type here depends on the compiler: the layouts are the same on
 * every machine. A `word` below is a __u32 or a __u64.
 *
 * A capture is one header and one record buffer:
 *
 *	struct bm_protocol_header_start		magic ... string_table_length
 *	char string_table[max_string_table_length]
 *	struct bm64_protocol_header_pmu_settings [max_cores], or bm32_
 *	__u32 num_task_entries			only if max_task_infos > 0
 *	struct bm_protocol_header_task_info	[max_task_infos]
 *	__u32 num_mmap_layout_entries		only if max_mmap_layout > 0
 *	struct bm64_protocol_header_mmap_layout	[max_mmap_layout], or bm32_
 *	__u32 num_custom_charts			only if num_custom_counters > 0
 *	struct bm_protocol_header_custom_chart	[num_custom_charts]
 *	struct bm_protocol_header_custom_chart_series [num_custom_counters]
 *	0 to 7 bytes, so that the next offset is a multiple of 8
 *	struct bm_datastore_header_data
 *	the record buffer: blocks, each a word with a length and that many bytes
 *
 * Later modules may write records with more bytes at their end, record types, values of enums and
 * strings that this file does not know. A reader passes over them. Where something follows only if
 * the block is long enough, the block of an earlier module is not: the fields are as if they were
 * not announced. Blocks are filled with zeros up to a multiple of a word. More than a word of a
 * sample or a switch follows its call chain only, which has no addresses then.
 *
 * A field *_ptr of the header is an offset into the string table, at which a string ends with a
 * NUL. All names are the format's own names. The structs are packed because the format is packed. A
 * struct that is aligned in every capture of kbarman has an aligned attribute. Fields that exist
 * only if max_task_infos > 0 are always declared, because kbarman always has max_task_infos > 0.
 */
#ifndef _UAPI_BARMAN_V2_H
#define _UAPI_BARMAN_V2_H

#include <linux/types.h>

#define BM32_PROTOCOL_MAGIC_BYTES	0x4241524d414e3332ULL	/* "BARMAN32" */
#define BM64_PROTOCOL_MAGIC_BYTES	0x4241524d414e3634ULL	/* "BARMAN64" */

#define BM_PROTOCOL_VERSION		2
#define BM_MAX_PMU_COUNTERS		32

enum bm_data_store_type {
	BM_DATA_STORE_LINEAR		= 1,
	BM_DATA_STORE_CIRCULAR		= 2,
};

struct bm_protocol_config_values {
	__u32 max_cores;
	__u32 max_task_infos;
	__u32 max_mmap_layout;
	__u32 max_pmu_counters;
	__u32 max_string_table_length;
	__u32 num_custom_counters;
} __attribute__((packed));

/* ns = (timestamp - timestamp_base) * timestamp_multiplier / timestamp_divisor */
struct bm_protocol_clock_info {
	__u64 timestamp_base;
	__u64 timestamp_multiplier;
	__u64 timestamp_divisor;
	__u64 unix_base_ns;		/* CLOCK_REALTIME at timestamp_base */
} __attribute__((packed));

/* The part of the header with a fixed layout: 96 bytes. */
struct bm_protocol_header_start {
	__u64 magic_bytes;
	__u32 protocol_version;
	__u32 header_length;		/* bytes, up to and including bm_datastore_header_data */
	__u32 data_store_type;		/* enum bm_data_store_type */
	__u32 target_name_ptr;
	__u64 last_timestamp;
	__u32 timer_sample_rate;	/* Hz, 0 = not sampled by a timer */
	struct bm_protocol_config_values config_constants;
	struct bm_protocol_clock_info clock_info;
	__u32 string_table_length;	/* bytes in use; the table follows */
} __attribute__((packed, aligned(8)));

struct bm32_protocol_header_pmu_settings {
	__u64 configuration_timestamp;
	__u32 midr;
	__u32 mpidr;
	__u32 cluster_id;
	__u32 num_counters;
	__u32 counter_types[BM_MAX_PMU_COUNTERS];
} __attribute__((packed, aligned(4)));

struct bm64_protocol_header_pmu_settings {
	__u64 configuration_timestamp;
	__u32 midr;
	__u64 mpidr;
	__u32 cluster_id;
	__u32 num_counters;
	__u32 counter_types[BM_MAX_PMU_COUNTERS];
} __attribute__((packed, aligned(4)));

struct bm_protocol_header_task_info {
	__u64 timestamp;
	__u32 task_id;
	__u32 task_name_ptr;
} __attribute__((packed, aligned(4)));

/*
 * What a row of the task table has no field for, where the string kbarman.tasks=OFFSET says that
 * the capture has it: at OFFSET of the capture, a multiple of 8, is struct bm_kbarman_tasks. It is
 * in the room for strings, behind those that there may be, so a reader that does not know it sees
 * nothing of it. The first element is `size` bytes behind the begin of the struct. Element i is
 * about row i of the task table, if both have the same task_id. A writer may know more fields than
 * a reader, or fewer: what a struct does not have is 0.
 */
struct bm_kbarman_tasks {
	__u32 size;			/* bytes of this struct */
	__u32 element_size;		/* bytes of an element, a multiple of 8 */
	__u32 count;			/* elements that there is room for: max_task_infos */
	__u32 reserved;			/* 0 */
};

#define BM_KBARMAN_TASKS_SIZE_VER0	16

struct bm_kbarman_task {
	__u32 task_id;
	__u32 tgid;			/* thread group (process) id */
	__u64 exit_timestamp;		/* 0 while the task lives */
};

#define BM_KBARMAN_TASK_SIZE_VER0	16

struct bm32_protocol_header_mmap_layout {
	__u64 timestamp;
	__u32 task_id;
	__u32 base_address;
	__u32 length;
	__u32 image_offset;	/* file offset of base_address */
	__u32 image_ptr;
} __attribute__((packed, aligned(4)));

struct bm64_protocol_header_mmap_layout {
	__u64 timestamp;
	__u32 task_id;
	__u64 base_address;
	__u64 length;
	__u64 image_offset;	/* file offset of base_address */
	__u32 image_ptr;
} __attribute__((packed, aligned(4)));

enum bm_series_composition {
	BM_SERIES_STACKED		= 1,
	BM_SERIES_OVERLAY		= 2,
	BM_SERIES_LOG10			= 3,
};

enum bm_rendering_type {
	BM_RENDERING_FILLED		= 1,
	BM_RENDERING_LINE		= 2,
	BM_RENDERING_BAR		= 3,
};

#define BM_CHART_AVERAGE_SELECTION	0x01
#define BM_CHART_AVERAGE_CORES		0x02
#define BM_CHART_PERCENTAGE		0x04
#define BM_CHART_PER_CPU		0x08

struct bm_protocol_header_custom_chart {
	__u32 name_ptr;
	__u8 series_composition;	/* enum bm_series_composition */
	__u8 rendering_type;		/* enum bm_rendering_type */
	__u8 boolean_flags;		/* BM_CHART_* */
} __attribute__((packed));

enum bm_series_class {
	BM_SERIES_CLASS_DELTA		= 1,
	BM_SERIES_CLASS_INCIDENT	= 2,
	BM_SERIES_CLASS_ABSOLUTE	= 3,
};

enum bm_series_display {
	BM_SERIES_DISPLAY_ACCUMULATE	= 1,
	BM_SERIES_DISPLAY_AVERAGE	= 2,
	BM_SERIES_DISPLAY_HERTZ		= 3,
	BM_SERIES_DISPLAY_MAXIMUM	= 4,
	BM_SERIES_DISPLAY_MINIMUM	= 5,
};

#define BM_SERIES_SAMPLED		0x01
#define BM_SERIES_COLOUR_AUTOMATIC	0xffffffffU

struct bm_protocol_header_custom_chart_series {
	__u32 chart_index;
	__u32 name_ptr;
	__u32 units_ptr;
	__u32 description_ptr;
	__u32 colour;			/* 0x00RRGGBB or BM_SERIES_COLOUR_AUTOMATIC */
	__u64 multiplier;		/* the bits of an IEEE 754 double */
	__u8 series_class;		/* enum bm_series_class; "class" in the format */
	__u8 display;			/* enum bm_series_display */
	__u8 boolean_flags;		/* BM_SERIES_SAMPLED */
} __attribute__((packed));

/* Offsets count bytes and never decrease. Readers and writers reduce them modulo buffer_length. */
struct bm_datastore_header_data {
	__u64 buffer_length;
	__u64 write_offset;
	__u64 read_offset;
	__u64 total_written;
	__u64 base_pointer;		/* 0; has no meaning outside of the writer */
} __attribute__((aligned(8)));

/*
 * A block is a word and as many bytes as its lower bits say. This length does not include the word
 * itself, and is a multiple of the word's size. The top bit marks a block without a record: padding,
 * or a record that its writer has not finished.
 */
#define BM32_BLOCK_PADDING	0x80000000U
#define BM64_BLOCK_PADDING	0x8000000000000000ULL

enum bm_record_type {
	BM_RECORD_SAMPLE		= 1,
	BM_RECORD_SAMPLE_WITH_PC	= 2,
	BM_RECORD_TASK_SWITCH		= 3,
	BM_RECORD_CUSTOM_COUNTER	= 4,
	BM_RECORD_ANNOTATION		= 5,
	BM_RECORD_HALTING_EVENT		= 6,
};

struct bm_protocol_record_header {
	__u32 record_type;		/* enum bm_record_type */
	__u32 core;
	__u64 timestamp;
} __attribute__((packed));

struct bm_custom_counter_sample {
	__u32 id;
	__u64 value;
} __attribute__((packed, aligned(4)));

/*
 * More fields follow this struct. BM_RECORD_SAMPLE_WITH_PC has a word pc_sample first. Both
 * kinds of samples then have __u64 pmu_counter_delta_value[], with the core's num_counters
 * elements, and struct bm_custom_counter_sample[num_custom_counters]. The field num_custom_counters
 * exists only if num_custom_counters in the header is not 0.
 */
struct bm_protocol_sample {
	struct bm_protocol_record_header header;
	__u32 task_id;
	__u32 num_custom_counters;
} __attribute__((packed, aligned(4)));

enum bm_task_switch_reason {
	BM_TASK_SWITCH_PREEMPTED	= 0,
	BM_TASK_SWITCH_BLOCKED		= 1,
};

/* No switch: the task ran already when the recording of the CPU began. */
#define BM_TASK_SWITCH_FIRST		0x01
/* The last bytes of the block, behind the chain, are a struct bm_kbarman_object. */
#define BM_TASK_SWITCH_OBJECT		0x02

/*
 * The format defines the first 21 bytes. The other fields are an extension that the string
 * kbarman.ext=1 announces. The string kbarman.states says what the bits of prev_state mean. Without
 * this string there is no prev_state_high. The call chain of the previous task may follow.
 */
struct bm_protocol_task_switch {
	struct bm_protocol_record_header header;
	__u32 task_id;			/* of the next task */
	__u8 reason;			/* enum bm_task_switch_reason */
	__u8 prev_state;		/* low 8 bits of the previous task's state; 2 (D) if that
					 * task waits for a lock of PREEMPT_RT */
	__u8 prev_state_high;		/* the next 8 bits */
	__u8 flags;			/* BM_TASK_SWITCH_* */
} __attribute__((packed));

struct bm_protocol_custom_counter {
	struct bm_protocol_record_header header;
	__u32 task_id;
	__u32 counter;			/* row of the table of series in this capture */
	__u64 value;
} __attribute__((packed, aligned(4)));

/*
 * What a value of kbarman's own series is about, if kbarman.ext=1 announces extensions and the
 * block is long enough: it follows struct bm_protocol_custom_counter. The task_id in front of it is
 * the task that ran. The value is 1, or kHz of a frequency. It is 0 of exits, and of softirqs that
 * are asked for: so a reader that does not know this struct sees how often something happened.
 */
enum bm_kbarman_what {
	BM_KBARMAN_WAKING	= 1,	/* `id` is woken. cpu: where it ran last */
	BM_KBARMAN_WAKING_NEW	= 2,	/* `id` may run for the first time. cpu: where */
	BM_KBARMAN_MIGRATE	= 3,	/* `id` goes to another CPU. cpu: the other CPU */
	BM_KBARMAN_IRQ_ENTRY	= 4,	/* the handler of interrupt `id` begins. cpu: number of
					 * handlers of that interrupt that come after this one */
	BM_KBARMAN_IRQ_EXIT	= 5,	/* ... ends */
	BM_KBARMAN_IPI_ENTRY	= 6,	/* an interrupt without a handler of Linux's table begins.
					 * id: enum bm_kbarman_ipi */
	BM_KBARMAN_IPI_EXIT	= 7,	/* ... ends */
	BM_KBARMAN_SOFTIRQ_RAISE = 8,	/* softirq `id` is asked for */
	BM_KBARMAN_SOFTIRQ_ENTRY = 9,	/* its action begins */
	BM_KBARMAN_SOFTIRQ_EXIT	= 10,	/* ... ends */
	BM_KBARMAN_FREQUENCY	= 11,	/* the value is kHz from now on, of CPU `cpu` */
	BM_KBARMAN_IDLE_MISS	= 12,	/* CPU `cpu` has left idle state `id`, which was too deep
					 * (context 0) or not deep enough (1) */
	BM_KBARMAN_LOST		= 13,	/* as many records as the value says are missing in front
					 * of this one, because of `id`, enum kbarman_loss in
					 * kbarman.h: struct bm_kbarman_loss */
	BM_KBARMAN_SYSCALL	= 14,	/* system call `id` ends: struct bm_kbarman_syscall. cpu:
					 * BM_KBARMAN_SYSCALL_* */
	BM_KBARMAN_FAULT	= 15,	/* a page fault ends: struct bm_kbarman_fault. id: 0. cpu:
					 * BM_KBARMAN_FAULT_* */
	BM_KBARMAN_BLOCK	= 16,	/* a request to a block device, or a part of it, ends: struct
					 * bm_kbarman_block. id: the task that gave it to Linux's
					 * queue; 0: not known. cpu: BM_KBARMAN_BLOCK_* */
};

/* In what a record was written. Of a wakeup: what woke. */
enum bm_kbarman_context {
	BM_KBARMAN_IN_TASK	= 0,
	BM_KBARMAN_IN_SOFTIRQ	= 1,
	BM_KBARMAN_IN_IRQ	= 2,
	BM_KBARMAN_IN_IDLE	= 3,	/* the idle task */
};

enum bm_kbarman_ipi {
	BM_KBARMAN_IPI_OTHER	= 0,
	BM_KBARMAN_IPI_TIMER	= 1,	/* the timer of this CPU */
	BM_KBARMAN_IPI_RESCHEDULE = 2,
	BM_KBARMAN_IPI_CALL	= 3,	/* calls of functions on several CPUs */
	BM_KBARMAN_IPI_CALL_ONE	= 4,	/* ... on one */
	BM_KBARMAN_IPI_WORK	= 5,	/* irq_work */
	BM_KBARMAN_IPI_TICK	= 6,	/* a broadcast of the timer */
	BM_KBARMAN_IPI_STOP	= 7,
};

/*
 * Where kbarman.objects=1, a struct bm_kbarman_object follows a wakeup if the task that runs is one of a
 * program and in a system call: the call, and what it is about, in the same words as of a task that waits for
 * that. If `context` is BM_KBARMAN_IN_TASK, this call woke; in a softirq it may have caused it, or not.
 */
struct bm_kbarman_detail {
	__u32 id;
	__u16 cpu;
	__u8 what;			/* enum bm_kbarman_what */
	__u8 context;			/* enum bm_kbarman_context */
} __attribute__((packed, aligned(4)));

/*
 * The first of the lost records would have had the timestamp `begin`, or one a little later. What
 * the CPU did from then on, or from the record in front of this one if that is later, is not known:
 * the task switches may be among the lost records. Several such values come in the order of
 * `begin`.
 */
struct bm_kbarman_loss {
	struct bm_kbarman_detail detail;
	__u64 begin;
} __attribute__((packed, aligned(4)));

/*
 * A system call of the task that runs, when it ends. The kernel's numbers of calls are those of the machine. Of
 * a call that began before the recording, or of whose begin is nothing known, `begin` is 0: the first return of
 * a new task from the call that made it has none, either. The arguments are what is in the registers at the end:
 * execve(2) has those of the new program.
 */
struct bm_kbarman_syscall {
	struct bm_kbarman_detail detail;
	__u64 begin;			/* timestamp */
	__s64 result;			/* what the call returns: from -4095 on a negative errno */
	__u64 arguments[3];		/* the first ones */
} __attribute__((packed, aligned(4)));

#define BM_KBARMAN_SYSCALL_COMPAT	0x01	/* `id` is a number of the machine's other kind of programs:
						 * those of 32 bits on a 64-bit kernel */

/*
 * A page fault of the task that runs, when it ends. `begin` is 0 if the fault began before the recording, or if
 * nothing is known of its begin. A fault that brings no page is one whose address the program does not have, or
 * which a signal ends. Nothing says when that ends: its record is written when the task's next fault begins, or
 * when the task exits.
 */
struct bm_kbarman_fault {
	struct bm_kbarman_detail detail;
	__u64 begin;			/* timestamp */
	__s64 result;			/* 0: minor; 1: major, it waited for a disk or for another task; below 0:
					 * no page came */
	__u64 address;			/* what the program wanted */
	__u64 pc;			/* the instruction that wanted it; 0: one of Linux, and the session's
					 * owner lacked CAP_SYSLOG */
} __attribute__((packed, aligned(4)));

#define BM_KBARMAN_FAULT_KERNEL		0x01	/* Linux wanted the page, in the task's place */

/*
 * A request to a block device, from when Linux gave it to the driver to when that had done it. `begin` is 0 if
 * the request was with the driver when the recording began, or if nothing is known of its begin. A driver may do
 * a request in parts: each has a record, from the begin of all.
 */
struct bm_kbarman_block {
	struct bm_kbarman_detail detail;
	__u64 begin;			/* timestamp */
	__s64 result;			/* 0, or a negative errno */
	__u64 sector;			/* the first one, of 512 bytes */
	__u32 device;			/* MAJOR << 20 | MINOR of the disk; 0: it has none */
	__u32 bytes;
} __attribute__((packed, aligned(4)));

#define BM_KBARMAN_BLOCK_OPERATION	0x00ff	/* Linux's REQ_OP_*: 0 read, 1 write, 2 flush, 3 discard ... */
#define BM_KBARMAN_BLOCK_SYNC		0x0100	/* somebody waits for it */
#define BM_KBARMAN_BLOCK_META		0x0200	/* metadata of a file system */
#define BM_KBARMAN_BLOCK_AHEAD		0x0400	/* read ahead */
#define BM_KBARMAN_BLOCK_FUA		0x0800	/* done when it is on the disk, past its caches */
#define BM_KBARMAN_BLOCK_PREFLUSH	0x1000	/* the disk's caches are flushed before it */

enum bm_annotation_type {
	BM_ANNOTATION_STRING		= 0,
	BM_ANNOTATION_BOOKMARK		= 1,
	BM_ANNOTATION_CHANNEL		= 2,
	BM_ANNOTATION_GROUP		= 3,
};

struct bm32_protocol_annotation {
	struct bm_protocol_record_header header;
	__u32 task_id;
	__u32 data_length;		/* bytes of the text with its NUL; 0 ends the annotation */
	__u32 channel;
	__u32 group;
	__u32 colour;			/* 0xTTRRGGBB */
	__u8 type;			/* enum bm_annotation_type */
	__u8 data[];
} __attribute__((packed));

struct bm64_protocol_annotation {
	struct bm_protocol_record_header header;
	__u32 task_id;
	__u64 data_length;		/* bytes of the text with its NUL; 0 ends the annotation */
	__u32 channel;
	__u32 group;
	__u32 colour;			/* 0xTTRRGGBB */
	__u8 type;			/* enum bm_annotation_type */
	__u8 data[];
} __attribute__((packed));

/*
 * The format defines the first 17 bytes. idle_state is an extension that the string kbarman.ext=1
 * announces.
 */
struct bm_protocol_halting_event {
	struct bm_protocol_record_header header;
	__u8 entered_halt;		/* 1 entered, 0 left */
	__u8 idle_state;		/* cpuidle state index + 1, 0 = not known */
} __attribute__((packed));

/*
 * A call chain, if kbarman.ext=1 announces chains and the block is long enough. It follows the
 * fields of a PC sample, or begins at byte BM_TASK_SWITCH_CHAIN_OFFSET of a task switch. nr
 * addresses follow this struct, a word each, innermost first; the first nr_kernel of them are kernel
 * addresses.
 *
 * Most addresses are return addresses. Two are the address of the instruction at which the CPU was:
 * the first address of a sample's chain, if the chain begins at the sample's PC, and the first user
 * address.
 */
struct bm_kbarman_callchain {
	__u32 nr;
	__u32 nr_kernel;
} __attribute__((packed, aligned(4)));

/*
 * A sparse stack, if BM_KBARMAN_CHAIN_STACK is set in nr_kernel, which otherwise has its meaning.
 * It follows the addresses of the chain, of which only the first user address is there: a reader
 * finds the others by the unwind tables of the program.
 *
 * The value of each register in `registers` follows this struct, lowest number first: __u64 each.
 * Bit n is register n of DWARF, of the task's own machine (a task of 32 bits on amd64 has the
 * registers of i386), and bit BM_KBARMAN_REGISTER_PC the program counter. The stack pointer is
 * register 7 of amd64, 4 of i386, 31 of arm64, 13 of arm, 2 of RISC-V, 15 of s390x. `scanned` bytes
 * of the stack follow, from the stack pointer on, which is rounded down to 4 words. They come in
 * chunks, which end at addresses that are multiples of 64 words, the last one earlier. Each chunk
 * is a __u64 and the words whose bits are set in it, bit 0 for the first word of the chunk: those
 * that point into code, and those that point into the stack and may be needed. Each is a __u32. If
 * words have 8 bytes, its lower 30 bits are added to what its upper 2 bits say (enum
 * bm_kbarman_stack_word), or the word follows as __u64. A word that was left out reads as 0. A
 * register that functions need not preserve may be left out as well. Addresses of code are without
 * a pointer authentication code. A __u32 of 0 follows if the length of the record would be no
 * multiple of a word.
 */
#define BM_KBARMAN_CHAIN_STACK		0x80000000U
#define BM_KBARMAN_REGISTER_PC		63

enum bm_kbarman_stack_end {
	BM_KBARMAN_STACK_WHOLE,		/* the end of the stack */
	BM_KBARMAN_STACK_LIMIT,		/* as many bytes as the session allows */
	BM_KBARMAN_STACK_FULL,		/* more words than a record may have */
	BM_KBARMAN_STACK_ABSENT,	/* the next bytes are not there, are not in memory, or are
					 * not known to belong to the stack */
	BM_KBARMAN_STACK_TIME,		/* as long as a scan may take */
};

/* To what the lower bits of a word are added. */
enum bm_kbarman_stack_word {
	BM_KBARMAN_STACK_WORD_STACK,	/* the stack pointer, rounded down to 4 words */
	BM_KBARMAN_STACK_WORD_PROGRAM,	/* bm_kbarman_stack.program */
	BM_KBARMAN_STACK_WORD_LIBRARIES, /* bm_kbarman_stack.libraries */
	BM_KBARMAN_STACK_WORD_LONG,	/* nothing: the word follows */
};

#define BM_KBARMAN_STACK_WORD_SHIFT	30

struct bm_kbarman_stack {
	__u64 registers;
	__u64 program, libraries;	/* addresses near which code is */
	__u32 scanned;
	__u16 end;			/* enum bm_kbarman_stack_end */
	__u16 word;			/* bytes of a word: 4 or 8 */
} __attribute__((packed, aligned(4)));

#define BM_TASK_SWITCH_CHAIN_OFFSET	24

/*
 * What the previous task of a switch waits for, if BM_TASK_SWITCH_OBJECT is set: the last 16 bytes of
 * the block, behind a chain that may have no address. Tasks of programs have one whenever they block,
 * if kbarman.objects=1 says so; io_uring's workers have none. Of a task that exits there is the call alone.
 */
enum bm_kbarman_object_kind {
	BM_KBARMAN_OBJECT_CALL		= 1,	/* in system call `call`: id and value are the first
						 * argument's lower 32 bits, and the second one */
	BM_KBARMAN_OBJECT_NO_CALL	= 2,	/* in none: the task was at address `value` of its
						 * code, and waits because of a fault there, or on
						 * its way back, as when it is stopped */
	/* In a call that waits for its first argument, a descriptor: value is the inode's number. */
	BM_KBARMAN_OBJECT_FILE		= 3,	/* file or folder; id: device, MAJOR << 20 | MINOR */
	BM_KBARMAN_OBJECT_DEVICE	= 4,	/* id: the device itself, the same way */
	BM_KBARMAN_OBJECT_PIPE		= 5,	/* this and those below: id is the descriptor */
	BM_KBARMAN_OBJECT_SOCKET	= 6,
	BM_KBARMAN_OBJECT_ANON		= 7,	/* what has no place in a file system: epoll, timerfd */
	BM_KBARMAN_OBJECT_FUTEX		= 8,	/* value: its address. id: the thread that holds it, by
						 * what stands there if it is glibc's mutex; 0: not
						 * known. Nothing has checked it: believe it if that
						 * is a thread of the same process */
	/*
	 * A lock of Linux, where it tells (6.16), in a call or, with BM_KBARMAN_OBJECT_OUTSIDE, in none.
	 * value: its address; 0: the session's owner lacked CAP_SYSLOG. id: the thread that has the mutex,
	 * or the rwsem to write; 0: not known.
	 */
	BM_KBARMAN_OBJECT_MUTEX		= 9,
	BM_KBARMAN_OBJECT_SEMAPHORE	= 10,
	BM_KBARMAN_OBJECT_RWSEM_READ	= 11,	/* to read */
	BM_KBARMAN_OBJECT_RWSEM_WRITE	= 12,
	BM_KBARMAN_OBJECT_FAULT		= 13,	/* a page fault at address `value`, if faults are recorded,
						 * in a call or, with BM_KBARMAN_OBJECT_OUTSIDE, in none */
};

#define BM_KBARMAN_OBJECT_IOWAIT	0x01	/* Linux says that it waits for a disk */
#define BM_KBARMAN_OBJECT_COMPAT	0x02	/* `call` is a number of the machine's other kind of
						 * programs: those of 32 bits on a 64-bit kernel */
#define BM_KBARMAN_OBJECT_OUTSIDE	0x04	/* of a lock of Linux or a fault: the task is in no
						 * call, and `call` is 0 */

struct bm_kbarman_object {
	__u16 call;			/* number of the machine's system call */
	__u8 kind;			/* enum bm_kbarman_object_kind; others may come */
	__u8 flags;			/* BM_KBARMAN_OBJECT_* */
	__u32 id;
	__u64 value;
} __attribute__((packed, aligned(4)));

#if defined(__KERNEL__) || (defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L)
_Static_assert(sizeof(struct bm_protocol_config_values) == 24, "config_values");
_Static_assert(sizeof(struct bm_protocol_clock_info) == 32, "clock_info");
_Static_assert(sizeof(struct bm_protocol_header_start) == 96, "header_start");
_Static_assert(sizeof(struct bm32_protocol_header_pmu_settings) == 152, "32-bit pmu_settings");
_Static_assert(sizeof(struct bm64_protocol_header_pmu_settings) == 156, "64-bit pmu_settings");
_Static_assert(sizeof(struct bm_protocol_header_task_info) == 16, "task_info");
_Static_assert(sizeof(struct bm32_protocol_header_mmap_layout) == 28, "32-bit mmap_layout");
_Static_assert(sizeof(struct bm64_protocol_header_mmap_layout) == 40, "64-bit mmap_layout");
_Static_assert(sizeof(struct bm_protocol_header_custom_chart) == 7, "custom_chart");
_Static_assert(sizeof(struct bm_protocol_header_custom_chart_series) == 31, "series");
_Static_assert(sizeof(struct bm_datastore_header_data) == 40, "datastore");
_Static_assert(sizeof(struct bm_protocol_record_header) == 16, "record_header");
_Static_assert(sizeof(struct bm_custom_counter_sample) == 12, "counter_sample");
_Static_assert(sizeof(struct bm_protocol_sample) == 24, "sample");
_Static_assert(sizeof(struct bm_protocol_task_switch) == BM_TASK_SWITCH_CHAIN_OFFSET, "task_switch");
_Static_assert(sizeof(struct bm_protocol_custom_counter) == 32, "custom_counter");
_Static_assert(sizeof(struct bm_kbarman_detail) == 8, "detail");
_Static_assert(sizeof(struct bm32_protocol_annotation) == 37, "32-bit annotation");
_Static_assert(sizeof(struct bm64_protocol_annotation) == 41, "64-bit annotation");
_Static_assert(sizeof(struct bm_kbarman_loss) == 16, "loss");
_Static_assert(sizeof(struct bm_kbarman_syscall) == 48, "syscall");
_Static_assert(sizeof(struct bm_kbarman_fault) == 40, "fault");
_Static_assert(sizeof(struct bm_kbarman_block) == 40, "block");
_Static_assert(sizeof(struct bm_kbarman_callchain) == 8, "callchain");
_Static_assert(sizeof(struct bm_kbarman_object) == 16, "object");
_Static_assert(sizeof(struct bm_kbarman_stack) == 32, "stack");
_Static_assert(sizeof(struct bm_protocol_halting_event) == 18, "halting, 17 and idle_state");
#endif

#endif /* _UAPI_BARMAN_V2_H */

/*
 * Who knows the word size, as the kernel knows its own, may have the names without the number, such
 * as struct bm_protocol_annotation: it defines BM_WORD_BITS, 32 or 64, before it includes this file.
 */
#ifdef __KERNEL__
#include <asm/bitsperlong.h>
#define BM_WORD_BITS			BITS_PER_LONG
#endif
#if defined(BM_WORD_BITS) && !defined(BM_PROTOCOL_MAGIC_BYTES)
#if BM_WORD_BITS == 64
typedef __u64 bm_uintptr;
#define BM_PROTOCOL_MAGIC_BYTES		BM64_PROTOCOL_MAGIC_BYTES
#define BM_BLOCK_PADDING		BM64_BLOCK_PADDING
#define bm_protocol_header_pmu_settings	bm64_protocol_header_pmu_settings
#define bm_protocol_header_mmap_layout	bm64_protocol_header_mmap_layout
#define bm_protocol_annotation		bm64_protocol_annotation
#else
typedef __u32 bm_uintptr;
#define BM_PROTOCOL_MAGIC_BYTES		BM32_PROTOCOL_MAGIC_BYTES
#define BM_BLOCK_PADDING		BM32_BLOCK_PADDING
#define bm_protocol_header_pmu_settings	bm32_protocol_header_pmu_settings
#define bm_protocol_header_mmap_layout	bm32_protocol_header_mmap_layout
#define bm_protocol_annotation		bm32_protocol_annotation
#endif
#endif
