// SPDX-License-Identifier: MIT
/*
 * Call chains: that those of samples and of task switches are what the program knows of
 * itself, to the last address; that they are cut where it was said; and what of them is
 * for whom. Built with frame pointers.
 */
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/timerfd.h>

#include "kselftest_harness.h"
#include "lib.h"

#define PERIOD_NS	1000000
#define DEPTH		100
#define NOINLINE	__attribute__((noinline, noclone))

static struct kbarman_configure sampling(uint32_t flags)
{
	return (struct kbarman_configure) {
		.sources = KBARMAN_SOURCE_PMU | KBARMAN_SOURCE_MAPS, .flags = flags,
		.ring_bytes = 4 * MIB, .nr_events = 1,
		.events_ptr = sampled(&cpu_clock, 1, PERIOD_NS) };
}

static struct kbarman_configure switching(uint32_t flags)
{
	return (struct kbarman_configure) {
		.sources = KBARMAN_SOURCE_SCHED,
		.flags = flags | KBARMAN_CONFIGURE_CHAIN_SWITCH };
}

#define USER	KBARMAN_CONFIGURE_CHAIN_USER
#define KERNEL	KBARMAN_CONFIGURE_CHAIN_KERNEL

/* ---- code that knows where it was called from ---- */

static bm_uintptr truth[DEPTH + 2];	/* return addresses, the innermost first */
static volatile uint64_t sink;

#define HERE()	((bm_uintptr)__builtin_extract_return_addr(__builtin_return_address(0)))

static inline void __attribute__((always_inline)) burn_cycles(void)
{
	uint64_t x = sink;

	for (int i = 0; i < 8; i++)
		x = x * 6364136223846793005ULL + 1442695040888963407ULL;
	sink = x;
}

/* Short, so that their first and last instructions are sampled as well. */
static void NOINLINE burn(void)
{
	burn_cycles();
}
static void NOINLINE burn_with_frame(void)
{
	asm volatile("" : : "r" (__builtin_frame_address(0)));
	burn_cycles();
}
static void NOINLINE burn_end(void)
{
	sink++;
}

static bool in_burn(uint64_t pc)
{
	return pc >= (uintptr_t)burn && pc < (uintptr_t)burn_end;
}

/* Half in a function that makes no frame, half in one that does. */
static void NOINLINE burn_a_while(void)
{
	truth[1] = HERE();
	for (int i = 0; i < 10000; i++) {
		burn();
		burn_with_frame();
	}
	sink++;
}
static void NOINLINE burn_a_while_end(void)
{
	sink--;
}

static void NOINLINE descend(unsigned int depth)
{
	truth[2 + DEPTH - 1 - depth] = HERE();
	if (depth == DEPTH - 1)
		burn_a_while();
	else
		descend(depth + 1);
	sink++;		/* no tail call */
}

static bm_uintptr raw_call(long number, long a, long b, long c)
{
#if defined(__x86_64__)
	long result;

	asm volatile("syscall" : "=a" (result) : "a" (number), "D" (a), "S" (b), "d" (c)
		     : "rcx", "r11", "memory");
	return result;
#elif defined(__aarch64__)
	register long x0 asm("x0") = a, x1 asm("x1") = b, x2 asm("x2") = c;
	register long x8 asm("x8") = number;

	asm volatile("svc #0" : "+r" (x0) : "r" (x1), "r" (x2), "r" (x8) : "memory");
	return x0;
#elif defined(__riscv)
	register long a0 asm("a0") = a, a1 asm("a1") = b, a2 asm("a2") = c;
	register long a7 asm("a7") = number;

	asm volatile("ecall" : "+r" (a0) : "r" (a1), "r" (a2), "r" (a7) : "memory");
	return a0;
#elif defined(__i386__)
	long result;

	asm volatile("int $0x80" : "=a" (result) : "a" (number), "b" (a), "c" (b), "d" (c)
		     : "memory");
	return result;
#else
	return syscall(number, a, b, c);
#endif
}

