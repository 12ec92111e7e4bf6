// SPDX-License-Identifier: MIT
/*
 * A workload whose names and call chains are known: phases that call themselves by the
 * name of the thread, in each of which nearly all time is spent in one function, called
 * by way of functions that are known too:
 *
 *	binary linked opened	NAME_burn() in this program, in a library that it is
 *				linked with, and in one that it opens
 *	cxx rust		functions with mangled names
 *	deep			a function that calls itself DEPTH times
 *	jit			code that is made while it runs, told in /tmp/perf-PID.map
 *	dumped reused		code that is made while it runs, and then other code at the same
 *				place, told in /tmp/jit-PID.dump
 *
 * and then programs: part-static_pie, part-stripped, and part-child CHILDREN times.
 *
 *	names [-s SECONDS-A-PHASE] [-c CHILDREN]
 *
 * In the directory of this program are the others. What was done is printed as
 * PHASE=FUNCTION <- CALLER <- ... lines, and children=NUMBER.
 */
#include <dlfcn.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PART	binary
#include "part.h"

#define DEPTH	60

void linked_middle(void);

static double seconds = 0.4;

/* ---- names as compilers of other languages make them ---- */

void cxx_burn(void) __asm__("_ZN5truth7CounterIiLm3EE4burnERKSt6vectorIiSaIiEE");
void cxx_middle(void) __asm__("_ZN5truth6middleIdEEvT_");
void rust_burn(void) __asm__("_RNvNtCs1234_5truth5outer4burn");
void rust_middle(void) __asm__("_ZN5truth6middle17h0123456789abcdefE");

void NOINLINE cxx_burn(void)
{
	part_cycles();
}
void NOINLINE cxx_middle(void)
{
	for (int i = 0; i < PART_BURNS; i++)
		cxx_burn();
	part_sink++;
}
void NOINLINE rust_burn(void)
{
	part_cycles();
}
void NOINLINE rust_middle(void)
{
	for (int i = 0; i < PART_BURNS; i++)
		rust_burn();
	part_sink++;
}

/* ---- a deep chain ---- */

static void NOINLINE deep_descend(int depth)
{
	if (depth > 1)
		deep_descend(depth - 1);
	else
		binary_middle();
	part_sink++;
}

static void NOINLINE deep_middle(void)
{
	deep_descend(DEPTH);
	part_sink++;
}

/* ---- code that is made while it runs ---- */

/* Nothing in it depends on where it stands. */
static uint64_t NOINLINE jit_template(uint64_t x)
{
	__asm__ volatile("" : : "r" (__builtin_frame_address(0)));
	for (int i = 0; i < 20000; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
	}
	return x;
}
static void NOINLINE jit_template_end(void)
{
	part_sink++;
}

static uint64_t (*jit_code)(uint64_t x);

static void NOINLINE jit_middle(void)
{
	for (int i = 0; i < PART_BURNS; i++)
		part_sink = jit_code(part_sink | 1);
	part_sink++;
}

static size_t jit_length(void)
{
	return (char *)jit_template_end - (char *)jit_template;
}

static void *need(void *memory, const char *what)
{
	if (memory == MAP_FAILED) {
		perror(what);
		exit(1);
	}
	return memory;
}

static void jit_copy(char *code)
{
	if (mprotect(code, 1 << 16, PROT_READ | PROT_WRITE)) {
		perror("names: mprotect");
		exit(1);
	}
	memcpy(code, (const void *)jit_template, jit_length());
	if (mprotect(code, 1 << 16, PROT_READ | PROT_EXEC)) {
		perror("names: mprotect");
		exit(1);
	}
	__builtin___clear_cache(code, code + jit_length());
}

static void jit_make(void)
{
	size_t length = jit_length();
	char path[64], *code;
	FILE *map;

	code = need(mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
		    "names: mmap");
	jit_copy(code);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	map = fopen(path, "we");
	if (!map) {
		perror(path);
		exit(1);
	}
	fprintf(map, "%lx %zx jit_burn\n", (unsigned long)code, length);
	fclose(map);
	jit_code = (uint64_t (*)(uint64_t))code;
}

/* ---- code at one place, as perf's jitdump-specification.txt says ---- */

static char *dumped_code;
static FILE *dump;

/* The process maps its dump executable, so that whoever records it knows of it. */
static void dump_begin(void)
{
	uint32_t header[10] = { 0x4a695444, 1, sizeof(header), 0, 0, getpid() };
	char path[64];

	snprintf(path, sizeof(path), "/tmp/jit-%d.dump", getpid());
	dump = fopen(path, "w+e");
	if (!dump) {
		perror(path);
		exit(1);
	}
	fwrite(header, sizeof(header), 1, dump);
	fflush(dump);
	need(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(dump), 0), path);
	dumped_code = need(mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				-1, 0), "names: mmap");
}

