// SPDX-License-Identifier: MIT
/* What can be mapped, what a map shows, and that nothing can be done to it. */
#include <linux/io_uring.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#include "kselftest_harness.h"
#include "lib.h"

FIXTURE(map)
{
	int fd;
	struct kbarman_query q;
	char *map;	/* of CPU 0 */
};

static const struct kbarman_configure small = {
	.sources = KBARMAN_SOURCE_SCHED | KBARMAN_SOURCE_IDLE, .ring_bytes = 64 * KIB,
	.target_name = "first" };

FIXTURE_SETUP(map)
{
	self->fd = device_open_free();
	ASSERT_EQ(0, configure(self->fd, small));
	self->q = query(self->fd);
	self->map = (char *)map_cpu(self->fd, 0);
}

FIXTURE_TEARDOWN(map)
{
	close(self->fd);
}

/* ---- what mmap() refuses ---- */

static int refusal(void *map)
{
	return map == MAP_FAILED ? -errno : 0;
}

TEST_F(map, nothing_to_map_before_configure)
{
	int error;

	close(self->fd);
	munmap(self->map, self->q.map_bytes);
	self->fd = device_open();
	error = refusal(mmap(NULL, self->q.map_bytes, PROT_READ, MAP_SHARED, self->fd, 0));
	EXPECT_EQ(-ENODATA, error);
}

TEST_F(map, other_lengths_are_refused)
{
	size_t page = self->q.page_size, length = self->q.map_bytes;
	size_t lengths[] = { page, length - page, length + page, 2 * length,
			     self->q.header_bytes };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		EXPECT_EQ(-EINVAL, refusal(mmap(NULL, lengths[i], PROT_READ, MAP_SHARED,
						self->fd, 0)))
			TH_LOG("length %zu of %zu", lengths[i], length);
	}
}

TEST_F(map, other_offsets_are_refused)
{
	off_t page = self->q.page_size, stride = self->q.map_stride;
	/* Linux itself refuses those that are no long, with another error. */
	off_t far = sizeof(long) == 8 ? 1LL << 36 : 1LL << 31;
	off_t offsets[] = { page, stride - page, stride + page, stride * self->q.nr_cpus, far };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(offsets); i++) {
		EXPECT_EQ(-EINVAL, refusal(mmap(NULL, self->q.map_bytes, PROT_READ, MAP_SHARED,
						self->fd, offsets[i])))
			TH_LOG("offset 0x%llx", (long long)offsets[i]);
	}
}

TEST_F(map, every_cpu_maps_at_its_stride)
{
	uint32_t cpu;

	for (cpu = 0; cpu < self->q.nr_cpus; cpu++) {
		const void *map = try_map(self->fd, &self->q, cpu);

		ASSERT_NE(MAP_FAILED, map);
		EXPECT_EQ(BM_PROTOCOL_MAGIC_BYTES, capture_header(map)->magic_bytes);
		EXPECT_EQ(self->q.ring_bytes, capture_store(map)->buffer_length);
	}
}

TEST_F(map, writable_is_refused)
{
	int fd = open(KBARMAN_DEVICE, O_RDWR | O_CLOEXEC);
	int prot[] = { PROT_WRITE, PROT_READ | PROT_WRITE };
	unsigned int i;

	ASSERT_LE(0, fd);
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(-EPERM, refusal(mmap(NULL, self->q.map_bytes, prot[i], MAP_SHARED,
					       fd, 0)));
		EXPECT_EQ(-EPERM, refusal(mmap(NULL, self->q.map_bytes, prot[i], MAP_PRIVATE,
					       fd, 0)));
		EXPECT_EQ(-EPERM, refusal(mmap(NULL, self->q.map_bytes, prot[i], MAP_PRIVATE,
					       self->fd, 0)));
		/* Linux itself says so where the descriptor can't write. */
		EXPECT_EQ(-EACCES, refusal(mmap(NULL, self->q.map_bytes, prot[i], MAP_SHARED,
						self->fd, 0)));
	}
	close(fd);
}

TEST_F(map, executable_is_refused)
{
	EXPECT_EQ(-EPERM, refusal(mmap(NULL, self->q.map_bytes, PROT_READ | PROT_EXEC,
				       MAP_SHARED, self->fd, 0)));
	EXPECT_EQ(-EPERM, refusal(mmap(NULL, self->q.map_bytes, PROT_READ | PROT_EXEC,
				       MAP_PRIVATE, self->fd, 0)));
}

