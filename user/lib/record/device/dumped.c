// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/io/source.h"
#include "format/barman/reader.h"
#include "format/gzip_whole.h"
#include "format/memory/memory.h"
#include "format/wire.h"
#include "format/zstd.h"
#include "record/device/dumped.h"
#include <uapi/barman_v2.h>
#include <uapi/beacon.h>
#include <uapi/kbarman.h>
#include <uapi/stamp.h>

#define PAGE_MAX	65536U
#define MAP_MAX		((uint64_t)1 << 40)
#define TEXT_MAX	(64U << 20)	/* of symbols */

/* One that is right. */
struct kb_beacon {
	struct kbarman_beacon *its;	/* in this machine's byte order */
	bool swap;
};

/* ---- one beacon ---- */

/* At most. */
static uint64_t part_bytes(const struct kbarman_beacon *beacon)
{
	if (beacon->part == KBARMAN_BEACON_SYMBOLS)
		return sizeof(uint64_t) + KBARMAN_SYMBOLS_MAX + beacon->page_bytes;
	return beacon->part ? beacon->map_bytes - beacon->header_bytes : beacon->header_bytes;
}

static bool fits(const struct kbarman_beacon *beacon)
{
	const uint64_t page = beacon->page_bytes;
	uint64_t pages;

	if (page < KB_MEMORY_PAGE || page > PAGE_MAX || page & (page - 1) || beacon->map_bytes > MAP_MAX ||
	    beacon->header_bytes >= beacon->map_bytes || !beacon->header_bytes || beacon->header_bytes % page ||
	    beacon->map_bytes % page || (beacon->part > UINT32_MAX && beacon->part != KBARMAN_BEACON_SYMBOLS))
		return false;
	pages = part_bytes(beacon) / page;
	return beacon->count && beacon->count <= (page - sizeof(*beacon)) / sizeof(beacon->frames[0]) &&
	       beacon->first < pages && beacon->count <= pages - beacon->first;
}

/* The words from *@from to @end in this machine's byte order. */
static void turn(__u64 *from, const __u64 *end, bool swap)
{
	for (; from < end; from++)
		*from = kb_load64(from, swap);
}

/* The frames behind @head, which is at @physical. Returns as read_beacon(), 1 with *@out to be freed. */
static int read_frames(struct kb_memory *memory, uint64_t physical, const struct kbarman_beacon *head,
		       bool swap, struct kbarman_beacon **out, struct kb_error *err)
{
	const size_t bytes = head->count * sizeof(head->frames[0]);
	struct kbarman_beacon *beacon = malloc(sizeof(*beacon) + bytes);
	int ret;

	if (!beacon)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	*beacon = *head;
	ret = kb_memory_read(memory, physical + sizeof(*beacon), beacon->frames, bytes, err);
	turn(beacon->frames, beacon->frames + beacon->count, swap);
	if (ret == 1 && beacon->sum != kbarman_beacon_sum(beacon))
		ret = 0;
	if (ret == 1)
		*out = beacon;
	else
		free(beacon);
	return ret;
}

/* The page at @physical. Returns 1, 0: it is no beacon, or a negative errno. */
static int read_beacon(struct kb_dumps *dumps, uint64_t physical, struct kb_error *err)
{
	struct kbarman_beacon head = { 0 };
	struct kb_beacon *kept;
	int ret;

	ret = kb_memory_read(dumps->memory, physical, &head, sizeof(head), err);
	if (ret != 1)
		return ret;
	if (!KB_ARRAY_ROOM(dumps->beacons, dumps->max_beacons, dumps->nr_beacons + 1))
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	kept = &dumps->beacons[dumps->nr_beacons];
	kept->swap = head.magic != KBARMAN_BEACON_MAGIC;
	turn(&head.magic, &head.count + 1, kept->swap);
	if (!fits(&head))
		return 0;
	ret = read_frames(dumps->memory, physical, &head, kept->swap, &kept->its, err);
	dumps->nr_beacons += ret == 1;
	return ret;
}

/* ---- one stamp ---- */

