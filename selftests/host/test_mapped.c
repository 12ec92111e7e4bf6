// SPDX-License-Identifier: MIT
/* The view of a CPU's map, and snapshots of a ring that is written meanwhile. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <kbarman/device.h>

#include "../lib/tap.h"
#include "ring_writer.h"

#define CORES	3
#define TASKS	5
#define MAPS	7
#define STRINGS	400
#define SERIES	2
#define RING	8192

/* As the kernel lays it out. */
static struct {
	struct bm_protocol_header_start start;
	char strings[STRINGS];
	struct bm_protocol_header_pmu_settings pmus[CORES];
	__u32 nr_tasks;
	struct bm_protocol_header_task_info tasks[TASKS];
	__u32 nr_maps;
	struct bm_protocol_header_mmap_layout maps[MAPS];
	__u32 nr_charts;
	struct bm_protocol_header_custom_chart charts[1];
	struct bm_protocol_header_custom_chart_series series[SERIES];
} __attribute__((packed, aligned(8))) tables;

#define HEADER	((sizeof(tables) + 7) / 8 * 8)

#define LENGTH	(HEADER + sizeof(struct bm_datastore_header_data) + RING)

static _Alignas(65536) uint8_t bytes[LENGTH + 4096];	/* behind the ring there may be a tail */
static struct bm_datastore_header_data *const store = (void *)(bytes + HEADER);
static struct kb_mapped mapped;
static struct kb_error error;

static void build(void)
{
	memset(&tables, 0, sizeof(tables));
	tables.start = (struct bm_protocol_header_start){
		.magic_bytes = BM_PROTOCOL_MAGIC_BYTES,
		.protocol_version = BM_PROTOCOL_VERSION,
		.header_length = HEADER + sizeof(*store),
		.data_store_type = BM_DATA_STORE_CIRCULAR,
		.config_constants = { CORES, TASKS, MAPS, BM_MAX_PMU_COUNTERS, STRINGS, SERIES },
		.string_table_length = 9,
	};
	memcpy(tables.strings, "host\0abc\0not yet", 17);
	tables.pmus[2].midr = 22;
	tables.nr_tasks = 2;
	tables.tasks[1].task_id = 11;
	tables.nr_maps = 1;
	tables.maps[0].length = 33;
	tables.nr_charts = 1;
	tables.series[1].colour = 44;
	memcpy(bytes, &tables, sizeof(tables));
	*store = (struct bm_datastore_header_data){ .buffer_length = RING };
}

static int view(size_t size)
{
	return kb_mapped_view(&mapped, bytes, size, &error);
}

/* What a later module has behind the ring is longer, and what ABI 2 had there was zero. */
static void tails(void)
{
	struct kbarman_map_tail *tail = (void *)(bytes + LENGTH);
	const size_t end = LENGTH + sizeof(*tail);
	bool good;

	build();
	good = !view(sizeof(bytes)) && !mapped.tail;
	tap_ok(good, "a_map_without_a_tail_is_read");
	*tail = (struct kbarman_map_tail){ .size = sizeof(*tail), .session = 7 };
	good = !view(end) && mapped.tail == tail && mapped.tail->session == 7;
	tail->size = sizeof(*tail) + 64;
	good &= !view(end + 64) && mapped.tail == tail;
	tap_ok(good, "a_tail_is_found_also_if_it_has_grown");
	good = !view(end + 63) && !mapped.tail && !view(LENGTH) && !mapped.tail;
	tail->size = KBARMAN_MAP_TAIL_SIZE_VER0 - 8;
	good &= !view(sizeof(bytes)) && !mapped.tail;
	tap_ok(good, "a_tail_that_is_cut_off_is_none");
	memset(tail, 0, sizeof(*tail));
}

static void parts(void)
{
	build();
	tap_is(view(LENGTH), 0, "a_map_is_understood");
	tap_ok(mapped.pmus[2].midr == 22 && *mapped.nr_tasks == 2 &&
	       mapped.tasks[1].task_id == 11 && *mapped.nr_maps == 1 &&
	       mapped.maps[0].length == 33 && mapped.nr_charts == 1 &&
	       mapped.series[1].colour == 44 && mapped.store == store &&
	       mapped.ring == (uint8_t *)(store + 1) && mapped.ring_bytes == RING,
	       "its_parts_are_where_they_are");
	tap_is_string(kb_mapped_string(&mapped, 5), "abc", "strings_are_found");
	tap_ok(!kb_mapped_string(&mapped, 9) && !kb_mapped_string(&mapped, ~0U),
	       "strings_that_are_not_there_yet_are_not");
}

