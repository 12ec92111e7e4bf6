// SPDX-License-Identifier: MIT
/* Page faults: programs whose faults are known. */
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "kselftest_harness.h"
#include "ended.h"

#define PAGES	64
#define PAGE	((size_t)sysconf(_SC_PAGESIZE))

static const struct kbarman_configure faults = {
	.sources = KBARMAN_SOURCE_FAULTS, .ring_bytes = 4 * MIB };

/* What the program and the test share. */
static struct {
	char *pages;			/* which the program touches first */
	struct rusage before, after;	/* the program's own, behind its first page and in front of its last one */
} *shared;

FIXTURE(faults)
{
	int fd;
	int go[2];			/* a pipe: the program begins when a byte comes */
	struct ended_list faults;
};

FIXTURE_SETUP(faults)
{
	self->fd = device_open_free();
	if (query(self->fd).absent & KBARMAN_SOURCE_FAULTS)
		skip_test();
	ASSERT_EQ(0, pipe2(self->go, O_CLOEXEC));
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, shared);
}

FIXTURE_TEARDOWN(faults)
{
	free(self->faults.all);
	close(self->fd);
}

static char *some_pages(int protection)
{
	char *pages = mmap(NULL, PAGES * PAGE, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	/* Linux may have no huge pages. */
	if (pages == MAP_FAILED || (madvise(pages, PAGES * PAGE, MADV_NOHUGEPAGE) && errno != EINVAL))
		_exit(2);
	return pages;
}

static void touch_pages(void)
{
	size_t i;

	shared->pages = some_pages(PROT_READ | PROT_WRITE);
	for (i = 0; i < PAGES; i++)
		((volatile char *)shared->pages)[i * PAGE] = 1;
}

/* The faults at @address, of @pages pages. */
static size_t count_at(const struct ended_list *faults, const void *address, size_t pages)
{
	size_t i, nr = 0;

	for (i = 0; i < faults->nr; i++)
		nr += faults->all[i].fault.address - (uintptr_t)address < pages * PAGE;
	return nr;
}

static void record(struct __test_metadata *_metadata, FIXTURE_DATA(faults) *self, void (*program)(void),
		   int *status)
{
	pid_t child = program_begin(self->go[0], program);

	ASSERT_EQ(0, configure(self->fd, faults));
	ASSERT_EQ(0, start(self->fd));
	*status = program_end(self->go[1], child);
	ASSERT_EQ(0, stop(self->fd));
	ASSERT_EQ(0, lost_records((struct kbarman_stats[]){ stats(self->fd, KBARMAN_CPU_ALL) }));
	self->faults = ended_of(self->fd, BM_KBARMAN_FAULT, child);
}

TEST_F(faults, each_page_that_is_touched_first_has_one)
{
	int status;
	size_t i;

	record(_metadata, self, touch_pages, &status);
	ASSERT_EQ(0, status);
	EXPECT_EQ(PAGES, count_at(&self->faults, shared->pages, PAGES));
	for (i = 0; i < self->faults.nr; i++) {
		const struct bm_kbarman_fault *fault = &self->faults.all[i].fault;

		if (fault->address - (uintptr_t)shared->pages >= PAGES * PAGE)
			continue;
		EXPECT_EQ(0, fault->result);
		EXPECT_EQ(0, fault->detail.cpu);
		EXPECT_NE(0, fault->begin);
		EXPECT_LE(fault->begin, self->faults.all[i].end);
		EXPECT_LT(fault->pc - ((uintptr_t)touch_pages & ~(uintptr_t)1), 4096);
	}
}

static void count_what_is_touched(void)
{
	memset(shared, 0, sizeof(*shared));
	shared->pages = some_pages(PROT_READ | PROT_WRITE);
	getrusage(RUSAGE_SELF, &shared->before);	/* its code is in memory from now on */
	*(volatile char *)shared->pages = 1;
	getrusage(RUSAGE_SELF, &shared->before);
	for (size_t i = 1; i < PAGES - 1; i++)
		((volatile char *)shared->pages)[i * PAGE] = 1;
	for (unsigned int i = 0; i < 10; i++) {
		pid_t child = fork();

		if (!child)
			_exit(0);
		waitpid(child, NULL, 0);
	}
	getrusage(RUSAGE_SELF, &shared->after);
	((volatile char *)shared->pages)[(PAGES - 1) * PAGE] = 1;
}

static uint64_t faults_between(const struct ended_list *faults, uint64_t first, uint64_t last)
{
	uint64_t nr = 0;
	bool between = false;
	size_t i;

	for (i = 0; i < faults->nr; i++) {
		const struct bm_kbarman_fault *fault = &faults->all[i].fault;

		if (fault->address == last)
			return nr;
		nr += between && fault->result >= 0;
		between |= fault->address == first;
	}
	return ~0ULL;
}

TEST_F(faults, they_are_as_many_as_perf_and_linux_count)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE, .size = sizeof(attr), .config = PERF_COUNT_SW_PAGE_FAULTS };
	pid_t child = program_begin(self->go[0], count_what_is_touched);
	uint64_t counted;
	int counter;

	wait_until_waiting(child);
	counter = syscall(SYS_perf_event_open, &attr, child, -1, -1, PERF_FLAG_FD_CLOEXEC);
	ASSERT_LE(0, counter);
	ASSERT_EQ(0, configure(self->fd, faults));
	ASSERT_EQ(0, start(self->fd));
	ASSERT_EQ(0, program_end(self->go[1], child));
	ASSERT_EQ(0, stop(self->fd));
	ASSERT_EQ(0, lost_records((struct kbarman_stats[]){ stats(self->fd, KBARMAN_CPU_ALL) }));
	ASSERT_EQ(sizeof(counted), read(counter, &counted, sizeof(counted)));
	self->faults = ended_of(self->fd, BM_KBARMAN_FAULT, child);
	EXPECT_EQ(counted, self->faults.nr);
	EXPECT_EQ(shared->after.ru_minflt + shared->after.ru_majflt -
		  shared->before.ru_minflt - shared->before.ru_majflt,
		  faults_between(&self->faults, (uintptr_t)shared->pages,
				 (uintptr_t)shared->pages + (PAGES - 1) * PAGE));
	close(counter);
}