/* One frame that goes into the kernel itself, by no wrapper of a library. */
static void NOINLINE read_some(int fd, void *bytes, size_t length)
{
	truth[0] = HERE();
	if (raw_call(SYS_read, fd, (long)bytes, length) != length)
		lost("no bytes");
	sink++;
}
static void NOINLINE read_some_end(void)
{
	sink--;
}

/* ---- chains in records ---- */

#define NOBODY	UINT32_MAX

struct chain {
	uint32_t task_id;		/* whose it is; NOBODY of a first switch */
	bm_uintptr pc;			/* 0 of a switch */
	uint32_t nr, nr_kernel;
	const bm_uintptr *addresses;
	bool blocked;
};

struct chains {
	const void *map;
	struct walk walk;
	uint32_t current;		/* task on the CPU, by the switches; NOBODY before */
};

static struct chains chains_begin(const void *map)
{
	return (struct chains) { .map = map, .walk = walk_begin(map), .current = NOBODY };
}

/* The next sample with a PC or switch; nr is 0 if it has no chain. */
static bool chains_next(struct chains *chains, struct chain *chain)
{
	const struct bm_kbarman_callchain *head;
	const union record *r;

	do {
		r = walk_next(&chains->walk);
		if (!r)
			return false;
	} while (r->header.record_type != BM_RECORD_TASK_SWITCH &&
		 r->header.record_type != BM_RECORD_SAMPLE_WITH_PC);
	*chain = (struct chain) { .task_id = chains->current };
	if (r->header.record_type == BM_RECORD_TASK_SWITCH) {
		chain->blocked = r->task_switch.reason == BM_TASK_SWITCH_BLOCKED;
		chains->current = r->task_switch.task_id;
	} else {
		chain->task_id = r->sample.task_id;
		memcpy(&chain->pc, &r->sample + 1, sizeof(chain->pc));
	}
	head = walk_chain(&chains->walk, r);
	if (!head)
		return true;
	chain->nr = head->nr;
	chain->nr_kernel = head->nr_kernel;
	chain->addresses = (const void *)(head + 1);
	return true;
}

static bool is_chain_of_burn(const struct chain *chain)
{
	return chain->pc && in_burn(chain->pc) && chain->task_id == (uint32_t)thread_id();
}

static unsigned int burns_in(const void *map)
{
	struct chains chains = chains_begin(map);
	struct chain chain;
	unsigned int count = 0;

	while (chains_next(&chains, &chain))
		count += is_chain_of_burn(&chain);
	return count;
}

/* ---- of samples ---- */

FIXTURE(chains)
{
	int fd;
	const void *map;
};

FIXTURE_SETUP(chains)
{
	self->fd = device_open_free();
	if (!(query(self->fd).features & KBARMAN_FEATURE_CHAIN_USER))
		SKIP(skip_test(), "user frames can't be followed on this architecture");
	pin(0);
}

FIXTURE_TEARDOWN(chains)
{
	close(self->fd);
}

static void begin(struct __test_metadata *_metadata, FIXTURE_DATA(chains) *self,
		  struct kbarman_configure config)
{
	ASSERT_EQ(0, configure(self->fd, config));
	self->map = map_cpu(self->fd, 0);
	ASSERT_EQ(0, start(self->fd));
}

static void end(struct __test_metadata *_metadata, FIXTURE_DATA(chains) *self)
{
	struct judgement j;

	ASSERT_EQ(0, stop(self->fd));
	j = judge_cpu(self->fd, 0);
	EXPECT_EQ(NULL, j.fault) TH_LOG("at %llu: %s", (unsigned long long)j.at, j.fault);
}

/* How many of a chain's addresses are as they must be, of DEPTH + 3 that are known. */
static unsigned int equal_to_truth(const struct chain *chain)
{
	unsigned int same = 2;

	if (!chain->nr || chain->nr_kernel || chain->addresses[0] != chain->pc)
		return 0;
	if (chain->nr < 2 || chain->addresses[1] < (uintptr_t)burn_a_while ||
	    chain->addresses[1] >= (uintptr_t)burn_a_while_end)
		return 1;
	while (same < DEPTH + 3 && same < chain->nr &&
	       chain->addresses[same] == truth[same - 1])
		same++;
	return same;
}

