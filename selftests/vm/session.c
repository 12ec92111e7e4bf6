// SPDX-License-Identifier: MIT
/* Who owns a session, what becomes of it when they go, and CPUs that come and go. */
#include <limits.h>

#include "kselftest_harness.h"
#include <linux/perf_event.h>

#include "lib.h"

static const struct kbarman_configure all = {
	.mode = KBARMAN_MODE_STREAM,
	.sources = KBARMAN_SOURCE_SCHED | KBARMAN_SOURCE_IDLE | KBARMAN_SOURCE_MAPS };

FIXTURE(session)
{
	int fd, other;
};

FIXTURE_SETUP(session)
{
	self->fd = device_open_free();
	self->other = device_open();
}

FIXTURE_TEARDOWN(session)
{
	close(self->fd);
	close(self->other);
}

/* ---- what is told of one that runs ---- */

TEST_F(session, what_is_overwritten_was_written)
{
	struct kbarman_configure c = all;
	struct kbarman_stats s;
	pid_t child;

	c.mode = KBARMAN_MODE_OVERWRITE;
	c.ring_bytes = 4 * MIB;
	ASSERT_EQ(0, configure(self->fd, c));
	ASSERT_EQ(0, start(self->fd));
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			ping_pong(sysconf(_SC_NPROCESSORS_ONLN) - 1, 100);
	}
	/* Records come while they are counted, which takes the longer the more there are. */
	do {
		s = stats(self->fd, KBARMAN_CPU_ALL);
		ASSERT_GE(s.written, s.overwritten);
	} while (s.written < 10000);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

/* A busy writer hides nothing: what the ring has no room for has been overwritten. */
TEST_F_TIMEOUT(session, what_a_full_ring_overwrites_is_told_at_once, 240)
{
	const uint64_t ring = 8 * MIB, smallest = 24 + sizeof(long);
	struct kbarman_configure c = all;
	struct kbarman_stats before, s;
	unsigned int cpu = sysconf(_SC_NPROCESSORS_ONLN) - 1, asked = 0, i;
	pid_t writers[2];

	c.mode = KBARMAN_MODE_OVERWRITE;
	c.sources = KBARMAN_SOURCE_SCHED;
	c.ring_bytes = ring;
	ASSERT_EQ(0, configure(self->fd, c));
	ASSERT_EQ(0, start(self->fd));
	/* They give way to each other. */
	for (i = 0; i < 2; i++) {
		writers[i] = fork();
		ASSERT_LE(0, writers[i]);
		if (!writers[i]) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			pin(cpu);
			for (;;)
				sched_yield();
		}
	}
	pin(0);
	do {
		before = stats(self->fd, cpu);
		s = stats(self->fd, cpu);
		if (before.bytes < ring + ring / 8) {
			usleep(10000);
			continue;
		}
		ASSERT_LE(before.written - ring / smallest, s.overwritten);
		ASSERT_GE(s.written, s.overwritten);
		asked++;
	} while (asked < 50);
	for (i = 0; i < 2; i++) {
		kill(writers[i], SIGKILL);
		waitpid(writers[i], NULL, 0);
	}
}

/* ---- what is recorded begins and ends at one moment ---- */

/* Of the records of @cpu: how far the newest one is in front of the end, in ticks. */
static uint64_t ticks_to_the_end(int fd, uint32_t cpu)
{
	struct kbarman_query q = query(fd);
	const void *map = map_cpu(fd, cpu);
	struct walk walk = walk_begin(map);
	const union record *r;
	uint64_t ticks = UINT64_MAX;

	while ((r = walk_next(&walk)))
		ticks = capture_header(map)->last_timestamp - r->header.timestamp;
	munmap((void *)map, q.map_bytes);
	return ticks;
}

/*
 * The sources are taken away after the end, which takes tens of ms. A busy machine may be late, so
 * one recording of many has to be within a few. The CPU idles in between: where one thread emulates
 * all CPUs, each gives way to the others then.
 */
