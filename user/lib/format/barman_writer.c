// SPDX-License-Identifier: MIT
/*
 * The public functions of the writer, and the header in memory as it will be in the file. A row
 * that is refused (-EINVAL, -ERANGE, full table: -ENOSPC) affects nothing else. Only errors of
 * the file are kept.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/options.h"
#include "format/barman_file.h"
#include "format/barman_writer.h"

#define STRING_SLOTS	1024U		/* initial number; a power of two */

static void put32(struct kb_barman_writer *w, uint64_t offset, uint32_t v)
{
	kb_store32(barman_header_field(w, offset), v, w->swap);
}

static void put64(struct kb_barman_writer *w, uint64_t offset, uint64_t v)
{
	kb_store64(barman_header_field(w, offset), v, w->swap);
}

static void put_word(struct kb_barman_writer *w, uint64_t offset, uint64_t v)
{
	kb_store_word(barman_header_field(w, offset), v, w->shape.word, w->swap);
}

static int check_layout(const struct kb_barman_layout *layout, struct kb_error *err)
{
	const char *wrong = NULL;

	if (layout->word_size != 0 && layout->word_size != 4 && layout->word_size != 8)
		wrong = "a word has 4 or 8 bytes";
	else if (layout->max_cores > BARMAN_CORES_MAX)
		wrong = "more than 65536 cores";
	else if (layout->max_pmu_counters > BARMAN_PMU_COUNTERS_MAX)
		wrong = "more than 65536 PMU counters";
	else if (layout->max_custom_charts > BARMAN_CUSTOM_MAX ||
		 layout->max_custom_series > BARMAN_CUSTOM_MAX)
		wrong = "more than 65536 custom charts or series";
	else if (!layout->max_custom_charts != !layout->max_custom_series)
		wrong = "custom charts and custom series need each other";
	else if (layout->max_string_table_length > UINT32_MAX / 2)
		wrong = "more than 2 GiB of strings";
	else if (layout->circular && layout->buffer_length < 64)
		wrong = "a circular store of less than 64 bytes";
	else if (layout->circular && layout->buffer_length > SIZE_MAX / 2)
		wrong = "a circular store that does not fit into memory";
	if (!wrong)
		return 0;
	return kb_error_set(err, -EINVAL, KB_NO_OFFSET, "can't write such a capture: %s", wrong);
}

/* Set the constants of the header. */
static void fill_start(struct kb_barman_writer *w, const struct kb_barman_layout *layout)
{
	put64(w, BARMAN_AT_MAGIC, w->shape.word == 8 ? BARMAN_MAGIC_64 : BARMAN_MAGIC_32);
	put32(w, BARMAN_AT_VERSION, BM_PROTOCOL_VERSION);
	put32(w, BARMAN_AT_HEADER_LENGTH, w->places.end);
	put32(w, BARMAN_AT_STORE_TYPE,
	      layout->circular ? KB_STORE_CIRCULAR : KB_STORE_LINEAR);
	put32(w, BARMAN_AT_CONFIG, w->shape.max_cores);
	put32(w, BARMAN_AT_CONFIG + 4, w->shape.max_task_infos);
	put32(w, BARMAN_AT_CONFIG + 8, w->shape.max_mmap_layout);
	put32(w, BARMAN_AT_CONFIG + 12, w->shape.max_pmu_counters);
	put32(w, BARMAN_AT_CONFIG + 16, w->shape.max_string_table_length);
	put32(w, BARMAN_AT_CONFIG + 20, w->shape.num_series);
	put64(w, BARMAN_AT_CLOCK + 8, 1);
	put64(w, BARMAN_AT_CLOCK + 16, 1);
	if (w->shape.num_series)
		put32(w, w->places.charts, w->shape.num_charts);
}

static int allocate(struct kb_barman_writer *w, const struct kb_barman_layout *layout)
{
	w->header = calloc(1, w->places.end);
	w->num_counters = calloc(w->shape.max_cores ? w->shape.max_cores : 1,
				 sizeof(*w->num_counters));
	w->string_slots = STRING_SLOTS;
	w->string_seed = kb_hash_seed(w);
	w->string_index = calloc(w->string_slots, sizeof(*w->string_index));
	if (layout->circular) {
		w->ring_bytes = layout->buffer_length & ~(uint64_t)(w->shape.word - 1);
		w->ring = calloc(1, w->ring_bytes);	/* NOLINT: check_layout() refused 0 */
	} else {
		w->room = BARMAN_OUT_BYTES;
		w->buffer = malloc(w->room);
	}
	return w->header && w->num_counters && w->string_index && (w->ring || w->buffer) ? 0
											 : -ENOMEM;
}

