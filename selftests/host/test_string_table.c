// SPDX-License-Identifier: MIT
/*
 * The module's own string table and its users' shares, in user space: against a model that
 * knows which strings there are, while they come and go at random; and which rings give way.
 */
#include "table_env.h"
#include "../../kmod/capture/shares.c"
#include "../../kmod/capture/string_table.c"

#include "../lib/random.h"
#include "../lib/tap.h"

#define BYTES		(64U * 1024 + 36)	/* no power of two, nor whole units */
#define STRINGS		3000
#define ROUNDS		200000

static unsigned int kept_of_hash = 64;	/* bits that the hash is good for */

u64 siphash(const void *data, size_t length, const siphash_key_t *key)
{
	const u8 *bytes = data;
	u64 hash = key->key;

	while (length--)
		hash = (hash ^ *bytes++) * UINT64_C(0x100000001b3);
	return kept_of_hash < 64 ? hash & ((UINT64_C(1) << kept_of_hash) - 1) : hash;
}

struct table {
	struct kbarman_strings strings;
	char bytes[BYTES];
	u32 end;
};

static struct table *table_create(bool grows)
{
	struct table *table = calloc(1, sizeof(*table));
	u32 buckets = kbarman_strings_buckets(BYTES);

	table->strings.blocks = calloc(BYTES / KBARMAN_STRING_UNIT, sizeof(struct kbarman_string));
	table->strings.buckets = calloc(buckets, sizeof(u32));
	table->strings.mask = buckets - 1;
	kbarman_strings_init(&table->strings, table->bytes, BYTES, &table->end, grows);
	return table;
}

static void table_free(struct table *table)
{
	free(table->strings.buckets);
	free(table->strings.blocks);
	free(table);
}

static s64 get(struct table *table, const char *text)
{
	struct kbarman_text it = kbarman_strings_text(&table->strings, text, strlen(text));

	return kbarman_strings_get(&table->strings, &it, 0);
}

static u32 put(struct table *table, u32 offset)
{
	u8 payer;

	return kbarman_strings_put(&table->strings, offset, &payer);
}

/* What the test holds: a text, where it is, how often. */
struct held {
	char text[600];
	s64 offset;
	unsigned int times;
};

static void new_text(char *text, unsigned int number)
{
	size_t length = random_below(8) ? random_below(24) : random_below(590);

	memset(text, 'a' + (int)(number % 26), length);
	sprintf(text + length, "%u", number);
}

/* Every string is where it was said to be, ends, and lies in nobody else's place. */
static bool all_there(const struct table *table, const struct held *held)
{
	static u8 taken[BYTES];
	u32 i, at;

	memset(taken, 0, sizeof(taken));
	for (i = 0; i < STRINGS; i++) {
		size_t length = strlen(held[i].text);

		if (!held[i].times)
			continue;
		if (held[i].offset + length >= table->end ||
		    strcmp(table->bytes + held[i].offset, held[i].text))
			return false;
		for (at = 0; at <= length; at++)
			if (taken[held[i].offset + at]++)
				return false;
	}
	for (at = 0; at < BYTES; at++)
		if (!taken[at] && table->bytes[at])
			return false;
	return true;
}

static void strings_come_and_go(const char *name)
{
	static struct held held[STRINGS];
	struct table *table = table_create(false);
	unsigned int i, n, refused = 0;
	bool good = true;

	memset(held, 0, sizeof(held));
	for (i = 0; i < ROUNDS && good; i++) {
		struct held *it = &held[n = random_below(STRINGS)];
		s64 offset;

		if (it->times && random_below(2)) {
			put(table, it->offset);
			it->times--;
			continue;
		}
		if (!it->times)
			new_text(it->text, n);
		offset = get(table, it->text);
		if (offset < 0) {
			refused++;
			good = !it->times;
			continue;
		}
		good = !it->times || offset == it->offset;
		it->offset = offset;
		it->times++;
		if (i % 5000 == 0)
			good = good && all_there(table, held);
	}
	tap_ok(good && all_there(table, held), name);
	if (kept_of_hash == 64)
		tap_ok(refused, "the_table_was_full_at_times");
	for (n = 0; n < STRINGS; n++)
		while (held[n].times) {
			put(table, held[n].offset);
			held[n].times--;
		}
	tap_is(table->strings.used, 0, "all_room_comes_back");
	table_free(table);
}

