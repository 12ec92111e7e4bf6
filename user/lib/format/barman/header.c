// SPDX-License-Identifier: MIT
/*
 * The header of a Barman capture. None of its values is trusted: a count larger than its table
 * is cut to the table, and a string outside of the string table becomes NULL. Both are
 * findings. It is an error if the records can't be found. Memory is allocated only for rows
 * that are in the file.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "format/barman/file.h"
#include "format/barman/inside.h"

#define PIECE		((size_t)1 << 20)	/* strings are read in pieces of so many bytes */
#define STRINGS_MAX	((uint32_t)64 << 20)
#define ROWS_MAX	((uint32_t)1 << 20)	/* limit for tasks, and for maps */
#define COUNTERS_MAX	((uint32_t)1 << 20)	/* of all cores together */
#define FACTS_MAX	((size_t)1 << 16)

static bool is_swapped(const struct kb_barman *barman)
{
	return barman->header.big_endian != KB_HOST_BIG_ENDIAN;
}

/* Get @length bytes at @offset of the header; NULL with @err filled if they are not there. */
static const uint8_t *header_at(struct kb_barman *barman, uint64_t offset, size_t length,
				struct kb_error *err)
{
	struct kb_error why;
	size_t got;
	const uint8_t *at = kb_source_at(&barman->source, offset, length, &got, &why);
	uint64_t end;

	if (got >= length)
		return at;
	if (why.code) {
		if (err)
			*err = why;
		return NULL;
	}
	end = offset + got < barman->source.size ? offset + got : barman->source.size;
	kb_error_set(err, -EBADMSG, end,
		     "%s ends at byte %" PRIu64 ", inside its header: it was cut short",
		     barman->source.name, end);
	return NULL;
}

static int bad_header(struct kb_barman *barman, struct kb_error *err, uint64_t offset,
		      const char *what, uint64_t value)
{
	return kb_error_set(err, -EBADMSG, offset,
			    "%s: bad Barman header: %s %" PRIu64 " at byte %" PRIu64,
			    barman->source.name, what, value, offset);
}

/* Read word size and byte order from the magic bytes. */
static int read_magic(struct kb_barman *barman, struct kb_error *err)
{
	static const struct {
		uint64_t magic;
		uint8_t word_size;
	} known[] = { { BARMAN_MAGIC_64, 8 }, { BARMAN_MAGIC_32, 4 } };
	struct kb_error why;
	size_t got;
	const uint8_t *at = kb_source_at(&barman->source, 0, 8, &got, &why);

	if (!at && why.code) {
		if (err)
			*err = why;
		return why.code;
	}
	for (int big = 0; at && got >= 8 && big < 2; big++) {
		uint64_t magic = kb_load64(at, big ? KB_SWAP_BE : KB_SWAP_LE);

		for (size_t i = 0; i < 2; i++) {
			if (magic == known[i].magic) {
				barman->header.word_size = known[i].word_size;
				barman->header.big_endian = big;
				return 0;
			}
		}
	}
	return kb_error_set(err, -ENODATA, 0, "%s is not a Barman capture", barman->source.name);
}

