// SPDX-License-Identifier: MIT
/*
 * Names and numbers that were chosen to have one hash cost what others cost. Counted are
 * comparisons, not time: the library compares names by this program's strcmp().
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../lib/tap.h"
#include "base/hash.h"
#include "export/traces/tptp_threads.h"
#include "kbarman/barman.h"

#define LETTERS	6
#define STEPS	12
#define NAMES	(1U << STEPS)
#define TRIED	(1U << 18)	/* 32 bits: some eight pairs of equal hashes */
#define THREADS	16384U

static uint64_t compared;

int strcmp(const char *a, const char *b)
{
	compared++;
	for (; *a && *a == *b; a++)
		b++;
	return (uint8_t)*a - (uint8_t)*b;
}

static struct tried {
	uint32_t hash;
	char text[LETTERS];
} tried[TRIED];

static char chosen[NAMES][STEPS * LETTERS + 1];

static int by_hash(const void *a, const void *b)
{
	uint32_t x = ((const struct tried *)a)->hash, y = ((const struct tried *)b)->hash;

	return x < y ? -1 : x > y;
}

/* Two texts behind which a hash without a seed that was @hash is the same. */
static const struct tried *pair_behind(uint32_t hash)
{
	static uint64_t random = 1;

	for (;;) {
		for (uint32_t i = 0; i < TRIED; i++) {
			tried[i].hash = hash;
			random = kb_hash_word(random, i);
			for (int j = 0; j < LETTERS; j++) {
				tried[i].text[j] = (char)('A' + (random >> 8 * j) % 64);
				tried[i].hash = kb_hash_byte(tried[i].hash, (uint8_t)tried[i].text[j]);
			}
		}
		qsort(tried, TRIED, sizeof(tried[0]), by_hash);
		for (uint32_t i = 1; i < TRIED; i++)
			if (tried[i - 1].hash == tried[i].hash &&
			    memcmp(tried[i - 1].text, tried[i].text, LETTERS))
				return &tried[i - 1];
	}
}

static void choose(void)
{
	uint32_t hash = KB_HASH_TEXT;

	for (unsigned int step = 0; step < STEPS; step++) {
		const struct tried *pair = pair_behind(hash);

		for (uint32_t i = 0; i < NAMES; i++)
			memcpy(chosen[i] + step * LETTERS, pair[i >> step & 1].text, LETTERS);
		hash = pair->hash;
	}
}

/* The comparisons of as many different names, chosen ones or not. */
static uint64_t cost_of_names(bool are_chosen)
{
	struct kb_barman_layout layout = {
		.size = sizeof(layout), .max_cores = 1,
		.max_string_table_length = NAMES * sizeof(chosen[0]),
	};
	struct kb_barman_writer *writer;
	int fd = memfd_create("names", 0);
	uint64_t before;

	if (kb_barman_writer_create(&writer, fd, &layout, NULL))
		exit(2);
	before = compared;
	for (uint32_t i = 0; i < NAMES; i++) {
		char name[sizeof(chosen[0])];

		snprintf(name, sizeof(name), "%072u", i);
		if (kb_barman_writer_string(writer, are_chosen ? chosen[i] : name) < 0)
			exit(2);
	}
	before = compared - before;
	kb_barman_writer_destroy(writer);
	close(fd);
	return before;
}

/* How many threads are looked at when each of these is looked for. */
static uint64_t cost_of_threads(uint32_t step)
{
	struct tptp_threads *threads = tptp_threads_create();
	const struct tptp_thread *first = tptp_threads_get(threads, step);
	uint64_t looked_at = 0;

	for (uint32_t i = 1; i <= THREADS; i++)
		if (!tptp_threads_get(threads, (int64_t)i * step))
			exit(2);
	for (uint32_t i = 1; i <= THREADS; i++) {
		const struct tptp_thread *thread = tptp_threads_find(threads, (int64_t)i * step);

		for (looked_at++; thread->next; looked_at++)
			thread = &first[thread->next - 1];
	}
	tptp_threads_destroy(threads);
	return looked_at;
}

static void is_no_dearer(uint64_t cost, uint64_t usual, const char *name)
{
	if (!tap_ok(cost <= 2 * usual, name))
		tap_note("%" PRIu64 ", others %" PRIu64, cost, usual);
}

int main(void)
{
	choose();
	tap_ok(kb_hash_string(chosen[0]) == kb_hash_string(chosen[NAMES - 1]),
	       "the_chosen_names_have_one_hash");
	is_no_dearer(cost_of_names(true), cost_of_names(false),
		     "chosen_names_cost_what_others_cost");
	is_no_dearer(cost_of_threads(65536), cost_of_threads(1),
		     "chosen_threads_cost_what_others_cost");
	return tap_done();
}
