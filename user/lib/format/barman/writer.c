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
#include "format/barman/file.h"
#include "format/barman/writer.h"

#define STRING_SLOTS	1024U		/* initial number; a power of two */

static void put32(struct kb_barman_writer *writer, uint64_t offset, uint32_t v)
{
	kb_store32(barman_header_field(writer, offset), v, writer->swap);
}

static void put64(struct kb_barman_writer *writer, uint64_t offset, uint64_t v)
{
	kb_store64(barman_header_field(writer, offset), v, writer->swap);
}

static void put_word(struct kb_barman_writer *writer, uint64_t offset, uint64_t v)
{
	kb_store_word(barman_header_field(writer, offset), v, writer->shape.word, writer->swap);
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
static void fill_start(struct kb_barman_writer *writer, const struct kb_barman_layout *layout)
{
	put64(writer, BARMAN_AT_MAGIC, writer->shape.word == 8 ? BARMAN_MAGIC_64 : BARMAN_MAGIC_32);
	put32(writer, BARMAN_AT_VERSION, BM_PROTOCOL_VERSION);
	put32(writer, BARMAN_AT_HEADER_LENGTH, writer->places.end);
	put32(writer, BARMAN_AT_STORE_TYPE,
	      layout->circular ? KB_STORE_CIRCULAR : KB_STORE_LINEAR);
	put32(writer, BARMAN_AT_CONFIG, writer->shape.max_cores);
	put32(writer, BARMAN_AT_CONFIG + 4, writer->shape.max_task_infos);
	put32(writer, BARMAN_AT_CONFIG + 8, writer->shape.max_mmap_layout);
	put32(writer, BARMAN_AT_CONFIG + 12, writer->shape.max_pmu_counters);
	put32(writer, BARMAN_AT_CONFIG + 16, writer->shape.max_string_table_length);
	put32(writer, BARMAN_AT_CONFIG + 20, writer->shape.num_series);
	put64(writer, BARMAN_AT_CLOCK + 8, 1);
	put64(writer, BARMAN_AT_CLOCK + 16, 1);
	if (writer->shape.num_series)
		put32(writer, writer->places.charts, writer->shape.num_charts);
}

static int allocate(struct kb_barman_writer *writer, const struct kb_barman_layout *layout)
{
	writer->header = calloc(1, writer->places.end);
	writer->num_counters = calloc(writer->shape.max_cores ? writer->shape.max_cores : 1,
				      sizeof(*writer->num_counters));
	writer->string_slots = STRING_SLOTS;
	writer->string_seed = kb_hash_seed(writer);
	writer->string_index = calloc(writer->string_slots, sizeof(*writer->string_index));
	if (layout->circular) {
		writer->ring_bytes = layout->buffer_length & ~(uint64_t)(writer->shape.word - 1);
		writer->ring = calloc(1, writer->ring_bytes); /* NOLINT: check_layout() refused 0 */
	} else {
		writer->room = BARMAN_OUT_BYTES;
		writer->buffer = malloc(writer->room);
	}
	return writer->header && writer->num_counters && writer->string_index &&
			       (writer->ring || writer->buffer)
		       ? 0
		       : -ENOMEM;
}

/* Find out whether the header can be written after the records. */
static void look_at_file(struct kb_barman_writer *writer)
{
	struct stat st;
	off_t here = lseek(writer->fd, 0, SEEK_CUR);

	writer->seekable = here >= 0 && fstat(writer->fd, &st) == 0 && S_ISREG(st.st_mode) &&
		      !(fcntl(writer->fd, F_GETFL) & O_APPEND);
	writer->base = writer->seekable ? here : 0;
}

int kb_barman_writer_create(struct kb_barman_writer **out, int fd,
			    const struct kb_barman_layout *layout, struct kb_error *err)
{
	struct kb_barman_layout known;
	struct kb_barman_writer *writer;
	int ret;

	*out = NULL;
	ret = KB_OPTIONS(&known, layout, err) ?: check_layout(&known, err);
	if (ret)
		return ret;
	writer = calloc(1, sizeof(*writer));
	if (!writer)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	layout = &known;
	writer->fd = fd;
	writer->swap = layout->big_endian != KB_HOST_BIG_ENDIAN;
	writer->spare_series = layout->spare_series;
	writer->limit =
		layout->buffer_length && !layout->circular ? layout->buffer_length : UINT64_MAX;
	writer->shape = (struct barman_shape){
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
	barman_places(&writer->places, &writer->shape);
	if (writer->places.end > UINT32_MAX) {
		free(writer);
		return kb_error_set(err, -EINVAL, KB_NO_OFFSET,
				    "can't write such a capture: its header would be longer than "
				    "4 GiB");
	}
	if (allocate(writer, layout)) {
		kb_barman_writer_destroy(writer);
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	}
	look_at_file(writer);
	fill_start(writer, layout);
	*out = writer;
	return 0;
}

void kb_barman_writer_destroy(struct kb_barman_writer *writer)
{
	if (!writer)
		return;
	kb_behind_destroy(writer->behind);
	free(writer->header);
	free(writer->num_counters);
	free(writer->string_index);
	free(writer->buffer);
	free(writer->ring);
	free(writer);
}

/* Whether the header may still be changed. Every function that changes it calls this first. */
static int check_open(const struct kb_barman_writer *writer)
{
	if (writer->error.code)
		return writer->error.code;
	return writer->header_sent ? -ESPIPE : 0;
}

static const char *string_at(const struct kb_barman_writer *writer, uint32_t offset)
{
	return (const char *)writer->header + BARMAN_AT_STRINGS + offset;
}

/* The slot of @string: the slot that has it, or the empty slot where it belongs. */
static uint32_t *string_slot(struct kb_barman_writer *writer, const char *string)
{
	uint32_t at = (uint32_t)kb_hash_bytes(writer->string_seed, string, strlen(string));

	for (;; at++) {
		uint32_t *slot = &writer->string_index[at & (writer->string_slots - 1)];

		if (!*slot || strcmp(string_at(writer, *slot - 1), string) == 0)
			return slot;
	}
}

static int grow_string_index(struct kb_barman_writer *writer)
{
	uint32_t *old = writer->string_index, slots = writer->string_slots;
	uint32_t *index = calloc((size_t)slots * 2, sizeof(*index));

	if (!index)
		return -ENOMEM;
	writer->string_index = index;
	writer->string_slots = slots * 2;
	for (uint32_t i = 0; i < slots; i++) {
		if (old[i])
			*string_slot(writer, string_at(writer, old[i] - 1)) = old[i];
	}
	free(old);
	return 0;
}

int64_t kb_barman_writer_string(struct kb_barman_writer *writer, const char *string)
{
	size_t length = strlen(string);
	uint32_t *slot;
	int ret = writer->error.code;

	if (ret)
		return ret;
	slot = string_slot(writer, string);
	if (*slot)
		return *slot - 1;
	if (writer->header_sent)
		return -ESPIPE;
	if (length >= writer->shape.max_string_table_length - writer->string_bytes)
		return -ENOSPC;
	if (writer->nr_strings >= writer->string_slots / 2) {
		ret = grow_string_index(writer);
		if (ret)
			return ret;
		slot = string_slot(writer, string);
	}
	memcpy(writer->header + BARMAN_AT_STRINGS + writer->string_bytes, string, length + 1);
	*slot = writer->string_bytes + 1;
	writer->string_bytes += length + 1;
	writer->nr_strings++;
	if (strcmp(string, "kbarman.ext=1") == 0)
		writer->extended = true;
	if (strncmp(string, BARMAN_STATES_FACT, strlen(BARMAN_STATES_FACT)) == 0)
		writer->wide_states = true;
	return *slot - 1;
}

/* The offset of @string for a field of the header; NULL becomes "". */
static int string_field(struct kb_barman_writer *writer, const char *string, uint32_t *ptr)
{
	int64_t offset = kb_barman_writer_string(writer, string ? string : "");

	*ptr = offset < 0 ? 0 : offset;
	return offset < 0 ? (int)offset : 0;
}

int kb_barman_writer_set_header(struct kb_barman_writer *writer, const struct kb_header *header)
{
	uint32_t target;
	int ret = check_open(writer);

	if (!ret)
		ret = string_field(writer, header->target_name, &target);
	if (ret)
		return ret;
	put32(writer, BARMAN_AT_TARGET_NAME, target);
	put32(writer, BARMAN_AT_SAMPLE_RATE, header->timer_sample_rate);
	put64(writer, BARMAN_AT_CLOCK, header->timestamp_base);
	put64(writer, BARMAN_AT_CLOCK + 8, header->timestamp_multiplier);
	put64(writer, BARMAN_AT_CLOCK + 16, header->timestamp_divisor);
	put64(writer, BARMAN_AT_CLOCK + 24, header->unix_base_ns);
	if (header->last_timestamp > writer->last_timestamp)
		writer->last_timestamp = header->last_timestamp;
	return 0;
}

int kb_barman_writer_pmu(struct kb_barman_writer *writer, uint32_t core, const struct kb_pmu *pmu)
{
	uint64_t at = writer->places.pmus + core * writer->places.pmu_bytes;
	unsigned int word = writer->shape.word;
	int ret = check_open(writer);

	if (ret)
		return ret;
	if (core >= writer->shape.max_cores || pmu->num_counters > writer->shape.max_pmu_counters)
		return -EINVAL;
	if (word == 4 && pmu->mpidr > UINT32_MAX)
		return -ERANGE;
	put64(writer, at, pmu->configuration_timestamp);
	put32(writer, at + 8, pmu->midr);
	put_word(writer, at + 12, pmu->mpidr);
	put32(writer, at + 12 + word, pmu->cluster_id);
	put32(writer, at + 16 + word, pmu->num_counters);
	memset(barman_header_field(writer, at + 20 + word), 0,
	       4 * (size_t)writer->shape.max_pmu_counters);
	for (uint32_t i = 0; i < pmu->num_counters; i++)
		put32(writer, at + 20 + word + 4 * i, pmu->counter_types[i]);
	writer->num_counters[core] = pmu->num_counters;
	writer->synced_rest = false;
	return 0;
}

static int task_fact(struct kb_barman_writer *writer, const char *key, uint32_t row, uint64_t value)
{
	char fact[64];
	int64_t offset;

	snprintf(fact, sizeof(fact), "kbarman.%s.%" PRIu32 "=%" PRIu64, key, row, value);
	offset = kb_barman_writer_string(writer, fact);
	return offset < 0 ? (int)offset : 0;
}

int kb_barman_writer_task(struct kb_barman_writer *writer, const struct kb_task *task)
{
	uint64_t at = writer->places.tasks + 4 + (uint64_t)writer->nr_tasks * BARMAN_TASK_BYTES;
	uint32_t name;
	int ret = check_open(writer);

	if (!ret && writer->nr_tasks >= writer->shape.max_task_infos)
		ret = -ENOSPC;
	if (!ret)
		ret = string_field(writer, task->name, &name);
	if (ret)
		return ret;
	put64(writer, at, task->timestamp);
	put32(writer, at + 8, task->task_id);
	put32(writer, at + 12, name);
	put32(writer, writer->places.tasks, ++writer->nr_tasks);
	if (task->tgid && task->tgid != task->task_id)
		ret = task_fact(writer, "tgid", writer->nr_tasks - 1, task->tgid);
	if (!ret && task->exited)
		ret = task_fact(writer, "exit", writer->nr_tasks - 1, task->exited);
	return ret;
}

/* The image of a row, with the file before it if that is known. */
static int image_field(struct kb_barman_writer *writer, const struct kb_map *map, uint32_t *ptr)
{
	char *string;
	int ret;

	if (!map->file.length || !map->image)
		return string_field(writer, map->image, ptr);
	if (asprintf(&string, BARMAN_FILE_FACT "%.*s:%s", (int)map->file.length, map->file.data,
		     map->image) < 0)
		return -ENOMEM;
	ret = string_field(writer, string, ptr);
	*ptr += strlen(string) - strlen(map->image);
	free(string);
	return ret;
}

int kb_barman_writer_map(struct kb_barman_writer *writer, const struct kb_map *map)
{
	uint64_t at = writer->places.maps + 4 + writer->nr_maps * writer->places.map_bytes;
	unsigned int word = writer->shape.word;
	uint32_t image;
	int ret = check_open(writer);

	if (!ret && writer->nr_maps >= writer->shape.max_mmap_layout)
		ret = -ENOSPC;
	if (!ret && word == 4 && (map->base_address | map->length | map->image_offset) > UINT32_MAX)
		ret = -ERANGE;
	if (!ret)
		ret = image_field(writer, map, &image);
	if (ret)
		return ret;
	if (writer->shape.max_task_infos) {
		put64(writer, at, map->timestamp);
		put32(writer, at + 8, map->task_id);
		at += 12;
	}
	put_word(writer, at, map->base_address);
	put_word(writer, at + word, map->length);
	put_word(writer, at + 2 * word, map->image_offset);
	put32(writer, at + 3 * word, image);
	put32(writer, writer->places.maps, ++writer->nr_maps);
	return 0;
}

static void put_chart(struct kb_barman_writer *writer, uint32_t index, uint32_t name,
		      const struct kb_chart *chart)
{
	uint64_t at = writer->places.charts + 4 + (uint64_t)index * BARMAN_CHART_BYTES;
	uint8_t *bytes = barman_header_field(writer, at);

	put32(writer, at, name);
	bytes[4] = chart->series_composition;
	bytes[5] = chart->rendering_type;
	bytes[6] = chart->boolean_flags;
}

int kb_barman_writer_chart(struct kb_barman_writer *writer, const struct kb_chart *chart)
{
	uint32_t name;
	int ret = check_open(writer);

	if (!ret && writer->nr_charts >= writer->shape.num_charts)
		ret = -ENOSPC;
	if (!ret)
		ret = string_field(writer, chart->name, &name);
	if (ret)
		return ret;
	put_chart(writer, writer->nr_charts++, name, chart);
	writer->synced_rest = false;
	return 0;
}

static void put_series(struct kb_barman_writer *writer, uint32_t index, uint32_t name,
		       uint32_t units, uint32_t description, const struct kb_series *series)
{
	uint64_t at = writer->places.series + (uint64_t)index * BARMAN_SERIES_BYTES;
	uint8_t *bytes = barman_header_field(writer, at);
	uint64_t multiplier;

	memcpy(&multiplier, &series->multiplier, sizeof(multiplier));
	put32(writer, at, series->chart_index);
	put32(writer, at + 4, name);
	put32(writer, at + 8, units);
	put32(writer, at + 12, description);
	put32(writer, at + 16, series->colour);
	put64(writer, at + 20, multiplier);
	bytes[28] = series->series_class;
	bytes[29] = series->display;
	bytes[30] = series->boolean_flags;
}

int kb_barman_writer_series(struct kb_barman_writer *writer, const struct kb_series *series)
{
	uint32_t name, units, description;
	int ret = check_open(writer);

	if (!ret && writer->nr_series >= writer->shape.num_series)
		ret = -ENOSPC;
	if (!ret)
		ret = string_field(writer, series->name, &name);
	if (!ret)
		ret = string_field(writer, series->units, &units);
	if (!ret)
		ret = string_field(writer, series->description, &description);
	if (ret)
		return ret;
	put_series(writer, writer->nr_series++, name, units, description, series);
	writer->synced_rest = false;
	return 0;
}

int kb_barman_writer_fact(struct kb_barman_writer *writer, const char *key, const char *value)
{
	char *string;
	int64_t ret;

	if (asprintf(&string, "kbarman.%s=%s", key, value) < 0)
		return -ENOMEM;
	ret = kb_barman_writer_string(writer, string);
	free(string);
	return ret < 0 ? (int)ret : 0;
}

void barman_complete_header(struct kb_barman_writer *writer)
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
	if (!writer->string_bytes)
		writer->string_bytes = 1;
	empty = strlen(string_at(writer, 0));
	for (uint32_t i = writer->nr_charts; i < writer->shape.num_charts; i++)
		put_chart(writer, i, empty, &chart);
	for (uint32_t i = writer->nr_series; i < writer->shape.num_series; i++)
		put_series(writer, i, empty, empty, empty, &series);
	put32(writer, BARMAN_AT_STRING_LENGTH, writer->string_bytes);
}
