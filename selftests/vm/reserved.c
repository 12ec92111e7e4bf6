// SPDX-License-Identifier: MIT
/*
 * Sessions that record into memory which survives a reset: 64 MiB, which the parameter $MEMORY of the module names.
 * What is there after a reset: survivor.c.
 */
#include "kselftest_harness.h"

#include "sessions.h"
#include "uapi/stamp.h"

#define HALF	(32 * MIB)
#ifdef __aarch64__
#define LINUX_HAS	"0x42000000"	/* an address */
#else
#define LINUX_HAS	"0x1000000"
#endif

static void unload(void)
{
	while (!access(KBARMAN_DEVICE, F_OK) && module_unload())
		usleep(1000);
}

static int load(const char *memory)
{
	char parameters[128];

	snprintf(parameters, sizeof(parameters), "memory=%s", memory);
	return module_load_with(parameters);
}

/* Small, of one CPU. */
static struct kbarman_configure there(void)
{
	struct kbarman_configure config = small(KBARMAN_MODE_OVERWRITE);

	config.flags = KBARMAN_CONFIGURE_RESERVED;
	return config;
}

static int former(int fd, uint32_t flags)
{
	struct kbarman_former f = { .size = sizeof(f), .flags = flags };

	return call(fd, KBARMAN_FORMER, &f);
}

FIXTURE(reserved)
{
	int fd;
};

FIXTURE_SETUP(reserved)
{
	if (!getenv("MEMORY"))
		lost("MEMORY is not set");
	if (access(KBARMAN_DEVICE, F_OK) && load(getenv("MEMORY")))
		lost("the module does not load");
	wait_for_none();
	self->fd = device_open();
	pin(0);
}

FIXTURE_TEARDOWN(reserved)
{
	close(self->fd);
}

TEST_F(reserved, what_is_recorded_there_is_mapped_as_elsewhere)
{
	struct kbarman_query q;
	uint32_t cpu;

	EXPECT_TRUE(query(self->fd).features & KBARMAN_FEATURE_RESERVED);
	ASSERT_EQ(0, configure(self->fd, there()));
	ASSERT_EQ(0, start(self->fd));
	for (cpu = 0; cpu < 2; cpu++)
		ping_pong(cpu, 1000);
	ASSERT_EQ(0, stop(self->fd));
	q = query(self->fd);
	for (cpu = 0; cpu < q.nr_cpus; cpu++) {
		struct judgement j = judge_cpu(self->fd, cpu);

		EXPECT_EQ(NULL, j.fault) TH_LOG("CPU %u at %llu", cpu, (long long)j.at);
		EXPECT_LE(2000, j.by_type[BM_RECORD_TASK_SWITCH]);
	}
}

TEST_F(reserved, a_map_outlives_its_session_and_keeps_the_memory)
{
	int other, fd = begin(there());
	struct kbarman_query q = query(fd);
	const void *map = map_cpu(fd, 0);

	ASSERT_EQ(0, start(fd));
	ping_pong(0, 1000);
	ASSERT_EQ(0, stop(fd));
	close(fd);
	EXPECT_EQ(NULL, judge(map, q.map_bytes, 0).fault);
	/* There are two halves. */
	fd = begin(there());
	EXPECT_EQ(-EADDRINUSE, configure(self->fd, there()));
	munmap((void *)map, q.map_bytes);
	other = begin(there());
	EXPECT_EQ(-EADDRINUSE, configure(self->fd, there()));
	close(other);
	close(fd);
}

/* What was recorded in Linux's own memory does not go for it. */
TEST_F(reserved, who_has_gone_makes_room)
{
	int elsewhere = begin(small(KBARMAN_MODE_OVERWRITE)), one = begin(there()), other = begin(there());
	struct kbarman_sessions s = { .size = sizeof(s) };

	close(elsewhere);
	EXPECT_EQ(-EADDRINUSE, configure(self->fd, there()));
	close(one);
	EXPECT_EQ(0, configure(self->fd, there()));
	ASSERT_EQ(0, call(self->fd, KBARMAN_SESSIONS, &s));
	EXPECT_EQ(2, s.count);
	close(other);
}

TEST_F(reserved, sizes_that_are_open_are_as_large_as_fits)
{
	struct kbarman_configure open = { .sources = KBARMAN_SOURCE_SCHED, .flags = KBARMAN_CONFIGURE_RESERVED };
	struct kbarman_session_info info;
	struct kbarman_sessions s = { .size = sizeof(s), .count = 1, .info_bytes = sizeof(info),
				      .sessions_ptr = (uintptr_t)&info };

	ASSERT_EQ(0, configure(self->fd, open));
	ASSERT_EQ(0, call(self->fd, KBARMAN_SESSIONS, &s));
	EXPECT_LE(1 * MIB, info.ring_bytes);
	EXPECT_LE(HALF / 2, info.bytes);
	EXPECT_GE(2 * HALF, info.bytes);
}

