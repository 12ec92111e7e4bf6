/* SPDX-License-Identifier: MIT */
/* The sparse stacks of records, and sessions that record them. */
#ifndef KBARMAN_TEST_STACKS_H
#define KBARMAN_TEST_STACKS_H

#include <sys/mman.h>

#include "lib.h"

#define PERIOD_NS	1000000
#define NOINLINE	__attribute__((noinline, noclone))

static inline struct kbarman_configure sampling(uint32_t stack_bytes)
{
	return (struct kbarman_configure) {
		.sources = KBARMAN_SOURCE_PMU | KBARMAN_SOURCE_MAPS,
		.flags = KBARMAN_CONFIGURE_CHAIN_STACK,
		.ring_bytes = 8 * MIB, .nr_events = 1, .stack_bytes = stack_bytes,
		.events_ptr = sampled(&cpu_clock, 1, PERIOD_NS) };
}

/* ---- code that is sampled ---- */

static volatile uint64_t sink;

static void NOINLINE burn(void)
{
	for (int i = 0; i < 20000; i++)
		sink = sink * 6364136223846793005ULL + 1442695040888963407ULL;
}
static void NOINLINE burn_end(void)
{
	sink++;
}

static inline bool in_burn(uint64_t pc)
{
	return pc >= (uintptr_t)burn && pc < (uintptr_t)burn_end;
}

/* For so long, and so much work: time in which the host has a virtual CPU has no samples, and Linux counts it. */
static inline void burn_for(unsigned int ms)
{
	uint64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + ms * 1000000ULL;

	for (unsigned int turns = 0; turns < 5 * ms || clock_ns(CLOCK_THREAD_CPUTIME_ID) < end; turns++)
		burn();
	burn_end();
}

/*
 * Have all of the stack up to @end in memory. In a child's copy the page tables of some machines
 * let nothing be read before the child itself has read it.
 */
static __attribute__((unused)) void NOINLINE touch_stack(const void *end)
{
	const volatile char *at = __builtin_frame_address(0);

	for (; at < (const volatile char *)end; at += 64)
		sink += (uint64_t)*at;
}

/* A loop with another stack pointer. Nothing may need the stack: no signal may come. */
static __attribute__((unused)) void NOINLINE spin_at(uintptr_t sp)
{
	unsigned long turns = 8UL << 20;

#if defined(__x86_64__)
	__asm__ volatile("xchg %%rsp, %0\n1:\tdec %1\n\tjnz 1b\n\txchg %%rsp, %0"
			 : "+r"(sp), "+r"(turns) : : "memory", "cc");
#elif defined(__i386__)
	__asm__ volatile("xchg %%esp, %0\n1:\tdec %1\n\tjnz 1b\n\txchg %%esp, %0"
			 : "+r"(sp), "+r"(turns) : : "memory", "cc");
#elif defined(__aarch64__)
	__asm__ volatile("mov x9, sp\n\tmov sp, %1\n1:\tsubs %0, %0, #1\n\tb.ne 1b\n\tmov sp, x9"
			 : "+r"(turns) : "r"(sp) : "x9", "memory", "cc");
#elif defined(__arm__)
	__asm__ volatile("mov r9, sp\n\tmov sp, %1\n1:\tsubs %0, %0, #1\n\tbne 1b\n\tmov sp, r9"
			 : "+r"(turns) : "r"(sp) : "r9", "memory", "cc");
#elif defined(__riscv)
	__asm__ volatile("mv t0, sp\n\tmv sp, %1\n1:\taddi %0, %0, -1\n\tbnez %0, 1b\n\tmv sp, t0"
			 : "+r"(turns) : "r"(sp) : "t0", "memory");
#elif defined(__s390x__)
	__asm__ volatile("lgr %%r1, %%r15\n\tlgr %%r15, %1\n1:\tbrctg %0, 1b\n\tlgr %%r15, %%r1"
			 : "+d"(turns) : "d"(sp) : "1", "memory", "cc");
#else
#error how does this machine change its stack pointer?
#endif
}

/* ---- the stack of a record ---- */

struct stack {
	const struct bm_kbarman_callchain *chain;
	const struct bm_kbarman_stack *head;
	uint64_t registers[64], low;
	uint32_t nr;
	struct { uint64_t address, word; } words[16384];
	const char *damage;
};

