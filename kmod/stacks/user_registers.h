/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The registers of user code that unwinding begins with: the program counter, the stack pointer,
 * the link register, and those that functions preserve. Rules of .eh_frame name others in the first
 * instructions of a function at most, and in assembly code that keeps its caller's stack pointer
 * there.
 */
#ifndef KBARMAN_USER_REGISTERS_H
#define KBARMAN_USER_REGISTERS_H

#include <linux/types.h>

#include "uapi/barman_v2.h"

struct pt_regs;

struct kbarman_user_register {
	u8 number;	/* of DWARF, or BM_KBARMAN_REGISTER_PC */
	bool scratch;	/* of interest only if it points into the stack */
	bool link;	/* has an address of code, which may be signed */
	u16 offset;	/* of its value in struct pt_regs */
};

struct kbarman_user_registers {
	const struct kbarman_user_register *all;
	unsigned int nr;	/* 0: not known on this architecture */
	unsigned int word;	/* bytes of a word of the program's stack */
	bool records;		/* frames have records: see sparse.h; words of 8 bytes */
};

/* Those of the program that @regs belong to, by their numbers. Context: any. */
struct kbarman_user_registers kbarman_user_registers(const struct pt_regs *regs);

static inline u64 kbarman_register_value(const struct pt_regs *regs,
					 const struct kbarman_user_register *which)
{
	return *(const unsigned long *)((const char *)regs + which->offset);
}

#endif /* KBARMAN_USER_REGISTERS_H */
