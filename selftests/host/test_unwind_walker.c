// SPDX-License-Identifier: MIT
/*
 * Chains from sparse stacks are those of a shadow stack, at every instruction of real programs:
 * selftests/truth/stacks.c and .cc, and xz of this machine. A program runs one instruction at a
 * time. What it calls goes to the shadow stack. A call is over when SP is above its return
 * address, whoever moved it there: a return, longjmp, an exception. Of its registers and its stack
 * there is what the module would keep.
 *
 *	test_unwind_walker [--all | --save FILE]
 *
 * --all: every instruction of these programs, and the loader's (minutes); otherwise some of them.
 * --save: also writes cases for test_unwind_cases.
 *
 * Where chains differ is listed by cause: how ours ended, and in which function.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "../lib/shadow.h"
#include "../lib/tap.h"
#include "base/array.h"
#include "sym/elf/elf.h"
#include "sym/elf/unwind.h"
#include "unwind/walker.h"

#ifdef __x86_64__
#include <elf.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "../lib/gather.h"

#define MAX_IMAGES	32
#define MAX_MAPPINGS	128
#define KEPT		0xf0e8U		/* registers, as in user_registers.c */
#define SCRATCH		0xc11U
#define NEEDED_PERCENT	99.5

struct image {
	char path[256];
	struct kb_unwind_rows rows;
	struct kb_elf elf;
};

struct mapping {
	uint64_t low, high, bias;
	struct image *image;
	uint8_t *code;		/* a copy, or NULL */
};

struct tracee {
	pid_t pid;
	struct image images[MAX_IMAGES];
	unsigned int nr_images;
	struct mapping mappings[MAX_MAPPINGS];
	unsigned int nr_mappings;
	uint64_t stack_high;		/* end of the stack's mapping */
	uint64_t bounds[2][2];		/* of the code of the program, and of libraries */
	struct shadow shadow;
	struct user_regs_struct regs;
	struct gather_task task;
	FILE *save;
	uint32_t saved[64];		/* kinds of cases */
	unsigned int nr_saved;
};

static bool read_memory(const struct tracee *tracee, uint64_t address, void *to, size_t size)
{
	struct iovec here = { to, size }, there = { (void *)address, size };

	return process_vm_readv(tracee->pid, &here, 1, &there, 1, 0) == (ssize_t)size;
}

/* ---- what is mapped ---- */

static void open_vdso(struct tracee *tracee, struct image *image, uint64_t low, uint64_t high)
{
	size_t size = high - low;
	char *copy = malloc(size);

	if (copy && read_memory(tracee, low, copy, size))
		kb_elf_unwind_memory(&image->rows, copy, size, NULL);
	free(copy);
}

static struct image *get_image(struct tracee *tracee, const char *path, uint64_t low, uint64_t high)
{
	struct image *image = &tracee->images[tracee->nr_images];
	int fd;

	for (unsigned int i = 0; i < tracee->nr_images; i++)
		if (!strcmp(tracee->images[i].path, path))
			return &tracee->images[i];
	if (tracee->nr_images == MAX_IMAGES)
		return NULL;
	snprintf(image->path, sizeof(image->path), "%s", path);
	tracee->nr_images++;
	if (path[0] == '[') {
		open_vdso(tracee, image, low, high);
		return image;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && !kb_elf_load(&image->elf, path, NULL))
		kb_elf_unwind_fd(&image->rows, fd, -1, path, NULL);
	if (fd >= 0)
		close(fd);
	return image;
}

static void widen(uint64_t bounds[2], uint64_t low, uint64_t high)
{
	if (!bounds[1] || low < bounds[0])
		bounds[0] = low;
	if (high > bounds[1])
		bounds[1] = high;
}

static void take_code(struct tracee *tracee, uint64_t low, uint64_t high, uint64_t offset,
		      const char *path)
{
	struct image *image = get_image(tracee, path, low, high);
	struct mapping *mapping = &tracee->mappings[tracee->nr_mappings];
	const struct kb_elf_segment *segment;

	if (!image || tracee->nr_mappings == MAX_MAPPINGS)
		return;
	tracee->nr_mappings++;
	segment = kb_elf_segment_at(&image->elf, offset);
	*mapping = (struct mapping) { .low = low, .high = high, .image = image, .bias = low };
	mapping->code = malloc(high - low);
	if (mapping->code && !read_memory(tracee, low, mapping->code, high - low)) {
		free(mapping->code);
		mapping->code = NULL;
	}
	if (segment)
		mapping->bias = low - (segment->vaddr + offset - segment->offset);
	/* The first image is the program. */
	widen(tracee->bounds[image != tracee->images], low, high);
}

