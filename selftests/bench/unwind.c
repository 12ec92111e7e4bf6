// SPDX-License-Identifier: MIT
/*
 * What unwinding costs the reader: making the rows of libraries of this machine, and walking a
 * chain of 13 frames of this program with rows that are in use. Every time is the best of ROUNDS,
 * in time of the processor. Prints a member of a JSON object.
 */
#include <fcntl.h>
#include <glob.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "sym/elf/unwind.h"
#include "unwind/walker.h"

#define ROUNDS		9
#define FRAMES		13
#define STACK		4096	/* bytes that are looked at */

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec + now.tv_nsec * 1e-9;
}

/* The first file of @pattern; NULL: there is none. The caller frees it. */
static char *find_file(const char *pattern)
{
	char *path = NULL;
	glob_t found;

	if (glob(pattern, 0, NULL, &found) == 0) {
		path = realpath(found.gl_pathv[0], NULL);
		globfree(&found);
	}
	return path;
}

static unsigned int count_functions(const struct kb_unwind_rows *rows)
{
	unsigned int nr = 0;

	for (uint32_t i = 0; i < rows->header->nr_rows; i++)
		nr += (rows->rule_of[i] & KB_UNWIND_FUNCTION) != 0;
	return nr;
}

/* Make the rows of a file, and print what they cost. */
static void measure_file(const char *name, const char *pattern)
{
	char *path = find_file(pattern);
	struct kb_unwind_rows rows = { 0 };
	double best = 1e9;

	for (unsigned int round = 0; path && round < ROUNDS; round++) {
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		double begin = seconds();

		kb_unwind_rows_release(&rows);
		kb_elf_unwind_fd(&rows, fd, -1, path, NULL);
		begin = seconds() - begin;
		best = begin < best ? begin : best;
		close(fd);
	}
	free(path);
	if (!rows.header || !rows.header->nr_rows) {
		printf("\"%s_ms\":null,", name);
		return;
	}
	printf("\"%s_ms\":%.2f,\"%s_bytes_per_row\":%.2f,\"%s_bytes_per_function\":%.1f,", name,
	       best * 1e3, name, (double)rows.header->size / rows.header->nr_rows, name,
	       (double)rows.header->size / count_functions(&rows));
	kb_unwind_rows_release(&rows);
}

/* ---- a chain of this program ---- */

struct images {
	struct {
		uint64_t low, high, bias;
		struct kb_unwind_rows rows;
	} images[16];
	unsigned int nr;
};

static int add_image(struct dl_phdr_info *info, size_t size, void *closure)
{
	const char *path = info->dlpi_name[0] ? info->dlpi_name : "/proc/self/exe";
	struct images *images = closure;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	(void)size;
	for (int i = 0; fd >= 0 && i < info->dlpi_phnum && images->nr < 16; i++) {
		const ElfW(Phdr) *phdr = &info->dlpi_phdr[i];

		if (phdr->p_type != PT_LOAD || !(phdr->p_flags & PF_X))
			continue;
		kb_elf_unwind_fd(&images->images[images->nr].rows, fd, -1, path, NULL);
		images->images[images->nr].bias = info->dlpi_addr;
		images->images[images->nr].low = info->dlpi_addr + phdr->p_vaddr;
		images->images[images->nr].high = info->dlpi_addr + phdr->p_vaddr + phdr->p_memsz;
		images->nr += images->images[images->nr].rows.header != NULL;
	}
	if (fd >= 0)
		close(fd);
	return 0;
}

static const struct kb_unwind_rows *find(void *closure, uint64_t address, uint64_t *bias)
{
	struct images *images = closure;

	for (unsigned int i = 0; i < images->nr; i++)
		if (address >= images->images[i].low && address < images->images[i].high) {
			*bias = images->images[i].bias;
			return &images->images[i].rows;
		}
	return NULL;
}

/* False: not known for this machine. */
static bool take_registers(const ucontext_t *context, struct kb_unwind_registers *regs)
{
#if defined(__x86_64__)
	static const uint8_t numbers[] = {
		REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
		REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15,
	};

	for (unsigned int i = 0; i < sizeof(numbers); i++)
		regs->value[i] = context->uc_mcontext.gregs[numbers[i]];
	regs->value[KB_UNWIND_PC] = context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
	for (unsigned int i = 0; i < 31; i++)
		regs->value[i] = context->uc_mcontext.regs[i];
	regs->value[31] = context->uc_mcontext.sp;
	regs->value[KB_UNWIND_PC] = context->uc_mcontext.pc;
#else
	(void)context;
	(void)regs;
	return false;
#endif
	regs->known = UINT64_MAX;
	return true;
}

static bool is_needed(struct images *images, uint64_t word, uint64_t sp)
{
	uint64_t bias;

	return word - sp < STACK || find(images, word, &bias);
}

/* us a chain from @regs; 0: it is not whole. */
static double measure_chain(struct images *images, const struct kb_unwind_registers *regs)
{
	static struct kb_unwind_word words[STACK / sizeof(long)];
	struct kb_unwind_frame frames[FRAMES];
	struct kb_unwind_chain chain = { .frames = frames, .max = FRAMES };
	struct kb_unwind_stack stack = { .words = words };
	enum { CHAINS = 20000 };
	double best = 1e9;
	uint64_t sp = regs->value[images->images[0].rows.machine->sp];

	stack.low = sp;
	stack.high = sp + STACK;
	for (uint64_t at = sp; at < sp + STACK; at += sizeof(long))
		if (is_needed(images, *(volatile unsigned long *)at, sp))
			words[stack.nr++] = (struct kb_unwind_word) {
				at, *(volatile unsigned long *)at };
	for (unsigned int round = 0; round < ROUNDS; round++) {
		double begin = seconds();

		for (unsigned int i = 0; i < CHAINS; i++)
			kb_unwind_walk(&chain, regs, &stack, find, images);
		begin = (seconds() - begin) * 1e6 / CHAINS;
		best = begin < best ? begin : best;
	}
	return chain.nr == FRAMES && chain.end == KB_UNWIND_LIMIT ? best : 0;
}

static __attribute__((noinline)) double from_here(struct images *images)
{
	struct kb_unwind_registers regs = { 0 };
	ucontext_t context;

	getcontext(&context);
	return images->nr && take_registers(&context, &regs) ? measure_chain(images, &regs) : 0;
}

static __attribute__((noinline)) double nest(struct images *images, unsigned int depth)
{
	volatile char room[96];
	double result;

	room[depth] = 0;
	result = depth ? nest(images, depth - 1) : from_here(images);
	return result + room[depth];
}

int main(void)
{
	static struct images images;
	volatile char above[STACK];	/* what is looked at is the stack */
	double chain;

	above[0] = 0;
	dl_iterate_phdr(add_image, &images);
	printf("\"unwind\":{");
	measure_file("libc", "/lib/*-linux-gnu*/libc.so.6");
	measure_file("libcrypto", "/usr/lib/*-linux-gnu*/libcrypto.so.*");
	measure_file("python3", "/usr/bin/python3");
	chain = nest(&images, 20) + above[0];
	if (chain > 0)
		printf("\"chain_us\":%.3f}\n", chain);
	else
		printf("\"chain_us\":null}\n");
	return 0;
}
