// SPDX-License-Identifier: MIT
/*
 * Captures that are cut, bent, or lie: the reader survives all of them in bounded
 * time and memory, and gives what is whole in front of the damage.
 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "barman_image.h"
#include "barman_random.h"
#include "../lib/tap.h"

static struct random_capture capture;

struct golden {
	uint8_t *data;
	size_t length;
	uint64_t buffer_start;
	uint64_t ends[RANDOM_EVENTS];	/* where each record's block ends, in file order */
	uint64_t checksums[RANDOM_EVENTS];
	unsigned int nr;
};

/* A small capture with every kind of table and record. */
static bool make_golden(struct golden *g, unsigned int word, bool big, bool circular)
{
	int fd = memfd_create("golden", 0);
	struct kb_barman_writer *w;
	struct kb_barman *barman;
	struct kb_event event;
	struct kb_error err;
	bool good = true;

	memset(g, 0, sizeof(*g));
	do {
		random_capture(&capture, word, big, circular);
	} while (!capture.nr_tasks || !capture.nr_maps || !capture.nr_series ||
		 !capture.extended || capture.nr_events < 40 || capture.layout.max_cores > 3);
	capture.nr_events = 40;
	capture.layout.max_string_table_length = 2000;
	if (circular)
		capture.layout.buffer_length = 1500 + word;
	if (kb_barman_writer_create(&w, fd, &capture.layout, &err))
		return false;
	kb_barman_writer_set_header(w, &capture.header);
	kb_barman_writer_fact(w, "ext", "1");
	if (capture.wide_states)
		kb_barman_writer_fact(w, "states", "I402,D2,S1");
	for (uint32_t i = 0; i < capture.layout.max_cores; i++)
		kb_barman_writer_pmu(w, i, &capture.pmus[i]);
	for (uint32_t i = 0; i < capture.nr_tasks && i < 3; i++)
		kb_barman_writer_task(w, &capture.tasks[i]);
	for (uint32_t i = 0; i < capture.nr_maps && i < 3; i++)
		kb_barman_writer_map(w, &capture.maps[i]);
	for (uint32_t i = 0; i < capture.nr_charts; i++)
		kb_barman_writer_chart(w, &capture.charts[i]);
	for (uint32_t i = 0; i < capture.nr_series; i++)
		kb_barman_writer_series(w, &capture.series[i]);
	for (uint32_t i = 0; i < capture.nr_events; i++)
		good &= !kb_barman_writer_event(w, &capture.events[i]);
	good &= !kb_barman_writer_finish(w, true, &err);
	kb_barman_writer_destroy(w);
	g->length = lseek(fd, 0, SEEK_END);
	g->data = malloc(g->length);
	good &= pread(fd, g->data, g->length, 0) == (ssize_t)g->length;
	close(fd);

	if (!good || kb_barman_open_memory(&barman, g->data, g->length, &err))
		return false;
	g->buffer_start = kb_barman_header(barman)->buffer_start;
	while (kb_barman_next(barman, &event, NULL) == 1) {
		uint64_t length = 0;
		const uint8_t *at = g->data + event.offset - word;

		for (unsigned int i = 0; i < word; i++)
			length |= (uint64_t)at[big ? word - 1 - i : i] << 8 * i;
		g->ends[g->nr] = event.offset + length;
		g->checksums[g->nr++] = kb_event_checksum(&event);
	}
	good = !kb_barman_damage(barman, NULL);
	kb_barman_close(barman);
	return good;
}

/*
 * Read @data both ways. Returns how many records came, -1 if it could not be opened,
 * -2 if the two ways disagree, -3 if there were more than there can be. With @g the
 * records must begin as its do: *@same is how many did.
 */
