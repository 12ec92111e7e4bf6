// SPDX-License-Identifier: MIT
/* What is recorded: switches, idling, times; and what an overwriting ring keeps. */
#include <signal.h>

#include "kselftest_harness.h"
#include "lib.h"

#define ROUNDS	1000
#define STARTS	20

FIXTURE(records)
{
	int fd;
};

FIXTURE_SETUP(records)
{
	self->fd = device_open_free();
}

FIXTURE_TEARDOWN(records)
{
	close(self->fd);
}

static const struct kbarman_configure switches = { .sources = KBARMAN_SOURCE_SCHED },
	all = { .sources = KBARMAN_SOURCE_SCHED | KBARMAN_SOURCE_IDLE | KBARMAN_SOURCE_MAPS };

/* ROUNDS ping-pongs on @cpu with @config; returns the other process. */
static pid_t record(struct __test_metadata *_metadata, int fd, struct kbarman_configure config,
		    uint32_t cpu)
{
	pid_t echo;

	ASSERT_EQ(0, configure(fd, config));
	ASSERT_EQ(0, start(fd));
	echo = ping_pong(cpu, ROUNDS);
	ASSERT_EQ(0, stop(fd));
	return echo;
}

TEST_F(records, each_cpus_bytes_decode_alone)
{
	struct kbarman_query q;
	uint32_t cpu;

	record(_metadata, self->fd, all, 0);
	q = query(self->fd);
	for (cpu = 0; cpu < q.nr_cpus; cpu++) {
		size_t length = q.header_bytes + sizeof(struct bm_datastore_header_data) +
				q.ring_bytes;
		void *copy = malloc(length);
		struct judgement j;

		memcpy(copy, map_cpu(self->fd, cpu), length);
		j = judge(copy, length, cpu);
		EXPECT_EQ(NULL, j.fault)
			TH_LOG("CPU %u at %llu: %s", cpu, (unsigned long long)j.at, j.fault);
		EXPECT_EQ(stats(self->fd, cpu).written, j.records);
		free(copy);
	}
}

TEST_F(records, smallest_tables_still_decode)
{
	struct kbarman_configure c = all;
	struct judgement j;

	c.max_tasks = KBARMAN_TASKS_MIN;
	c.max_maps = c.max_strings = 1;
	record(_metadata, self->fd, c, 0);
	j = judge_cpu(self->fd, 0);
	EXPECT_EQ(NULL, j.fault) TH_LOG("%s", j.fault);
}

TEST_F(records, a_ping_pong_is_two_switches)
{
	pid_t me = getpid(), echo;
	unsigned int to_me = 0, to_echo = 0, turns = 0, last = 0;
	const union record *r;
	struct walk walk;

	echo = record(_metadata, self->fd, switches, 0);
	ASSERT_EQ(0, lost_records((struct kbarman_stats[]){ stats(self->fd, 0) }));
	ASSERT_EQ(0, stats(self->fd, 0).overwritten);
	walk = walk_begin(map_cpu(self->fd, 0));
	while ((r = walk_next(&walk))) {
		unsigned int to = r->task_switch.task_id;

		if (r->header.record_type != BM_RECORD_TASK_SWITCH || (to != me && to != echo))
			continue;
		to_me += to == me;
		to_echo += to == echo;
		turns += to != last;
		last = to;
	}
	EXPECT_LE(ROUNDS, to_me);
	EXPECT_LE(ROUNDS, to_echo);
	EXPECT_LE(2 * ROUNDS, turns);
}

/* The reason of a record that the module makes itself at the start is "preempted", from state 0. */
static void log_first_records(struct __test_metadata *_metadata, const void *map)
{
	struct walk walk = walk_begin(map);
	const union record *r;
	unsigned int n;

	for (n = 0; n < 8 && (r = walk_next(&walk)); n++)
		TH_LOG("at %llu: to %u, reason %u, from state %#x",
		       (unsigned long long)r->header.timestamp, r->task_switch.task_id,
		       r->task_switch.reason, r->task_switch.prev_state);
}

