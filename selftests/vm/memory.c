// SPDX-License-Identifier: MIT
/* Whose memory a session is, and what happens if there is not enough: to it, and to others. */
#include "kselftest_harness.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/utsname.h>

#include "sessions.h"

#define CGROUPS		"/sys/fs/cgroup"
#define CGROUP		CGROUPS "/kbarman"
#define LIMIT		(64 * MIB)

static uint64_t first_cpu = 1;

/* What its rings take does not depend on how many CPUs the machine has. */
static struct kbarman_configure of_one_cpu(uint64_t ring_bytes)
{
	struct kbarman_configure c = small(KBARMAN_MODE_OVERWRITE);

	c.cpus_ptr = (uintptr_t)&first_cpu;
	c.nr_cpu_words = 1;
	c.ring_bytes = ring_bytes;
	return c;
}

/* ---- the machine's memory ---- */

/* Has a little memory, and is the first one that the OOM killer would choose. */
static pid_t bystander_create(void)
{
	pid_t child = fork();
	char *memory;

	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	write_file("/proc/self/oom_score_adj", "1000");
	memory = malloc(16 * MIB);
	if (!memory)
		lost("no memory for a bystander");
	memset(memory, 1, 16 * MIB);
	for (;;)
		pause();
}

/* Configures when the other end of @go is closed, and keeps the session until it is killed. */
static pid_t configure_later(const struct kbarman_configure *config, const int go[2], int told)
{
	pid_t child = fork();
	int fd, error;
	char byte;

	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(go[1]);
	fd = device_open();
	if (read(go[0], &byte, 1))
		lost("nobody said 'go'");
	error = configure(fd, *config);
	if (write(told, &error, sizeof(error)) != sizeof(error))
		lost("nobody listens");
	for (;;)
		pause();
}

static void end(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

static uint64_t memory_with(uint32_t rows)
{
	struct kbarman_sessions s = { .size = sizeof(s) };
	struct kbarman_configure c = of_one_cpu(256 * KIB);
	int fd;

	c.max_maps = rows;
	fd = begin(c);
	if (call(fd, KBARMAN_SESSIONS, &s))
		lost("no list");
	close(fd);
	wait_for_none();
	return s.memory;
}

/* Each of the two would fit, if it were the only one. */
TEST(two_sessions_at_once_do_not_take_more_than_there_is)
{
	struct kbarman_configure c = of_one_cpu(256 * KIB);
	int go[2], told[2], errors[2], i, good = 0;
	pid_t bystander, children[2];
	uint64_t rows;

	wait_for_none();
	rows = memory_available() / 2 / ((memory_with(65536) - memory_with(1024)) / (65536 - 1024));
	if (rows * sizeof(struct bm_protocol_header_mmap_layout) > 0xf0000000)
		SKIP(return, "this machine has memory for the largest tables");
	c.max_maps = rows;
	bystander = bystander_create();
	if (pipe2(go, O_CLOEXEC) || pipe2(told, O_CLOEXEC))
		lost("no pipes");
	for (i = 0; i < 2; i++)
		children[i] = configure_later(&c, go, told[1]);
	close(go[1]);
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(sizeof(errors[i]), read(told[0], &errors[i], sizeof(errors[i])));
		good += !errors[i];
		if (errors[i])
			EXPECT_EQ(-ENOMEM, errors[i]);
	}
	EXPECT_EQ(1, good);
	EXPECT_EQ(0, waitpid(bystander, NULL, WNOHANG));
	for (i = 0; i < 2; i++)
		end(children[i]);
	end(bystander);
	wait_for_none();
}

/* ---- those who look on ---- */

#define CALLS		10

static bool looks(int observer)
{
	struct kbarman_session_info list[MOST];
	struct kbarman_sessions sessions = { .size = sizeof(sessions), .count = MOST,
					     .info_bytes = sizeof(list[0]),
					     .sessions_ptr = (uintptr_t)list };
	struct kbarman_stats s = { .size = sizeof(s), .cpu = KBARMAN_CPU_ALL };
	struct kbarman_query q = { .size = sizeof(q) };
	struct pollfd poller = { .fd = observer, .events = POLLIN };

	return poll(&poller, 1, 0) == 1 && !call(observer, KBARMAN_QUERY, &q) &&
	       !call(observer, KBARMAN_STATS, &s) && !call(observer, KBARMAN_SESSIONS, &sessions);
}

