// SPDX-License-Identifier: MIT
/* Who may open the device, and who may see addresses of the kernel. */
#include <sched.h>
#include <sys/stat.h>

#include "kselftest_harness.h"
#include "lib.h"

extern const char __executable_start[], etext[];	/* of this program's code */

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
	keep_only(~(CAPABILITY(CAP_PERFMON) | CAPABILITY(CAP_SYS_ADMIN)) & ALL_CAPABILITIES);
	EXPECT_EQ(-EPERM, try_open());
}

TEST_F(permission, perfmon_is_enough)
{
	int fd;

	keep_only(CAPABILITY(CAP_PERFMON));
	fd = try_open();
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, configure(fd, (struct kbarman_configure) {
		.sources = KBARMAN_SOURCE_SCHED }));
	EXPECT_EQ(0, start(fd));
}

TEST_F(permission, sys_admin_is_enough)
{
	keep_only(CAPABILITY(CAP_SYS_ADMIN));
	EXPECT_LE(0, try_open());
}

/* The status of a child that does this. */
static int in_a_child(int (*act)(unsigned int), unsigned int argument)
{
	pid_t child = fork();
	int status;

	if (!child)
		_exit(act(argument));
	if (child < 0 || waitpid(child, &status, 0) != child)
		lost("no child");
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int gets_in_with_only(unsigned int capability)
{
	keep_only(CAPABILITY(capability));
	return try_open() >= 0;
}

TEST_F(permission, each_capability_alone_lets_in_if_it_is_one_of_the_two)
{
	for (unsigned int i = 0; i <= last_capability(); i++) {
		EXPECT_EQ(i == CAP_PERFMON || i == CAP_SYS_ADMIN, in_a_child(gets_in_with_only, i))
			TH_LOG("capability %u", i);
	}
}

/* All that a recorder does; 0 if it can. */
static int records_with(uint64_t capabilities)
{
	const void *map;
	int fd;

	keep_only(capabilities);
	fd = try_open();
	if (fd < 0 || configure(fd, (struct kbarman_configure) { .sources = KBARMAN_SOURCE_SCHED,
								 .ring_bytes = MIB }))
		return 1;
	map = map_cpu(fd, 0);
	if (start(fd) || stop(fd))
		return 2;
	return judge(map, query(fd).map_bytes, 0).fault ? 3 : 0;
}

static int records_without(unsigned int capability)
{
	return records_with(ALL_CAPABILITIES & ~CAPABILITY(capability));
}

static int records_with_only(unsigned int capability)
{
	return records_with(CAPABILITY(capability));
}

/* Either of the two will do: each goes as well, as long as the other is there. */
TEST_F(permission, no_other_capability_is_needed)
{
	for (unsigned int i = 0; i <= last_capability(); i++) {
		EXPECT_EQ(0, in_a_child(records_without, i))
			TH_LOG("without capability %u", i);
	}
	EXPECT_EQ(0, in_a_child(records_with_only, CAP_PERFMON));
	EXPECT_EQ(0, in_a_child(records_with_only, CAP_SYS_ADMIN));
}

/* ---- in a user namespace ---- */

/* Root in a namespace of its own, who was @user before: all capabilities, and none outside. */
static void become_root_of_a_namespace(uid_t user)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];
	char map[32];

	if (user && (setgid(user) || setuid(user)))
		lost("no way to become user %u", user);
	/* or its files in /proc would be root's */
	prctl(PR_SET_DUMPABLE, 1);
	if (unshare(CLONE_NEWUSER))
		lost("no user namespace");
	snprintf(map, sizeof(map), "0 %u 1", user);
	write_file("/proc/self/uid_map", map);
	if (getuid() || syscall(SYS_capget, &header, data) ||
	    !(data[1].effective & 1U << (CAP_PERFMON - 32)) ||
	    !(data[0].effective & 1U << CAP_SYS_ADMIN))
		lost("not root of the namespace");
}