TEST_F(map, write_only_descriptor_does_not_map)
{
	int fd = open(KBARMAN_DEVICE, O_WRONLY | O_CLOEXEC);

	ASSERT_LE(0, fd);
	EXPECT_EQ(-EACCES, refusal(mmap(NULL, self->q.map_bytes, PROT_READ, MAP_SHARED, fd, 0)));
	close(fd);
}

/* ---- what can't be done to a map ---- */

FIXTURE(fixed)
{
	int fd;
	size_t length, page;
	char *map;
};

FIXTURE_VARIANT(fixed)
{
	int flags;
};

FIXTURE_VARIANT_ADD(fixed, shared) { .flags = MAP_SHARED };
FIXTURE_VARIANT_ADD(fixed, private) { .flags = MAP_PRIVATE };

FIXTURE_SETUP(fixed)
{
	close(device_open_free());
	/* Writable, so that it is not the descriptor that stands in the way. */
	self->fd = open(KBARMAN_DEVICE, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, configure(self->fd, small));
	self->length = query(self->fd).map_bytes;
	self->page = query(self->fd).page_size;
	self->map = mmap(NULL, self->length, PROT_READ, variant->flags, self->fd, 0);
	ASSERT_NE(MAP_FAILED, self->map);
}

FIXTURE_TEARDOWN(fixed)
{
	close(self->fd);
}

TEST_F(fixed, mprotect_to_writable_is_refused)
{
	EXPECT_EQ(-1, mprotect(self->map, self->length, PROT_READ | PROT_WRITE));
	EXPECT_EQ(EACCES, errno);
	EXPECT_EQ(-1, mprotect(self->map, self->page, PROT_WRITE));
	EXPECT_EQ(-1, mprotect(self->map + self->length - self->page, self->page, PROT_WRITE));
}

TEST_F(fixed, mprotect_to_executable_is_refused)
{
	EXPECT_EQ(-1, mprotect(self->map, self->length, PROT_READ | PROT_EXEC));
	EXPECT_EQ(EACCES, errno);
	EXPECT_EQ(-1, mprotect(self->map, self->page, PROT_EXEC));
}

TEST_F(fixed, mprotect_of_a_part_is_refused)
{
	EXPECT_EQ(-1, mprotect(self->map, self->page, PROT_NONE));
	EXPECT_EQ(-1, mprotect(self->map + self->page, self->page, PROT_NONE));
	EXPECT_EQ(BM_PROTOCOL_MAGIC_BYTES, capture_header(self->map)->magic_bytes);
}

TEST_F(fixed, munmap_of_a_part_is_refused)
{
	EXPECT_EQ(-1, munmap(self->map, self->page));
	EXPECT_EQ(-1, munmap(self->map + self->page, self->page));
	EXPECT_EQ(-1, munmap(self->map + self->length - self->page, self->page));
	EXPECT_EQ(BM_PROTOCOL_MAGIC_BYTES, capture_header(self->map)->magic_bytes);
	EXPECT_EQ(64 * KIB, capture_store(self->map)->buffer_length);
	EXPECT_EQ(0, munmap(self->map, self->length));
}

TEST_F(fixed, mremap_is_refused)
{
	EXPECT_EQ(MAP_FAILED, mremap(self->map, self->length, self->length + self->page, 0));
	EXPECT_EQ(MAP_FAILED, mremap(self->map, self->length, self->length + self->page,
				     MREMAP_MAYMOVE));
	EXPECT_EQ(MAP_FAILED, mremap(self->map, self->length, self->length - self->page, 0));
	EXPECT_EQ(MAP_FAILED, mremap(self->map, self->length, self->length,
				     MREMAP_MAYMOVE | MREMAP_FIXED,
				     self->map + 16 * self->length));
	EXPECT_EQ(MAP_FAILED, mremap(self->map, 0, self->length, MREMAP_MAYMOVE));
	EXPECT_EQ(BM_PROTOCOL_MAGIC_BYTES, capture_header(self->map)->magic_bytes);
}