TEST_F(chains, a_deep_chain_is_the_truth)
{
	unsigned int all = 0, right = 0, same;
	struct chains chains;
	struct chain chain;

	begin(_metadata, self, sampling(USER | KERNEL));
	while (burns_in(self->map) < 200)
		descend(0);
	end(_metadata, self);
	chains = chains_begin(self->map);
	while (chains_next(&chains, &chain)) {
		if (!is_chain_of_burn(&chain))
			continue;
		all++;
		same = equal_to_truth(&chain);
		right += same == DEPTH + 3;
		if (same < DEPTH + 3)
			TH_LOG("of %u addresses %u are right, at %#llx", chain.nr, same,
			       (unsigned long long)chain.pc);
	}
	TH_LOG("%u of %u chains", right, all);
	EXPECT_LE(0.99 * all, right);
}

TEST_F(chains, the_header_says_what_they_consist_of)
{
	begin(_metadata, self, sampling(USER | KERNEL));
	EXPECT_STREQ("both", capture_fact(self->map, "callchain"));
	EXPECT_STREQ("127", capture_fact(self->map, "max_stack"));
	end(_metadata, self);
	begin(_metadata, self, (struct kbarman_configure) {
		.sources = KBARMAN_SOURCE_SCHED, .max_stack = 7,
		.flags = USER | KBARMAN_CONFIGURE_CHAIN_SWITCH });
	EXPECT_STREQ("user,switch", capture_fact(self->map, "callchain"));
	EXPECT_STREQ("7", capture_fact(self->map, "max_stack"));
	end(_metadata, self);
	begin(_metadata, self, sampling(0));
	EXPECT_EQ(NULL, capture_fact(self->map, "callchain"));
	end(_metadata, self);
}

TEST_F(chains, a_chain_ends_at_max_stack)
{
	struct kbarman_configure config = sampling(USER | KERNEL);
	unsigned int longest = 0;
	struct chains chains;
	struct chain chain;

	config.max_stack = 10;
	begin(_metadata, self, config);
	while (burns_in(self->map) < 20)
		descend(0);
	end(_metadata, self);
	chains = chains_begin(self->map);
	while (chains_next(&chains, &chain)) {
		if (chain.nr > longest)
			longest = chain.nr;
		if (is_chain_of_burn(&chain)) {
			EXPECT_EQ(10, chain.nr);
		}
	}
	EXPECT_EQ(10, longest);
}

TEST_F(chains, without_being_asked_for_there_are_none)
{
	struct chains chains;
	struct chain chain;

	begin(_metadata, self, sampling(0));
	while (burns_in(self->map) < 20)
		descend(0);
	end(_metadata, self);
	chains = chains_begin(self->map);
	while (chains_next(&chains, &chain))
		ASSERT_EQ(0, chain.nr);
}

/* Samples of the kernel that this thread was in by read_some(). */
static bool is_chain_of_read(const struct chain *chain)
{
	uint32_t user = chain->nr_kernel;

	return chain->task_id == (uint32_t)thread_id() && chain->nr > user + 1 &&
	       chain->addresses[user] >= (uintptr_t)read_some &&
	       chain->addresses[user] < (uintptr_t)read_some_end &&
	       chain->addresses[user + 1] == truth[0];
}

/* Read zeroes until there are @count samples for whose chain @wanted holds. */
static void NOINLINE read_for(const void *map, unsigned int count,
			      bool (*wanted)(const struct chain *chain))
{
	static char bytes[1 << 20];
	unsigned int found = 0;
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	while (found < count) {
		struct chains chains = chains_begin(map);
		struct chain chain;

		for (int i = 0; i < 20; i++)
			read_some(fd, bytes, sizeof(bytes));
		for (found = 0; chains_next(&chains, &chain);)
			found += wanted(&chain);
	}
	close(fd);
}

static bool is_whole_chain_of_read(const struct chain *chain)
{
	return is_chain_of_read(chain) && is_kernel_address(chain->pc) && chain->nr_kernel >= 3 &&
	       chain->addresses[0] == chain->pc;
}

