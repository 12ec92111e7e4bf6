/* SPDX-License-Identifier: MIT */
/* Captures with wakeups and interrupts in memory, for tests of what reads them. */
#ifndef SELFTESTS_DETAIL_CAPTURE_H
#define SELFTESTS_DETAIL_CAPTURE_H

#include <sys/mman.h>
#include <unistd.h>

#include <kbarman/latency.h>

#include "../lib/random.h"

#define CORES	3
#define TASKS	16

static inline void must(int ret, const char *what)
{
	if (ret) {
		printf("Bail out! %s\n", what);
		exit(1);
	}
}

struct made {
	struct kb_barman_writer *writer;
	int fd;
};

static inline void make_tables(struct kb_barman_writer *writer)
{
	const struct kb_header header = { .timestamp_multiplier = 1, .timestamp_divisor = 1 };
	const struct kb_chart chart = { .name = "kbarman" };
	static const char *const names[] = { "Lost records", "Interrupts" };
	struct kb_series series = { .units = "", .description = "", .multiplier = 1 };
	const struct kb_pmu pmu = { 0 };
	uint32_t i;

	must(kb_barman_writer_set_header(writer, &header) ||
	     kb_barman_writer_fact(writer, "ext", "1") ||
	     kb_barman_writer_fact(writer, "irq.1", "disk") ||
	     kb_barman_writer_chart(writer, &chart), "a header");
	for (i = 0; i < 2; i++) {
		series.name = names[i];
		must(kb_barman_writer_series(writer, &series), "a series");
	}
	for (i = 0; i < CORES; i++)
		must(kb_barman_writer_pmu(writer, i, &pmu), "a PMU");
	for (i = 0; i < TASKS; i++)
		must(kb_barman_writer_task(writer, &(struct kb_task){ .task_id = i, .name = "a" }),
		     "a task");
}

static inline void begin(struct made *made)
{
	const struct kb_barman_layout layout = {
		.size = sizeof(layout), .max_cores = CORES, .max_task_infos = TASKS,
		.max_mmap_layout = 1, .max_pmu_counters = 1, .max_string_table_length = 4096,
		.max_custom_charts = 1, .max_custom_series = 2,
	};
	struct kb_error err;

	made->fd = memfd_create("capture", 0);
	must(kb_barman_writer_create(&made->writer, made->fd, &layout, &err), "a writer");
	make_tables(made->writer);
}

static inline struct kb_trace *finish(struct made *made)
{
	struct kb_trace *trace;
	struct kb_error err;
	void *data;
	size_t size;

	must(kb_barman_writer_finish(made->writer, true, &err), "a capture");
	kb_barman_writer_destroy(made->writer);
	size = (size_t)lseek(made->fd, 0, SEEK_END);
	data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, made->fd, 0);
	must(data == MAP_FAILED, "a map");
	close(made->fd);
	must(kb_trace_open_memory(&trace, data, size, NULL, &err), "a trace");
	return trace;		/* its memory is needed until the end of this program */
}

static inline void add(struct made *made, struct kb_event event)
{
	must(kb_barman_writer_event(made->writer, &event), "a record");
}

/* A value with what it is about, byte by byte from the format's text. */
static inline void add_detail(struct made *made, uint32_t core, uint64_t when, uint32_t task, uint8_t what,
		       uint32_t id, uint16_t cpu, uint8_t context)
{
	struct {
		uint32_t type, core;
		uint64_t timestamp;
		uint32_t task, series;
		uint64_t value;
		uint32_t id;
		uint16_t cpu;
		uint8_t what, context;
	} record = { 4, core, when, task, 1, 1, id, cpu, what, context };

	must(kb_barman_writer_record(made->writer, &record, sizeof(record)), "a record");
}

static inline void add_switch(struct made *made, uint32_t core, uint64_t when, uint32_t task, bool blocked)
{
	add(made, (struct kb_event){ .type = KB_EVENT_TASK_SWITCH, .core = core, .timestamp = when,
		.task_id = task, .task_switch = { .reason = blocked, .prev_state = blocked } });
}

static inline void add_halt(struct made *made, uint32_t core, uint64_t when, bool entered, int state)
{
	add(made, (struct kb_event){ .type = KB_EVENT_HALT, .core = core, .timestamp = when,
		.halt = { .entered = entered, .idle_state = entered ? state : KB_STATE_UNKNOWN } });
}

static inline void add_loss(struct made *made, uint32_t core, uint64_t when)
{
	add(made, (struct kb_event){ .type = KB_EVENT_CUSTOM_COUNTER, .core = core,
		.timestamp = when, .custom_counter = { .value = 1 + random_below(3) } });
}

#endif
