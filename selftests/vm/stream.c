// SPDX-License-Identifier: MIT
/* Stream mode: what a reader keeps up with is all there; what it does not is counted. */
#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>

#include "kselftest_harness.h"
#include "lib.h"

#define WRITER_CPU	1
#define READER_CPU	0

FIXTURE(stream)
{
	int fd;
};

/* Switches only, and of one CPU. */
static struct kbarman_configure stream(uint64_t ring_bytes)
{
	static const uint64_t writer_only = 1 << WRITER_CPU;

	return (struct kbarman_configure) {
		.mode = KBARMAN_MODE_STREAM, .sources = KBARMAN_SOURCE_SCHED,
		.ring_bytes = ring_bytes, .cpus_ptr = (uintptr_t)&writer_only, .nr_cpu_words = 1 };
}

FIXTURE_SETUP(stream)
{
	self->fd = device_open_free();
	if (query(self->fd).nr_cpus < 2)
		SKIP(skip_test(), "one CPU only");
	pin(READER_CPU);
}

FIXTURE_TEARDOWN(stream)
{
	close(self->fd);
}

/* A process that ping-pongs @rounds on the writer's CPU, or for ever with 0. */
static pid_t writer_create(unsigned int rounds)
{
	pid_t writer = fork();

	if (writer < 0)
		lost("no process");
	if (!writer) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		do
			ping_pong(WRITER_CPU, rounds ? rounds : 1000);
		while (!rounds);
		_exit(0);
	}
	return writer;
}

static void writer_kill(pid_t writer)
{
	kill(writer, SIGKILL);
	waitpid(writer, NULL, 0);
}

/* What a consuming reader has seen. */
struct seen {
	uint64_t records, switches, losses, bookmarks, last;
	const char *fault;
};

/* Read all that is there, then give it back. */
static void drain(int fd, const void *map, struct seen *seen)
{
	struct walk walk = walk_begin(map);
	const union record *r;

	while ((r = walk_next(&walk))) {
		if (!seen->fault)
			seen->fault = judge_record(map, WRITER_CPU, r, walk.length);
		if (r->header.timestamp < seen->last)
			seen->fault = "time goes back";
		seen->last = r->header.timestamp;
		seen->records++;
		seen->switches += r->header.record_type == BM_RECORD_TASK_SWITCH;
		seen->losses += losses_told(r);
		seen->bookmarks += r->header.record_type == BM_RECORD_ANNOTATION;
	}
	if (walk.damage && !seen->fault)
		seen->fault = walk.damage;
	if (consume(fd, WRITER_CPU, walk.at) && !seen->fault)
		seen->fault = "consume was refused";
}

/* Some ten times what the ring holds, as fast as two processes can switch. */
#define SWITCHES	SLOWED(160000)
#define RING		((SLOWNESS > 1 ? 128 : 512) * KIB)


TEST_F_TIMEOUT(stream, a_consuming_reader_loses_nothing, 300 * SLOWNESS)
{
	struct seen seen = { 0 };
	struct kbarman_stats s;
	const void *map;
	pid_t writer;

	ASSERT_EQ(0, configure(self->fd, stream(RING)));
	map = map_cpu(self->fd, WRITER_CPU);
	ASSERT_EQ(0, start(self->fd));
	writer = writer_create(SWITCHES / 2);
	while (!waitpid(writer, NULL, WNOHANG)) {
		struct pollfd p = { .fd = self->fd, .events = POLLIN };

		poll(&p, 1, 50);
		drain(self->fd, map, &seen);
	}
	ASSERT_EQ(0, stop(self->fd));
	drain(self->fd, map, &seen);
	s = stats(self->fd, WRITER_CPU);
	EXPECT_EQ(NULL, seen.fault) TH_LOG("%s", seen.fault);
	EXPECT_EQ(0, lost_records(&s));
	EXPECT_EQ(s.written, seen.records);
	EXPECT_LE(SWITCHES, seen.switches);
	EXPECT_EQ(0, seen.losses);
}

/* ---- rows of a stream that goes on for ever ---- */