/* From a task to itself there is no switch, and none is missed in between. */
static void expect_alternation(struct __test_metadata *_metadata, int fd, unsigned int round)
{
	uint32_t cpu, nr_cpus = query(fd).nr_cpus;

	for (cpu = 0; cpu < nr_cpus; cpu++) {
		const void *map = map_cpu(fd, cpu);
		const bool first = !capture_store(map)->read_offset;
		struct walk walk = walk_begin(map);
		uint32_t current = ~0U;
		const union record *r;

		while ((r = walk_next(&walk))) {
			EXPECT_EQ(first && current == ~0U ? BM_TASK_SWITCH_FIRST : 0,
				  r->task_switch.flags);
			EXPECT_NE(current, r->task_switch.task_id) {
				TH_LOG("round %u, CPU %u: twice to %u, at position %llu", round,
				       cpu, current, (unsigned long long)walk.at);
				log_first_records(_metadata, map);
			}
			current = r->task_switch.task_id;
		}
		munmap((void *)map, query(fd).map_bytes);
	}
}

TEST_F(records, switches_alternate)
{
	record(_metadata, self->fd, switches, 0);
	expect_alternation(_metadata, self->fd, 0);
}

/* Who runs as recording begins: the probe may have told before the CPU is asked. */
TEST_F(records, who_ran_at_the_start_is_told_once)
{
	unsigned int round;
	pid_t busy = fork();

	if (!busy) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		ping_pong(0, ~0U);
		_exit(0);
	}
	ASSERT_EQ(0, configure(self->fd, switches));
	for (round = 0; round < STARTS; round++) {
		ASSERT_EQ(0, start(self->fd));
		ASSERT_EQ(0, stop(self->fd));
		expect_alternation(_metadata, self->fd, round);
	}
	kill(busy, SIGKILL);
	waitpid(busy, NULL, 0);
}

TEST_F(records, blocked_means_that_it_did_not_want_to_run)
{
	struct walk walk;
	const union record *r;
	unsigned int blocked = 0, count = 0;

	record(_metadata, self->fd, switches, 0);
	walk = walk_begin(map_cpu(self->fd, 0));
	while ((r = walk_next(&walk))) {
		if (r->task_switch.reason == BM_TASK_SWITCH_BLOCKED) {
			EXPECT_NE(0, r->task_switch.prev_state);
			blocked++;
		}
		count++;
	}
	/* Each round blocks this one in read(), or the other one, or both. */
	EXPECT_LE(ROUNDS, blocked);
	EXPECT_LT(blocked, count);
}

/* By the first pair of the fact's letters and bits that fits; '?': none does. */
static char state_letter(const char *states, unsigned int state)
{
	while (states && *states) {
		char *end;
		unsigned long bits = strtoul(states + 1, &end, 16);

		if ((state & bits) == bits)
			return *states;
		states = *end ? end + 1 : end;
	}
	return state ? '?' : 'R';
}

static bool is_worker(const void *map, uint32_t task_id)
{
	const struct bm_protocol_header_task_info *row = capture_task(map, task_id, NULL);

	return row && !strncmp(capture_strings(map) + row->task_name_ptr, "kworker/", 8);
}

/* @task sleeps, by what /proc says of it. */
static bool is_asleep(pid_t task)
{
	char path[64], text[256];

	snprintf(path, sizeof(path), "/proc/%d/stat", task);
	read_file(path, text, sizeof(text));
	return strstr(text, ") S ");
}

/* It no longer runs, whatever its state: the kernel looks whether a CPU has it. */
static bool is_off_cpu(pid_t task)
{
	char path[64], text[256];

	snprintf(path, sizeof(path), "/proc/%d/syscall", task);
	read_file(path, text, sizeof(text));
	return strncmp(text, "running", 7);
}