static void forget_maps(struct tracee *tracee)
{
	for (unsigned int i = 0; i < tracee->nr_mappings; i++)
		free(tracee->mappings[i].code);
	tracee->nr_mappings = 0;
}

static void read_maps(struct tracee *tracee)
{
	char path[64], line[512], file[256], rights[8];
	unsigned long low, high, offset;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", tracee->pid);
	maps = fopen(path, "re");
	forget_maps(tracee);
	while (maps && fgets(line, sizeof(line), maps)) {
		file[0] = '\0';
		if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %255s", &low, &high, rights, &offset,
			   file) < 4)
			continue;
		if (!strcmp(file, "[stack]"))
			tracee->stack_high = high;
		else if (rights[2] == 'x' && file[0] && strcmp(file, "[vsyscall]"))
			take_code(tracee, low, high, offset, file);
	}
	if (maps)
		fclose(maps);
}

static const struct mapping *find_mapping(const struct tracee *tracee, uint64_t address)
{
	for (unsigned int i = 0; i < tracee->nr_mappings; i++)
		if (address >= tracee->mappings[i].low && address < tracee->mappings[i].high)
			return &tracee->mappings[i];
	return NULL;
}

static const struct kb_unwind_rows *find_rows(void *closure, uint64_t address, uint64_t *bias)
{
	const struct mapping *mapping = find_mapping(closure, address);

	*bias = mapping ? mapping->bias : 0;
	return mapping && mapping->image->rows.header ? &mapping->image->rows : NULL;
}

/* ---- our chain ---- */

static bool read_stack(const struct gather_task *task, u64 from, void *to, size_t size)
{
	const struct tracee *tracee = (const void *)((const char *)task -
						     offsetof(struct tracee, task));

	return read_memory(tracee, from, to, size);
}

static struct kb_unwind_registers registers(const struct user_regs_struct *regs)
{
	return (struct kb_unwind_registers) {
		.known = UINT64_C(1) << KB_UNWIND_PC | 0xffff,
		.value = { regs->rax, regs->rdx, regs->rcx, regs->rbx, regs->rsi, regs->rdi,
			   regs->rbp, regs->rsp, regs->r8, regs->r9, regs->r10, regs->r11,
			   regs->r12, regs->r13, regs->r14, regs->r15,
			   [KB_UNWIND_PC] = regs->rip },
	};
}

/* "FILE+0xADDRESS", where the function begins in which @address is. */
static void name_of(void *closure, const struct kb_unwind_frame *frame, char *text, size_t size)
{
	const struct tracee *tracee = closure;
	const struct mapping *mapping = find_mapping(tracee, frame->pc);
	struct kb_unwind_bounds bounds = { 0 };
	struct kb_symtab_hit hit = { 0 };
	uint64_t address = kb_unwind_lookup(frame) - (mapping ? mapping->bias : 0);

	if (!mapping) {
		snprintf(text, size, "unknown code");
		return;
	}
	if (mapping->image->elf.symbols.nr_symbols)
		kb_symtab_find(&mapping->image->elf.symbols, address, &hit);
	if (mapping->image->rows.header)
		kb_unwind_function_at(&mapping->image->rows, address, &bounds);
	snprintf(text, size, "%s+%#" PRIx64 " %s", strrchr(mapping->image->path, '/') ?
		 strrchr(mapping->image->path, '/') + 1 : mapping->image->path,
		 bounds.start ? bounds.start : address,
		 hit.symbol ? kb_symtab_name(&mapping->image->elf.symbols, hit.symbol) : "");
}

/* ---- cases for the tree ---- */

