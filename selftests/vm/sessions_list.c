// SPDX-License-Identifier: MIT
/* What is told of the sessions and to whom, which one is looked at, how much a user may have. */
#include "kselftest_harness.h"

#include "sessions.h"

/* ---- the list, and the choice ---- */

static int choose(int fd, uint64_t session)
{
	struct kbarman_choose c = { .size = sizeof(c), .session = session };

	return call(fd, KBARMAN_CHOOSE, &c);
}

static int in_a_child(int (*what)(uint64_t), uint64_t capabilities)
{
	pid_t child = fork();
	int status;

	if (!child)
		_exit(what(capabilities));
	if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
		lost("no child");
	return WEXITSTATUS(status);
}

static uint32_t sessions_list(int fd, struct kbarman_session_info *list, uint32_t room)
{
	struct kbarman_sessions s = { .size = sizeof(s), .count = room, .info_bytes = sizeof(*list),
				      .sessions_ptr = (uintptr_t)list };

	memset(list, 0xff, room * sizeof(*list));
	if (call(fd, KBARMAN_SESSIONS, &s))
		lost("no list");
	return s.count;
}

TEST_F(sessions, the_list_tells_of_all)
{
	struct kbarman_session_info list[MOST];
	struct kbarman_configure of_one = small(KBARMAN_MODE_OVERWRITE);
	int observer = device_open();
	uint64_t before, after;
	struct kbarman_stats s;
	uint32_t pid = getpid();
	char comm[16];

	EXPECT_EQ(0, sessions_list(observer, list, MOST));
	of_one.pids_ptr = (uintptr_t)&pid;
	of_one.nr_pids = 1;
	self->fd[0] = begin(of_one);
	self->fd[1] = begin(small(KBARMAN_MODE_STREAM));
	before = clock_ns(CLOCK_REALTIME);
	ASSERT_EQ(0, start(self->fd[1]));
	after = clock_ns(CLOCK_REALTIME);
	ping_pong(0, ROUNDS);
	EXPECT_EQ(2, sessions_list(observer, list, MOST));
	EXPECT_EQ(query(self->fd[1]).session, list[0].session);
	EXPECT_EQ(query(self->fd[0]).session, list[1].session);
	EXPECT_EQ(KBARMAN_STATE_CONFIGURED | KBARMAN_STATE_RUNNING | KBARMAN_STATE_OWNED,
		  list[0].state);
	EXPECT_EQ(KBARMAN_STATE_CONFIGURED | KBARMAN_STATE_OWNED, list[1].state);
	EXPECT_EQ(KBARMAN_MODE_STREAM, list[0].mode);
	EXPECT_EQ(KBARMAN_MODE_OVERWRITE, list[1].mode);
	EXPECT_EQ(0, list[0].nr_pids);
	EXPECT_EQ(1, list[1].nr_pids);
	EXPECT_EQ(getpid(), list[0].pid);
	EXPECT_EQ(0, list[0].uid);
	prctl(PR_GET_NAME, comm);
	EXPECT_STREQ(comm, list[0].comm);
	EXPECT_LE(before, list[0].started_ns + 1000000);
	EXPECT_GE(after + 1000000, list[0].started_ns);
	EXPECT_EQ(0, list[0].stopped_ns);
	EXPECT_EQ(0, list[1].started_ns);
	EXPECT_LT(256 * KIB, list[0].bytes);
	EXPECT_EQ(256 * KIB, list[0].ring_bytes);
	EXPECT_LT(0, list[0].written);
	ASSERT_EQ(0, stop(self->fd[1]));
	EXPECT_EQ(2, sessions_list(self->fd[1], list, MOST));
	EXPECT_EQ(KBARMAN_STATE_CONFIGURED | KBARMAN_STATE_OWNED | KBARMAN_STATE_MINE,
		  list[0].state);
	EXPECT_LT(list[0].started_ns, list[0].stopped_ns);
	s = stats(self->fd[1], KBARMAN_CPU_ALL);
	EXPECT_EQ(s.written, list[0].written);
	EXPECT_EQ(s.overwritten, list[0].overwritten);
	EXPECT_EQ(lost_records(&s), list[0].lost);
	/* Less room than there are: the newest ones. */
	EXPECT_EQ(2, sessions_list(observer, list, 1));
	EXPECT_EQ(query(self->fd[1]).session, list[0].session);
	EXPECT_EQ(2, sessions_list(observer, list, 0));
	/* Who is gone has no number that another process may get. */
	close(self->fd[1]);
	self->fd[1] = -1;
	EXPECT_EQ(2, sessions_list(observer, list, MOST));
	EXPECT_EQ(KBARMAN_STATE_CONFIGURED, list[0].state);
	EXPECT_EQ(0, list[0].pid);
	close(observer);
}