TEST_F(chains, the_kernels_frames_are_in_front_of_the_users)
{
	unsigned int of_read = 0, whole = 0;
	struct chains chains;
	struct chain chain;

	begin(_metadata, self, sampling(USER | KERNEL));
	read_for(self->map, 20, is_whole_chain_of_read);
	end(_metadata, self);
	chains = chains_begin(self->map);
	while (chains_next(&chains, &chain)) {
		for (uint32_t i = 0; i < chain.nr; i++)
			ASSERT_EQ(i < chain.nr_kernel, is_kernel_address(chain.addresses[i]));
		if (!is_kernel_address(chain.pc) || chain.task_id != (uint32_t)thread_id())
			continue;
		EXPECT_LE(1, chain.nr_kernel);
		of_read += is_chain_of_read(&chain);
		whole += is_whole_chain_of_read(&chain);
	}
	TH_LOG("%u of %u", whole, of_read);
	/* All but those in the first instructions of a call of the kernel. */
	EXPECT_LE(0.8 * of_read, whole);
}

/* ---- of interrupted code of the kernel ---- */

struct symbol {
	uint64_t begin, end;
};

struct symbols {
	struct symbol all[16];
	size_t nr;
};

/* Add the functions of the kernel that are called @name. It may have several: 5.10 on arm64. */
static void add_symbols(struct symbols *symbols, const char *name)
{
	FILE *file = fopen("/proc/kallsyms", "re");
	unsigned long long address;
	char kind, line[512], word[256];
	size_t i, first = symbols->nr;

	if (!file)
		lost("no kallsyms");
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "%llx %c %255s", &address, &kind, word) == 3 &&
		    !strcmp(word, name) && symbols->nr < sizeof(symbols->all) / sizeof(symbols->all[0]))
			symbols->all[symbols->nr++] = (struct symbol) { address, UINT64_MAX };
	rewind(file);
	while (fgets(line, sizeof(line), file))
		for (i = first; i < symbols->nr && sscanf(line, "%llx", &address) == 1; i++)
			if (address > symbols->all[i].begin && address < symbols->all[i].end)
				symbols->all[i].end = address;
	fclose(file);
}

/* What an interrupt comes in by; on arm64 from the kernel's code alone. */
static const char * const entry_names[] = {
	"el1h_64_irq", "el1_irq", "asm_sysvec_apic_timer_interrupt", "asm_common_interrupt",
#ifdef __i386__
	"handle_exception",	/* where interrupts of the APIC and exceptions go on */
#endif
#ifdef __riscv
	"do_irq",	/* what is below it is the entry of system calls as well */
#endif
};

static struct symbols entries, vfs_read;

static void find_symbols(void)
{
	entries.nr = vfs_read.nr = 0;
	for (size_t i = 0; i < sizeof(entry_names) / sizeof(entry_names[0]); i++)
		add_symbols(&entries, entry_names[i]);
	add_symbols(&vfs_read, "vfs_read");
	if (!vfs_read.nr)
		lost("the kernel has no vfs_read()");
}

/* A return address may be the first one behind a function that ends with the call. */
static bool returns_to(const struct symbols *symbols, uint64_t address)
{
	for (size_t i = 0; i < symbols->nr; i++)
		if (address > symbols->all[i].begin && address <= symbols->all[i].end)
			return true;
	return false;
}

/* The kernel's frame of @chain that an interrupt came in by, nr_kernel if there is none. */
static uint32_t entry_of_interrupt(const struct chain *chain)
{
	uint32_t i;

	for (i = 0; i < chain->nr_kernel && !returns_to(&entries, chain->addresses[i]);)
		i++;
	return i;
}

static bool is_interrupt_of_read(const struct chain *chain)
{
	return is_chain_of_read(chain) && entry_of_interrupt(chain) < chain->nr_kernel;
}