static int read_start(struct kb_barman *barman, struct kb_error *err)
{
	const uint8_t *at = header_at(barman, 0, BARMAN_AT_STRINGS, err);
	struct kb_header *h = &barman->header;
	bool swap = is_swapped(barman);

	if (!at)
		return -EBADMSG;
	h->protocol_version = kb_load32(at + BARMAN_AT_VERSION, swap);
	h->header_length = kb_load32(at + BARMAN_AT_HEADER_LENGTH, swap);
	h->data_store_type = kb_load32(at + BARMAN_AT_STORE_TYPE, swap);
	h->target_name_ptr = kb_load32(at + BARMAN_AT_TARGET_NAME, swap);
	h->last_timestamp = kb_load64(at + BARMAN_AT_LAST_TIMESTAMP, swap);
	h->timer_sample_rate = kb_load32(at + BARMAN_AT_SAMPLE_RATE, swap);
	h->max_cores = kb_load32(at + BARMAN_AT_CONFIG, swap);
	h->max_task_infos = kb_load32(at + BARMAN_AT_CONFIG + 4, swap);
	h->max_mmap_layout = kb_load32(at + BARMAN_AT_CONFIG + 8, swap);
	h->max_pmu_counters = kb_load32(at + BARMAN_AT_CONFIG + 12, swap);
	h->max_string_table_length = kb_load32(at + BARMAN_AT_CONFIG + 16, swap);
	h->num_custom_counters = kb_load32(at + BARMAN_AT_CONFIG + 20, swap);
	h->timestamp_base = kb_load64(at + BARMAN_AT_CLOCK, swap);
	h->timestamp_multiplier = kb_load64(at + BARMAN_AT_CLOCK + 8, swap);
	h->timestamp_divisor = kb_load64(at + BARMAN_AT_CLOCK + 16, swap);
	h->unix_base_ns = kb_load64(at + BARMAN_AT_CLOCK + 24, swap);
	h->string_table_length = kb_load32(at + BARMAN_AT_STRING_LENGTH, swap);

	if (h->protocol_version < 1 || h->protocol_version > 3)
		barman_finding(barman, BARMAN_AT_VERSION,
			       "protocol version %" PRIu32 " is not known, read as version 2",
			       h->protocol_version);
	if (!h->timestamp_divisor)
		barman_finding(barman, BARMAN_AT_CLOCK + 16,
			       "the timestamp divisor is 0, taken as 1");
	return 0;
}

/* Later agents have other stores. The error names the type. */
/* The public header says what the wire says. */
#define SAME(ours, wire)	_Static_assert((int)(ours) == (int)(wire), #ours)
SAME(KB_STORE_LINEAR, BM_DATA_STORE_LINEAR);
SAME(KB_STORE_CIRCULAR, BM_DATA_STORE_CIRCULAR);
SAME(KB_COMPOSITION_STACKED, BM_SERIES_STACKED);
SAME(KB_COMPOSITION_OVERLAY, BM_SERIES_OVERLAY);
SAME(KB_COMPOSITION_LOG10, BM_SERIES_LOG10);
SAME(KB_RENDERING_FILLED, BM_RENDERING_FILLED);
SAME(KB_RENDERING_LINE, BM_RENDERING_LINE);
SAME(KB_RENDERING_BAR, BM_RENDERING_BAR);
SAME(KB_CHART_AVERAGE_SELECTION, BM_CHART_AVERAGE_SELECTION);
SAME(KB_CHART_AVERAGE_CORES, BM_CHART_AVERAGE_CORES);
SAME(KB_CHART_PERCENTAGE, BM_CHART_PERCENTAGE);
SAME(KB_CHART_PER_CPU, BM_CHART_PER_CPU);
SAME(KB_SERIES_DELTA, BM_SERIES_CLASS_DELTA);
SAME(KB_SERIES_INCIDENT, BM_SERIES_CLASS_INCIDENT);
SAME(KB_SERIES_ABSOLUTE, BM_SERIES_CLASS_ABSOLUTE);
SAME(KB_DISPLAY_ACCUMULATE, BM_SERIES_DISPLAY_ACCUMULATE);
SAME(KB_DISPLAY_AVERAGE, BM_SERIES_DISPLAY_AVERAGE);
SAME(KB_DISPLAY_HERTZ, BM_SERIES_DISPLAY_HERTZ);
SAME(KB_DISPLAY_MAXIMUM, BM_SERIES_DISPLAY_MAXIMUM);
SAME(KB_DISPLAY_MINIMUM, BM_SERIES_DISPLAY_MINIMUM);
SAME(KB_SERIES_SAMPLED, BM_SERIES_SAMPLED);
SAME(KB_COLOUR_AUTOMATIC, BM_SERIES_COLOUR_AUTOMATIC);
SAME(KB_SWITCH_PREEMPTED, BM_TASK_SWITCH_PREEMPTED);
SAME(KB_SWITCH_BLOCKED, BM_TASK_SWITCH_BLOCKED);
SAME(KB_ANNOTATION_STRING, BM_ANNOTATION_STRING);
SAME(KB_ANNOTATION_BOOKMARK, BM_ANNOTATION_BOOKMARK);
SAME(KB_ANNOTATION_CHANNEL, BM_ANNOTATION_CHANNEL);
SAME(KB_ANNOTATION_GROUP, BM_ANNOTATION_GROUP);

