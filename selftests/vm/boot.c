// SPDX-License-Identifier: MIT
/*
 * A session that begins with the module (parameter `boot`), before any program has the device open,
 * and is taken over later.
 */
#include "kselftest_harness.h"

#include "sessions.h"

/* A process of an earlier test may still hold its descriptor for a moment. */
static void unload(void)
{
	while (!access(KBARMAN_DEVICE, F_OK) && module_unload())
		usleep(1000);
}

static int adopt(int fd, uint64_t session)
{
	struct kbarman_adopt a = { .size = sizeof(a), .session = session };

	return call(fd, KBARMAN_ADOPT, &a);
}

/* The module stays as long as its maps. */
static void unmap(int fd, const void *map)
{
	munmap((void *)map, query(fd).map_bytes);
}

static struct kbarman_session_info only_session(int fd)
{
	struct kbarman_session_info info[2];
	struct kbarman_sessions s = { .size = sizeof(s), .count = 2, .info_bytes = sizeof(info[0]),
				      .sessions_ptr = (uintptr_t)info };

	if (call(fd, KBARMAN_SESSIONS, &s) || s.count != 1)
		lost("%u sessions", s.count);
	return info[0];
}

FIXTURE(boot)
{
	int fd;
};

FIXTURE_SETUP(boot)
{
	self->fd = -1;
	unload();
	pin(0);
}

FIXTURE_TEARDOWN(boot)
{
	close(self->fd);
	unload();
	if (module_load())
		lost("the module does not load");
}

TEST_F(boot, what_ran_before_any_program_could_ask_is_recorded)
{
	uint64_t before = clock_ns(CLOCK_REALTIME), loaded;
	struct kbarman_session_info info;
	struct kbarman_query q;
	struct kbarman_stats s;

	ASSERT_EQ(0, module_load_with("boot=usual,wake ring_bytes=4194304"));
	loaded = clock_ns(CLOCK_REALTIME);
	ping_pong(0, ROUNDS);
	self->fd = device_open();
	info = only_session(self->fd);
	EXPECT_EQ(KBARMAN_STATE_CONFIGURED | KBARMAN_STATE_RUNNING, info.state);
	EXPECT_EQ(KBARMAN_MODE_STREAM, info.mode);
	EXPECT_EQ(KBARMAN_SOURCE_SCHED | KBARMAN_SOURCE_IDLE | KBARMAN_SOURCE_MAPS |
		  KBARMAN_SOURCE_MARKS | KBARMAN_SOURCE_WAKE, info.sources);
	EXPECT_EQ(4 * MIB, info.ring_bytes);
	EXPECT_EQ(0, info.pid);
	EXPECT_LE(before, info.started_ns + 1000000);
	EXPECT_GE(loaded + 1000000, info.started_ns);
	EXPECT_EQ(-EPERM, stop(self->fd));

	ASSERT_EQ(0, adopt(self->fd, info.session));
	q = query(self->fd);
	EXPECT_EQ(info.session, q.session);
	EXPECT_EQ(KBARMAN_STATE_CONFIGURED | KBARMAN_STATE_RUNNING | KBARMAN_STATE_OWNED |
		  KBARMAN_STATE_MINE, q.state);
	EXPECT_EQ(getpid(), only_session(self->fd).pid);
	ASSERT_EQ(0, stop(self->fd));
	EXPECT_LE(2 * ROUNDS, judge_cpu(self->fd, 0).by_type[BM_RECORD_TASK_SWITCH]);
	EXPECT_EQ(NULL, audit(self->fd));
	s = stats(self->fd, KBARMAN_CPU_ALL);
	EXPECT_EQ(0, lost_records(&s));
	/* From now on it is a session as any other. */
	ASSERT_EQ(0, start(self->fd));
	ASSERT_EQ(0, stop(self->fd));
	ASSERT_EQ(0, configure(self->fd, small(KBARMAN_MODE_OVERWRITE)));
}