static bool goes_on_to_vfs_read(const struct chain *chain)
{
	for (uint32_t i = entry_of_interrupt(chain) + 1; i < chain->nr_kernel; i++)
		if (returns_to(&vfs_read, chain->addresses[i]))
			return true;
	return false;
}

/* A timer's interrupt is sampled where it runs, and that is on top of what it interrupted. */
TEST_F(chains, behind_an_interrupt_is_what_it_interrupted)
{
	struct kbarman_event timers = {
		.name = "timer:hrtimer_expire_entry",
		.attr = { .type = PERF_TYPE_TRACEPOINT,
			  .config = tracepoint_id("timer/hrtimer_expire_entry") } };
	struct kbarman_configure config = sampling(USER | KERNEL);
	unsigned int interrupts = 0, whole = 0;
	struct chains chains;
	struct chain chain;

	find_symbols();
	config.events_ptr = sampled(&timers, 1, 1);
	begin(_metadata, self, config);
	read_for(self->map, 50, is_interrupt_of_read);
	end(_metadata, self);
	chains = chains_begin(self->map);
	while (chains_next(&chains, &chain)) {
		if (!is_interrupt_of_read(&chain))
			continue;
		interrupts++;
		whole += goes_on_to_vfs_read(&chain);
	}
	TH_LOG("%u of %u", whole, interrupts);
	/* All but those in the first and last instructions of a call of the kernel. */
	EXPECT_LE(0.8 * interrupts, whole);
}

static bool is_in_kernel(const struct chain *chain)
{
	return is_kernel_address(chain->pc) && chain->task_id == (uint32_t)thread_id();
}

TEST_F(chains, of_the_user_only_has_the_user_only)
{
	struct chains chains;
	struct chain chain;

	begin(_metadata, self, sampling(USER));
	read_for(self->map, 10, is_chain_of_read);
	end(_metadata, self);
	chains = chains_begin(self->map);
	while (chains_next(&chains, &chain)) {
		ASSERT_EQ(0, chain.nr_kernel);
		for (uint32_t i = 0; i < chain.nr; i++)
			ASSERT_FALSE(is_kernel_address(chain.addresses[i]));
	}
}

TEST_F(chains, of_the_kernel_only_has_the_kernel_only)
{
	struct chains chains;
	struct chain chain;

	begin(_metadata, self, sampling(KERNEL));
	read_for(self->map, 10, is_in_kernel);
	descend(0);
	end(_metadata, self);
	chains = chains_begin(self->map);
	while (chains_next(&chains, &chain)) {
		ASSERT_EQ(chain.nr, chain.nr_kernel);
		ASSERT_EQ(is_kernel_address(chain.pc), chain.nr > 0);
	}
}

/* A program may have anything where a frame pointer is looked for. */
TEST_F(chains, nonsense_in_the_frame_pointer_does_no_harm)
{
#if defined(__x86_64__) || defined(__aarch64__) || defined(__riscv)
	static bm_uintptr loop[8];
	/* riscv points behind a record. */
#ifdef __riscv
	bm_uintptr *first = &loop[2], *second = &loop[4];
#else
	bm_uintptr *first = &loop[0], *second = &loop[2];
#endif
	bm_uintptr nonsense[] = { 0, 1, 8, ~7UL, 1UL << 63, 0xdeadbeefUL << 20,
				  (uintptr_t)first, (uintptr_t)(first + 1) };
	struct chains chains;
	struct chain chain;
	uint64_t stop_at;

	/* Frames that lead to each other. */
	loop[0] = (uintptr_t)second;
	loop[1] = loop[3] = (uintptr_t)burn;
	loop[2] = (uintptr_t)first;
	begin(_metadata, self, sampling(USER | KERNEL));
	for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++) {
		stop_at = clock_ns(CLOCK_MONOTONIC) + 20 * PERIOD_NS;
		do {
			uint64_t rounds = 20000;
#if defined(__x86_64__)
			asm volatile("push %%rbp; mov %1, %%rbp; 1: dec %0; jnz 1b; pop %%rbp"
				     : "+r" (rounds) : "r" (nonsense[i]) : "cc", "memory");
#elif defined(__riscv)
			asm volatile("mv t1, s0; mv s0, %1; 1: addi %0, %0, -1; bnez %0, 1b; "
				     "mv s0, t1"
				     : "+r" (rounds) : "r" (nonsense[i]) : "t1");
#else
			asm volatile("mov x9, x29; mov x29, %1; 1: subs %0, %0, #1; b.ne 1b; "
				     "mov x29, x9"
				     : "+r" (rounds) : "r" (nonsense[i]) : "x9", "cc");
#endif
		} while (clock_ns(CLOCK_MONOTONIC) < stop_at);
	}
	end(_metadata, self);
	chains = chains_begin(self->map);
	while (chains_next(&chains, &chain)) {
		unsigned int seen = 0;

		for (uint32_t i = chain.nr_kernel; i < chain.nr; i++)
			seen += chain.addresses[i] == (uintptr_t)burn;
		ASSERT_GE(2, seen);
	}
