/* SPDX-License-Identifier: MIT */
/* Shared code of the tests of several sessions. Included after kselftest_harness.h. */
#ifndef KBARMAN_VM_SESSIONS_H
#define KBARMAN_VM_SESSIONS_H

#include "lib.h"

#define MOST		8	/* sessions at a time, unless the parameter says another number */
#define ROUNDS		200

/* Small: there are many of them. */
static inline struct kbarman_configure small(uint32_t mode)
{
	return (struct kbarman_configure) {
		.mode = mode, .sources = KBARMAN_SOURCE_SCHED | KBARMAN_SOURCE_IDLE,
		.ring_bytes = 256 * KIB, .max_tasks = 1024, .max_maps = 64, .max_strings = 65536 };
}

static inline bool runs(int fd)
{
	return query(fd).state & KBARMAN_STATE_RUNNING;
}

/* A descriptor with a session of its own. */
static inline int begin(struct kbarman_configure config)
{
	int fd = device_open(), error = configure(fd, config);

	if (error)
		lost("no session (error %d)", error);
	return fd;
}

/* Waits until no session is there: those of an earlier test may go a moment later. */
static inline void wait_for_none(void)
{
	int fd = device_open();

	while (query(fd).state)
		usleep(1000);
	close(fd);
}

FIXTURE(sessions)
{
	int fd[MOST];
};

FIXTURE_SETUP(sessions)
{
	int i;

	for (i = 0; i < MOST; i++)
		self->fd[i] = -1;
	wait_for_none();
	pin(0);
}

FIXTURE_TEARDOWN(sessions)
{
	int i;

	for (i = 0; i < MOST; i++)
		close(self->fd[i]);
}

/* The books of a stopped session balance, and all its records are good. NULL or the fault. */
static inline const char *audit(int fd)
{
	uint32_t cpu, nr = query(fd).nr_cpus;

	for (cpu = 0; cpu < nr; cpu++) {
		struct kbarman_stats s = { .size = sizeof(s), .cpu = cpu };
		struct judgement j;

		if (call(fd, KBARMAN_STATS, &s))
			continue;
		j = judge_cpu(fd, cpu);
		if (j.fault)
			return j.fault;
		if (s.written != s.overwritten + j.records)
			return "records that are nowhere";
		if (lost_records(&s))
			return "records were lost";
	}
	return NULL;
}

#define EXPECT_GOOD(fd) do { \
	const char *fault_ = audit(fd); \
	EXPECT_EQ(NULL, fault_) TH_LOG("%s", fault_); \
} while (0)

#endif
