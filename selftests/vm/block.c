// SPDX-License-Identifier: MIT
/* Requests to block devices: those to a loop device, whose disk is memory. */
#include <linux/loop.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "kselftest_harness.h"
#include "ended.h"

#define BYTES	(64 * 4096)
#define ROUNDS	32
#define BLOCK	4096
#define SECTORS	(BLOCK / 512)

static const struct kbarman_configure block = {
	.sources = KBARMAN_SOURCE_BLOCK, .ring_bytes = 4 * MIB };

static struct {
	char path[32];
	uint32_t device;	/* as records have it */
	int memory;		/* of which the disk is */
} disk;

FIXTURE(block)
{
	int fd;
	int go[2];			/* a pipe: the program begins when a byte comes */
	int loop;
	struct ended_list requests;
};

FIXTURE_SETUP(block)
{
	int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC), number;
	struct stat stat;

	self->fd = device_open_free();
	if (query(self->fd).absent & KBARMAN_SOURCE_BLOCK)
		skip_test();
	if (control < 0)
		skip_test();
	number = ioctl(control, LOOP_CTL_GET_FREE);
	ASSERT_LE(0, number);
	close(control);
	snprintf(disk.path, sizeof(disk.path), "/dev/loop%d", number);
	self->loop = open(disk.path, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, self->loop);
	disk.memory = memfd_create("disk", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	ASSERT_EQ(0, ftruncate(disk.memory, BYTES));
	ASSERT_EQ(0, ioctl(self->loop, LOOP_SET_FD, disk.memory));
	ASSERT_EQ(0, fstat(self->loop, &stat));
	disk.device = major(stat.st_rdev) << 20 | minor(stat.st_rdev);
	ASSERT_EQ(0, pipe2(self->go, O_CLOEXEC));
}

FIXTURE_TEARDOWN(block)
{
	free(self->requests.all);
	ioctl(self->loop, LOOP_CLR_FD);
	close(self->loop);
	close(disk.memory);
	close(self->fd);
}

static int open_disk(char **buffer)
{
	int fd = open(disk.path, O_RDWR | O_DIRECT | O_CLOEXEC);

	if (fd < 0 || posix_memalign((void **)buffer, BLOCK, BLOCK))
		_exit(2);
	return fd;
}

static void read_blocks(void)
{
	char *buffer;
	int fd = open_disk(&buffer);

	for (unsigned int i = 0; i < ROUNDS; i++)
		if (pread(fd, buffer, BLOCK, i * BLOCK) != BLOCK)
			_exit(3);
}

static void write_blocks(void)
{
	char *buffer;
	int fd = open_disk(&buffer);

	memset(buffer, 1, BLOCK);
	for (unsigned int i = 0; i < ROUNDS; i++)
		if (pwrite(fd, buffer, BLOCK, i * BLOCK) != BLOCK || fsync(fd))
			_exit(3);
}

static void write_in_vain(void)
{
	char *buffer;
	int fd = open_disk(&buffer);

	for (unsigned int i = 0; i < ROUNDS; i++)
		if (pwrite(fd, buffer, BLOCK, i * BLOCK) >= 0)
			_exit(3);
}

static void record(struct __test_metadata *_metadata, FIXTURE_DATA(block) *self, void (*program)(void),
		   pid_t *child)
{
	*child = program_begin(self->go[0], program);
	ASSERT_EQ(0, configure(self->fd, block));
	ASSERT_EQ(0, start(self->fd));
	ASSERT_EQ(0, program_end(self->go[1], *child));
	ASSERT_EQ(0, stop(self->fd));
	ASSERT_EQ(0, lost_records((struct kbarman_stats[]){ stats(self->fd, KBARMAN_CPU_ALL) }));
	self->requests = ended_of(self->fd, BM_KBARMAN_BLOCK, 0);
}

