/* SPDX-License-Identifier: MIT */
/* Programs of many functions, assembled for benchmarks. */
#ifndef KBARMAN_BENCH_PROGRAM_H
#define KBARMAN_BENCH_PROGRAM_H

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct bench_program {
	uint64_t vaddr, offset, size;	/* of its code */
};

static void die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

/* Where the code is in the program at @path. */
static inline struct bench_program bench_find_code(const char *path)
{
	struct bench_program program = { 0 };
	int fd = open(path, O_RDONLY), i;
	GElf_Phdr phdr;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	for (i = 0; gelf_getphdr(elf, i, &phdr); i++)
		if (phdr.p_type == PT_LOAD && phdr.p_flags & PF_X)
			program = (struct bench_program) {
				phdr.p_vaddr, phdr.p_offset, phdr.p_filesz,
			};
	elf_end(elf);
	close(fd);
	if (!program.vaddr)
		die("no code");
	return program;
}

/* @nr functions of 16 to 700 bytes, with gaps of up to 15 between them, linked at @text. */
static inline struct bench_program bench_make_program(const char *path, unsigned int nr,
						      uint64_t text)
{
	char command[2 * 4096 + 128], source[4096];
	FILE *file;
	unsigned int i;

	snprintf(source, sizeof(source), "%s.s", path);
	file = fopen(source, "w");
	if (!file)
		die(source);
	srand(2);
	fputs(".text\n.globl _start\n_start:\n", file);
	for (i = 0; i < nr; i++)
		fprintf(file, ".balign 16\n.globl function_%u\n.type function_%u, %%function\n"
			"function_%u:\n.skip %u\n.size function_%u, .-function_%u\n", i, i, i,
			16 + rand() % 685, i, i);
	fclose(file);
	snprintf(command, sizeof(command), "gcc -nostdlib -static -Wl,-Ttext-segment=0x%llx -o %s %s",
		 (unsigned long long)text, path, source);
	if (system(command))
		die("gcc");
	unlink(source);
	return bench_find_code(path);
}

#endif