static int64_t survive(const uint8_t *data, size_t length, const struct golden *g,
		       unsigned int *same)
{
	struct kb_validation sum;
	struct kb_barman *barman;
	struct kb_event event;
	struct kb_error err;
	uint64_t checksum = 0;
	int64_t n = 0;
	int ret;

	if (same)
		*same = 0;
	ret = kb_barman_open_memory(&barman, data, length, &err);
	if (ret)
		return err.text[0] && err.code == ret ? -1 : -2;
	kb_barman_set_counters(barman, KB_COUNTERS_DELTA);
	while ((ret = kb_barman_next(barman, &event, &err)) == 1) {
		uint64_t sum_one = kb_event_checksum(&event);

		if (same && *same == n && n < g->nr && g->checksums[n] == sum_one)
			++*same;
		checksum += sum_one;
		n++;
		kb_barman_ns(barman, event.timestamp);
		if ((uint64_t)n * 16 > length)
			break;
	}
	if (ret == 1) {
		n = -3;
	} else if (ret < 0 && (!err.text[0] || !kb_barman_damage(barman, NULL))) {
		n = -2;
	} else {
		kb_barman_validate(barman, &sum, NULL);
		if (sum.records != (uint64_t)n || sum.checksum != checksum)
			n = -2;
	}
	kb_barman_fact(barman, "ext");
	kb_barman_close(barman);
	return n;
}

static const char *named(unsigned int word, bool big, bool circular, const char *name)
{
	static char text[96];

	snprintf(text, sizeof(text), "%s_%u_%s_%s", name, word * 8, big ? "big" : "little",
		 circular ? "circular" : "linear");
	return text;
}

/*
 * Cut behind every byte: all records that are whole come. In a ring the file's
 * order is not that of time, but what is there still comes.
 */
static void cut_anywhere(const struct golden *g, unsigned int word, bool big, bool circular)
{
	bool good = true;

	for (size_t length = 0; good && length < g->length; length++) {
		/* A copy of exactly that size, so that a sanitizer sees each byte too far. */
		uint8_t *copy = malloc(length ? length : 1);
		unsigned int whole = 0, same;
		int64_t n;

		memcpy(copy, g->data, length);
		for (unsigned int i = 0; i < g->nr; i++)
			whole += g->ends[i] <= length;
		n = survive(copy, length, g, &same);
		/* base_pointer, at the end of the header, is not missed. */
		if (length < g->buffer_start - 8)
			good = n == -1;
		else if (length < g->buffer_start)
			good = n <= 0;
		else if (circular)
			good = n == whole;
		else
			good = n == whole && same == whole;
		if (!good)
			tap_note("cut at %zu of %zu: %" PRId64 " records, want %u", length,
				 g->length, n, whole);
		free(copy);
	}
	tap_ok(good, named(word, big, circular, "cut_anywhere_gives_what_is_whole"));
}

/* Every byte bent in turn: what stands before it comes as it was. */
static void bend_anything(struct golden *g, unsigned int word, bool big, bool circular)
{
	static const uint8_t masks[] = { 0xff, 0x01, 0x80, 0x10 };
	bool good = true;

	for (size_t at = 0; good && at < g->length; at++) {
		for (size_t m = 0; good && m < sizeof(masks); m++) {
			unsigned int before = 0, same;
			int64_t n;

			g->data[at] ^= masks[m];
			n = survive(g->data, g->length, g, &same);
			g->data[at] ^= masks[m];
			while (before < g->nr && g->ends[before] <= at)
				before++;
			good = n >= -1;
			if (at >= g->buffer_start && !circular)
				good = n >= 0 && same >= before;
			if (!good)
				tap_note("byte %zu of %zu ^ 0x%02x: %" PRId64 " records, %u of %u "
					 "as they were", at, g->length, masks[m], n, same, before);
		}
	}
	tap_ok(good, named(word, big, circular, "bent_bytes_are_survived"));
}

