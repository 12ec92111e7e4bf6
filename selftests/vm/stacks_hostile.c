// SPDX-License-Identifier: MIT
/*
 * Sparse stacks of programs whose stack pointer points to anything: kernel memory, addresses that
 * can't be, memory that is not there or goes away. Nothing of it is recorded, and a record says so.
 */
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>

#include "kselftest_harness.h"
#include "stacks.h"

#define PAGE	((uintptr_t)sysconf(_SC_PAGESIZE))

/* ---- what was recorded ---- */

struct found {
	unsigned int samples, ends[BM_KBARMAN_STACK_ABSENT + 2];
	uint64_t most;		/* bytes scanned */
	unsigned int words;
	const char *damage;
};

static void found_add(struct found *found, const struct stack *stack)
{
	unsigned int end = stack->head->end;

	found->samples++;
	found->words += stack->nr;
	found->ends[end > BM_KBARMAN_STACK_ABSENT ? BM_KBARMAN_STACK_ABSENT + 1 : end]++;
	if (stack->head->scanned > found->most)
		found->most = stack->head->scanned;
	if (stack->damage)
		found->damage = stack->damage;
}

/* The samples of this task with the stack pointer @sp, or with any. */
static struct found look(int fd, uintptr_t sp, bool any)
{
	uint32_t cpu, self = (uint32_t)syscall(SYS_gettid);
	static struct stack stack;
	struct found found = { 0 };

	for (cpu = 0; cpu < query(fd).nr_cpus; cpu++) {
		struct walk walk = walk_begin(map_cpu(fd, cpu));
		const union record *r;

		while ((r = walk_next(&walk)))
			if (r->header.record_type == BM_RECORD_SAMPLE_WITH_PC &&
			    r->sample.task_id == self && stack_of(&stack, &walk, r) &&
			    (any || stack.registers[sp_number(stack.head->word)] == sp))
				found_add(&found, &stack);
	}
	return found;
}

FIXTURE(hostile) {
	int fd;
};

FIXTURE_SETUP(hostile)
{
	sigset_t all;

	self->fd = device_open_free();
	if (!(query(self->fd).features & KBARMAN_FEATURE_CHAIN_STACK))
		SKIP(return, "no sparse stacks on this architecture");
	ASSERT_EQ(0, configure(self->fd, sampling(0)));
	sigfillset(&all);
	sigdelset(&all, SIGALRM);	/* the harness's, after 30 seconds */
	sigprocmask(SIG_BLOCK, &all, NULL);
}

FIXTURE_TEARDOWN(hostile)
{
	close(self->fd);
}

static struct found record_at(struct __test_metadata *_metadata, int fd, uintptr_t sp)
{
	struct found found = { 0 };

	for (int i = 0; i < 20 && !found.samples; i++) {
		EXPECT_EQ(0, start(fd));
		spin_at(sp);
		EXPECT_EQ(0, stop(fd));
		found = look(fd, sp, false);
	}
	EXPECT_EQ(NULL, found.damage) TH_LOG("%s", found.damage);
	EXPECT_LT(0, found.samples) TH_LOG("no sample at %#lx", (unsigned long)sp);
	return found;
}

/* Nothing can be there. */
static void expect_nothing(struct __test_metadata *_metadata, int fd, uintptr_t sp)
{
	struct found found = record_at(_metadata, fd, sp);

	EXPECT_EQ(found.samples, found.ends[BM_KBARMAN_STACK_ABSENT])
		TH_LOG("%#lx", (unsigned long)sp);
	EXPECT_EQ(0, found.most) TH_LOG("%#lx", (unsigned long)sp);
	EXPECT_EQ(0, found.words) TH_LOG("%#lx", (unsigned long)sp);
}

TEST_F(hostile, no_stack_is_where_no_memory_can_be)
{
	static const intptr_t places[] = {
		0, 8, -1, -2, -8, -9, -64, -4096, -4097, -65536, -131072, INTPTR_MIN, INTPTR_MAX,
#if UINTPTR_MAX > UINT32_MAX
		/* not canonical; the linear map, the kernel's text */
		0x0000800000001230, 0x7ffffffffff0, 0x7fffffffeff8, 1L << 55, 1L << 56,
		(intptr_t)0xffff888000001000, (intptr_t)0xffffffff81000000,
		(intptr_t)0xffff000008000000,
#else
		(intptr_t)0xc0000000, (intptr_t)0xbffffff8, (intptr_t)0xc1000000,
#endif
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(places); i++)
		expect_nothing(_metadata, self->fd, (uintptr_t)places[i]);
}