/* An idle kworker is no task that waits for a disk, and a dead one no idle one. */
TEST_F(records, who_goes_is_in_the_state_that_the_kernel_calls_it)
{
	unsigned int idle = 0, i;
	char of_child[256] = "";
	uint32_t running = ~0U;
	const union record *r;
	const void *map;
	const char *states;
	struct walk walk;
	int status, wake[2];
	pid_t child;
	char byte = 0;

	ASSERT_EQ(0, pipe(wake));
	ASSERT_EQ(0, configure(self->fd, switches));
	ASSERT_EQ(0, start(self->fd));
	child = fork();
	if (!child) {
		pin(0);
		if (read(wake[0], &byte, 1) == 1)
			raise(SIGSTOP);
		_exit(0);
	}
	while (!is_asleep(child))
		usleep(1000);
	ASSERT_EQ(1, write(wake[1], &byte, 1));
	ASSERT_EQ(child, waitpid(child, &status, WUNTRACED));
	ASSERT_TRUE(WIFSTOPPED(status));
	while (!is_off_cpu(child))
		usleep(1000);
	kill(child, SIGCONT);
	ASSERT_EQ(child, waitpid(child, &status, 0));
	/* Each CPU's worker runs, and goes some time behind that: it has nothing to do. */
	for (i = 0; i < 10; i++) {
		write_file("/proc/sys/vm/stat_refresh", "1");
		usleep(5000);
	}
	ASSERT_EQ(0, stop(self->fd));

	map = map_cpu(self->fd, 0);
	states = capture_fact(map, "states");
	ASSERT_NE(NULL, states);
	walk = walk_begin(map);
	while ((r = walk_next(&walk))) {
		unsigned int state = r->task_switch.prev_state |
				     r->task_switch.prev_state_high << 8;
		char letter = state_letter(states, state);

		if (r->task_switch.reason == BM_TASK_SWITCH_BLOCKED && is_worker(map, running)) {
			/* Its work may have waited for a lock. */
			EXPECT_TRUE(letter == 'I' || letter == 'D')
				TH_LOG("a worker went in %#x", state);
			idle += letter == 'I';
		}
		if (r->task_switch.reason == BM_TASK_SWITCH_BLOCKED && running == (uint32_t)child &&
		    strlen(of_child) < sizeof(of_child) - 1)
			of_child[strlen(of_child)] = letter;
		running = r->task_switch.task_id;
	}
	EXPECT_LT(0, idle);
	EXPECT_NE(NULL, strchr(of_child, 'S')) TH_LOG("'%s'", of_child);
	EXPECT_NE(NULL, strchr(of_child, 'T')) TH_LOG("'%s'", of_child);
	EXPECT_EQ('X', of_child[strlen(of_child) - 1]) TH_LOG("'%s'", of_child);
	EXPECT_EQ(NULL, strchr(of_child, 'I')) TH_LOG("'%s'", of_child);
}

TEST_F(records, recording_begins_with_who_runs_and_whether_it_idles)
{
	uint32_t cpu, nr_cpus;

	ASSERT_EQ(0, configure(self->fd, all));
	ASSERT_EQ(0, start(self->fd));
	ASSERT_EQ(0, stop(self->fd));
	nr_cpus = query(self->fd).nr_cpus;
	for (cpu = 0; cpu < nr_cpus; cpu++) {
		struct judgement j;

		if (!cpu_online(cpu))
			continue;
		j = judge_cpu(self->fd, cpu);
		EXPECT_EQ(NULL, j.fault) TH_LOG("%s", j.fault);
		EXPECT_LE(1, j.by_type[BM_RECORD_TASK_SWITCH]) TH_LOG("CPU %u", cpu);
		EXPECT_LE(1, j.by_type[BM_RECORD_HALTING_EVENT]) TH_LOG("CPU %u", cpu);
	}
}