static void want_namespaces(void)
{
	char allowed = '1';
	int fd = open("/proc/sys/user/max_user_namespaces", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, &allowed, 1) != 1 || allowed == '0') {
		printf("#      SKIP      this kernel has no user namespaces\n");
		skip_test();
	}
	close(fd);
}

TEST_F(permission, rights_in_a_namespace_of_roots_own_are_none)
{
	want_namespaces();
	become_root_of_a_namespace(0);
	EXPECT_EQ(-EPERM, try_open());
	EXPECT_EQ(-1, open(KBARMAN_DEVICE, O_RDWR | O_CLOEXEC));
	EXPECT_EQ(EPERM, errno);
}

TEST_F(permission, rights_in_a_users_own_namespace_are_none)
{
	want_namespaces();
	become_root_of_a_namespace(65534);
	EXPECT_EQ(-EACCES, try_open());
}

static int error_in_a_namespace(unsigned int user)
{
	become_root_of_a_namespace(user);
	return -try_open();
}

static int error_of_user(unsigned int user)
{
	if (setgid(user) || setuid(user))
		return 0;
	return -try_open();
}

TEST_F(permission, mode_of_the_file_is_not_enough_in_a_namespace_either)
{
	int error;

	want_namespaces();
	ASSERT_EQ(0, chmod(KBARMAN_DEVICE, 0666));
	error = in_a_child(error_in_a_namespace, 65534);
	ASSERT_EQ(0, chmod(KBARMAN_DEVICE, 0600));
	EXPECT_EQ(EPERM, error);
}

/* ---- what perf lets its users do ---- */

TEST_F(permission, generosity_of_perf_lets_nobody_in)
{
	char before[16];
	int error;

	read_file(PARANOID, before, sizeof(before));
	write_file(PARANOID, "-1");
	ASSERT_EQ(0, chmod(KBARMAN_DEVICE, 0666));
	error = in_a_child(error_of_user, 65534);
	ASSERT_EQ(0, chmod(KBARMAN_DEVICE, 0600));
	write_file(PARANOID, before);
	EXPECT_EQ(EPERM, error);
}

TEST_F(permission, paranoia_of_perf_keeps_nobody_out_who_may)
{
	char before[16];
	int in;

	read_file(PARANOID, before, sizeof(before));
	write_file(PARANOID, "2");
	in = in_a_child(gets_in_with_only, CAP_PERFMON);
	write_file(PARANOID, before);
	EXPECT_EQ(1, in);
}

/* ---- without CAP_SYSLOG ---- */

static const struct kbarman_configure sampling = {
	.sources = KBARMAN_SOURCE_PMU | KBARMAN_SOURCE_MAPS, .nr_events = 1 };

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
	keep_only(CAPABILITY(CAP_PERFMON) | CAPABILITY(CAP_SYS_ADMIN));
	fd = try_open();
	ASSERT_LE(0, fd);
	c.events_ptr = sampled(&cpu_clock, 1, 1000000);
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
	struct kbarman_add_maps m = { .size = sizeof(m), .count = 1,
				      .row_bytes = sizeof(row), .rows_ptr = (uintptr_t)&row };
	struct kbarman_add_symbols a = { .size = sizeof(a), .bytes_ptr = (uintptr_t)&row, .bytes = 1 };
	int fd;

	keep_only(CAPABILITY(CAP_PERFMON));
	fd = try_open();
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, configure(fd, (struct kbarman_configure) {
		.sources = KBARMAN_SOURCE_SCHED }));
	EXPECT_EQ(-EACCES, call(fd, KBARMAN_ADD_MAPS, &m));
	EXPECT_EQ(-EPERM, call(fd, KBARMAN_ADD_SYMBOLS, &a));
	row.task_id = 4711;
	row.base_address = 0x400000;
	m.count = 1;
	EXPECT_EQ(0, call(fd, KBARMAN_ADD_MAPS, &m));
	EXPECT_EQ(1, stats(fd, KBARMAN_CPU_ALL).maps);
}