/* What a user with the right to record, and with @capabilities too, sees of two users' sessions. */
static int sees_owners(uint64_t capabilities)
{
	struct kbarman_session_info list[MOST];
	int fd;

	capabilities |= CAPABILITY(CAP_PERFMON);
	if (prctl(PR_SET_KEEPCAPS, 1) || setresuid(1234, 1234, 1234))
		lost("no other user");
	set_capabilities(capabilities | CAPABILITY(CAP_DAC_OVERRIDE),
			 capabilities | CAPABILITY(CAP_DAC_OVERRIDE));
	fd = begin(small(KBARMAN_MODE_OVERWRITE));
	if (sessions_list(fd, list, MOST) != 2)
		return 100;
	if (list[0].pid != (uint32_t)getpid() || list[0].uid != 1234 || !*list[0].comm ||
	    list[0].state & KBARMAN_STATE_HIDDEN)
		return 101;
	if (list[1].state & KBARMAN_STATE_HIDDEN)
		return list[1].pid || list[1].uid != ~0U || *list[1].comm ? 102 : 0;
	return list[1].pid == (uint32_t)getppid() && !list[1].uid && *list[1].comm ? 1 : 103;
}

TEST_F(sessions, owners_are_shown_by_the_rights_of_the_opener)
{
	self->fd[0] = begin(small(KBARMAN_MODE_OVERWRITE));
	EXPECT_EQ(0, in_a_child(sees_owners, 0));
	EXPECT_EQ(1, in_a_child(sees_owners, CAPABILITY(CAP_SYS_PTRACE)));
}

TEST_F(sessions, one_can_be_chosen)
{
	int observer = device_open(), i;
	uint64_t first, second;

	self->fd[0] = begin(small(KBARMAN_MODE_OVERWRITE));
	first = query(self->fd[0]).session;
	ASSERT_EQ(0, start(self->fd[0]));
	self->fd[1] = begin(small(KBARMAN_MODE_STREAM));
	second = query(self->fd[1]).session;
	EXPECT_EQ(-ENOENT, choose(observer, second + 1));
	EXPECT_EQ(-ENOENT, choose(observer, ~0ULL));
	EXPECT_EQ(second, query(observer).session);
	ASSERT_EQ(0, choose(observer, first));
	EXPECT_EQ(first, query(observer).session);
	EXPECT_TRUE(runs(observer));
	EXPECT_EQ(-EPERM, stop(observer));
	EXPECT_EQ(-EBUSY, choose(self->fd[1], first));
	ping_pong(0, ROUNDS);
	ASSERT_EQ(0, stop(self->fd[0]));
	EXPECT_LE(ROUNDS, judge_cpu(observer, 0).records);
	EXPECT_EQ(stats(self->fd[0], 0).written, stats(observer, 0).written);
	/* It stays the one that was chosen: configured anew, and without its owner. */
	ASSERT_EQ(0, configure(self->fd[0], small(KBARMAN_MODE_STREAM)));
	EXPECT_LT(second, query(observer).session);
	EXPECT_EQ(KBARMAN_MODE_STREAM, query(observer).mode);
	first = query(observer).session;
	close(self->fd[0]);
	self->fd[0] = -1;
	EXPECT_EQ(first, query(observer).session);
	for (i = 2; i < MOST; i++)
		self->fd[i] = begin(small(KBARMAN_MODE_OVERWRITE));
	self->fd[0] = device_open();
	EXPECT_EQ(-EBUSY, configure(self->fd[0], small(KBARMAN_MODE_OVERWRITE)));
	EXPECT_EQ(first, query(observer).session);
	/* Who has none chosen sees the newest one again, and keeps none. */
	ASSERT_EQ(0, choose(observer, 0));
	EXPECT_EQ(query(self->fd[MOST - 1]).session, query(observer).session);
	EXPECT_EQ(0, configure(self->fd[0], small(KBARMAN_MODE_OVERWRITE)));
	EXPECT_EQ(-ENOENT, choose(observer, first));
	close(observer);
}

