// SPDX-License-Identifier: MIT
/*
 * How fast captures are read and written in other formats, and in how much memory.
 *
 *	decode DIRECTORY [RECORDS]	captures are made there, and removed
 *	decode --make FILE RECORDS	makes such a capture for others, and measures nothing
 *
 * Speed is of captures in memory; how much memory it takes, of files, as the tool reads
 * them. One mix for all: 60 % task switches, 25 % halting events, 15 % samples of two
 * counters, of eight CPUs and 64 tasks; PCs all over this program's own text. Every
 * figure is the best of ROUNDS, in time of the processor, which on an idle machine is
 * the time that passes. Exports go through the library's own buffer into a
 * sum over all bytes. Prints the members of a JSON object.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <kbarman/barman.h>
#include <kbarman/export.h>
#include <kbarman/symbol.h>

#define ROUNDS	5
#define CPUS	8
#define TASKS	64

static void die(const char *what, const struct kb_error *err)
{
	fprintf(stderr, "decode: %s: %s\n", what, err && err->code ? err->text : strerror(errno));
	exit(1);
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec + now.tv_nsec * 1e-9;
}

static uint32_t pick(uint64_t *state, uint32_t below)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (*state >> 33) % below;
}

/* ---- the mix ---- */

/* This program's executable segment: as mapped, and in the file. */
static int find_text(struct dl_phdr_info *info, size_t size, void *context)
{
	struct kb_map *map = context;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];

		if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X))
			continue;
		map->base_address = info->dlpi_addr + segment->p_vaddr;
		map->length = segment->p_filesz;
		map->image_offset = segment->p_offset;
		return 1;
	}
	return 0;
}

static void add_tables(struct kb_barman_writer *writer, struct kb_map *map)
{
	static uint32_t types[2] = { 0x11, 0x08 };
	const struct kb_header header = {
		.target_name = "bench",
		.timestamp_multiplier = 1,
		.timestamp_divisor = 1,
		.unix_base_ns = 1700000000000000000ULL,
	};
	const struct kb_pmu pmu = { .num_counters = 2, .counter_types = types };
	char name[16];

	kb_barman_writer_set_header(writer, &header);
	kb_barman_writer_fact(writer, "ext", "1");
	for (uint32_t core = 0; core < CPUS; core++)
		kb_barman_writer_pmu(writer, core, &pmu);
	for (uint32_t task = 0; task < TASKS; task++) {
		const struct kb_task row = { .task_id = task, .name = name };

		snprintf(name, sizeof(name), task ? "task-%u" : "swapper", task);
		kb_barman_writer_task(writer, &row);
		map->task_id = task;
		if (task)
			kb_barman_writer_map(writer, map);
	}
}

static void add_records(struct kb_barman_writer *writer, uint64_t records, const struct kb_map *map)
{
	uint64_t state = 1, counters[2];
	uint32_t running[CPUS] = { 0 };
	bool halted[CPUS] = { false };

	for (uint64_t i = 0; i < records; i++) {
		uint32_t core = pick(&state, CPUS), kind = pick(&state, 100);
		struct kb_event event = { .core = core, .timestamp = i * 500 };

		if (kind < 60) {
			running[core] = pick(&state, TASKS);
			event.type = KB_EVENT_TASK_SWITCH;
			event.task_id = running[core];
			event.task_switch.reason = kind & 1;
			event.task_switch.prev_state = kind & 1;
		} else if (kind < 85) {
			halted[core] = !halted[core];
			event.type = KB_EVENT_HALT;
			event.halt.entered = halted[core];
			event.halt.idle_state = 1;
		} else {
			counters[0] = 100000 + pick(&state, 1000);
			counters[1] = 80000 + pick(&state, 1000);
			event.type = KB_EVENT_SAMPLE;
			event.task_id = running[core];
			event.sample.has_pc = true;
			event.sample.pc = map->base_address + pick(&state, map->length);
			event.sample.nr_counters = 2;
			event.sample.counters = counters;
		}
		if (kb_barman_writer_event(writer, &event))
			return;		/* finish says why */
	}
}