/* Random rubbish behind a good header, and all over. */
static void rubbish(struct golden *g, unsigned int word, bool big, bool circular)
{
	uint8_t *copy = malloc(g->length);
	bool good = true;

	for (int i = 0; good && i < 2000; i++) {
		size_t from = i & 1 ? g->buffer_start : 8;
		unsigned int holes = random_below(20);

		memcpy(copy, g->data, g->length);
		if (i & 2) {
			for (size_t at = from; at < g->length; at++)
				copy[at] = random_u64();
		} else {
			while (holes--)
				copy[from + random_below(g->length - from)] = random_u64();
		}
		good = survive(copy, g->length, NULL, NULL) >= -1;
	}
	free(copy);
	tap_ok(good, named(word, big, circular, "rubbish_is_survived"));
}

struct lie {
	const char *name;
	int at;				/* >= 0: in the header; else see below */
	unsigned int size;
	uint64_t value;
	int64_t want;			/* records; -1: an error of open, -9: anything goes */
};

enum { AT_STORE = -8, AT_BUFFER_LENGTH = -8, AT_WRITE = -7, AT_READ = -6, AT_TOTAL = -5,
       AT_FIRST_LENGTH = -4, AT_SECOND_LENGTH = -3 };

static const struct lie lies[] = {
	{ "header_length_0", 12, 4, 0, -1 },
	{ "header_length_7", 12, 4, 7, -1 },
	{ "header_length_huge", 12, 4, 0xffffffff, 0 },
	{ "target_name_outside", 20, 4, 0xffffffff, 3 },
	{ "cores_huge", 36, 4, 0xffffffff, -1 },
	{ "cores_65536", 36, 4, 65536, -1 },
	{ "no_cores", 36, 4, 0, -9 },
	{ "tasks_huge", 40, 4, 0xffffffff, -1 },
	{ "maps_huge", 44, 4, 0xffffffff, -1 },
	{ "pmu_counters_huge", 48, 4, 0xffffffff, -1 },
	{ "pmu_counters_65536", 48, 4, 65536, -1 },
	{ "strings_huge", 52, 4, 0xffffffff, -1 },
	{ "series_huge", 56, 4, 0xffffffff, -1 },
	{ "series_65536", 56, 4, 65536, -1 },
	{ "no_series", 56, 4, 0, -9 },
	{ "divisor_0", 76, 8, 0, 3 },
	{ "strings_in_use_huge", 92, 4, 0xffffffff, 3 },
	{ "strings_in_use_0", 92, 4, 0, 3 },
	{ "buffer_of_0_bytes", AT_BUFFER_LENGTH, 8, 0, 0 },
	{ "buffer_of_all_bytes", AT_BUFFER_LENGTH, 8, UINT64_MAX, 3 },
	{ "write_offset_far_away", AT_WRITE, 8, UINT64_MAX, 3 },
	{ "write_offset_inside_a_block", AT_WRITE, 8, 20, 0 },
	{ "read_offset_far_away", AT_READ, 8, UINT64_MAX, 0 },
	{ "read_offset_inside_a_block", AT_READ, 8, 3, -9 },
	{ "total_written_0", AT_TOTAL, 8, 0, 3 },
	{ "block_of_0_bytes", AT_FIRST_LENGTH, 0, 0, -9 },
	{ "block_that_wraps", AT_FIRST_LENGTH, 0, INT64_MAX, 0 },
	{ "padding_that_wraps", AT_FIRST_LENGTH, 0, UINT64_MAX, 0 },
	{ "second_block_that_wraps", AT_SECOND_LENGTH, 0, INT64_MAX, 1 },
	{ "second_block_one_too_long", AT_SECOND_LENGTH, 0, 57, 1 },
};