TEST_F_TIMEOUT(session, everything_is_recorded_up_to_the_end, 240)
{
	unsigned int cpu = sysconf(_SC_NPROCESSORS_ONLN) - 1, tries;
	uint64_t least = UINT64_MAX, few = query(self->fd).clock_hz / 100;
	struct judgement j;
	pid_t child;

	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;) {
			ping_pong(cpu, 1);
			usleep(500);
		}
	}
	for (tries = 0; tries < 50 && least > few; tries++) {
		uint64_t ticks;

		ASSERT_EQ(0, configure(self->fd, all));
		ASSERT_EQ(0, start(self->fd));
		while (stats(self->fd, cpu).written < 100)
			usleep(1000);
		ASSERT_EQ(0, stop(self->fd));
		j = judge_cpu(self->fd, cpu);
		EXPECT_EQ(NULL, j.fault);
		ticks = ticks_to_the_end(self->fd, cpu);
		if (ticks < least)
			least = ticks;
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	EXPECT_LE(least, few);
}

TEST_F(session, each_cpu_says_at_the_begin_what_it_runs)
{
	unsigned int cpu, nr = sysconf(_SC_NPROCESSORS_ONLN);

	ASSERT_EQ(0, configure(self->fd, all));
	ASSERT_EQ(0, start(self->fd));
	ASSERT_EQ(0, stop(self->fd));
	for (cpu = 0; cpu < nr; cpu++) {
		const void *map = map_cpu(self->fd, cpu);
		struct walk walk = walk_begin(map);
		const union record *r = walk_next(&walk);

		ASSERT_NE(NULL, r);
		EXPECT_EQ(BM_RECORD_TASK_SWITCH, r->header.record_type);
		EXPECT_EQ(clocks(self->fd).start.timestamp,
			  capture_header(map)->clock_info.timestamp_base);
		EXPECT_LE(clocks(self->fd).start.timestamp, r->header.timestamp);
		EXPECT_EQ(NULL, judge_cpu(self->fd, cpu).fault);
		munmap((void *)map, query(self->fd).map_bytes);
	}
}

/* ---- two descriptors ---- */

TEST_F(session, a_second_descriptor_changes_nothing)
{
	struct kbarman_add_maps m = { .size = sizeof(m) };

	ASSERT_EQ(0, configure(self->fd, all));
	EXPECT_EQ(-EPERM, start(self->other));
	EXPECT_EQ(-EPERM, stop(self->other));
	EXPECT_EQ(-EPERM, call(self->other, KBARMAN_ADD_MAPS, &m));
	ASSERT_EQ(0, start(self->fd));
	EXPECT_EQ(-EPERM, start(self->other));
	EXPECT_EQ(-EPERM, stop(self->other));
	EXPECT_NE(0, query(self->fd).state & KBARMAN_STATE_RUNNING);
}

TEST_F(session, a_second_descriptor_sees_everything)
{
	ASSERT_EQ(0, configure(self->fd, all));
	ASSERT_EQ(0, start(self->fd));
	ping_pong(0, 100);
	ASSERT_EQ(0, stop(self->fd));
	EXPECT_EQ(KBARMAN_STATE_CONFIGURED | KBARMAN_STATE_OWNED, query(self->other).state);
	EXPECT_EQ(query(self->fd).session, query(self->other).session);
	EXPECT_EQ(stats(self->fd, 0).written, stats(self->other, 0).written);
	EXPECT_EQ(clocks(self->fd).stop.timestamp, clocks(self->other).stop.timestamp);
	EXPECT_LE(200, judge_cpu(self->other, 0).records);
}

TEST_F(session, a_duplicate_is_the_same_descriptor)
{
	int copy = dup(self->fd);

	ASSERT_EQ(0, configure(self->fd, all));
	EXPECT_EQ(0, start(copy));
	close(self->fd);
	EXPECT_NE(0, query(copy).state & KBARMAN_STATE_RUNNING);
	EXPECT_EQ(0, stop(copy));
	self->fd = copy;
}

TEST_F(session, closing_the_owner_stops_the_session)
{
	ASSERT_EQ(0, configure(self->fd, all));
	ASSERT_EQ(0, start(self->fd));
	close(self->fd);
	EXPECT_EQ(KBARMAN_STATE_CONFIGURED, query(self->other).state);
	EXPECT_EQ(0, configure(self->other, all));
	EXPECT_EQ(0, start(self->other));
	self->fd = device_open();
}