TEST_F(sessions, a_choice_of_one_configuration_is_stale_after_the_next)
{
	struct kbarman_choose only = { .size = sizeof(only), .flags = KBARMAN_CHOOSE_ONLY };
	struct kbarman_stats s = { .size = sizeof(s), .cpu = KBARMAN_CPU_ALL };
	struct kbarman_query q, after = { .size = sizeof(after) };
	int observer = device_open();

	self->fd[0] = begin(small(KBARMAN_MODE_OVERWRITE));
	only.session = query(self->fd[0]).session;
	ASSERT_EQ(0, call(observer, KBARMAN_CHOOSE, &only));
	q = query(observer);
	EXPECT_EQ(only.session, q.session);
	EXPECT_NE(MAP_FAILED, try_map(observer, &q, 0));
	ASSERT_EQ(0, configure(self->fd[0], small(KBARMAN_MODE_OVERWRITE)));
	EXPECT_EQ(-ESTALE, call(observer, KBARMAN_QUERY, &after));
	EXPECT_EQ(-ESTALE, call(observer, KBARMAN_STATS, &s));
	EXPECT_EQ(MAP_FAILED, try_map(observer, &q, 0));
	EXPECT_EQ(ESTALE, errno);
	EXPECT_EQ(0, choose(observer, 0));
	EXPECT_EQ(only.session + 1, query(observer).session);
	/* Without the flag the choice follows. */
	ASSERT_EQ(0, choose(observer, only.session + 1));
	ASSERT_EQ(0, configure(self->fd[0], small(KBARMAN_MODE_OVERWRITE)));
	EXPECT_EQ(only.session + 2, query(observer).session);
	close(observer);
}

TEST_F(sessions, a_choice_ends_with_a_session_of_ones_own)
{
	self->fd[0] = begin(small(KBARMAN_MODE_OVERWRITE));
	self->fd[1] = device_open();
	ASSERT_EQ(0, choose(self->fd[1], query(self->fd[0]).session));
	ASSERT_EQ(0, configure(self->fd[1], small(KBARMAN_MODE_STREAM)));
	EXPECT_NE(0, query(self->fd[1]).state & KBARMAN_STATE_MINE);
	EXPECT_EQ(0, start(self->fd[1]));
	EXPECT_FALSE(runs(self->fd[0]));
}

TEST_F(sessions, list_and_choice_refuse_what_they_do_not_know)
{
	struct kbarman_sessions s = { .size = sizeof(s) };
	struct kbarman_choose c = { .size = sizeof(c) };

	self->fd[0] = device_open();
	c.flags = 2;
	EXPECT_EQ(-EINVAL, call(self->fd[0], KBARMAN_CHOOSE, &c));
	self->fd[1] = begin(small(KBARMAN_MODE_OVERWRITE));
	s = (struct kbarman_sessions) { .size = sizeof(s), .count = 1,
		.info_bytes = KBARMAN_SESSION_INFO_SIZE_VER0, .sessions_ptr = 1 };
	EXPECT_EQ(-EFAULT, call(self->fd[0], KBARMAN_SESSIONS, &s));
	s.info_bytes = KBARMAN_SESSION_INFO_SIZE_VER0 - 8;
	EXPECT_EQ(-EINVAL, call(self->fd[0], KBARMAN_SESSIONS, &s));
}

/* A list for a program that knows more fields than the kernel. */
TEST_F(sessions, a_list_may_have_longer_rows)
{
	struct {
		struct kbarman_session_info info;
		uint64_t new;
	} list[2];
	struct kbarman_sessions s = { .size = sizeof(s), .count = 2, .info_bytes = sizeof(list[0]),
				      .sessions_ptr = (uintptr_t)list };

	self->fd[0] = begin(small(KBARMAN_MODE_OVERWRITE));
	self->fd[1] = begin(small(KBARMAN_MODE_STREAM));
	memset(list, 0xff, sizeof(list));
	ASSERT_EQ(0, call(self->fd[0], KBARMAN_SESSIONS, &s));
	EXPECT_EQ(sizeof(struct kbarman_session_info), s.info_bytes);
	EXPECT_EQ(query(self->fd[1]).session, list[0].info.session);
	EXPECT_EQ(query(self->fd[0]).session, list[1].info.session);
	EXPECT_EQ(0, list[0].new);
	EXPECT_EQ(0, list[1].new);
}

/* ---- memory ---- */

#define USER_MIB	"/sys/module/kbarman/parameters/user_mib"

static struct kbarman_sessions figures(int fd)
{
	struct kbarman_sessions s = { .size = sizeof(s) };

	if (call(fd, KBARMAN_SESSIONS, &s))
		lost("no figures");
	return s;
}

FIXTURE(memory)
{
	int fd[3];
	char before[16];
};

FIXTURE_SETUP(memory)
{
	int i;

	wait_for_none();
	for (i = 0; i < 3; i++)
		self->fd[i] = device_open();
	read_file(USER_MIB, self->before, sizeof(self->before));
}

FIXTURE_TEARDOWN(memory)
{
	int i;

	write_file(USER_MIB, self->before);
	for (i = 0; i < 3; i++)
		close(self->fd[i]);
}