/* Three switches behind a header of which one field lies. */
static void headers_lie(unsigned int word, bool big)
{
	static const struct image_header usual = {
		.version = 2, .store_type = 1, .cores = 2, .tasks = 4, .tasks_used = 3, .maps = 3,
		.maps_used = 2, .pmu_counters = 6, .counters_used = 2, .charts = 2, .series = 3,
		.strings = "a\0b\0c\0d\0e\0f\0g", .strings_used = 14, .strings_max = 16,
		.multiplier = 1, .divisor = 1,
	};

	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		const struct lie *lie = &lies[i];
		struct image im = { .word = word, .big = big };
		size_t at = lie->at;
		int64_t n;

		image_header(&im, &usual);
		for (int k = 1; k < 4; k++)
			image_switch(&im, 0, k, 5, 0);
		image_linear(&im);
		if (lie->at < AT_FIRST_LENGTH)
			at = im.store_at + 8 * (lie->at - AT_STORE);
		else if (lie->at < 0)
			at = im.buffer_at + (lie->at - AT_FIRST_LENGTH) * (word + 24);
		image_set(&im, at, word == 4 && lie->value == INT64_MAX ? INT32_MAX : lie->value,
			  lie->size ? lie->size : word);
		n = survive(im.data, im.length, NULL, NULL);
		if (!tap_ok(lie->want == -9 ? n >= -1 : n == lie->want,
			    named(word, big, false, lie->name)))
			tap_note("%" PRId64 " records, want %" PRId64, n, lie->want);
		image_free(&im);
	}
}

/* A table in use can't be longer than the table; a file is as long as it is. */
static void counts_are_cut_to_their_tables(unsigned int word, bool big)
{
	static const struct image_header lying = {
		.version = 2, .store_type = 1, .cores = 2, .tasks = 4, .tasks_used = 1000000,
		.maps = 3, .maps_used = 0xffffffff, .pmu_counters = 2, .counters_used = 2,
		.strings = "a\0b\0c\0d\0e\0f\0g", .strings_used = 14, .strings_max = 16,
		.multiplier = 1, .divisor = 1,
	};
	struct image im = { .word = word, .big = big };
	struct kb_barman *barman = NULL;
	struct kb_error err;
	bool good;

	image_header(&im, &lying);
	image_linear(&im);
	good = !kb_barman_open_memory(&barman, im.data, im.length, &err) &&
	       kb_barman_header(barman)->nr_tasks == 4 && kb_barman_header(barman)->nr_maps == 3 &&
	       kb_barman_damage(barman, NULL) == 2;
	tap_ok(good, named(word, big, false, "counts_are_cut_to_their_tables"));
	kb_barman_close(barman);
	image_free(&im);
}

/* Records whose own counts lie; a good one in front and one behind. */
static void records_lie(unsigned int word, bool big)
{
	static const struct image_header header = {
		.version = 2, .store_type = 1, .cores = 2, .tasks = 4, .pmu_counters = 6,
		.counters_used = 2, .charts = 1, .series = 2, .multiplier = 1, .divisor = 1,
		.strings = "a\0b\0c\0kbarman.ext=1", .strings_used = 20, .strings_max = 20,
	};
	static const char *const names[] = {
		"custom_values_huge", "custom_values_more_than_series", "custom_value_of_no_series",
		"annotation_longer_than_its_block", "chain_longer_than_its_block",
		"more_kernel_addresses_than_addresses", "core_of_no_cores",
		"counter_of_no_series", "record_of_8_bytes",
	};

	for (unsigned int what = 0; what < sizeof(names) / sizeof(names[0]); what++) {
		struct image im = { .word = word, .big = big };
		bool chain = what == 4 || what == 5;
		size_t start;
		int64_t n;

		image_header(&im, &header);
		image_switch(&im, 0, 1, 5, 0);
		start = image_begin(&im);
		if (what == 8)
			image_u64(&im, 2);
		else
			image_record(&im, what == 3 ? 5 : what == 7 ? 4 : what == 6 ? 6 : 2,
				     what == 6 ? 2 : 1, 2);
		if (what < 3 || chain) {
			image_u32(&im, 5);
			image_u32(&im, what == 0 ? 0xffffffff : what == 1 ? 3 : what == 2 ? 1 : 0);
			image_word(&im, 0x1000);
			image_u64(&im, 1);
			image_u64(&im, 2);
			for (int i = 0; what < 3 && i < 3; i++) {
				image_u32(&im, 2);
				image_u64(&im, 7);
			}
			if (chain) {
				image_u32(&im, what == 4 ? 0xffffffff : 1);
				image_u32(&im, what == 4 ? 0 : 2);
				image_word(&im, 0x2000);
			}
		} else if (what == 3) {
			image_u32(&im, 5);
			image_word(&im, word == 8 ? UINT64_MAX : UINT32_MAX);
			for (int i = 0; i < 16; i++)
				image_u8(&im, 'x');
		} else if (what == 7) {
			image_u32(&im, 5);
			image_u32(&im, 2);
			image_u64(&im, 1);
		} else if (what == 6) {
			image_u64(&im, 1);
		}
		image_end(&im, start);
		image_switch(&im, 0, 3, 5, 0);
		image_linear(&im);
		n = survive(im.data, im.length, NULL, NULL);
		/* A sample is good without its chain. */
		if (!tap_ok(n == (chain ? 3 : 2), named(word, big, false, names[what])))
			tap_note("%" PRId64 " records", n);
		image_free(&im);
	}
}