static struct again {
	pthread_barrier_t begins;
	int fd;
	int error;
	atomic_bool is_over;
} again;

static void *configure_again(void *unused)
{
	pthread_barrier_wait(&again.begins);
	again.error = configure(again.fd, of_one_cpu(64 * MIB));
	again.is_over = true;
	return unused;
}

/* While somebody configures, which takes long: its memory has to be cleared. */
TEST(observers_do_not_wait_for_a_configure)
{
	int observer = device_open(), calls = 0, tries;
	pthread_t thread;

	wait_for_none();
	again.fd = begin(of_one_cpu(256 * KIB));
	pthread_barrier_init(&again.begins, NULL, 2);
	for (tries = 0; tries < 20 && calls < CALLS; tries++) {
		again.is_over = false;
		if (pthread_create(&thread, NULL, configure_again, NULL))
			lost("no thread");
		pthread_barrier_wait(&again.begins);
		/* Those that a CONFIGURE kept waiting end when it is over. */
		for (calls = 0; looks(observer) && !again.is_over; calls++)
			;
		pthread_join(thread, NULL);
		ASSERT_EQ(0, again.error);
	}
	EXPECT_LE(CALLS, calls);
	close(again.fd);
	close(observer);
}

/* What is configured stays, unless memory is short, and even then others keep theirs. */
TEST(configure_that_fails_leaves_the_former_session)
{
	struct kbarman_configure c = of_one_cpu(256 * KIB), wrong = c;
	struct kbarman_query before, after;
	uint32_t nobody = 4194300;
	int fd = begin(c);

	pin(0);
	ASSERT_EQ(0, start(fd));
	ping_pong(0, ROUNDS);
	ASSERT_EQ(0, stop(fd));
	before = query(fd);
	wrong.pids_ptr = (uintptr_t)&nobody;
	wrong.nr_pids = 1;
	EXPECT_EQ(-ESRCH, configure(fd, wrong));
	wrong = c;
	wrong.watermark = wrong.ring_bytes + 1;
	EXPECT_EQ(-EINVAL, configure(fd, wrong));
	wrong = c;
	wrong.max_tasks = 0x7fffffff;
	EXPECT_EQ(-EINVAL, configure(fd, wrong));
	after = query(fd);
	EXPECT_EQ(0, memcmp(&before, &after, sizeof(before)));
	EXPECT_LT(ROUNDS, stats(fd, KBARMAN_CPU_ALL).written);
	EXPECT_GOOD(fd);
	EXPECT_EQ(0, start(fd));
	close(fd);
}

/* ---- a start that fails ---- */

TEST(start_without_a_cpu_leaves_the_former_recording)
{
	struct kbarman_configure c = of_one_cpu(256 * KIB);
	struct recording before, after;
	uint64_t second_cpu = 2;
	int fd, error;

	if (access("/sys/devices/system/cpu/cpu1/online", W_OK) || !cpu_online(1))
		SKIP(return, "there is no second CPU that can be taken away");
	c.cpus_ptr = (uintptr_t)&second_cpu;
	fd = begin(c);
	ASSERT_EQ(0, start(fd));
	ping_pong(1, ROUNDS);
	ASSERT_EQ(0, stop(fd));
	before = recording_of(fd);
	EXPECT_LT(ROUNDS, before.stats.written);
	cpu_set_online(1, false);
	error = start(fd);
	cpu_set_online(1, true);
	EXPECT_EQ(-ENODEV, error);
	after = recording_of(fd);
	EXPECT_EQ(0, memcmp(&before, &after, sizeof(before)));
	EXPECT_GOOD(fd);
	EXPECT_EQ(0, start(fd));
	close(fd);
}

#define MAX_RATE	"/proc/sys/kernel/perf_event_max_sample_rate"
#define CPU_PERCENT	"/proc/sys/kernel/perf_cpu_time_max_percent"