static bool ends(const char *text, size_t size)
{
	return memchr(text, '\0', size);
}

/* Whether @words, of which the sums are, may be believed of the end, and @stamp, which has the same in its fields. */
static bool end_is_good(const struct kbarman_stamp *words, const struct kbarman_stamp *stamp)
{
	return words->end_sum == kbarman_stamp_end_sum(words) && stamp->end <= KBARMAN_END_PANIC &&
	       stamp->nr_chain <= KBARMAN_STAMP_CHAIN && ends(stamp->comm, sizeof(stamp->comm)) &&
	       ends(stamp->text, sizeof(stamp->text));
}

/* As read_beacon(). If what the stamp says of the end is damaged, the end is not known. */
static int read_stamp(struct kb_dumps *dumps, uint64_t physical, bool swap, struct kb_error *err)
{
	struct kbarman_stamp stamp, words;
	int ret = kb_memory_read(dumps->memory, physical, &stamp, sizeof(stamp), err);

	if (ret != 1)
		return ret;
	words = stamp;
	turn(&words.magic, words.chain + KBARMAN_STAMP_CHAIN, swap);
	if (dumps->nr_stamps == KB_STAMPS_MAX || words.sum != kbarman_stamp_sum(&words) ||
	    words.address != physical || !words.bytes || words.bytes % KB_MEMORY_PAGE)
		return 0;
	turn(&stamp.magic, &stamp.ticks + 1, swap);
	for (uint32_t *word = &stamp.end; word <= &stamp.nr_chain; word++)
		*word = kb_load32(word, swap);
	turn(stamp.chain, stamp.chain + KBARMAN_STAMP_CHAIN, swap);
	if (!end_is_good(&words, &stamp)) {
		dumps->damaged += !!stamp.end_sum;
		memset(&stamp.end_sum, 0, sizeof(stamp) - offsetof(struct kbarman_stamp, end_sum));
	}
	dumps->stamps[dumps->nr_stamps++] = stamp;
	return 1;
}

static const struct kbarman_stamp *find_stamp(const struct kb_dumps *dumps, uint64_t capture)
{
	for (uint32_t i = 0; i < dumps->nr_stamps; i++)
		if (dumps->stamps[i].capture == capture)
			return &dumps->stamps[i];
	return NULL;
}

/* ---- pages ---- */

/* The frame of page @page of the part whose beacons are @range: 1, 0: no beacon has it. */
static bool find_frame(const struct kb_dumps *dumps, struct kb_beacon_range range, uint64_t page, uint64_t *frame)
{
	while (range.from < range.to) {
		uint32_t middle = range.from + (range.to - range.from) / 2;
		const struct kbarman_beacon *beacon = dumps->beacons[middle].its;

		if (page < beacon->first) {
			range.to = middle;
		} else if (page - beacon->first >= beacon->count) {
			range.from = middle + 1;
		} else {
			*frame = beacon->frames[page - beacon->first];
			return true;
		}
	}
	return false;
}

/* The sizes of the map; the frames are those of a part of the ring. */
static const struct kbarman_beacon *sizes_of(const struct kb_dumped_cpu *cpu)
{
	return cpu->dumps->beacons[cpu->ring.from].its;
}

/* Of the part whose beacons are @range. What the memory lacks is zeros, and sets *@incomplete. */
static int read_part(struct kb_dumps *dumps, struct kb_beacon_range range, uint64_t offset, uint8_t *to, size_t bytes,
		     bool *incomplete, struct kb_error *err)
{
	const uint64_t page_bytes = dumps->beacons[range.from].its->page_bytes;

	while (bytes) {
		const uint64_t in_page = offset % page_bytes;
		const size_t piece = bytes < page_bytes - in_page ? bytes : page_bytes - in_page;
		uint64_t frame;
		int ret = 0;

		if (!find_frame(dumps, range, offset / page_bytes, &frame) || frame > UINT64_MAX / page_bytes)
			memset(to, 0, piece);
		else
			ret = kb_memory_read(dumps->memory, frame * page_bytes + in_page, to, piece, err);
		if (ret < 0)
			return ret;
		*incomplete |= !ret;
		to += piece;
		offset += piece;
		bytes -= piece;
	}
	return 0;
}

