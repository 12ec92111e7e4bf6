// SPDX-License-Identifier: MIT
/* Packed integers against the tables of the Annotate v3 text, row by row. */
#include "format/leb.h"

#include "../lib/random.h"
#include "../lib/tap.h"

/*
 * A row: the last value of its length, and what bits its bytes have for sure. In all
 * bytes but the last that is the continuation bit; of the last one the text gives
 * `last` under the mask `fixed`.
 */
struct row {
	int64_t value;
	int bytes;
	uint8_t last, fixed;
};

static const struct row table32[] = {
	{ INT32_MIN, 5, 0x78, 0xf8 },	{ -134217728, 4, 0x40, 0xc0 },
	{ -1048576, 3, 0x40, 0xc0 },	{ -8192, 2, 0x40, 0xc0 },
	{ -64, 1, 0x40, 0xc0 },		{ 63, 1, 0x00, 0xc0 },
	{ 8191, 2, 0x00, 0xc0 },	{ 1048575, 3, 0x00, 0xc0 },
	{ 134217727, 4, 0x00, 0xc0 },	{ INT32_MAX, 5, 0x00, 0xf8 },
};

static const struct row table64[] = {
	{ INT64_MIN, 10, 0x7e, 0xfe },		{ -4611686018427387904, 9, 0x40, 0xc0 },
	{ -36028797018963968, 8, 0x40, 0xc0 },	{ -281474976710656, 7, 0x40, 0xc0 },
	{ -2199023255552, 6, 0x40, 0xc0 },	{ -17179869184, 5, 0x40, 0xc0 },
	{ -134217728, 4, 0x40, 0xc0 },		{ -1048576, 3, 0x40, 0xc0 },
	{ -8192, 2, 0x40, 0xc0 },		{ -64, 1, 0x40, 0xc0 },
	{ 63, 1, 0x00, 0xc0 },			{ 8191, 2, 0x00, 0xc0 },
	{ 1048575, 3, 0x00, 0xc0 },		{ 134217727, 4, 0x00, 0xc0 },
	{ 17179869183, 5, 0x00, 0xc0 },		{ 2199023255551, 6, 0x00, 0xc0 },
	{ 281474976710655, 7, 0x00, 0xc0 },	{ 36028797018963967, 8, 0x00, 0xc0 },
	{ 4611686018427387903, 9, 0x00, 0xc0 },	{ INT64_MAX, 10, 0x00, 0xfe },
};

static uint8_t buffer[32];

/* Any value, short ones as likely as long ones, on either side of 0. */
static uint64_t random_any(void)
{
	return random_magnitude() ^ (random_u64() & 1 ? 0 : ~UINT64_C(0));
}

static int put(int64_t value)
{
	memset(buffer, 0xaa, sizeof(buffer));
	return (int)(kb_leb_put(buffer, value) - buffer);
}

static enum kb_leb_result get(const void *bytes, int length, unsigned int bits, int64_t *value,
			      int *taken)
{
	const uint8_t *start = bytes, *at = start;
	enum kb_leb_result result = kb_leb_get(&at, start + length, bits, value);

	*taken = (int)(at - start);
	return result;
}

static bool reads_back(int64_t value, unsigned int bits, int length)
{
	int64_t got = ~value;
	int taken;

	return get(buffer, length, bits, &got, &taken) == KB_LEB_OK && got == value &&
	       taken == length;
}

static void check_row(const struct row *row, unsigned int bits)
{
	int length = put(row->value), i;
	bool more = true;
	char name[80];

	for (i = 0; i < length - 1; i++)
		more &= buffer[i] >> 7;
	snprintf(name, sizeof(name), "packed%u_row_%" PRId64, bits, row->value);
	tap_ok(length == row->bytes && more && (buffer[length - 1] & row->fixed) == row->last &&
	       reads_back(row->value, bits, length), name);
	if (row->bytes == (bits == 32 ? KB_LEB32_MAX : KB_LEB64_MAX))
		return;
	snprintf(name, sizeof(name), "packed%u_beyond_row_%" PRId64 "_takes_a_byte_more", bits,
		 row->value);
	tap_is(put(row->value < 0 ? row->value - 1 : row->value + 1), row->bytes + 1, name);
}

static void check_examples(void)
{
	static const uint8_t first[] = { 0xcd, 0x9a, 0x1a };
	static const uint8_t second[] = { 0xba, 0xb2, 0xa5, 0xa2, 0xce, 0xfa, 0xff, 0xfa, 0xbd,
					  0x7f };

	tap_ok(put(429389) == 3 && !memcmp(buffer, first, 3) && reads_back(429389, 32, 3),
	       "example_429389");
	tap_ok(put(-4758616141418899142) == 10 && !memcmp(buffer, second, 10) &&
	       reads_back(-4758616141418899142, 64, 10), "example_4758616141418899142_negative");
}