/* What validation makes of a switch with two addresses, that says it has @nr. */
static struct kb_validation validate_chain(unsigned int word, bool big, uint32_t nr,
					   uint32_t nr_kernel, uint64_t address,
					   uint64_t *checksum, bool *damaged)
{
	static const struct image_header header = {
		.version = 2, .store_type = 1, .cores = 2, .tasks = 4, .multiplier = 1,
		.divisor = 1, .strings = "kbarman.ext=1", .strings_used = 14, .strings_max = 16,
	};
	struct image im = { .word = word, .big = big };
	struct kb_validation sum = { 0 };
	const struct kb_error *first;
	struct kb_barman *barman;
	struct kb_event event;
	struct kb_error err;
	size_t start;

	image_header(&im, &header);
	start = image_begin(&im);
	image_record(&im, 3, 1, 2);
	image_u32(&im, 5);
	image_u32(&im, 0);
	image_u32(&im, nr);
	image_u32(&im, nr_kernel);
	image_word(&im, 0x1000);
	image_word(&im, address);
	image_end(&im, start);
	image_linear(&im);
	*checksum = 0;
	if (kb_barman_open_memory(&barman, im.data, im.length, &err) == 0) {
		if (kb_barman_next(barman, &event, &err) == 1)
			*checksum = kb_event_checksum(&event);
		kb_barman_close(barman);
	}
	*damaged = false;
	if (kb_barman_open_memory(&barman, im.data, im.length, &err) == 0) {
		kb_barman_validate(barman, &sum, &err);
		*damaged = kb_barman_damage(barman, &first);
		kb_barman_close(barman);
	}
	image_free(&im);
	return sum;
}

static void chains_of_switches(unsigned int word, bool big)
{
	uint64_t events[3];
	bool damaged[4];
	struct kb_validation one = validate_chain(word, big, 2, 1, 0x2000, &events[0], &damaged[0]);
	struct kb_validation two = validate_chain(word, big, 2, 1, 0x2001, &events[1], &damaged[1]);
	struct kb_validation three = validate_chain(word, big, 2, 2, 0x2000, &events[2],
						    &damaged[2]);

	tap_ok(one.checksum != two.checksum && one.checksum != three.checksum &&
	       one.checksum == events[0] && two.checksum == events[1] &&
	       three.checksum == events[2],
	       named(word, big, false, "chains_of_switches_are_in_the_checksum"));
	one = validate_chain(word, big, UINT32_MAX, 0, 0x2000, events, &damaged[3]);
	tap_ok(!damaged[0] && !damaged[1] && !damaged[2] && damaged[3] && one.records == 1,
	       named(word, big, false, "a_switch_with_too_long_a_chain_is_found"));
}