/* Find out whether the header can be written after the records. */
static void look_at_file(struct kb_barman_writer *w)
{
	struct stat st;
	off_t here = lseek(w->fd, 0, SEEK_CUR);

	w->seekable = here >= 0 && fstat(w->fd, &st) == 0 && S_ISREG(st.st_mode) &&
		      !(fcntl(w->fd, F_GETFL) & O_APPEND);
	w->base = w->seekable ? here : 0;
}

int kb_barman_writer_create(struct kb_barman_writer **out, int fd,
			    const struct kb_barman_layout *layout, struct kb_error *err)
{
	struct kb_barman_layout known;
	struct kb_barman_writer *w;
	int ret;

	*out = NULL;
	ret = KB_OPTIONS(&known, layout, err) ?: check_layout(&known, err);
	if (ret)
		return ret;
	w = calloc(1, sizeof(*w));
	if (!w)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	layout = &known;
	w->fd = fd;
	w->swap = layout->big_endian != KB_HOST_BIG_ENDIAN;
	w->spare_series = layout->spare_series;
	w->limit = layout->buffer_length && !layout->circular ? layout->buffer_length : UINT64_MAX;
	w->shape = (struct barman_shape){
		.word = layout->word_size ? layout->word_size : 8,
		.max_cores = layout->max_cores,
		.max_task_infos = layout->max_task_infos,
		.max_mmap_layout = layout->max_mmap_layout,
		.max_pmu_counters = layout->max_pmu_counters,
		/* Never 0: a missing name becomes the empty string. */
		.max_string_table_length = layout->max_string_table_length
			? (layout->max_string_table_length + 3) & ~3U : 4,
		.num_charts = layout->max_custom_charts,
		.num_series = layout->max_custom_series,
	};
	barman_places(&w->places, &w->shape);
	if (w->places.end > UINT32_MAX) {
		free(w);
		return kb_error_set(err, -EINVAL, KB_NO_OFFSET,
				    "can't write such a capture: its header would be longer than "
				    "4 GiB");
	}
	if (allocate(w, layout)) {
		kb_barman_writer_destroy(w);
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	}
	look_at_file(w);
	fill_start(w, layout);
	*out = w;
	return 0;
}

void kb_barman_writer_destroy(struct kb_barman_writer *w)
{
	if (!w)
		return;
	kb_behind_destroy(w->behind);
	free(w->header);
	free(w->num_counters);
	free(w->string_index);
	free(w->buffer);
	free(w->ring);
	free(w);
}

/* Whether the header may still be changed. Every function that changes it calls this first. */
static int check_open(const struct kb_barman_writer *w)
{
	if (w->error.code)
		return w->error.code;
	return w->header_sent ? -ESPIPE : 0;
}

static const char *string_at(const struct kb_barman_writer *w, uint32_t offset)
{
	return (const char *)w->header + BARMAN_AT_STRINGS + offset;
}

/* The slot of @string: the slot that has it, or the empty slot where it belongs. */
static uint32_t *string_slot(struct kb_barman_writer *w, const char *string)
{
	uint32_t at = (uint32_t)kb_hash_bytes(w->string_seed, string, strlen(string));

	for (;; at++) {
		uint32_t *slot = &w->string_index[at & (w->string_slots - 1)];

		if (!*slot || strcmp(string_at(w, *slot - 1), string) == 0)
			return slot;
	}
}

static int grow_string_index(struct kb_barman_writer *w)
{
	uint32_t *old = w->string_index, slots = w->string_slots;
	uint32_t *index = calloc((size_t)slots * 2, sizeof(*index));

	if (!index)
		return -ENOMEM;
	w->string_index = index;
	w->string_slots = slots * 2;
	for (uint32_t i = 0; i < slots; i++) {
		if (old[i])
			*string_slot(w, string_at(w, old[i] - 1)) = old[i];
	}
	free(old);
	return 0;
}

int64_t kb_barman_writer_string(struct kb_barman_writer *w, const char *string)
{
	size_t length = strlen(string);
	uint32_t *slot;
	int ret = w->error.code;

	if (ret)
		return ret;
	slot = string_slot(w, string);
	if (*slot)
		return *slot - 1;
	if (w->header_sent)
		return -ESPIPE;
	if (length >= w->shape.max_string_table_length - w->string_bytes)
		return -ENOSPC;
	if (w->nr_strings >= w->string_slots / 2) {
		ret = grow_string_index(w);
		if (ret)
			return ret;
		slot = string_slot(w, string);
	}
	memcpy(w->header + BARMAN_AT_STRINGS + w->string_bytes, string, length + 1);
	*slot = w->string_bytes + 1;
	w->string_bytes += length + 1;
	w->nr_strings++;
	if (strcmp(string, "kbarman.ext=1") == 0)
		w->extended = true;
	if (strncmp(string, BARMAN_STATES_FACT, strlen(BARMAN_STATES_FACT)) == 0)
		w->wide_states = true;
	return *slot - 1;
}