TEST_F(session, closing_the_owner_stops_the_session_though_mapped)
{
	ASSERT_EQ(0, configure(self->fd, all));
	map_cpu(self->fd, 0);
	ASSERT_EQ(0, start(self->fd));
	close(self->fd);
	EXPECT_EQ(KBARMAN_STATE_CONFIGURED, query(self->other).state);
	EXPECT_EQ(0, configure(self->other, all));
	self->fd = device_open();
}

TEST_F(session, records_stay_readable_after_the_owner)
{
	ASSERT_EQ(0, configure(self->fd, all));
	ASSERT_EQ(0, start(self->fd));
	ping_pong(0, 100);
	close(self->fd);
	EXPECT_LE(200, judge_cpu(self->other, 0).records);
	EXPECT_EQ(NULL, judge_cpu(self->other, 0).fault);
	EXPECT_LE(200, stats(self->other, 0).written);
	self->fd = device_open();
}

TEST_F(session, nothing_stays_after_the_last_descriptor)
{
	ASSERT_EQ(0, configure(self->fd, all));
	ASSERT_EQ(0, start(self->fd));
	close(self->other);
	close(self->fd);
	self->fd = device_open();
	EXPECT_EQ(0, query(self->fd).state);
	self->other = device_open();
}

/* Opening, configuring and closing of many at once ends with a device that works. */
TEST_F(session, many_who_want_it_do_not_harm_each_other)
{
	int status, i, round;
	pid_t child;

	close(self->fd);
	close(self->other);
	for (i = 0; i < 4; i++) {
		if (fork())
			continue;
		pin(i % sysconf(_SC_NPROCESSORS_ONLN));
		for (round = 0; round < 50; round++) {
			int fd = device_open();
			struct kbarman_configure c = all;
			int error;

			c.ring_bytes = 64 * KIB;
			c.max_tasks = c.max_maps = 64;
			c.max_strings = 4096;
			error = configure(fd, c);
			if (error)
				_exit(1);
			if (round % 3 && start(fd))
				_exit(2);
			close(fd);
		}
		_exit(0);
	}
	while ((child = wait(&status)) > 0) {
		EXPECT_EQ(0, status);
	}
	self->fd = device_open();
	self->other = device_open();
	EXPECT_EQ(0, configure(self->fd, all));
	EXPECT_EQ(0, start(self->fd));
}

/* ---- a reader that is killed ---- */

/* Bytes that the module's allocations take now. */
static uint64_t module_memory(void)
{
	FILE *f = fopen("/proc/vmallocinfo", "r");
	char line[512];
	uint64_t sum = 0, size;

	if (!f)
		lost("no vmallocinfo");
	while (fgets(line, sizeof(line), f))
		if (strstr(line, " kbarman_") && sscanf(line, "%*s %llu",
							(unsigned long long *)&size) == 1)
			sum += size;
	fclose(f);
	return sum;
}

TEST_F(session, a_killed_reader_leaves_nothing_behind)
{
	struct kbarman_configure big = all;
	int ready[2], status;
	pid_t reader;
	char byte;

	close(self->fd);
	close(self->other);
	ASSERT_EQ(0, pipe(ready));
	big.ring_bytes = 16 * MIB;
	reader = fork();
	if (!reader) {
		int fd = device_open();

		if (configure(fd, big) || start(fd))
			lost("no session");
		map_cpu(fd, 0);
		map_cpu(fd, 0);
		if (write(ready[1], "", 1) == 1)
			for (;;)
				pause();
	}
	ASSERT_EQ(1, read(ready[0], &byte, 1));
	EXPECT_LE(16 * MIB, module_memory());
	ASSERT_EQ(0, kill(reader, SIGKILL));
	ASSERT_EQ(reader, waitpid(reader, &status, 0));
	ASSERT_TRUE(WIFSIGNALED(status));
	EXPECT_EQ(0, module_memory());
	self->fd = device_open();
	EXPECT_EQ(0, query(self->fd).state);
	close(self->fd);
	EXPECT_EQ(0, module_unload());
	ASSERT_EQ(0, module_load());
	self->fd = device_open();
	self->other = device_open();
	EXPECT_EQ(0, configure(self->fd, all));
}