TEST_F(boot, it_is_a_stream_that_its_adopter_reads)
{
	const struct bm_datastore_header_data *store;
	struct kbarman_stats s;
	const void *map;

	ASSERT_EQ(0, module_load_with("boot=sched ring_bytes=4096"));
	ping_pong(0, 10 * ROUNDS);
	self->fd = device_open();
	ASSERT_EQ(0, adopt(self->fd, 0));
	s = stats(self->fd, 0);
	EXPECT_LT(0, s.lost[KBARMAN_LOST_FULL]);
	map = map_cpu(self->fd, 0);
	store = capture_store(map);
	EXPECT_EQ(0, store->read_offset);
	ASSERT_EQ(0, consume(self->fd, 0, store->write_offset));
	ping_pong(0, 10);
	ASSERT_EQ(0, stop(self->fd));
	EXPECT_LT(s.written, stats(self->fd, 0).written);
	unmap(self->fd, map);
}

TEST_F(boot, the_newest_records_are_kept_if_that_is_asked_for)
{
	pid_t last;

	ASSERT_EQ(0, module_load_with("boot=sched,maps boot_overwrite=1 ring_bytes=4096"));
	ping_pong(0, 10 * ROUNDS);
	last = ping_pong(0, 10);
	self->fd = device_open();
	EXPECT_EQ(KBARMAN_MODE_OVERWRITE, query(self->fd).mode);
	EXPECT_EQ(-EPERM, stop(self->fd));
	ASSERT_EQ(0, adopt(self->fd, 0));
	ASSERT_EQ(0, stop(self->fd));
	EXPECT_LT(0, stats(self->fd, 0).overwritten);
	EXPECT_LT(0, switches_to(self->fd, 0, last));
}

static unsigned int count_samples(const void *map, unsigned int *chains)
{
	struct walk walk = walk_begin(map);
	unsigned int samples = 0;
	const union record *r;

	*chains = 0;
	while ((r = walk_next(&walk)))
		if (r->header.record_type == BM_RECORD_SAMPLE_WITH_PC) {
			samples++;
			*chains += walk_chain(&walk, r) != NULL;
		}
	return samples;
}

TEST_F(boot, it_takes_samples_with_chains)
{
	unsigned int chains;
	const void *map;

	ASSERT_EQ(0, module_load_with("boot=usual,chains boot_hz=500 ring_bytes=4194304"));
	self->fd = device_open();
	ASSERT_EQ(0, adopt(self->fd, 0));
	EXPECT_EQ(2, query(self->fd).nr_events);	/* cycles, or cpu-clock */
	map = map_cpu(self->fd, 0);
	pin(0);
	while (count_samples(map, &chains) <= 10)
		;
	ASSERT_EQ(0, stop(self->fd));
	if (query(self->fd).features & (KBARMAN_FEATURE_CHAIN_USER | KBARMAN_FEATURE_CHAIN_KERNEL))
		EXPECT_LT(0, chains);
	unmap(self->fd, map);
}

TEST_F(boot, one_descriptor_gets_it)
{
	struct kbarman_adopt a = { .size = sizeof(a) };
	int other;

	ASSERT_EQ(0, module_load_with("boot=sched"));
	self->fd = device_open();
	other = begin(small(KBARMAN_MODE_STREAM));
	EXPECT_EQ(-EBUSY, adopt(other, 0));
	EXPECT_EQ(-ENOENT, adopt(self->fd, query(other).session));
	a.flags = 1;
	EXPECT_EQ(-EINVAL, call(self->fd, KBARMAN_ADOPT, &a));
	a.flags = 0;
	a.size--;
	EXPECT_EQ(-EINVAL, call(self->fd, KBARMAN_ADOPT, &a));
	EXPECT_EQ(-EFAULT, call(self->fd, KBARMAN_ADOPT, NULL));
	close(other);

	EXPECT_EQ(0, adopt(self->fd, 0));
	other = device_open();
	EXPECT_EQ(-ENOENT, adopt(other, 0));
	EXPECT_TRUE(runs(other));
	/* Its owner goes, and it ends as any other. */
	close(self->fd);
	self->fd = other;
	EXPECT_FALSE(runs(other));
	EXPECT_EQ(-ENOENT, adopt(other, 0));
}