/* Facts of tasks in the room for strings, of @size bytes, each of which has @element bytes. */
static int view_tasks(uint32_t size, uint32_t element)
{
	const uint32_t offset = sizeof(struct bm_protocol_header_start) + 32;
	const struct bm_kbarman_tasks head = { size, element, TASKS, 0 };
	const struct bm_kbarman_task fact = { .task_id = 11, .tgid = 10, .exit_timestamp = 7 };
	struct bm_protocol_header_start *start = (void *)bytes;
	char *strings = (char *)bytes + sizeof(*start);

	build();
	memset(bytes + offset, 0xa5, STRINGS - 32);
	start->string_table_length = (uint32_t)snprintf(strings, 32, "kbarman.tasks=%u", offset) + 1;
	memcpy(bytes + offset, &head, sizeof(head));
	memcpy(bytes + offset + size + element, &fact, sizeof(fact));
	return view(sizeof(bytes));
}

static void facts_of_tasks(void)
{
	const struct bm_kbarman_task *fact;
	bool good = true;

	tap_ok(!view(sizeof(bytes)) && !kb_mapped_task(&mapped, 1), "tasks_may_have_no_facts");
	for (uint32_t size = BM_KBARMAN_TASKS_SIZE_VER0; size <= 32; size += 8)
		for (uint32_t element = BM_KBARMAN_TASK_SIZE_VER0; element <= 32; element += 8) {
			good &= !view_tasks(size, element);
			fact = kb_mapped_task(&mapped, 1);
			good &= fact && fact->task_id == 11 && fact->tgid == 10 && fact->exit_timestamp == 7 &&
				!kb_mapped_task(&mapped, TASKS);
		}
	tap_ok(good, "facts_of_tasks_may_be_longer_than_this_program_knows");
	tap_ok(view_tasks(8, 16) == -EBADMSG && view_tasks(16, 8) == -EBADMSG &&
	       view_tasks(16, 20) == -EBADMSG && view_tasks(16, 400) == -EBADMSG,
	       "facts_of_tasks_that_have_no_room_are_refused");
}

static void refusals(void)
{
	struct bm_protocol_header_start *start = (void *)bytes;
	bool good = true;

	build();
	for (size_t size = 0; size < LENGTH; size += 4)
		good &= view(size) == -EBADMSG;
	tap_ok(good, "a_map_that_ends_early_is_refused");
	start->magic_bytes ^= 0x0600;
	tap_ok(view(LENGTH) == -EBADMSG && strstr(error.text, "word size"),
	       "another_word_size_is_refused_by_name");
	build();
	start->data_store_type = BM_DATA_STORE_LINEAR;
	good = view(LENGTH) == -EBADMSG;
	build();
	start->config_constants.max_task_infos = ~0U;
	good &= view(LENGTH) == -EBADMSG;
	build();
	start->config_constants.max_task_infos = TASKS + 1;
	good &= view(LENGTH) == -EBADMSG;
	build();
	start->config_constants.max_string_table_length = ~0U;
	good &= view(LENGTH) == -EBADMSG;
	build();
	store->buffer_length = RING - 8;
	good &= view(LENGTH) == -EBADMSG;
	build();
	store->buffer_length = RING * 2;
	good &= view(LENGTH) == -EBADMSG;
	tap_ok(good, "headers_that_contradict_themselves_are_refused");
}

/* The ring's writer is the test's own, on the mapped ring. */
static struct ring_writer writer;

static void begin_ring(void)
{
	build();
	if (view(LENGTH))
		abort();
	writer = (struct ring_writer){
		.bytes = (uint8_t *)(store + 1),
		.size = RING,
		.overwrite = true,
	};
}

