// SPDX-License-Identifier: MIT
/*
 * Instructions of known programs, each in a task of its own. They give way to each other on one CPU
 * all the time, and their counters are read at each switch. What the records say of each task goes
 * to the file known.sums, as "PROGRAM USER ALL": known.py compares this with what a plugin of QEMU
 * has counted meanwhile.
 */
#include <linux/perf_event.h>

#include "burn.h"
#include "kselftest_harness.h"
#include "known.h"
#include "sums.h"

#define ROUNDS	1000	/* of the first program; the others have twice, … as many */

#define STOP_ITSELF \
	"mov x8, %2\n" \
	"svc #0\n" \
	"mov x1, %4\n" \
	"mov x8, %3\n" \
	"svc #0\n"

/*
 * All that a program does: it stops itself before it is recorded. Then ten thousand instructions in
 * user space and a system call, @rounds times. Then it stops itself again: its end would go on in
 * the kernel, in switches without the program. There is no other code in its section. The plugin
 * counts from the `nop` on.
 */
#define PROGRAM(n) \
static void __attribute__((noinline, noclone, section(".known" #n))) known_##n(void) \
{ \
	register long rounds __asm__("x19") = ROUNDS * ((n) + 1); \
\
	__asm__ volatile(STOP_ITSELF \
			 "nop\n" \
			 "1: mov x9, #5000\n" \
			 "2: subs x9, x9, #1\n" \
			 "b.ne 2b\n" \
			 "mov x8, %1\n" \
			 "svc #0\n" \
			 "subs %0, %0, #1\n" \
			 "b.ne 1b\n" \
			 STOP_ITSELF \
			 : "+r"(rounds) : "i"(SYS_sched_yield), "i"(SYS_getpid), "i"(SYS_kill), \
			   "i"(SIGSTOP) \
			 : "x0", "x1", "x8", "x9", "memory", "cc"); \
}

PROGRAM(0)
PROGRAM(1)
PROGRAM(2)
PROGRAM(3)

static void (*const programs[KNOWN_PROGRAMS])(void) = { known_0, known_1, known_2, known_3 };

TEST(each_task_has_its_instructions)
{
	struct kbarman_event events[2] = {
		{ .attr = { .type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_INSTRUCTIONS,
			    .exclude_kernel = 1 }, .name = "instructions:u" },
		{ .attr = { .type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_INSTRUCTIONS },
		  .name = "instructions" },
	};
	struct kbarman_configure config = sampling(events, 2);
	pid_t children[KNOWN_PROGRAMS];
	int fd = device_open_free(), status;
	unsigned int i;
	FILE *out;

	if (!(query(fd).features & KBARMAN_FEATURE_PMU))
		SKIP(return, "no hardware PMU");
	pin(0);
	config.sources |= KBARMAN_SOURCE_SCHED;
	config.flags |= KBARMAN_CONFIGURE_COUNT_SWITCH;
	config.events_ptr = (uintptr_t)events;
	config.ring_bytes = 16 << 20;
	ASSERT_EQ(0, configure(fd, config));
	for (i = 0; i < KNOWN_PROGRAMS; i++) {
		children[i] = fork();
		if (!children[i])
			programs[i]();
		ASSERT_EQ(children[i], waitpid(children[i], &status, WUNTRACED));
	}
	ASSERT_EQ(0, start(fd));
	for (i = 0; i < KNOWN_PROGRAMS; i++)
		kill(children[i], SIGCONT);
	for (i = 0; i < KNOWN_PROGRAMS; i++)
		ASSERT_EQ(children[i], waitpid(children[i], &status, WUNTRACED));
	ASSERT_EQ(0, stop(fd));
	for (i = 0; i < KNOWN_PROGRAMS; i++) {
		kill(children[i], SIGKILL);
		ASSERT_EQ(children[i], waitpid(children[i], &status, 0));
	}
	EXPECT_TRUE(sums_are_equal(fd));
	EXPECT_EQ(0, unrecorded(fd));
	out = fopen("known.sums", "w");
	ASSERT_NE(NULL, out);
	for (i = 0; i < KNOWN_PROGRAMS; i++) {
		EXPECT_LT(500, switches_to(fd, 0, children[i]));
		fprintf(out, "%u %llu %llu\n", i,
			(unsigned long long)sum_of(fd, 0, children[i], 0),
			(unsigned long long)sum_of(fd, 0, children[i], 1));
	}
	ASSERT_EQ(0, fclose(out));
}

TEST_HARNESS_MAIN
