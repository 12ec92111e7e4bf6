// SPDX-License-Identifier: MIT
/*
 * Sparse stacks at task switches: the registers are those that user code had when it called the
 * kernel, above all those that functions preserve.
 */
#include "kselftest_harness.h"
#include "stacks.h"

#define SLEEPS		20	/* twice as often: one may be over before the task has gone */
#define MAGIC		0x51ab0000UL	/* and the number of the register */
#define INTERRUPTIBLE	1	/* TASK_INTERRUPTIBLE, in prev_state */

struct pause {
	long seconds, nanoseconds;
};

/* ---- a system call with known registers ---- */

#define SET(number, name, prefix)	"mov" prefix " $0x51ab0000 + " #number ", %%" #name "\n\t"

#if defined(__x86_64__)
static const unsigned char preserved[] = { 3, 6, 12, 13, 14, 15 };

static void NOINLINE sleep_known(const struct pause *pause)
{
	long call = SYS_nanosleep;

	__asm__ volatile("lea -128(%%rsp), %%rsp\n\tpush %%rbp\n\t"
			 SET(3, rbx, "q") SET(6, rbp, "q") SET(12, r12, "q") SET(13, r13, "q")
			 SET(14, r14, "q") SET(15, r15, "q")
			 "syscall\n\tpop %%rbp\n\tlea 128(%%rsp), %%rsp"
			 : "+a"(call) : "D"(pause), "S"(0)
			 : "rbx", "rcx", "r11", "r12", "r13", "r14", "r15", "memory", "cc");
}
#elif defined(__i386__)
static const unsigned char preserved[] = { 5, 6, 7 };

static void NOINLINE sleep_known(const struct pause *pause)
{
	long call = SYS_nanosleep;

	__asm__ volatile("push %%ebp\n\t" SET(5, ebp, "l") SET(6, esi, "l") SET(7, edi, "l")
			 "int $0x80\n\tpop %%ebp"
			 : "+a"(call) : "b"(pause), "c"(0) : "esi", "edi", "memory", "cc");
}
#elif defined(__aarch64__)
static const unsigned char preserved[] = { 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30 };

#define SET_X(n)	"movz x" #n ", #0x51ab, lsl #16\n\tmovk x" #n ", #" #n "\n\t"

static void NOINLINE sleep_known(const struct pause *pause)
{
	register long call __asm__("x8") = SYS_nanosleep;
	register const void *first __asm__("x0") = pause;
	register long second __asm__("x1") = 0;

	__asm__ volatile("stp x29, x30, [sp, #-16]!\n\t"
			 SET_X(19) SET_X(20) SET_X(21) SET_X(22) SET_X(23) SET_X(24) SET_X(25)
			 SET_X(26) SET_X(27) SET_X(28) SET_X(29) SET_X(30)
			 "svc #0\n\tldp x29, x30, [sp], #16"
			 : "+r"(first) : "r"(call), "r"(second)
			 : "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28",
			   "memory", "cc");
}
#elif defined(__arm__)
static const unsigned char preserved[] = { 4, 5, 6, 8, 9, 10, 11 };

#define SET_R(n)	"movw r" #n ", #" #n "\n\tmovt r" #n ", #0x51ab\n\t"

static void NOINLINE sleep_known(const struct pause *pause)
{
	register const void *first __asm__("r0") = pause;
	register long second __asm__("r1") = 0;

	__asm__ volatile("push {r4-r11}\n\tmov r7, %2\n\t"
			 SET_R(4) SET_R(5) SET_R(6) SET_R(8) SET_R(9) SET_R(10) SET_R(11)
			 "svc #0\n\tpop {r4-r11}"
			 : "+r"(first) : "r"(second), "i"(SYS_nanosleep) : "memory", "cc");
}
#elif defined(__riscv)
static const unsigned char preserved[] = { 8, 9, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27 };

#define SET_S(n, s)	"li " #s ", 0x51ab0000 + " #n "\n\t"

static void NOINLINE sleep_known(const struct pause *pause)
{
	register long call __asm__("a7") = SYS_nanosleep;
	register const void *first __asm__("a0") = pause;
	register long second __asm__("a1") = 0;

	__asm__ volatile("mv t0, s0\n\t"
			 SET_S(8, s0) SET_S(9, s1) SET_S(18, s2) SET_S(19, s3) SET_S(20, s4)
			 SET_S(21, s5) SET_S(22, s6) SET_S(23, s7) SET_S(24, s8) SET_S(25, s9)
			 SET_S(26, s10) SET_S(27, s11)
			 "ecall\n\tmv s0, t0"
			 : "+r"(first) : "r"(call), "r"(second)
			 : "t0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11",
			   "memory");
}
#elif defined(__s390x__)
static const unsigned char preserved[] = { 6, 7, 8, 9, 10, 11, 13, 14 };

