/* SPDX-License-Identifier: MIT */
/*
 * A capture of one mix: 60 % task switches, 25 % halting events, 15 % samples of two counters, of
 * eight CPUs and 64 tasks; PCs all over the text of the program that makes it.
 */
#ifndef KBARMAN_BENCH_MIX_H
#define KBARMAN_BENCH_MIX_H

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kbarman/barman.h>

#define CPUS	8
#define TASKS	64

static void die(const char *what, const struct kb_error *err)
{
	fprintf(stderr, "%s: %s\n", what, err && err->code ? err->text : strerror(errno));
	exit(1);
}

static uint32_t pick(uint64_t *state, uint32_t below)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (*state >> 33) % below;
}

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

#endif