/* The row that holds at a frame, with its absolute address. */
static void save_row(FILE *save, const struct tracee *tracee, const struct kb_unwind_frame *frame)
{
	uint64_t bias, lookup = kb_unwind_lookup(frame);
	const struct kb_unwind_rows *rows = find_rows((void *)tracee, lookup, &bias);
	const struct kb_unwind_step *rule;

	if (!rows)
		return;
	rule = kb_unwind_rule_at(rows, lookup - bias);
	fprintf(save, "row %#" PRIx64, lookup);
	for (unsigned int i = 0; i <= rule->count; i++)
		fprintf(save, " %u,%u,%u,%u,%d", rule[i].what, rule[i].target, rule[i].base,
			rule[i].count, rule[i].offset);
	fputc('\n', save);
}

/* What is in the rules of a chain: a bit for each kind of step. */
static uint32_t kind_of(const struct tracee *tracee)
{
	uint32_t kind = 0;

	for (unsigned int i = 0; i < tracee->shadow.chain.nr; i++) {
		uint64_t bias, lookup = kb_unwind_lookup(&tracee->shadow.frames[i]);
		const struct kb_unwind_rows *rows = find_rows((void *)tracee, lookup, &bias);
		const struct kb_unwind_step *rule = kb_unwind_rule_at(rows, lookup - bias);

		for (unsigned int j = 1; j <= rule->count; j++)
			if (rule[j].what != KB_UNWIND_AT)
				kind |= 1U << rule[j].what;
	}
	return tracee->shadow.chain.nr > 16 ? kind | 1U : kind;
}

static bool is_new_kind(struct tracee *tracee)
{
	uint32_t kind = kind_of(tracee);

	for (unsigned int i = 0; i < tracee->nr_saved; i++)
		if (tracee->saved[i] == kind)
			return false;
	if (tracee->nr_saved == ARRAY_SIZE(tracee->saved))
		return false;
	tracee->saved[tracee->nr_saved++] = kind;
	return true;
}

static void save_case(struct tracee *tracee, const struct kb_unwind_registers *regs,
		      const struct kb_unwind_stack *stack)
{
	const struct kb_unwind_chain *chain = &tracee->shadow.chain;
	char name[512];

	name_of((void *)tracee, &chain->frames[0], name, sizeof(name));
	fprintf(tracee->save, "case %s\nmachine %u %u\n", name, 62, 8);
	for (unsigned int i = 0; i < KB_UNWIND_REGISTERS; i++)
		if (regs->known >> i & 1)
			fprintf(tracee->save, "register %u %#" PRIx64 "\n", i, regs->value[i]);
	fprintf(tracee->save, "stack %#" PRIx64 " %#" PRIx64 "\n", stack->low, stack->high);
	for (size_t i = 0; i < stack->nr; i++)
		fprintf(tracee->save, "word %#" PRIx64 " %#" PRIx64 "\n", stack->words[i].address,
			stack->words[i].word);
	for (unsigned int i = 0; i < chain->nr; i++)
		save_row(tracee->save, tracee, &chain->frames[i]);
	for (unsigned int i = 0; i < chain->nr; i++)
		fprintf(tracee->save, "frame %#" PRIx64 " %d\n", chain->frames[i].pc,
			chain->frames[i].exact);
	fprintf(tracee->save, "end %s\n\n", kb_unwind_end_text(chain->end));
}

static void check_chain(struct tracee *tracee)
{
	struct gather_task *task = &tracee->task;
	struct kb_unwind_sparse sparse;

	task->registers = registers(&tracee->regs);
	task->stack_high = tracee->stack_high;
	for (unsigned int i = 0; i < 2; i++)
		task->code[i] = (struct kbarman_range) {
			tracee->bounds[i][0], tracee->bounds[i][1] - tracee->bounds[i][0] };
	sparse = gather(task);
	if (!shadow_check(&tracee->shadow, &sparse.registers, &sparse.stack, find_rows, name_of,
			  tracee))
		return;
	if (tracee->save && tracee->shadow.chain.nr > 3 && is_new_kind(tracee))
		save_case(tracee, &sparse.registers, &sparse.stack);
}

/* ---- the shadow stack ---- */

static bool is_prefix(uint8_t byte)
{
	return byte == 0x66 || byte == 0x67 || byte == 0xf2 || byte == 0xf3 || byte == 0x3e ||
	       byte == 0x2e || (byte >= 0x40 && byte <= 0x4f);
}

enum instruction { OTHER, CALL, SYSCALL };

