// SPDX-License-Identifier: MIT
/*
 * The bytes of one CPU's map: where its parts are, and how to read its ring while the kernel
 * writes it. Nothing here calls the device.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <kbarman/device.h>

#define SNAPSHOT_TRIES	16

/* Walks over the header: each part is taken from the front of the remaining bytes. */
struct walk {
	const uint8_t *at;
	size_t left;
	bool short_of;
};

static const void *take(struct walk *w, uint64_t count, size_t size)
{
	const void *part = w->at;

	if (count > w->left / size) {
		w->short_of = true;
		return NULL;
	}
	w->at += count * size;
	w->left -= count * size;
	return part;
}

static int not_usable(struct kb_error *err, const char *why)
{
	return kb_error_set(err, -EBADMSG, KB_NO_OFFSET, "the mapped capture can't be used: %s", why);
}

/* Where the string kbarman.tasks=OFFSET says: in the room for strings. */
static int view_tasks(struct kb_mapped *mapped, struct kb_error *err)
{
	static const char key[] = "kbarman.tasks=";
	uint64_t end = sizeof(*mapped->header) +
		       (uint64_t)mapped->header->config_constants.max_string_table_length;
	const struct bm_kbarman_tasks *tasks;
	const char *string;
	uint32_t at = 0;
	uint64_t offset;

	while ((string = kb_mapped_string(mapped, at)) &&
	       strncmp(string, key, sizeof(key) - 1) != 0)
		at += (uint32_t)strlen(string) + 1;
	if (!string)
		return 0;
	offset = strtoull(string + sizeof(key) - 1, NULL, 10);
	if (offset < sizeof(*mapped->header) || offset % 8 || offset > end ||
	    end - offset < BM_KBARMAN_TASKS_SIZE_VER0)
		return not_usable(err, "its facts of tasks are not in the room for strings");
	tasks = (const void *)((const uint8_t *)mapped->bytes + offset);
	if (tasks->size < BM_KBARMAN_TASKS_SIZE_VER0 || tasks->size % 8 ||
	    tasks->element_size < BM_KBARMAN_TASK_SIZE_VER0 || tasks->element_size % 8 || tasks->size > end - offset ||
	    tasks->count > (end - offset - tasks->size) / tasks->element_size)
		return not_usable(err, "its facts of tasks are not in the room for strings");
	mapped->more_tasks = (const uint8_t *)tasks + tasks->size;
	mapped->more_bytes = tasks->element_size;
	mapped->nr_more = tasks->count;
	return 0;
}

/* Behind the ring, in maps from ABI 3 on. */
static void view_tail(struct kb_mapped *mapped, size_t left)
{
	const struct kbarman_map_tail *tail = (const void *)(mapped->ring + mapped->ring_bytes);

	if (left >= KBARMAN_MAP_TAIL_SIZE_VER0 && tail->size >= KBARMAN_MAP_TAIL_SIZE_VER0 &&
	    tail->size <= left)
		mapped->tail = tail;
}

