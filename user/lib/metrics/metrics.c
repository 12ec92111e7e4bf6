// SPDX-License-Identifier: MIT
/* See <kbarman/metrics.h>. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kbarman/metrics.h>

#include "metrics/facts.h"
#include "metrics/formula.h"

static bool is_word(const char *word, size_t length, const char *name)
{
	return strlen(name) == length && !memcmp(word, name, length);
}

static bool is_called(const struct kb_metric *metric, const char *word, size_t length)
{
	return is_word(word, length, metric->name) ||
	       (*metric->group && is_word(word, length, metric->group)) ||
	       is_word(word, length, "all");
}

bool kb_metric_is_in(const struct kb_metric *metric, const char *list)
{
	for (;; list++) {
		size_t length = strcspn(list, ",");

		if (is_called(metric, list, length))
			return true;
		list += length;
		if (!*list)
			return false;
	}
}

int kb_metrics_check(const char *list, struct kb_error *err)
{
	for (;; list++) {
		size_t length = strcspn(list, ",");
		bool known = false;

		for (const struct kb_metric *m = kb_metrics_all(); m->name && !known; m++)
			known = is_called(m, list, length);
		if (!known)
			return kb_error_set(err, -ENOENT, KB_NO_OFFSET,
					    "'%.*s' is no metric: 'kbarman list --metrics' shows them",
					    (int)(length < 40 ? length : 40), list);
		list += length;
		if (!*list)
			return 0;
	}
}

struct events {
	const char **events;
	unsigned int nr;
	char *text;
	size_t size;
};

static void add_event(void *context, const char *name)
{
	struct events *e = context;
	size_t length = strlen(name) + 1;

	if (*name == '$' || e->nr == KB_METRIC_EVENTS_MAX || length > e->size)
		return;
	for (unsigned int i = 0; i < e->nr; i++)
		if (!strcmp(e->events[i], name))
			return;
	memcpy(e->text, name, length);
	e->events[e->nr++] = e->text;
	e->text += length;
	e->size -= length;
}

unsigned int kb_metric_events(const struct kb_metric *metric,
			      const char *events[KB_METRIC_EVENTS_MAX], char *text, size_t size)
{
	struct events e = { .events = events, .size = size };

	e.text = text;
	kb_formula_names(metric->formula, add_event, &e);
	return e.nr;
}

struct evaluation {
	kb_metric_lookup lookup;
	void *context;
	double part;
	unsigned int together;		/* the number of all events until now */
	bool any, apart;		/* an event was met; events differ in the number */
};

static bool find_count(void *context, const char *name, struct kb_range *range)
{
	struct evaluation *e = context;
	struct kb_metric_count count = { .part = 1 };
	double seen;

	if (!e->lookup(e->context, name, &count))
		return false;
	if (*name == '$')
		count.part = 1;
	seen = count.value * count.part;
	*range = (struct kb_range){ count.value, seen, 2 * count.value - seen };
	if (count.has_error) {
		range->low = count.value > count.error ? count.value - count.error : 0;
		range->high = count.value + count.error;
	}
	if (count.part < e->part)
		e->part = count.part;
	if (*name == '$')
		return true;
	if (count.has_error || (e->any && (!count.together || count.together != e->together)))
		e->apart = true;
	e->any = true;
	e->together = count.together;
	return true;
}

int kb_metric_evaluate(const struct kb_metric *metric, kb_metric_lookup lookup, void *context,
		       struct kb_metric_value *value)
{
	struct evaluation e = { .lookup = lookup, .context = context, .part = 1 };
	struct kb_range range;
	int ret = kb_formula_evaluate(metric->formula, find_count, &e, &range);

	if (ret)
		return ret;
	if (!isfinite(range.value))
		return -ERANGE;
	*value = (struct kb_metric_value){ range.value, range.low, range.high, e.part };
	if (!e.apart && e.together)
		value->low = value->high = range.value;
	return 0;
}

size_t kb_metric_pmu(const char *counter)
{
	const char *slash = strchr(counter, '/');

	return slash ? (size_t)(slash - counter) : 0;
}

bool kb_metric_is_event(const char *counter, const char *name)
{
	const char *slash = strchr(counter, '/');
	char event[KB_NAME_MAX];
	size_t length;

	if (slash)
		counter = slash + 1;
	length = strcspn(counter, slash ? "/" : ":");
	if (length >= sizeof(event))
		return false;
	memcpy(event, counter, length);
	event[length] = '\0';
	return !strcmp(kb_metric_usual_name(event), kb_metric_usual_name(name));
}

const char *kb_metric_text(const struct kb_metric *metric, double value, char text[32])
{
	if (!strcmp(metric->unit, "1"))
		snprintf(text, 32, "%.2f%%", 100 * value);
	else
		snprintf(text, 32, "%.3f", value);
	return text;
}
