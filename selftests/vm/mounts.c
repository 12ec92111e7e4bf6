// SPDX-License-Identifier: MIT
/*
 * Mounts of others: a recording keeps none of them busy, and the name of a mapped file is its path
 * inside its mount, however short the mapping lived.
 */
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "burn.h"
#include "kselftest_harness.h"
#include "program.h"

#define PLACE	"/mounts-test"
#define STORMS	2

/* A program that ends: long enough for a sample. */
static void __attribute__((constructor)) end_if_wanted(void)
{
	if (!getenv("KBARMAN_MOUNTS_END"))
		return;
	for (int i = 0; i < 20; i++)
		burn();
	_exit(0);
}

/* $ROUNDS, which `make soak` sets. */
static int rounds(void)
{
	const char *wanted = getenv("ROUNDS");

	return wanted ? atoi(wanted) : 50 / SLOWNESS + 10;
}

FIXTURE(mounts)
{
	int fd;
	const void *map;
};

FIXTURE_SETUP(mounts)
{
	self->fd = device_open_free();
	ASSERT_EQ(0, configure(self->fd, sampling(&cpu_clock, 1)));
	self->map = map_cpu(self->fd, 0);
	if (mkdir(PLACE, 0700) && errno != EEXIST)
		lost("no place for a mount");
}

FIXTURE_TEARDOWN(mounts)
{
	close(self->fd);
	rmdir(PLACE);
}

static void mount_place(void)
{
	if (mount("place", PLACE, "tmpfs", 0, NULL))
		lost("no file system can be mounted: %s", strerror(errno));
}

/* Map code of a file and take it away, for ever. */
static pid_t storm(void)
{
	pid_t child = fork();
	int exe;

	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	exe = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	for (;;) {
		void *code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, exe, 0);

		if (code == MAP_FAILED)
			_exit(1);
		munmap(code, 4096);
	}
}

static void begin_storms(pid_t *pids)
{
	for (int i = 0; i < STORMS; i++)
		pids[i] = storm();
}

static void end_storms(const pid_t *pids)
{
	for (int i = 0; i < STORMS; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
}

/* Returns whether it was refused at first. */
static bool unmount_place(void)
{
	bool refused = false;

	while (umount(PLACE)) {
		if (errno != EBUSY)
			lost("umount: %s", strerror(errno));
		refused = true;
		usleep(1000);
	}
	return refused;
}

static bool round_of_a_mapping(void)
{
	void *code;
	int file;

	mount_place();
	file = open(PLACE "/code", O_RDWR | O_CREAT | O_CLOEXEC, 0700);
	if (file < 0 || ftruncate(file, 4096))
		lost("no file");
	code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
	if (code == MAP_FAILED)
		lost("no mapping");
	munmap(code, 4096);
	close(file);
	return unmount_place();
}

TEST_F_TIMEOUT(mounts, umount_is_not_refused_after_a_mapping, 3600)
{
	unsigned int refused = 0;
	pid_t storms[STORMS];

	ASSERT_EQ(0, start(self->fd));
	begin_storms(storms);
	for (int i = 0; i < rounds(); i++)
		refused += round_of_a_mapping();
	end_storms(storms);
	ASSERT_EQ(0, stop(self->fd));
	EXPECT_EQ(0, refused);
}

/* A program that is sampled, so that its mappings are looked up, and ends. */
static bool round_of_a_program(void)
{
	int status;
	pid_t child;

	mount_place();
	write_program(PLACE "/program");
	child = fork();
	if (!child) {
		setenv("KBARMAN_MOUNTS_END", "1", 1);
		execl(PLACE "/program", "program", NULL);
		_exit(1);
	}
	if (waitpid(child, &status, 0) != child || status)
		lost("the program did not run");
	return unmount_place();
}

TEST_F_TIMEOUT(mounts, umount_is_not_refused_after_a_program, 3600)
{
	unsigned int refused = 0;
	pid_t storms[STORMS];

	ASSERT_EQ(0, start(self->fd));
	begin_storms(storms);
	for (int i = 0; i < rounds() / 6; i++)
		refused += round_of_a_program();
	end_storms(storms);
	ASSERT_EQ(0, stop(self->fd));
	EXPECT_EQ(0, refused);
}

/* The name of what the process had at @code. */
static const char *name_at(const void *map, const void *code)
{
	const struct bm_protocol_header_mmap_layout *rows = capture_maps(map);

	for (uint32_t i = 0; i < *capture_map_count(map); i++)
		if (rows[i].task_id == (uint32_t)getpid() &&
		    rows[i].base_address == (uintptr_t)code)
			return capture_strings(map) + rows[i].image_ptr;
	return NULL;
}

/* Map @file as code for a moment, at a place of its own. */
static const void *map_for_a_moment(int file)
{
	void *code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);

	if (file < 0 || code == MAP_FAILED)
		lost("no mapping");
	munmap(code, 4096);
	/* Nothing else comes there. */
	if (mmap(code, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != code)
		lost("no place");
	return code;
}

static int new_file(const char *path)
{
	int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0700);

	if (file < 0 || ftruncate(file, 4096))
		lost("no file");
	return file;
}

