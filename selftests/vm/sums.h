/* SPDX-License-Identifier: MIT */
/*
 * Sums of counters: what all samples of a CPU say together, and what Linux says of the counter, as
 * the capture of a stopped session has it.
 */
#ifndef KBARMAN_VM_SUMS_H
#define KBARMAN_VM_SUMS_H

#include "lib.h"

#define INVALID_DELTA	UINT64_MAX	/* the counter could not be read */

static inline bool is_sample(const union record *r)
{
	return r->header.record_type == BM_RECORD_SAMPLE ||
	       r->header.record_type == BM_RECORD_SAMPLE_WITH_PC;
}

static inline uint64_t delta_of(const union record *r, unsigned int i)
{
	const uint8_t *at = (const uint8_t *)(&r->sample + 1);
	uint64_t value;

	if (r->header.record_type == BM_RECORD_SAMPLE_WITH_PC)
		at += sizeof(bm_uintptr);
	memcpy(&value, at + 8 * i, 8);
	return value;
}

/* What counter @i of @cpu counted in @task, or in all (~0U). */
static inline uint64_t sum_of(int fd, uint32_t cpu, uint32_t task, unsigned int i)
{
	const void *map = map_cpu(fd, cpu);
	struct walk walk = walk_begin(map);
	const union record *r;
	uint64_t sum = 0;

	while ((r = walk_next(&walk)))
		if (is_sample(r) && (task == ~0U || r->sample.task_id == task) &&
		    delta_of(r, i) != INVALID_DELTA)
			sum += delta_of(r, i);
	munmap((void *)map, query(fd).map_bytes);
	return sum;
}

struct counted {
	bool told;
	unsigned long long all, unrecorded;
};

/* What the capture says that counter @i of @cpu counted. */
static inline struct counted counted_of(int fd, uint32_t cpu, unsigned int i)
{
	const void *map = map_cpu(fd, cpu);
	struct counted counted = { 0 };
	const char *fact;
	char key[32];

	snprintf(key, sizeof(key), "counted.%u.%u", cpu, i);
	fact = capture_fact(map, key);
	counted.told = fact && sscanf(fact, "%llu,%llu", &counted.all, &counted.unrecorded) == 2;
	munmap((void *)map, query(fd).map_bytes);
	return counted;
}

/* How many counters @cpu has. */
static inline unsigned int counters_of(int fd, uint32_t cpu)
{
	const void *map = map_cpu(fd, cpu);
	unsigned int nr = capture_pmu(map, cpu)->num_counters;

	munmap((void *)map, query(fd).map_bytes);
	return nr;
}

/*
 * True if the values of all records of each CPU are what its counters counted, to the last one.
 * Nothing was overwritten. Says what differs.
 */
static inline bool sums_are_equal(int fd)
{
	uint32_t cpu, nr = query(fd).nr_cpus;
	bool equal = true;
	unsigned int i;

	for (cpu = 0; cpu < nr; cpu++) {
		for (i = 0; i < counters_of(fd, cpu); i++) {
			struct counted counted = counted_of(fd, cpu, i);
			uint64_t sum = sum_of(fd, cpu, ~0U, i);

			if (counted.told && sum + counted.unrecorded == counted.all)
				continue;
			printf("# counter %u of CPU %u: records %llu, told %u: counted %llu, unrecorded %llu\n",
			       i, cpu, (unsigned long long)sum, counted.told, counted.all,
			       counted.unrecorded);
			equal = false;
		}
	}
	return equal;
}

/* What is in no record, of all counters of all CPUs. */
static inline uint64_t unrecorded(int fd)
{
	uint32_t cpu, nr = query(fd).nr_cpus;
	uint64_t sum = 0;
	unsigned int i;

	for (cpu = 0; cpu < nr; cpu++)
		for (i = 0; i < counters_of(fd, cpu); i++)
			sum += counted_of(fd, cpu, i).unrecorded;
	return sum;
}

#endif /* KBARMAN_VM_SUMS_H */