static void check_strictness(void)
{
	int64_t value;
	int taken;

	tap_is(get("\x80\x80", 2, 64, &value, &taken), KB_LEB_TRUNCATED, "truncated_is_noticed");
	tap_is(taken, 0, "truncated_takes_nothing");
	tap_is(get("", 0, 32, &value, &taken), KB_LEB_TRUNCATED, "empty_is_truncated");
	tap_is(get("\x80\x00", 2, 32, &value, &taken), KB_LEB_LONGER, "padded_zero_is_noticed");
	tap_ok(value == 0 && taken == 2, "padded_zero_is_read_all_the_same");
	tap_is(get("\xff\x7f", 2, 32, &value, &taken), KB_LEB_LONGER, "padded_minus_1_is_noticed");
	tap_is(value, -1, "padded_minus_1_is_read_all_the_same");
	tap_is(get("\xc0\x00", 2, 32, &value, &taken), KB_LEB_OK, "64_needs_its_second_byte");
	tap_is(get("\x80\x80\x80\x80\x08", 5, 32, &value, &taken), KB_LEB_TOO_BIG,
	       "packed32_refuses_2_to_the_31");
	tap_is(get("\xff\xff\xff\xff\x77", 5, 32, &value, &taken), KB_LEB_TOO_BIG,
	       "packed32_refuses_less_than_its_least");
	tap_is(get("\x80\x80\x80\x80\x80\x00", 6, 32, &value, &taken), KB_LEB_TOO_BIG,
	       "packed32_refuses_a_sixth_byte");
	tap_is(get("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x02", 10, 64, &value, &taken),
	       KB_LEB_TOO_BIG, "packed64_refuses_more_than_64_bits");
	tap_is(get("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7e", 10, 64, &value, &taken),
	       KB_LEB_TOO_BIG, "packed64_refuses_a_broken_sign");
	tap_is(get("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 11, 64, &value, &taken),
	       KB_LEB_TOO_BIG, "packed64_refuses_an_eleventh_byte");
}

/* As the text describes it, one group after the other. */
static int plain_put(uint8_t *at, int64_t value)
{
	int n = 0;

	while (value < -64 || value > 63) {
		at[n++] = 0x80 | (value & 0x7f);
		value >>= 7;
	}
	at[n++] = value & 0x7f;
	return n;
}

static void check_random(void)
{
	uint8_t want[KB_LEB64_MAX];
	int i, bad = 0;

	for (i = 0; i < 1000000; i++) {
		int64_t value = (int64_t)random_any();
		int length = put(value), plain = plain_put(want, value);

		if (length != plain || memcmp(buffer, want, (size_t)length) ||
		    !reads_back(value, 64, length) ||
		    (value == (int32_t)value && !reads_back(value, 32, length))) {
			if (!bad++)
				tap_note("first bad value: %" PRId64, value);
		}
	}
	tap_is(bad, 0, "a_million_random_values_read_as_written_in_the_plain_form");
}

static bool packs(const struct kb_leb *leb, int64_t value)
{
	uint8_t want[KB_LEB64_MAX];
	int length = (int)(kb_leb_put_packed(buffer, leb) - buffer);

	return leb->value == value && length == plain_put(want, value) &&
	       !memcmp(buffer, want, (size_t)length);
}

/* Packed from nothing, and from a number near by or far away. */
static void check_packed(void)
{
	struct kb_leb leb = kb_leb_pack(0);
	int i, bad = 0;

	for (i = 0; i < 1000000; i++) {
		int64_t value = i & 1 ? (int64_t)random_any() :
				(int64_t)((uint64_t)leb.value + random_below(1u << 20));
		struct kb_leb alone = kb_leb_pack(value);

		kb_leb_repack(&leb, value);
		if ((!packs(&alone, value) || !packs(&leb, value)) && !bad++)
			tap_note("first bad value: %" PRId64, value);
	}
	tap_is(bad, 0, "a_million_packed_numbers_are_copied_as_they_would_be_written");
}

int main(void)
{
	size_t i;

	random_start();
	for (i = 0; i < sizeof(table32) / sizeof(table32[0]); i++)
		check_row(&table32[i], 32);
	for (i = 0; i < sizeof(table64) / sizeof(table64[0]); i++)
		check_row(&table64[i], 64);
	check_examples();
	check_strictness();
	check_random();
	check_packed();
	return tap_done();
}