/* As kmod/ring/ring.c publishes: read_offset, then the bytes, then write_offset. */
static void publish_record(uint64_t timestamp, uint64_t length)
{
	struct ring_writer trial = writer;

	ring_make_room(&trial, 2 * (length + WORD));
	__atomic_store_n(&store->read_offset, trial.read, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	writer.read = trial.read;
	ring_put(&writer, 0, timestamp, length, (uint32_t)timestamp);
	__atomic_store_n(&store->write_offset, writer.write, __ATOMIC_RELEASE);
}

/* Are these whole blocks, one mark after the other? The number of records, or -1. */
static long check_blocks(const uint8_t *data, size_t length)
{
	uint32_t mark, expected = 0;
	long records = 0;

	while (length) {
		bm_uintptr word;

		memcpy(&word, data, WORD);
		if ((word & ~BM_BLOCK_PADDING) > length - WORD)
			return -1;
		if (!(word & BM_BLOCK_PADDING)) {
			memcpy(&mark, data + WORD + 16, sizeof(mark));
			if (records++ && mark != expected)
				return -1;
			expected = mark + 1;
		}
		data += WORD + (word & ~BM_BLOCK_PADDING);
		length -= WORD + (word & ~BM_BLOCK_PADDING);
	}
	return records;
}

static void still_ring(void)
{
	static uint8_t copy[RING];
	size_t start, length;

	begin_ring();
	tap_ok(!kb_mapped_snapshot(&mapped, copy, &start, &length) && !length,
	       "an_empty_ring_gives_nothing");
	for (int i = 0; i < 10; i++)
		publish_record((uint64_t)i, 24);
	tap_ok(!kb_mapped_snapshot(&mapped, copy, &start, &length) &&
	       check_blocks(copy + start, length) == 10, "a_still_ring_gives_all_of_it");
	for (int i = 10; i < 5000; i++)
		publish_record((uint64_t)i, 24 + 8 * (i % 5));
	tap_ok(!kb_mapped_snapshot(&mapped, copy, &start, &length) && length > RING / 2 &&
	       check_blocks(copy + start, length) > 0, "a_wrapped_ring_gives_the_newest");
	tap_ok(kb_mapped_write_offset(&mapped, writer.write - 100) == writer.write &&
	       kb_mapped_read_offset(&mapped, writer.write) == writer.read, "offsets_are_read");
}

/*
 * The same without luck: a page of the ring can't be touched, so the copy stops in
 * its middle, and the handler has the writer write any number of records there.
 */
static unsigned int records_within;
static uint8_t *guarded;

static void write_within_copy(int number)
{
	(void)number;
	mprotect(guarded, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE);
	for (unsigned int i = 0; i < records_within; i++)
		publish_record(5000 + i, 24 + 8 * (i % 5));
}

static void interrupted_copy(void)
{
	static uint8_t copy[RING];
	size_t page = (size_t)sysconf(_SC_PAGESIZE), start, length;
	long records;
	bool good = true;

	if (page > RING / 2) {
		tap_skip("a_copy_overtaken_by_any_number_of_records_is_whole", "pages are too big");
		return;
	}
	signal(SIGSEGV, write_within_copy);
	guarded = (uint8_t *)(((uintptr_t)(store + 1) + page) / page * page);
	for (records_within = 0; records_within < 800; records_within++) {
		begin_ring();
		for (uint64_t i = 0; i < 5000; i++)
			publish_record(i, 24 + 8 * (i % 5));
		mprotect(guarded, page, PROT_NONE);
		good = !kb_mapped_snapshot(&mapped, copy, &start, &length);
		records = check_blocks(copy + start, length);
		/* Just overtaken is empty; beyond that there was a second try. */
		good &= records > 100 || (records >= 0 && records_within < 200);
		if (!good) {
			tap_note("%u within: %ld records, %zu bytes", records_within, records, length);
			break;
		}
	}
	signal(SIGSEGV, SIG_DFL);
	tap_ok(good, "a_copy_overtaken_by_any_number_of_records_is_whole");
}

static int writing = 1;

static void *write_on(void *unused)
{
	uint64_t timestamp = 0;

	(void)unused;
	while (__atomic_load_n(&writing, __ATOMIC_RELAXED)) {
		publish_record(timestamp, 24 + 8 * (timestamp % 7));
		timestamp++;
	}
	return NULL;
}

static void running_ring(void)
{
	static uint8_t copy[RING];
	long records, good = 0, torn = 0;
	time_t end = time(NULL) + 100;
	size_t start, length;
	pthread_t thread;

	begin_ring();
	if (pthread_create(&thread, NULL, write_on, NULL))
		abort();
	/* On a busy machine the writer may not even have begun. */
	while (good <= 1000 || (good < 50000 && time(NULL) < end)) {
		if (kb_mapped_snapshot(&mapped, copy, &start, &length) || !length)
			continue;
		records = check_blocks(copy + start, length);
		good += records > 0;
		torn += records < 0;
	}
	__atomic_store_n(&writing, 0, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	if (!tap_ok(!torn, "snapshots_of_a_running_ring_are_never_torn"))
		tap_note("%ld good, %ld torn", good, torn);
}

int main(void)
{
	parts();
	facts_of_tasks();
	tails();
	refusals();
	still_ring();
	interrupted_copy();
	running_ring();
	return tap_done();
}