int kb_mapped_view(struct kb_mapped *mapped, const void *bytes, size_t size, struct kb_error *err)
{
	const struct bm_protocol_header_start *header = bytes;
	const struct bm_protocol_config_values *config;
	struct walk w = { bytes, size, false };
	const __u32 *nr_charts = NULL;
	size_t odd;

	memset(mapped, 0, sizeof(*mapped));
	if (size < sizeof(*header))
		return not_usable(err, "it is too short");
	if (header->magic_bytes != BM_PROTOCOL_MAGIC_BYTES)
		return not_usable(err, "it does not have this machine's word size: use a tool "
				       "built for the kernel's word size");
	if (header->data_store_type != BM_DATA_STORE_CIRCULAR || header->header_length % 8)
		return not_usable(err, "it has no circular store");

	config = &header->config_constants;
	mapped->bytes = bytes;
	mapped->size = size;
	mapped->header = take(&w, 1, sizeof(*header));
	mapped->strings = take(&w, config->max_string_table_length, 1);
	if (config->max_string_table_length % 4)
		return not_usable(err, "the length of its string table is not a multiple of 4");
	mapped->pmus = take(&w, config->max_cores, sizeof(*mapped->pmus));
	if (!config->max_task_infos || config->max_pmu_counters != BM_MAX_PMU_COUNTERS)
		return not_usable(err, "it has no task table, or other PMU entries");
	mapped->nr_tasks = take(&w, 1, sizeof(__u32));
	mapped->tasks = take(&w, config->max_task_infos, sizeof(*mapped->tasks));
	if (config->max_mmap_layout) {
		mapped->nr_maps = take(&w, 1, sizeof(__u32));
		mapped->maps = take(&w, config->max_mmap_layout, sizeof(*mapped->maps));
	}
	if (config->num_custom_counters) {
		nr_charts = take(&w, 1, sizeof(__u32));
		if (!nr_charts)
			return not_usable(err, "it ends in its header");
		mapped->nr_charts = *nr_charts;
		mapped->charts = take(&w, mapped->nr_charts, sizeof(*mapped->charts));
		mapped->series = take(&w, config->num_custom_counters, sizeof(*mapped->series));
	}
	odd = (size_t)(w.at - (const uint8_t *)bytes) % 8;
	take(&w, odd ? 8 - odd : 0, 1);
	mapped->store = take(&w, 1, sizeof(*mapped->store));
	if (w.short_of || (size_t)(w.at - (const uint8_t *)bytes) != header->header_length)
		return not_usable(err, "the length of its header is not the sum of its parts");

	mapped->ring = w.at;
	mapped->ring_bytes = mapped->store->buffer_length;
	if (mapped->ring_bytes < sizeof(bm_uintptr) ||
	    mapped->ring_bytes & (mapped->ring_bytes - 1) || mapped->ring_bytes > w.left)
		return not_usable(err, "the size of its ring is not a power of two, or the ring "
				       "ends behind the map");
	view_tail(mapped, w.left - mapped->ring_bytes);
	return view_tasks(mapped, err);
}

void kb_mapped_unmap(struct kb_mapped *mapped)
{
	if (mapped->bytes)
		munmap((void *)mapped->bytes, mapped->size);
	memset(mapped, 0, sizeof(*mapped));
}

const char *kb_mapped_string(const struct kb_mapped *mapped, uint32_t offset)
{
	uint32_t length = kb_mapped_count(&mapped->header->string_table_length);

	if (length > mapped->header->config_constants.max_string_table_length)
		length = mapped->header->config_constants.max_string_table_length;
	if (offset >= length || !memchr(mapped->strings + offset, '\0', length - offset))
		return NULL;
	return mapped->strings + offset;
}

/* Load the live word of an offset: on 32-bit kernels only the low word is live. */
static bm_uintptr load_word(const __u64 *offset)
{
#if __BITS_PER_LONG == 32
	const __u32 *words = (const __u32 *)offset;

	return __atomic_load_n(&words[__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__], __ATOMIC_ACQUIRE);
#else
	return __atomic_load_n(offset, __ATOMIC_ACQUIRE);
#endif
}

#if __BITS_PER_LONG == 32
typedef int32_t word_difference;
#else
typedef int64_t word_difference;
#endif

static uint64_t widen(bm_uintptr word, uint64_t near)
{
	return near + (uint64_t)(word_difference)(word - (bm_uintptr)near);
}

uint64_t kb_mapped_write_offset(const struct kb_mapped *mapped, uint64_t near)
{
	return widen(load_word(&mapped->store->write_offset), near);
}

uint64_t kb_mapped_read_offset(const struct kb_mapped *mapped, uint64_t near)
{
	return widen(load_word(&mapped->store->read_offset), near);
}

/* The protocol and its names (w0, r0, r1) are those of uapi/kbarman.h. */
int kb_mapped_snapshot(const struct kb_mapped *mapped, void *buffer, size_t *start, size_t *length)
{
	for (int i = 0; i < SNAPSHOT_TRIES; i++) {
		bm_uintptr w0 = load_word(&mapped->store->write_offset);	/* pairs with [B] */
		bm_uintptr r0 = load_word(&mapped->store->read_offset);
		bm_uintptr held = w0 - r0, first, gone;
		size_t from = r0 & (mapped->ring_bytes - 1);

		*start = 0;
		*length = 0;
		if (!held)
			return 0;
		if (held > mapped->ring_bytes)	/* r0 > w0: data were evicted meanwhile */
			continue;
		first = mapped->ring_bytes - from < held ? mapped->ring_bytes - from : held;
		memcpy(buffer, mapped->ring + from, first);
		memcpy((uint8_t *)buffer + first, mapped->ring, held - first);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);		/* pairs with [A] */
		gone = load_word(&mapped->store->read_offset) - r0;
		if (gone > held)		/* r1 > w0 */
			continue;
		*start = gone;
		*length = held - gone;
		return 0;
	}
	return -EAGAIN;
}
