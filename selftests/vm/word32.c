// SPDX-License-Identifier: MIT
/*
 * A program of 32 bits on a 64-bit kernel, from the two headers alone: it reads the tables and records
 * of its map as the magic says. It has no C library, so that none of 32 bits has to be installed.
 */
#include <asm/unistd.h>
#include <stdbool.h>
#include <stddef.h>

#include "uapi/barman_v2.h"
#include "uapi/kbarman.h"

_Static_assert(sizeof(void *) == 4, "gcc -m32");

static const char *map;
static struct kbarman_query query = { .size = sizeof(query) };
static int fd, own, failed, number;
static const char text[] = "a mark of 32 bits", image[] = "/an/image";

/* A mapping that only a program of 64 bits can have. */
#define BASE	0x7f1234567000ULL
#define LENGTH	0x123456000ULL
#define OFFSET	0x987654000ULL

static long call(long nr, long a, long b, long c)
{
	long result;

	__asm__ volatile("int $0x80" : "=a"(result) : "a"(nr), "b"(a), "c"(b), "d"(c) : "memory");
	return result;
}

#define CALL(request, argument)	call(__NR_ioctl, fd, (request), (long)(argument))

/* mmap(2) takes its arguments from memory, and an offset of 32 bits: enough for the first 16 CPUs. */
static const void *map_cpu(unsigned int cpu)
{
	const unsigned long arguments[] = {
		0, (unsigned long)query.map_bytes, 1 /* PROT_READ */, 1 /* MAP_SHARED */, (unsigned long)fd,
		(unsigned long)(cpu * query.map_stride),
	};
	const unsigned long result = (unsigned long)call(__NR_mmap, (long)arguments, 0, 0);

	return result > -4096UL ? NULL : (const void *)result;
}

static size_t length_of(const char *s)
{
	size_t n = 0;

	while (s[n])
		n++;
	return n;
}

static bool same(const char *a, const char *b, size_t length)
{
	while (length && *a == *b)
		a++, b++, length--;
	return !length;
}

static void say(const char *s)
{
	call(__NR_write, 1, (long)s, (long)length_of(s));
}

static void tell(bool good, const char *promise)
{
	char digit[2] = { (char)('1' + number++) };

	say(good ? "ok " : "not ok ");
	say(digit);
	say(" - ");
	say(promise);
	say("\n");
	failed |= !good;
}

/* ---- where the parts of the header are */

static const struct bm_protocol_header_start *header(void)
{
	return (const void *)map;
}

static const struct bm64_protocol_header_pmu_settings *pmus(void)
{
	return (const void *)(map + sizeof(*header()) +
			      header()->config_constants.max_string_table_length);
}

static const __u32 *nr_tasks(void)
{
	return (const void *)(pmus() + header()->config_constants.max_cores);
}

static const __u32 *nr_maps(void)
{
	const struct bm_protocol_header_task_info *tasks = (const void *)(nr_tasks() + 1);

	return (const void *)(tasks + header()->config_constants.max_task_infos);
}

static const char *string(__u32 at)
{
	return map + sizeof(*header()) + at;
}

/* A capture of 64 bits, whose parts are as long as its header says. */
static bool header_is_whole(void)
{
	return header()->magic_bytes == BM64_PROTOCOL_MAGIC_BYTES &&
	       header()->protocol_version == BM_PROTOCOL_VERSION &&
	       header()->header_length == query.header_bytes + sizeof(struct bm_datastore_header_data);
}

static bool has_own_name(void)
{
	const struct bm_protocol_header_task_info *row = (const void *)(nr_tasks() + 1);

	for (__u32 i = 0; i < *nr_tasks(); i++)
		if (row[i].task_id == (__u32)own && same(string(row[i].task_name_ptr), "word32", 7))
			return true;
	return false;
}

static bool has_mapping(void)
{
	const struct bm64_protocol_header_mmap_layout *row = (const void *)(nr_maps() + 1);

	for (__u32 i = 0; i < *nr_maps(); i++)
		if (row[i].task_id == (__u32)own && row[i].base_address == BASE)
			return row[i].length == LENGTH && row[i].image_offset == OFFSET &&
			       same(string(row[i].image_ptr), image, sizeof(image));
	return false;
}

/* ---- the records of all CPUs */

static struct {
	unsigned int cpus, switches, marks;
	bool whole;
} seen = { .whole = true };

static void see(const void *record, __u64 length)
{
	const struct bm_protocol_record_header *head = record;
	const struct bm64_protocol_annotation *mark = record;

	if (head->record_type == BM_RECORD_TASK_SWITCH)
		seen.switches += ((const struct bm_protocol_task_switch *)record)->task_id == (__u32)own;
	if (head->record_type == BM_RECORD_ANNOTATION && mark->task_id == (__u32)own)
		seen.marks += length >= sizeof(*mark) + sizeof(text) && mark->data_length == sizeof(text) &&
			      same((const char *)mark->data, text, sizeof(text));
}

