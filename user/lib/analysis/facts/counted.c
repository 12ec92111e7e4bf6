// SPDX-License-Identifier: MIT
/* One pass over the string table for each question: there are few facts. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/facts/core_fact.h"
#include "analysis/facts/counted.h"
#include "analysis/facts/losses_read.h"

/* ---- events that some CPUs do not count ---- */

/* Rows of hostile files are at most as many as a session has events. */
#define ROWS_MAX	32

static void add_row(struct kb_uncounted *rows, uint32_t *nr, const char *name)
{
	for (uint32_t i = 0; i < *nr; i++)
		if (strcmp(rows[i].name, name) == 0)
			return;
	rows[(*nr)++].name = name;
}

/* The CPUs that do not count @name, as ranges. NULL: out of memory. */
static char *cpus_text(const struct kb_header *header, const bool *cpus)
{
	uint32_t core, last;
	size_t size;
	char *text;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	for (core = 0; core < header->max_cores; core++) {
		if (!cpus[core])
			continue;
		for (last = core; last + 1 < header->max_cores && cpus[last + 1];)
			last++;
		fprintf(out, "%s%" PRIu32, ftell(out) ? "," : "", core);
		if (last > core)
			fprintf(out, "-%" PRIu32, last);
		core = last;
	}
	return fclose(out) ? NULL : text;
}

/* The CPUs of which a fact that begins with @prefix says @name. */
static void mark_cpus(const struct kb_header *header, const char *prefix, const char *name,
		      bool *cpus)
{
	uint32_t core, number;
	const char *value;

	memset(cpus, 0, header->max_cores * sizeof(*cpus));
	for (size_t at = 0; at < header->string_table_length;
	     at += strlen(header->strings + at) + 1) {
		value = kb_core_fact(header->strings + at, prefix, &core, &number);
		if (value && core < header->max_cores && strcmp(value, name) == 0)
			cpus[core] = true;
	}
}

static int read_rows(const struct kb_header *header, const char *prefix,
		     struct kb_uncounted **rows, uint32_t *nr)
{
	bool *cpus = calloc((size_t)header->max_cores + 1, sizeof(*cpus));
	uint32_t core, number;
	const char *name;
	int ret;

	*rows = calloc(ROWS_MAX, sizeof(**rows));
	*nr = 0;
	ret = cpus && *rows ? 0 : -ENOMEM;
	for (size_t at = 0; !ret && at < header->string_table_length && *nr < ROWS_MAX;
	     at += strlen(header->strings + at) + 1) {
		name = kb_core_fact(header->strings + at, prefix, &core, &number);
		if (name && *name && core < header->max_cores)
			add_row(*rows, nr, name);
	}
	for (uint32_t i = 0; !ret && i < *nr; i++) {
		mark_cpus(header, prefix, (*rows)[i].name, cpus);
		(*rows)[i].cpus = cpus_text(header, cpus);
		ret = (*rows)[i].cpus ? 0 : -ENOMEM;
	}
	free(cpus);
	if (ret) {
		kb_uncounted_free(*rows, *nr);
		*rows = NULL;
		*nr = 0;
	}
	return ret;
}

int kb_uncounted_read(const struct kb_header *header, struct kb_uncounted **rows, uint32_t *nr)
{
	return read_rows(header, "kbarman.uncounted.", rows, nr);
}

int kb_unsampled_read(const struct kb_header *header, struct kb_uncounted **rows, uint32_t *nr)
{
	return read_rows(header, "kbarman.unsampled.", rows, nr);
}

void kb_uncounted_free(struct kb_uncounted *rows, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++)
		free(rows[i].cpus);
	free(rows);
}

/* ---- sums ---- */

struct sum {
	bool told;
	uint64_t counted, unrecorded, sum;
};

struct kb_counted {
	uint32_t max_cores;
	uint32_t *first;	/* max_cores + 1 */
	bool *seen;		/* cores with records. A copy of the map of one CPU has no others */
	struct sum *sums;	/* by first[core] + counter */
};

