// SPDX-License-Identifier: MIT
/* See filters.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/text/json.h"
#include "cli/base/filters.h"

#define SECONDS_MAX	UINT64_C(1000000000)
#define NOON_NS		(43200 * KB_NS_PER_S)

/* Local time, or UTC with a Z behind it, as seconds since 1970. */
static bool since_1970(struct tm *tm, bool utc, time_t *seconds)
{
	struct tm local;

	*seconds = timegm(tm);
	if (utc)
		return true;
	/* twice: the first guess may be on the other side of a change of the clocks */
	for (int i = 0; i < 2; i++) {
		time_t guess = *seconds;

		if (!localtime_r(&guess, &local))
			return false;
		*seconds = timegm(tm) - local.tm_gmtoff;
	}
	return true;
}

/* "Z", "+01:00", "+0100" or "+01": the seconds by which the clocks there are ahead of UTC. */
static bool parse_zone(const char *text, int *ahead)
{
	int digits[4] = { 0 };
	size_t nr = 0;

	*ahead = 0;
	if (!strcmp(text, "Z"))
		return true;
	if (*text != '+' && *text != '-')
		return false;
	for (const char *at = text + 1; *at; at++) {
		if (*at == ':' && at == text + 3)
			continue;
		if (*at < '0' || *at > '9' || nr == 4)
			return false;
		digits[nr++] = *at - '0';
	}
	*ahead = 3600 * (10 * digits[0] + digits[1]) + 60 * (10 * digits[2] + digits[3]);
	if (*text == '-')
		*ahead = -*ahead;
	return (nr == 2 || nr == 4) && abs(*ahead) <= 14 * 3600;
}

/* "[YYYY-MM-DD ]HH:MM[:SS[.FRACTION]][ZONE]", with a T instead of the blank, too. */
static bool parse_clock(const char *text, size_t length, uint64_t *ns, enum kb_filter_clock *clock)
{
	int date = 0, end = 0, year, month, day, hour, minute, ahead = 0;
	char copy[48], *rest, separator;
	double seconds = 0;
	struct tm tm;
	time_t whole;

	if (length >= sizeof(copy))
		return false;
	memcpy(copy, text, length);
	copy[length] = '\0';
	if (sscanf(copy, "%4d-%2d-%2d%c%n", &year, &month, &day, &separator, &date) != 4) {
		year = 1970;
		month = day = 1;
		date = 0;
	}
	if ((date && separator != ' ' && separator != 'T') || year < 1970 || year > 2037 ||
	    month < 1 || month > 12 || day < 1 || day > 31)
		return false;
	if (sscanf(copy + date, "%2d:%2d%n", &hour, &minute, &end) != 2 || hour < 0 || hour > 23 ||
	    minute < 0 || minute > 59)
		return false;
	rest = copy + date + end;
	if (*rest == ':')
		seconds = strtod(rest + 1, &rest);
	/* a time of the day has no zone: the local one is meant */
	if (!(seconds >= 0 && seconds < 61) || (*rest && (!date || !parse_zone(rest, &ahead))))
		return false;
	tm = (struct tm){ .tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = day,
			  .tm_hour = hour, .tm_min = minute };
	*clock = date ? KB_FILTER_UNIX : KB_FILTER_OF_DAY;
	/* a day that its month does not have becomes one of the next month */
	if (!since_1970(&tm, !date || *rest, &whole) || tm.tm_mday != day)
		return false;
	whole -= ahead;
	/* 1970 begins earlier in the east than in UTC */
	whole = whole > 0 ? whole : 0;
	*ns = (uint64_t)whole * KB_NS_PER_S + (uint64_t)(seconds * 1e9 + 0.5);
	return true;
}

/* A time of the clock, "@SECONDS" since 1970, or a length of time since the start of the capture. */
static bool parse_moment(const char *text, size_t length, uint64_t *ns, enum kb_filter_clock *clock)
{
	bool is_unix = *text == '@';

	if (memchr(text, ':', length))
		return parse_clock(text, length, ns, clock);
	if (is_unix)
		*clock = KB_FILTER_UNIX;
	return kb_duration_parse_part(text + is_unix, length - is_unix, KB_NS_PER_S, ns);
}

/* "FROM,TO". */
static bool parse_time(const char *text, struct kb_filter *how)
{
	size_t length = strcspn(text, ",");
	const char *to = text + length + 1;

	/* what a sandbox does not let it read later */
	tzset();
	how->from = 0;
	how->until = SECONDS_MAX * KB_NS_PER_S;
	how->from_clock = how->until_clock = KB_FILTER_CAPTURE;
	if (!text[length] || (length && !parse_moment(text, length, &how->from, &how->from_clock)) ||
	    (*to && !parse_moment(to, strlen(to), &how->until, &how->until_clock)))
		return false;
	if (how->from_clock != how->until_clock || how->from <= how->until)
		return true;
	/* over midnight */
	return how->from_clock == KB_FILTER_OF_DAY && how->from - how->until > NOON_NS;
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
		if (parse_time(value, how))
			return note(filters, "time", value);
		cli_fail("--time %s: give FROM,TO, in seconds since the beginning, or as local times: "
			 "14:03:07.2,14:03:09 or '2026-11-28 14:03,'", value);
		return FILTERS_WRONG;
	}
	return FILTERS_OTHER;
}

const struct kb_filter *filters_get(const struct filters *filters)
{
	return filters->text ? &filters->how : NULL;
}

static void put_list(struct kb_json *json, const char *key, const char *const *words)
{
	kb_json_array(json, key);
	for (; *words; words++)
		kb_json_string(json, NULL, *words);
	kb_json_array_end(json);
}

void filters_put_json(const struct filters *filters, struct kb_json *json, const char *const *whole,
		      const char *const *all_tasks)
{
	if (!filters->text)
		return;
	kb_json_string(json, "only", filters->text);
	put_list(json, "whole_capture", whole);
	if (filters->how.task || filters->how.has_tid)
		put_list(json, "all_tasks", all_tasks);
}

void filters_release(struct filters *filters)
{
	free(filters->text);
	filters->text = NULL;
}
