// SPDX-License-Identifier: MIT
/* See diff_conditions.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "diff_conditions.h"

static int misunderstood(const char *text)
{
	return cli_fail("--fail-if %s: give MEASURE[/NAME]:+PERCENT%%[@LEVEL], such as cpu:+2%%@95",
			text);
}

/* "+2%", and what is behind it. */
static bool take_limit(struct diff_condition *condition, const char *text, const char **rest)
{
	char *end;

	if (*text != '+' && *text != '-')
		return false;
	condition->falls = *text == '-';
	condition->limit = strtod(text, &end) / 100;
	if (end == text + 1 || *end != '%' || !isfinite(condition->limit) ||
	    condition->limit < -1)
		return false;
	*rest = end + 1;
	return true;
}

static bool take_level(struct diff_condition *condition, const char *text)
{
	char *end;

	if (!*text)
		return true;
	condition->level = strtod(text + 1, &end) / 100;
	return *text == '@' && end != text + 1 && !*end && condition->level > 0 &&
	       condition->level < 1;
}

int diff_condition_parse(struct diff_condition *condition, const char *text)
{
	const char *colon = strrchr(text, ':'), *slash = strchr(text, '/'), *rest;
	size_t length;

	*condition = (struct diff_condition){ .text = text };
	if (!colon || colon == text)
		return misunderstood(text);
	if (slash && slash > colon)
		slash = NULL;
	length = (size_t)((slash ? slash : colon) - text);
	condition->what = strndup(text, length);
	if (slash)
		condition->name = strndup(slash + 1, (size_t)(colon - slash - 1));
	if (!condition->what || (slash && !condition->name))
		return cli_fail("out of memory");
	if (!length || !take_limit(condition, colon + 1, &rest) || !take_level(condition, rest))
		return misunderstood(text);
	return CLI_OK;
}

void diff_condition_release(struct diff_condition *condition)
{
	free(condition->what);
	free(condition->name);
}

static bool is_what(const struct diff_condition *condition, const struct kb_diff_row *row)
{
	return !strcmp(condition->what, row->measure == KB_DIFF_COUNTER ?
					row->counter : kb_diff_measure_name(row->measure));
}

static bool is_named(const struct diff_condition *condition, const struct kb_diff_row *row)
{
	if (!condition->name)
		return row->by == KB_DIFF_TOTAL;
	return row->by != KB_DIFF_TOTAL && row->by != KB_DIFF_CHAIN &&
	       !strcmp(condition->name, row->name);
}

int diff_condition_check(const struct diff_condition *condition, const struct kb_diff *diff,
			 double level, bool *holds, const struct kb_diff_row **row)
{
	bool measured = false, found = false;

	*holds = false;
	for (uint32_t i = 0; i < diff->nr && !*holds; i++) {
		const struct kb_diff_row *at = &diff->rows[i];

		if (!is_what(condition, at))
			continue;
		measured = true;
		if (!is_named(condition, at) || isinf(at->error))
			continue;
		found = true;
		*row = at;
		*holds = kb_diff_exceeds(at, condition->limit, condition->falls) <=
			 1 - (condition->level > 0 ? condition->level : level);
	}
	if (!measured)
		return cli_fail("--fail-if %s: the captures have no '%s'", condition->text,
				condition->what);
	if (!found && !condition->name)
		return cli_fail("--fail-if %s: one capture a side can't say", condition->text);
	if (!found)
		return cli_fail("--fail-if %s: no task or function is called '%s'", condition->text,
				condition->name);
	return CLI_OK;
}