/* The offset of @string for a field of the header; NULL becomes "". */
static int string_field(struct kb_barman_writer *w, const char *string, uint32_t *ptr)
{
	int64_t offset = kb_barman_writer_string(w, string ? string : "");

	*ptr = offset < 0 ? 0 : offset;
	return offset < 0 ? (int)offset : 0;
}

int kb_barman_writer_set_header(struct kb_barman_writer *w, const struct kb_header *header)
{
	uint32_t target;
	int ret = check_open(w);

	if (!ret)
		ret = string_field(w, header->target_name, &target);
	if (ret)
		return ret;
	put32(w, BARMAN_AT_TARGET_NAME, target);
	put32(w, BARMAN_AT_SAMPLE_RATE, header->timer_sample_rate);
	put64(w, BARMAN_AT_CLOCK, header->timestamp_base);
	put64(w, BARMAN_AT_CLOCK + 8, header->timestamp_multiplier);
	put64(w, BARMAN_AT_CLOCK + 16, header->timestamp_divisor);
	put64(w, BARMAN_AT_CLOCK + 24, header->unix_base_ns);
	if (header->last_timestamp > w->last_timestamp)
		w->last_timestamp = header->last_timestamp;
	return 0;
}

int kb_barman_writer_pmu(struct kb_barman_writer *w, uint32_t core, const struct kb_pmu *pmu)
{
	uint64_t at = w->places.pmus + core * w->places.pmu_bytes;
	unsigned int word = w->shape.word;
	int ret = check_open(w);

	if (ret)
		return ret;
	if (core >= w->shape.max_cores || pmu->num_counters > w->shape.max_pmu_counters)
		return -EINVAL;
	if (word == 4 && pmu->mpidr > UINT32_MAX)
		return -ERANGE;
	put64(w, at, pmu->configuration_timestamp);
	put32(w, at + 8, pmu->midr);
	put_word(w, at + 12, pmu->mpidr);
	put32(w, at + 12 + word, pmu->cluster_id);
	put32(w, at + 16 + word, pmu->num_counters);
	memset(barman_header_field(w, at + 20 + word), 0,
	       4 * (size_t)w->shape.max_pmu_counters);
	for (uint32_t i = 0; i < pmu->num_counters; i++)
		put32(w, at + 20 + word + 4 * i, pmu->counter_types[i]);
	w->num_counters[core] = pmu->num_counters;
	w->synced_rest = false;
	return 0;
}

static int task_fact(struct kb_barman_writer *w, const char *key, uint32_t row, uint64_t value)
{
	char fact[64];
	int64_t offset;

	snprintf(fact, sizeof(fact), "kbarman.%s.%" PRIu32 "=%" PRIu64, key, row, value);
	offset = kb_barman_writer_string(w, fact);
	return offset < 0 ? (int)offset : 0;
}

int kb_barman_writer_task(struct kb_barman_writer *w, const struct kb_task *task)
{
	uint64_t at = w->places.tasks + 4 + (uint64_t)w->nr_tasks * BARMAN_TASK_BYTES;
	uint32_t name;
	int ret = check_open(w);

	if (!ret && w->nr_tasks >= w->shape.max_task_infos)
		ret = -ENOSPC;
	if (!ret)
		ret = string_field(w, task->name, &name);
	if (ret)
		return ret;
	put64(w, at, task->timestamp);
	put32(w, at + 8, task->task_id);
	put32(w, at + 12, name);
	put32(w, w->places.tasks, ++w->nr_tasks);
	if (task->tgid && task->tgid != task->task_id)
		ret = task_fact(w, "tgid", w->nr_tasks - 1, task->tgid);
	if (!ret && task->exited)
		ret = task_fact(w, "exit", w->nr_tasks - 1, task->exited);
	return ret;
}

/* The image of a row, with the file in front of it if that is known. */
static int image_field(struct kb_barman_writer *w, const struct kb_map *map, uint32_t *ptr)
{
	char *string;
	int ret;

	if (!map->file.length || !map->image)
		return string_field(w, map->image, ptr);
	if (asprintf(&string, BARMAN_FILE_FACT "%.*s:%s", (int)map->file.length, map->file.data,
		     map->image) < 0)
		return -ENOMEM;
	ret = string_field(w, string, ptr);
	*ptr += strlen(string) - strlen(map->image);
	free(string);
	return ret;
}