TEST_F(fixed, mapping_something_over_a_part_is_refused)
{
	EXPECT_EQ(MAP_FAILED, mmap(self->map + self->page, self->page, PROT_READ | PROT_WRITE,
				   MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

TEST_F(fixed, writes_through_proc_mem_are_refused)
{
	struct bm_protocol_header_start before = *capture_header(self->map);
	int mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	uint64_t junk = 0x6666666666666666ULL;
	off_t ring = (char *)capture_store(self->map) - self->map;

	ASSERT_LE(0, mem);
	EXPECT_EQ(-1, pwrite(mem, &junk, sizeof(junk), (uintptr_t)self->map));
	EXPECT_EQ(-1, pwrite(mem, &junk, sizeof(junk), (uintptr_t)self->map + ring));
	EXPECT_EQ(0, memcmp(&before, self->map, sizeof(before)));
	EXPECT_EQ(64 * KIB, capture_store(self->map)->buffer_length);
	close(mem);
}

TEST_F(fixed, writes_of_the_kernel_for_a_process_are_refused)
{
	uint64_t junk = 0x6666666666666666ULL;
	struct iovec from = { &junk, sizeof(junk) }, to = { self->map, sizeof(junk) };
	int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	ASSERT_LE(0, zero);
	EXPECT_EQ(-1, process_vm_writev(getpid(), &from, 1, &to, 1, 0));
	EXPECT_EQ(-1, read(zero, self->map, 16));
	EXPECT_EQ(BM_PROTOCOL_MAGIC_BYTES, capture_header(self->map)->magic_bytes);
	close(zero);
}

/* Nothing of what is tried changes a byte of it, and a plain store kills. */
static void expect_untouched(struct __test_metadata *_metadata, FIXTURE_DATA(fixed) *self,
			     const char *before)
{
	int status;
	pid_t child = fork();

	if (!child) {
		prctl(PR_SET_DUMPABLE, 0);
		*(volatile char *)self->map = 'x';
		_exit(0);
	}
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
	EXPECT_EQ(0, memcmp(before, self->map, self->length));
}

static char *copy_of(FIXTURE_DATA(fixed) *self)
{
	char *copy = malloc(self->length);

	if (!copy)
		lost("no memory");
	return memcpy(copy, self->map, self->length);
}

TEST_F(fixed, writes_by_a_tracer_are_refused)
{
	char *before = copy_of(self);
	struct iovec from, to;
	long junk = 0x66666666;
	char path[32];
	pid_t child;
	int status, mem;

	child = fork();
	if (!child) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		_exit(memcmp(before, self->map, self->length) != 0);
	}
	ASSERT_EQ(child, waitpid(child, &status, 0));
	ASSERT_TRUE(WIFSTOPPED(status));
	EXPECT_EQ(-1, ptrace(PTRACE_POKEDATA, child, self->map, junk));
	EXPECT_EQ(EIO, errno);
	from = (struct iovec) { &junk, sizeof(junk) };
	to = (struct iovec) { self->map, sizeof(junk) };
	EXPECT_EQ(-1, process_vm_writev(child, &from, 1, &to, 1, 0));
	snprintf(path, sizeof(path), "/proc/%d/mem", child);
	mem = open(path, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, mem);
	EXPECT_EQ(-1, pwrite(mem, &junk, sizeof(junk), (uintptr_t)self->map));
	EXPECT_EQ(0, ptrace(PTRACE_CONT, child, 0, 0));
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
	close(mem);
	expect_untouched(_metadata, self, before);
}

/* A private map that was copied on a write would be a fake one, and pass for the true one. */
TEST_F(fixed, a_childs_is_as_read_only)
{
	char *before = copy_of(self);
	long junk = 0x66666666;
	int status, mem;
	pid_t child;

	child = fork();
	if (!child) {
		mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
		if (mem < 0 || pwrite(mem, &junk, sizeof(junk), (uintptr_t)self->map) >= 0)
			_exit(1);
		if (!mprotect(self->map, self->length, PROT_READ | PROT_WRITE))
			_exit(2);
		_exit(memcmp(before, self->map, self->length) ? 3 : 0);
	}
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
	expect_untouched(_metadata, self, before);
}

TEST_F(fixed, no_advice_makes_it_another_one)
{
	char *before = copy_of(self);
	int advice;

	/* from 100 on they are orders to the machine's memory, not advice */
	for (advice = 0; advice < 32; advice++) {
		if (advice == MADV_DONTFORK)
			continue;	/* the child at the end is to have it */
		madvise(self->map, self->length, advice);
		madvise(self->map + self->length - self->page, self->page, advice);
	}
	EXPECT_EQ(-1, madvise(self->map, self->length, 23 /* MADV_POPULATE_WRITE */));
	expect_untouched(_metadata, self, before);
}

TEST_F(fixed, pages_can_not_be_rearranged)
{
	char *before = copy_of(self);

	EXPECT_EQ(-1, syscall(SYS_remap_file_pages, self->map, self->length, 0, 1, 0));
	EXPECT_EQ(-1, syscall(SYS_remap_file_pages, self->map, self->page, 0, 1, 0));
	expect_untouched(_metadata, self, before);
}

/* What /proc shows as the file of the map is no way to another map of it. */
TEST_F(fixed, file_of_the_map_can_not_be_opened)
{
	char path[96];

	snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx", (unsigned long)self->map,
		 (unsigned long)self->map + self->length);
	EXPECT_EQ(-1, open(path, O_RDWR | O_CLOEXEC));
	EXPECT_NE(ENOENT, errno);
	EXPECT_EQ(-1, open(path, O_RDONLY | O_CLOEXEC));
}

/* Pages that were given to a pipe are nobody's to write, and not the receiver's to keep. */
TEST_F(fixed, pages_in_a_pipe_stay_as_they_are)
{
	struct iovec pages = { self->map, 2 * self->page };
	char *before = copy_of(self), bytes[64];
	int ends[2], file;
	loff_t at = 0;

	ASSERT_EQ(0, pipe(ends));
	ASSERT_EQ(2 * self->page, vmsplice(ends[1], &pages, 1, SPLICE_F_GIFT));
	/* would go on in the last page, if that could be merged with */
	ASSERT_EQ(8, write(ends[1], "overdone", 8));
	file = memfd_create("thief", MFD_CLOEXEC);
	ASSERT_LE(0, file);
	ASSERT_EQ(2 * self->page, splice(ends[0], NULL, file, &at, 2 * self->page, SPLICE_F_MOVE));
	ASSERT_EQ(64, pread(file, bytes, 64, 0));
	EXPECT_EQ(0, memcmp(bytes, before, 64));
	memset(bytes, 0x66, sizeof(bytes));
	ASSERT_EQ(64, pwrite(file, bytes, 64, 0));
	ASSERT_EQ(8, read(ends[0], bytes, 64));
	expect_untouched(_metadata, self, before);
}

TEST_F(fixed, io_uring_takes_no_buffers_there)
{
	struct io_uring_params params = { 0 };
	struct iovec pages = { self->map, self->page };
	int ring = syscall(__NR_io_uring_setup, 4, &params);

	if (ring < 0)
		SKIP(return, "this kernel has no io_uring");
	EXPECT_EQ(-1, syscall(__NR_io_uring_register, ring, IORING_REGISTER_BUFFERS, &pages, 1));
	EXPECT_EQ(EFAULT, errno);
	close(ring);
}

TEST_F(fixed, pages_come_back_after_they_are_dropped)
{
	uint64_t buffer = capture_store(self->map)->buffer_length;

	ASSERT_EQ(0, madvise(self->map, self->length, MADV_DONTNEED));
	EXPECT_EQ(BM_PROTOCOL_MAGIC_BYTES, capture_header(self->map)->magic_bytes);
	EXPECT_EQ(buffer, capture_store(self->map)->buffer_length);
}

TEST_F(fixed, every_byte_can_be_read)
{
	volatile char sum = 0;
	size_t i;

	for (i = 0; i < self->length; i += 512)
		sum += self->map[i];
}

/* A core file would hold them; and huge rings would be written to disk. */
TEST_F(fixed, maps_are_not_in_core_files)
{
	char line[256], key[64];
	bool here = false, dd = false;
	FILE *smaps = fopen("/proc/self/smaps", "r");

	ASSERT_NE(NULL, smaps);
	snprintf(key, sizeof(key), "%lx-", (unsigned long)self->map);
	while (fgets(line, sizeof(line), smaps)) {
		if (!strncmp(line, key, strlen(key)))
			here = true;
		if (here && !strncmp(line, "VmFlags:", 8)) {
			dd = strstr(line, " dd") != NULL;
			break;
		}
	}
	fclose(smaps);
	EXPECT_TRUE(dd);
}

/* ---- what a map shows ---- */

static uint64_t page_frame(const void *address)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	uint64_t entry = 0;

	(void)*(volatile const char *)address;
	if (fd < 0 || pread(fd, &entry, 8, (uintptr_t)address / sysconf(_SC_PAGESIZE) * 8) != 8)
		lost("no pagemap");
	close(fd);
	return entry & ((1ULL << 55) - 1);
}

