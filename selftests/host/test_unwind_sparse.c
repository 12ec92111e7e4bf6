// SPDX-License-Identifier: MIT
/*
 * Sparse stacks as records have them: what is put in comes out, in both byte orders and for both
 * sizes of words; and what is cut off, or changed in any byte, is refused or still within bounds.
 */
#include <byteswap.h>
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/sparse.h"

#include "../lib/random.h"
#include "../lib/tap.h"

#define ROUNDS	20000
#define WORDS	700
#define BYTES	(32 + 64 * 8 + (WORDS / 64 + 2) * 8 + WORDS * 12 + 4)
#define PROGRAM	UINT64_C(0x555555554000)
#define LIBRARIES UINT64_C(0x7f0000000000)

struct sample {
	const struct kb_unwind_machine *machine;
	struct kb_unwind_registers registers;
	uint64_t low, high;
	unsigned int end;
	struct kb_unwind_word words[WORDS];
	size_t nr;
};

struct bytes {
	uint8_t *data;
	size_t size;
	bool swap;
};

static void put_64(struct bytes *bytes, uint64_t value)
{
	value = bytes->swap ? bswap_64(value) : value;
	memcpy(bytes->data + bytes->size, &value, sizeof(value));
	bytes->size += sizeof(value);
}

static void put_32(struct bytes *bytes, uint32_t value)
{
	value = bytes->swap ? bswap_32(value) : value;
	memcpy(bytes->data + bytes->size, &value, sizeof(value));
	bytes->size += sizeof(value);
}

static void put_16(struct bytes *bytes, uint16_t value)
{
	value = bytes->swap ? bswap_16(value) : value;
	memcpy(bytes->data + bytes->size, &value, sizeof(value));
	bytes->size += sizeof(value);
}

/* Of a stack from @low on. Some are just behind what 30 bits can say. */
static uint64_t some_word(uint64_t low, unsigned int size)
{
	const uint64_t bases[] = { low, PROGRAM, LIBRARIES };
	uint64_t base = bases[random_below(3)];

	if (size == 4)
		return (uint32_t)random_u64();
	switch (random_below(4)) {
	case 0:
		return random_u64();
	case 1:
		return base + (1U << 30) - 2 + random_below(4);
	default:
		return base + random_below(1U << 30);
	}
}

static void some_sample(struct sample *sample)
{
	unsigned int word, nr = random_below(WORDS), every = 1 + random_below(4);

	sample->machine = random_below(2) ? kb_unwind_machine(EM_X86_64, 8) :
					    kb_unwind_machine(EM_ARM, 4);
	word = sample->machine->word;
	sample->registers = (struct kb_unwind_registers) { 0 };
	for (unsigned int i = 0; i <= KB_UNWIND_PC; i++)
		if (i == KB_UNWIND_PC || i == sample->machine->sp || random_below(2)) {
			sample->registers.known |= UINT64_C(1) << i;
			sample->registers.value[i] = random_u64() >> (word == 4 ? 33 : 17);
		}
	sample->low = sample->registers.value[sample->machine->sp] & -(4ULL * word);
	sample->high = sample->low + nr / 4 * 4 * word;
	sample->end = random_below(KB_UNWIND_SCAN_ENDS);
	sample->nr = 0;
	for (uint64_t at = sample->low; at < sample->high; at += word)
		if (!random_below(every))
			sample->words[sample->nr++] = (struct kb_unwind_word) {
				at, some_word(sample->low, word) };
}

static void put_word(struct bytes *bytes, const struct sample *sample, uint64_t word)
{
	const uint64_t bases[] = { sample->low, PROGRAM, LIBRARIES };

	if (sample->machine->word == 4) {
		put_32(bytes, (uint32_t)word);
		return;
	}
	for (uint32_t i = 0; i < 3; i++)
		if (word - bases[i] < 1U << 30) {
			put_32(bytes, i << 30 | (uint32_t)(word - bases[i]));
			return;
		}
	put_32(bytes, 3U << 30);
	put_64(bytes, word);
}

