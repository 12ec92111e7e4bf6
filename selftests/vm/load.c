// SPDX-License-Identifier: MIT
/* The module comes and goes. Runs first, and leaves it loaded for the others. */
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
