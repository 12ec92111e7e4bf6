// SPDX-License-Identifier: MIT
/* See filters.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "filters.h"

/* "FROM,TO" in seconds, as ns. */
static bool parse_time(const char *text, uint64_t *from, uint64_t *until)
{
	double seconds[2] = { 0, 1e9 };
	char *end;
	int i;

	for (i = 0; i < 2; i++) {
		if (*text && *text != ',') {
			seconds[i] = strtod(text, &end);
			if (end == text || !(seconds[i] >= 0 && seconds[i] <= 1e9))
				return false;
			text = end;
		}
		if (i == 0 && *text++ != ',')
			return false;
	}
	*from = seconds[0] * 1e9;
	*until = seconds[1] * 1e9;
	return *text == '\0' && *from <= *until;
}

static bool parse_id(const char *text, uint32_t *id)
{
	unsigned long value;
	char *end;

	errno = 0;
	value = strtoul(text, &end, 10);
	*id = value;
	return *text >= '0' && *text <= '9' && !*end && !errno && value <= UINT32_MAX;
}

/* Adds an option to the text: "task xz, cpu 0-3". */
static enum filters_taken note(struct filters *filters, const char *name, const char *value)
{
	char *text;

	if (asprintf(&text, "%s%s%s %s", filters->text ? filters->text : "",
		     filters->text ? ", " : "", name, value) < 0) {
		cli_fail("out of memory");
		return FILTERS_WRONG;
	}
	free(filters->text);
	filters->text = text;
	return FILTERS_TAKEN;
}

static enum filters_taken take_cpus(struct filters *filters, const char *value)
{
	struct kb_error err = { 0 };
	int nr = kb_cpulist_parse(filters->cpus, value, KB_CPUS_MAX, &err);

	if (nr < 0) {
		cli_fail_error(&err);
		return FILTERS_WRONG;
	}
	filters->how.cpus = filters->cpus;
	filters->how.nr_cpu_words = nr;
	return note(filters, "cpu", value);
}

enum filters_taken filters_take(struct filters *filters, int option, const char *value)
{
	struct kb_filter *how = &filters->how;

	how->size = sizeof(*how);
	switch (option) {
	case 'C':
		return take_cpus(filters, value);
	case OPTION_FILTER_TASK:
		how->task = value;
		return note(filters, "task", value);
	case OPTION_FILTER_TID:
		how->has_tid = true;
		if (parse_id(value, &how->tid))
			return note(filters, "tid", value);
		cli_fail("--tid %s: give the number of a task or process", value);
		return FILTERS_WRONG;
	case OPTION_FILTER_TIME:
		how->has_time = true;
		if (parse_time(value, &how->from, &how->until))
			return note(filters, "time", value);
		cli_fail("--time %s: give FROM,TO in seconds", value);
		return FILTERS_WRONG;
	}
	return FILTERS_OTHER;
}

const struct kb_filter *filters_get(const struct filters *filters)
{
	return filters->text ? &filters->how : NULL;
}

void filters_release(struct filters *filters)
{
	free(filters->text);
	filters->text = NULL;
}