int kb_barman_writer_map(struct kb_barman_writer *w, const struct kb_map *map)
{
	uint64_t at = w->places.maps + 4 + w->nr_maps * w->places.map_bytes;
	unsigned int word = w->shape.word;
	uint32_t image;
	int ret = check_open(w);

	if (!ret && w->nr_maps >= w->shape.max_mmap_layout)
		ret = -ENOSPC;
	if (!ret && word == 4 && (map->base_address | map->length | map->image_offset) > UINT32_MAX)
		ret = -ERANGE;
	if (!ret)
		ret = image_field(w, map, &image);
	if (ret)
		return ret;
	if (w->shape.max_task_infos) {
		put64(w, at, map->timestamp);
		put32(w, at + 8, map->task_id);
		at += 12;
	}
	put_word(w, at, map->base_address);
	put_word(w, at + word, map->length);
	put_word(w, at + 2 * word, map->image_offset);
	put32(w, at + 3 * word, image);
	put32(w, w->places.maps, ++w->nr_maps);
	return 0;
}

static void put_chart(struct kb_barman_writer *w, uint32_t index, uint32_t name,
		      const struct kb_chart *chart)
{
	uint64_t at = w->places.charts + 4 + (uint64_t)index * BARMAN_CHART_BYTES;
	uint8_t *bytes = barman_header_field(w, at);

	put32(w, at, name);
	bytes[4] = chart->series_composition;
	bytes[5] = chart->rendering_type;
	bytes[6] = chart->boolean_flags;
}

int kb_barman_writer_chart(struct kb_barman_writer *w, const struct kb_chart *chart)
{
	uint32_t name;
	int ret = check_open(w);

	if (!ret && w->nr_charts >= w->shape.num_charts)
		ret = -ENOSPC;
	if (!ret)
		ret = string_field(w, chart->name, &name);
	if (ret)
		return ret;
	put_chart(w, w->nr_charts++, name, chart);
	w->synced_rest = false;
	return 0;
}

static void put_series(struct kb_barman_writer *w, uint32_t index, uint32_t name, uint32_t units,
		       uint32_t description, const struct kb_series *series)
{
	uint64_t at = w->places.series + (uint64_t)index * BARMAN_SERIES_BYTES;
	uint8_t *bytes = barman_header_field(w, at);
	uint64_t multiplier;

	memcpy(&multiplier, &series->multiplier, sizeof(multiplier));
	put32(w, at, series->chart_index);
	put32(w, at + 4, name);
	put32(w, at + 8, units);
	put32(w, at + 12, description);
	put32(w, at + 16, series->colour);
	put64(w, at + 20, multiplier);
	bytes[28] = series->series_class;
	bytes[29] = series->display;
	bytes[30] = series->boolean_flags;
}

int kb_barman_writer_series(struct kb_barman_writer *w, const struct kb_series *series)
{
	uint32_t name, units, description;
	int ret = check_open(w);

	if (!ret && w->nr_series >= w->shape.num_series)
		ret = -ENOSPC;
	if (!ret)
		ret = string_field(w, series->name, &name);
	if (!ret)
		ret = string_field(w, series->units, &units);
	if (!ret)
		ret = string_field(w, series->description, &description);
	if (ret)
		return ret;
	put_series(w, w->nr_series++, name, units, description, series);
	w->synced_rest = false;
	return 0;
}

int kb_barman_writer_fact(struct kb_barman_writer *w, const char *key, const char *value)
{
	char *string;
	int64_t ret;

	if (asprintf(&string, "kbarman.%s=%s", key, value) < 0)
		return -ENOMEM;
	ret = kb_barman_writer_string(w, string);
	free(string);
	return ret < 0 ? (int)ret : 0;
}

void barman_complete_header(struct kb_barman_writer *w)
{
	static const struct kb_chart chart = {
		.series_composition = KB_COMPOSITION_STACKED,
		.rendering_type = KB_RENDERING_FILLED,
	};
	static const struct kb_series series = {
		.colour = KB_COLOUR_AUTOMATIC,
		.multiplier = 1.0,
		.series_class = KB_SERIES_DELTA,
		.display = KB_DISPLAY_ACCUMULATE,
	};
	uint32_t empty;

	/* The end of any string is an empty string; there is room for one. */
	if (!w->string_bytes)
		w->string_bytes = 1;
	empty = strlen(string_at(w, 0));
	for (uint32_t i = w->nr_charts; i < w->shape.num_charts; i++)
		put_chart(w, i, empty, &chart);
	for (uint32_t i = w->nr_series; i < w->shape.num_series; i++)
		put_series(w, i, empty, empty, empty, &series);
	put32(w, BARMAN_AT_STRING_LENGTH, w->string_bytes);
}