TEST_F(records, times_never_go_back)
{
	uint32_t cpu, nr_cpus;

	record(_metadata, self->fd, all, 0);
	nr_cpus = query(self->fd).nr_cpus;
	for (cpu = 0; cpu < nr_cpus; cpu++) {
		const void *map = map_cpu(self->fd, cpu);
		struct walk walk = walk_begin(map);
		uint64_t last = clocks(self->fd).start.timestamp;
		const union record *r;

		while ((r = walk_next(&walk))) {
			EXPECT_LE(last, r->header.timestamp)
				TH_LOG("CPU %u, position %llu", cpu, (unsigned long long)walk.at);
			last = r->header.timestamp;
		}
		EXPECT_LE(last, clocks(self->fd).stop.timestamp);
		EXPECT_EQ(clocks(self->fd).stop.timestamp, capture_header(map)->last_timestamp);
	}
}

/* In, out, in, out; where recording began, the in may have been before. */
TEST_F(records, idling_pairs)
{
	struct kbarman_configure c = { .sources = KBARMAN_SOURCE_IDLE };
	unsigned int seen = 0;
	uint32_t cpu, nr_cpus;
	struct echo e;
	int i;

	nr_cpus = query(self->fd).nr_cpus;
	if (nr_cpus < 2)
		SKIP(return, "one CPU only");
	ASSERT_EQ(0, configure(self->fd, c));
	pin(0);
	e = echo_create(1);
	ASSERT_EQ(0, start(self->fd));
	for (i = 0; i < 100; i++) {
		echo_rounds(&e, 1);
		usleep(1000);		/* nothing to do but to idle */
	}
	ASSERT_EQ(0, stop(self->fd));
	echo_destroy(&e);
	for (cpu = 0; cpu < nr_cpus; cpu++) {
		struct walk walk = walk_begin(map_cpu(self->fd, cpu));
		int inside = -1;
		const union record *r;

		while ((r = walk_next(&walk))) {
			ASSERT_EQ(BM_RECORD_HALTING_EVENT, r->header.record_type);
			EXPECT_NE(inside, r->halt.entered_halt)
				TH_LOG("CPU %u: twice, at %llu", cpu, (unsigned long long)walk.at);
			inside = r->halt.entered_halt;
			seen++;
		}
	}
	EXPECT_LE(100, seen);
}

TEST_F(records, sources_not_asked_for_are_not_recorded)
{
	struct judgement j;

	record(_metadata, self->fd, switches, 0);
	j = judge_cpu(self->fd, 0);
	EXPECT_EQ(j.records, j.by_type[BM_RECORD_TASK_SWITCH]);
	record(_metadata, self->fd, (struct kbarman_configure) { .sources = KBARMAN_SOURCE_IDLE },
	       0);
	j = judge_cpu(self->fd, 0);
	EXPECT_EQ(j.records, j.by_type[BM_RECORD_HALTING_EVENT]);
}

TEST_F(records, cpus_not_asked_for_are_not_recorded)
{
	uint64_t only_second = 2;
	struct kbarman_configure c = switches;
	struct kbarman_query q;

	if (query(self->fd).nr_cpus < 2)
		SKIP(return, "one CPU only");
	c.cpus_ptr = (uintptr_t)&only_second;
	c.nr_cpu_words = 1;
	ASSERT_EQ(0, configure(self->fd, c));
	ASSERT_EQ(0, start(self->fd));
	ping_pong(0, 10);
	ping_pong(1, 10);
	ASSERT_EQ(0, stop(self->fd));
	q = query(self->fd);
	EXPECT_EQ(MAP_FAILED, try_map(self->fd, &q, 0));
	EXPECT_LE(20, judge_cpu(self->fd, 1).records);
	EXPECT_EQ(stats(self->fd, 1).written, stats(self->fd, KBARMAN_CPU_ALL).written);
}