/* A descriptor that has a session of its own keeps no other one. */
TEST_F(session, memory_comes_back_with_the_last_descriptor)
{
	uint64_t one, two;

	ASSERT_EQ(0, configure(self->fd, all));
	ASSERT_EQ(0, start(self->fd));
	one = module_memory();
	EXPECT_LT(0, one);
	ASSERT_EQ(0, stop(self->fd));
	close(self->fd);
	EXPECT_LT(0, module_memory());
	close(self->other);
	EXPECT_EQ(0, module_memory());

	self->fd = device_open();
	self->other = device_open();
	ASSERT_EQ(0, configure(self->fd, all));
	one = module_memory();
	ASSERT_EQ(0, configure(self->other, all));
	two = module_memory();
	EXPECT_LT(one, two);
	close(self->fd);
	EXPECT_GT(two, module_memory());
	close(self->other);
	EXPECT_EQ(0, module_memory());
	self->fd = device_open();
	self->other = device_open();
}

/*
 * Linux opens under a lock of all misc devices, so who waits there makes kvm and fuse wait. This
 * program is urgent, and who configures on the same CPU is not: where its memory is seen to be
 * half there, it is in the middle of the call, and stays there.
 */
TEST_F(session, opening_does_not_wait_for_one_who_configures)
{
	const struct sched_param urgent = { .sched_priority = 1 };
	struct kbarman_configure big = all;
	uint64_t half, whole;
	pid_t child;
	int third;

	big.ring_bytes = 16 * MIB;
	ASSERT_EQ(0, configure(self->fd, big));
	whole = module_memory();
	pin(0);
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (!configure(self->fd, big))
			;
		_exit(1);
	}
	ASSERT_EQ(0, sched_setscheduler(0, SCHED_FIFO, &urgent));
	do {
		usleep(1000);
		half = module_memory();
	} while (half <= whole || half >= 2 * whole);	/* the former one stays until it is over */
	third = device_open();
	EXPECT_EQ(half, module_memory());
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(third);
}

/* ---- CPUs that come and go ---- */

#define CPU	1	/* the one that does */

FIXTURE(hotplug)
{
	int fd;
};

FIXTURE_SETUP(hotplug)
{
	self->fd = device_open_free();
	if (query(self->fd).nr_cpus < 2 ||
	    access("/sys/devices/system/cpu/cpu1/online", W_OK))
		SKIP(skip_test(), "no CPU can be unplugged");
	pin(0);
	cpu_set_online(CPU, true);
}

FIXTURE_TEARDOWN(hotplug)
{
	cpu_set_online(CPU, true);
	close(self->fd);
}

TEST_F(hotplug, a_leaving_cpu_keeps_its_data)
{
	uint64_t written, offset;
	struct judgement j;
	pid_t before;

	ASSERT_EQ(0, configure(self->fd, all));
	ASSERT_EQ(0, start(self->fd));
	before = work_on(CPU);
	cpu_set_online(CPU, false);
	written = stats(self->fd, CPU).written;
	offset = capture_store(map_cpu(self->fd, CPU))->write_offset;
	ping_pong(0, 100);
	EXPECT_EQ(written, stats(self->fd, CPU).written);
	EXPECT_EQ(offset, capture_store(map_cpu(self->fd, CPU))->write_offset);
	EXPECT_EQ(1, stats(self->fd, KBARMAN_CPU_ALL).online);
	ASSERT_EQ(0, stop(self->fd));
	EXPECT_LE(100, switches_to(self->fd, CPU, before));
	j = judge_cpu(self->fd, CPU);
	EXPECT_EQ(NULL, j.fault) TH_LOG("%s", j.fault);
}

