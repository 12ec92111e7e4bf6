// SPDX-License-Identifier: MIT
/*
 * CPUs that a machine gets while it runs, as hypervisors give them: one behind CONFIGURE, one while
 * the session records. plug.py adds them when a file in $PLUG asks for it.
 */
#include "kselftest_harness.h"
#include "lib.h"

#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT	600

#define ROUNDS	20

static void wait_for_cpu(uint32_t cpu)
{
	char path[256], online[64];
	int fd;

	snprintf(path, sizeof(path), "%s/cpu%u", getenv("PLUG"), cpu);
	close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	snprintf(online, sizeof(online), "/sys/devices/system/cpu/cpu%u/online", cpu);
	while ((fd = open(online, O_WRONLY | O_CLOEXEC)) < 0)
		usleep(10000);
	while (!cpu_online(cpu))
		if (write(fd, "1", 1) != 1)
			usleep(10000);
	close(fd);
}

TEST(cpus_that_are_added_are_recorded)
{
	int fd = device_open_free();

	ASSERT_EQ(0, configure(fd, (struct kbarman_configure) {
		.sources = KBARMAN_SOURCE_SCHED, .ring_bytes = 256 * KIB }));
	ASSERT_FALSE(cpu_online(2));
	wait_for_cpu(2);
	ASSERT_EQ(0, start(fd));
	wait_for_cpu(3);
	ping_pong(2, ROUNDS);
	ping_pong(3, ROUNDS);
	ASSERT_EQ(0, stop(fd));
	EXPECT_LE(ROUNDS, records_of(fd, 2, BM_RECORD_TASK_SWITCH));
	EXPECT_LE(ROUNDS, records_of(fd, 3, BM_RECORD_TASK_SWITCH));
	close(fd);
}

TEST_HARNESS_MAIN