static int check_store_type(struct kb_barman *barman, struct kb_error *err)
{
	static const char *const others[] = {
		[0] = "user supplied", [3] = "STM", [4] = "streaming user supplied", [5] = "ITM",
	};
	uint32_t type = barman->header.data_store_type;

	if (type == KB_STORE_LINEAR || type == KB_STORE_CIRCULAR)
		return 0;
	return kb_error_set(err, -EBADMSG, BARMAN_AT_STORE_TYPE,
			    "%s: data store type %" PRIu32 " (%s) is not supported: only linear "
			    "(1) and circular (2) captures can be read from a file",
			    barman->source.name, type, type < 6 ? others[type] : "not known");
}

static int check_sizes(struct kb_barman *barman, struct kb_error *err)
{
	const struct kb_header *h = &barman->header;

	if (h->max_cores > BARMAN_CORES_MAX)
		return bad_header(barman, err, BARMAN_AT_CONFIG,
				  "more cores than 65536:", h->max_cores);
	if (h->max_pmu_counters > BARMAN_PMU_COUNTERS_MAX)
		return bad_header(barman, err, BARMAN_AT_CONFIG + 12,
				  "more PMU counters than 65536:", h->max_pmu_counters);
	if (h->num_custom_counters > BARMAN_CUSTOM_MAX)
		return bad_header(barman, err, BARMAN_AT_CONFIG + 20,
				  "more custom counters than 65536:", h->num_custom_counters);
	barman->shape = (struct barman_shape){
		.word = h->word_size,
		.max_cores = h->max_cores,
		.max_task_infos = h->max_task_infos,
		.max_mmap_layout = h->max_mmap_layout,
		.max_pmu_counters = h->max_pmu_counters,
		.max_string_table_length = h->max_string_table_length,
		.num_series = h->num_custom_counters,
	};
	return 0;
}

/* Compare header_length with what the tables need. */
static int check_length(struct kb_barman *barman, const struct barman_places *p,
			struct kb_error *err)
{
	uint64_t length = barman->header.header_length;
	uint64_t need = p->store + 32 + barman->header.word_size;

	if (length < need)
		return kb_error_set(err, -EBADMSG, BARMAN_AT_HEADER_LENGTH,
				    "%s: bad Barman header: its tables need %" PRIu64
				    " bytes, but it says that it has %" PRIu64,
				    barman->source.name, need, length);
	return 0;
}

/* A string of the table. @offset: place in the file that refers to it. */
static const char *string_at(struct kb_barman *barman, uint32_t ptr, uint64_t offset)
{
	if (ptr < barman->header.string_table_length)
		return barman->strings + ptr;
	barman_finding(barman, offset, "string %" PRIu32 " is outside the string table of %" PRIu32
		       " bytes", ptr, barman->header.string_table_length);
	return NULL;
}

/* Collect the strings "kbarman.KEY=VALUE". Strings of files belong to rows and are left out. */
static int collect_facts(struct kb_barman *barman)
{
	const char *at = barman->strings,
		   *end = barman->strings + barman->header.string_table_length;
	size_t room = 0;

	while (at < end && barman->nr_facts < FACTS_MAX) {
		if (strncmp(at, "kbarman.", 8) == 0 &&
		    strncmp(at, BARMAN_FILE_FACT, strlen(BARMAN_FILE_FACT)) != 0) {
			if (!KB_ARRAY_ROOM(barman->facts, room, barman->nr_facts + 1))
				return -ENOMEM;
			barman->facts[barman->nr_facts++] = at;
			if (strcmp(at, "kbarman.ext=1") == 0)
				barman->header.extended = true;
			if (strncmp(at, BARMAN_STATES_FACT, strlen(BARMAN_STATES_FACT)) == 0)
				barman_read_states(&barman->header,
						   at + strlen(BARMAN_STATES_FACT));
		}
		at += strlen(at) + 1;
	}
	return 0;
}