static void make_capture(const char *path, uint64_t records)
{
	const struct kb_barman_layout layout = {
		.size = sizeof(layout),
		.max_cores = CPUS,
		.max_task_infos = TASKS,
		.max_mmap_layout = TASKS,
		.max_pmu_counters = 2,
		.max_string_table_length = 8192,
	};
	struct kb_map map = { .image = "/proc/self/exe" };
	struct kb_barman_writer *writer;
	struct kb_error err = { 0 };
	char self[4096];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0)
		die(path, NULL);
	if (length > 0) {
		self[length] = '\0';
		map.image = self;
	}
	dl_iterate_phdr(find_text, &map);
	if (kb_barman_writer_create(&writer, fd, &layout, &err))
		die(path, &err);
	add_tables(writer, &map);
	add_records(writer, records, &map);
	if (kb_barman_writer_finish(writer, true, &err))
		die(path, &err);
	kb_barman_writer_destroy(writer);
	close(fd);
}

/* ---- speed ---- */

struct sink {
	uint64_t bytes, sum;
};

/* Two words at a time; what is measured is the encoder, not this. */
typedef uint64_t words __attribute__((vector_size(16)));

/* A sum of all words, and one of these sums, so that their order counts. */
static int swallow(void *context, const void *data, size_t size)
{
	struct sink *sink = context;
	words word, sum[2] = { { 0 } }, sums[2] = { { 0 } };
	const char *at = data;

	sink->bytes += size;
	for (; size >= sizeof(sum); size -= sizeof(sum)) {
		for (int i = 0; i < 2; i++, at += sizeof(word)) {
			memcpy(&word, at, sizeof(word));
			sum[i] += word;
			sums[i] += sum[i];
		}
	}
	for (; size; size--, at++)
		sum[0][0] += (uint8_t)*at;
	sum[0] += sum[1] * 3 + sums[0] * 5 + sums[1] * 7;
	sink->sum = (sink->sum << 7 | sink->sum >> 57) ^ (sum[0][0] + sum[0][1] * 11);
	return 0;
}

/* The capture in memory, for speed; NULL: from its file, as the tool does. */
static void *loaded;
static size_t loaded_bytes;

static void load(const char *path)
{
	FILE *file = fopen(path, "r");

	if (!file || fseek(file, 0, SEEK_END))
		die(path, NULL);
	loaded_bytes = ftell(file);
	rewind(file);
	loaded = malloc(loaded_bytes);
	if (!loaded || fread(loaded, 1, loaded_bytes, file) != loaded_bytes)
		die(path, NULL);
	fclose(file);
}

static struct kb_barman *open_capture(const char *path)
{
	struct kb_error err = { 0 };
	struct kb_barman *barman;

	if (loaded ? kb_barman_open_memory(&barman, loaded, loaded_bytes, &err) :
		     kb_barman_open(&barman, path, &err))
		die(path, &err);
	return barman;
}

static double time_validate(const char *path)
{
	struct kb_barman *barman = open_capture(path);
	struct kb_validation sum;
	struct kb_error err = { 0 };
	double begun = seconds();

	if (kb_barman_validate(barman, &sum, &err))
		die("validate", &err);
	begun = seconds() - begun;
	kb_barman_close(barman);
	fprintf(stderr, "  checksum %016llx\n", (unsigned long long)sum.checksum);
	return begun;
}

static double time_next(const char *path)
{
	struct kb_barman *barman = open_capture(path);
	struct kb_error err = { 0 };
	struct kb_event event;
	double begun = seconds();
	uint64_t sum = 0;
	int more;

	while ((more = kb_barman_next(barman, &event, &err)) > 0)
		sum += event.timestamp;
	if (more < 0)
		die("next", &err);
	begun = seconds() - begun;
	kb_barman_close(barman);
	fprintf(stderr, "  sum %llu\n", (unsigned long long)sum);
	return begun;
}