#endif
}

/* ---- of switches ---- */

/* A thread that is given back bytes, and how it waits for them. */
static void NOINLINE wait_for_byte(int fd)
{
	char byte;

	read_some(fd, &byte, 1);
	sink++;
}

static long waits_of_mine(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nvcsw;
}

TEST_F(chains, a_wait_has_the_stack_it_began_with)
{
	unsigned int of_mine = 0, right = 0;
	struct chains chains;
	struct chain chain;
	struct echo e;
	char byte = 0;
	long begun;

	begin(_metadata, self, switching(USER | KERNEL));
	e = echo_create(0);
	/* Such a task does not run at once when it is woken, so this thread has to wait for it. */
	ASSERT_EQ(0, sched_setscheduler(e.echo, SCHED_BATCH, &(struct sched_param) { 0 }));
	begun = waits_of_mine();
	for (int i = 0; i < 10000 && waits_of_mine() - begun < 300; i++) {
		if (write(e.there, &byte, 1) != 1)
			lost("no echo");
		wait_for_byte(e.back);
	}
	echo_destroy(&e);
	end(_metadata, self);
	chains = chains_begin(self->map);
	while (chains_next(&chains, &chain)) {
		for (uint32_t i = 0; i < chain.nr; i++)
			ASSERT_EQ(i < chain.nr_kernel, is_kernel_address(chain.addresses[i]));
		if (chain.task_id != (uint32_t)thread_id() || !chain.blocked)
			continue;
		of_mine++;
		right += chain.nr_kernel >= 3 && is_chain_of_read(&chain);
	}
	TH_LOG("%u of %u", right, of_mine);
	EXPECT_LE(200, of_mine);
	/* The end of the echo is waited for elsewhere. */
	EXPECT_LE(of_mine, right + 10);
}

/* Threads that wait again and again, each in its own way, and functions of the kernel that they wait in. */
#define WAITS	100

static const struct timespec a_moment = { .tv_nsec = 1000000 };

static void wait_in_poll(void)
{
	ppoll(NULL, 0, &a_moment, NULL);
}

static void wait_in_epoll(void)
{
	static int fd = -1;
	struct epoll_event event;

	if (fd < 0)
		fd = epoll_create1(EPOLL_CLOEXEC);
	epoll_wait(fd, &event, 1, 1);
}

static void wait_for_signal(void)
{
	sigset_t none;

	sigemptyset(&none);
	sigtimedwait(&none, NULL, &a_moment);
}

static void wait_at_futex(void)
{
	uint32_t word = 0;

	syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &a_moment);
}

static void wait_in_read(void)
{
	static const struct itimerspec in_a_moment = { .it_value = { .tv_nsec = 1000000 } };
	static int fd = -1;
	uint64_t times;

	if (fd < 0)
		fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	if (timerfd_settime(fd, 0, &in_a_moment, NULL) || read(fd, &times, sizeof(times)) != sizeof(times))
		lost("no timer");
}

