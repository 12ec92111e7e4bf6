// SPDX-License-Identifier: MIT
/*
 * sessions [TIMES]: open, configure, start, stop, close, 10,000 times, with other sources,
 * sizes and modes each time; sometimes a step is left out. What was recorded is a capture
 * every time, and the books of each CPU balance.
 *
 * Waits for its turn where somebody else has a session: also made to run beside others.
 */
#include <linux/perf_event.h>

#include "lib/random.h"
#include "lib/tap.h"
#include "lib.h"

static const struct kbarman_event events[] = {
	{ .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK, .name = "cpu-clock" },
	{ .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_PAGE_FAULTS, .name = "faults" },
	{ .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CONTEXT_SWITCHES,
	  .name = "switches" },
};

static struct kbarman_configure any_config(uint32_t *pid)
{
	struct kbarman_configure c = {
		.mode = random_below(2),
		.sources = random_below(KBARMAN_SOURCE_PMU << 2) & ~KBARMAN_SOURCE_PMU,
		.ring_bytes = 64 * KIB << random_below(3),
		.max_tasks = 16 << random_below(6),
		.max_maps = 16 << random_below(8),
		.max_strings = 4096 << random_below(4),
	};

	if (random_below(3) == 0) {
		c.sources |= KBARMAN_SOURCE_PMU;
		c.nr_events = 1 + random_below(3);
		c.events_ptr = (uintptr_t)events;
		c.sample = 1000000;
	}
	if (random_below(4) == 0) {
		c.pids_ptr = (uintptr_t)pid;
		c.nr_pids = 1;
		c.flags |= KBARMAN_CONFIGURE_INHERIT;
	}
	return c;
}

/* The books of a stopped session's CPU: every record is somewhere. */
static const char *audit(int fd, uint32_t cpu)
{
	struct kbarman_stats s = { .size = sizeof(s), .cpu = cpu };
	struct judgement j;

	if (call(fd, KBARMAN_STATS, &s))
		return NULL;	/* no ring: offline since before the session */
	j = judge_cpu(fd, cpu);
	if (j.fault)
		return j.fault;
	return s.written == s.overwritten + j.records ? NULL : "records that are nowhere";
}

static const char *once(unsigned long *recorded)
{
	uint32_t pid = getpid(), cpu;
	struct kbarman_configure c = any_config(&pid);
	const char *fault = NULL;
	int fd, error;

	fd = device_open();
	do {
		error = configure(fd, c);
		if (error == -EBUSY)
			usleep(2000);
	} while (error == -EBUSY);
	if (error)
		fault = "a configure that failed";
	if (!fault && random_below(8)) {
		if (start(fd))
			fault = "a start that failed";
		if (!random_below(4))
			usleep(random_below(3000));
		if (!fault && random_below(8)) {
			if (stop(fd))
				fault = "a stop that failed";
			for (cpu = 0; !fault && cpu < query(fd).nr_cpus; cpu++)
				fault = audit(fd, cpu);
			(*recorded)++;
		}
	}
	close(fd);
	return fault;
}

int main(int argc, char **argv)
{
	unsigned long i, times = argc > 1 ? strtoul(argv[1], NULL, 0) : 10000, recorded = 0;
	const char *fault = NULL;

	random_start();
	for (i = 0; i < times && !fault; i++)
		fault = once(&recorded);
	tap_note("%lu sessions, %lu of them audited", i, recorded);
	if (!tap_ok(!fault, "sessions_come_and_go_and_their_books_balance"))
		tap_note("%s, at the %luth time: errno %d", fault, i, errno);
	if (argc <= 1 || times <= 10000)
		tap_is(module_unload(), 0, "nothing_holds_the_module_afterwards");
	return tap_done();
}
