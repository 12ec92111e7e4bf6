// SPDX-License-Identifier: MIT
/*
 * A machine that could have far more CPUs than it has: boot with possible_cpus=64. Rings are made
 * for those that are there.
 */
#include "kselftest_harness.h"
#include "lib.h"

#define RING	(64 * MIB)

static uint64_t available_bytes(void)
{
	unsigned long long kib = 0;
	char line[128];
	FILE *file = fopen("/proc/meminfo", "r");

	while (file && fgets(line, sizeof(line), file) &&
	       sscanf(line, "MemAvailable: %llu", &kib) != 1)
		;
	if (file)
		fclose(file);
	if (!kib)
		lost("/proc/meminfo does not tell what is available");
	return kib * KIB;
}

TEST(cpus_that_are_not_there_need_no_room)
{
	struct kbarman_configure c = { .sources = KBARMAN_SOURCE_SCHED, .ring_bytes = RING };
	int fd = device_open_free();
	uint32_t possible = query(fd).nr_cpus, there = sysconf(_SC_NPROCESSORS_ONLN);

	if (possible * RING / 3 < available_bytes() || there * RING * 2 > available_bytes())
		SKIP(return, "%u CPUs of %u possible ones decide nothing here", there, possible);
	ASSERT_EQ(0, configure(fd, c));
	ASSERT_EQ(0, start(fd));
	EXPECT_EQ(there, stats(fd, KBARMAN_CPU_ALL).online);
	EXPECT_EQ(0, stop(fd));
	close(fd);
}

TEST_HARNESS_MAIN