/* Without CAP_SYSLOG. */
static int is_refused(void)
{
	int fd;

	keep_only(CAPABILITY(CAP_PERFMON) | CAPABILITY(CAP_DAC_OVERRIDE));
	fd = device_open();
	return adopt(fd, 0) == -EPERM ? 0 : 1;
}

TEST_F(boot, who_may_not_see_kernel_addresses_does_not_get_it)
{
	int status;
	pid_t child;

	ASSERT_EQ(0, module_load_with("boot=usual,chains boot_hz=100"));
	child = fork();
	if (!child)
		_exit(is_refused());
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
	self->fd = device_open();
	EXPECT_TRUE(runs(self->fd));
	EXPECT_EQ(0, adopt(self->fd, 0));
}

/* Not every kernel tells of frequencies, for instance. */
TEST_F(boot, what_the_kernel_can_not_give_is_left_out)
{
	struct kbarman_query q;

	ASSERT_EQ(0, module_load_with("boot=usual,latency,syscalls,faults,block"));
	self->fd = device_open();
	q = query(self->fd);
	EXPECT_TRUE(runs(self->fd));
	EXPECT_EQ(KBARMAN_SOURCE_ALL & ~KBARMAN_SOURCE_PMU & ~q.absent, q.sources);
}

/* Without samples, too. */
TEST_F(boot, it_can_say_what_tasks_wait_for)
{
	const void *map;

	ASSERT_EQ(0, module_load_with("boot=sched,objects ring_bytes=4096"));
	self->fd = device_open();
	if (!(query(self->fd).features & KBARMAN_FEATURE_OBJECTS))
		SKIP(return, "this kernel can't give objects");
	ASSERT_EQ(0, adopt(self->fd, 0));
	ASSERT_EQ(0, stop(self->fd));
	map = map_cpu(self->fd, 0);
	EXPECT_STREQ("1", capture_fact(map, "objects"));
	unmap(self->fd, map);
}

TEST_F(boot, if_nobody_wants_it_it_ends_with_the_module)
{
	ASSERT_EQ(0, module_load_with("boot=usual,latency boot_hz=100"));
	ping_pong(0, ROUNDS);
	ASSERT_EQ(0, module_unload());
	ASSERT_EQ(0, module_load_with("boot=sched"));
	self->fd = device_open();
	EXPECT_EQ(KBARMAN_SOURCE_SCHED, only_session(self->fd).sources);
}

/* What others record and look at is not disturbed: all places are taken but that one. */
TEST_F(boot, it_keeps_its_place)
{
	int fd[MOST], i, late;

	ASSERT_EQ(0, module_load_with("boot=sched"));
	for (i = 0; i < MOST - 1; i++)
		fd[i] = begin(small(KBARMAN_MODE_STREAM));
	late = device_open();
	EXPECT_EQ(-EBUSY, configure(late, small(KBARMAN_MODE_STREAM)));
	EXPECT_EQ(0, adopt(late, 0));
	EXPECT_TRUE(runs(late));
	while (i--)
		close(fd[i]);
	self->fd = late;
}

TEST_F(boot, a_wrong_parameter_is_refused)
{
	static const char *const wrong[] = {
		"boot=sched,scheduler", "boot=sched,", "boot=,", "boot=all", "boot=usual,chains",
	};
	unsigned int i;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		EXPECT_EQ(-EINVAL, module_load_with(wrong[i])) TH_LOG("%s", wrong[i]);
	ASSERT_EQ(0, module_load_with("boot="));
	self->fd = device_open();
	EXPECT_EQ(0, query(self->fd).state);
	EXPECT_EQ(-ENOENT, adopt(self->fd, 0));
}

TEST_HARNESS_MAIN