#define FEW_TASKS	512		/* rows */
#define MANY_TASKS	SLOWED(6000)	/* that come and go */

/* Whether the task that @r switches to has a row from before then. */
static bool has_row(const void *map, const union record *r)
{
	const struct bm_protocol_header_task_info *rows = capture_tasks(map);
	uint32_t i;

	for (i = 0; i < *capture_task_count(map); i++)
		if (rows[i].task_id == r->task_switch.task_id &&
		    rows[i].timestamp <= r->header.timestamp)
			return true;
	return false;
}

/* How many switches are to a task without a row; all that is there is given back. */
static unsigned int drain_nameless(int fd, const void *map)
{
	struct walk walk = walk_begin(map);
	unsigned int nameless = 0;
	const union record *r;

	while ((r = walk_next(&walk)))
		if (r->header.record_type == BM_RECORD_TASK_SWITCH)
			nameless += !has_row(map, r);
	consume(fd, WRITER_CPU, walk.at);
	return nameless;
}

/* Tasks that come and go, one behind the other, while a reader reads. */
static unsigned int many_tasks(int fd, const void *map)
{
	unsigned int nameless = 0, i;
	pid_t child;

	for (i = 0; i < MANY_TASKS; i++) {
		child = fork();
		if (!child) {
			pin(WRITER_CPU);
			_exit(0);
		}
		waitpid(child, NULL, 0);
		if (i % 16 == 0)
			nameless += drain_nameless(fd, map);
	}
	return nameless + drain_nameless(fd, map);
}

TEST_F_TIMEOUT(stream, a_reader_that_asks_for_it_has_rows_for_ever, 300 * SLOWNESS)
{
	struct kbarman_configure c = stream(RING);
	const void *map;

	c.max_tasks = FEW_TASKS;
	c.flags = KBARMAN_CONFIGURE_REUSE;
	ASSERT_EQ(0, configure(self->fd, c));
	map = map_cpu(self->fd, WRITER_CPU);
	ASSERT_EQ(0, start(self->fd));
	EXPECT_EQ(0, many_tasks(self->fd, map));
	EXPECT_NE(0, query(self->fd).generation);
	EXPECT_EQ(0, stats(self->fd, KBARMAN_CPU_ALL).missed[KBARMAN_MISSED_TASK]);
	EXPECT_EQ(0, stats(self->fd, WRITER_CPU).overwritten);
	ASSERT_EQ(0, stop(self->fd));
}

TEST_F(stream, records_that_are_not_read_keep_their_rows)
{
	struct kbarman_configure c = stream(2 * MIB);	/* room for all: a lost record needs no row */
	unsigned int nameless = 0, i;
	struct kbarman_stats s;
	const void *map;
	pid_t child;

	c.max_tasks = FEW_TASKS;
	c.flags = KBARMAN_CONFIGURE_REUSE;
	ASSERT_EQ(0, configure(self->fd, c));
	map = map_cpu(self->fd, WRITER_CPU);
	ASSERT_EQ(0, start(self->fd));
	for (i = 0; i < 2 * FEW_TASKS; i++) {
		child = fork();
		if (!child) {
			pin(WRITER_CPU);
			_exit(0);
		}
		waitpid(child, NULL, 0);
	}
	ASSERT_EQ(0, stop(self->fd));
	s = stats(self->fd, KBARMAN_CPU_ALL);
	EXPECT_LT(0, s.missed[KBARMAN_MISSED_TASK]);
	EXPECT_EQ(0, s.overwritten);
	nameless = drain_nameless(self->fd, map);
	/* each of those that found no row was switched to a few times */
	EXPECT_LT(nameless, 8 * s.missed[KBARMAN_MISSED_TASK]);
}

TEST_F(stream, rows_of_overwrite_mode_need_not_be_asked_for)
{
	struct kbarman_configure c = stream(RING);

	c.mode = KBARMAN_MODE_OVERWRITE;
	c.flags = KBARMAN_CONFIGURE_REUSE;
	EXPECT_EQ(-EINVAL, configure(self->fd, c));
}

/* ---- a reader that stops ---- */