static struct waiter {
	void (*wait)(void);
	const char *functions[4];	/* some compilers make some of these a part of their callers */
	struct symbols symbols;
	pthread_t thread;
	uint32_t id;
	unsigned int right, wrong;
} waiters[] = {
	{ .wait = wait_in_poll, .functions = { "do_sys_poll" } },
	{ .wait = wait_in_epoll, .functions = { "do_epoll_wait", "ep_poll" } },
	{
		.wait = wait_for_signal,
		.functions = { "do_sigtimedwait", "__x64_sys_rt_sigtimedwait", "__arm64_sys_rt_sigtimedwait" },
	},
	{
		.wait = wait_at_futex,
		.functions = { "futex_wait", "do_futex", "__x64_sys_futex", "__arm64_sys_futex" },
	},
	{ .wait = wait_in_read, .functions = { "vfs_read" } },
};

#define NR_WAITERS	(sizeof(waiters) / sizeof(waiters[0]))

static void *wait_often(void *context)
{
	struct waiter *waiter = context;

	waiter->id = (uint32_t)thread_id();
	for (int i = 0; i < WAITS; i++)
		waiter->wait();
	return NULL;
}

static bool has_frame_in(const struct chain *chain, const struct symbols *symbols)
{
	for (uint32_t i = 0; i < chain->nr_kernel; i++)
		if (returns_to(symbols, chain->addresses[i]))
			return true;
	return false;
}

static void note_wait(const struct chain *chain)
{
	for (struct waiter *waiter = waiters; waiter < waiters + NR_WAITERS; waiter++)
		for (struct waiter *in = waiters; in < waiters + NR_WAITERS; in++)
			if (waiter->id == chain->task_id && has_frame_in(chain, &in->symbols)) {
				waiter->right += in == waiter;
				waiter->wrong += in != waiter;
			}
}

/*
 * A chain may be one that the module has seen before: it must not be that of another wait. Most of these call
 * schedule() at the same place.
 */
TEST_F(chains, waits_of_several_kinds_have_their_own_chains)
{
	unsigned int found = 0;
	struct chains chains;
	struct chain chain;

	for (struct waiter *waiter = waiters; waiter < waiters + NR_WAITERS; waiter++)
		for (int i = 0; i < 4 && waiter->functions[i]; i++)
			add_symbols(&waiter->symbols, waiter->functions[i]);
	begin(_metadata, self, switching(KERNEL));
	for (struct waiter *waiter = waiters; waiter < waiters + NR_WAITERS; waiter++)
		ASSERT_EQ(0, pthread_create(&waiter->thread, NULL, wait_often, waiter));
	for (struct waiter *waiter = waiters; waiter < waiters + NR_WAITERS; waiter++)
		pthread_join(waiter->thread, NULL);
	end(_metadata, self);
	chains = chains_begin(self->map);
	while (chains_next(&chains, &chain))
		if (chain.blocked)
			note_wait(&chain);
	for (struct waiter *waiter = waiters; waiter < waiters + NR_WAITERS; waiter++) {
		TH_LOG("%s: %u", waiter->functions[0], waiter->right);
		EXPECT_EQ(0, waiter->wrong);
		found += waiter->right >= WAITS / 2;
	}
	EXPECT_LE(3, found);
}

/* The probe runs before attaching it has returned, and while it is detached. */
TEST_F(chains, tasks_may_switch_while_recording_begins_and_ends)
{
	pid_t switcher = fork();

	if (!switcher) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			ping_pong(0, 1000);
	}
	ASSERT_EQ(0, configure(self->fd, switching(USER | KERNEL)));
	for (int i = 0; i < 20; i++) {
		ASSERT_EQ(0, start(self->fd));
		ASSERT_EQ(0, stop(self->fd));
	}
	kill(switcher, SIGKILL);
	waitpid(switcher, NULL, 0);
}

TEST_F(chains, idling_has_none)
{
	unsigned int idle = 0;
	struct chains chains;
	struct chain chain;

	begin(_metadata, self, switching(KERNEL));
	for (int i = 0; i < 20; i++)
		usleep(1000);
	end(_metadata, self);
	chains = chains_begin(self->map);
	while (chains_next(&chains, &chain)) {
		if (chain.task_id)
			continue;
		idle++;
		EXPECT_EQ(0, chain.nr);
	}
	EXPECT_LT(0, idle);
}