#define SET_G(n)	"llilf %%r" #n ", 0x51ab0000 + " #n "\n\t"

static void NOINLINE sleep_known(const struct pause *pause)
{
	register long call __asm__("1") = SYS_nanosleep;
	register const void *first __asm__("2") = pause;
	register long second __asm__("3") = 0;

	__asm__ volatile(SET_G(6) SET_G(7) SET_G(8) SET_G(9) SET_G(10) SET_G(11)
			 SET_G(13) SET_G(14) "svc 0"
			 : "+d"(first) : "d"(call), "d"(second)
			 : "6", "7", "8", "9", "10", "11", "13", "14", "memory", "cc");
}
#else
#error which registers do functions preserve?
#endif

static void NOINLINE sleep_known_end(void)
{
	sink++;
}

/*
 * Whether the task left its CPU in the system call of sleep_known(), not in front of it: there it may be
 * preempted, or wait (D) for the page of its code, and its registers are others.
 */
static bool in_sleep(const struct bm_protocol_task_switch *left, uint64_t pc)
{
	return pc >= (uintptr_t)sleep_known && pc < (uintptr_t)sleep_known_end &&
	       left->reason == BM_TASK_SWITCH_BLOCKED && left->prev_state == INTERRUPTIBLE;
}

/* ---- what was recorded ---- */

FIXTURE(switches) {
	int fd;
};

FIXTURE_SETUP(switches)
{
	self->fd = device_open_free();
	if (!(query(self->fd).features & KBARMAN_FEATURE_CHAIN_STACK))
		SKIP(return, "no sparse stacks on this architecture");
}

FIXTURE_TEARDOWN(switches)
{
	close(self->fd);
}

static struct kbarman_configure switching(uint32_t flags)
{
	return (struct kbarman_configure) {
		.sources = KBARMAN_SOURCE_SCHED | KBARMAN_SOURCE_MAPS, .ring_bytes = 2 * MIB,
		.flags = KBARMAN_CONFIGURE_CHAIN_STACK | KBARMAN_CONFIGURE_CHAIN_SWITCH | flags };
}

/* How many switches from sleep_known() there are; all of them are judged. */
static unsigned int judge_switches(struct __test_metadata *_metadata, int fd, bool kernel)
{
	static struct stack stack;
	unsigned int count = 0, i;
	uint32_t cpu;

	for (cpu = 0; cpu < query(fd).nr_cpus; cpu++) {
		struct judgement j = judge_cpu(fd, cpu);
		struct walk walk = walk_begin(map_cpu(fd, cpu));
		const union record *r;

		EXPECT_EQ(NULL, j.fault) TH_LOG("CPU %u: %s", cpu, j.fault);
		while ((r = walk_next(&walk))) {
			if (r->header.record_type != BM_RECORD_TASK_SWITCH ||
			    walk.length <= BM_TASK_SWITCH_CHAIN_OFFSET ||
			    !stack_of(&stack, &walk, r) ||
			    !in_sleep(&r->task_switch, stack.registers[BM_KBARMAN_REGISTER_PC]))
				continue;
			count++;
			ASSERT_EQ(NULL, stack.damage) TH_LOG("%s", stack.damage);
			EXPECT_EQ(BM_KBARMAN_STACK_WHOLE, stack.head->end);
			EXPECT_EQ(kernel, stack.chain->nr > 1);
			for (i = 0; i < sizeof(preserved); i++)
				EXPECT_EQ(MAGIC + preserved[i], stack.registers[preserved[i]]);
		}
	}
	return count;
}

static void NOINLINE sleep_often(void)
{
	const struct pause pause = { .nanoseconds = 1000000 };

	touch_stack(environ);
	for (int i = 0; i < 2 * SLEEPS; i++)
		sleep_known(&pause);
	sleep_known_end();
}

TEST_F(switches, a_task_that_sleeps_has_the_registers_of_its_program)
{
	ASSERT_EQ(0, configure(self->fd, switching(0)));
	ASSERT_EQ(0, start(self->fd));
	sleep_often();
	ASSERT_EQ(0, stop(self->fd));
	EXPECT_LE(SLEEPS, judge_switches(_metadata, self->fd, false));
}

TEST_F(switches, behind_frames_of_the_kernel_as_well)
{
	if (!(query(self->fd).features & KBARMAN_FEATURE_CHAIN_KERNEL))
		SKIP(return, "no kernel frames on this machine");
	ASSERT_EQ(0, configure(self->fd, switching(KBARMAN_CONFIGURE_CHAIN_KERNEL)));
	ASSERT_EQ(0, start(self->fd));
	sleep_often();
	ASSERT_EQ(0, stop(self->fd));
	EXPECT_LE(SLEEPS, judge_switches(_metadata, self->fd, true));
}

TEST_HARNESS_MAIN
