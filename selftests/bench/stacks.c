// SPDX-License-Identifier: MIT
/*
 * How many instructions a sparse stack takes to gather. Programs of this machine stop deep in calls
 * of their own, at the same place each time. The module's own sparse_stack.c, built as the kernel
 * builds it, gathers the 64 KiB from their stack pointers on, and valgrind counts.
 * Prints a member of a JSON object:
 *
 *	NAME_words NAME_kept	words of the program's stack that are looked at, and are kept
 *	NAME_per_word		instructions for each of these words
 *	beside			instructions for a stack of no words
 *
 * Usage: stacks
 *        stacks --count FILE LIMIT	what runs under valgrind
 */
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../compare/kernel.h"
#include "../../kmod/maps/code_bounds.h"
#include "../../kmod/stacks/sparse_stack.h"
#include "../../kmod/stacks/user_registers.h"
#include "callgrind.h"

#define LIMIT	65536U	/* bytes that are looked at */
#define ROOM	(LIMIT + 2 * PAGE_SIZE)

/* The numbers of DWARF, and where they are here. As in kmod/stacks/user_registers.c. */
struct pt_regs {
	u64 ax, bx, si, di, bp, sp, r10, r11, r12, r13, r14, r15, ip;
};

/* A program that stands still. */
static struct program {
	struct pt_regs regs;
	struct kbarman_sparse_ranges ranges;
	unsigned long base;	/* the address of `stack` */
	char stack[ROOM];
} program;

static char gathered[1 << 20];

/* ---- what the module asks of the kernel ---- */

/* Calls nothing: see count(). */
unsigned long __copy_from_user_inatomic(void *to, const void *from, unsigned long size)
{
	unsigned long at = (unsigned long)from - program.base, i;

	if (at > ROOM - size)
		return size;
	for (i = 0; i < size; i += sizeof(u64))
		*(volatile u64 *)(to + i) = *(const u64 *)(program.stack + at + i);
	return 0;
}

bool kbarman_read_old_page(void *to, unsigned long from, size_t size)
{
	(void)to, (void)from, (void)size;
	return false;
}

#define REGISTER(number, member)	{ number, false, false, offsetof(struct pt_regs, member) }
#define SCRATCH(number, member)		{ number, true, false, offsetof(struct pt_regs, member) }

struct kbarman_user_registers kbarman_user_registers(const struct pt_regs *regs)
{
	static const struct kbarman_user_register all[] = {
		SCRATCH(0, ax), REGISTER(3, bx), SCRATCH(4, si), REGISTER(5, di), REGISTER(6, bp),
		REGISTER(7, sp), SCRATCH(10, r10), SCRATCH(11, r11), REGISTER(12, r12),
		REGISTER(13, r13), REGISTER(14, r14), REGISTER(15, r15),
		REGISTER(BM_KBARMAN_REGISTER_PC, ip),
	};

	(void)regs;
	return (struct kbarman_user_registers) { all, ARRAY_SIZE(all), sizeof(u64), true };
}

/* ---- programs that stop ---- */

static const struct {
	const char *name, *command[5];
} programs[] = {
	{ "python3", { "/usr/bin/python3", "-S", "-c",
		"import os\n"
		"def f(n): return sum(f(n - 1) for _ in 'x') if n else os.kill(os.getpid(), 19) or 1\n"
		"f(200)" } },
	{ "bash", { "/bin/bash", "-c",
		"f() { if (($1)); then f $(($1 - 1)); else kill -STOP $$; fi; }; f 100" } },
	{ "perl", { "/usr/bin/perl", "-e",
		"sub f { my $n = shift; my @a = $n ? sort { f($n - 1); 0 } 1, 2 : kill 'STOP', $$ }"
		"f(100)" } },
};

#if defined(__x86_64__)
static bool take_registers(pid_t pid)
{
	struct user_regs_struct regs;

	if (ptrace(PTRACE_GETREGS, pid, NULL, &regs))
		return false;
	program.regs = (struct pt_regs) {
		regs.rax, regs.rbx, regs.rsi, regs.rdi, regs.rbp, regs.rsp, regs.r10, regs.r11,
		regs.r12, regs.r13, regs.r14, regs.r15, regs.rip,
	};
	return true;
}
#else
static bool take_registers(pid_t pid)
{
	(void)pid;
	return false;
}
#endif

static FILE *open_of(pid_t pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	return fopen(path, "r");
}

/* Where Linux says that the program and the end of its stack are: numbers 26 to 28. */
static unsigned long take_program(pid_t pid, struct mm_struct *mm)
{
	FILE *file = open_of(pid, "stat");
	unsigned long end = 0;
	int field;

	fscanf(file, "%*[^)]) ");
	for (field = 3; field < 26; field++)
		fscanf(file, "%*s ");
	fscanf(file, "%lu %lu %lu", &mm->start_code, &mm->end_code, &end);
	fclose(file);
	return end;
}

static void take_libraries(pid_t pid, const struct mm_struct *mm)
{
	static struct kbarman_code_bounds bounds;
	FILE *file = open_of(pid, "maps");
	unsigned long start, end;
	char rights[8];

	kbarman_code_bounds_forget(&bounds, mm);
	while (fscanf(file, "%lx-%lx %7s%*[^\n] ", &start, &end, rights) == 3)
		if (rights[2] == 'x' && !(start >> 63))
			kbarman_code_bounds_include(&bounds, mm, start, end);
	fclose(file);
	kbarman_code_bounds_find(&bounds, mm, &program.ranges.code[1]);
}