TEST_F(reserved, sizes_that_do_not_fit_are_refused)
{
	struct kbarman_configure large = there();

	large.ring_bytes = HALF;
	large.size = sizeof(large);
	EXPECT_EQ(-ENOSPC, call(self->fd, KBARMAN_CONFIGURE, &large));
	EXPECT_EQ(offsetof(struct kbarman_configure, ring_bytes), large.bad_offset);
	EXPECT_EQ(0, configure(self->fd, there()));
}

TEST_F(reserved, the_user_is_not_charged_for_it)
{
	struct kbarman_sessions before = { .size = sizeof(before) }, s = before;
	struct kbarman_configure large = there();

	large.ring_bytes = 2 * MIB;
	ASSERT_EQ(0, call(self->fd, KBARMAN_SESSIONS, &before));
	ASSERT_EQ(0, configure(self->fd, large));
	ASSERT_EQ(0, call(self->fd, KBARMAN_SESSIONS, &s));
	EXPECT_GE(before.memory + MIB, s.memory);
}

TEST_F(reserved, there_is_room_for_symbols_beside_rings_that_take_what_they_can)
{
	static char bytes[KBARMAN_SYMBOLS_MAX];
	struct kbarman_add_symbols a = { .size = sizeof(a), .bytes_ptr = (uintptr_t)bytes, .bytes = sizeof(bytes) };
	struct kbarman_configure open = { .sources = KBARMAN_SOURCE_SCHED, .flags = KBARMAN_CONFIGURE_RESERVED };
	struct kbarman_sessions before = { .size = sizeof(before) }, s = before;

	ASSERT_EQ(0, configure(self->fd, open));
	ASSERT_EQ(0, call(self->fd, KBARMAN_SESSIONS, &before));
	EXPECT_EQ(-ENOSPC, call(self->fd, KBARMAN_ADD_SYMBOLS, &a));
	a.bytes = HALF / 8 - 64 * KIB;
	EXPECT_EQ(0, call(self->fd, KBARMAN_ADD_SYMBOLS, &a));
	ASSERT_EQ(0, call(self->fd, KBARMAN_SESSIONS, &s));
	EXPECT_EQ(before.memory, s.memory);
}

TEST_F(reserved, a_recording_of_this_boot_is_no_former_one)
{
	EXPECT_EQ(0, configure(self->fd, there()));
	EXPECT_EQ(-ENOENT, former(self->fd, 0));
	EXPECT_EQ(-EINVAL, former(self->fd, KBARMAN_FORMER_OPEN | KBARMAN_FORMER_RELEASE));
	EXPECT_EQ(-EINVAL, former(self->fd, 4));
}

/* These unload the module. */
TEST_F(reserved, what_nobody_wants_any_more_is_gone_with_the_module)
{
	close(begin(there()));
	close(self->fd);
	wait_for_none();
	unload();
	ASSERT_EQ(0, load(getenv("MEMORY")));
	self->fd = device_open();
	EXPECT_EQ(-ENOENT, former(self->fd, 0));
}

TEST_F(reserved, without_the_parameter_there_is_none)
{
	close(self->fd);
	unload();
	ASSERT_EQ(0, module_load());
	self->fd = device_open();
	EXPECT_FALSE(query(self->fd).features & KBARMAN_FEATURE_RESERVED);
	EXPECT_EQ(-EOPNOTSUPP, configure(self->fd, there()));
	EXPECT_EQ(-EOPNOTSUPP, former(self->fd, 0));
	close(self->fd);
	unload();
	self->fd = -1;
}

TEST_F(reserved, memory_that_linux_uses_is_refused)
{
	static const struct {
		const char *memory;
		int error;
	} wrong[] = {
		{ LINUX_HAS ",16M", -EBUSY }, { "nobody", -ENOENT }, { LINUX_HAS, -EINVAL }, { LINUX_HAS ",", -EINVAL },
		{ LINUX_HAS ",16M,", -EINVAL }, { LINUX_HAS ",0", -EINVAL },
	};
	unsigned int i;

	close(self->fd);
	unload();
	for (i = 0; i < ARRAY_SIZE(wrong); i++)
		EXPECT_EQ(wrong[i].error, load(wrong[i].memory)) TH_LOG("the parameter with number %u", i);
	self->fd = -1;
}

TEST_HARNESS_MAIN
