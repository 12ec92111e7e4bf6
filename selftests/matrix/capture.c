// SPDX-License-Identifier: MIT
/*
 * capture DIRECTORY: record a workload with known switches, and leave what each CPU's map
 * shows in DIRECTORY/cpuN.cap, as any program can that knows the two UAPI headers, and what
 * must be found in it in DIRECTORY/cpuN.truth: lines "KEY VALUE", for selftests/matrix/check.py
 * on another machine, of another word size and byte order.
 */
#include <sys/stat.h>

#include "lib/tap.h"
#include "lib.h"

#define ROUNDS	2000

static FILE *create(const char *directory, uint32_t cpu, const char *suffix)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/cpu%u.%s", directory, cpu, suffix);
	f = fopen(path, "w");
	if (!f)
		lost("%s can't be made", path);
	return f;
}

/* The capture, and what it was judged to be here. */
static void save(const char *directory, int fd, const struct kbarman_query *q, uint32_t cpu,
		 pid_t echo)
{
	const void *map = map_cpu(fd, cpu);
	struct kbarman_stats s = stats(fd, cpu);
	struct judgement j = judge(map, q->map_bytes, cpu);
	FILE *f = create(directory, cpu, "cap");

	/* What a fwrite() of the map itself would do, but for the fault of a page that is not
	 * there, which is an error of a system call and no signal. */
	if (fwrite(map, 1, q->map_bytes, f) != q->map_bytes || fclose(f))
		lost("the capture of CPU %u can't be written", cpu);
	if (!tap_ok(!j.fault, "capture_is_whole_where_it_was_made"))
		tap_note("CPU %u, position %llu: %s", cpu, (unsigned long long)j.at, j.fault);
	f = create(directory, cpu, "truth");
	fprintf(f, "records %llu\nwritten %llu\noverwritten %llu\n", (unsigned long long)j.records,
		(unsigned long long)s.written, (unsigned long long)s.overwritten);
	fprintf(f, "switches %llu\nhalts %llu\nsamples %llu\n",
		(unsigned long long)j.by_type[BM_RECORD_TASK_SWITCH],
		(unsigned long long)j.by_type[BM_RECORD_HALTING_EVENT],
		(unsigned long long)j.by_type[BM_RECORD_SAMPLE_WITH_PC]);
	fprintf(f, "core %u\nword %zu\necho %d\nrounds %u\n", cpu, sizeof(bm_uintptr), (int)echo,
		cpu ? 0 : ROUNDS);
	fclose(f);
	munmap((void *)map, q->map_bytes);
}

int main(int argc, char **argv)
{
	int fd = device_open_free();
	struct kbarman_query q;
	pid_t echo;
	uint32_t cpu;
	int error;

	if (argc != 2)
		lost("usage: capture DIRECTORY");
	error = configure(fd, (struct kbarman_configure) {
		.sources = KBARMAN_SOURCE_ALL,
		.ring_bytes = 4 * MIB, .nr_events = 2, .events_ptr = sampled_or_clock(&cycles, 2000000),
		.target_name = "matrix" });
	if (error)
		lost("configure: %d", error);
	if (start(fd))
		lost("no start");
	echo = ping_pong(0, ROUNDS);
	if (stop(fd))
		lost("no stop");
	q = query(fd);
	mkdir(argv[1], 0755);
	for (cpu = 0; cpu < q.nr_cpus; cpu++)
		if (cpu_online(cpu))
			save(argv[1], fd, &q, cpu, echo);
	close(fd);
	return tap_done();
}