static const struct kbarman_configure switches = {
	.sources = KBARMAN_SOURCE_SCHED, .ring_bytes = 64 * KIB };

/* What counts is who opened the descriptor, not who uses it. */
TEST_F(permission, rights_are_those_of_the_opener)
{
	struct kbarman_map_row row = {
		.image_length = 6, .base_address = ~0xfffffULL, .length = 0x1000,
		.image_ptr = (uintptr_t)"kernel" };
	struct kbarman_add_maps m = { .size = sizeof(m), .count = 1,
				      .row_bytes = sizeof(row), .rows_ptr = (uintptr_t)&row };
	int fd;

	set_capabilities(ALL_CAPABILITIES & ~CAPABILITY(CAP_SYSLOG), ALL_CAPABILITIES);
	fd = device_open_free();
	set_capabilities(ALL_CAPABILITIES, ALL_CAPABILITIES);
	ASSERT_EQ(0, configure(fd, switches));
	EXPECT_EQ(-EACCES, call(fd, KBARMAN_ADD_MAPS, &m));
	close(fd);

	fd = device_open_free();
	ASSERT_EQ(0, configure(fd, switches));
	keep_only(0);
	m.count = 1;
	EXPECT_EQ(0, call(fd, KBARMAN_ADD_MAPS, &m));
}

/* Whoever was given one can't make a better one of it. */
TEST_F(permission, opening_a_descriptor_again_asks_again)
{
	int all = device_open(), writer = open(KBARMAN_DEVICE, O_WRONLY | O_CLOEXEC), i;
	int given[] = { all, writer };
	char path[32];

	ASSERT_LE(0, writer);
	keep_only(0);
	for (i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", given[i]);
		EXPECT_EQ(-1, open(path, O_RDONLY | O_CLOEXEC));
		EXPECT_EQ(EPERM, errno);
	}
}

static int error_of_mapping(int fd)
{
	struct kbarman_query q = query(fd);

	return try_map(fd, &q, 0) == MAP_FAILED ? -errno : 0;
}

/* A session of somebody who may see them is full of them. */
TEST_F(permission, others_maps_are_refused_without_syslog)
{
	int owner = device_open_free(), other;

	ASSERT_EQ(0, configure(owner, switches));
	set_capabilities(CAPABILITY(CAP_PERFMON), ALL_CAPABILITIES);
	other = try_open();
	ASSERT_LE(0, other);
	set_capabilities(ALL_CAPABILITIES, ALL_CAPABILITIES);
	EXPECT_EQ(-EPERM, error_of_mapping(other));
	EXPECT_EQ(0, error_of_mapping(owner));
	/* what is no address is told */
	EXPECT_EQ(0, stats(other, KBARMAN_CPU_ALL).written);
}

TEST_F(permission, maps_without_kernel_addresses_are_anybodys_who_may_open)
{
	int owner, other;

	set_capabilities(CAPABILITY(CAP_PERFMON), ALL_CAPABILITIES);
	owner = device_open_free();
	other = try_open();
	ASSERT_EQ(0, configure(owner, switches));
	EXPECT_EQ(0, error_of_mapping(owner));
	EXPECT_EQ(0, error_of_mapping(other));
}

TEST_F(permission, kernel_rows_are_accepted_with_syslog)
{
	struct kbarman_map_row row = {
		.image_length = 6, .base_address = ~0xfffffULL, .length = 0x1000,
		.image_ptr = (uintptr_t)"kernel" };
	struct kbarman_add_maps m = { .size = sizeof(m), .count = 1,
				      .row_bytes = sizeof(row), .rows_ptr = (uintptr_t)&row };
	int fd = device_open();

	ASSERT_EQ(0, configure(fd, (struct kbarman_configure) {
		.sources = KBARMAN_SOURCE_SCHED }));
	EXPECT_EQ(0, call(fd, KBARMAN_ADD_MAPS, &m));
	close(fd);
}

TEST_HARNESS_MAIN