TEST_F(mounts, a_mapping_of_a_moment_has_its_path_inside_its_mount)
{
	const void *code[6];
	char longest[4096] = "";
	int file, deep;

	if (!(query(self->fd).features & KBARMAN_FEATURE_MAPS))
		SKIP(return, "new mappings are not seen without kprobes");
	pin(0);
	ASSERT_EQ(0, start(self->fd));
	burn_for(self->map, 2);
	mount_place();
	mkdir(PLACE "/folder", 0700);
	file = new_file(PLACE "/folder/code");
	code[0] = map_for_a_moment(file);
	/* A bind mount's path is that of the file system. */
	ASSERT_EQ(0, mkdir(PLACE "/bound", 0700));
	ASSERT_EQ(0, mount(PLACE "/folder", PLACE "/bound", NULL, MS_BIND, NULL));
	close(file);
	file = open(PLACE "/bound/code", O_RDONLY | O_CLOEXEC);
	code[1] = map_for_a_moment(file);
	close(file);
	ASSERT_EQ(0, umount(PLACE "/bound"));
	ASSERT_EQ(0, rename(PLACE "/folder/code", PLACE "/folder/other"));
	file = open(PLACE "/folder/other", O_RDONLY | O_CLOEXEC);
	code[2] = map_for_a_moment(file);
	ASSERT_EQ(0, unlink(PLACE "/folder/other"));
	code[3] = map_for_a_moment(file);
	close(file);
	file = memfd_create("memory", MFD_CLOEXEC);
	ASSERT_EQ(0, ftruncate(file, 4096));
	code[4] = map_for_a_moment(file);
	close(file);
	/* As long as there can be. */
	deep = open(PLACE, O_PATH | O_CLOEXEC);
	for (int i = 0; i < 15; i++) {
		char name[256];
		int next;

		snprintf(name, sizeof(name), "%0250d", i);
		strcat(strcat(longest, "/"), name);
		if (mkdirat(deep, name, 0700))
			lost("no folder");
		next = openat(deep, name, O_PATH | O_CLOEXEC);
		close(deep);
		deep = next;
	}
	file = openat(deep, "file", O_RDWR | O_CREAT | O_CLOEXEC, 0700);
	strcat(longest, "/file");
	code[5] = map_for_a_moment(file);
	close(file);
	close(deep);
	unmount_place();
	ASSERT_EQ(0, stop(self->fd));
	EXPECT_STREQ("/folder/code", name_at(self->map, code[0]));
	EXPECT_STREQ("/folder/code", name_at(self->map, code[1]));
	EXPECT_STREQ("/folder/other", name_at(self->map, code[2]));
	EXPECT_STREQ("/folder/other (deleted)", name_at(self->map, code[3]));
	EXPECT_STREQ("/memfd:memory (deleted)", name_at(self->map, code[4]));
	EXPECT_STREQ(longest, name_at(self->map, code[5]));
}

TEST_HARNESS_MAIN
