// SPDX-License-Identifier: MIT
/*
 * What is told of the sessions and to whom, which one is looked at and how far, how much a user may
 * have.
 */
#include <poll.h>
#include <sys/epoll.h>

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
	EXPECT_EQ(only.session + 1, after.session);
	EXPECT_EQ(-ESTALE, call(observer, KBARMAN_STATS, &s));
	EXPECT_EQ(MAP_FAILED, try_map(observer, &q, 0));
	EXPECT_EQ(ESTALE, errno);
	EXPECT_EQ(-EINVAL, call(observer, KBARMAN_CHOOSE, &(struct kbarman_choose) {
		.size = sizeof(only), .flags = KBARMAN_CHOOSE_ONLY }));
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

/* ---- how far it is read: only marks are recorded, so a ring has what is put there ---- */

#define WATERMARK	(8 * KIB)

/* A descriptor that may write, too: marks of an owner have no rate. */
static int begin_marked(uint32_t mode)
{
	static const uint64_t first = 1;
	struct kbarman_configure c = small(mode);
	int fd = open(KBARMAN_DEVICE, O_RDWR | O_CLOEXEC);

	c.sources = KBARMAN_SOURCE_MARKS;
	c.ring_bytes = 64 * KIB;
	c.watermark = WATERMARK;
	c.nr_cpu_words = 1;
	c.cpus_ptr = (uintptr_t)&first;
	if (fd < 0 || configure(fd, c))
		lost("no session");
	return fd;
}

/* @count records in the ring of CPU 0, of the session that @fd owns. */
static void put_marks(int fd, unsigned int count)
{
	const struct kbarman_mark mark = { .size = sizeof(mark), .type = KBARMAN_MARK_BOOKMARK };

	pin(0);
	while (count--)
		if (write(fd, &mark, sizeof(mark)) != sizeof(mark))
			lost("no mark");
}

static void put_bytes(int fd, const struct bm_datastore_header_data *store, uint64_t count)
{
	uint64_t end = store->write_offset + count;

	while (store->write_offset < end)
		put_marks(fd, 1);
}

static uint64_t count_from(const void *map, uint64_t position)
{
	struct walk walk = walk_from(map, position);
	uint64_t count = 0;

	while (walk_next(&walk))
		count++;
	return count;
}

static short poll_now(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) > 0 ? p.revents : 0;
}

TEST_F(sessions, an_observer_waits_for_what_it_has_not_read)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET }, got;
	int observer = device_open(), e = epoll_create1(EPOLL_CLOEXEC);
	const struct bm_datastore_header_data *store;
	uint64_t oldest;

	ASSERT_LE(0, e);
	self->fd[0] = begin_marked(KBARMAN_MODE_OVERWRITE);
	store = capture_store(map_cpu(observer, 0));
	ASSERT_EQ(0, start(self->fd[0]));
	put_bytes(self->fd[0], store, 128 * KIB);
	EXPECT_EQ(POLLIN, poll_now(observer));
	oldest = store->read_offset;
	ASSERT_EQ(0, consume(observer, 0, store->write_offset));
	EXPECT_EQ(oldest, store->read_offset);
	EXPECT_EQ(0, poll_now(observer));
	EXPECT_EQ(POLLIN, poll_now(self->fd[0]));
	EXPECT_EQ(-EINVAL, consume(observer, 0, store->write_offset + 8));
	EXPECT_EQ(-EINVAL, consume(observer, ~0U - 1, 0));
	put_bytes(self->fd[0], store, WATERMARK / 2);
	EXPECT_EQ(0, poll_now(observer));
	ASSERT_EQ(0, epoll_ctl(e, EPOLL_CTL_ADD, observer, &event));
	EXPECT_EQ(0, epoll_wait(e, &got, 1, 0));
	put_bytes(self->fd[0], store, WATERMARK);
	EXPECT_EQ(1, epoll_wait(e, &got, 1, -1));
	EXPECT_EQ(POLLIN, poll_now(observer));
	/* The end, and the next recording, whose positions are others. */
	ASSERT_EQ(0, consume(observer, 0, store->write_offset));
	ASSERT_EQ(0, stop(self->fd[0]));
	EXPECT_EQ(1, epoll_wait(e, &got, 1, -1));
	EXPECT_EQ(POLLIN | POLLHUP, poll_now(observer));
	ASSERT_EQ(0, start(self->fd[0]));
	EXPECT_EQ(1, epoll_wait(e, &got, 1, -1));
	EXPECT_EQ(POLLIN, poll_now(observer));
	ASSERT_EQ(0, consume(observer, 0, 0));
	EXPECT_EQ(0, poll_now(observer));
	put_bytes(self->fd[0], store, WATERMARK);
	EXPECT_EQ(POLLIN, poll_now(observer));
	close(e);
	close(observer);
}

