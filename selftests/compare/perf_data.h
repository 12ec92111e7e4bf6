/* SPDX-License-Identifier: MIT */
/* Reads what `perf record --call-graph dwarf` of one event wrote, in the order of time. */
#ifndef COMPARE_PERF_DATA_H
#define COMPARE_PERF_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PERF_REGISTERS	64U

enum perf_what { PERF_OTHER, PERF_EXEC, PERF_FORK, PERF_MAP, PERF_SAMPLE };

/* Strings and stacks point into the file. */
struct perf_event {
	enum perf_what what;
	uint64_t time;			/* ns */
	uint32_t pid, tid, parent;	/* parent: of a fork */
	uint64_t start, length, offset;	/* of an executable mapping */
	const char *image;
	uint64_t registers;		/* of a sample: a bit for each, as in perf_regs.h */
	uint64_t value[PERF_REGISTERS];
	const void *stack;
	uint64_t stack_bytes;
};

struct perf_data {
	void *file;
	size_t size, nr;
	struct perf_event *events;
};

/* Returns NULL, or what is wrong with the file. */
const char *perf_data_read(struct perf_data *data, const char *path);
void perf_data_release(struct perf_data *data);

#endif
