// SPDX-License-Identifier: MIT
/* On both machines a siginfo and a ucontext stand at SP. */
#include <elf.h>

#include "unwind/signal_frame.h"

#ifndef EM_RISCV	/* older <elf.h> */
#define EM_RISCV	243
#endif

#define SIGINFO		128
#define CONTEXT		(SIGINFO + 176)	/* the sigcontext, after the signal mask of ucontext */

static void arm64(struct kb_unwind_rule *rule)
{
	/* Behind the address of a fault: x0 to x30, sp, pc */
	const int registers = CONTEXT + 8;

	for (unsigned int i = 0; i < 32; i++)
		kb_unwind_rule_step(rule, KB_UNWIND_AT, i, 0, registers + 8 * (int)i);
	kb_unwind_rule_step(rule, KB_UNWIND_AT, KB_UNWIND_PC, 0, registers + 8 * 32);
}

static void riscv(struct kb_unwind_rule *rule)
{
	for (unsigned int i = 1; i < 32; i++)	/* the PC stands in the place of x0 */
		kb_unwind_rule_step(rule, KB_UNWIND_AT, i, 0, CONTEXT + 8 * (int)i);
	kb_unwind_rule_step(rule, KB_UNWIND_AT, KB_UNWIND_PC, 0, CONTEXT);
}

bool kb_unwind_signal_frame(struct kb_unwind_rule *rule, const struct kb_unwind_machine *machine)
{
	if (machine->elf != EM_AARCH64 && machine->elf != EM_RISCV)
		return false;
	kb_unwind_rule_begin(rule, KB_UNWIND_PC, KB_UNWIND_SIGNAL);
	kb_unwind_rule_step(rule, KB_UNWIND_CFA_BASE, 0, machine->sp, 0);
	if (machine->elf == EM_AARCH64)
		arm64(rule);
	else
		riscv(rule);
	return true;
}

/* Instructions are little endian on both machines. */
static uint32_t load(const uint8_t *at)
{
	return (uint32_t)at[3] << 24 | at[2] << 16 | at[1] << 8 | at[0];
}

bool kb_unwind_trampoline(const struct kb_unwind_section *code,
			  const struct kb_unwind_machine *machine, size_t *at, uint64_t *address)
{
	/* "mov x8, 139; svc 0", "li a7, 139; ecall" */
	uint32_t number = machine->elf == EM_AARCH64 ? 0xd2801168 : 0x08b00893;
	uint32_t call = machine->elf == EM_AARCH64 ? 0xd4000001 : 0x00000073;

	if (machine->elf != EM_AARCH64 && machine->elf != EM_RISCV)
		return false;
	for (; *at + KB_UNWIND_TRAMPOLINE <= code->size; *at += 2) {
		if (load(code->data + *at) != number || load(code->data + *at + 4) != call)
			continue;
		*address = code->address + *at;
		*at += KB_UNWIND_TRAMPOLINE;
		return true;
	}
	return false;
}