TEST_F(sessions, an_observer_that_has_done_waits_for_the_next_recording)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET }, got;
	int observer = device_open(), e = epoll_create1(EPOLL_CLOEXEC);
	struct kbarman_consume done = { .size = sizeof(done), .cpu = KBARMAN_CPU_ALL, .recording = 2 };
	struct kbarman_query q;

	ASSERT_LE(0, e);
	self->fd[0] = begin_marked(KBARMAN_MODE_STREAM);
	ASSERT_EQ(0, epoll_ctl(e, EPOLL_CTL_ADD, observer, &event));
	ASSERT_EQ(0, start(self->fd[0]));
	EXPECT_EQ(-EBUSY, call(observer, KBARMAN_CONSUME, &done));
	ASSERT_EQ(0, stop(self->fd[0]));
	q = query(observer);
	EXPECT_EQ(POLLIN | POLLHUP, poll_now(observer));
	done.session = q.session + 1;
	EXPECT_EQ(-ESTALE, call(observer, KBARMAN_CONSUME, &done));
	done.session = q.session;
	EXPECT_EQ(0, call(observer, KBARMAN_CONSUME, &done));
	EXPECT_EQ(0, poll_now(observer));
	EXPECT_EQ(-EINVAL, call(self->fd[0], KBARMAN_CONSUME, &done));
	EXPECT_EQ(POLLIN | POLLHUP, poll_now(self->fd[0]));
	/* Each of these ends the wait. */
	while (epoll_wait(e, &got, 1, 0))
		;
	ASSERT_EQ(0, start(self->fd[0]));
	EXPECT_EQ(1, epoll_wait(e, &got, 1, -1));
	EXPECT_EQ(POLLIN, poll_now(observer));
	EXPECT_EQ(-ESTALE, call(observer, KBARMAN_CONSUME, &done));
	ASSERT_EQ(0, stop(self->fd[0]));
	done.recording = 4;
	ASSERT_EQ(0, call(observer, KBARMAN_CONSUME, &done));
	EXPECT_EQ(0, poll_now(observer));
	ASSERT_EQ(0, configure(self->fd[0], small(KBARMAN_MODE_STREAM)));
	EXPECT_EQ(1, epoll_wait(e, &got, 1, -1));
	EXPECT_EQ(POLLIN | POLLHUP, poll_now(observer));
	close(e);
	close(observer);
}

TEST_F(sessions, a_position_is_of_the_recording_that_it_names)
{
	struct kbarman_consume c = { .size = sizeof(c), .recording = 2 };
	const struct bm_datastore_header_data *store;
	int observer = device_open();

	self->fd[0] = begin_marked(KBARMAN_MODE_STREAM);
	store = capture_store(map_cpu(observer, 0));
	c.session = query(observer).session;
	ASSERT_EQ(0, start(self->fd[0]));
	put_marks(self->fd[0], 10);
	c.position = store->write_offset;
	ASSERT_EQ(0, stop(self->fd[0]));
	ASSERT_EQ(0, start(self->fd[0]));
	put_marks(self->fd[0], 100);
	EXPECT_EQ(-ESTALE, call(observer, KBARMAN_CONSUME, &c));
	EXPECT_EQ(-ESTALE, call(self->fd[0], KBARMAN_CONSUME, &c));
	EXPECT_EQ(0, store->read_offset);
	c.recording = 4;
	EXPECT_EQ(0, call(observer, KBARMAN_CONSUME, &c));
	EXPECT_EQ(0, call(self->fd[0], KBARMAN_CONSUME, &c));
	EXPECT_EQ(c.position, store->read_offset);
	close(observer);
}

