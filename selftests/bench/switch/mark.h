/* SPDX-License-Identifier: MIT */
/*
 * How a program in the guest tells the plugin that counts its instructions where to begin and
 * where to end: by an instruction that does nothing, and that no compiler makes.
 */
#ifndef KBARMAN_BENCH_MARK_H
#define KBARMAN_BENCH_MARK_H

/* nopl NUMBER(%rax,%rax,1) */
#define MARK_OPCODE	0x00841f0fU
#define MARK_BEGIN	0x6b626567U
#define MARK_END	0x6b62656eU

/* A compiler barrier, too: nothing moves out of what is counted. */
#define MARK(number)	__asm__ volatile(".long %c0, %c1" : : "i"(MARK_OPCODE), "i"(number) : "memory")

#endif /* KBARMAN_BENCH_MARK_H */