static bool is_of_disk(const struct bm_kbarman_block *request, unsigned int operation, uint64_t sector)
{
	return request->device == disk.device && request->sector == sector &&
	       (request->detail.cpu & BM_KBARMAN_BLOCK_OPERATION) == operation;
}

/* The requests that @task gave to the disk for the blocks of a program, of @operation. */
static unsigned int count_of(const struct ended_list *requests, uint32_t task, unsigned int operation, bool failed)
{
	unsigned int i, nr = 0;
	size_t k;

	for (i = 0; i < ROUNDS; i++)
		for (k = 0; k < requests->nr; k++) {
			const struct bm_kbarman_block *request = &requests->all[k].block;

			nr += is_of_disk(request, operation, i * SECTORS) && request->bytes == BLOCK &&
			      request->detail.id == task && request->begin && request->begin <= requests->all[k].end &&
			      (request->result < 0) == failed;
		}
	return nr;
}

TEST_F(block, each_request_is_recorded_with_the_task_that_made_it)
{
	pid_t child;

	record(_metadata, self, read_blocks, &child);
	EXPECT_EQ(ROUNDS, count_of(&self->requests, child, 0, false));
	EXPECT_EQ(0, count_of(&self->requests, child, 1, false));
}

TEST_F(block, writes_and_flushes_are_told_apart)
{
	unsigned int flushes = 0;
	pid_t child;
	size_t i;

	record(_metadata, self, write_blocks, &child);
	EXPECT_EQ(ROUNDS, count_of(&self->requests, child, 1, false));
	for (i = 0; i < self->requests.nr; i++)
		flushes += is_of_disk(&self->requests.all[i].block, 2, self->requests.all[i].block.sector);
	EXPECT_LE(ROUNDS, flushes);
}

TEST_F(block, a_request_that_fails_has_its_error)
{
	pid_t child;

	ASSERT_EQ(0, fcntl(disk.memory, F_ADD_SEALS, F_SEAL_WRITE));
	record(_metadata, self, write_in_vain, &child);
	EXPECT_EQ(ROUNDS, count_of(&self->requests, child, 1, true));
}

TEST_F(block, they_are_as_many_as_perf_counts)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT, .size = sizeof(attr), .config = tracepoint_id("block/block_rq_complete") };
	uint32_t cpu, nr_cpus = query(self->fd).nr_cpus;
	uint64_t counted = 0, value;
	int counters[64];
	pid_t child;

	ASSERT_GE(64, nr_cpus);
	for (cpu = 0; cpu < nr_cpus; cpu++) {
		counters[cpu] = syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
		ASSERT_LE(0, counters[cpu]);
	}
	record(_metadata, self, write_blocks, &child);
	for (cpu = 0; cpu < nr_cpus; cpu++) {
		ASSERT_EQ(sizeof(value), read(counters[cpu], &value, sizeof(value)));
		counted += value;
		close(counters[cpu]);
	}
	EXPECT_EQ(counted, self->requests.nr);
}

TEST_F(block, only_those_of_chosen_tasks_are_recorded)
{
	pid_t child = program_begin(self->go[0], read_blocks), other = program_begin(self->go[0], read_blocks);
	int status;
	size_t i;

	ASSERT_EQ(0, configure_chosen(self->fd, block, child, 0));
	ASSERT_EQ(0, start(self->fd));
	ASSERT_EQ(2, write(self->go[1], "12", 2));
	ASSERT_EQ(child, waitpid(child, &status, 0));
	ASSERT_EQ(0, status);
	ASSERT_EQ(other, waitpid(other, &status, 0));
	ASSERT_EQ(0, stop(self->fd));
	self->requests = ended_of(self->fd, BM_KBARMAN_BLOCK, 0);
	EXPECT_EQ(ROUNDS, count_of(&self->requests, child, 0, false));
	for (i = 0; i < self->requests.nr; i++)
		EXPECT_EQ((uint32_t)child, self->requests.all[i].block.detail.id);
}

TEST_HARNESS_MAIN
