// SPDX-License-Identifier: MIT
/*
 * Sparse stacks: that they have the registers and all words that an unwinder needs, and no others.
 * Built without frame pointers, as distributions build.
 */
#include "kselftest_harness.h"
#include "stacks.h"

#define DEPTH		100

/* ---- code that knows where it was called from ---- */

static bm_uintptr truth[DEPTH + 1];	/* return addresses, the outermost first */

#define HERE()	((bm_uintptr)__builtin_extract_return_addr(__builtin_return_address(0)))

/* What lies on a stack beside addresses: numbers, and a secret. */
static void NOINLINE descend(unsigned int depth, unsigned int bytes)
{
	volatile char room[bytes];

	truth[depth] = HERE();
	for (unsigned int i = 0; i < bytes; i++)
		room[i] = 's';
	if (depth == DEPTH)
		for (int i = 0; i < 2000; i++)
			burn();
	else
		descend(depth + 1, bytes);
	sink += room[0];	/* no tail call */
}

static bool has_truth(const struct stack *stack)
{
	uint32_t wanted = DEPTH, i;

	for (i = 0; i < stack->nr; i++)
		if (stack->words[i].word == truth[wanted] && wanted-- == 0)
			return true;
	return false;
}

FIXTURE(stacks) {
	int fd;
};

FIXTURE_SETUP(stacks)
{
	self->fd = device_open_free();
	if (!(query(self->fd).features & KBARMAN_FEATURE_CHAIN_STACK))
		SKIP(return, "no sparse stacks on this architecture");
}

FIXTURE_TEARDOWN(stacks)
{
	close(self->fd);
}

struct found {
	unsigned int samples, whole, limited;
	uint64_t bytes;
};

/* Judge the samples in burn() of all CPUs. */
static struct found look(struct __test_metadata *_metadata, int fd, uint32_t limit)
{
	static struct stack stack;
	struct found found = { 0 };
	uint32_t cpu;

	for (cpu = 0; cpu < query(fd).nr_cpus; cpu++) {
		struct walk walk = walk_begin(map_cpu(fd, cpu));
		const union record *r;
		uint64_t pc;

		while ((r = walk_next(&walk))) {
			if (r->header.record_type != BM_RECORD_SAMPLE_WITH_PC)
				continue;
			pc = sample_pc(r);
			if (!in_burn(pc))
				continue;
			found.samples++;
			ASSERT_TRUE(stack_of(&stack, &walk, r));
			ASSERT_EQ(NULL, stack.damage) TH_LOG("%s", stack.damage);
			EXPECT_EQ(pc, stack.registers[BM_KBARMAN_REGISTER_PC]);
			EXPECT_EQ(1, stack.chain->nr);
			EXPECT_LE(stack.head->scanned, limit);
			found.bytes += walk.length;
			found.whole += has_truth(&stack);
			found.limited += stack.head->end == BM_KBARMAN_STACK_LIMIT;
			for (uint32_t i = 0; i < stack.nr; i++)
				EXPECT_NE(0x7373737373737373, stack.words[i].word);
		}
	}
	return found;
}

static struct found record(struct __test_metadata *_metadata, int fd, uint32_t limit,
			   unsigned int bytes)
{
	ASSERT_EQ(0, configure(fd, sampling(limit)));
	ASSERT_EQ(0, start(fd));
	descend(0, bytes);
	ASSERT_EQ(0, stop(fd));
	return look(_metadata, fd, limit ?: KBARMAN_DEFAULT_STACK_BYTES);
}

TEST_F(stacks, every_caller_is_among_the_words)
{
	struct found found = record(_metadata, self->fd, 0, 64);

	EXPECT_LT(20, found.samples);
	EXPECT_EQ(found.samples, found.whole);
	EXPECT_EQ(0, found.limited);
	TH_LOG("%u samples of %llu bytes", found.samples,
	       (unsigned long long)found.bytes / (found.samples ?: 1));
}

