// SPDX-License-Identifier: MIT
/*
 * How fast addresses get names.
 *
 *	symbols DIRECTORY		a program is made there, and removed
 *
 * A program of 20,000 functions, assembled here, mapped for one task. Cold: random
 * addresses, each look-up depending on the one before. Cached: the same symbol again.
 * Beside them what libdwfl's dwfl_module_addrinfo() takes for the same, if libdw is
 * there. Every figure is the best of ROUNDS, in time of the processor. Prints a
 * member of a JSON object.
 */
#include <dlfcn.h>
#include <time.h>

#include <kbarman/barman.h>
#include <kbarman/symbol.h>

#include "program.h"

#define ROUNDS		5
#define FUNCTIONS	20000U
#define ADDRESSES	(1U << 16)
#define TEXT		0x400000UL	/* of the program, and where it is mapped */
#define MAPPED		0x7f0000000000UL

static uint64_t addresses[ADDRESSES];	/* in the program */
static struct bench_program program;

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec + now.tv_nsec * 1e-9;
}

static void choose_addresses(void)
{
	unsigned int i;

	for (i = 0; i < ADDRESSES; i++)
		addresses[i] = program.vaddr + ((uint64_t)rand() << 16 ^ rand()) % program.size;
}

static struct kb_symbolizer *open_symbolizer(const char *path, const char *capture,
					     struct kb_barman **barman)
{
	const struct kb_barman_layout layout = {
		.size = sizeof(layout),
		.max_cores = 1, .max_task_infos = 1, .max_mmap_layout = 1,
		.max_string_table_length = 8192,
	};
	const struct kb_header header = {
		.target_name = "bench", .timestamp_multiplier = 1, .timestamp_divisor = 1,
	};
	const struct kb_map map = {
		.task_id = 1, .base_address = MAPPED, .length = program.size,
		.image_offset = program.offset, .image = path,
	};
	int fd = open(capture, O_RDWR | O_CREAT | O_TRUNC, 0600);
	struct kb_barman_writer *writer;
	struct kb_symbolizer *symbolizer;
	struct kb_error err = { 0 };

	if (kb_barman_writer_create(&writer, fd, &layout, &err) ||
	    kb_barman_writer_set_header(writer, &header) ||
	    kb_barman_writer_map(writer, &map) || kb_barman_writer_finish(writer, true, &err) ||
	    kb_barman_open(barman, capture, &err) ||
	    kb_symbolizer_create(&symbolizer, *barman, NULL, NULL, &err))
		die(err.text);
	kb_barman_writer_destroy(writer);
	close(fd);
	unlink(capture);
	return symbolizer;
}

/* ns a look-up; each one waits for what the one before has found. */
static double measure(struct kb_symbolizer *symbolizer, uint64_t bias, unsigned int mask)
{
	enum { LOOKUPS = 2000000 };
	double best = 1e9, begin;
	unsigned int round, i;
	uint64_t sum = 0;

	for (round = 0; round < ROUNDS; round++) {
		begin = seconds();
		for (i = 0; i < LOOKUPS; i++)
			sum += kb_symbolizer_resolve(symbolizer, 1, 1,
						     addresses[(i + (sum >> 63)) & mask] + bias)->id;
		begin = (seconds() - begin) * 1e9 / LOOKUPS;
		best = begin < best ? begin : best;
	}
	return sum ? best : 0;
}

/* What is used of libdwfl, which has no header here. */
struct dwfl_callbacks {
	void *find_elf, *find_debuginfo, *section_address;
	char **debuginfo_path;
};

/* ns a look-up of libdwfl; 0: it is not there. */
static double measure_libdwfl(const char *path)
{
	void *library = dlopen("libdw.so.1", RTLD_NOW);
	struct dwfl_callbacks callbacks = { 0 };
	void *(*begin)(const struct dwfl_callbacks *callbacks);
	void *(*report)(void *dwfl, const char *name, const char *file, int fd);
	int (*report_end)(void *dwfl, void *removed, void *context);
	const char *(*addrinfo)(void *module, GElf_Addr address, GElf_Off *offset, GElf_Sym *sym,
				GElf_Word *section, Elf **elf, GElf_Addr *bias);
	enum { LOOKUPS = 500 };
	void *dwfl, *module;
	GElf_Off offset;
	GElf_Sym sym;
	double start;
	unsigned int i;

	if (!library)
		return 0;
	*(void **)&begin = dlsym(library, "dwfl_begin");
	*(void **)&report = dlsym(library, "dwfl_report_offline");
	*(void **)&report_end = dlsym(library, "dwfl_report_end");
	*(void **)&addrinfo = dlsym(library, "dwfl_module_addrinfo");
	callbacks.find_debuginfo = dlsym(library, "dwfl_standard_find_debuginfo");
	callbacks.section_address = dlsym(library, "dwfl_offline_section_address");
	if (!begin || !report || !report_end || !addrinfo)
		return 0;
	dwfl = begin(&callbacks);
	module = dwfl ? report(dwfl, "program", path, -1) : NULL;
	if (!module)
		return 0;
	report_end(dwfl, NULL, NULL);
	addrinfo(module, addresses[0], &offset, &sym, NULL, NULL, NULL);
	start = seconds();
	for (i = 0; i < LOOKUPS; i++)
		addrinfo(module, addresses[i], &offset, &sym, NULL, NULL, NULL);
	return (seconds() - start) * 1e9 / LOOKUPS;
}

int main(int argc, char **argv)
{
	char path[4000], capture[4096];
	struct kb_symbolizer *symbolizer;
	struct kb_barman *barman;
	double libdwfl;
	uint64_t vaddr;

	if (argc != 2) {
		fprintf(stderr, "usage: symbols DIRECTORY\n");
		return 2;
	}
	snprintf(path, sizeof(path), "%s/program", argv[1]);
	snprintf(capture, sizeof(capture), "%s.cap", path);
	program = bench_make_program(path, FUNCTIONS, TEXT);
	choose_addresses();
	vaddr = TEXT + program.offset;
	symbolizer = open_symbolizer(path, capture, &barman);
	printf("\"symbol_lookup_ns\":{\"cold\":%.1f,", measure(symbolizer, MAPPED - vaddr,
							       ADDRESSES - 1));
	printf("\"cached\":%.1f,", measure(symbolizer, MAPPED - vaddr, 0));
	libdwfl = measure_libdwfl(path);
	if (libdwfl > 0)
		printf("\"libdwfl\":%.0f}", libdwfl);
	else
		printf("\"libdwfl\":null,\"why\":\"libdw is not installed\"}");
	if (kb_symbolizer_count(symbolizer) < FUNCTIONS / 2)
		die("most functions were not found");
	kb_symbolizer_destroy(symbolizer);
	kb_barman_close(barman);
	unlink(path);
	return 0;
}