/* Fill the ring until at least @losses records are lost. */
static void overfill(int fd, uint64_t losses)
{
	pid_t writer = writer_create(0);

	while (stats(fd, WRITER_CPU).lost[KBARMAN_LOST_FULL] < losses)
		usleep(1000);
	writer_kill(writer);
}

TEST_F(stream, a_full_ring_keeps_the_oldest)
{
	const union record *r;
	struct judgement j;
	struct walk walk;
	uint64_t begun;

	ASSERT_EQ(0, configure(self->fd, stream(64 * KIB)));
	ASSERT_EQ(0, start(self->fd));
	begun = clocks(self->fd).start.timestamp;
	overfill(self->fd, 1000);
	ASSERT_EQ(0, stop(self->fd));
	walk = walk_begin(map_cpu(self->fd, WRITER_CPU));
	EXPECT_EQ(0, walk.at);
	r = walk_next(&walk);
	ASSERT_NE(NULL, r);
	EXPECT_LE(begun, r->header.timestamp);
	j = judge_cpu(self->fd, WRITER_CPU);
	EXPECT_EQ(NULL, j.fault) TH_LOG("%s", j.fault);
	EXPECT_EQ(stats(self->fd, WRITER_CPU).written, j.records);
	EXPECT_EQ(0, stats(self->fd, WRITER_CPU).overwritten);
	EXPECT_LE(64 * KIB / 32 - 2, j.records);
}

/* Switches written and lost are those that the kernel counted itself. */
TEST_F(stream, every_switch_is_written_or_counted_as_lost)
{
	uint64_t outer, inner, attempts;
	int counter = switch_counter(WRITER_CPU);
	struct seen seen = { 0 };
	struct kbarman_stats s;
	const void *map;

	ASSERT_EQ(0, configure(self->fd, stream(64 * KIB)));
	map = map_cpu(self->fd, WRITER_CPU);
	outer = counter_now(counter);
	ASSERT_EQ(0, start(self->fd));
	inner = counter_now(counter);
	overfill(self->fd, 5000);
	inner = counter_now(counter) - inner;
	ASSERT_EQ(0, stop(self->fd));
	outer = counter_now(counter) - outer;
	drain(self->fd, map, &seen);
	s = stats(self->fd, WRITER_CPU);
	ASSERT_EQ(NULL, seen.fault);
	ASSERT_EQ(0, seen.losses);
	/* One of them says who ran as recording began, and was no switch. */
	attempts = seen.switches + lost_records(&s) - 1;
	EXPECT_LE(inner, attempts);
	EXPECT_LE(attempts, outer);
	EXPECT_LE(5000, lost_records(&s));
	EXPECT_EQ(lost_records(&s), s.lost[KBARMAN_LOST_FULL]);
}

/* Losses stand in the stream, as values of the series "Lost records". */
TEST_F(stream, losses_in_the_stream_are_those_in_the_stats)
{
	struct seen seen = { 0 };
	struct kbarman_stats s;
	const void *map;
	int i;

	ASSERT_EQ(0, configure(self->fd, stream(64 * KIB)));
	map = map_cpu(self->fd, WRITER_CPU);
	ASSERT_EQ(0, start(self->fd));
	for (i = 0; i < 5; i++) {
		overfill(self->fd, (i + 1) * 3000);
		drain(self->fd, map, &seen);
	}
	/* The CPU goes on, with room now: it has to tell of the last losses. */
	writer_kill(writer_create(0));
	waitpid(writer_create(100), NULL, 0);
	ASSERT_EQ(0, stop(self->fd));
	drain(self->fd, map, &seen);
	s = stats(self->fd, WRITER_CPU);
	EXPECT_EQ(NULL, seen.fault) TH_LOG("%s", seen.fault);
	EXPECT_LE(15000, lost_records(&s));
	EXPECT_EQ(lost_records(&s), seen.losses);
	EXPECT_LE(5, seen.bookmarks);
}

