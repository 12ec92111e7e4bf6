/* SPDX-License-Identifier: MIT */
/*
 * What differs between machines when a stack is unwound. Registers have the numbers that DWARF
 * gives them on each machine (the psABI documents); those that can hold an address are below
 * KB_UNWIND_PC.
 */
#ifndef KB_LIB_UNWIND_MACHINE_H
#define KB_LIB_UNWIND_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#define KB_UNWIND_PC		32U	/* the program counter, on all machines */
#define KB_UNWIND_REGISTERS	33U

struct kb_unwind_machine {
	uint16_t elf;		/* e_machine */
	uint8_t word;		/* bytes of an address */
	uint8_t sp;
	uint8_t nr;		/* registers that rules are kept of: those below this number */
	uint8_t above_sp;	/* the CFA is that many bytes above the caller's SP */
	uint8_t link;		/* the register that has the caller's address at a call; 0: none */
	uint8_t frame;		/* the frame pointer of code that has one. It points to the
				 * caller's frame pointer, after which is the caller's address;
				 * 0: it has no such form */
	uint32_t preserved;	/* a called function gives these back: a bit for each number */
	uint8_t pc_flags;	/* bits of a return address that say what kind of code is there */
	uint64_t signature;	/* bits of a signed return address that are not of the address */
};

/* The machine of an ELF file with that e_machine and word size; NULL: it is not known. */
const struct kb_unwind_machine *kb_unwind_machine(uint16_t elf, unsigned int word);

#endif