static int read_strings(struct kb_barman *barman, struct kb_error *err)
{
	struct kb_header *h = &barman->header;
	uint32_t done = 0;

	if (h->string_table_length > h->max_string_table_length) {
		barman_finding(barman, BARMAN_AT_STRING_LENGTH,
			       "%" PRIu32 " bytes of strings in a table of %" PRIu32,
			       h->string_table_length, h->max_string_table_length);
		h->string_table_length = h->max_string_table_length;
	}
	if (h->string_table_length > STRINGS_MAX)
		return bad_header(barman, err, BARMAN_AT_STRING_LENGTH,
				  "more bytes of strings than 64 MiB:", h->string_table_length);
	/* Allocate only for bytes that the file really has. */
	do {
		uint32_t piece = h->string_table_length - done;
		const uint8_t *at;
		char *more;

		if (piece > PIECE)
			piece = PIECE;
		at = header_at(barman, BARMAN_AT_STRINGS + done, piece, err);
		if (piece && !at)
			return -EBADMSG;
		more = realloc(barman->strings, (size_t)done + piece + 1);
		if (!more)
			return -ENOMEM;
		barman->strings = more;
		if (piece)
			memcpy(more + done, at, piece);
		done += piece;
	} while (done < h->string_table_length);
	barman->strings[done] = '\0';
	h->strings = barman->strings;
	if (done && barman->strings[done - 1])
		barman_finding(barman, BARMAN_AT_STRINGS + done - 1,
			       "the last string is not terminated in the string table");
	h->target_name = string_at(barman, h->target_name_ptr, BARMAN_AT_TARGET_NAME);
	return collect_facts(barman);
}

static int read_pmus(struct kb_barman *barman, const struct barman_places *p, struct kb_error *err)
{
	struct kb_header *h = &barman->header;
	unsigned int word = h->word_size;
	uint64_t total = 0;
	size_t room = 0;
	bool swap = is_swapped(barman);

	h->pmus = calloc(h->max_cores ? h->max_cores : 1, sizeof(*h->pmus));
	barman->counter_index =
		calloc(h->max_cores ? h->max_cores : 1, sizeof(*barman->counter_index));
	if (!h->pmus || !barman->counter_index)
		return -ENOMEM;
	for (uint32_t core = 0; core < h->max_cores; core++) {
		uint64_t offset = p->pmus + core * p->pmu_bytes;
		const uint8_t *at = header_at(barman, offset, p->pmu_bytes, err);
		struct kb_pmu *pmu = &h->pmus[core];

		if (!at)
			return -EBADMSG;
		pmu->configuration_timestamp = kb_load64(at, swap);
		pmu->midr = kb_load32(at + 8, swap);
		pmu->mpidr = kb_load_word(at + 12, word, swap);
		pmu->cluster_id = kb_load32(at + 12 + word, swap);
		pmu->num_counters = kb_load32(at + 16 + word, swap);
		if (pmu->num_counters > h->max_pmu_counters) {
			barman_finding(barman, offset + 16 + word,
				       "core %" PRIu32 " has %" PRIu32 " counters in a table of %"
				       PRIu32, core, pmu->num_counters, h->max_pmu_counters);
			pmu->num_counters = h->max_pmu_counters;
		}
		if (total + pmu->num_counters > COUNTERS_MAX)
			return bad_header(barman, err, offset + 16 + word,
					  "more counters of all cores than 1048576:",
					  total + pmu->num_counters);
		if (!KB_ARRAY_ROOM(barman->counter_types, room, total + pmu->num_counters))
			return -ENOMEM;
		for (uint32_t i = 0; i < pmu->num_counters; i++)
			barman->counter_types[total + i] = kb_load32(at + 20 + word + 4 * i, swap);
		barman->counter_index[core] = total;
		total += pmu->num_counters;
	}
	for (uint32_t core = 0; core < h->max_cores; core++) {
		if (h->pmus[core].num_counters)
			h->pmus[core].counter_types =
				barman->counter_types + barman->counter_index[core];
	}
	barman->nr_counters = total;
	return 0;
}

/* Read the number of used rows, with which a table begins. */
static int read_count(struct kb_barman *barman, uint64_t offset, uint32_t max, const char *what,
		      uint32_t *count, struct kb_error *err)
{
	const uint8_t *at = header_at(barman, offset, 4, err);

	if (!at)
		return -EBADMSG;
	*count = kb_load32(at, is_swapped(barman));
	if (*count > max) {
		barman_finding(barman, offset, "%" PRIu32 " %s in a table of %" PRIu32, *count,
			       what, max);
		*count = max;
	}
	if (*count > ROWS_MAX) {
		barman_finding(barman, offset, "%" PRIu32 " %s, the first %" PRIu32 " are read",
			       *count, what, ROWS_MAX);
		*count = ROWS_MAX;
	}
	return 0;
}

