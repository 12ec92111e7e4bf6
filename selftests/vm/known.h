/* SPDX-License-Identifier: MIT */
/*
 * Where the known programs of known.c have their code, each far from the others and from all other
 * programs: so a plugin of QEMU knows by an address which of them runs (bench/switch/tasks.c).
 * Linux begins at its physical addresses, below 0x50000000. scripts/tests.mk links by these numbers.
 */
#ifndef KBARMAN_VM_KNOWN_H
#define KBARMAN_VM_KNOWN_H

#define KNOWN_PROGRAMS	4
#define KNOWN_SHIFT	27
#define KNOWN_FIRST	10	/* address >> KNOWN_SHIFT of the first one */

#endif /* KBARMAN_VM_KNOWN_H */