/* kb_source_read of a map. */
static int read_map(void *pages, uint64_t offset, void *to, size_t bytes, struct kb_error *err)
{
	struct kb_dumped_cpu *cpu = pages;
	const uint64_t header = sizes_of(cpu)->header_bytes, left = offset < header ? header - offset : 0;
	const size_t first = bytes < left ? bytes : left;
	int ret = read_part(cpu->dumps, cpu->header, offset, to, first, &cpu->incomplete, err);

	return ret ? ret : read_part(cpu->dumps, cpu->ring, offset + first - header, (uint8_t *)to + first,
				     bytes - first, &cpu->incomplete, err);
}

int kb_dumped_open(struct kb_dumped_cpu *cpu, const char *name, struct kb_barman **out, struct kb_error *err)
{
	struct kb_source source;
	int ret = kb_source_open_pages(&source, name, sizes_of(cpu)->map_bytes, read_map, cpu, err);

	*out = NULL;
	return ret ? ret : kb_barman_open_source(out, &source, err);
}

/* @bytes is their number, which fits. Takes *@packed, of so many bytes. */
static int read_symbols(const struct kb_dumped *dumped, uint64_t bytes, uint8_t *packed, uint8_t **text, size_t *size,
			struct kb_error *err)
{
	bool incomplete = false;
	int ret = packed ? read_part(dumped->cpus->dumps, dumped->symbols, sizeof(bytes), packed, bytes, &incomplete, err) :
			   kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");

	if (!ret && incomplete)
		ret = kb_error_set(err, -EBADMSG, KB_NO_OFFSET, "the memory lacks pages of them");
	if (!ret && kb_gzip_unpack(packed, bytes, TEXT_MAX, text, size))
		ret = kb_error_set(err, -EBADMSG, KB_NO_OFFSET, "they are damaged, or have more than %u MiB",
				   TEXT_MAX >> 20);
	free(packed);
	return ret;
}

int kb_dumped_symbols(const struct kb_dumped *dumped, uint8_t **text, size_t *size, struct kb_error *err)
{
	struct kb_dumps *dumps = dumped->cpus->dumps;
	bool incomplete = false;
	uint64_t bytes;
	int ret;

	*text = NULL;
	*size = 0;
	if (dumped->symbols.from == dumped->symbols.to)
		return 0;
	ret = read_part(dumps, dumped->symbols, 0, (uint8_t *)&bytes, sizeof(bytes), &incomplete, err);
	if (ret)
		return ret;
	bytes = kb_load64(&bytes, dumps->beacons[dumped->symbols.from].swap);
	if (incomplete || bytes > KBARMAN_SYMBOLS_MAX)
		return kb_error_set(err, -EBADMSG, KB_NO_OFFSET, "it is not known how many they are");
	return bytes ? read_symbols(dumped, bytes, malloc(bytes), text, size, err) : 0;
}

/* ---- captures ---- */

/* What the tail behind the ring says, if there is one. */
static int read_tail(struct kb_dumped_cpu *cpu, bool swap, struct kb_error *err)
{
	const uint64_t header = sizes_of(cpu)->header_bytes, room = sizes_of(cpu)->map_bytes - header;
	const uint64_t ring = sizeof(struct bm_datastore_header_data);
	struct kbarman_map_tail tail;
	uint64_t length;
	int ret;

	ret = read_map(cpu, header, &length, sizeof(length), err);
	length = kb_load64(&length, swap);
	if (ret || length > room || room - length < ring + sizeof(tail))
		return ret;
	ret = read_map(cpu, header + ring + length, &tail, sizeof(tail), err);
	if (ret || kb_load32(&tail.size, swap) < KBARMAN_MAP_TAIL_SIZE_VER0)
		return ret;
	cpu->session = kb_load64(&tail.session, swap);
	cpu->running = kb_load32(&tail.state, swap) & KBARMAN_STATE_RUNNING;
	return 0;
}