TEST_F(records, switches_on_two_cpus_are_in_their_rings)
{
	struct walk walk;
	const union record *r;
	unsigned int found[2] = { 0, 0 };
	struct echo e;
	uint32_t cpu;

	if (query(self->fd).nr_cpus < 2)
		SKIP(return, "one CPU only");
	ASSERT_EQ(0, configure(self->fd, switches));
	ASSERT_EQ(0, start(self->fd));
	pin(0);
	e = echo_create(1);
	echo_rounds(&e, 200);
	ASSERT_EQ(0, stop(self->fd));
	for (cpu = 0; cpu < 2; cpu++) {
		walk = walk_begin(map_cpu(self->fd, cpu));
		while ((r = walk_next(&walk)))
			found[cpu] += r->task_switch.task_id == e.echo;
	}
	echo_destroy(&e);
	/* It may have been made on CPU 0, and left there once. */
	EXPECT_GE(3, found[0]);
	EXPECT_LE(100, found[1]);
}

/* ---- overwrite mode ---- */

/* Ping-pong on CPU 0 until its ring has gone around; then once more with a new process. */
static pid_t wrap_around(struct __test_metadata *_metadata, int fd)
{
	struct kbarman_configure c = switches;
	pid_t newest;

	c.ring_bytes = 64 * KIB;
	ASSERT_EQ(0, configure(fd, c));
	ASSERT_EQ(0, start(fd));
	while (stats(fd, 0).bytes < 5 * 64 * KIB)
		ping_pong(0, 200);
	newest = ping_pong(0, 1);
	ASSERT_EQ(0, stop(fd));
	return newest;
}

TEST_F(records, overwrite_keeps_the_newest)
{
	const union record *r;
	bool found = false;
	struct walk walk;
	pid_t newest = wrap_around(_metadata, self->fd);

	walk = walk_begin(map_cpu(self->fd, 0));
	while ((r = walk_next(&walk)))
		found |= r->task_switch.task_id == newest;
	EXPECT_TRUE(found);
}

/* Room is made by the page, so no more than that and a block is free. */
TEST_F(records, overwrite_keeps_as_much_as_there_is_room_for)
{
	const struct bm_datastore_header_data *store;

	wrap_around(_metadata, self->fd);
	store = capture_store(map_cpu(self->fd, 0));
	EXPECT_LE(64 * KIB - 4096 - 64, store->write_offset - store->read_offset);
	EXPECT_GE(64 * KIB, store->write_offset - store->read_offset);
}

TEST_F(records, overwrite_starts_with_a_whole_block)
{
	struct judgement j;

	wrap_around(_metadata, self->fd);
	j = judge_cpu(self->fd, 0);
	EXPECT_EQ(NULL, j.fault) TH_LOG("at %llu: %s", (unsigned long long)j.at, j.fault);
	EXPECT_LE(1500, j.records);
}

TEST_F(records, overwritten_and_kept_are_all_that_was_written)
{
	struct kbarman_stats s;

	wrap_around(_metadata, self->fd);
	s = stats(self->fd, 0);
	EXPECT_EQ(s.written, s.overwritten + judge_cpu(self->fd, 0).records);
	EXPECT_LT(0, s.overwritten);
	EXPECT_EQ(0, lost_records(&s));
	EXPECT_EQ(s.bytes, capture_store(map_cpu(self->fd, 0))->total_written);
}

