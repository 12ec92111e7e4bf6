// SPDX-License-Identifier: MIT
/*
 * What the reader makes of numbers: ticks become nanoseconds, exactly, and counters
 * that run on become deltas.
 */
#include <kbarman/barman.h>

#include "barman_image.h"
#include "../lib/random.h"
#include "../lib/tap.h"

static const struct image_header usual = {
	.version = 2, .store_type = 1, .cores = 2, .tasks = 4, .pmu_counters = 6,
	.counters_used = 2, .charts = 1, .series = 1, .strings = "a\0b\0c", .strings_used = 6,
	.strings_max = 8, .multiplier = 1, .divisor = 1,
};

static struct kb_barman *open_image(const struct image *im)
{
	struct kb_barman *barman;
	struct kb_error err;

	if (kb_barman_open_memory(&barman, im->data, im->length, &err)) {
		tap_note("%s", err.text);
		return NULL;
	}
	return barman;
}

static void nanoseconds_of(uint64_t base, uint64_t multiplier, uint64_t divisor, uint64_t timestamp,
			   int64_t want, const char *name)
{
	struct image im = { .word = 8 };
	struct image_header h = usual;
	struct kb_barman *barman;

	h.base = base;
	h.multiplier = multiplier;
	h.divisor = divisor;
	image_header(&im, &h);
	image_linear(&im);
	barman = open_image(&im);
	tap_is(barman ? kb_barman_ns(barman, timestamp) : -1, want, name);
	kb_barman_close(barman);
	image_free(&im);
}

static void nanoseconds(void)
{
	nanoseconds_of(1000, 1, 1, 1500, 500, "ns_of_a_clock_in_ns");
	nanoseconds_of(1000, 1000, 1, 1500, 500000, "ns_of_a_clock_in_us");
	nanoseconds_of(0, 1000000000, 24000000, 24000000, 1000000000, "ns_of_24_mhz");
	nanoseconds_of(0, 1000000000, 3, UINT64_C(1) << 40, 0x7fffffffffffffff,
		       "ns_saturate_above");
	nanoseconds_of(0, 1000000000, 2400000000, UINT64_C(3600) * 24 * 365 * 2400000000,
		       INT64_C(3600) * 24 * 365 * 1000000000, "ns_after_a_year_do_not_overflow");
	nanoseconds_of(1000, 1, 3, 999, -1, "ns_below_the_base_round_down");
	nanoseconds_of(1000, 1, 3, 997, -1, "ns_below_the_base_exact");
	nanoseconds_of(1000, 1, 3, 996, -2, "ns_below_the_base_round_down_more");
	nanoseconds_of(UINT64_MAX, 1000, 1, 0, INT64_MIN, "ns_saturate_below");
	nanoseconds_of(0, 1, 0, 5, 5, "ns_with_divisor_0");
	nanoseconds_of(0, 0, 7, 5, 0, "ns_with_multiplier_0");
	nanoseconds_of(0, UINT64_MAX, UINT64_MAX, 12345, 12345, "ns_of_a_huge_fraction");
	nanoseconds_of(0, UINT64_MAX - 1, UINT64_MAX, 12345, 12344, "ns_of_a_huge_odd_fraction");
}

/* Any clock, any time, against arithmetic of 128 bits. */
static void nanoseconds_are_exact(void)
{
#ifdef __SIZEOF_INT128__
	bool good = true;

	for (int clock = 0; good && clock < 300; clock++) {
		struct image im = { .word = 8 };
		struct image_header h = usual;
		struct kb_barman *barman;

		h.base = random_magnitude();
		h.multiplier = random_magnitude();
		h.divisor = random_magnitude() | 1;
		image_header(&im, &h);
		image_linear(&im);
		barman = open_image(&im);
		good = barman != NULL;
		for (int i = 0; good && i < 1000; i++) {
			uint64_t t = i & 1 ? random_u64() : h.base + random_magnitude();
			bool below = t < h.base;
			unsigned __int128 p = (unsigned __int128)(below ? h.base - t : t - h.base) *
					      h.multiplier;
			unsigned __int128 q = p / h.divisor;
			int64_t want;

			if (below)
				q += p % h.divisor != 0;
			if (q > INT64_MAX)
				want = below ? INT64_MIN : INT64_MAX;
			else
				want = below ? -(int64_t)q : (int64_t)q;
			good = kb_barman_ns(barman, t) == want;
			if (!good)
				tap_note("(%" PRIu64 " - %" PRIu64 ") * %" PRIu64 " / %" PRIu64
					 ": got %" PRId64 ", want %" PRId64, t, h.base,
					 h.multiplier, h.divisor, kb_barman_ns(barman, t), want);
		}
		kb_barman_close(barman);
		image_free(&im);
	}
	tap_ok(good, "nanoseconds_are_exact_for_any_clock");
#else
	tap_skip("nanoseconds_are_exact_for_any_clock", "no 128 bits on this machine");
#endif
}

/* Cumulative counters, told and found out. */
static void counters_become_deltas(void)
{
	static const struct {
		enum kb_counters how;
		uint64_t values[12], second, ninth;
		const char *name;
	} rows[] = {
		{ KB_COUNTERS_AUTO, { 100, 110, 125, 130, 150, 151, 160, 170, 190, 200, 210, 220 },
		  10, 20, "rising_counters_are_cumulative" },
		{ KB_COUNTERS_AUTO, { 100, 90, 95, 120, 80, 100, 99, 98, 102, 100, 100, 100 },
		  90, 102, "varying_counters_are_deltas" },
		{ KB_COUNTERS_AUTO, { 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100 },
		  100, 100, "constant_counters_are_deltas" },
		{ KB_COUNTERS_DELTA, { 100, 110, 125, 130, 150, 151, 160, 170, 190, 200, 210, 220 },
		  110, 190, "deltas_if_told_so" },
		{ KB_COUNTERS_CUMULATIVE, { 100, 100, 100, 100, 100, 100, 100, 100, 103, 110, 120 },
		  0, 3, "cumulative_if_told_so" },
		{ KB_COUNTERS_CUMULATIVE, { 0xfffffffe, 1, 2, 3, 4, 5, 6, UINT64_MAX, 10, 11 },
		  3, 4, "counters_of_32_bits_wrap_and_gaps_are_bridged" },
	};

	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		struct image im = { .word = 8 };
		struct image_header h = usual;
		uint64_t got[12] = { 0 };
		struct kb_barman *barman;
		struct kb_event e;

		h.counters_used = 1;
		image_header(&im, &h);
		for (int i = 0; i < 12; i++) {
			size_t start = image_begin(&im);

			image_record(&im, 1, 1, i);
			image_u32(&im, 0);
			image_u32(&im, 0);
			image_u64(&im, rows[r].values[i]);
			image_end(&im, start);
		}
		image_linear(&im);
		barman = open_image(&im);
		if (barman)
			kb_barman_set_counters(barman, rows[r].how);
		for (int i = 0; barman && i < 12; i++) {
			if (kb_barman_next(barman, &e, NULL) == 1)
				got[i] = e.sample.counters[0];
		}
		if (!tap_ok(barman && got[1] == rows[r].second && got[8] == rows[r].ninth,
			    rows[r].name))
			tap_note("got %" PRIu64 " and %" PRIu64, got[1], got[8]);
		kb_barman_close(barman);
		image_free(&im);
	}
}

int main(void)
{
	random_start();
	nanoseconds();
	nanoseconds_are_exact();
	counters_become_deltas();
	return tap_done();
}
