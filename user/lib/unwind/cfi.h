/* SPDX-License-Identifier: MIT */
/*
 * Executes call frame instructions: DWARF 5, "Call Frame Instructions", with the extensions of
 * the LSB and of arm64. There is no recursion, and no instruction repeats others.
 */
#ifndef KB_LIB_UNWIND_CFI_H
#define KB_LIB_UNWIND_CFI_H

#include "unwind/frames.h"

enum kb_cfi_kind {
	KB_CFI_SAME,
	KB_CFI_UNDEFINED,
	KB_CFI_OFFSET,		/* in memory at CFA + number */
	KB_CFI_VALUE,		/* CFA + number */
	KB_CFI_REGISTER,	/* in register `base`; as CFA: register `base` + number */
	KB_CFI_EXPRESSION,	/* in memory at the result of the expression at `number` */
	KB_CFI_VALUE_EXPRESSION,/* the result of that expression */
};

struct kb_cfi_rule {
	uint8_t kind;
	uint32_t base;
	uint32_t length;	/* bytes of an expression */
	int64_t number;
};

struct kb_cfi_state {
	struct kb_cfi_rule cfa;
	uint32_t set;			/* registers whose rule is not KB_CFI_SAME */
	bool is_signed;			/* the return address is */
	struct kb_cfi_rule regs[32];
};

#define KB_CFI_SAVED	16U	/* states that can be remembered; compilers need two */

struct kb_cfi {
	const struct kb_frames *frames;
	const struct kb_cie *cie;
	const struct kb_cfi_state *initial;	/* of the CIE's instructions; NULL: these run */
	uint64_t address;
	struct kb_cfi_state now;
	unsigned int nr_saved;
	struct kb_cfi_state saved[KB_CFI_SAVED];
};

enum kb_cfi_result {
	KB_CFI_END,
	KB_CFI_ADVANCED,	/* the address has changed */
	KB_CFI_BAD,		/* an instruction can't be read */
};

/* Execute the instructions of @code up to one that changes the address. */
enum kb_cfi_result kb_cfi_run(struct kb_cfi *cfi, struct kb_bytes *code);

#endif
