// SPDX-License-Identifier: MIT
/* See machine.h. A row for each machine that kbarman records on. */
#include <elf.h>
#include <stddef.h>

#include "base/array.h"
#include "unwind/machine.h"

#ifndef EM_RISCV	/* older <elf.h> */
#define EM_RISCV	243
#endif

#define BITS(low, high)	((uint32_t)(((UINT64_C(2) << (high)) - 1) & -(UINT64_C(1) << (low))))

static const struct kb_unwind_machine machines[] = {
	{	/* rbx, rbp, r12 to r15 */
		.elf = EM_X86_64, .word = 8, .sp = 7, .nr = 17, .frame = 6,
		.preserved = BITS(3, 3) | BITS(6, 6) | BITS(12, 15),
	},
	{	/* ebx, ebp, esi, edi */
		.elf = EM_386, .word = 4, .sp = 4, .nr = 9, .frame = 5,
		.preserved = BITS(3, 3) | BITS(5, 7),
	},
	{	/* x19 to x29; addresses have 48 bits, and bit 55 is theirs as well */
		.elf = EM_AARCH64, .word = 8, .sp = 31, .nr = 32, .link = 30, .frame = 29,
		.preserved = BITS(19, 29), .signature = UINT64_C(0xff7f000000000000),
	},
	{	/* r4 to r11 */
		.elf = EM_ARM, .word = 4, .sp = 13, .nr = 16, .link = 14, .pc_flags = 1,
		.preserved = BITS(4, 11),
	},
	{	/* r6 to r13, and f8 to f15, where leaf functions put others */
		.elf = EM_S390, .word = 8, .sp = 15, .nr = 32, .link = 14, .above_sp = 160,
		.preserved = BITS(6, 13) | BITS(24, 31),
	},
	{	/* s0 to s11 */
		.elf = EM_RISCV, .word = 8, .sp = 2, .nr = 32, .link = 1,
		.preserved = BITS(8, 9) | BITS(18, 27),
	},
};

const struct kb_unwind_machine *kb_unwind_machine(uint16_t elf, unsigned int word)
{
	for (size_t i = 0; i < ARRAY_SIZE(machines); i++)
		if (machines[i].elf == elf && machines[i].word == word)
			return &machines[i];
	return NULL;
}