TEST_F(stacks, a_deep_stack_ends_at_the_limit_and_says_so)
{
	struct found found = record(_metadata, self->fd, 4096, 256);

	EXPECT_LT(20, found.samples);
	EXPECT_EQ(found.samples, found.limited);
	EXPECT_EQ(0, found.whole);
}

/* ---- code that was just mapped ---- */

#if defined(__x86_64__) || defined(__aarch64__)
#define PIECES		400
#define ENOUGH		40U	/* samples */

/* A function that calls its argument, and where it goes on then. */
#ifdef __x86_64__
static const uint8_t caller[] = { 0x48, 0x83, 0xec, 8, 0xff, 0xd7, 0x48, 0x83, 0xc4, 8, 0xc3 };
#define GOES_ON		6
#else
static const uint32_t caller[] = { 0xa9bf7bfd, 0xd63f0000, 0xa8c17bfd, 0xd65f03c0 };
#define GOES_ON		8
#endif

static void NOINLINE burn_below(void)
{
	for (int i = 0; i < 20; i++)
		burn();
	burn_end();
}

/* Samples in burn(), and in *@right those whose stack has an address at which a piece goes on. */
static unsigned int count_pieces(int fd, const uintptr_t pieces[PIECES], unsigned int nr, unsigned int *right)
{
	struct walk walk = walk_begin(map_cpu(fd, 0));
	static struct stack stack;
	const union record *r;
	unsigned int samples = 0;

	*right = 0;
	while ((r = walk_next(&walk))) {
		bool found = false;

		if (r->header.record_type != BM_RECORD_SAMPLE_WITH_PC || !in_burn(sample_pc(r)))
			continue;
		samples++;
		if (!stack_of(&stack, &walk, r) || stack.damage)
			continue;
		for (unsigned int i = 0; i < nr && !found; i++)
			for (uint32_t word = 0; word < stack.nr && !found; word++)
				found = stack.words[word].word == pieces[i] + GOES_ON;
		*right += found;
	}
	return samples;
}

TEST_F(stacks, code_that_was_just_mapped_is_code)
{
	static uintptr_t pieces[PIECES];
	unsigned int nr = 0, right, samples;
	int file = memfd_create("piece", MFD_CLOEXEC);

	pin(0);
	ASSERT_EQ(sizeof(caller), write(file, caller, sizeof(caller)));
	ASSERT_EQ(0, configure(self->fd, sampling(0)));
	ASSERT_EQ(0, start(self->fd));
	while (nr < PIECES && (nr % 20 || count_pieces(self->fd, pieces, nr, &right) < ENOUGH)) {
		void *code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);

		ASSERT_NE(MAP_FAILED, code);
		pieces[nr++] = (uintptr_t)code;
		((void (*)(void (*)(void)))code)(burn_below);
	}
	ASSERT_EQ(0, stop(self->fd));
	samples = count_pieces(self->fd, pieces, nr, &right);
	TH_LOG("%u of %u, in %u pieces", right, samples, nr);
	EXPECT_LE(ENOUGH, samples);
	EXPECT_EQ(samples, right);
	close(file);
}
#endif

TEST_F(stacks, what_can_not_be_is_refused)
{
	struct kbarman_configure c = sampling(0);

	c.flags = KBARMAN_CONFIGURE_CHAIN_STACK | KBARMAN_CONFIGURE_CHAIN_USER;
	EXPECT_EQ(0, configure(self->fd, c));
	c = sampling(KBARMAN_MAX_STACK_BYTES + 1);
	EXPECT_EQ(-EINVAL, configure(self->fd, c));
	c = sampling(4096);
	c.flags = KBARMAN_CONFIGURE_CHAIN_USER;
	EXPECT_EQ(-EINVAL, configure(self->fd, c));
}

/* ---- what is not kept ---- */

enum { DATA, HEAP, MAPPED, LURES };

