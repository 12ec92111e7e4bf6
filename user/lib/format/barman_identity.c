// SPDX-License-Identifier: MIT
#include <stdlib.h>
#include <string.h>

#include "format/barman_identity.h"
#include "format/barman_inside.h"

#define FIRST	((size_t)256 << 10)	/* bytes of records that are looked at */
#define SEED	UINT64_C(0xcbf29ce484222325)

/* FNV-1a. It is part of names of files, so it can't change. */
static uint64_t add_bytes(uint64_t hash, const void *bytes, size_t nr)
{
	const uint8_t *at = bytes;

	for (size_t i = 0; i < nr; i++)
		hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
	return hash;
}

static uint64_t add_number(uint64_t hash, uint64_t number)
{
	for (unsigned int i = 0; i < 64; i += 8)
		hash = add_bytes(hash, &(uint8_t){ (uint8_t)(number >> i) }, 1);
	return hash;
}

uint64_t barman_identity(struct kb_barman *b)
{
	const struct kb_header *header = &b->header;
	const uint64_t numbers[] = {
		header->unix_base_ns, header->timestamp_base, header->timestamp_multiplier,
		header->timestamp_divisor, header->last_timestamp, header->max_cores,
		header->total_written, header->nr_tasks, header->nr_maps,
	};
	uint64_t hash = SEED;
	const uint8_t *data;
	size_t got = 0, want = FIRST;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		hash = add_number(hash, numbers[i]);
	hash = add_bytes(hash, header->strings, header->string_table_length);
	if (!b->nr_segments)
		return hash;
	if (b->segments[0].end - b->segments[0].start < want)
		want = (size_t)(b->segments[0].end - b->segments[0].start);
	data = kb_source_at(&b->source, b->segments[0].start, want, &got, NULL);
	hash = add_bytes(hash, data, data ? got < want ? got : want : 0);
	kb_barman_rewind(b);		/* what its cursor pointed to may have moved */
	return hash;
}

static bool same_fact(const struct kb_barman *a, const struct kb_barman *b, const char *key)
{
	const char *of_a = kb_barman_fact(a, key), *of_b = kb_barman_fact(b, key);

	return of_a && of_b ? strcmp(of_a, of_b) == 0 : of_a == of_b;
}

bool barman_same_session(const struct kb_barman *a, const struct kb_barman *b)
{
	return a->header.unix_base_ns == b->header.unix_base_ns &&
	       a->header.timestamp_base == b->header.timestamp_base &&
	       same_fact(a, b, "host") && same_fact(a, b, "raw_base");
}

static bool may_be_copy(const struct kb_barman *a, const struct kb_barman *b)
{
	/* what is of CPUs that did nothing doubles nothing */
	return a->nr_segments && a->segments[0].start < a->segments[0].end && barman_same_session(a, b) &&
	       a->header.total_written == b->header.total_written &&
	       a->header.last_timestamp == b->header.last_timestamp;
}

static bool is_copy(struct kb_barman *const *captures, uint64_t *identities, unsigned int a,
		    unsigned int b)
{
	if (!may_be_copy(captures[a], captures[b]))
		return false;
	identities[a] = identities[a] ?: barman_identity(captures[a]);
	identities[b] = identities[b] ?: barman_identity(captures[b]);
	return identities[a] == identities[b];
}

unsigned int barman_find_copy(struct kb_barman *const *captures, unsigned int nr, unsigned int *of)
{
	uint64_t *identities = calloc(nr, sizeof(*identities));	/* 0: not known yet */
	unsigned int i;

	for (i = identities ? 1 : nr; i < nr; i++) {
		for (*of = 0; *of < i && !is_copy(captures, identities, *of, i); ++*of)
			;
		if (*of < i)
			break;
	}
	free(identities);
	return i < nr ? i : nr;
}