static inline int sp_number(uint32_t word)
{
	(void)word;
#if defined(__x86_64__)
	return word == 8 ? 7 : 4;
#elif defined(__aarch64__)
	return word == 8 ? 31 : 13;
#elif defined(__i386__)
	return 4;
#elif defined(__riscv)
	return 2;
#elif defined(__s390x__)
	return 15;
#else
	return 13;
#endif
}

/*
 * Records are aligned to 4 bytes on 32-bit machines. QEMU's arm does not survive a page fault in
 * the middle of a load of 8 bytes, so this makes two of 4.
 */
static inline uint64_t load_64(const void *at)
{
	const volatile uint32_t *half = at;
	const uint32_t halves[2] = { half[0], half[1] };
	uint64_t value;

	memcpy(&value, halves, sizeof(value));
	return value;
}

static inline uint64_t take_64(const uint32_t **at)
{
	uint64_t value = load_64(*at);

	*at += 2;
	return value;
}

static inline const uint32_t *take_registers(struct stack *stack, const uint32_t *at)
{
	uint64_t which = load_64(&stack->head->registers);

	for (int i = 0; i < 64; i++)
		if (which >> i & 1)
			stack->registers[i] = take_64(&at);
	return at;
}

static inline uint64_t take_word(const struct stack *stack, const uint32_t **at)
{
	const uint64_t bases[] = {
		[BM_KBARMAN_STACK_WORD_STACK] = stack->low,
		[BM_KBARMAN_STACK_WORD_PROGRAM] = load_64(&stack->head->program),
		[BM_KBARMAN_STACK_WORD_LIBRARIES] = load_64(&stack->head->libraries),
	};
	uint32_t word = *(*at)++, base = word >> BM_KBARMAN_STACK_WORD_SHIFT;

	if (stack->head->word == 4)
		return word;
	if (base == BM_KBARMAN_STACK_WORD_LONG)
		return take_64(at);
	return bases[base] + (word & ((1U << BM_KBARMAN_STACK_WORD_SHIFT) - 1));
}

static inline const uint32_t *take_words(struct stack *stack, const uint32_t *at,
					const uint32_t *last)
{
	uint32_t word = stack->head->word;
	uint64_t address, end = stack->low + stack->head->scanned, kept;

	for (address = stack->low; address < end;) {
		uint64_t next = (address / (64 * word) + 1) * 64 * word;

		kept = take_64(&at);
		for (; address < next && address < end; address += word, kept >>= 1)
			if (kept & 1 && at < last && stack->nr < ARRAY_SIZE(stack->words)) {
				stack->words[stack->nr].address = address;
				stack->words[stack->nr++].word = take_word(stack, &at);
			}
		if (kept)
			stack->damage = "a bit behind the end of a chunk";
	}
	return at;
}

/* The stack of @r, which @walk returned last. False: it has none. */
static inline bool stack_of(struct stack *stack, const struct walk *walk, const union record *r)
{
	const struct bm_kbarman_callchain *chain = walk_chain(walk, r);
	const uint32_t *end = (const void *)((const char *)r + walk->length), *at;

	if (!chain || !(chain->nr_kernel & BM_KBARMAN_CHAIN_STACK))
		return false;
	memset(stack, 0, offsetof(struct stack, words));
	stack->damage = NULL;
	stack->chain = chain;
	stack->head = (const void *)((const bm_uintptr *)(chain + 1) + chain->nr);
	if (take_registers(stack, (const void *)(stack->head + 1)) > end) {
		stack->damage = "registers behind the end";
		return true;
	}
	stack->low = stack->registers[sp_number(stack->head->word)] &
		     -(4ULL * stack->head->word);
	at = take_words(stack, take_registers(stack, (const void *)(stack->head + 1)), end);
	if (((const char *)at - (const char *)stack->head) % sizeof(bm_uintptr) && !*at)
		at++;
	if (at != end)
		stack->damage = "the record does not end where its stack does";
	return true;
}

/* Of a sample with PC: where it was. */
static inline uint64_t sample_pc(const union record *r)
{
	bm_uintptr pc;

	memcpy(&pc, &r->sample + 1, sizeof(pc));
	return pc;
}

#endif /* KBARMAN_TEST_STACKS_H */