/* The rule that kbarman.h gives for a running ring, on a ring that is overwritten. */
TEST_F(records, snapshots_of_a_running_ring_are_whole_blocks)
{
	const struct bm_datastore_header_data *store;
	struct kbarman_configure c = switches;
	unsigned int taken, tries = 0;
	struct kbarman_query q;
	const uint8_t *data;
	uint64_t *copy;
	pid_t busy;

	if (query(self->fd).nr_cpus < 2)
		SKIP(return, "one CPU only");
	c.ring_bytes = 64 * KIB;
	ASSERT_EQ(0, configure(self->fd, c));
	ASSERT_EQ(0, start(self->fd));
	busy = fork();
	if (!busy) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			ping_pong(1, 1000);
	}
	pin(0);
	while (stats(self->fd, 1).bytes < 2 * 64 * KIB)
		sched_yield();

	q = query(self->fd);
	store = capture_store(map_cpu(self->fd, 1));
	data = (const uint8_t *)(store + 1);
	copy = malloc(q.ring_bytes);
	for (taken = 0; taken < 200 && tries < 100000; tries++) {
		uint64_t w0, r0, r1, at, part, length, from, last = 0;

		w0 = __atomic_load_n(&store->write_offset, __ATOMIC_ACQUIRE);
		r0 = __atomic_load_n(&store->read_offset, __ATOMIC_ACQUIRE);
		if (r0 > w0)
			continue;
		length = w0 - r0;
		from = r0 & (q.ring_bytes - 1);
		part = length < q.ring_bytes - from ? length : q.ring_bytes - from;
		memcpy(copy, data + from, part);
		memcpy((uint8_t *)copy + part, data, length - part);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		r1 = __atomic_load_n(&store->read_offset, __ATOMIC_RELAXED);
		if (r1 > w0)
			continue;
		taken++;
		for (at = (r1 > r0 ? r1 : r0) - r0; at < length; ) {
			bm_uintptr word = *(bm_uintptr *)((uint8_t *)copy + at);
			const union record *r = (void *)((uint8_t *)copy + at + sizeof(word));

			ASSERT_EQ(0, word % sizeof(word));
			at += sizeof(word) + (word & ~BM_BLOCK_PADDING);
			ASSERT_LE(at, length);
			if (word & BM_BLOCK_PADDING)
				continue;
			ASSERT_EQ(BM_RECORD_TASK_SWITCH, r->header.record_type);
			ASSERT_EQ(1, r->header.core);
			ASSERT_LE(last, r->header.timestamp);
			last = r->header.timestamp;
		}
		ASSERT_EQ(length, at);
	}
	EXPECT_EQ(200, taken);
	kill(busy, SIGKILL);
	waitpid(busy, NULL, 0);
}

TEST_F(records, a_new_start_begins_with_empty_rings)
{
	uint64_t begin;
	const union record *r;
	struct walk walk;

	record(_metadata, self->fd, switches, 0);
	ASSERT_EQ(0, start(self->fd));
	begin = clocks(self->fd).start.timestamp;
	ASSERT_EQ(0, stop(self->fd));
	EXPECT_GT(ROUNDS, stats(self->fd, 0).written);
	walk = walk_begin(map_cpu(self->fd, 0));
	EXPECT_EQ(0, walk.at);
	r = walk_next(&walk);
	ASSERT_NE(NULL, r);
	EXPECT_LE(begin, r->header.timestamp);
}

TEST_F(records, nothing_is_written_after_stop)
{
	char *copy;
	const void *map;
	struct kbarman_query q;

	record(_metadata, self->fd, all, 0);
	q = query(self->fd);
	map = map_cpu(self->fd, 0);
	copy = malloc(q.map_bytes);
	memcpy(copy, map, q.map_bytes);
	ping_pong(0, 100);
	EXPECT_EQ(0, memcmp(copy, map, q.map_bytes));
}

TEST_F(records, capture_names_its_host_and_extensions)
{
	struct kbarman_configure c = switches;
	const void *map;

	snprintf(c.target_name, sizeof(c.target_name), "a machine");
	record(_metadata, self->fd, c, 0);
	map = map_cpu(self->fd, 0);
	EXPECT_STREQ("a machine", capture_strings(map) + capture_header(map)->target_name_ptr);
	ASSERT_NE(NULL, capture_fact(map, "ext"));
	EXPECT_STREQ("1", capture_fact(map, "ext"));
	ASSERT_NE(NULL, capture_fact(map, "release"));
	EXPECT_NE(NULL, capture_fact(map, "host"));
}

TEST_HARNESS_MAIN
