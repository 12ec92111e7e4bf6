/* SPDX-License-Identifier: MIT */
/*
 * What others do, first alone and then beside sessions of all kinds that record at the same time. A
 * neighbour says in a text what it saw; both texts are the same. No duration is looked at.
 */
#ifndef KBARMAN_VM_NEIGHBOURS_H
#define KBARMAN_VM_NEIGHBOURS_H

#include <signal.h>
#include <sys/resource.h>

#include "kselftest_harness.h"
#include "program.h"

#define SAMPLE_NS	10000000
#define PLACE		"/neighbour"	/* its file system is the neighbour's own */

/* ---- sessions of all kinds ---- */

enum { KINDS = 7 };

static inline struct kbarman_configure kind(unsigned int which, uint32_t features, uint32_t absent,
					    const uint32_t *pid)
{
	struct kbarman_configure c = {
		.sources = KBARMAN_SOURCE_SCHED | KBARMAN_SOURCE_IDLE | KBARMAN_SOURCE_MAPS |
			   KBARMAN_SOURCE_MARKS,
		.ring_bytes = 512 * KIB, .max_tasks = 4096, .max_maps = 4096,
		.max_strings = 256 * KIB };

	switch (which) {
	case 0:		/* the newest records */
		break;
	case 1:		/* the oldest ones; the ring gets full */
		c.mode = KBARMAN_MODE_STREAM;
		c.flags = KBARMAN_CONFIGURE_REUSE;
		break;
	case 2:		/* chosen processes and their children: this one and its neighbours */
		c.flags = KBARMAN_CONFIGURE_INHERIT;
		c.pids_ptr = (uintptr_t)pid;
		c.nr_pids = 1;
		break;
	case 3:		/* each source */
		c.sources = KBARMAN_SOURCE_ALL & ~KBARMAN_SOURCE_PMU & ~absent;
		break;
	case 4:		/* counters, which are read at switches */
		c.sources |= KBARMAN_SOURCE_PMU;
		c.flags = KBARMAN_CONFIGURE_COUNT_SWITCH;
		c.events_ptr = sampled_or_clock(&cycles, 0);
		c.nr_events = 2;
		break;
	default:	/* call chains: by frame pointers, and by stacks */
		c.sources |= KBARMAN_SOURCE_PMU;
		c.events_ptr = sampled(&cpu_clock, 1, SAMPLE_NS);
		c.nr_events = 1;
		if (features & KBARMAN_FEATURE_CHAIN_KERNEL)
			c.flags |= KBARMAN_CONFIGURE_CHAIN_KERNEL;
		if (which == 6 && features & KBARMAN_FEATURE_CHAIN_STACK)
			c.flags |= KBARMAN_CONFIGURE_CHAIN_STACK;
		else if (features & KBARMAN_FEATURE_CHAIN_USER)
			c.flags |= KBARMAN_CONFIGURE_CHAIN_USER;
		if (c.flags)
			c.flags |= KBARMAN_CONFIGURE_CHAIN_SWITCH;
	}
	return c;
}

FIXTURE(neighbours)
{
	int fd[KINDS];
	int marks;
};

FIXTURE_SETUP(neighbours)
{
	unsigned int i;

	for (i = 0; i < KINDS; i++)
		self->fd[i] = -1;
	self->marks = -1;
	close(device_open_free());
	mkdir(PLACE, 0700);
}

static inline void sessions_begin(FIXTURE_DATA(neighbours) *self)
{
	const uint32_t pid = getpid();
	struct kbarman_query q;
	unsigned int i;

	for (i = 0; i < KINDS; i++) {
		self->fd[i] = device_open();
		q = query(self->fd[i]);
		if (configure(self->fd[i], kind(i, q.features, q.absent, &pid)) ||
		    start(self->fd[i]))
			lost("no session of kind %u", i);
	}
	self->marks = open(KBARMAN_DEVICE, O_WRONLY | O_CLOEXEC);
}

/* They have recorded: so what was seen was seen beside them. */
static inline void sessions_end(struct __test_metadata *_metadata,
				FIXTURE_DATA(neighbours) *self)
{
	unsigned int i;

	for (i = 0; i < KINDS; i++) {
		EXPECT_EQ(0, stop(self->fd[i]));
		EXPECT_LT(0, stats(self->fd[i], KBARMAN_CPU_ALL).written)
			TH_LOG("kind %u", i);
		close(self->fd[i]);
		self->fd[i] = -1;
	}
	close(self->marks);
	self->marks = -1;
}

FIXTURE_TEARDOWN(neighbours)
{
	for (unsigned int i = 0; i < KINDS; i++)
		if (self->fd[i] >= 0)
			close(self->fd[i]);
}

static inline void mark(int marks)
{
	struct kbarman_mark m = { .size = sizeof(m), .type = KBARMAN_MARK_BOOKMARK };

	if (marks >= 0 && write(marks, &m, sizeof(m)) < 0)
		lost("no mark");
}

/* ---- what a neighbour says ---- */

#define SAID	(1 << 20)

static inline char *said_by(void (*neighbour)(FILE *to))
{
	char *said = calloc(1, SAID);
	size_t length = 0;
	int ends[2], status;
	ssize_t got;
	pid_t child;
	FILE *to;

	if (!said || pipe2(ends, O_CLOEXEC))
		lost("no pipe");
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		    mount("place", PLACE, "tmpfs", 0, NULL) || chdir(PLACE))
			lost("no file system of its own");
		close(ends[0]);
		to = fdopen(ends[1], "w");
		neighbour(to);
		fclose(to);
		_exit(0);
	}
	close(ends[1]);
	while ((got = read(ends[0], said + length, SAID - 1 - length)) > 0)
		length += got;
	close(ends[0]);
	if (waitpid(child, &status, 0) != child || status)
		lost("the neighbour did not come to its end");
	return said;
}

/* The line in which two texts differ first is enough. */
static inline void expect_same(struct __test_metadata *_metadata, const char *alone,
			       const char *beside)
{
	size_t at = 0, line = 0;

	for (; alone[at] && alone[at] == beside[at]; at++)
		if (alone[at] == '\n')
			line = at + 1;
	EXPECT_EQ(alone[at], beside[at]) {
		TH_LOG("alone: %.*s", (int)strcspn(alone + line, "\n"), alone + line);
		TH_LOG("beside sessions: %.*s", (int)strcspn(beside + line, "\n"), beside + line);
	}
}

/* @neighbour sees the same alone and beside sessions. */
static inline void sees_no_difference(struct __test_metadata *_metadata,
				      FIXTURE_DATA(neighbours) *self, void (*neighbour)(FILE *to))
{
	char *alone = said_by(neighbour), *said;

	EXPECT_NE(0, *alone);
	sessions_begin(self);
	mark(self->marks);
	said = said_by(neighbour);
	expect_same(_metadata, alone, said);
	sessions_end(_metadata, self);
	free(said);
	free(alone);
}

/* How often this thread was switched away. */
static inline long switches(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nvcsw + usage.ru_nivcsw;
}

#endif /* KBARMAN_VM_NEIGHBOURS_H */
