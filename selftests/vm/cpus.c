// SPDX-License-Identifier: MIT
/*
 * As many CPUs as there are, each with a view of its own: two in an ordinary run,
 * 64 in `make soak`, which says so in KBARMAN_CPUS: fewer are a failure then.
 */
#include "kselftest_harness.h"
#include "lib.h"

#define ROUNDS		20
#define CPUS_MAX	1024

FIXTURE(cpus)
{
	int fd;
	uint32_t nr;
};

FIXTURE_SETUP(cpus)
{
	const char *wanted = getenv("KBARMAN_CPUS");
	uint32_t cpu, online = 0;

	self->fd = device_open_free();
	self->nr = query(self->fd).nr_cpus;
	ASSERT_GE(CPUS_MAX, self->nr);
	ASSERT_EQ(0, configure(self->fd, (struct kbarman_configure) {
		.sources = KBARMAN_SOURCE_SCHED | KBARMAN_SOURCE_IDLE, .ring_bytes = 256 * KIB }));
	ASSERT_EQ(0, start(self->fd));
	for (cpu = 0; cpu < self->nr; cpu++)
		online += cpu_online(cpu);
	ASSERT_LE(wanted ? atoi(wanted) : 1, online);
	ASSERT_EQ(online, stats(self->fd, KBARMAN_CPU_ALL).online);
	TH_LOG("%u CPUs", online);
}

FIXTURE_TEARDOWN(cpus)
{
	close(self->fd);
}

/* How often @task is switched to in the view of @cpu. */
static unsigned int runs_in(int fd, uint32_t cpu, pid_t task)
{
	struct kbarman_query q = query(fd);
	const void *map = map_cpu(fd, cpu);
	struct walk walk = walk_begin(map);
	const union record *r;
	unsigned int runs = 0;

	while ((r = walk_next(&walk)))
		runs += r->header.record_type == BM_RECORD_TASK_SWITCH &&
			r->task_switch.task_id == (uint32_t)task;
	munmap((void *)map, q.map_bytes);
	return runs;
}

TEST_F_TIMEOUT(cpus, each_view_holds_what_ran_on_its_cpu, 600)
{
	static pid_t ran[CPUS_MAX];
	uint32_t cpu, other;

	for (cpu = 0; cpu < self->nr; cpu++)
		if (cpu_online(cpu))
			ran[cpu] = ping_pong(cpu, ROUNDS);
	ASSERT_EQ(0, stop(self->fd));
	for (cpu = 0; cpu < self->nr; cpu++) {
		if (!ran[cpu])
			continue;
		EXPECT_LE(ROUNDS, runs_in(self->fd, cpu, ran[cpu]));
		/* It may have been made elsewhere, before it went to its CPU. */
		other = cpu + 1 < self->nr && ran[cpu + 1] ? cpu + 1 : 0;
		if (other != cpu)
			EXPECT_GT(ROUNDS, runs_in(self->fd, other, ran[cpu]));
	}
}

TEST_F_TIMEOUT(cpus, all_at_once_lose_nothing, 600)
{
	static struct echo echoes[CPUS_MAX];
	uint64_t records = 0, least = ~0ULL;
	struct kbarman_stats all;
	uint32_t cpu;

	for (cpu = 0; cpu < self->nr; cpu++)
		if (cpu_online(cpu))
			echoes[cpu] = echo_create(cpu);
	/* Waking one does not wait for those that were woken before. */
	for (unsigned int round = 0; round < ROUNDS; round++) {
		for (cpu = 0; cpu < self->nr; cpu++)
			if (echoes[cpu].echo && write(echoes[cpu].there, "", 1) != 1)
				lost("CPU %u does not listen", cpu);
		for (cpu = 0; cpu < self->nr; cpu++) {
			char byte;

			if (echoes[cpu].echo && read(echoes[cpu].back, &byte, 1) != 1)
				lost("CPU %u does not answer", cpu);
		}
	}
	/* Who was made later holds the pipes of those before. */
	for (cpu = self->nr; cpu-- > 0;)
		if (echoes[cpu].echo)
			echo_destroy(&echoes[cpu]);
	ASSERT_EQ(0, stop(self->fd));
	all = stats(self->fd, KBARMAN_CPU_ALL);
	EXPECT_EQ(0, lost_records(&all));
	for (cpu = 0; cpu < self->nr; cpu++) {
		struct judgement j;

		if (!echoes[cpu].echo)
			continue;
		j = judge_cpu(self->fd, cpu);
		EXPECT_EQ(NULL, j.fault)
			TH_LOG("CPU %u at %llu: %s", cpu, (unsigned long long)j.at, j.fault);
		records += j.records;
		least = j.records < least ? j.records : least;
	}
	EXPECT_EQ(all.written, records + all.overwritten);
	EXPECT_LE(ROUNDS, least);
	TH_LOG("%llu records, %llu at least in a view", (unsigned long long)records,
	       (unsigned long long)least);
}

TEST_HARNESS_MAIN