static double time_export(const char *path, const struct kb_export *export, const char *format,
			  double *bytes_per_s)
{
	const struct kb_export_options options = { .size = sizeof(options), .format = format };
	struct kb_trace *trace;
	struct kb_error err = { 0 };
	struct sink sink = { 0 };
	struct kb_out *out;
	double begun;

	if (kb_trace_open(&trace, path, NULL, &err) || !kb_trace_symbolizer(trace, &err))
		die("trace", &err);
	if (kb_out_function(&out, swallow, &sink))
		die("output", NULL);
	begun = seconds();
	if (kb_export_run(export, trace, &options, out, &err))
		die(export->name, &err);
	begun = seconds() - begun;
	*bytes_per_s = sink.bytes / begun;
	fprintf(stderr, "  %.0f MB, sum %016llx\n", sink.bytes / 1e6,
		(unsigned long long)sink.sum);
	kb_out_destroy(out);
	kb_trace_close(trace);
	return begun;
}

static const struct {
	const char *name, *export, *format;
} exports[] = {
	{ "annotate", "annotate", NULL },
	{ "heph", "heph", NULL },
	{ "tptp_binary", "tptp", "binary" },
	{ "tptp_xml", "tptp", NULL },
};

static void measure_speed(const char *path, uint64_t records)
{
	double best = 1e9, best_next = 1e9, took, rate;

	for (int i = 0; i < ROUNDS; i++) {
		fprintf(stderr, "validate and next, round %d of %d\n", i + 1, ROUNDS);
		took = time_validate(path);
		best = took < best ? took : best;
		took = time_next(path);
		best_next = took < best_next ? took : best_next;
	}
	printf("\"decode_records_per_s\":{\"validate\":%.0f,\"next\":%.0f", records / best,
	       records / best_next);
	for (size_t e = 0; e < sizeof(exports) / sizeof(exports[0]); e++) {
		const struct kb_export *export = kb_export_find(exports[e].export);
		double best_rate = 0;

		if (!export)
			continue;
		best = 1e9;
		for (int i = 0; i < ROUNDS; i++) {
			fprintf(stderr, "%s, round %d of %d\n", exports[e].name, i + 1, ROUNDS);
			took = time_export(path, export, exports[e].format, &rate);
			best = took < best ? took : best;
			best_rate = rate > best_rate ? rate : best_rate;
		}
		printf(",\"%s\":%.0f,\"%s_bytes_per_s\":%.0f", exports[e].name, records / best,
		       exports[e].name, best_rate);
	}
	printf("}");
}

/* ---- memory ---- */

/* MiB at the most that a process needed which validated and exported @path. */
static double measure_memory(const char *path)
{
	struct rusage usage;
	int status;
	pid_t pid = fork();

	if (pid < 0)
		die("fork", NULL);
	if (pid == 0) {
		double rate;

		time_validate(path);
		for (size_t e = 0; e < sizeof(exports) / sizeof(exports[0]); e++)
			if (kb_export_find(exports[e].export))
				time_export(path, kb_export_find(exports[e].export),
					    exports[e].format, &rate);
		_exit(0);
	}
	if (wait4(pid, &status, 0, &usage) < 0 || status)
		die("the process that was measured failed", NULL);
	return usage.ru_maxrss / 1024.0;
}

int main(int argc, char **argv)
{
	uint64_t records = argc > 2 ? strtoull(argv[2], NULL, 0) : 1900000;
	char path[4096];
	double small, large;

	if (argc < 2 || (!strcmp(argv[1], "--make") && argc != 4)) {
		fprintf(stderr, "usage: decode DIRECTORY [RECORDS] | --make FILE RECORDS\n");
		return 2;
	}
	if (!strcmp(argv[1], "--make")) {
		make_capture(argv[2], strtoull(argv[3], NULL, 0));
		return 0;
	}
	snprintf(path, sizeof(path), "%s/bench.cap", argv[1]);
	fprintf(stderr, "making a capture of %llu records\n", (unsigned long long)records);
	make_capture(path, records);
	small = measure_memory(path);
	load(path);
	measure_speed(path, records);
	free(loaded);
	loaded = NULL;
	fprintf(stderr, "making one sixteen times as large\n");
	make_capture(path, records * 16);
	large = measure_memory(path);
	unlink(path);
	printf(",\n\"rss_mib\":{\"64MiB_capture\":%.1f,\"1GiB_capture\":%.1f}", small, large);
	return 0;
}