static void a_table_that_was_full_is_as_good_as_new(void)
{
	static char longest[8192];
	static s64 offsets[BYTES / KBARMAN_STRING_UNIT];
	struct table *table = table_create(false);
	unsigned int nr = 0, longs = 0, i;
	char text[16];

	memset(longest, 'x', sizeof(longest) - 1);
	put(table, get(table, "first"));
	tap_ok(table->end <= 16, "a_new_table_is_used_from_its_start");
	do {
		snprintf(text, sizeof(text), "n%u", nr);
		offsets[nr] = get(table, text);
	} while (offsets[nr++] >= 0);
	tap_is(nr - 1, BYTES / 8192 * 8192 / KBARMAN_STRING_UNIT, "every_unit_can_be_had");
	/* Every second one first: no neighbour is free. */
	for (i = 0; i < nr - 1; i += 2)
		put(table, offsets[i]);
	tap_is(get(table, "this is longer than a unit"), -ENOSPC, "no_room_between_strings");
	for (i = 1; i < nr - 1; i += 2)
		put(table, offsets[i]);
	for (i = 0; i < 8; i++) {
		longest[0] = 'a' + (char)i;
		longs += get(table, longest) >= 0;
	}
	tap_is(longs, BYTES / 8192, "the_longest_strings_fit_again");
	table_free(table);
}

static void a_table_that_grows_can_be_followed(void)
{
	struct table *table = table_create(true);
	bool behind = true, there = true;
	unsigned int i, end = 0;
	char text[600];
	s64 offset;

	for (i = 0; i < 300; i++) {
		new_text(text, i);
		offset = get(table, text);
		if (offset < 0)
			break;
		behind = behind && offset >= end && table->end == offset + strlen(text) + 1;
		end = table->end;
		there = there && get(table, text) == offset && !put(table, offset);
	}
	tap_ok(behind, "a_new_string_stands_behind_all_others");
	tap_ok(there, "none_goes");
	table_free(table);
}

static void hundred_users_over(struct kbarman_shares *shares, u32 *got, u32 users)
{
	bool low = false;
	u32 user;

	for (user = 0; user < users; user++) {
		u8 payer = kbarman_shares_payer(shares, 1000 + user);

		for (got[user] = 0; kbarman_shares_take(shares, payer, KBARMAN_SHARE_TASKS, 1,
							&low);)
			got[user]++;
	}
}

static void shares_hold(void)
{
	const u32 sizes[KBARMAN_SHARES] = { 16384, 65536, 262144, 63 };
	static struct kbarman_shares shares;
	u32 got[100], i, sum = 0;
	bool low = false;
	u8 root, other;

	kbarman_shares_init(&shares, sizes);
	hundred_users_over(&shares, got, 2);
	tap_is(got[0], 12288, "one_user_gets_three_quarters");
	tap_is(got[1], 3072, "the_next_one_three_quarters_of_what_is_left");
	root = kbarman_shares_payer(&shares, KBARMAN_USER_ROOT);
	for (i = 0; kbarman_shares_take(&shares, root, KBARMAN_SHARE_TASKS, 1, &low); i++)
		;
	tap_is(i, 1024, "root_gets_all_that_is_left");

	kbarman_shares_init(&shares, sizes);
	other = kbarman_shares_payer(&shares, KBARMAN_USER_UNWANTED);
	for (i = 0; kbarman_shares_take(&shares, other, KBARMAN_SHARE_TASKS, 1, &low); i++)
		;
	tap_is(i, 4096, "those_not_recorded_get_a_quarter");

	kbarman_shares_init(&shares, sizes);
	hundred_users_over(&shares, got, 100);
	for (i = 0; i < 100; i++)
		sum += got[i];
	tap_ok(sum <= 16384, "a_hundred_users_get_no_more_than_there_is");

	kbarman_shares_init(&shares, sizes);
	other = kbarman_shares_payer(&shares, 1000);
	low = false;
	for (i = 0; !low; i++)
		kbarman_shares_take(&shares, other, KBARMAN_SHARE_TASKS, 1, &low);
	tap_is(i, 6144, "half_of_a_share_taken_is_time_to_look");
	kbarman_shares_give(&shares, other, KBARMAN_SHARE_TASKS, i);
	tap_is(kbarman_shares_payer(&shares, 1001), other, "who_has_nothing_keeps_no_number");
}

