/* SPDX-License-Identifier: MIT */
/*
 * Where Linux puts the registers of an interrupted program for a signal handler, on machines
 * whose tables don't say. Sources: struct rt_sigframe, ucontext and sigcontext of Linux.
 */
#ifndef KB_LIB_UNWIND_SIGNAL_FRAME_H
#define KB_LIB_UNWIND_SIGNAL_FRAME_H

#include "unwind/frames.h"
#include "unwind/rule.h"

/* Make the rule of the function to which handlers return. False: the machine's tables have it. */
bool kb_unwind_signal_frame(struct kb_unwind_rule *rule, const struct kb_unwind_machine *machine);

/*
 * Where that function begins in @code, from *@at on: it is known by its two instructions. Sets
 * *@at after it. False: it is not there.
 */
bool kb_unwind_trampoline(const struct kb_unwind_section *code,
			  const struct kb_unwind_machine *machine, size_t *at, uint64_t *address);

#define KB_UNWIND_TRAMPOLINE	8U	/* bytes of the two instructions */

#endif
