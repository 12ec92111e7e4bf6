// SPDX-License-Identifier: MIT
/*
 * How long a report takes, and how much memory.
 *
 *	report DIRECTORY TOOL
 *
 * A capture of 10 M samples on 8 CPUs, of 50 tasks that run for a few hundred samples at a
 * time, each in eight of 200 images of 1,000 functions. Twice: in the *wide* one nine of
 * ten samples are in a tenth of the functions, and fall anywhere there; in the *narrow* one
 * they are as programs are, the n-th function of a task has the n-th part of the samples
 * of its first one, and each has 32 addresses. 500 MB are needed in DIRECTORY. Time is of
 * the processor, the best of ROUNDS; memory is the tool's peak. Prints a member of a JSON
 * object.
 */
#include <math.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include <kbarman/barman.h>

#include "program.h"

#define SAMPLES		10000000U
#define IMAGES		200U
#define FUNCTIONS	1000U
#define TASKS		50U
#define CPUS		8U
#define TEXT		0x400000UL
#define MAPPED(i)	(0x7f0000000000UL + (uint64_t)(i) * 0x1000000)
#define ROUNDS		3

static void must(int ret, const struct kb_error *err)
{
	if (ret < 0)
		die(err->text);
}

static void add_tables(struct kb_barman_writer *writer, const char *directory,
		       const struct bench_program *program)
{
	struct kb_error err = { .text = "the tables" };
	char name[4096], command[3 * 4096];
	unsigned int i, task;

	for (task = 1; task <= TASKS; task++) {
		snprintf(name, sizeof(name), "task-%u", task);
		must(kb_barman_writer_task(writer, &(struct kb_task) {
			.task_id = task, .name = name }), &err);
	}
	for (i = 0; i < IMAGES; i++) {
		snprintf(name, sizeof(name), "%s/image-%u", directory, i);
		snprintf(command, sizeof(command), "%s/image", directory);
		if (link(command, name) && errno != EEXIST)
			die(name);
		for (task = 1; task <= TASKS; task++)
			must(kb_barman_writer_map(writer, &(struct kb_map) {
				.task_id = task, .base_address = MAPPED(i),
				.length = program->size, .image_offset = program->offset,
				.image = name }), &err);
	}
}

/* Random, but the same each time. */
static uint64_t next(void)
{
	static uint64_t x = 88172645463325252U;

	x ^= x << 13;
	x ^= x >> 7;
	return x ^= x << 17;
}

/* Anywhere in the program, but most often in its first tenth. */
static uint64_t wide_pc(const struct bench_program *program, uint32_t task)
{
	uint64_t random = next(), offset = random % program->size;

	if (random >> 32 & 15)
		offset /= 10;
	return MAPPED((task * 4 + (random >> 40) % 8) % IMAGES) + offset;
}

/* By Zipf's law among all the functions of the eight images. */
static uint64_t narrow_pc(const struct bench_program *program, uint32_t task)
{
	uint64_t random = next();
	uint32_t rank = pow(8 * FUNCTIONS, (random >> 32) / 4294967296.0) - 1;
	uint64_t size = program->size / FUNCTIONS;

	return MAPPED((task * 4 + rank % 8) % IMAGES) + rank / 8 * size + (random % 32) * size / 32;
}

static void make_capture(const char *path, const char *directory,
			 const struct bench_program *program,
			 uint64_t (*choose_pc)(const struct bench_program *program, uint32_t task))
{
	const struct kb_barman_layout layout = {
		.size = sizeof(layout),
		.max_cores = CPUS, .max_task_infos = TASKS, .max_mmap_layout = TASKS * IMAGES,
		.max_pmu_counters = 1, .max_string_table_length = 1 << 20,
	};
	const struct kb_header header = {
		.target_name = "bench", .timestamp_multiplier = 1, .timestamp_divisor = 1,
	};
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	uint32_t tasks[CPUS] = { 0 }, left[CPUS] = { 0 }, i;
	uint32_t type = 17;
	struct kb_barman_writer *writer;
	uint64_t period = 1000000;
	struct kb_error err = { 0 };

	must(kb_barman_writer_create(&writer, fd, &layout, &err), &err);
	must(kb_barman_writer_set_header(writer, &header), &err);
	for (i = 0; i < CPUS; i++)
		must(kb_barman_writer_pmu(writer, i, &(struct kb_pmu) {
			.num_counters = 1, .counter_types = &type }), &err);
	add_tables(writer, directory, program);
	for (i = 0; i < SAMPLES; i++) {
		uint32_t core = i % CPUS;
		struct kb_event event = {
			.type = KB_EVENT_SAMPLE, .core = core, .timestamp = 1000 + i,
			.sample = { .has_pc = true, .nr_counters = 1, .counters = &period },
		};

		if (!left[core]--) {
			left[core] = 100 + next() % 400;
			tasks[core] = 1 + next() % TASKS;
		}
		event.task_id = tasks[core];
		event.sample.pc = choose_pc(program, tasks[core]);
		must(kb_barman_writer_event(writer, &event), &err);
	}
	must(kb_barman_writer_finish(writer, true, &err), &err);
	kb_barman_writer_destroy(writer);
	close(fd);
}

/* Run the tool; seconds of the processor, and MiB at its peak. */
static double run(const char *tool, const char *capture, double *mib)
{
	struct rusage usage;
	int status, null;
	pid_t pid = fork();

	if (!pid) {
		null = open("/dev/null", O_WRONLY);
		dup2(null, 1);
		execl(tool, tool, "report", capture, (char *)NULL);
		_exit(127);
	}
	if (pid < 0 || wait4(pid, &status, 0, &usage) != pid || status)
		die(tool);
	*mib = usage.ru_maxrss / 1024.0;
	return usage.ru_utime.tv_sec + usage.ru_stime.tv_sec +
	       (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* The best of several reports of a capture; *@mib is not less than their peak. */
static double measure(const char *tool, const char *capture, double *mib)
{
	double best = 1e9, seconds, peak;
	unsigned int i;

	for (i = 0; i < ROUNDS; i++) {
		seconds = run(tool, capture, &peak);
		best = seconds < best ? seconds : best;
		*mib = peak > *mib ? peak : *mib;
	}
	return best;
}

int main(int argc, char **argv)
{
	char path[4000], capture[4096], name[4096];
	double wide, narrow, mib = 0;
	struct bench_program program;
	unsigned int i;

	if (argc != 3) {
		fprintf(stderr, "usage: report DIRECTORY TOOL\n");
		return 2;
	}
	snprintf(path, sizeof(path), "%s/image", argv[1]);
	snprintf(capture, sizeof(capture), "%s/report.cap", argv[1]);
	program = bench_make_program(path, FUNCTIONS, TEXT);
	make_capture(capture, argv[1], &program, wide_pc);
	wide = measure(argv[2], capture, &mib);
	make_capture(capture, argv[1], &program, narrow_pc);
	narrow = measure(argv[2], capture, &mib);
	printf("\"report\":{\"samples\":%u,\"images\":%u,\"cpu_seconds\":%.2f,"
	       "\"cpu_seconds_narrow\":%.2f,\"rss_mib\":%.0f}",
	       SAMPLES, IMAGES, wide, narrow, mib);
	for (i = 0; i < IMAGES; i++) {
		snprintf(name, sizeof(name), "%s/image-%u", argv[1], i);
		unlink(name);
	}
	unlink(path);
	unlink(capture);
	return 0;
}