TEST_F(map, header_pages_are_one_copy_and_rings_are_not)
{
	const char *other;

	if (self->q.nr_cpus < 2)
		SKIP(return, "one CPU only");
	other = map_cpu(self->fd, 1);
	ASSERT_NE(0, page_frame(self->map));
	EXPECT_EQ(page_frame(self->map), page_frame(other));
	EXPECT_EQ(page_frame(self->map + self->q.header_bytes - 1),
		  page_frame(other + self->q.header_bytes - 1));
	EXPECT_NE(page_frame(self->map + self->q.header_bytes),
		  page_frame(other + self->q.header_bytes));
}

TEST_F(map, data_store_stands_where_query_says)
{
	EXPECT_EQ(self->map + self->q.header_bytes, (const char *)capture_store(self->map));
	EXPECT_EQ(self->q.ring_bytes, capture_store(self->map)->buffer_length);
}

TEST_F(map, a_second_descriptor_maps_the_same_pages)
{
	int other = device_open();
	const char *map = map_cpu(other, 0);

	EXPECT_EQ(page_frame(self->map + self->q.header_bytes),
		  page_frame(map + self->q.header_bytes));
	close(other);
}

TEST_F(map, live_maps_follow_the_writer)
{
	uint64_t before;

	ASSERT_EQ(0, start(self->fd));
	before = capture_store(self->map)->write_offset;
	ping_pong(0, 50);
	EXPECT_LE(before + 100 * (sizeof(bm_uintptr) + 24), capture_store(self->map)->write_offset);
}

