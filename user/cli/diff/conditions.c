// SPDX-License-Identifier: MIT
/* See conditions.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/cli.h"
#include "cli/diff/conditions.h"

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
	const char *colon = strrchr(text, ':'), *rest;

	*condition = (struct diff_condition){ .text = text };
	if (!colon || colon == text)
		return misunderstood(text);
	condition->subject = strndup(text, (size_t)(colon - text));
	if (!condition->subject)
		return cli_fail("out of memory");
	if (!take_limit(condition, colon + 1, &rest) || !take_level(condition, rest))
		return misunderstood(text);
	return CLI_OK;
}

void diff_condition_release(struct diff_condition *condition)
{
	free(condition->subject);
}

/*
 * What stands behind the measure of the row in the subject: "" or "/NAME". NULL: it is another one.
 * Names of counters may have '/' and ':', too.
 */
static const char *behind_measure(const struct diff_condition *condition,
				  const struct kb_diff_row *row)
{
	const char *what = row->measure == KB_DIFF_COUNTER ? row->counter :
							     kb_diff_measure_name(row->measure);
	size_t length = strlen(what);

	if (strncmp(condition->subject, what, length) != 0)
		return NULL;
	return condition->subject[length] && condition->subject[length] != '/' ?
	       NULL : condition->subject + length;
}

static bool is_named(const char *behind, const struct kb_diff_row *row)
{
	if (!*behind)
		return row->by == KB_DIFF_TOTAL;
	return row->by != KB_DIFF_TOTAL && row->by != KB_DIFF_CHAIN && !strcmp(behind + 1, row->name);
}

int diff_condition_check(const struct diff_condition *condition, const struct kb_diff *diff,
			 double level, bool *holds, const struct kb_diff_row **row)
{
	bool measured = false, named = false, found = false;

	*holds = false;
	for (uint32_t i = 0; i < diff->nr && !*holds; i++) {
		const struct kb_diff_row *at = &diff->rows[i];
		const char *behind = behind_measure(condition, at);

		measured |= behind != NULL;
		if (!behind || !is_named(behind, at))
			continue;
		named = true;
		if (isinf(at->error))
			continue;
		found = true;
		*row = at;
		*holds = kb_diff_exceeds(at, condition->limit, condition->falls) <=
			 1 - (condition->level > 0 ? condition->level : level);
	}
	if (!measured)
		return cli_fail("--fail-if %s: the captures have no '%s'", condition->text,
				condition->subject);
	if (!named)
		return cli_fail("--fail-if %s: no task, function or handler is called so",
				condition->text);
	return found ? CLI_OK : cli_fail("--fail-if %s: one capture a side can't say",
					 condition->text);
}
