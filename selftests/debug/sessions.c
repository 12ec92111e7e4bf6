// SPDX-License-Identifier: MIT
/*
 * sessions [TIMES]: open, configure, start, stop, close, 10,000 times, with other sources,
 * sizes and modes each time; and between them such that leave out a step, which do not count.
 * What was recorded is a capture every time, and the books of each CPU balance.
 *
 * Waits for its turn where somebody else has a session: also made to run beside others.
 */
#include <linux/perf_event.h>

#include "lib/random.h"
#include "told.h"

static const struct kbarman_event events[] = {
	{ .attr = { .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK }, .name = "cpu-clock" },
	{ .attr = { .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_PAGE_FAULTS }, .name = "faults" },
	{ .attr = { .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CONTEXT_SWITCHES },
	  .name = "switches" },
};

static struct kbarman_configure any_config(uint32_t *pid)
{
	struct kbarman_configure c = {
		.mode = random_below(2),
		.sources = (random_below(KBARMAN_SOURCE_PMU << 2) & ~KBARMAN_SOURCE_PMU) ?: KBARMAN_SOURCE_SCHED,
		.ring_bytes = 64 * KIB << random_below(3),
		.max_tasks = 16 << random_below(6),
		.max_maps = 16 << random_below(8),
		.max_strings = 4096 << random_below(4),
	};

	if (random_below(3) == 0) {
		c.sources |= KBARMAN_SOURCE_PMU;
		c.nr_events = 1 + random_below(3);
		c.events_ptr = sampled(events, c.nr_events, 1000000);
	}
	if (random_below(4) == 0) {
		c.pids_ptr = (uintptr_t)pid;
		c.nr_pids = 1;
		c.flags |= KBARMAN_CONFIGURE_INHERIT;
	}
	return c;
}

/* The books of a stopped session: every record is somewhere, and of a CPU that has a ring. */
static const char *audit(int fd, uint64_t *records)
{
	uint32_t cpu, nr = query(fd).nr_cpus;
	uint64_t written = 0;

	for (cpu = 0; cpu < nr; cpu++) {
		struct kbarman_stats s = { .size = sizeof(s), .cpu = cpu };
		int error = call(fd, KBARMAN_STATS, &s);
		struct judgement j;

		/* no ring: offline since before the session, which CPU 0 never is */
		if (error == -EINVAL && cpu)
			continue;
		if (error)
			return "a CPU that tells nothing of itself";
		j = judge_cpu(fd, cpu);
		if (j.fault)
			return j.fault;
		if (s.written != s.overwritten + j.records)
			return "records that are nowhere";
		written += s.written;
		*records += j.records;
	}
	return stats(fd, KBARMAN_CPU_ALL).written == written ? NULL : "records of no CPU";
}

static unsigned long whole, odd;	/* sessions: from open to close, or with a step left out */
static uint64_t records;

static const char *once(void)
{
	bool starts = random_below(8), stops = random_below(8);
	uint32_t pid = getpid();
	struct kbarman_configure c = any_config(&pid);
	const char *fault = NULL;
	int fd, error;

	fd = device_open();
	error = told_configure(fd, c);
	if (error == -EBUSY)
		goto out;
	if (error)
		fault = "a configure that failed";
	if (!fault && starts && start(fd))
		fault = "a start that failed";
	if (!fault && starts && !random_below(4))
		usleep(random_below(3000));
	if (!fault && stops && stop(fd))
		fault = "a stop that failed";
	if (!fault && starts && stops)
		fault = audit(fd, &records);
	*(starts && stops ? &whole : &odd) += 1;
out:
	close(fd);
	return fault;
}

int main(int argc, char **argv)
{
	unsigned long times = argc > 1 ? strtoul(argv[1], NULL, 0) : 10000;
	const char *fault = NULL;

	random_start();
	told_begin(&whole);
	while (whole < times && !fault && !told_to_end)
		fault = once();
	tap_note("%lu sessions, %lu of them whole, %llu records", whole + odd, whole,
		 (unsigned long long)records);
	if (!tap_ok(!fault, "sessions_come_and_go_and_their_books_balance"))
		tap_note("%s, at the %luth time: errno %d", fault, whole + odd, errno);
	tap_ok(records, "and_they_have_records");
	return told_done();
}