/* The gap begins when the ring was full: behind its last record, and not when there was room again. */
TEST_F(stream, a_gap_says_why_and_since_when)
{
	const union record *r;
	struct walk walk;
	const void *map;
	uint64_t newest = 0, full, drained;
	int gaps = 0;

	ASSERT_EQ(0, configure(self->fd, stream(64 * KIB)));
	map = map_cpu(self->fd, WRITER_CPU);
	ASSERT_EQ(0, start(self->fd));
	overfill(self->fd, 1000);
	full = clocks(self->fd).now.timestamp;
	usleep(200000);
	walk = walk_begin(map);
	while ((r = walk_next(&walk)))
		newest = r->header.timestamp;
	drained = clocks(self->fd).now.timestamp;
	ASSERT_EQ(0, consume(self->fd, WRITER_CPU, walk.at));
	waitpid(writer_create(100), NULL, 0);
	ASSERT_EQ(0, stop(self->fd));
	walk = walk_begin(map);
	while ((r = walk_next(&walk))) {
		if (!losses_told(r))
			continue;
		EXPECT_EQ(KBARMAN_LOST_FULL, loss_of(r)->detail.id);
		EXPECT_LE(newest, loss_of(r)->begin);
		EXPECT_LE(loss_of(r)->begin, full);
		EXPECT_LE(drained, r->header.timestamp);
		gaps++;
	}
	EXPECT_EQ(1, gaps);
	EXPECT_EQ(NULL, judge_cpu(self->fd, WRITER_CPU).fault);
}

TEST_F(stream, written_is_consumed_and_in_the_ring)
{
	struct seen seen = { 0 };
	struct kbarman_stats s;
	const void *map;
	int i;

	ASSERT_EQ(0, configure(self->fd, stream(64 * KIB)));
	map = map_cpu(self->fd, WRITER_CPU);
	ASSERT_EQ(0, start(self->fd));
	for (i = 0; i < 3; i++) {
		overfill(self->fd, (i + 1) * 500);
		drain(self->fd, map, &seen);
	}
	waitpid(writer_create(200), NULL, 0);
	ASSERT_EQ(0, stop(self->fd));
	s = stats(self->fd, WRITER_CPU);
	EXPECT_EQ(s.written, seen.records + judge_cpu(self->fd, WRITER_CPU).records);
	EXPECT_EQ(0, s.overwritten);
}

/* ---- consume ---- */

TEST_F(stream, consume_gives_space_back)
{
	const struct bm_datastore_header_data *store;
	struct walk walk;

	ASSERT_EQ(0, configure(self->fd, stream(64 * KIB)));
	ASSERT_EQ(0, start(self->fd));
	waitpid(writer_create(100), NULL, 0);
	ASSERT_EQ(0, stop(self->fd));
	store = capture_store(map_cpu(self->fd, WRITER_CPU));
	walk = walk_begin(map_cpu(self->fd, WRITER_CPU));
	while (walk_next(&walk)) {
		ASSERT_EQ(0, consume(self->fd, WRITER_CPU, walk.at));
		ASSERT_EQ(walk.at, store->read_offset);
	}
	/* The stop may have left a block without a record. */
	ASSERT_EQ(0, consume(self->fd, WRITER_CPU, walk.at));
	EXPECT_EQ(store->write_offset, store->read_offset);
}

TEST_F(stream, consume_refuses_what_is_no_block_boundary)
{
	const struct bm_datastore_header_data *store;
	struct walk walk;
	uint64_t second;

	ASSERT_EQ(0, configure(self->fd, stream(64 * KIB)));
	ASSERT_EQ(0, start(self->fd));
	waitpid(writer_create(10), NULL, 0);
	ASSERT_EQ(0, stop(self->fd));
	store = capture_store(map_cpu(self->fd, WRITER_CPU));
	walk = walk_begin(map_cpu(self->fd, WRITER_CPU));
	walk_next(&walk);
	walk_next(&walk);
	second = walk.at;
	EXPECT_EQ(-EINVAL, consume(self->fd, WRITER_CPU, 1));
	EXPECT_EQ(-EINVAL, consume(self->fd, WRITER_CPU, second - 8));
	EXPECT_EQ(-EINVAL, consume(self->fd, WRITER_CPU, second + 4));
	EXPECT_EQ(-EINVAL, consume(self->fd, WRITER_CPU, store->write_offset + 32));
	EXPECT_EQ(-EINVAL, consume(self->fd, WRITER_CPU, store->write_offset - 16));
	EXPECT_EQ(-EINVAL, consume(self->fd, WRITER_CPU, ~0ULL));
	EXPECT_EQ(-EINVAL, consume(self->fd, WRITER_CPU, second + (1ULL << 32)));
	EXPECT_EQ(0, store->read_offset);
	EXPECT_EQ(0, consume(self->fd, WRITER_CPU, second));
	/* And there is no way back. */
	EXPECT_EQ(-EINVAL, consume(self->fd, WRITER_CPU, 0));
	EXPECT_EQ(second, store->read_offset);
}