static int by_place(const void *left, const void *right)
{
	const struct kbarman_beacon *a = ((const struct kb_beacon *)left)->its;
	const struct kbarman_beacon *b = ((const struct kb_beacon *)right)->its;
	const uint64_t of_a[] = { a->capture, a->part, a->first }, of_b[] = { b->capture, b->part, b->first };

	for (size_t i = 0; i < ARRAY_SIZE(of_a); i++) {
		if (of_a[i] != of_b[i])
			return of_a[i] < of_b[i] ? -1 : 1;
	}
	return 0;
}

static int by_session(const void *left, const void *right)
{
	const struct kb_dumped *a = left, *b = right;

	return a->session < b->session ? -1 : a->session > b->session;
}

/* Where the beacons end that are of the capture and, if @part, of the part of beacons[@from]. */
static uint32_t end_of(const struct kb_dumps *dumps, uint32_t from, bool part)
{
	const struct kbarman_beacon *first = dumps->beacons[from].its;
	uint32_t to = from;

	while (to < dumps->nr_beacons && dumps->beacons[to].its->capture == first->capture &&
	       (!part || dumps->beacons[to].its->part == first->part))
		to++;
	return to;
}

/* The capture whose beacons are [@from, @to). */
static int add_capture(struct kb_dumps *dumps, uint32_t from, uint32_t to, struct kb_error *err)
{
	struct kb_beacon_range header = { from, from }, symbols = { to, to };
	struct kb_dumped *capture;
	uint32_t end;
	int ret = 0;

	while (symbols.from > from && dumps->beacons[symbols.from - 1].its->part == KBARMAN_BEACON_SYMBOLS)
		to = --symbols.from;
	if (from < to && dumps->beacons[from].its->part == KBARMAN_BEACON_HEADER)
		header.to = from = end_of(dumps, from, true);
	if (from == to)		/* without a ring there is no record */
		return 0;
	if (!KB_ARRAY_ROOM(dumps->captures, dumps->max_captures, dumps->nr_captures + 1))
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	capture = &dumps->captures[dumps->nr_captures];
	*capture = (struct kb_dumped) {
		.cpus = calloc(to - from, sizeof(*capture->cpus)),
		.stamp = find_stamp(dumps, dumps->beacons[from].its->capture),
		.symbols = symbols,
	};
	if (!capture->cpus)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	dumps->nr_captures++;
	for (; from < to && !ret; from = end) {
		struct kb_dumped_cpu *cpu = &capture->cpus[capture->nr_cpus++];

		end = end_of(dumps, from, true);
		*cpu = (struct kb_dumped_cpu) {
			.cpu = (uint32_t)(dumps->beacons[from].its->part - KBARMAN_BEACON_RING(0)),
			.header = header,
			.ring = { from, end },
			.dumps = dumps,
		};
		ret = read_tail(cpu, dumps->beacons[from].swap, err);
		if (!capture->session)
			capture->session = cpu->session;
	}
	return ret;
}

/* Two of one capture have the same sizes. */
static bool agree(const struct kb_beacon *a, const struct kb_beacon *b)
{
	return a->its->header_bytes == b->its->header_bytes && a->its->map_bytes == b->its->map_bytes &&
	       a->its->page_bytes == b->its->page_bytes && a->swap == b->swap;
}

/* Of each beacon one, and none that contradicts the first one of its capture. */
static void keep_those_that_agree(struct kb_dumps *dumps)
{
	struct kb_beacon *kept = dumps->beacons, *first = dumps->beacons;

	for (uint32_t i = 0; i < dumps->nr_beacons; i++) {
		struct kb_beacon *beacon = &dumps->beacons[i];

		if (kept > first && beacon->its->capture != first->its->capture)
			first = kept;
		if (kept > first && (!by_place(beacon, kept - 1) || !agree(beacon, first)))
			free(beacon->its);
		else
			*kept++ = *beacon;
	}
	dumps->nr_beacons = (uint32_t)(kept - dumps->beacons);
}