/* Its ring says so when it goes, and nothing more until the CPU says what it runs. */
TEST_F(hotplug, a_cpu_that_is_offline_says_so_and_records_nothing)
{
	uint64_t left, back, stopped = 0;
	bool was_offline = false;
	const union record *r;
	unsigned int told = 0;
	struct walk walk;

	ASSERT_EQ(0, configure(self->fd, all));
	ASSERT_EQ(0, start(self->fd));
	work_on(CPU);
	cpu_set_online(CPU, false);
	left = clocks(self->fd).now.timestamp;
	usleep(100000);
	back = clocks(self->fd).now.timestamp;
	cpu_set_online(CPU, true);
	wait_until_recorded(self->fd, CPU);
	work_on(CPU);
	ASSERT_EQ(0, stop(self->fd));
	walk = walk_begin(map_cpu(self->fd, CPU));
	while ((r = walk_next(&walk))) {
		if (was_offline) {
			EXPECT_EQ(BM_RECORD_TASK_SWITCH, r->header.record_type);
			EXPECT_LE(back, r->header.timestamp);
		}
		was_offline = r->header.record_type == BM_RECORD_CUSTOM_COUNTER &&
			      r->counter.counter == STOPPED_SERIES &&
			      r->counter.value == KBARMAN_STOPPED_OFFLINE + 1;
		told += was_offline;
		if (was_offline)
			stopped = r->header.timestamp;
	}
	EXPECT_EQ(1, told);
	EXPECT_FALSE(was_offline);
	EXPECT_LE(stopped, left);
	EXPECT_EQ(NULL, judge_cpu(self->fd, CPU).fault);
}

TEST_F(hotplug, a_returning_cpu_records_again)
{
	pid_t before, after;
	struct judgement j;

	ASSERT_EQ(0, configure(self->fd, all));
	ASSERT_EQ(0, start(self->fd));
	before = work_on(CPU);
	cpu_set_online(CPU, false);
	cpu_set_online(CPU, true);
	wait_until_recorded(self->fd, CPU);
	after = work_on(CPU);
	EXPECT_EQ(2, stats(self->fd, KBARMAN_CPU_ALL).online);
	ASSERT_EQ(0, stop(self->fd));
	EXPECT_LE(100, switches_to(self->fd, CPU, before));
	EXPECT_LE(100, switches_to(self->fd, CPU, after));
	j = judge_cpu(self->fd, CPU);
	EXPECT_EQ(NULL, j.fault) TH_LOG("%s", j.fault);
}

/* Making and releasing such a counter takes the very lock that a CPU goes under. */
TEST_F(hotplug, software_counters_let_a_cpu_go_and_come)
{
	const struct kbarman_event events[] = {
		{ .attr = { .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK }, .name = "cpu-clock" },
		{ .attr = { .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CONTEXT_SWITCHES },
		  .name = "context-switches" },
	};
	struct kbarman_configure c = {
		.sources = KBARMAN_SOURCE_ALL,
		.nr_events = 2,
		.events_ptr = sampled_hz(events, 2, 100),
	};
	int i;

	ASSERT_EQ(0, configure(self->fd, c));
	ASSERT_EQ(0, start(self->fd));
	for (i = 0; i < 3; i++) {
		cpu_set_online(CPU, false);
		cpu_set_online(CPU, true);
	}
	wait_until_recorded(self->fd, CPU);
	EXPECT_LE(100, switches_to(self->fd, CPU, work_on(CPU)));
	ASSERT_EQ(0, stop(self->fd));
	EXPECT_EQ(NULL, judge_cpu(self->fd, CPU).fault);
}

/* The timestamp of the newest sample of @cpu, 0 if there is none. */
static uint64_t last_sample(int fd, uint32_t cpu)
{
	const void *map = map_cpu(fd, cpu);
	struct walk walk = walk_begin(map);
	uint64_t last = 0;
	const union record *r;

	while ((r = walk_next(&walk)))
		if (r->header.record_type == BM_RECORD_SAMPLE_WITH_PC)
			last = r->header.timestamp;
	munmap((void *)map, query(fd).map_bytes);
	return last;
}

/*
 * By whatever the first event became, PMU or none. Who follows the CPUs may look at one that
 * is going and not gone.
 */