static char *two_pages(int protection)
{
	char *at = mmap(NULL, 2 * PAGE, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		lost("no memory");
	return at;
}

TEST_F(hostile, no_stack_is_where_memory_is_not_there)
{
	char *at = two_pages(PROT_READ | PROT_WRITE);

	memset(at, 's', 2 * PAGE);
	ASSERT_EQ(0, mprotect(at, PAGE, PROT_NONE));
	expect_nothing(_metadata, self->fd, (uintptr_t)at + 64);
	ASSERT_EQ(0, munmap(at, 2 * PAGE));
	expect_nothing(_metadata, self->fd, (uintptr_t)at + 64);
}

/*
 * What a program has hidden stays hidden, though the page is still there: also a huge page, and
 * after fork(), when all pages are marked as old.
 */
TEST_F(hostile, a_page_that_was_made_unreadable_is_absent)
{
	size_t huge = 4 * MIB, i;
	char *at = mmap(NULL, 2 * huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *begin = (char *)(((uintptr_t)at + huge - 1) & -huge);
	struct found found;
	int status;
	pid_t child;

	ASSERT_NE(MAP_FAILED, at);
	madvise(begin, huge, MADV_HUGEPAGE);
	/* Every word is the address of code, which would be kept. */
	for (i = 0; i < huge; i += sizeof(uintptr_t))
		*(uintptr_t *)(begin + i) = (uintptr_t)burn + 1;
	ASSERT_EQ(0, mprotect(begin, huge, PROT_NONE));
	expect_nothing(_metadata, self->fd, (uintptr_t)begin + 64);
	child = fork();
	if (!child) {
		found = record_at(_metadata, self->fd, (uintptr_t)begin + 64);
		_exit(!found.samples || found.most || found.words);
	}
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
	ASSERT_EQ(0, mprotect(begin, huge, PROT_READ));
	EXPECT_LT(0, record_at(_metadata, self->fd, (uintptr_t)begin + 64).words);
	munmap(at, 2 * huge);
}

/* A page that its owner has not given yet: nobody is asked for it. */
TEST_F(hostile, a_page_that_another_thread_must_give_is_absent)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	int fault = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	char *at = two_pages(PROT_READ | PROT_WRITE), event[64];

	if (fault < 0)
		SKIP(return, "no userfaultfd here");
	range.range.start = (uintptr_t)at;
	range.range.len = 2 * PAGE;
	ASSERT_EQ(0, ioctl(fault, UFFDIO_API, &api));
	ASSERT_EQ(0, ioctl(fault, UFFDIO_REGISTER, &range));
	expect_nothing(_metadata, self->fd, (uintptr_t)at + 64);
	EXPECT_EQ(-1, read(fault, event, sizeof(event)));
	close(fault);
}

/* A file of the kernel's, and of the module's own: no stack, and at most what a page has. */
TEST_F(hostile, a_device_is_no_stack)
{
	struct kbarman_query q = query(self->fd);
	const char *map = try_map(self->fd, &q, 0);
	struct found found;

	ASSERT_NE(MAP_FAILED, map);
	found = record_at(_metadata, self->fd, (uintptr_t)map + 128);
	EXPECT_EQ(found.samples, found.ends[BM_KBARMAN_STACK_ABSENT]);
	EXPECT_GE(PAGE, found.most);
}

TEST_F(hostile, any_alignment_is_as_good)
{
	char *at = two_pages(PROT_READ | PROT_WRITE);
	struct found found;

	memset(at, 's', 2 * PAGE);
	ASSERT_EQ(0, mprotect(at + PAGE, PAGE, PROT_NONE));
	for (unsigned int odd = 1; odd < 64; odd += 9) {
		found = record_at(_metadata, self->fd, (uintptr_t)at + PAGE - 192 + odd);
		EXPECT_GE(224, found.most);
		EXPECT_LE(128, found.most);
		EXPECT_EQ(0, found.words);
	}
}

TEST_F(hostile, limits_of_few_bytes_scan_nothing)
{
	static const uint32_t limits[] = { 1, 7, 31 };

	for (unsigned int i = 0; i < ARRAY_SIZE(limits); i++) {
		struct found found;

		ASSERT_EQ(0, configure(self->fd, sampling(limits[i])));
		ASSERT_EQ(0, start(self->fd));
		burn_for(50);
		ASSERT_EQ(0, stop(self->fd));
		found = look(self->fd, 0, true);
		EXPECT_LT(0, found.samples);
		EXPECT_EQ(found.samples, found.ends[BM_KBARMAN_STACK_LIMIT]);
		EXPECT_GE(limits[i], found.most);
	}
}

/* ---- the longest ---- */

/* Every word of a long stack points into code: there are more than a record may have. */
TEST_F(hostile, a_stack_of_nothing_but_addresses_keeps_those_near_the_stack_pointer)
{
	size_t bytes = 2 * KBARMAN_MAX_STACK_BYTES;
	stack_t stack = { .ss_size = bytes }, none = { .ss_flags = SS_DISABLE };
	struct found found;
	uintptr_t *word;

	stack.ss_sp = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, stack.ss_sp);
	for (word = stack.ss_sp; (char *)word < (char *)stack.ss_sp + bytes; word++)
		*word = (uintptr_t)burn;
	ASSERT_EQ(0, sigaltstack(&stack, NULL));
	ASSERT_EQ(0, configure(self->fd, sampling(KBARMAN_MAX_STACK_BYTES)));
	found = record_at(_metadata, self->fd, (uintptr_t)stack.ss_sp);
	EXPECT_EQ(found.samples, found.ends[BM_KBARMAN_STACK_FULL]);
	EXPECT_LE(1024 * found.samples, found.words);
	EXPECT_EQ(0, stats(self->fd, KBARMAN_CPU_ALL).lost[KBARMAN_LOST_TOO_BIG]);
	memset(stack.ss_sp, 0, bytes);
	found = record_at(_metadata, self->fd, (uintptr_t)stack.ss_sp);
	EXPECT_EQ(found.samples, found.ends[BM_KBARMAN_STACK_LIMIT]);
	EXPECT_EQ(KBARMAN_MAX_STACK_BYTES, found.most);
	sigaltstack(&none, NULL);
}