TEST_F(sessions, an_observer_learns_what_a_stream_wrote_that_has_begun_again)
{
	const struct kbarman_map_tail *tail;
	int observer = device_open();
	struct kbarman_query q;
	struct kbarman_stats s;

	self->fd[0] = begin_marked(KBARMAN_MODE_STREAM);
	q = query(observer);
	tail = tail_of(map_cpu(observer, 0), &q);
	ASSERT_EQ(0, start(self->fd[0]));
	put_marks(self->fd[0], 10000);
	ASSERT_EQ(0, stop(self->fd[0]));
	s = stats(observer, 0);
	EXPECT_LT(0, s.lost[KBARMAN_LOST_FULL]);
	ASSERT_EQ(0, start(self->fd[0]));
	EXPECT_EQ(0, tail->counts.written);
	EXPECT_EQ(s.written, tail->former.written);
	EXPECT_EQ(s.lost[KBARMAN_LOST_FULL], tail->former.lost[KBARMAN_LOST_FULL]);
	EXPECT_EQ(10000, tail->former.written + tail->former.lost[KBARMAN_LOST_FULL]);
	close(observer);
}

TEST_F(sessions, an_observer_gives_nothing_of_a_stream_back)
{
	const struct bm_datastore_header_data *store;
	int observer = device_open();

	self->fd[0] = begin_marked(KBARMAN_MODE_STREAM);
	store = capture_store(map_cpu(observer, 0));
	ASSERT_EQ(0, start(self->fd[0]));
	put_bytes(self->fd[0], store, WATERMARK);
	EXPECT_EQ(POLLIN, poll_now(observer));
	ASSERT_EQ(0, consume(observer, 0, store->write_offset));
	EXPECT_EQ(0, store->read_offset);
	EXPECT_EQ(0, poll_now(observer));
	EXPECT_EQ(POLLIN, poll_now(self->fd[0]));
	ASSERT_EQ(0, consume(self->fd[0], 0, store->write_offset));
	EXPECT_EQ(0, poll_now(self->fd[0]));
	close(observer);
}

TEST_F(sessions, an_observer_learns_how_many_records_it_missed)
{
	const struct bm_datastore_header_data *store;
	int observer = device_open();
	struct kbarman_stats before, s;
	const unsigned int put = 10000;
	uint64_t read;
	const void *map;

	self->fd[0] = begin_marked(KBARMAN_MODE_OVERWRITE);
	map = map_cpu(observer, 0);
	store = capture_store(map);
	ASSERT_EQ(0, start(self->fd[0]));
	put_marks(self->fd[0], put);
	before = stats(observer, 0);
	EXPECT_LT(0, before.overwritten);
	EXPECT_EQ(store->read_offset, before.oldest);
	read = count_from(map, before.oldest);
	EXPECT_EQ(put, before.overwritten + read);
	put_marks(self->fd[0], put);
	s = stats(observer, 0);
	EXPECT_EQ(store->read_offset, s.oldest);
	EXPECT_LT(before.overwritten + read, s.overwritten);
	EXPECT_EQ(2 * put, s.overwritten + count_from(map, s.oldest));
	EXPECT_EQ(0, stats(observer, KBARMAN_CPU_ALL).oldest);
	/* Another recording has missed nothing yet. */
	ASSERT_EQ(0, stop(self->fd[0]));
	ASSERT_EQ(0, start(self->fd[0]));
	EXPECT_EQ(0, stats(observer, 0).oldest);
	EXPECT_EQ(0, stats(observer, 0).overwritten);
	close(observer);
}