static int find_captures(struct kb_dumps *dumps, const uint64_t *capture, struct kb_error *err)
{
	uint32_t to;
	int ret = 0;

	if (dumps->nr_beacons)
		qsort(dumps->beacons, dumps->nr_beacons, sizeof(*dumps->beacons), by_place);
	keep_those_that_agree(dumps);
	for (uint32_t from = 0; from < dumps->nr_beacons && !ret; from = to) {
		to = end_of(dumps, from, false);
		if (!capture || dumps->beacons[from].its->capture == *capture)
			ret = add_capture(dumps, from, to, err);
	}
	if (dumps->nr_captures)
		qsort(dumps->captures, dumps->nr_captures, sizeof(*dumps->captures), by_session);
	return ret;
}

void kb_dumps_prepare(void)
{
	kb_zstd();
}

bool kb_dumps_is(const char *path)
{
	return kb_memory_is(path);
}

/* A page that begins as a beacon or a stamp does. As read_beacon(). */
static int read_page(struct kb_dumps *dumps, uint64_t physical, struct kb_error *err)
{
	uint64_t magic;
	int ret = kb_memory_read(dumps->memory, physical, &magic, sizeof(magic), err);

	if (ret == 1 && (magic == KBARMAN_STAMP_MAGIC || kb_load64(&magic, true) == KBARMAN_STAMP_MAGIC))
		return read_stamp(dumps, physical, magic != KBARMAN_STAMP_MAGIC, err);
	return ret == 1 ? read_beacon(dumps, physical, err) : ret;
}

static int find_pages(struct kb_dumps *dumps, struct kb_error *err)
{
	static const uint64_t magics[KB_MEMORY_MAGICS] = { KBARMAN_BEACON_MAGIC, KBARMAN_STAMP_MAGIC };
	uint64_t physical = 0;
	int ret;

	do {
		ret = kb_memory_find(dumps->memory, magics, &physical, err);
		if (ret != 1)
			return ret;
		ret = read_page(dumps, physical, err);
		dumps->damaged += !ret;
		physical += KB_MEMORY_PAGE;
	} while (ret >= 0 && physical);
	return ret < 0 ? ret : 0;
}

/* @capture: the only one that is wanted; NULL: all. */
static int read_dumps(struct kb_dumps **out, struct kb_memory *memory, const uint64_t *capture,
		      struct kb_error *err)
{
	struct kb_dumps *dumps = calloc(1, sizeof(*dumps));
	int ret;

	*out = NULL;
	if (!dumps) {
		kb_memory_close(memory);
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	}
	dumps->memory = memory;
	ret = find_pages(dumps, err);
	if (!ret)
		ret = find_captures(dumps, capture, err);
	if (ret)
		kb_dumps_free(dumps);
	else
		*out = dumps;
	return ret;
}

int kb_dumps_find(struct kb_dumps **out, const char *path, uint64_t base, struct kb_error *err)
{
	struct kb_memory *memory;
	int ret = kb_memory_open(&memory, path, base, err);

	*out = NULL;
	return ret ? ret : read_dumps(out, memory, NULL, err);
}

int kb_dumps_former(struct kb_dumps **out, const struct kbarman_former *former, const char *name, struct kb_error *err)
{
	struct kb_memory *memory;
	uint64_t capture = former->capture;
	int ret = kb_memory_take(&memory, former->fd, name, former->address, former->bytes, err);

	*out = NULL;
	return ret ? ret : read_dumps(out, memory, &capture, err);
}

void kb_dumps_free(struct kb_dumps *dumps)
{
	if (!dumps)
		return;
	for (uint32_t i = 0; i < dumps->nr_captures; i++)
		free(dumps->captures[i].cpus);
	for (uint32_t i = 0; i < dumps->nr_beacons; i++)
		free(dumps->beacons[i].its);
	free(dumps->captures);
	free(dumps->beacons);
	kb_memory_close(dumps->memory);
	free(dumps);
}