static void parts_of_a_string_are_all_of_it(void)
{
	struct table *table = table_create(false);
	u32 name = get(table, "name"), path = get(table, "/a/path/that/needs/more/than/two/units");

	tap_is(kbarman_strings_part(&table->strings, name), 16, "a_name_takes_a_unit");
	tap_is(kbarman_strings_part(&table->strings, path), 64, "a_string_takes_its_block");
	get(table, "/a/path/that/needs/more/than/two/units");
	tap_is(kbarman_strings_part(&table->strings, path), 32, "two_who_mean_it_take_half_each");
	put(table, path);
	tap_is(kbarman_strings_part(&table->strings, path), 64, "the_last_one_takes_all");
	table_free(table);
}

static u64 kept_of(const u32 *needs, u32 count, u32 level)
{
	u64 sum = 0;
	u32 i;

	for (i = 0; i < count; i++)
		sum += min(needs[i], level);
	return sum;
}

static void only_rings_in_need_give_way(void)
{
	const u32 needs[] = { 10, 0, 5000, 300, 9000 }, pairs[] = { 10, 77777, 5000, 77777 };
	u32 more[64], i, round, level, bad = 0;
	u64 all, budget;

	level = kbarman_shares_level(needs, 1, 5, 6000);
	tap_is(level, 2845, "rings_that_need_most_keep_the_same");
	tap_ok(needs[3] < level, "rings_that_need_little_keep_all");
	tap_is(kbarman_shares_level(needs, 1, 5, 14310), ~0U, "none_gives_way_if_there_is_enough");
	tap_is(kbarman_shares_level(needs, 1, 5, 14309), 8999, "one_row_too_many_is_the_largests");
	tap_is(kbarman_shares_level(needs, 1, 5, 0), 0, "nothing_there_nothing_kept");
	tap_is(kbarman_shares_level(pairs, 2, 2, 2010), 2000, "needs_may_stand_apart");
	for (round = 0; round < 1000; round++) {
		for (i = 0, all = 0; i < 64; i++) {
			more[i] = random_below(1 << random_below(20));
			all += more[i];
		}
		if (!all)
			continue;
		budget = random_below(all);
		level = kbarman_shares_level(more, 1, 64, budget);
		bad += kept_of(more, 64, level) > budget || kept_of(more, 64, level + 1) <= budget;
	}
	tap_is(bad, 0, "as_much_is_kept_as_there_is");
}

int main(void)
{
	random_start();
	strings_come_and_go("strings_stay_where_they_are_until_nobody_means_them");
	kept_of_hash = 1;
	strings_come_and_go("strings_that_collide_are_told_apart");
	kept_of_hash = 64;
	a_table_that_was_full_is_as_good_as_new();
	a_table_that_grows_can_be_followed();
	parts_of_a_string_are_all_of_it();
	shares_hold();
	only_rings_in_need_give_way();
	return tap_done();
}