static enum instruction decode(const struct tracee *tracee)
{
	const struct mapping *mapping = find_mapping(tracee, tracee->regs.rip);
	uint8_t code[16] = { 0 };
	size_t left = mapping ? mapping->high - tracee->regs.rip : 0;
	int at = 0;

	if (mapping && mapping->code)
		memcpy(code, mapping->code + (tracee->regs.rip - mapping->low),
		       left < sizeof(code) ? left : sizeof(code));
	while (at < 8 && is_prefix(code[at]))
		at++;
	if (code[at] == 0xe8 || (code[at] == 0xff && (code[at + 1] >> 3 & 7) == 2))
		return CALL;
	return code[at] == 0x0f && code[at + 1] == 0x05 ? SYSCALL : OTHER;
}

/* The handler of a signal begins. It returns to what goes on where the program was interrupted. */
static void enter_handler(struct tracee *tracee, const struct user_regs_struct *before)
{
	uint64_t restorer = 0;

	read_memory(tracee, tracee->regs.rsp, &restorer, sizeof(restorer));
	shadow_push(&tracee->shadow, tracee->regs.rsp + 8, before->rip);
	shadow_push(&tracee->shadow, tracee->regs.rsp, restorer);
}

/* Execute one instruction. False: the program has ended. */
static bool step(struct tracee *tracee)
{
	struct user_regs_struct before = tracee->regs;
	enum instruction what = decode(tracee);
	int status, number = 0;
	uint64_t pc;

	for (;;) {
		if (ptrace(PTRACE_SINGLESTEP, tracee->pid, NULL, (void *)(long)number) ||
		    waitpid(tracee->pid, &status, __WALL) < 0 || !WIFSTOPPED(status))
			return false;
		if (WSTOPSIG(status) == SIGTRAP)
			break;
		/* It arrives in front of the next instruction. */
		number = WSTOPSIG(status);
		ptrace(PTRACE_GETREGS, tracee->pid, NULL, &before);
	}
	if (ptrace(PTRACE_GETREGS, tracee->pid, NULL, &tracee->regs))
		return false;
	if (number) {
		shadow_end_calls(&tracee->shadow, tracee->regs.rsp);
		enter_handler(tracee, &before);
		return true;
	}
	shadow_end_calls(&tracee->shadow, tracee->regs.rsp);
	if (what == CALL && read_memory(tracee, tracee->regs.rsp, &pc, sizeof(pc)))
		shadow_push(&tracee->shadow, tracee->regs.rsp, pc);
	/* mmap, mprotect, munmap */
	if (what == SYSCALL && before.rax >= 9 && before.rax <= 11)
		read_maps(tracee);
	return true;
}

/* ---- the tests ---- */

static pid_t start(char *const argv[])
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		int null = open("/dev/null", O_RDWR);

		dup2(null, 0);
		dup2(null, 1);
		personality(ADDR_NO_RANDOMIZE);
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		execv(argv[0], argv);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0 || !WIFSTOPPED(status))
		return -1;
	ptrace(PTRACE_SETOPTIONS, pid, NULL, (void *)PTRACE_O_EXITKILL);
	return pid;
}

static uint64_t entry_of(pid_t pid)
{
	uint64_t pair[2], entry = 0;
	char path[64];
	FILE *auxv;

	snprintf(path, sizeof(path), "/proc/%d/auxv", pid);
	auxv = fopen(path, "re");
	while (auxv && fread(pair, sizeof(pair), 1, auxv) == 1)
		if (pair[0] == AT_ENTRY)
			entry = pair[1];
	if (auxv)
		fclose(auxv);
	return entry;
}

/* Let the loader run, up to the program's _start: there nothing has been called. */
static bool run_loader(struct tracee *tracee)
{
	void *entry = (void *)tracee->shadow.entry;
	long code = ptrace(PTRACE_PEEKTEXT, tracee->pid, entry, NULL);
	int status;

	ptrace(PTRACE_POKETEXT, tracee->pid, entry, (void *)((code & ~0xffL) | 0xcc));
	ptrace(PTRACE_CONT, tracee->pid, NULL, NULL);
	if (waitpid(tracee->pid, &status, __WALL) < 0 || !WIFSTOPPED(status))
		return false;
	ptrace(PTRACE_POKETEXT, tracee->pid, entry, (void *)code);
	if (ptrace(PTRACE_GETREGS, tracee->pid, NULL, &tracee->regs))
		return false;
	tracee->regs.rip = tracee->shadow.entry;
	return !ptrace(PTRACE_SETREGS, tracee->pid, NULL, &tracee->regs);
}