/* ---- memory that goes away ---- */

static volatile bool over;

static void *map_and_unmap(void *place)
{
	while (!over) {
		if (mmap(place, 2 * PAGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_POPULATE, -1, 0) != place ||
		    munmap(place, 2 * PAGE))
			lost("no memory");
	}
	return NULL;
}

TEST_F(hostile, a_stack_may_go_away_while_it_is_read)
{
	char *at = two_pages(PROT_READ | PROT_WRITE);
	struct found found;
	pthread_t thread;

	ASSERT_EQ(0, pthread_create(&thread, NULL, map_and_unmap, at));
	for (int i = 0; i < 10; i++) {
		found = record_at(_metadata, self->fd, (uintptr_t)at + 64);
		EXPECT_GE(2 * PAGE, found.most);
		EXPECT_EQ(0, found.words);
		EXPECT_EQ(0, found.ends[BM_KBARMAN_STACK_FULL]);
	}
	over = true;
	pthread_join(thread, NULL);
}

/* ---- 32-bit code on a 64-bit kernel ---- */

#ifdef __x86_64__
static void NOINLINE spin_narrow_at(uintptr_t sp)
{
	static uintptr_t wide;

	__asm__ volatile("mov %%rsp, %0\n\tmov %1, %%rsp\n"
			 "	ljmp *3f\n"
			 "3:	.long 1f\n\t.word 0x23\n"
			 "	.code32\n1:\tdec %%ecx\n\tjnz 1b\n\tljmp $0x33, $2f\n"
			 "	.code64\n2:\tmov %0, %%rsp"
			 : "+m"(wide) : "r"(sp), "c"(8UL << 20) : "memory", "cc");
}

TEST_F(hostile, the_words_of_32_bit_code_have_4_bytes)
{
	char *at = mmap(NULL, 64 * KIB, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	uint32_t sp, nr, i;
	static struct stack stack;
	struct found found = { 0 };

	ASSERT_NE(MAP_FAILED, at);
	sp = (uint32_t)(uintptr_t)at + 32 * KIB;
	for (i = 0; i < 8; i++)
		((uint32_t *)(uintptr_t)sp)[i] = sp + 4 * i + 4;
	ASSERT_EQ(0, start(self->fd));
	spin_narrow_at(sp);
	ASSERT_EQ(0, stop(self->fd));
	for (uint32_t cpu = 0; cpu < query(self->fd).nr_cpus; cpu++) {
		struct walk walk = walk_begin(map_cpu(self->fd, cpu));
		const union record *r;

		while ((r = walk_next(&walk))) {
			if (r->header.record_type != BM_RECORD_SAMPLE_WITH_PC ||
			    !stack_of(&stack, &walk, r) || stack.head->word != 4)
				continue;
			found_add(&found, &stack);
			for (nr = i = 0; i < stack.nr; i++)
				nr += stack.words[i].word == stack.words[i].address + 4;
			EXPECT_EQ(8, nr);
			EXPECT_EQ(sp, stack.registers[4]);
		}
	}
	EXPECT_LT(0, found.samples);
	EXPECT_EQ(NULL, found.damage);
}
#endif

TEST_HARNESS_MAIN