static void read_into_pages(void)
{
	int zero = open("/dev/zero", O_RDONLY);

	shared->pages = some_pages(PROT_READ | PROT_WRITE);
	if (read(zero, shared->pages, PAGES * PAGE) != (ssize_t)(PAGES * PAGE))
		_exit(3);
}

TEST_F(faults, those_of_linux_in_a_call_are_told)
{
	size_t i, of_linux = 0;
	int status;

	record(_metadata, self, read_into_pages, &status);
	ASSERT_EQ(0, status);
	for (i = 0; i < self->faults.nr; i++)
		of_linux += self->faults.all[i].fault.address - (uintptr_t)shared->pages < PAGES * PAGE &&
			    self->faults.all[i].fault.detail.cpu == BM_KBARMAN_FAULT_KERNEL;
	EXPECT_EQ(PAGES, of_linux);
}

static void touch_what_is_not_there(void)
{
	shared->pages = some_pages(PROT_NONE);
	((volatile char *)shared->pages)[5 * PAGE + 3] = 1;
}

TEST_F(faults, one_that_brings_no_page_is_told_when_the_task_exits)
{
	const struct bm_kbarman_fault *last;
	int status;

	record(_metadata, self, touch_what_is_not_there, &status);
	ASSERT_TRUE(WIFSIGNALED(status));
	ASSERT_EQ(SIGSEGV, WTERMSIG(status));
	ASSERT_LT(0, self->faults.nr);
	last = &self->faults.all[self->faults.nr - 1].fault;
	EXPECT_EQ((uintptr_t)shared->pages + 5 * PAGE + 3, last->address);
	EXPECT_GT(0, last->result);
	EXPECT_NE(0, last->begin);
}

static sigjmp_buf again;

static void jump(int signal)
{
	(void)signal;
	siglongjmp(again, 1);
}

/* As programs do that look whether a page is there. */
static void ask_and_touch(void)
{
	signal(SIGSEGV, jump);
	if (!sigsetjmp(again, 1))
		touch_what_is_not_there();
	touch_pages();
}

TEST_F(faults, one_that_brings_no_page_is_told_when_the_next_one_begins)
{
	const struct bm_kbarman_fault *fault;
	size_t i, failed = 0;
	int status;

	record(_metadata, self, ask_and_touch, &status);
	ASSERT_EQ(0, status);
	for (i = 0; i < self->faults.nr; i++) {
		fault = &self->faults.all[i].fault;
		failed += fault->result < 0 && fault->address % PAGE == 3;
	}
	EXPECT_EQ(1, failed);
	EXPECT_EQ(PAGES, count_at(&self->faults, shared->pages, PAGES));
}

TEST_F(faults, only_those_of_chosen_tasks_are_recorded)
{
	pid_t child = program_begin(self->go[0], touch_pages);
	size_t i;

	ASSERT_EQ(0, configure_chosen(self->fd, faults, child, 0));
	ASSERT_EQ(0, start(self->fd));
	ASSERT_EQ(0, program_end(self->go[1], child));
	ASSERT_EQ(0, stop(self->fd));
	self->faults = ended_of(self->fd, BM_KBARMAN_FAULT, 0);
	for (i = 0; i < self->faults.nr; i++)
		EXPECT_EQ((uint32_t)child, self->faults.all[i].task);
	EXPECT_EQ(PAGES, count_at(&self->faults, shared->pages, PAGES));
}