TEST_F(memory, of_a_user_is_limited)
{
	struct kbarman_configure c = small(KBARMAN_MODE_OVERWRITE), big = c;
	uint64_t one;

	EXPECT_EQ(0, figures(self->fd[0]).memory);
	EXPECT_EQ(MOST, figures(self->fd[0]).most);
	EXPECT_LT(0, figures(self->fd[0]).memory_limit);
	ASSERT_EQ(0, configure(self->fd[0], c));
	one = figures(self->fd[1]).memory;
	EXPECT_LT(256 * KIB, one);
	big.ring_bytes = 16 * MIB;
	write_file(USER_MIB, "16");
	EXPECT_EQ(16 * MIB, figures(self->fd[0]).memory_limit);
	EXPECT_EQ(-EDQUOT, configure(self->fd[1], big));
	EXPECT_EQ(one, figures(self->fd[1]).memory);
	EXPECT_EQ(0, query(self->fd[1]).state & KBARMAN_STATE_MINE);
	EXPECT_EQ(0, configure(self->fd[1], c));
	EXPECT_EQ(2 * one, figures(self->fd[1]).memory);
	/* Both are in memory for a moment, and the former one stays if there is no room for that. */
	EXPECT_EQ(-EDQUOT, configure(self->fd[1], big));
	EXPECT_EQ(2 * one, figures(self->fd[1]).memory);
	EXPECT_EQ(0, start(self->fd[0]));
	EXPECT_EQ(0, start(self->fd[1]));
}

/* While root has all it may. */
static int has_room(uint64_t capabilities)
{
	int fd;

	keep_only(capabilities);
	fd = device_open();
	return !figures(fd).memory && !configure(fd, small(KBARMAN_MODE_OVERWRITE)) &&
	       figures(fd).memory;
}

static int another_has_room(uint64_t capabilities)
{
	if (prctl(PR_SET_KEEPCAPS, 1) || setresuid(1234, 1234, 1234))
		lost("no other user");
	return has_room(capabilities);
}

TEST_F(memory, is_counted_for_each_user)
{
	const uint64_t record = CAPABILITY(CAP_PERFMON) | CAPABILITY(CAP_DAC_OVERRIDE);
	struct kbarman_configure c = small(KBARMAN_MODE_OVERWRITE);
	int error;

	ASSERT_EQ(0, configure(self->fd[0], c));
	write_file(USER_MIB, "1");
	c.ring_bytes = 1 * MIB;
	error = configure(self->fd[1], c);
	EXPECT_EQ(-EDQUOT, error);
	write_file(USER_MIB, "2");
	c.ring_bytes = 2 * MIB;
	EXPECT_EQ(-EDQUOT, configure(self->fd[1], c));
	EXPECT_EQ(1, in_a_child(another_has_room, record));
	/* The root of a container that may record is not the machine's root. */
	EXPECT_EQ(1, in_a_child(has_room, record));
}

TEST_F(memory, is_the_users_until_the_last_map_is_gone)
{
	struct kbarman_query q;
	const void *map;

	ASSERT_EQ(0, configure(self->fd[0], small(KBARMAN_MODE_OVERWRITE)));
	q = query(self->fd[0]);
	map = map_cpu(self->fd[0], 0);
	close(self->fd[1]);
	close(self->fd[2]);
	close(self->fd[0]);
	self->fd[0] = device_open();
	EXPECT_EQ(0, query(self->fd[0]).state);
	EXPECT_LT(0, figures(self->fd[0]).memory);
	munmap((void *)map, q.map_bytes);
	EXPECT_EQ(0, figures(self->fd[0]).memory);
	self->fd[1] = device_open();
	self->fd[2] = device_open();
}

/* What somebody has left, and nobody has chosen, is in nobody's way. */
TEST_F(memory, of_those_who_have_gone_is_given_back_when_it_is_needed)
{
	struct kbarman_configure c = small(KBARMAN_MODE_OVERWRITE);
	uint64_t first;

	c.ring_bytes = 4 * MIB;
	ASSERT_EQ(0, configure(self->fd[0], c));
	first = query(self->fd[0]).session;
	write_file(USER_MIB, "12");
	EXPECT_EQ(-EDQUOT, configure(self->fd[1], c));
	close(self->fd[0]);
	EXPECT_EQ(first, query(self->fd[1]).session);
	ASSERT_EQ(0, choose(self->fd[2], first));
	EXPECT_EQ(-EDQUOT, configure(self->fd[1], c));
	ASSERT_EQ(0, choose(self->fd[2], 0));
	EXPECT_EQ(0, configure(self->fd[1], c));
	EXPECT_EQ(-ENOENT, choose(self->fd[2], first));
	self->fd[0] = device_open();
}

TEST_HARNESS_MAIN
