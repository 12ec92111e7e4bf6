// SPDX-License-Identifier: MIT
/* Who may open the device, and who may see addresses of the kernel. */
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <sys/stat.h>

#include "kselftest_harness.h"
#include "lib.h"

#ifndef CAP_PERFMON
#define CAP_PERFMON	38
#endif

#define BIT64(n)	(1ULL << (n))

extern const char __executable_start[], etext[];	/* of this program's code */

/* Be root still, but with no other capabilities than these. */
static void keep_only(uint64_t capabilities)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = {
		{ .effective = capabilities, .permitted = capabilities },
		{ .effective = capabilities >> 32, .permitted = capabilities >> 32 } };

	if (syscall(SYS_capset, &header, data))
		lost("capabilities can't be given up");
}

static int try_open(void)
{
	int fd = open(KBARMAN_DEVICE, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

FIXTURE(permission) {};

FIXTURE_SETUP(permission)
{
	module_want();
}

FIXTURE_TEARDOWN(permission)
{
}

TEST_F(permission, device_is_roots_alone)
{
	struct stat s;

	ASSERT_EQ(0, stat(KBARMAN_DEVICE, &s));
	EXPECT_EQ(S_IFCHR | 0600, s.st_mode);
	EXPECT_EQ(0, s.st_uid);
}

TEST_F(permission, nobody_else_gets_in)
{
	ASSERT_EQ(0, setgid(65534));
	ASSERT_EQ(0, setuid(65534));
	EXPECT_EQ(-EACCES, try_open());
}

TEST_F(permission, root_without_capabilities_does_not_get_in)
{
	keep_only(0);
	EXPECT_EQ(-EPERM, try_open());
}

TEST_F(permission, other_capabilities_do_not_help)
{
	keep_only(~(BIT64(CAP_PERFMON) | BIT64(CAP_SYS_ADMIN)) & (BIT64(40) - 1));
	EXPECT_EQ(-EPERM, try_open());
}

TEST_F(permission, perfmon_is_enough)
{
	int fd;

	keep_only(BIT64(CAP_PERFMON));
	fd = try_open();
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, configure(fd, (struct kbarman_configure) {
		.sources = KBARMAN_SOURCE_SCHED }));
	EXPECT_EQ(0, start(fd));
}

TEST_F(permission, sys_admin_is_enough)
{
	keep_only(BIT64(CAP_SYS_ADMIN));
	EXPECT_LE(0, try_open());
}

/* ---- without CAP_SYSLOG ---- */

static const struct kbarman_event cpu_clock = {
	.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK, .name = "cpu-clock" };

static const struct kbarman_configure sampling = {
	.sources = KBARMAN_SOURCE_PMU | KBARMAN_SOURCE_MAPS, .sample = 1000000, .nr_events = 1 };

/* It was another one who had the right: what counts is who opened the descriptor. */
TEST_F(permission, kernel_places_are_zero_without_syslog)
{
	struct kbarman_configure c = sampling;
	static char bytes[1 << 16];
	unsigned int zero = 0;
	const union record *r;
	struct walk walk;
	const void *map;
	int fd, zeroes;

	pin(0);
	zeroes = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	keep_only(BIT64(CAP_PERFMON) | BIT64(CAP_SYS_ADMIN));
	fd = try_open();
	ASSERT_LE(0, fd);
	c.events_ptr = (uintptr_t)&cpu_clock;
	ASSERT_EQ(0, configure(fd, c));
	ASSERT_EQ(0, start(fd));
	map = map_cpu(fd, 0);
	while (!zero) {
		bm_uintptr pc;

		ASSERT_EQ(sizeof(bytes), read(zeroes, bytes, sizeof(bytes)));
		walk = walk_begin(map);
		while ((r = walk_next(&walk))) {
			if (r->header.record_type != BM_RECORD_SAMPLE_WITH_PC)
				continue;
			memcpy(&pc, &r->sample + 1, sizeof(pc));
			zero += !pc;
			ASSERT_FALSE(is_kernel_address(pc));
			if (pc && r->sample.task_id == (uint32_t)thread_id()) {
				ASSERT_LE((uintptr_t)__executable_start, pc);
				ASSERT_GT((uintptr_t)etext, pc);
			}
		}
	}
}

TEST_F(permission, kernel_rows_are_refused_without_syslog)
{
	struct kbarman_map_row row = {
		.image_length = 6, .base_address = ~0xfffffULL, .length = 0x1000,
		.image_ptr = (uintptr_t)"kernel" };
	struct kbarman_add_maps m = { .size = sizeof(m), .count = 1, .rows_ptr = (uintptr_t)&row };
	int fd;

	keep_only(BIT64(CAP_PERFMON));
	fd = try_open();
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, configure(fd, (struct kbarman_configure) {
		.sources = KBARMAN_SOURCE_SCHED }));
	EXPECT_EQ(-EPERM, call(fd, KBARMAN_ADD_MAPS, &m));
	row.task_id = 4711;
	row.base_address = 0x400000;
	m.count = 1;
	EXPECT_EQ(0, call(fd, KBARMAN_ADD_MAPS, &m));
	EXPECT_EQ(1, stats(fd, KBARMAN_CPU_ALL).maps);
}

TEST_F(permission, kernel_rows_are_accepted_with_syslog)
{
	struct kbarman_map_row row = {
		.image_length = 6, .base_address = ~0xfffffULL, .length = 0x1000,
		.image_ptr = (uintptr_t)"kernel" };
	struct kbarman_add_maps m = { .size = sizeof(m), .count = 1, .rows_ptr = (uintptr_t)&row };
	int fd = device_open();

	ASSERT_EQ(0, configure(fd, (struct kbarman_configure) {
		.sources = KBARMAN_SOURCE_SCHED }));
	EXPECT_EQ(0, call(fd, KBARMAN_ADD_MAPS, &m));
	close(fd);
}

TEST_HARNESS_MAIN