TEST_F(hotplug, a_returning_cpu_is_sampled_again)
{
	struct kbarman_configure c = {
		.sources = KBARMAN_SOURCE_ALL,
		.nr_events = 2,
		.events_ptr = sampled_or_clock(&cycles, 1000000),
	};
	unsigned int turn, try;
	uint64_t back;

	ASSERT_EQ(0, configure(self->fd, c));
	ASSERT_EQ(0, start(self->fd));
	for (turn = 0; turn < 10; turn++) {
		cpu_set_online(CPU, false);
		cpu_set_online(CPU, true);
		back = clocks(self->fd).now.timestamp;
		for (try = 0; try < 100 && last_sample(self->fd, CPU) <= back; try++)
			work_on(CPU);
		ASSERT_LT(back, last_sample(self->fd, CPU))
			TH_LOG("no sample after it came back for the %uth time", turn + 1);
	}
}

TEST_F(hotplug, a_cpu_that_was_off_at_the_start_is_recorded_when_it_comes)
{
	pid_t after;

	cpu_set_online(CPU, false);
	ASSERT_EQ(0, configure(self->fd, all));
	ASSERT_EQ(0, start(self->fd));
	EXPECT_EQ(1, stats(self->fd, KBARMAN_CPU_ALL).online);
	cpu_set_online(CPU, true);
	wait_until_recorded(self->fd, CPU);
	after = work_on(CPU);
	ASSERT_EQ(0, stop(self->fd));
	EXPECT_LE(100, switches_to(self->fd, CPU, after));
	EXPECT_EQ(NULL, judge_cpu(self->fd, CPU).fault);
}

TEST_F(hotplug, start_without_an_online_cpu_is_refused)
{
	uint64_t only = 1 << CPU;
	struct kbarman_configure c = all;

	c.cpus_ptr = (uintptr_t)&only;
	c.nr_cpu_words = 1;
	cpu_set_online(CPU, false);
	ASSERT_EQ(0, configure(self->fd, c));
	EXPECT_EQ(-ENODEV, start(self->fd));
	EXPECT_EQ(0, query(self->fd).state & KBARMAN_STATE_RUNNING);
	cpu_set_online(CPU, true);
	EXPECT_EQ(0, start(self->fd));
}

TEST_F(hotplug, a_cpu_that_goes_while_stopped_does_not_matter)
{
	pid_t before;

	ASSERT_EQ(0, configure(self->fd, all));
	ASSERT_EQ(0, start(self->fd));
	before = work_on(CPU);
	ASSERT_EQ(0, stop(self->fd));
	cpu_set_online(CPU, false);
	EXPECT_LE(100, switches_to(self->fd, CPU, before));
	cpu_set_online(CPU, true);
	EXPECT_LE(100, switches_to(self->fd, CPU, before));
}

TEST_F_TIMEOUT(hotplug, coming_and_going_under_load_loses_nothing, 300 * SLOWNESS)
{
	struct kbarman_stats s;
	struct judgement j;
	pid_t busy;
	int i;

	ASSERT_EQ(0, configure(self->fd, (struct kbarman_configure) {
		.mode = KBARMAN_MODE_OVERWRITE, .sources = all.sources, .ring_bytes = 64 * KIB }));
	ASSERT_EQ(0, start(self->fd));
	busy = fork();
	if (!busy) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;) {
			struct echo e = echo_create(0);

			echo_rounds(&e, 50);
			echo_destroy(&e);
		}
	}
	for (i = 0; i < 5; i++) {
		cpu_set_online(CPU, false);
		cpu_set_online(CPU, true);
	}
	kill(busy, SIGKILL);
	waitpid(busy, NULL, 0);
	ASSERT_EQ(0, stop(self->fd));
	s = stats(self->fd, KBARMAN_CPU_ALL);
	EXPECT_EQ(0, lost_records(&s));
	for (i = 0; i < 2; i++) {
		j = judge_cpu(self->fd, i);
		EXPECT_EQ(NULL, j.fault) TH_LOG("CPU %d: %s", i, j.fault);
		EXPECT_EQ(stats(self->fd, i).written, stats(self->fd, i).overwritten + j.records);
	}
}

TEST_HARNESS_MAIN
