// SPDX-License-Identifier: MIT
/* The module comes and goes. Runs first, and leaves it loaded for the others. */
#include <poll.h>
#include <signal.h>

#include "kselftest_harness.h"
#include "lib.h"

/* No module at the start of each test. */
FIXTURE(load) {};

FIXTURE_SETUP(load)
{
	int error = module_unload();

	ASSERT_TRUE(!error || error == -ENOENT);
}

FIXTURE_TEARDOWN(load)
{
	module_unload();
	module_load();
}

TEST_F(load, module_loads_and_makes_the_device)
{
	ASSERT_EQ(0, module_load());
	EXPECT_EQ(0, access(KBARMAN_DEVICE, R_OK));
}

TEST_F(load, module_unloads_and_takes_the_device_with_it)
{
	ASSERT_EQ(0, module_load());
	ASSERT_EQ(0, module_unload());
	EXPECT_NE(0, access(KBARMAN_DEVICE, F_OK));
	EXPECT_NE(0, access("/sys/module/kbarman", F_OK));
}

TEST_F(load, module_loads_and_unloads_many_times)
{
	int i;

	for (i = 0; i < 20; i++) {
		ASSERT_EQ(0, module_load());
		ASSERT_EQ(0, module_unload());
	}
}

/* Whatever is tried at load must not fall over what other processes do meanwhile. */
TEST_F(load, module_loads_while_programs_map_code)
{
	int i, status, fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	pid_t mapper = fork();

	if (!mapper) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			munmap(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0), 4096);
	}
	ASSERT_LT(0, mapper);
	for (i = 0; i < 5; i++) {
		EXPECT_EQ(0, module_load());
		EXPECT_EQ(0, module_unload());
	}
	EXPECT_EQ(0, waitpid(mapper, &status, WNOHANG));
	kill(mapper, SIGKILL);
	waitpid(mapper, &status, 0);
	close(fd);
}

TEST_F(load, second_load_is_refused)
{
	ASSERT_EQ(0, module_load());
	EXPECT_EQ(-EEXIST, module_load());
}

TEST_F(load, unload_while_open_is_refused)
{
	int fd = device_open();

	EXPECT_EQ(-EAGAIN, module_unload());
	close(fd);
	EXPECT_EQ(0, module_unload());
}

TEST_F(load, unload_while_running_is_refused)
{
	int fd = device_open();

	ASSERT_EQ(0, configure(fd, (struct kbarman_configure) {
		.sources = KBARMAN_SOURCE_SCHED | KBARMAN_SOURCE_IDLE }));
	ASSERT_EQ(0, start(fd));
	EXPECT_EQ(-EAGAIN, module_unload());
	close(fd);
	EXPECT_EQ(0, module_unload());
}

TEST_F(load, unload_while_mapped_is_refused)
{
	const void *map;
	struct kbarman_query q;
	int fd = device_open();

	ASSERT_EQ(0, configure(fd, (struct kbarman_configure) {
		.sources = KBARMAN_SOURCE_SCHED }));
	q = query(fd);
	map = map_cpu(fd, 0);
	close(fd);
	EXPECT_EQ(-EAGAIN, module_unload());
	EXPECT_EQ(BM_PROTOCOL_MAGIC_BYTES, capture_header(map)->magic_bytes);
	ASSERT_EQ(0, munmap((void *)map, q.map_bytes));
	EXPECT_EQ(0, module_unload());
}

/* ---- unload as a race ---- */

/* Open the device, do what there is to be done with it, close it, and rest; until killed. */
static void __attribute__((noreturn)) use_device(unsigned int who)
{
	struct kbarman_configure c = {
		.sources = KBARMAN_SOURCE_SCHED | KBARMAN_SOURCE_IDLE, .ring_bytes = 64 * KIB,
		.max_tasks = 64, .max_maps = 64, .max_strings = 4096 };
	struct kbarman_query q;
	struct pollfd p;
	void *map;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;; who++) {
		/* where calls are slow, so that nobody has it open now and then */
		usleep((1000 + who * 7919 % 20000) * SLOWNESS);
		p = (struct pollfd) { .events = POLLIN, .fd = open(KBARMAN_DEVICE,
			(who & 3 ? O_RDONLY : O_WRONLY) | O_CLOEXEC) };
		if (p.fd < 0)
			continue;
		q = (struct kbarman_query) { .size = sizeof(q) };
		map = MAP_FAILED;
		/* the end of a session that ran waits for all CPUs */
		if (!configure(p.fd, c) && who % 16 == 1)
			start(p.fd);
		if (!call(p.fd, KBARMAN_QUERY, &q) && q.map_bytes)
			map = mmap(NULL, q.map_bytes, PROT_READ, MAP_SHARED, p.fd, 0);
		poll(&p, 1, 0);
		close(p.fd);
		/* what is mapped is there, whoever wanted to unload it meanwhile */
		if (map != MAP_FAILED) {
			(void)*(volatile const char *)capture_store(map);
			munmap(map, q.map_bytes);
		}
	}
}

/* That a call finds the module gone, or going, is all that may happen. KBARMAN_UNLOADS: how
 * often it is to go; that somebody holds it has to be seen, too. */
TEST_F_TIMEOUT(load, unload_is_never_in_the_middle_of_a_call, 300 * SLOWNESS)
{
	unsigned int wanted = getenv("KBARMAN_UNLOADS") ? atoi(getenv("KBARMAN_UNLOADS")) :
			      SLOWNESS > 1 ? 4 : 20;
	unsigned int unloaded = 0, refused = 0, i;
	pid_t users[3];
	int error;

	for (i = 0; i < 3; i++) {
		users[i] = fork();
		ASSERT_LE(0, users[i]);
		if (!users[i])
			use_device(i);
	}
	while (unloaded < wanted || !refused) {
		if (access("/sys/module/kbarman", F_OK)) {
			ASSERT_EQ(0, module_load());
		}
		usleep(500 * ((unloaded + refused) % 8));
		error = module_unload();
		ASSERT_TRUE(!error || error == -EAGAIN)
			TH_LOG("errno %d", -error);
		unloaded += !error;
		refused += !!error;
	}
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(0, waitpid(users[i], NULL, WNOHANG));
		kill(users[i], SIGKILL);
		ASSERT_EQ(users[i], waitpid(users[i], NULL, 0));
	}
	error = module_unload();
	EXPECT_TRUE(!error || error == -ENOENT);
	TH_LOG("%u times it went, %u times it was held", unloaded, refused);
}

TEST_F(load, unload_after_a_session_of_everything)
{
	int fd = device_open();

	ASSERT_EQ(0, configure(fd, (struct kbarman_configure) {
		.sources = KBARMAN_SOURCE_SCHED | KBARMAN_SOURCE_IDLE | KBARMAN_SOURCE_MAPS }));
	ASSERT_EQ(0, start(fd));
	ping_pong(0, 100);
	ASSERT_EQ(0, stop(fd));
	close(fd);
	EXPECT_EQ(0, module_unload());
}

TEST_HARNESS_MAIN
