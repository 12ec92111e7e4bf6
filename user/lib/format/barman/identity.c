// SPDX-License-Identifier: MIT
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "format/barman/identity.h"
#include "format/barman/inside.h"

#define PIECE	((size_t)1 << 20)	/* bytes of records at a time */

static void add_tables(struct kb_digest *digest, const struct kb_header *h)
{
	for (uint32_t i = 0; i < h->max_cores; i++) {
		const struct kb_pmu *pmu = &h->pmus[i];

		kb_digest_number(digest, pmu->configuration_timestamp);
		kb_digest_number(digest, pmu->mpidr);
		kb_digest_number(digest, (uint64_t)pmu->midr << 32 | pmu->cluster_id);
		kb_digest_number(digest, pmu->num_counters);
		for (uint32_t k = 0; k < pmu->num_counters; k++)
			kb_digest_number(digest, pmu->counter_types[k]);
	}
	for (uint32_t i = 0; i < h->nr_tasks; i++) {
		kb_digest_number(digest, h->tasks[i].timestamp);
		kb_digest_number(digest, (uint64_t)h->tasks[i].task_id << 32 | h->tasks[i].name_ptr);
	}
	for (uint32_t i = 0; i < h->nr_maps; i++) {
		const struct kb_map *map = &h->maps[i];

		kb_digest_number(digest, map->timestamp);
		kb_digest_number(digest, (uint64_t)map->task_id << 32 | map->image_ptr);
		kb_digest_number(digest, map->base_address);
		kb_digest_number(digest, map->length);
		kb_digest_number(digest, map->image_offset);
	}
}

static void add_header(struct kb_digest *digest, const struct kb_header *h)
{
	const uint64_t numbers[] = {
		h->word_size, h->big_endian, h->unix_base_ns, h->timestamp_base, h->timestamp_multiplier,
		h->timestamp_divisor, h->last_timestamp, h->timer_sample_rate, h->target_name_ptr,
		h->max_cores, h->total_written, h->nr_tasks, h->nr_maps, h->nr_charts, h->nr_series,
		h->string_table_length,
	};

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		kb_digest_number(digest, numbers[i]);
	kb_digest_bytes(digest, h->strings, h->string_table_length);
}

int barman_identify(struct kb_barman *barman, struct barman_identity *identity,
		    struct kb_error *err)
{
	struct kb_digest digest;
	int ret = kb_barman_keep(barman, err);

	if (ret)
		return ret;
	kb_digest_begin(&digest);
	add_header(&digest, &barman->header);
	add_tables(&digest, &barman->header);
	for (unsigned int i = 0; i < barman->nr_segments; i++) {
		uint64_t at = barman->segments[i].start, end = barman->segments[i].end;
		size_t got;

		for (; at < end; at += got) {
			size_t want = end - at < PIECE ? (size_t)(end - at) : PIECE;
			const uint8_t *data = kb_source_at(&barman->source, at, want, &got, NULL);

			if (!data || !got)
				break;		/* whoever reads the records says so */
			got = got < want ? got : want;
			kb_digest_bytes(&digest, data, got);
		}
	}
	kb_digest_end(&digest, identity->bytes);
	return kb_barman_rewind(barman);	/* what its cursor pointed to may have moved */
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

struct known {
	struct barman_identity identity;
	bool tried, good;
};

/* Each capture is read once. */
static bool is_known(struct known *known, struct kb_barman *b)
{
	known->good = known->tried ? known->good : !barman_identify(b, &known->identity, NULL);
	known->tried = true;
	return known->good;
}

unsigned int barman_find_copy(struct kb_barman *const *captures, unsigned int nr, unsigned int *of)
{
	struct known *known = calloc(nr, sizeof(*known));
	unsigned int i;

	for (i = known ? 1 : nr; i < nr; i++) {
		for (*of = 0; *of < i; ++*of)
			if (may_be_copy(captures[*of], captures[i]) &&
			    is_known(&known[*of], captures[*of]) && is_known(&known[i], captures[i]) &&
			    barman_is_same(&known[*of].identity, &known[i].identity))
				break;
		if (*of < i)
			break;
	}
	free(known);
	return i < nr ? i : nr;
}
