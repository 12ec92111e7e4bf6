// SPDX-License-Identifier: MIT
/* Lengths of time as people write them. */
#include <string.h>

#include "base/duration.h"

#include "../lib/tap.h"

#define S	UINT64_C(1000000000)

static void numbers_and_units_are_taken(void)
{
	static const struct {
		const char *text;
		uint64_t unit_ns, ns;
	} rows[] = {
		{ "300us", 0, 300000 }, { "5ms", 0, 5000000 }, { "2s", 0, 2 * S }, { "1ns", 0, 1 },
		{ "1.5m", 0, 90 * S }, { "1h", 0, 3600 * S }, { "2d", 0, 172800 * S }, { ".5s", 0, S / 2 },
		{ "5.s", 0, 5 * S }, { "0s", 0, 0 }, { "0.1s", 0, S / 10 },
		{ "2", S, 2 * S }, { "0.001", S, 1000000 }, { "20", 1000000, 20000000 }, { "0", S, 0 },
		{ "1.4ns", 0, 1 }, { "1.5ns", 0, 2 }, { "1700000000.123456789", S, 1700000000123456789 },
		{ "9223372035", S, 9223372035 * S },
	};
	int wrong = 0;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t ns = 0;

		if (!kb_duration_parse(rows[i].text, rows[i].unit_ns, &ns) || ns != rows[i].ns) {
			tap_note("'%s' is %" PRIu64 " ns", rows[i].text, ns);
			wrong++;
		}
	}
	tap_is(wrong, 0, "numbers_and_units_are_taken");
}

static void other_words_are_refused(void)
{
	static const char *const words[] = {
		"", ".", "s", "-1s", "+1s", " 1s", "1 s", "1s ", "5msec", "1M", "nan", "nans", "inf",
		"0x10", "1e3s", "1.2.3s", "1,5s", "9223372037s", "107000d", "5", "5min",
	};
	int taken = 0;
	uint64_t ns;

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (kb_duration_parse(words[i], 0, &ns)) {
			tap_note("'%s' is taken", words[i]);
			taken++;
		}
	tap_is(taken, 0, "other_words_are_refused");
	tap_ok(!kb_duration_parse_part("5ms,2", 5, 0, &ns) && kb_duration_parse_part("5ms,2", 3, 0, &ns) &&
	       ns == 5000000, "a_part_of_a_word_is_taken");
}

static void what_is_written_is_read_again(void)
{
	static const uint64_t times[] = { 0, 1, 999, 1000, 1500000, S / 2, S, 90 * S, 3600 * S, 86400 * S };
	char text[KB_DURATION_TEXT];
	bool same = true;
	uint64_t ns;

	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
		same &= kb_duration_parse(kb_duration_text(text, times[i]), 0, &ns) && ns == times[i];
	tap_ok(same, "what_is_written_is_read_again");
	tap_ok(!strcmp(kb_duration_text(text, S / 2), "500ms") &&
	       !strcmp(kb_duration_text(text, 86400 * S), "1d"), "a_time_has_its_largest_unit");
}

int main(void)
{
	numbers_and_units_are_taken();
	other_words_are_refused();
	what_is_written_is_read_again();
	return tap_done();
}