/* Execute @argv, and compare up to @limit instructions; 0: all, and those of the loader. */
static void trace(char *const argv[], unsigned long limit, FILE *save, const char *promise)
{
	struct tracee *tracee = calloc(1, sizeof(*tracee));

	tracee->save = save;
	tracee->task.machine = kb_unwind_machine(EM_X86_64, sizeof(u64));
	tracee->task.kept = KEPT;
	tracee->task.scratch = SCRATCH;
	tracee->task.read = read_stack;
	tracee->pid = start(argv);
	if (tracee->pid < 0 || ptrace(PTRACE_GETREGS, tracee->pid, NULL, &tracee->regs)) {
		tap_skip(promise, "this machine does not allow to trace programs");
		free(tracee);
		return;
	}
	tracee->shadow.entry = entry_of(tracee->pid);
	get_image(tracee, argv[0], 0, 0);
	if (!limit || run_loader(tracee)) {
		read_maps(tracee);
		do
			check_chain(tracee);
		while ((!limit || tracee->shadow.steps < limit) && step(tracee));
	}
	kill(tracee->pid, SIGKILL);
	waitpid(tracee->pid, NULL, __WALL);
	tap_ok(shadow_suffices(&tracee->shadow, NEEDED_PERCENT), promise);
	shadow_tell(&tracee->shadow, 8);
	forget_maps(tracee);
	for (unsigned int i = 0; i < tracee->nr_images; i++) {
		kb_unwind_rows_release(&tracee->images[i].rows);
		kb_elf_release(&tracee->images[i].elf);
	}
	free(tracee);
}

static char directory[] = "/tmp/kbarman-stacks-XXXXXX";

static void trace_source(const char *command, unsigned long limit, FILE *save, const char *promise)
{
	char whole[512], path[64], *argv[] = { path, NULL };

	snprintf(path, sizeof(path), "%s/a.out", directory);
	snprintf(whole, sizeof(whole), "%s -o %s 2>/dev/null", command, path);
	if (system(whole))
		tap_skip(promise, "there is no compiler for it");
	else
		trace(argv, limit, save, promise);
	unlink(path);
}

static int run_tests(FILE *save, bool all)
{
	char *xz[] = { "/usr/bin/xz", "-9", "-k", "-c", "/etc/services", NULL };
	static const char c[] = "gcc -O2 -fomit-frame-pointer -w selftests/truth/stacks.c -lm";
	static const char cc[] = "g++ -O2 -fomit-frame-pointer -w selftests/truth/stacks.cc";
	char bound[512];

	if (!mkdtemp(directory))
		return 1;
	trace_source(c, all ? 0 : 60000, save, "chains_of_c_are_those_of_the_shadow_stack");
	snprintf(bound, sizeof(bound), "%s -static", c);
	trace_source(bound, all ? 0 : 8000, NULL,
		     "chains_of_a_static_program_are_those_of_the_shadow_stack");
	trace_source(cc, all ? 0 : 40000, save,
		     "chains_of_cpp_with_exceptions_are_those_of_the_shadow_stack");
	if (access(xz[0], X_OK) || access(xz[4], R_OK))
		tap_skip("chains_of_xz_are_those_of_the_shadow_stack", "it is not installed");
	else
		trace(xz, all ? 400000 : 8000, save, "chains_of_xz_are_those_of_the_shadow_stack");
	rmdir(directory);
	tap_is(shadow_misled, 0, "registers_that_no_walk_used_do_not_matter");
	return tap_done();
}
#else
static int run_tests(FILE *save, bool all)
{
	(void)save;
	(void)all;
	tap_skip("chains_are_those_of_the_shadow_stack", "it is for amd64: calls are decoded");
	return tap_done();
}
#endif

int main(int argc, char **argv)
{
	FILE *save = argc == 3 && !strcmp(argv[1], "--save") ? fopen(argv[2], "we") : NULL;
	int ret = run_tests(save, argc == 2 && !strcmp(argv[1], "--all"));

	if (save)
		fclose(save);
	return ret;
}
