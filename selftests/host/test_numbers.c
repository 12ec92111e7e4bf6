// SPDX-License-Identifier: MIT
/* Small numbers that every file takes from one place: times and shares. */
#include "../lib/tap.h"
#include "base/clock.h"
#include "base/percent.h"

int main(void)
{
	int64_t ns = kb_clock_ns(CLOCK_MONOTONIC), ms = kb_clock_ms();

	tap_ok(ns > 0 && kb_clock_ns(CLOCK_MONOTONIC) >= ns, "clocks_do_not_go_back");
	tap_ok(ms >= ns / KB_NS_PER_MS, "milliseconds_are_of_the_same_clock");
	tap_is(kb_clock_ns(-1000), 0, "a_clock_that_does_not_exist_is_0");

	tap_ok(kb_percent(1, 4) == 25.0, "a_quarter_is_25_percent");
	tap_ok(kb_percent(3, 1) == 300.0, "a_part_may_be_more_than_the_whole");
	tap_ok(kb_percent(0, 0) == 0.0 && kb_percent(7, 0) == 0.0, "of_nothing_it_is_0");
	tap_ok(kb_percent(UINT64_MAX, UINT64_MAX) == 100.0, "the_largest_whole_is_100");
	return tap_done();
}