/*
 * Make room for row @row of at most @count. The room doubles, so a wrong count costs no memory.
 */
static void *grow_rows(void *rows, uint32_t row, uint32_t count, size_t size)
{
	uint32_t room = row ? 2 * row : 64;

	if (row && (row < 64 || (row & (row - 1))))
		return rows;
	return realloc(rows, (room < count ? room : count) * size);
}

/* "tgid.ROW=ID", "exit.ROW=TICKS" */
static void take_task_fact(struct kb_header *h, const char *fact)
{
	bool is_tgid = strncmp(fact, "tgid.", 5) == 0;
	unsigned long long row, value;
	char *end;

	if (!is_tgid && strncmp(fact, "exit.", 5) != 0)
		return;
	errno = 0;
	row = strtoull(fact + 5, &end, 10);
	if (errno || end == fact + 5 || *end != '=' || row >= h->nr_tasks)
		return;
	value = strtoull(end + 1, &end, 10);
	if (errno || *end)
		return;
	if (!is_tgid)
		h->tasks[row].exited = value;
	else if (value <= UINT32_MAX)
		h->tasks[row].tgid = (uint32_t)value;
}

/* The pages that the map of a CPU has: struct bm_kbarman_tasks at @offset. */
static void read_task_pages(struct kb_barman *barman, uint64_t offset)
{
	uint64_t end = BARMAN_AT_STRINGS + (uint64_t)barman->header.max_string_table_length;
	const uint8_t *at = NULL;
	bool swap = is_swapped(barman);
	uint64_t size, element;
	uint32_t count, i;

	if (offset >= BARMAN_AT_STRINGS && offset < end && offset % 8 == 0 && end - offset >= BM_KBARMAN_TASKS_SIZE_VER0)
		at = header_at(barman, offset, BM_KBARMAN_TASKS_SIZE_VER0, NULL);
	if (!at)
		goto err_place;
	size = kb_load32(at, swap);
	element = kb_load32(at + 4, swap);
	count = kb_load32(at + 8, swap);
	if (size < BM_KBARMAN_TASKS_SIZE_VER0 || element < BM_KBARMAN_TASK_SIZE_VER0 || size > end - offset ||
	    count > (end - offset - size) / element)
		goto err_place;
	for (i = 0; i < count && i < barman->header.nr_tasks; i++) {
		struct kb_task *task = &barman->header.tasks[i];

		at = header_at(barman, offset + size + i * element, BM_KBARMAN_TASK_SIZE_VER0,
			       NULL);
		if (!at)
			goto err_place;
		if (kb_load32(at, swap) != task->task_id)
			continue;
		task->tgid = kb_load32(at + 4, swap);
		task->exited = kb_load64(at + 8, swap);
	}
	return;

err_place:
	barman_finding(barman, offset, "kbarman.tasks is not in the room for strings");
}

static void read_task_facts(struct kb_barman *barman)
{
	const char *at = barman->strings, *end = at + barman->header.string_table_length;

	for (; at < end; at += strlen(at) + 1) {
		if (strncmp(at, "kbarman.", 8) != 0)
			continue;
		if (strncmp(at + 8, "tasks=", 6) == 0)
			read_task_pages(barman, strtoull(at + 14, NULL, 10));
		else
			take_task_fact(&barman->header, at + 8);
	}
}