TEST_F(stream, consume_refuses_overwrite_mode)
{
	struct kbarman_configure c = stream(64 * KIB);

	c.mode = KBARMAN_MODE_OVERWRITE;
	ASSERT_EQ(0, configure(self->fd, c));
	EXPECT_EQ(-EINVAL, consume(self->fd, WRITER_CPU, 0));
	ASSERT_EQ(0, start(self->fd));
	EXPECT_EQ(-EINVAL, consume(self->fd, WRITER_CPU, 0));
}

/* ---- poll ---- */

static short poll_now(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) > 0 ? p.revents : 0;
}

TEST_F(stream, poll_hangs_up_while_nothing_runs)
{
	EXPECT_EQ(POLLIN | POLLHUP, poll_now(self->fd));
	ASSERT_EQ(0, configure(self->fd, stream(64 * KIB)));
	EXPECT_EQ(POLLIN | POLLHUP, poll_now(self->fd));
	ASSERT_EQ(0, start(self->fd));
	EXPECT_EQ(0, poll_now(self->fd) & POLLHUP);
	ASSERT_EQ(0, stop(self->fd));
	EXPECT_EQ(POLLIN | POLLHUP, poll_now(self->fd));
}

TEST_F(stream, poll_reports_the_watermark_and_not_less)
{
	struct kbarman_configure c = stream(1 * MIB);
	struct seen seen = { 0 };
	const void *map;

	c.watermark = 512 * KIB;
	ASSERT_EQ(0, configure(self->fd, c));
	map = map_cpu(self->fd, WRITER_CPU);
	ASSERT_EQ(0, start(self->fd));
	EXPECT_EQ(0, poll_now(self->fd));
	while (stats(self->fd, WRITER_CPU).bytes < 512 * KIB)
		waitpid(writer_create(1000), NULL, 0);
	EXPECT_EQ(POLLIN, poll_now(self->fd));
	drain(self->fd, map, &seen);
	EXPECT_EQ(0, poll_now(self->fd));
}

/* Whose longest block finds no room any more. */
TEST_F(stream, poll_reports_a_full_ring_whatever_the_watermark)
{
	struct kbarman_configure c = stream(256 * KIB);

	c.watermark = 256 * KIB;
	ASSERT_EQ(0, configure(self->fd, c));
	ASSERT_EQ(0, start(self->fd));
	do {
		struct kbarman_stats s = stats(self->fd, WRITER_CPU);

		if (lost_records(&s))
			break;
		waitpid(writer_create(1000), NULL, 0);
	} while (true);
	EXPECT_EQ(POLLIN, poll_now(self->fd));
	ASSERT_EQ(0, stop(self->fd));
	c.watermark++;
	EXPECT_EQ(-EINVAL, configure(self->fd, c));
}

static void *poll_for_ever(void *argument)
{
	struct pollfd p = { .fd = *(int *)argument, .events = POLLIN };

	poll(&p, 1, -1);
	return (void *)(long)p.revents;
}

