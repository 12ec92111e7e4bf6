/* SPDX-License-Identifier: MIT */
/* Samples in work that can be recognised: what the tests of samples and of rows share. */
#ifndef KBARMAN_VM_BURN_H
#define KBARMAN_VM_BURN_H

#include "lib.h"

#define PERIOD_NS	1000000

/* Where addresses do not tell what is the kernel's, the chains do. */
#if defined(__s390x__)
#define TELL_KERNEL	KBARMAN_CONFIGURE_CHAIN_KERNEL
#else
#define TELL_KERNEL	0
#endif

static inline struct kbarman_configure sampling(const struct kbarman_event *events, uint32_t count)
{
	return (struct kbarman_configure) {
		.sources = KBARMAN_SOURCE_PMU | KBARMAN_SOURCE_MAPS, .flags = TELL_KERNEL,
		.nr_events = count, .events_ptr = sampled(events, count, PERIOD_NS) };
}

static volatile uint64_t sink;

static void __attribute__((noinline, noclone)) burn(void)
{
	uint64_t i, sum = 0;

	for (i = 0; i < 20000; i++)
		sum += i * i ^ sum;
	sink = sum;
}

static void __attribute__((noinline, noclone)) burn_end(void)
{
	sink++;
}

static inline bool in_burn(uint64_t pc)
{
	return pc >= (uintptr_t)burn && pc < (uintptr_t)burn_end;
}

static inline const union record *next_sample(struct walk *walk)
{
	const union record *r;

	while ((r = walk_next(walk)))
		if (r->header.record_type == BM_RECORD_SAMPLE_WITH_PC)
			return r;
	return NULL;
}

static inline bm_uintptr sample_pc(const union record *r)
{
	bm_uintptr pc;

	memcpy(&pc, &r->sample + 1, sizeof(pc));
	return pc;
}

/* The sample that @walk returned last, @r, is in the kernel. */
static inline bool is_in_kernel(const struct walk *walk, const union record *r)
{
	const struct bm_kbarman_callchain *chain = TELL_KERNEL ? walk_chain(walk, r) : NULL;

	return is_kernel_address(sample_pc(r)) || (chain && chain->nr_kernel);
}

static inline bool is_in_burn(const struct walk *walk, const union record *r)
{
	return in_burn(sample_pc(r)) && !is_in_kernel(walk, r);
}

/* Samples of @task so far that are @wanted. */
static inline unsigned int samples_of(const void *map, pid_t task,
			       bool (*wanted)(const struct walk *walk, const union record *r))
{
	struct walk walk = walk_begin(map);
	unsigned int count = 0;
	const union record *r;

	while ((r = next_sample(&walk)))
		count += (int)r->sample.task_id == task && wanted(&walk, r);
	return count;
}

/* Burn until there are @count samples of it. */
static inline void burn_for(const void *map, unsigned int count)
{
	while (samples_of(map, thread_id(), is_in_burn) < count)
		burn();
}

#endif /* KBARMAN_VM_BURN_H */