TEST_F(faults, two_sessions_have_the_same_ones)
{
	int other = device_open(), status;
	struct ended_list its;
	pid_t child = program_begin(self->go[0], touch_pages);

	ASSERT_EQ(0, configure(self->fd, faults));
	ASSERT_EQ(0, configure(other, faults));
	ASSERT_EQ(0, start(self->fd));
	ASSERT_EQ(0, start(other));
	status = program_end(self->go[1], child);
	ASSERT_EQ(0, status);
	ASSERT_EQ(0, stop(other));
	ASSERT_EQ(0, stop(self->fd));
	self->faults = ended_of(self->fd, BM_KBARMAN_FAULT, child);
	its = ended_of(other, BM_KBARMAN_FAULT, child);
	EXPECT_EQ(self->faults.nr, its.nr);
	EXPECT_EQ(PAGES, count_at(&its, shared->pages, PAGES));
	free(its.all);
	close(other);
}

/* ---- a task that waits in a fault ---- */

/* A page comes when the test gives it. Between them the thread waits in other ways, and in one call as in that fault. */
struct waiter {
	char *pages;
	int empty[2], zero;
	pid_t task;		/* 0: it has not begun */
	bool failed;
};

static void *touch_and_wait(void *argument)
{
	struct waiter *waiter = argument;
	size_t i;
	char byte;

	__atomic_store_n(&waiter->task, gettid(), __ATOMIC_RELEASE);
	for (i = 0; i < PAGES; i++) {
		char *page = &waiter->pages[i * PAGE];

		if (i % 2)
			*(volatile char *)page = 1;
		else if (read(waiter->zero, page, 1) != 1)
			waiter->failed = true;
		/* a fault that brings no page, and then a wait in the call of its kind */
		if (syscall(SYS_read, waiter->zero, NULL, 1) != -1 || read(waiter->empty[0], &byte, 1) != 1)
			waiter->failed = true;
	}
	return NULL;
}

static int pages_of_the_test(char *pages)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register region = {
		.range = { .start = (uintptr_t)pages, .len = PAGES * PAGE },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC);

	if (fd < 0 && errno == ENOSYS)
		skip_test();
	return fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &region) ? -1 : fd;
}

static bool give_pages(int fd, const struct waiter *waiter)
{
	struct uffd_msg message;
	size_t i;

	for (i = 0; i < PAGES; i++) {
		struct uffdio_zeropage page = {
			.range = { .start = (uintptr_t)&waiter->pages[i * PAGE], .len = PAGE } };

		if (read(fd, &message, sizeof(message)) != sizeof(message))
			return false;
		wait_until_waiting(waiter->task);
		if (ioctl(fd, UFFDIO_ZEROPAGE, &page))
			return false;
		wait_until_waiting(waiter->task);
		if (write(waiter->empty[1], "", 1) != 1)
			return false;
	}
	return true;
}

static size_t switches_in_faults(int fd, const struct waiter *waiter, size_t *others)
{
	uint32_t cpu, nr_cpus = query(fd).nr_cpus, from;
	const struct bm_kbarman_object *object;
	const union record *r;
	size_t found = 0;

	for (cpu = 0, *others = 0; cpu < nr_cpus; cpu++) {
		const void *map = map_cpu(fd, cpu);
		struct walk walk = walk_begin(map);

		for (from = 0; (r = walk_next(&walk));) {
			bool in_call;

			if (r->header.record_type != BM_RECORD_TASK_SWITCH)
				continue;
			object = walk_object(&walk, r);
			if (object && from == (uint32_t)waiter->task) {
				in_call = !(object->flags & BM_KBARMAN_OBJECT_OUTSIDE) && object->call == SYS_read;
				if (object->kind != BM_KBARMAN_OBJECT_FAULT)
					++*others;
				else if (object->value == (uintptr_t)&waiter->pages[found * PAGE] &&
					 in_call == !(found % 2))
					found++;
			}
			from = r->task_switch.task_id;
		}
		munmap((void *)map, query(fd).map_bytes);
	}
	return found;
}

TEST_F(faults, who_waits_in_one_says_at_which_address)
{
	struct waiter waiter = { .pages = some_pages(PROT_READ | PROT_WRITE), .zero = open("/dev/zero", O_RDONLY) };
	int fd = pages_of_the_test(waiter.pages);
	pthread_t thread;
	size_t others;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, pipe2(waiter.empty, O_CLOEXEC));
	pin(0);
	ASSERT_EQ(0, configure(self->fd, (struct kbarman_configure){
		.sources = KBARMAN_SOURCE_FAULTS | KBARMAN_SOURCE_SCHED, .ring_bytes = 4 * MIB,
		.flags = KBARMAN_CONFIGURE_OBJECTS }));
	ASSERT_EQ(0, start(self->fd));
	ASSERT_EQ(0, pthread_create(&thread, NULL, touch_and_wait, &waiter));
	while (!__atomic_load_n(&waiter.task, __ATOMIC_ACQUIRE))
		usleep(100);
	ASSERT_TRUE(give_pages(fd, &waiter));
	ASSERT_EQ(0, pthread_join(thread, NULL));
	ASSERT_EQ(0, stop(self->fd));
	EXPECT_FALSE(waiter.failed);
	EXPECT_EQ(PAGES, switches_in_faults(self->fd, &waiter, &others));
	EXPECT_LE(PAGES, others);
	close(fd);
}

TEST_HARNESS_MAIN