static struct sum *sum_at(const struct kb_counted *counted, uint32_t core, uint32_t index)
{
	return core < counted->max_cores &&
	       index < counted->first[core + 1] - counted->first[core] ?
		       &counted->sums[counted->first[core] + index] : NULL;
}

static bool take_counted(struct kb_counted *counted, const char *string)
{
	uint32_t core, index;
	const char *value = kb_core_fact(string, "kbarman.counted.", &core, &index);
	struct sum *sum = value ? sum_at(counted, core, index) : NULL;

	if (!sum || sscanf(value, "%" SCNu64 ",%" SCNu64, &sum->counted, &sum->unrecorded) != 2)
		return false;
	sum->told = true;
	return true;
}

/* CPUs whose records were overwritten have not all of them. */
static int forget_overwritten(struct kb_counted *counted, const struct kb_header *header)
{
	bool *cores = calloc((size_t)header->max_cores + 1, sizeof(*cores));

	if (!cores)
		return -ENOMEM;
	kb_losses_overwritten(header, cores);
	for (uint32_t core = 0; core < header->max_cores; core++)
		for (uint32_t i = counted->first[core]; cores[core] && i < counted->first[core + 1];
		     i++)
			counted->sums[i].told = false;
	free(cores);
	return 0;
}

static int allocate(struct kb_counted *counted, const struct kb_header *header)
{
	uint32_t total = 0;

	counted->max_cores = header->max_cores;
	counted->first = calloc((size_t)header->max_cores + 1, sizeof(*counted->first));
	if (!counted->first)
		return -ENOMEM;
	for (uint32_t core = 0; core < header->max_cores; core++) {
		counted->first[core] = total;
		if (header->pmus[core].num_counters > UINT32_MAX / 2 - total)
			return -ENOMEM;
		total += header->pmus[core].num_counters;
	}
	counted->first[header->max_cores] = total;
	counted->seen = calloc((size_t)header->max_cores + 1, sizeof(*counted->seen));
	counted->sums = calloc((size_t)total + 1, sizeof(*counted->sums));
	return counted->seen && counted->sums ? 0 : -ENOMEM;
}

int kb_counted_create(struct kb_counted **out, const struct kb_header *header)
{
	struct kb_counted *counted = calloc(1, sizeof(*counted));
	int ret = counted ? allocate(counted, header) : -ENOMEM;
	bool any = false;

	*out = NULL;
	for (size_t at = 0; !ret && at < header->string_table_length;
	     at += strlen(header->strings + at) + 1)
		any |= take_counted(counted, header->strings + at);
	if (!ret && any)
		ret = forget_overwritten(counted, header);
	if (ret || !any)
		kb_counted_destroy(counted);
	else
		*out = counted;
	return ret;
}

void kb_counted_destroy(struct kb_counted *counted)
{
	if (!counted)
		return;
	free(counted->first);
	free(counted->seen);
	free(counted->sums);
	free(counted);
}

void kb_counted_feed(struct kb_counted *counted, const struct kb_event *event)
{
	if (event->core < counted->max_cores)
		counted->seen[event->core] = true;
	if (event->type != KB_EVENT_SAMPLE)
		return;
	for (uint32_t i = 0; i < event->sample.nr_counters; i++) {
		struct sum *sum = sum_at(counted, event->core, i);

		if (sum && event->sample.counters[i] != KB_COUNTER_INVALID)
			sum->sum += event->sample.counters[i];
	}
}

bool kb_counted_next(const struct kb_counted *counted, struct kb_miscounted *difference)
{
	uint32_t core = difference->core, index = difference->next;

	for (; core < counted->max_cores; core++, index = 0) {
		for (; index < counted->first[core + 1] - counted->first[core]; index++) {
			const struct sum *sum = &counted->sums[counted->first[core] + index];

			if (!counted->seen[core] || !sum->told ||
			    sum->sum + sum->unrecorded == sum->counted)
				continue;
			*difference = (struct kb_miscounted){
				.core = core, .index = index, .next = index + 1,
				.counted = sum->counted, .unrecorded = sum->unrecorded,
				.sum = sum->sum,
			};
			return true;
		}
	}
	return false;
}