/* ---- calls for several CPUs ---- */

TEST_F(sessions, one_call_gives_back_the_rings_of_several_cpus)
{
	uint64_t positions[2] = { 0, KBARMAN_NO_POSITION };
	struct kbarman_consume c = { .size = sizeof(c), .cpu = KBARMAN_CPU_ALL, .nr_positions = 2,
				     .positions_ptr = (uintptr_t)positions };
	const struct bm_datastore_header_data *store;

	self->fd[0] = begin_marked(KBARMAN_MODE_STREAM);
	EXPECT_NE(0, query(self->fd[0]).features & KBARMAN_FEATURE_EACH);
	store = capture_store(map_cpu(self->fd[0], 0));
	ASSERT_EQ(0, start(self->fd[0]));
	put_marks(self->fd[0], 100);
	positions[0] = store->write_offset;
	EXPECT_EQ(0, call(self->fd[0], KBARMAN_CONSUME, &c));
	EXPECT_EQ(store->write_offset, store->read_offset);
	EXPECT_EQ(store->read_offset, stats(self->fd[0], 0).consumed);
	positions[1] = 8;
	EXPECT_EQ(-EINVAL, call(self->fd[0], KBARMAN_CONSUME, &c));
	c.positions_ptr = 4096;
	EXPECT_EQ(-EFAULT, call(self->fd[0], KBARMAN_CONSUME, &c));
	c.cpu = 0;
	EXPECT_EQ(-EINVAL, call(self->fd[0], KBARMAN_CONSUME, &c));
	c.cpu = KBARMAN_CPU_ALL;
	c.nr_positions = query(self->fd[0]).nr_cpus + 1;
	EXPECT_EQ(-EINVAL, call(self->fd[0], KBARMAN_CONSUME, &c));
	c.nr_positions = 0;
	EXPECT_EQ(-EINVAL, call(self->fd[0], KBARMAN_CONSUME, &c));
}

TEST_F(sessions, one_call_has_the_stats_of_each_cpu)
{
	struct { struct kbarman_stats stats; uint64_t more; } each[2];
	struct kbarman_stats s = { .size = sizeof(s), .cpu = KBARMAN_CPU_ALL, .nr_each = 2,
				   .each_bytes = sizeof(each[0]), .each_ptr = (uintptr_t)each }, one;

	self->fd[0] = begin_marked(KBARMAN_MODE_OVERWRITE);
	ASSERT_EQ(0, start(self->fd[0]));
	put_marks(self->fd[0], 10000);
	memset(each, 0xff, sizeof(each));
	ASSERT_EQ(0, call(self->fd[0], KBARMAN_STATS, &s));
	one = stats(self->fd[0], 0);
	EXPECT_EQ(0, memcmp(&one, &each[0].stats, offsetof(struct kbarman_stats, each_ptr)));
	EXPECT_EQ(0, each[0].more);
	EXPECT_EQ(0, each[1].stats.size);
	EXPECT_EQ(0, each[1].stats.written);
	EXPECT_EQ(10000, s.written);
	EXPECT_EQ(sizeof(struct kbarman_stats), s.each_bytes);
	s.each_bytes = KBARMAN_STATS_SIZE_VER0 - 8;
	EXPECT_EQ(-EINVAL, call(self->fd[0], KBARMAN_STATS, &s));
	s.each_bytes = sizeof(each[0]);
	s.cpu = 0;
	EXPECT_EQ(-EINVAL, call(self->fd[0], KBARMAN_STATS, &s));
	s.each_bytes = sizeof(each[0]);
	s.cpu = KBARMAN_CPU_ALL;
	s.each_ptr = 4096;
	EXPECT_EQ(-EFAULT, call(self->fd[0], KBARMAN_STATS, &s));
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