TEST(start_without_a_counter_leaves_the_former_recording)
{
	struct kbarman_configure c = of_one_cpu(256 * KIB);
	struct recording before, after;
	char rate[32], percent[32];
	int fd, error;

	c.sources |= KBARMAN_SOURCE_PMU;
	c.events_ptr = sampled_hz(&cpu_clock, 1, 100);
	c.nr_events = 1;
	fd = begin(c);
	pin(0);
	ASSERT_EQ(0, start(fd));
	ping_pong(0, ROUNDS);
	ASSERT_EQ(0, stop(fd));
	before = recording_of(fd);
	EXPECT_LT(ROUNDS, before.stats.written);
	read_file(MAX_RATE, rate, sizeof(rate));
	read_file(CPU_PERCENT, percent, sizeof(percent));
	write_file(CPU_PERCENT, "25");
	write_file(MAX_RATE, "99");
	error = start(fd);
	write_file(MAX_RATE, rate);
	write_file(CPU_PERCENT, percent);
	EXPECT_EQ(-ERANGE, error);
	after = recording_of(fd);
	EXPECT_EQ(0, memcmp(&before, &after, sizeof(before)));
	EXPECT_GOOD(fd);
	EXPECT_EQ(0, start(fd));
	close(fd);
}

/* ---- a memory cgroup ---- */

static uint64_t cgroup_number(const char *file, const char *key)
{
	char path[128], text[4096], *at;

	snprintf(path, sizeof(path), CGROUP "/%s", file);
	read_file(path, text, sizeof(text));
	at = strstr(text, key);
	if (!at)
		lost("%s has no '%s'", path, key);
	return strtoull(at + strlen(key), NULL, 10);
}

FIXTURE(cgroup)
{
	int fd;
};

FIXTURE_SETUP(cgroup)
{
	char controllers[256];

	wait_for_none();
	if (mount("none", CGROUPS, "cgroup2", 0, NULL)) {
		TH_LOG("this kernel has no cgroups of version 2");
		skip_test();
	}
	read_file(CGROUPS "/cgroup.controllers", controllers, sizeof(controllers));
	if (!strstr(controllers, "memory")) {
		TH_LOG("this kernel counts no memory of cgroups");
		umount(CGROUPS);
		skip_test();
	}
	write_file(CGROUPS "/cgroup.subtree_control", "+memory");
	if (mkdir(CGROUP, 0755) && errno != EEXIST)
		lost("no cgroup");
	write_file(CGROUP "/memory.max", "67108864");
	self->fd = device_open();
	write_file(CGROUP "/cgroup.procs", "0");
}

FIXTURE_TEARDOWN(cgroup)
{
	close(self->fd);
	write_file(CGROUPS "/cgroup.procs", "0");
	rmdir(CGROUP);
	umount(CGROUPS);
}

/* A page that Linux before 5.11 charges to a cgroup can't be mapped: the module charges nobody. */
static bool kernel_charges(void)
{
	unsigned int major = 0, minor = 0;
	struct utsname name;

	uname(&name);
	sscanf(name.release, "%u.%u", &major, &minor);
	return major > 5 || (major == 5 && minor >= 11);
}

TEST_F(cgroup, pays_for_rings_and_tables)
{
	struct kbarman_configure c = of_one_cpu(16 * MIB);
	uint64_t before = cgroup_number("memory.current", "");

	if (!kernel_charges())
		SKIP(return, "this kernel can't charge what is mapped");
	c.max_maps = 65536;
	ASSERT_EQ(0, configure(self->fd, c));
	EXPECT_LE(before + 16 * MIB + c.max_maps * sizeof(struct bm_protocol_header_mmap_layout),
		  cgroup_number("memory.current", ""));
	EXPECT_EQ(0, start(self->fd));
}

TEST_F(cgroup, refuses_what_is_beyond_its_limit_and_kills_nobody)
{
	if (!kernel_charges())
		SKIP(return, "this kernel can't charge what is mapped");
	EXPECT_EQ(-ENOMEM, configure(self->fd, of_one_cpu(2 * LIMIT)));
	EXPECT_EQ(0, cgroup_number("memory.events", "oom_kill "));
	EXPECT_GT(LIMIT, cgroup_number("memory.current", ""));
	EXPECT_EQ(0, configure(self->fd, of_one_cpu(LIMIT / 4)));
}

/* Linux would complain in its log when the map goes. */
TEST_F(cgroup, maps_what_it_pays_for)
{
	ASSERT_EQ(0, configure(self->fd, of_one_cpu(256 * KIB)));
	ASSERT_EQ(0, start(self->fd));
	pin(0);
	ping_pong(0, ROUNDS);
	ASSERT_EQ(0, stop(self->fd));
	EXPECT_GOOD(self->fd);
}

TEST_HARNESS_MAIN