/* ---- what is refused, and what is for whom ---- */

TEST_F(chains, switches_have_them_only_if_there_are_switches_and_chains)
{
	struct kbarman_configure config = switching(0);

	EXPECT_EQ(-EINVAL, configure(self->fd, config));
	config = sampling(USER | KBARMAN_CONFIGURE_CHAIN_SWITCH);
	EXPECT_EQ(-EINVAL, configure(self->fd, config));
	config.sources |= KBARMAN_SOURCE_SCHED;
	EXPECT_EQ(0, configure(self->fd, config));
}

TEST_F(chains, max_stack_goes_with_chains_and_into_a_record)
{
	struct kbarman_configure config = sampling(0);

	config.max_stack = 10;
	EXPECT_EQ(-EINVAL, configure(self->fd, config));
	config.flags = USER;
	EXPECT_EQ(0, configure(self->fd, config));
	config.max_stack = KBARMAN_MAX_STACK;
	EXPECT_EQ(0, configure(self->fd, config));
	config.max_stack = KBARMAN_MAX_STACK + 1;
	EXPECT_EQ(-E2BIG, configure(self->fd, config));
	config.max_stack = KBARMAN_MAX_STACK;
	config.ring_bytes = 64 * KIB;
	/* Addresses of 32 bits fit into the smallest ring's longest record, be they as many. */
	EXPECT_EQ(sizeof(bm_uintptr) == 8 ? -E2BIG : 0, configure(self->fd, config));
	config.max_stack -= 10;
	EXPECT_EQ(0, configure(self->fd, config));
}

static uint64_t tried(int fd)
{
	struct kbarman_stats s = stats(fd, 0);

	return s.written + s.lost[KBARMAN_LOST_TOO_BIG];
}

/* Be sampled below @depth callers. */
static void NOINLINE burn_below(unsigned int depth, int fd)
{
	if (depth) {
		burn_below(depth - 1, fd);
	} else {
		uint64_t enough = tried(fd) + 5;

		while (tried(fd) < enough)
			burn_a_while();
	}
	sink++;		/* no tail call */
}

TEST_F(chains, the_longest_chain_that_is_accepted_is_recorded)
{
	struct kbarman_configure config = sampling(USER);
	unsigned int longest = 0;
	struct chains chains;
	struct chain chain;

	config.ring_bytes = 64 * KIB;
	config.max_stack = KBARMAN_MAX_STACK;
	while (configure(self->fd, config) == -E2BIG)
		config.max_stack--;
	begin(_metadata, self, config);
	burn_below(config.max_stack, self->fd);
	EXPECT_EQ(0, stats(self->fd, 0).lost[KBARMAN_LOST_TOO_BIG]);
	end(_metadata, self);
	chains = chains_begin(self->map);
	while (chains_next(&chains, &chain))
		if (chain.nr > longest)
			longest = chain.nr;
	EXPECT_EQ(config.max_stack, longest);
}

TEST_F(chains, without_syslog_there_is_nothing_of_the_kernel)
{
	struct chains chains;
	struct chain chain;
	unsigned int at_zero = 0;

	close(self->fd);
	keep_only(ALL_CAPABILITIES & ~CAPABILITY(CAP_SYSLOG));
	self->fd = device_open_free();
	begin(_metadata, self, sampling(USER | KERNEL));
	EXPECT_STREQ("user", capture_fact(self->map, "callchain"));
	read_for(self->map, 10, is_chain_of_read);
	end(_metadata, self);
	chains = chains_begin(self->map);
	while (chains_next(&chains, &chain)) {
		at_zero += !chain.pc && is_chain_of_read(&chain);
		ASSERT_EQ(0, chain.nr_kernel);
		for (uint32_t i = 0; i < chain.nr; i++)
			ASSERT_FALSE(is_kernel_address(chain.addresses[i]));
	}
	/* Samples in the kernel say who called it, and not where they were. */
	EXPECT_LE(1, at_zero);
}

TEST_HARNESS_MAIN