/* By the words of barman_v2.h. */
static void put_sample(struct bytes *bytes, const struct sample *sample)
{
	uint64_t registers = sample->registers.known & UINT32_MAX, word = sample->machine->word;
	size_t next = 0;

	put_64(bytes, registers | UINT64_C(1) << 63);
	put_64(bytes, PROGRAM);
	put_64(bytes, LIBRARIES);
	put_32(bytes, (uint32_t)(sample->high - sample->low));
	put_16(bytes, (uint16_t)sample->end);
	put_16(bytes, (uint16_t)word);
	for (unsigned int i = 0; i <= KB_UNWIND_PC; i++)
		if (sample->registers.known >> i & 1)
			put_64(bytes, sample->registers.value[i]);
	for (uint64_t at = sample->low, end; at < sample->high; at = end) {
		uint64_t map = 0;
		size_t i;

		end = (at / (64 * word) + 1) * 64 * word;
		for (i = next; i < sample->nr && sample->words[i].address < end; i++)
			map |= UINT64_C(1) << (sample->words[i].address - at) / word;
		put_64(bytes, map);
		for (; next < i; next++)
			put_word(bytes, sample, sample->words[next].word);
	}
	if (bytes->size % 8 && word == 8)
		put_32(bytes, 0);
}

static bool is_same(const struct kb_unwind_sparse *sparse, const struct sample *sample)
{
	return !memcmp(&sparse->registers, &sample->registers, sizeof(sample->registers)) &&
	       sparse->stack.low == sample->low && sparse->stack.high == sample->high &&
	       sparse->end == sample->end && sparse->stack.nr == sample->nr &&
	       !memcmp(sparse->words, sample->words, sample->nr * sizeof(*sample->words));
}

/* Memory of that very size, so that AddressSanitizer sees what is read behind it. */
static int take(struct kb_unwind_sparse *sparse, const struct sample *sample,
		const struct bytes *bytes, size_t size, size_t max_words)
{
	uint8_t *copy = malloc(size + !size);
	int ret;

	if (!copy)
		abort();
	memcpy(copy, bytes->data, size);
	sparse->max_words = max_words;
	ret = kb_unwind_sparse_take(sparse, sample->machine, copy, size, bytes->swap);
	free(copy);
	return ret;
}

int main(void)
{
	struct kb_unwind_word *words = malloc((BYTES / 4) * sizeof(*words));
	struct kb_unwind_sparse sparse = { .words = words };
	unsigned int other = 0, words_told = 0, cut = 0, room = 0, changed = 0;
	struct sample sample;
	uint8_t data[BYTES];
	size_t left;
	int ret;

	random_start();
	for (unsigned int round = 0; round < ROUNDS; round++) {
		struct bytes bytes = { .data = data, .swap = random_below(2) };

		some_sample(&sample);
		put_sample(&bytes, &sample);
		other += take(&sparse, &sample, &bytes, bytes.size, bytes.size / 4) ||
			 !is_same(&sparse, &sample);
		words_told += kb_unwind_sparse_word(data, bytes.size, bytes.swap) ==
			      sample.machine->word &&
			      !kb_unwind_sparse_word(data, random_below(32), bytes.swap);
		left = random_below(bytes.size);
		cut += take(&sparse, &sample, &bytes, left, left / 4) != -EBADMSG;
		room += sample.nr && take(&sparse, &sample, &bytes, bytes.size,
					  random_below(sample.nr)) != -ENOBUFS;
		data[random_below(bytes.size)] ^= 1 + random_below(255);
		ret = take(&sparse, &sample, &bytes, bytes.size, bytes.size / 4);
		changed += ret ? ret != -EBADMSG : sparse.stack.nr > bytes.size / 4;
	}
	tap_is(other, 0, "what_a_record_has_comes_out");
	tap_is(words_told, ROUNDS, "the_size_of_words_is_told_if_it_is_there");
	tap_is(cut, 0, "a_stack_that_is_cut_off_is_refused");
	tap_is(room, 0, "more_words_than_there_is_room_are_refused");
	tap_is(changed, 0, "a_changed_stack_stays_within_its_bytes_or_is_refused");
	free(words);
	return tap_done();
}
