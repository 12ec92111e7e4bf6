// SPDX-License-Identifier: MIT
/* Hashes spread what captures have: dense numbers, aligned addresses, names that end alike. */
#include "../lib/tap.h"
#include "base/hash.h"

#define KEYS	4096U
#define SLOTS	4096U
#define MOST	10	/* keys in a slot; a good hash has 7 at the most, nearly always */

static unsigned int slots[SLOTS];

static unsigned int fullest(void)
{
	unsigned int most = 0;

	for (unsigned int i = 0; i < SLOTS; i++) {
		if (slots[i] > most)
			most = slots[i];
		slots[i] = 0;
	}
	return most;
}

int main(void)
{
	char name[32];

	/* The values that FNV-1a's authors publish. */
	tap_is(kb_hash_string(""), 0x811c9dc5, "an_empty_string_is_the_basis");
	tap_is(kb_hash_string("a"), 0xe40c292c, "a_byte_has_its_value");
	tap_is(kb_hash_string("foobar"), 0xbf9cf968, "a_string_has_its_value");
	tap_ok(kb_hash_bytes(1, "foobar and more", 6) == kb_hash_bytes(1, "foobar", 6),
	       "a_text_has_a_length");
	tap_ok(kb_hash_bytes(1, "foobar", 6) != kb_hash_bytes(2, "foobar", 6), "a_seed_counts");

	for (uint64_t i = 0; i < KEYS; i++)
		slots[kb_hash_word(1, i) % SLOTS]++;
	tap_ok(fullest() <= MOST, "words_in_a_row_are_spread");
	for (uint64_t i = 0; i < KEYS; i++)
		slots[kb_hash_word(1, 0x7f0000000000 + i * 4096) % SLOTS]++;
	tap_ok(fullest() <= MOST, "addresses_of_pages_are_spread");
	for (uint64_t i = 0; i < KEYS; i++)
		slots[kb_hash_word(kb_hash_word(1, i % 64), i / 64) % SLOTS]++;
	tap_ok(fullest() <= MOST, "pairs_are_spread");
	for (uint64_t i = 0; i < KEYS; i++)
		slots[kb_hash_spread(i * 4096) >> 40 & (SLOTS - 1)]++;
	tap_ok(fullest() <= MOST, "the_upper_bits_of_a_product_are_spread");
	for (unsigned int i = 0; i < KEYS; i++) {
		snprintf(name, sizeof(name), "/usr/lib/lib%u.so", i);
		slots[kb_hash_string(name) % SLOTS]++;
	}
	tap_ok(fullest() <= MOST, "names_that_end_alike_are_spread");
	for (unsigned int i = 0; i < KEYS; i++) {
		snprintf(name, sizeof(name), "event-%u", i);
		slots[kb_hash_fold(kb_hash_string(name)) % SLOTS]++;
	}
	tap_ok(fullest() <= MOST, "folded_ones_are_spread");
	return tap_done();
}
