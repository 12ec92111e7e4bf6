// SPDX-License-Identifier: MIT
/*
 * How fast captures are read and written in other formats, and in how much memory.
 *
 *	decode DIRECTORY [RECORDS]	captures are made there, and removed
 *	decode --make FILE RECORDS	makes such a capture for others, and measures nothing
 *
 * Speed is of captures in memory; how much memory it takes, of files, as the tool reads
 * them. One mix for all: mix.h. Every figure is the best of ROUNDS, in time of the processor,
 * which on an idle machine is the time that passes; but a check uses two CPUs: its figure is
 * of the time that passes. Exports go through the library's own buffer into a sum over all
 * bytes. Prints the members of a JSON object.
 */
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include <kbarman/export.h>
#include <kbarman/symbol.h>

#include "mix.h"

#define ROUNDS	5

static double seconds_of(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec + now.tv_nsec * 1e-9;
}

static double seconds(void)
{
	return seconds_of(CLOCK_PROCESS_CPUTIME_ID);
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
	double begun = seconds_of(CLOCK_MONOTONIC);

	if (kb_barman_validate(barman, &sum, &err))
		die("validate", &err);
	begun = seconds_of(CLOCK_MONOTONIC) - begun;
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