static bool take_stack(pid_t pid, unsigned long end)
{
	FILE *file = open_of(pid, "mem");
	unsigned long sp = program.regs.sp;
	bool taken;

	program.base = ALIGN_DOWN(sp, PAGE_SIZE);
	program.ranges.stack = (struct kbarman_range) { sp, end - sp };
	taken = end > sp && pread(fileno(file), program.stack,
				  min(ROOM, ALIGN(end, PAGE_SIZE) - program.base),
				  program.base) > 0;
	fclose(file);
	return taken;
}

/* False: it did not stop. */
static bool take(const char *const *command)
{
	struct mm_struct mm = { 0 };
	pid_t pid = fork();
	bool taken = false;
	int status;

	if (!pid) {
		personality(ADDR_NO_RANDOMIZE);
		setenv("PYTHONHASHSEED", "0", 1);
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		execv(command[0], (char **)command);
		_exit(1);
	}
	memset(&program, 0, sizeof(program));
	while (pid > 0 && waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
		if (WSTOPSIG(status) != SIGSTOP) {
			ptrace(PTRACE_CONT, pid, NULL,
			       WSTOPSIG(status) == SIGTRAP ? 0 : (long)WSTOPSIG(status));
			continue;
		}
		taken = take_registers(pid) && take_stack(pid, take_program(pid, &mm));
		take_libraries(pid, &mm);
		kill(pid, SIGKILL);
	}
	program.ranges.plain = ~0UL;
	program.ranges.code[0] = (struct kbarman_range) {
		mm.start_code, mm.end_code - mm.start_code };
	kbarman_sparse_ranges_close(&program.ranges);
	return taken;
}

/* ---- counting ---- */

static const struct bm_kbarman_stack *gather(unsigned int limit)
{
	struct bm_kbarman_stack *to = (struct bm_kbarman_stack *)gathered;

	kbarman_sparse_stack_gather(to, &program.regs, &program.ranges, limit, true, 0);
	return to;
}

/* Words that are kept: the bits of the maps. */
static unsigned int count_kept(const struct bm_kbarman_stack *stack)
{
	const u32 *at = (const u32 *)(stack + 1) + 2 * __builtin_popcountll(stack->registers);
	unsigned long low = ALIGN_DOWN(program.regs.sp, 32), end = low + stack->scanned, block;
	unsigned int kept = 0, words;

	for (block = ALIGN_DOWN(low, 512); block < end; block += 512) {
		words = hweight32(at[0]) + hweight32(at[1]);
		kept += words;
		for (at += 2; words--; at++)
			if (*at >> BM_KBARMAN_STACK_WORD_SHIFT == BM_KBARMAN_STACK_WORD_LONG)
				at += KBARMAN_SPARSE_LONG - 1;
	}
	return kept;
}

/*
 * Instructions to gather what `program` has, at most @limit bytes; < 0: valgrind can't run. Those
 * that copy and clear memory are left out, which the kernel does with repeat prefixes.
 */
static double count(const char *path, unsigned int limit)
{
	FILE *out = fopen(path, "w");
	char arguments[4200];

	if (!out || fwrite(&program, sizeof(program), 1, out) != 1 || fclose(out))
		return -1;
	snprintf(arguments, sizeof(arguments), "--count '%s' %u", path, limit);
	return callgrind_count("--toggle-collect=kbarman_sparse_stack_gather"
			       " --toggle-collect=__copy_from_user_inatomic"
			       " --toggle-collect='*memset*' --toggle-collect='*memmove*'",
			       arguments);
}

static int run_counted(const char *path, unsigned int limit)
{
	FILE *file = fopen(path, "r");

	if (!file || fread(&program, sizeof(program), 1, file) != 1)
		return 1;
	fclose(file);
	gather(limit);
	return 0;
}

/* Print what @command takes. Returns the instructions for no words; < 0: it can't be measured. */
static double measure(const char *name, const char *const *command, const char *path)
{
	double beside = take(command) ? count(path, 0) : -1;
	double all = beside < 0 ? -1 : count(path, LIMIT);
	const struct bm_kbarman_stack *stack;

	if (all < 0) {
		printf("\"%s_per_word\":null,", name);
		return -1;
	}
	stack = gather(LIMIT);
	printf("\"%s_words\":%u,\"%s_kept\":%u,\"%s_per_word\":%.2f,", name, stack->scanned / 8,
	       name, count_kept(stack), name, (all - beside) / (stack->scanned / 8));
	return beside;
}

int main(int argc, char **argv)
{
	char path[] = "/tmp/stacks.XXXXXX";
	double beside = -1;
	unsigned int i;
	int fd;

	if (argc == 4 && !strcmp(argv[1], "--count"))
		return run_counted(argv[2], strtoul(argv[3], NULL, 0));
	fd = mkstemp(path);
	printf("\"sparse_stack\":{");
	for (i = 0; i < ARRAY_SIZE(programs); i++) {
		double counted = measure(programs[i].name, programs[i].command, path);

		beside = counted < 0 ? beside : counted;
	}
	close(fd);
	unlink(path);
	if (beside < 0)
		printf("\"beside\":null,\"why\":\"valgrind or the programs cannot run here\"}\n");
	else
		printf("\"beside\":%.0f}\n", beside);
	return 0;
}
