// SPDX-License-Identifier: MIT
/* One pass over the string table: there are few facts, but may be many CPUs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <uapi/kbarman.h>

#include "analysis/facts/losses_read.h"
#include "base/array.h"
#include "base/text/utf8.h"

static const char *const loss_names[] = {
	[KBARMAN_LOST_FULL]	= "full",
	[KBARMAN_LOST_NESTED]	= "nested",
	[KBARMAN_LOST_TOO_BIG]	= "too_big",
	[KBARMAN_LOST_RATE]	= "rate",
};

static const char *const miss_names[] = {
	[KBARMAN_MISSED_TASK]	= "task",
	[KBARMAN_MISSED_MAP]	= "map",
	[KBARMAN_MISSED_STRING]	= "string",
	[KBARMAN_MISSED_QUEUE]	= "queue",
	[KBARMAN_MISSED_MEMORY]	= "memory",
	[KBARMAN_MISSED_COUNTER] = "counter",
	[KBARMAN_MISSED_SERIES] = "series",
};

const char *kb_loss_name(unsigned int loss)
{
	return loss < KBARMAN_LOST_REASONS ? loss_names[loss] : NULL;
}

const char *kb_miss_name(unsigned int miss)
{
	return miss < KBARMAN_MISS_REASONS ? miss_names[miss] : NULL;
}

static const struct {
	const char *what, *advice;
} advices[] = {
	{ "full", "record with larger rings (-m) or fewer samples (-F, -c)" },
	{ "nested", "record with larger rings (-m)" },
	{ "too_big", "record with larger rings (-m) or shorter call chains (--max-stack)" },
	{ "rate", "have programs write fewer marks: each user can write 20000 a second" },
	{ "task", "record with room for more tasks (--max-tasks): the task table was full" },
	{ "map", "record with room for more tasks (--max-tasks): the map table was full" },
	{ "string", "record with room for more tasks (--max-tasks): the string table was full" },
	{ "queue", "code was mapped too fast, so some of it has no names: record fewer processes" },
	{ "memory", "the kernel was short of memory, so some mapped code has no names" },
	{ "counter", "some counter values could not be read and are left out" },
};

const char *kb_loss_advice(const char *what)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(advices); i++)
		if (strcmp(what, advices[i].what) == 0)
			return advices[i].advice;
	return "record again with larger rings (-m)";
}

/* Parse "CPU" at *@at and move behind it. */
static bool parse_core(const char **at, uint32_t *core)
{
	unsigned long value;
	char *end;

	errno = 0;
	value = strtoul(*at, &end, 10);
	if (end == *at || errno || value > UINT32_MAX)
		return false;
	*core = value;
	*at = end;
	return true;
}

static bool parse_count(const char *at, uint64_t *count)
{
	char *end;

	errno = 0;
	*count = strtoull(at, &end, 10);
	return end != at && *end == '\0' && !errno;
}

static int add_row(struct kb_loss **rows, uint32_t *nr, uint32_t core, const char *what,
		   size_t length, uint64_t count)
{
	struct kb_loss *row, *grown = reallocarray(*rows, (size_t)*nr + 1, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	*rows = grown;
	row = &grown[(*nr)++];
	*row = (struct kb_loss) { .core = core, .count = count };
	/* The text is printed unchanged later, so make it printable here. */
	kb_utf8_shown(row->what, what, length < sizeof(row->what) ? length : sizeof(row->what) - 1);
	return 0;
}

static int take_fact(struct kb_losses *losses, const char *string)
{
	static const char prefix[] = "kbarman.";
	const char *fact = string + strlen(prefix), *equals, *at;
	uint32_t core;
	uint64_t count;

	if (strncmp(string, prefix, strlen(prefix)) != 0)
		return 0;
	equals = strchr(fact, '=');
	if (!equals || !parse_count(equals + 1, &count))
		return 0;
	if (strncmp(fact, "written.", 8) == 0) {
		losses->stated = true;
		losses->written += count;
	} else if (strncmp(fact, "overwritten.", 12) == 0) {
		losses->overwritten += count;
	} else if (strncmp(fact, "missed.", 7) == 0) {
		return add_row(&losses->missed, &losses->nr_missed, 0, fact + 7,
			       equals - fact - 7, count);
	} else if (strncmp(fact, "lost.", 5) == 0) {
		at = fact + 5;
		if (!parse_core(&at, &core) || *at != '.')
			return 0;
		losses->stated = true;
		losses->lost += count;
		return add_row(&losses->rows, &losses->nr_rows, core, at + 1, equals - at - 1,
			       count);
	} else if (strncmp(fact, "stopped.", 8) == 0) {
		at = fact + 8;
		if (!parse_core(&at, &core) || *at != '.')
			return 0;
		return add_row(&losses->stopped, &losses->nr_stopped, core, at + 1,
			       equals - at - 1, count);
	}
	return 0;
}

static int compare(const void *left, const void *right)
{
	const struct kb_loss *a = left, *b = right;

	if (a->core != b->core)
		return a->core < b->core ? -1 : 1;
	return strcmp(a->what, b->what);
}

int kb_losses_read(struct kb_losses *losses, const struct kb_barman *barman)
{
	const struct kb_header *header = kb_barman_header(barman);
	size_t at;

	*losses = (struct kb_losses) { 0 };
	for (at = 0; at < header->string_table_length; at += strlen(header->strings + at) + 1) {
		if (take_fact(losses, header->strings + at)) {
			kb_losses_release(losses);
			return -ENOMEM;
		}
	}
	if (losses->nr_rows)
		qsort(losses->rows, losses->nr_rows, sizeof(*losses->rows), compare);
	if (losses->nr_missed)
		qsort(losses->missed, losses->nr_missed, sizeof(*losses->missed), compare);
	return 0;
}

void kb_losses_overwritten(const struct kb_header *header, bool *cores)
{
	static const char prefix[] = "kbarman.overwritten.";
	const char *fact;
	uint64_t count;
	uint32_t core;
	size_t at;

	for (at = 0; at < header->string_table_length; at += strlen(header->strings + at) + 1) {
		if (strncmp(header->strings + at, prefix, strlen(prefix)) != 0)
			continue;
		fact = header->strings + at + strlen(prefix);
		if (parse_core(&fact, &core) && *fact == '=' && parse_count(fact + 1, &count) &&
		    core < header->max_cores)
			cores[core] |= count != 0;
	}
}

uint32_t kb_losses_series(const struct kb_header *header)
{
	uint32_t i, series = UINT32_MAX;

	for (i = 0; i < header->nr_series; i++)
		if (header->series[i].name && strcmp(header->series[i].name, KB_LOST_SERIES) == 0)
			series = i;
	return series;
}

void kb_losses_release(struct kb_losses *losses)
{
	free(losses->rows);
	free(losses->missed);
	free(losses->stopped);
	*losses = (struct kb_losses) { 0 };
}