/* A capture of no CPUs has no fast record: nothing is read behind its last word, where memory ends. */
static void nothing_is_read_behind_the_end(unsigned int word, bool big)
{
	static const struct image_header header = {
		.version = 2, .store_type = 1, .tasks = 1, .multiplier = 1, .divisor = 1,
		.strings = "a", .strings_used = 2, .strings_max = 4,
	};
	size_t room = 1U << 20;
	uint8_t *memory = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct image im = { .word = word, .big = big };
	struct kb_validation sum = { 0 };
	struct kb_barman *barman;
	struct kb_error err;
	uint8_t *at;

	image_header(&im, &header);
	image_word(&im, 0);
	image_linear(&im);
	at = memory + room / 2 - im.length;
	memcpy(at, im.data, im.length);
	mprotect(memory + room / 2, room / 2, PROT_NONE);
	if (!kb_barman_open_memory(&barman, at, im.length, &err)) {
		kb_barman_validate(barman, &sum, NULL);
		kb_barman_close(barman);
	}
	tap_is(sum.records, 0, named(word, big, false, "nothing_is_read_behind_the_end"));
	munmap(memory, room);
	image_free(&im);
}

/* A file of a terabyte that consists of holes and claims. */
static void holes_cost_nothing(void)
{
	static const struct image_header header = {
		.version = 2, .store_type = 1, .cores = 1, .tasks = 1, .multiplier = 1,
		.divisor = 1, .strings = "a", .strings_used = 2, .strings_max = 4,
	};
	int fd = memfd_create("holes", 0);
	struct image im = { .word = 8 };
	struct kb_barman *barman;
	struct kb_error err;
	struct rusage usage;
	char path[32];
	int ret;

	image_header(&im, &header);
	/* One padding block that fills all of it. */
	image_word(&im, (UINT64_C(1) << 40) | UINT64_C(1) << 63);
	image_store(&im, (UINT64_C(1) << 40) + 8, (UINT64_C(1) << 40) + 8, 0, 8);
	if (pwrite(fd, im.data, im.length, 0) != (ssize_t)im.length ||
	    ftruncate(fd, im.buffer_at + (UINT64_C(1) << 40) + 8)) {
		tap_skip("holes_cost_nothing", "no sparse file of a terabyte here");
	} else {
		struct kb_event event;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		ret = kb_barman_open(&barman, path, &err);
		if (!ret) {
			ret = kb_barman_next(barman, &event, &err);
			kb_barman_close(barman);
		}
		tap_is(ret, 0, "holes_cost_nothing");
	}
	image_free(&im);
	close(fd);
	getrusage(RUSAGE_SELF, &usage);
#ifdef __SANITIZE_ADDRESS__
	tap_skip("memory_stays_below_64_mib", "the address sanitizer takes more");
#else
	if (!tap_ok(usage.ru_maxrss < 64 << 10, "memory_stays_below_64_mib"))
		tap_note("%ld KiB", usage.ru_maxrss);
#endif
}

int main(void)
{
	random_start();
	for (unsigned int word = 4; word <= 8; word += 4) {
		for (int big = 0; big < 2; big++) {
			for (int circular = 0; circular < 2; circular++) {
				struct golden g;

				if (!tap_ok(make_golden(&g, word, big, circular),
					    named(word, big, circular, "golden_capture")))
					continue;
				cut_anywhere(&g, word, big, circular);
				bend_anything(&g, word, big, circular);
				rubbish(&g, word, big, circular);
				free(g.data);
			}
			headers_lie(word, big);
			counts_are_cut_to_their_tables(word, big);
			records_lie(word, big);
			chains_of_switches(word, big);
			nothing_is_read_behind_the_end(word, big);
		}
	}
	holes_cost_nothing();
	return tap_done();
}