/* Wait until the thread sleeps, so that it is the wake-up which is tested. */
static void wait_until_asleep(pid_t task)
{
	char path[64], state = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", task);
	while (state != 'S') {
		FILE *f = fopen(path, "r");

		if (!f || fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
			lost("%s can't be read", path);
		fclose(f);
		usleep(1000);
	}
}

static pid_t poller_id(void)
{
	/* The newest thread of two. */
	char path[64];
	pid_t id = getpid();

	do
		snprintf(path, sizeof(path), "/proc/self/task/%d", ++id);
	while (access(path, F_OK));
	return id;
}

/* A thread that runs @poll with the descriptor @fd, and sleeps there. */
static pthread_t start_poller(void *(*poll)(void *), int *fd)
{
	pthread_t poller;

	if (pthread_create(&poller, NULL, poll, fd))
		lost("no thread");
	wait_until_asleep(poller_id());
	return poller;
}

TEST_F(stream, poll_wakes_at_the_watermark)
{
	struct kbarman_configure c = stream(256 * KIB);
	pthread_t poller;
	void *events;

	c.watermark = 16 * KIB;
	ASSERT_EQ(0, configure(self->fd, c));
	ASSERT_EQ(0, start(self->fd));
	poller = start_poller(poll_for_ever, &self->fd);
	/* A test of the ring's fill is made once a page. */
	while (stats(self->fd, WRITER_CPU).bytes < 16 * KIB + 4096)
		waitpid(writer_create(100), NULL, 0);
	ASSERT_EQ(0, pthread_join(poller, &events));
	EXPECT_EQ(POLLIN, (long)events);
}

static void *count_sleeps(void *argument)
{
	struct rusage before, after;

	getrusage(RUSAGE_THREAD, &before);
	poll_for_ever(argument);
	getrusage(RUSAGE_THREAD, &after);
	return (void *)(after.ru_nvcsw - before.ru_nvcsw);
}

TEST_F(stream, poll_sleeps_until_the_watermark)
{
	struct kbarman_configure c = stream(1 * MIB);
	pthread_t poller;
	void *sleeps;

	c.watermark = 512 * KIB;
	ASSERT_EQ(0, configure(self->fd, c));
	ASSERT_EQ(0, start(self->fd));
	poller = start_poller(count_sleeps, &self->fd);
	while (stats(self->fd, WRITER_CPU).bytes < 512 * KIB + 4096)
		waitpid(writer_create(1000), NULL, 0);
	ASSERT_EQ(0, pthread_join(poller, &sleeps));
	/* Once, and again because it is never too late; and for what other CPUs wrote. */
	EXPECT_LE((long)sleeps, 16);
}

/* ---- who wakes ---- */

#define TRACING		"/sys/kernel/tracing/"
#define WAKEUPS		50

/* Polls and reads, and says if it was woken too early. */
struct follower {
	int fd;
	const void *map;
	uint64_t watermark;
	volatile pid_t id;
	volatile unsigned int wakeups;
	struct seen seen;
	bool early;
};

static void *follow(void *argument)
{
	struct follower *f = argument;
	struct pollfd p = { .fd = f->fd, .events = POLLIN };
	const struct bm_datastore_header_data *store = capture_store(f->map);

	f->id = thread_id();
	while (poll(&p, 1, -1) == 1 && !(p.revents & POLLHUP)) {
		/* Nobody else reads, so that it only grows. */
		f->early |= store->write_offset - store->read_offset < f->watermark;
		drain(f->fd, f->map, &f->seen);
		f->wakeups++;
	}
	return NULL;
}

/*
 * The next stack of the trace: its functions of the kernel and of the module, innermost
 * first, in @frames, one after the other, each with a newline. False at the end.
 */
static bool next_stack(FILE *trace, char *frames, size_t size)
{
	char line[512];
	size_t used = 0;

	while (fgets(line, sizeof(line), trace)) {
		if (!strncmp(line, " => ", 4)) {
			used += snprintf(frames + used, size - used, "%s", line + 4);
			if (used >= size)
				lost("a stack is too deep");
		} else if (used) {
			return true;
		}
	}
	return used;
}

/*
 * Who it was that woke those who poll: irq_work, in an interrupt that may have come in on
 * anything, a probe of ours too. What it called may have been left by a jump.
 */
static bool woken_by_irq_work(const char *frame)
{
	while (!strncmp(frame, "__wake_up", 9) || !strncmp(frame, "wake_pollers", 12))
		frame = strchr(frame, '\n') + 1;
	return !strncmp(frame, "irq_work_", 9);
}

/* The kernel says from where: a stack for each wake-up of the poller. */
/* Who woke the poller, by the stacks of the trace. */
static void count_wakers(struct __test_metadata *_metadata, unsigned int *by_irq_work, unsigned int *by_others)
{
	FILE *trace = fopen(TRACING "trace", "r");
	char frames[8192];

	ASSERT_NE(NULL, trace);
	while (next_stack(trace, frames, sizeof(frames))) {
		const char *poll = strstr(frames, "pollwake\n");

		/* s390x's stacks begin further up, at who called it. */
		if (poll)
			poll = strchr(poll, '\n') + 1;
		else if (!strncmp(frames, "__wake_up", 9))
			poll = frames;
		else
			continue;	/* it waited for a lock */
		if (woken_by_irq_work(poll))
			++*by_irq_work;
		else if (!(*by_others)++)
			TH_LOG("woken by:\n%s", frames);
	}
	fclose(trace);
}

/* Now and then there is enough again before the poller sleeps, and now and then the trace has no stack. */
TEST_F(stream, poll_is_woken_by_irq_work_and_not_below_the_watermark)
{
	struct kbarman_configure c = stream(256 * KIB);
	struct follower f = { .fd = self->fd, .watermark = 16 * KIB };
	unsigned int by_irq_work = 0, by_others = 0, wanted = 0;
	char trigger[64];
	pthread_t poller;

	c.watermark = f.watermark;
	ASSERT_EQ(0, configure(self->fd, c));
	f.map = map_cpu(self->fd, WRITER_CPU);
	ASSERT_EQ(0, start(self->fd));
	ASSERT_EQ(0, pthread_create(&poller, NULL, follow, &f));
	while (!f.id)
		usleep(1000);
	while (!by_others && by_irq_work < WAKEUPS / 5) {
		wanted += WAKEUPS;
		snprintf(trigger, sizeof(trigger), "stacktrace if pid == %d", f.id);
		write_file(TRACING "trace", "\n");
		write_file(TRACING "events/sched/sched_waking/trigger", trigger);
		while (f.wakeups < wanted) {
			wait_until_asleep(f.id);
			waitpid(writer_create(100), NULL, 0);
		}
		snprintf(trigger, sizeof(trigger), "!stacktrace if pid == %d", f.id);
		write_file(TRACING "events/sched/sched_waking/trigger", trigger);
		count_wakers(_metadata, &by_irq_work, &by_others);
	}
	ASSERT_EQ(0, stop(self->fd));
	ASSERT_EQ(0, pthread_join(poller, NULL));
	EXPECT_EQ(0, by_others);
	EXPECT_EQ(false, f.early);
	EXPECT_EQ(NULL, f.seen.fault) TH_LOG("%s", f.seen.fault);
}

TEST_F(stream, poll_wakes_at_stop)
{
	pthread_t poller;
	void *events;

	ASSERT_EQ(0, configure(self->fd, stream(256 * KIB)));
	ASSERT_EQ(0, start(self->fd));
	ASSERT_EQ(0, pthread_create(&poller, NULL, poll_for_ever, &self->fd));
	wait_until_asleep(poller_id());
	ASSERT_EQ(0, stop(self->fd));
	ASSERT_EQ(0, pthread_join(poller, &events));
	EXPECT_EQ(POLLIN | POLLHUP, (long)events);
}

TEST_F(stream, poll_wakes_a_bystander_when_the_owner_closes)
{
	int bystander = device_open();
	pthread_t poller;
	void *events;

	ASSERT_EQ(0, configure(self->fd, stream(256 * KIB)));
	ASSERT_EQ(0, start(self->fd));
	ASSERT_EQ(0, pthread_create(&poller, NULL, poll_for_ever, &bystander));
	wait_until_asleep(poller_id());
	close(self->fd);
	ASSERT_EQ(0, pthread_join(poller, &events));
	EXPECT_EQ(POLLIN | POLLHUP, (long)events);
	self->fd = bystander;
}

TEST_HARNESS_MAIN