static int read_tasks(struct kb_barman *barman, const struct barman_places *p, struct kb_error *err)
{
	struct kb_header *h = &barman->header;
	bool swap = is_swapped(barman);
	uint32_t count;

	if (read_count(barman, p->tasks, h->max_task_infos, "tasks", &count, err))
		return -EBADMSG;
	for (; h->nr_tasks < count; h->nr_tasks++) {
		uint64_t offset = p->tasks + 4 + (uint64_t)h->nr_tasks * BARMAN_TASK_BYTES;
		const uint8_t *at = header_at(barman, offset, BARMAN_TASK_BYTES, err);
		void *rows;

		if (!at)
			return -EBADMSG;
		rows = grow_rows(h->tasks, h->nr_tasks, count, sizeof(*h->tasks));
		if (!rows)
			return -ENOMEM;
		h->tasks = rows;
		h->tasks[h->nr_tasks] = (struct kb_task){
			.timestamp = kb_load64(at, swap),
			.task_id = kb_load32(at + 8, swap),
			.name_ptr = kb_load32(at + 12, swap),
			.tgid = kb_load32(at + 8, swap),
		};
	}
	for (uint32_t i = 0; i < h->nr_tasks; i++)
		h->tasks[i].name = string_at(barman, h->tasks[i].name_ptr,
					     p->tasks + 4 + (uint64_t)i * BARMAN_TASK_BYTES + 12);
	read_task_facts(barman);
	return 0;
}

static int read_maps(struct kb_barman *barman, const struct barman_places *p, struct kb_error *err)
{
	struct kb_header *h = &barman->header;
	unsigned int word = h->word_size, base = h->max_task_infos ? 12 : 0;
	bool swap = is_swapped(barman);
	uint32_t count;

	if (read_count(barman, p->maps, h->max_mmap_layout, "mappings", &count, err))
		return -EBADMSG;
	for (; h->nr_maps < count; h->nr_maps++) {
		uint64_t offset = p->maps + 4 + h->nr_maps * p->map_bytes;
		const uint8_t *at = header_at(barman, offset, p->map_bytes, err);
		void *rows;

		if (!at)
			return -EBADMSG;
		rows = grow_rows(h->maps, h->nr_maps, count, sizeof(*h->maps));
		if (!rows)
			return -ENOMEM;
		h->maps = rows;
		h->maps[h->nr_maps] = (struct kb_map){
			.timestamp = base ? kb_load64(at, swap) : 0,
			.task_id = base ? kb_load32(at + 8, swap) : 0,
			.base_address = kb_load_word(at + base, word, swap),
			.length = kb_load_word(at + base + word, word, swap),
			.image_offset = kb_load_word(at + base + 2 * word, word, swap),
			.image_ptr = kb_load32(at + base + 3 * word, swap),
		};
	}
	for (uint32_t i = 0; i < h->nr_maps; i++)
		h->maps[i].image = string_at(barman, h->maps[i].image_ptr,
					     p->maps + 4 + i * p->map_bytes + base + 3 * word);
	for (uint32_t i = 0; i < h->nr_maps; i++)
		if (h->maps[i].image && h->maps[i].image[0])
			h->maps[i].file = barman_file_of(barman->strings, h->maps[i].image_ptr);
	return 0;
}

/* Read the number of charts, which decides where all following parts are. */
static int read_chart_count(struct kb_barman *barman, struct barman_places *p, struct kb_error *err)
{
	const uint8_t *at = header_at(barman, p->charts, 4, err);

	if (!at)
		return -EBADMSG;
	barman->shape.num_charts = kb_load32(at, is_swapped(barman));
	if (barman->shape.num_charts > BARMAN_CUSTOM_MAX)
		return bad_header(barman, err, p->charts, "more custom charts than 65536:",
				  barman->shape.num_charts);
	barman_places(p, &barman->shape);
	return check_length(barman, p, err);
}

static int read_custom(struct kb_barman *barman, const struct barman_places *p,
		       struct kb_error *err)
{
	struct kb_header *h = &barman->header;
	bool swap = is_swapped(barman);

