/* SPDX-License-Identifier: MIT */
/*
 * The sparse stack that the module would make of a traced program: its own sparse_stack.c, over a
 * copy of the program's memory. What the module is built for is asked at run time here: the
 * program's machine says it. No other file of the module may be included before this one.
 */
#ifndef KBARMAN_GATHER_H
#define KBARMAN_GATHER_H

#include <elf.h>
#include <stdbool.h>
#include <stdlib.h>

static bool gather_is_s390, gather_is_signed;	/* addresses have authentication codes */

#define IS_ENABLED(option)		gather_##option
#define gather_CONFIG_S390		gather_is_s390
#define gather_CONFIG_ARM64_PTR_AUTH	gather_is_signed
#include "../compare/kernel.h"
#include "../../kmod/stacks/sparse_stack.c"
#include "unwind/sparse.h"

#define GATHER_LIMIT	65536U		/* bytes that are looked at */
#define GATHER_BLOCK	512U		/* the copy begins and ends at such an address */
#define GATHER_COPY	(GATHER_LIMIT + 2 * GATHER_BLOCK)

struct pt_regs {
	u64 value[KB_UNWIND_PC + 1];
};

/* A stopped program. */
struct gather_task {
	const struct kb_unwind_machine *machine;
	u64 kept, scratch;		/* the registers of user_registers.c */
	bool swap;			/* its byte order is the other one */
	struct kbarman_range code[2];	/* the program; its libraries, if it has any */
	u64 stack_high;			/* where its stack ends */
	bool whole;			/* nothing is behind it */
	struct kb_unwind_registers registers;

	/* Copies memory of the program. */
	bool (*read)(const struct gather_task *task, u64 from, void *to, size_t size);

	/* what gather() works with */
	u8 copy[GATHER_COPY];
	u64 copy_low, copy_size;
	union {
		struct bm_kbarman_stack head;
		u32 room[GATHER_LIMIT / 2];
	} made;
	struct kb_unwind_word words[GATHER_LIMIT / 2];
};

static const struct gather_task *gather_task;

/* The kernel's functions */

unsigned long __copy_from_user_inatomic(void *to, const void *from, unsigned long size)
{
	const struct gather_task *task = gather_task;
	u64 at = (u64)from - task->copy_low;
	unsigned int word = task->machine->word;
	u8 *bytes = to;

	if (at >= task->copy_size || size > task->copy_size - at)
		return size;
	for (unsigned long i = 0; i < size; i++)
		bytes[task->swap ? i ^ (word - 1) : i] = task->copy[at + i];
	return 0;
}

bool kbarman_read_old_page(void *to, unsigned long from, size_t size)
{
	(void)to, (void)from, (void)size;
	return false;
}

struct kbarman_user_registers kbarman_user_registers(const struct pt_regs *regs)
{
	static struct kbarman_user_register all[KB_UNWIND_PC + 1];
	const struct gather_task *task = gather_task;
	u64 left = task->kept | task->scratch;
	unsigned int nr = 0;

	(void)regs;
	for (; left; left &= left - 1) {
		unsigned int i = __ffs64(left);

		all[nr++] = (struct kbarman_user_register) {
			i, task->scratch >> i & 1, i == task->machine->link,
			offsetof(struct pt_regs, value[i]),
		};
	}
	all[nr++] = (struct kbarman_user_register) {
		BM_KBARMAN_REGISTER_PC, false, false, offsetof(struct pt_regs, value[KB_UNWIND_PC]),
	};
	return (struct kbarman_user_registers) {
		all, nr, task->machine->word,
		.records = task->machine->elf == EM_X86_64 || task->machine->elf == EM_AARCH64,
	};
}

/* The copy has whole blocks. */
static void gather_copy(struct gather_task *task, u64 low)
{
	u64 end = min(task->stack_high, low + GATHER_LIMIT);

	task->copy_low = ALIGN_DOWN(low, GATHER_BLOCK);
	task->copy_size = end > low ? ALIGN(end, GATHER_BLOCK) - task->copy_low : 0;
	if (!task->read(task, task->copy_low, task->copy, task->copy_size))
		task->copy_size = 0;
}

/* The registers and the stack of a record of @task now. Ends the test if they can't be read. */
static struct kb_unwind_sparse gather(struct gather_task *task)
{
	const struct kb_unwind_machine *machine = task->machine;
	struct kb_unwind_sparse sparse = {
		.words = task->words, .max_words = ARRAY_SIZE(task->words),
	};
	u64 sp = task->registers.value[machine->sp];
	struct kbarman_sparse_ranges ranges = {
		.code = { task->code[0], task->code[1] },
		.stack = { sp, sp < task->stack_high ? task->stack_high - sp : 0 },
		.plain = ~machine->signature,
	};
	struct pt_regs regs;
	unsigned long bytes;

	gather_is_s390 = machine->elf == EM_S390;
	gather_is_signed = machine->signature;
	gather_task = task;
	kbarman_sparse_ranges_close(&ranges);
	memcpy(regs.value, task->registers.value, sizeof(regs.value));
	gather_copy(task, ALIGN_DOWN(sp, 4 * machine->word));
	bytes = kbarman_sparse_stack_gather(&task->made.head, &regs, &ranges, GATHER_LIMIT,
					    task->whole, 0);
	if (kb_unwind_sparse_take(&sparse, machine, &task->made, bytes, false))
		abort();
	return sparse;
}

#endif