static void walk(void)
{
	const struct bm_datastore_header_data *store = (const void *)(map + query.header_bytes);
	const char *ring = (const char *)(store + 1);
	__u64 at = store->read_offset, before = 0;

	seen.cpus++;
	while (at < store->write_offset) {
		const __u64 *word = (const void *)(ring + (at & (store->buffer_length - 1)));
		__u64 length = *word & ~BM64_BLOCK_PADDING;
		const struct bm_protocol_record_header *head = (const void *)(word + 1);

		if (!(*word & BM64_BLOCK_PADDING)) {
			seen.whole &= length >= sizeof(*head) && head->timestamp >= before;
			before = head->timestamp;
			see(head, length);
		}
		at += sizeof(*word) + length;
	}
	seen.whole &= at == store->write_offset && store->total_written == at;
}

/* Sleep for a little, which switches to another task, a hundred times. */
static void sleep_often(void)
{
	struct { __u32 seconds, ns; } ms = { 0, 1000000 };

	for (int i = 0; i < 100; i++)
		call(__NR_nanosleep, (long)&ms, 0, 0);
}

static void write_mark(void)
{
	static struct {
		struct kbarman_mark head;
		char text[sizeof(text)];
	} mark;
	int marks = (int)call(__NR_open, (long)KBARMAN_DEVICE, 01 /* O_WRONLY */, 0);

	mark.head = (struct kbarman_mark) {
		.size = sizeof(mark.head), .type = KBARMAN_MARK_BOOKMARK, .text_bytes = sizeof(text) - 1,
	};
	for (size_t i = 0; i < sizeof(text); i++)
		mark.text[i] = text[i];
	call(__NR_write, marks, (long)&mark, sizeof(mark.head) + sizeof(text) - 1);
	call(__NR_close, marks, 0, 0);
}

static bool add_mapping(void)
{
	static struct kbarman_map_row row = {
		.image_length = sizeof(image) - 1, .base_address = BASE, .length = LENGTH, .image_offset = OFFSET,
	};
	static struct kbarman_add_maps add = { .size = sizeof(add), .count = 1, .row_bytes = sizeof(row) };

	row.task_id = (__u32)own;
	row.image_ptr = (unsigned long)image;
	add.rows_ptr = (unsigned long)&row;
	return !CALL(KBARMAN_ADD_MAPS, &add);
}

static void record_and_read(void)
{
	static struct kbarman_configure configure = {
		.size = sizeof(configure), .mode = KBARMAN_MODE_OVERWRITE,
		.sources = KBARMAN_SOURCE_SCHED | KBARMAN_SOURCE_IDLE | KBARMAN_SOURCE_MAPS | KBARMAN_SOURCE_MARKS,
	};
	static struct kbarman_start start = { .size = sizeof(start) };

	tell(fd >= 0 && !CALL(KBARMAN_CONFIGURE, &configure) && !CALL(KBARMAN_QUERY, &query) &&
	     !CALL(KBARMAN_START, &start), "a_session_of_a_64_bit_kernel_is_recorded");
	tell(add_mapping(), "a_mapping_is_added");
	sleep_often();
	write_mark();
	tell(!CALL(KBARMAN_STOP, 0), "it_is_stopped");
	for (unsigned int cpu = 0; cpu < query.nr_cpus && cpu < 16; cpu++) {
		map = map_cpu(cpu);
		if (map)
			walk();
	}
	map = map_cpu(0);
	tell(map && header_is_whole(), "the_header_is_as_long_as_its_64_bit_parts");
	tell(map && has_own_name(), "the_name_of_a_task_is_found_behind_the_pmu_rows");
	tell(map && has_mapping(), "the_mapping_is_found");
	tell(seen.cpus && seen.whole, "every_block_of_a_ring_is_found");
	tell(seen.switches, "switches_to_a_task_are_found");
	tell(seen.marks == 1, "the_text_of_a_mark_is_found");
}

/* The module is loaded unless another test program has loaded it. */
static int open_device(void)
{
	const long module = call(__NR_open, (long)"kbarman.ko", 0 /* O_RDONLY */, 0);

	call(__NR_finit_module, module, (long)"", 0);
	call(__NR_close, module, 0, 0);
	return (int)call(__NR_open, (long)KBARMAN_DEVICE, 02 /* O_RDWR */, 0);
}

__attribute__((force_align_arg_pointer)) void _start(void)
{
	say("TAP version 13\n1..9\n");
	own = (int)call(__NR_getpid, 0, 0, 0);
	fd = open_device();
	record_and_read();
	call(__NR_exit, failed, 0, 0);
}