	h->charts =
		calloc(barman->shape.num_charts ? barman->shape.num_charts : 1, sizeof(*h->charts));
	h->series = calloc(barman->shape.num_series, sizeof(*h->series));
	if (!h->charts || !h->series)
		return -ENOMEM;
	for (; h->nr_charts < barman->shape.num_charts; h->nr_charts++) {
		uint64_t offset = p->charts + 4 + (uint64_t)h->nr_charts * BARMAN_CHART_BYTES;
		const uint8_t *at = header_at(barman, offset, BARMAN_CHART_BYTES, err);
		struct kb_chart *chart = &h->charts[h->nr_charts];

		if (!at)
			return -EBADMSG;
		chart->name_ptr = kb_load32(at, swap);
		chart->name = string_at(barman, chart->name_ptr, offset);
		chart->series_composition = at[4];
		chart->rendering_type = at[5];
		chart->boolean_flags = at[6];
	}
	for (; h->nr_series < barman->shape.num_series; h->nr_series++) {
		uint64_t offset = p->series + (uint64_t)h->nr_series * BARMAN_SERIES_BYTES;
		const uint8_t *at = header_at(barman, offset, BARMAN_SERIES_BYTES, err);
		struct kb_series *series = &h->series[h->nr_series];
		uint64_t bits;

		if (!at)
			return -EBADMSG;
		series->chart_index = kb_load32(at, swap);
		series->name_ptr = kb_load32(at + 4, swap);
		series->name = string_at(barman, series->name_ptr, offset + 4);
		series->units_ptr = kb_load32(at + 8, swap);
		series->units = string_at(barman, series->units_ptr, offset + 8);
		series->description_ptr = kb_load32(at + 12, swap);
		series->description = string_at(barman, series->description_ptr, offset + 12);
		series->colour = kb_load32(at + 16, swap);
		bits = kb_load64(at + 20, swap);
		memcpy(&series->multiplier, &bits, sizeof(bits));
		series->series_class = at[28];
		series->display = at[29];
		series->boolean_flags = at[30];
		if (series->chart_index >= h->nr_charts)
			barman_finding(barman, offset,
				       "series %" PRIu32 " belongs to chart %" PRIu32
				       ", but there are only %" PRIu32,
				       h->nr_series, series->chart_index, h->nr_charts);
	}
	return 0;
}

static int read_store(struct kb_barman *barman, const struct barman_places *p, struct kb_error *err)
{
	struct kb_header *h = &barman->header;
	const uint8_t *at = header_at(barman, p->store, 32, err);
	bool swap = is_swapped(barman);

	if (!at)
		return -EBADMSG;
	h->buffer_length = kb_load64(at, swap);
	h->write_offset = kb_load64(at + 8, swap);
	h->read_offset = kb_load64(at + 16, swap);
	h->total_written = kb_load64(at + 24, swap);
	h->buffer_start = ((uint64_t)h->header_length + 7) & ~UINT64_C(7);
	if (h->buffer_start > p->end)
		barman_finding(barman, BARMAN_AT_HEADER_LENGTH,
			       "the header has %" PRIu64 " bytes that belong to no table",
			       h->buffer_start - p->end);
	return 0;
}

int barman_header_read(struct kb_barman *barman, struct kb_error *err)
{
	struct barman_places places;
	int ret = read_magic(barman, err);

	if (!ret)
		ret = read_start(barman, err);
	if (!ret)
		ret = check_store_type(barman, err);
	if (!ret)
		ret = check_sizes(barman, err);
	if (ret)
		return ret;
	barman_places(&places, &barman->shape);
	ret = check_length(barman, &places, err);
	if (!ret)
		ret = read_strings(barman, err);
	if (!ret)
		ret = read_pmus(barman, &places, err);
	if (!ret && barman->shape.max_task_infos)
		ret = read_tasks(barman, &places, err);
	if (!ret && barman->shape.max_mmap_layout)
		ret = read_maps(barman, &places, err);
	if (!ret && barman->shape.num_series)
		ret = read_chart_count(barman, &places, err);
	if (!ret && barman->shape.num_series)
		ret = read_custom(barman, &places, err);
	if (!ret)
		ret = read_store(barman, &places, err);
	if (ret == -ENOMEM)
		kb_error_set(err, ret, KB_NO_OFFSET, "%s: no memory for its header",
			     barman->source.name);
	barman->nr_header_findings = barman->nr_findings;
	return ret;
}

void barman_header_free(struct kb_barman *barman)
{
	free(barman->header.pmus);
	free(barman->header.tasks);
	free(barman->header.maps);
	free(barman->header.charts);
	free(barman->header.series);
	free(barman->counter_types);
	free(barman->counter_index);
	free(barman->strings);
	free(barman->facts);
}

const char *kb_barman_fact(const struct kb_barman *barman, const char *key)
{
	size_t length = strlen(key);

	for (size_t i = 0; i < barman->nr_facts; i++) {
		const char *fact = barman->facts[i] + strlen("kbarman.");

		if (strncmp(fact, key, length) == 0 && fact[length] == '=')
			return fact + length + 1;
	}
	return NULL;
}
