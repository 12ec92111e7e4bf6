// SPDX-License-Identifier: MIT
/* Records that wait come out as they went in, in their order. */
#include <stdlib.h>
#include <string.h>

#include "record/recorder/waiting.h"

#include "../lib/random.h"
#include "../lib/tap.h"

#define ROUNDS	100000U
#define LENGTH	512U

/* Record @number is known by its length, its bytes and its time. */
static struct kb_raw_record record(uint8_t bytes[LENGTH], uint64_t number)
{
	memset(bytes, (int)(number % 251), LENGTH);
	return (struct kb_raw_record) {
		.data = bytes, .length = 8 * (number * 7 % (LENGTH / 8) + 1), .timestamp = number,
	};
}

static bool is_first(const struct kb_waiting *waiting, uint64_t number)
{
	struct kb_raw_record found = kb_waiting_first(waiting), wanted;
	uint8_t bytes[LENGTH];

	wanted = record(bytes, number);
	return found.timestamp == number && found.length == wanted.length &&
	       !memcmp(found.data, wanted.data, wanted.length);
}

int main(void)
{
	struct kb_waiting waiting = { 0 };
	uint64_t in = 0, out = 0;
	unsigned int wrong = 0;
	uint8_t bytes[LENGTH];

	random_start();
	tap_ok(kb_waiting_is_empty(&waiting), "at_first_none_waits");
	for (unsigned int i = 0; i < ROUNDS; i++) {
		/* the queue grows for a while, and shrinks for a while */
		if (in == out || random_below(100) < (i / 10000 % 2 ? 40 : 60)) {
			struct kb_raw_record next = record(bytes, in++);

			wrong += kb_waiting_add(&waiting, &next) != 0;
		} else {
			wrong += !is_first(&waiting, out++);
			kb_waiting_remove_first(&waiting);
		}
		wrong += kb_waiting_is_empty(&waiting) != (in == out);
	}
	for (; out < in; out++) {
		wrong += !is_first(&waiting, out);
		kb_waiting_remove_first(&waiting);
	}
	tap_is(wrong, 0, "each_comes_out_as_it_went_in");
	tap_ok(kb_waiting_is_empty(&waiting) && !kb_waiting_bytes(&waiting), "at_last_none_waits");
	kb_waiting_release(&waiting);
	return tap_done();
}