/* Addresses of data lie on the stack. */
static void NOINLINE burn_beside(const uintptr_t lures[LURES])
{
	volatile uintptr_t room[30 * LURES];

	for (unsigned int i = 0; i < ARRAY_SIZE(room); i++)
		room[i] = lures[i % LURES];
	touch_stack((const void *)(room + ARRAY_SIZE(room)));
	burn_for(200);
	sink += room[0];
}

/* How many samples in burn() there are, and how many of these have each of the lures. */
static unsigned int count_lures(int fd, const uintptr_t lures[LURES], unsigned int kept[LURES])
{
	static struct stack stack;
	unsigned int samples = 0;
	uint32_t cpu, i, n;

	for (cpu = 0; cpu < query(fd).nr_cpus; cpu++) {
		struct walk walk = walk_begin(map_cpu(fd, cpu));
		const union record *r;

		while ((r = walk_next(&walk))) {
			bool has[LURES] = { false };

			if (r->header.record_type != BM_RECORD_SAMPLE_WITH_PC ||
			    !in_burn(sample_pc(r)) || !stack_of(&stack, &walk, r))
				continue;
			samples++;
			for (i = 0; i < stack.nr; i++)
				for (n = 0; n < LURES; n++)
					has[n] |= stack.words[i].word == lures[n];
			for (n = 0; n < LURES; n++)
				kept[n] += has[n];
		}
	}
	return samples;
}

/* What is mapped near libraries may be kept until the session knows where these are. */
TEST_F(stacks, addresses_of_data_are_not_kept)
{
	static int data;
	const uintptr_t lures[LURES] = {
		(uintptr_t)&data, (uintptr_t)malloc(100),
		(uintptr_t)mmap(NULL, MIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) + 256 };
	unsigned int kept[LURES] = { 0 }, samples;

	ASSERT_EQ(0, configure(self->fd, sampling(0)));
	ASSERT_EQ(0, start(self->fd));
	burn_beside(lures);
	ASSERT_EQ(0, stop(self->fd));
	samples = count_lures(self->fd, lures, kept);
	EXPECT_LT(10, samples);
	EXPECT_EQ(0, kept[DATA]);
	EXPECT_EQ(0, kept[HEAP]);
	EXPECT_GT(samples / 2, kept[MAPPED]);
	TH_LOG("%u samples, %u with an address of mapped memory", samples, kept[MAPPED]);
}

/* ---- memory ---- */

static uint64_t memory_of(struct __test_metadata *_metadata, int fd, struct kbarman_configure c)
{
	struct kbarman_sessions s = { .size = sizeof(s) };

	EXPECT_EQ(0, configure(fd, c));
	EXPECT_EQ(0, call(fd, KBARMAN_SESSIONS, &s));
	return s.memory;
}

/* Two of the four levels of each CPU have stacks, of 16 KiB, and a byte for each one scanned. */
TEST_F(stacks, their_memory_is_charged_to_the_user)
{
	struct kbarman_configure c = sampling(0);
	uint64_t without, with, most, cpus = (uint64_t)sysconf(_SC_NPROCESSORS_CONF);

	c.flags = 0;
	without = memory_of(_metadata, self->fd, c);
	with = memory_of(_metadata, self->fd, sampling(0)) - without;
	c = sampling(KBARMAN_MAX_STACK_BYTES);
	c.max_stack = KBARMAN_MAX_STACK;
	most = memory_of(_metadata, self->fd, c) - without;
	EXPECT_LT(cpus * 2 * 2048 * 8, with);
	EXPECT_GT(cpus * 64 * KIB, with);
	EXPECT_GT(cpus * 400 * KIB, most);
	TH_LOG("a CPU: %llu bytes for 64 KiB of stack, %llu at most",
	       (unsigned long long)(with / cpus), (unsigned long long)(most / cpus));
	c.flags = 0;
	c.stack_bytes = 0;
	c.max_stack = 0;
	EXPECT_EQ(without, memory_of(_metadata, self->fd, c));
}

TEST_HARNESS_MAIN
