/* SPDX-License-Identifier: MIT */
/*
 * A reader of all CPUs in stream mode that judges every record it gives back, and keeps
 * the books: what the module says it wrote and lost has to be what came out.
 */
#ifndef KBARMAN_READER_H
#define KBARMAN_READER_H

#include <poll.h>

#include "lib.h"
#include "lib/tap.h"

#define READER_CPUS	64

struct reader {
	int fd;
	struct kbarman_query q;
	struct reader_cpu {
		const void *map;	/* NULL: the CPU has no ring */
		uint64_t position, last, records;
		uint64_t losses;	/* as the ring itself tells them */
	} cpus[READER_CPUS];
	uint64_t records;
	uint64_t by_type[8];
	const char *fault;		/* the first thing wrong, NULL if nothing is */
	uint32_t fault_cpu;
	uint64_t fault_at;
	/* Called for each record that is good, if not NULL. */
	void (*look)(struct reader *reader, uint32_t cpu, const union record *r);
};

/* Of the session that @fd has started. */
static inline void reader_begin(struct reader *reader, int fd)
{
	uint32_t cpu;

	reader->fd = fd;
	reader->q = query(fd);
	if (reader->q.nr_cpus > READER_CPUS)
		lost("more than %d CPUs", READER_CPUS);
	for (cpu = 0; cpu < reader->q.nr_cpus; cpu++) {
		struct reader_cpu *c = &reader->cpus[cpu];
		const void *map = try_map(fd, &reader->q, cpu);

		*c = (struct reader_cpu) { .map = map == MAP_FAILED ? NULL : map };
		if (c->map)
			c->position = capture_store(c->map)->read_offset;
	}
}

static inline void reader_blame(struct reader *reader, uint32_t cpu, uint64_t at,
				const char *fault)
{
	if (reader->fault || !fault)
		return;
	reader->fault = fault;
	reader->fault_cpu = cpu;
	reader->fault_at = at;
}

static inline void reader_record(struct reader *reader, uint32_t cpu, const union record *r,
				 const struct walk *walk)
{
	struct reader_cpu *c = &reader->cpus[cpu];
	uint64_t at = walk->at - walk->length;

	reader_blame(reader, cpu, at, judge_record(c->map, cpu, r, walk->length));
	if (r->header.timestamp < c->last)
		reader_blame(reader, cpu, at, "a timestamp that goes back");
	c->last = r->header.timestamp;
	c->records++;
	reader->records++;
	if (r->header.record_type < 8)
		reader->by_type[r->header.record_type]++;
	c->losses += losses_told(r);
	if (reader->look && !reader->fault)
		reader->look(reader, cpu, r);
}

/* Take what there is of all CPUs. */
static inline void reader_take(struct reader *reader)
{
	uint32_t cpu;

	for (cpu = 0; cpu < reader->q.nr_cpus; cpu++) {
		struct reader_cpu *c = &reader->cpus[cpu];
		const union record *r;
		struct walk walk;

		if (!c->map)
			continue;
		walk = walk_from(c->map, c->position);
		while (!reader->fault && (r = walk_next(&walk)))
			reader_record(reader, cpu, r, &walk);
		reader_blame(reader, cpu, walk.at, walk.damage);
		if (walk.at == c->position)
			continue;
		c->position = walk.at;
		if (consume(reader->fd, cpu, walk.at))
			reader_blame(reader, cpu, walk.at, "a consume that was refused");
	}
}

static inline void reader_wait(struct reader *reader, int milliseconds)
{
	struct pollfd p = { .fd = reader->fd, .events = POLLIN };

	poll(&p, 1, milliseconds);
}

/* RECORDS of the environment, or a million. */
static inline uint64_t reader_wanted(void)
{
	const char *text = getenv("RECORDS");

	return text ? strtoull(text, NULL, 0) : 1000000;
}

/* Take what comes until there are so many records, or one is wrong. */
static inline void reader_take_wanted(struct reader *reader)
{
	uint64_t wanted = reader_wanted();

	while (reader->records < wanted && !reader->fault) {
		reader_wait(reader, 200);
		reader_take(reader);
	}
}

/* Of a session that is stopped, and whose rings were taken: what does not add up. */
static inline void reader_settle(struct reader *reader)
{
	uint32_t cpu;

	for (cpu = 0; cpu < reader->q.nr_cpus; cpu++) {
		struct reader_cpu *c = &reader->cpus[cpu];
		struct kbarman_stats s;

		if (!c->map)
			continue;
		s = stats(reader->fd, cpu);
		if (s.written != c->records)
			reader_blame(reader, cpu, s.written, "records written that did not come out");
		if (lost_records(&s) < c->losses)
			reader_blame(reader, cpu, c->losses, "losses told that were none");
	}
}

/* The promise that all readers keep, with what is wrong where it is broken. */
static inline void reader_promise(const struct reader *reader)
{
	if (!tap_ok(!reader->fault, "every_record_is_whole_in_order_and_accounted_for"))
		tap_note("CPU %u, position %llu: %s", reader->fault_cpu,
			 (unsigned long long)reader->fault_at, reader->fault);
}

static inline void reader_end(struct reader *reader)
{
	uint32_t cpu;

	for (cpu = 0; cpu < reader->q.nr_cpus; cpu++)
		if (reader->cpus[cpu].map)
			munmap((void *)reader->cpus[cpu].map, reader->q.map_bytes);
}

#endif
