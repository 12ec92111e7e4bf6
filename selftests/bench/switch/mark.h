/* SPDX-License-Identifier: MIT */
/*
 * How a program in the guest tells the plugin that counts its instructions where to begin and
 * where to end: by an instruction that does nothing, and that no compiler makes.
 */
#ifndef KBARMAN_BENCH_MARK_H
#define KBARMAN_BENCH_MARK_H

/* x86: nopl NUMBER(%rax,%rax,1) */
#define MARK_OPCODE	0x00841f0fU
#define MARK_BEGIN	0x6b626567U
#define MARK_END	0x6b62656eU
/* arm64: mov xzr, #NUMBER, of which it has the lower half */
#define MARK_ARM64(number)	(0xd280001fU | ((number) & 0xffffU) << 5)

/* A compiler barrier, too: nothing moves out of what is counted. */
#if defined(__aarch64__)
#define MARK(number)	__asm__ volatile(".inst %c0" : : "i"(MARK_ARM64(number)) : "memory")
#else
#define MARK(number)	__asm__ volatile(".long %c0, %c1" : : "i"(MARK_OPCODE), "i"(number) : "memory")
#endif

#endif /* KBARMAN_BENCH_MARK_H */