static void record_something(struct __test_metadata *_metadata, FIXTURE_DATA(map) *self)
{
	ASSERT_EQ(0, start(self->fd));
	ping_pong(0, 200);
	ASSERT_EQ(0, stop(self->fd));
}

TEST_F(map, map_survives_a_closed_descriptor)
{
	char *copy = malloc(self->q.map_bytes);

	record_something(_metadata, self);
	memcpy(copy, self->map, self->q.map_bytes);
	close(self->fd);
	EXPECT_EQ(0, memcmp(copy, self->map, self->q.map_bytes));
	EXPECT_EQ(NULL, judge(self->map, self->q.map_bytes, 0).fault);
	self->fd = device_open();
}

TEST_F(map, map_survives_fork_and_its_parents_unmap)
{
	int go[2], status;
	pid_t child;
	char byte;

	record_something(_metadata, self);
	ASSERT_EQ(0, pipe(go));
	child = fork();
	if (!child) {
		struct judgement j;

		close(self->fd);
		close(go[1]);
		if (read(go[0], &byte, 1))
			_exit(2);
		j = judge(self->map, self->q.map_bytes, 0);
		_exit(j.fault || j.records < 400);
	}
	munmap(self->map, self->q.map_bytes);
	close(self->fd);
	close(go[1]);
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
	self->fd = device_open();
}

/* The old bytes, to the last one, whatever the new session writes. */
TEST_F(map, old_map_shows_the_old_session)
{
	struct kbarman_configure next = small;
	char *copy = malloc(self->q.map_bytes);
	const char *other;

	record_something(_metadata, self);
	memcpy(copy, self->map, self->q.map_bytes);

	snprintf(next.target_name, sizeof(next.target_name), "second");
	next.ring_bytes = 256 * KIB;
	ASSERT_EQ(0, configure(self->fd, next));
	ASSERT_EQ(0, start(self->fd));
	ping_pong(0, 200);
	ASSERT_EQ(0, stop(self->fd));

	EXPECT_EQ(0, memcmp(copy, self->map, self->q.map_bytes));
	other = map_cpu(self->fd, 0);
	EXPECT_STREQ("first", capture_strings(self->map) +
			      capture_header(self->map)->target_name_ptr);
	EXPECT_STREQ("second", capture_strings(other) + capture_header(other)->target_name_ptr);
}

TEST_F(map, map_survives_its_session_and_the_next_one)
{
	char *copy = malloc(self->q.map_bytes);
	int bystander = device_open(), other;
	const char *map;

	munmap(self->map, self->q.map_bytes);
	record_something(_metadata, self);
	map = map_cpu(bystander, 0);
	memcpy(copy, map, self->q.map_bytes);
	close(bystander);
	close(self->fd);

	other = device_open();
	ASSERT_EQ(0, configure(other, small));
	ASSERT_EQ(0, start(other));
	ping_pong(0, 400);
	EXPECT_EQ(0, memcmp(copy, map, self->q.map_bytes));
	ASSERT_EQ(0, madvise((void *)map, self->q.map_bytes, MADV_DONTNEED));
	EXPECT_EQ(0, memcmp(copy, map, self->q.map_bytes));
	close(other);
	self->fd = device_open();
}

TEST_HARNESS_MAIN