static void dump_code(const char *name, uint64_t index)
{
	uint64_t length = jit_length(), start = (uintptr_t)dumped_code;
	uint32_t size = 16 + 40 + strlen(name) + 1 + length;
	struct timespec now;
	struct {
		uint32_t id, size;
		uint64_t time;
		uint32_t pid, tid;
		uint64_t vma, start, length, index;
	} load = {
		.size = size, .pid = getpid(), .tid = getpid(), .vma = start, .start = start,
		.length = length, .index = index,
	};

	jit_copy(dumped_code);
	clock_gettime(CLOCK_MONOTONIC, &now);
	load.time = (uint64_t)now.tv_sec * 1000000000 + now.tv_nsec;
	fwrite(&load, sizeof(load), 1, dump);
	fwrite(name, strlen(name) + 1, 1, dump);
	fwrite(dumped_code, length, 1, dump);
	fflush(dump);
	jit_code = (uint64_t (*)(uint64_t))dumped_code;
}

static void NOINLINE dumped_middle(void)
{
	for (int i = 0; i < PART_BURNS; i++)
		part_sink = jit_code(part_sink | 1);
	part_sink++;
}

/* ---- phases ---- */

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void NOINLINE phase(const char *name, const char *truth, void (*middle)(void))
{
	double end = cpu_seconds() + seconds;

	printf("%s=%s <- phase <- main\n", name, truth);
	fflush(stdout);
	prctl(PR_SET_NAME, name);
	do
		middle();
	while (cpu_seconds() < end);
	prctl(PR_SET_NAME, "names");
}

static const char *deep_truth(void)
{
	static char truth[100 + DEPTH * sizeof(" <- deep_descend")] =
		"binary_burn <- binary_middle";

	for (int i = 0; i < DEPTH; i++)
		strcat(truth, " <- deep_descend");
	return strcat(truth, " <- deep_middle");
}

/* Run @count times the program @name beside this one, one after the other. */
static void run(const char *directory, const char *name, const char *rounds, long count)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	while (count--) {
		char *const arguments[] = { path, (char *)rounds, NULL };
		int status;
		pid_t pid;

		if (posix_spawn(&pid, path, NULL, NULL, arguments, environ) ||
		    waitpid(pid, &status, 0) != pid || status) {
			fprintf(stderr, "names: %s did not run\n", path);
			exit(1);
		}
	}
}

int main(int argc, char **argv)
{
	char directory[4096], *slash, library[4200];
	void (*opened_middle)(void);
	long children = 100;
	void *opened;
	int option;

	while ((option = getopt(argc, argv, "s:c:")) != -1)
		switch (option) {
		case 's':
			seconds = strtod(optarg, NULL);
			break;
		case 'c':
			children = strtol(optarg, NULL, 10);
			break;
		default:
			return 2;
		}
	snprintf(directory, sizeof(directory), "%s", argv[0]);
	slash = strrchr(directory, '/');
	if (!slash)
		return 2;
	*slash = '\0';

	phase("binary", "binary_burn <- binary_middle", binary_middle);
	phase("linked", "linked_burn <- linked_middle", linked_middle);
	snprintf(library, sizeof(library), "%s/libopened.so", directory);
	opened = dlopen(library, RTLD_NOW);
	opened_middle = opened ? (void (*)(void))dlsym(opened, "opened_middle") : NULL;
	if (!opened_middle) {
		fprintf(stderr, "names: %s\n", dlerror());
		return 1;
	}
	phase("opened", "opened_burn <- opened_middle", opened_middle);
	phase("cxx", "truth::Counter<int, 3ul>::burn(std::vector<int, std::allocator<int> > const&)"
		     " <- void truth::middle<double>(double)", cxx_middle);
	phase("rust", "truth::outer::burn <- truth::middle", rust_middle);
	phase("deep", deep_truth(), deep_middle);
	jit_make();
	phase("jit", "jit_burn <- jit_middle", jit_middle);
	dump_begin();
	dump_code("dumped_burn", 1);
	phase("dumped", "dumped_burn <- dumped_middle", dumped_middle);
	dump_code("reused_burn", 2);
	phase("reused", "reused_burn <- dumped_middle", dumped_middle);

	run(directory, "part-static_pie", "200", 1);
	printf("part-static_pie=static_pie_burn <- static_pie_middle <- main\n");
	run(directory, "part-stripped", "200", 1);
	printf("part-stripped=stripped_burn <- stripped_middle <- main\n");
	run(directory, "part-child", "1", children);
	printf("part-child=child_burn <- child_middle <- main\nchildren=%ld\n", children);
	return 0;
}
