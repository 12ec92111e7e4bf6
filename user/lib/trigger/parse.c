// SPDX-License-Identifier: MIT
/*
 * KIND[:NAME][>LIMIT]. A name may have any character, so the limit is behind the last '>', and a mark,
 * which has no limit, is all that is behind the colon.
 */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/duration.h"
#include "trigger/triggers.h"

#define LIMIT_MAX_NS	(3600 * KB_NS_PER_S)
#define WINDOW_US	1000000U
#define WINDOW_MIN_NS	(500 * KB_NS_PER_MS)	/* these two: Linux's PSI */
#define WINDOW_MAX_NS	(10 * KB_NS_PER_S)

/* What belongs to a kind. */
struct kind {
	const char *word;
	bool needs_name, has_limit;
	const char *example;
};

static const struct kind kinds[] = {
	[KB_TRIGGER_LATENCY]	= { "latency", false, true, "latency>5ms or latency:NAME>5ms" },
	[KB_TRIGGER_WAKEUP]	= { "wakeup", false, true, "wakeup>5ms or wakeup:NAME>5ms" },
	[KB_TRIGGER_IRQ]	= { "irq", false, true, "irq>1ms or irq:NAME>1ms" },
	[KB_TRIGGER_OFF_CPU]	= { "offcpu", true, true, "offcpu:NAME>1s" },
	[KB_TRIGGER_WAIT]	= { "wait", true, true, "wait:futex>5ms, wait:fsync>20ms or wait:pipe>1s" },
	[KB_TRIGGER_SYSCALL]	= { "syscall", true, true, "syscall:fsync>20ms" },
	[KB_TRIGGER_BLOCK]	= { "block", true, true, "block:vda>10ms" },
	[KB_TRIGGER_COUNTER]	= { "counter", true, true,
				    "counter:NAME>1M/s, or counter:NAME>80 for a series of values" },
	[KB_TRIGGER_MARK]	= { "mark", true, false, "mark:TEXT" },
	[KB_TRIGGER_PSI]	= { "psi", true, true, "psi:cpu>10% or psi:memory.full>5%/2s" },
	[KB_TRIGGER_SIGNAL]	= { "signal", true, false, "signal:USR1" },
	[KB_TRIGGER_BOOT]	= { "boot", true, false, "boot:crash" },
};

const char *kb_trigger_word(enum kb_trigger_kind kind)
{
	return (unsigned int)kind < ARRAY_SIZE(kinds) ? kinds[kind].word : "unknown";
}

static int wrong(struct kb_error *err, const struct kb_trigger *trigger, const char *why)
{
	return kb_error_set(err, -EINVAL, KB_NO_OFFSET, "the trigger '%s' %s: write %s", trigger->text,
			    why, kinds[trigger->kind].example);
}

/* ---- numbers ---- */

/* A number that is not negative; *@rest is behind it. */
static bool parse_number(const char *text, double *value, char **rest)
{
	if ((*text < '0' || *text > '9') && *text != '.')
		return false;
	*value = strtod(text, rest);
	return *rest != text && isfinite(*value) && *value >= 0;
}

static int take_time(struct kb_trigger *trigger, const char *limit, struct kb_error *err)
{
	if (!kb_duration_parse(limit, 0, &trigger->limit))
		return wrong(err, trigger, "has no time behind '>' (a number with ns, us, ms, s, m or h)");
	if (!trigger->limit || trigger->limit > (uint64_t)LIMIT_MAX_NS)
		return wrong(err, trigger, "has a time below 1 ns or above an hour");
	return 0;
}

/* A number with k, M or G, and with "/s". */
static int take_rate(struct kb_trigger *trigger, const char *limit, struct kb_error *err)
{
	static const char suffixes[] = "kMG";
	static const double factors[] = { 1e3, 1e6, 1e9 };
	const char *suffix;
	char *rest;

	if (!parse_number(limit, &trigger->scale, &rest))
		return wrong(err, trigger, "has no number behind '>'");
	suffix = *rest ? strchr(suffixes, *rest) : NULL;
	if (suffix) {
		trigger->scale *= factors[suffix - suffixes];
		rest++;
	}
	trigger->is_rate = !strcmp(rest, "/s");
	if (*rest && !trigger->is_rate)
		return wrong(err, trigger, "has something else than k, M, G or '/s' behind its number");
	trigger->limit = trigger->scale < 1e18 ? (uint64_t)trigger->scale : UINT64_MAX;
	return 0;
}

/* ---- PSI and signals ---- */

static int take_window(struct kb_trigger *trigger, const char *window, struct kb_error *err)
{
	uint64_t ns;

	trigger->window_us = WINDOW_US;
	if (!window)
		return 0;
	if (!kb_duration_parse(window, 0, &ns) || ns < WINDOW_MIN_NS || ns > WINDOW_MAX_NS)
		return wrong(err, trigger, "has a time behind '/' that is not from 500ms to 10s");
	trigger->window_us = ns / 1000;
	return 0;
}

static int take_pressure(struct kb_trigger *trigger, const char *limit, struct kb_error *err)
{
	static const char *const resources[] = { "cpu", "memory", "io", "irq" };
	char *name = (char *)trigger->name, *dot, *rest;
	double percent;
	size_t i = 0;

	if (!name)
		return wrong(err, trigger, "has no name");
	dot = strchr(name, '.');
	if (dot) {
		trigger->is_full = !strcmp(dot, ".full");
		if (!trigger->is_full && strcmp(dot, ".some") != 0)
			return wrong(err, trigger, "has something else than .some or .full behind its "
				     "resource");
		*dot = '\0';
	}
	while (i < ARRAY_SIZE(resources) && strcmp(resources[i], name) != 0)
		i++;
	if (i == ARRAY_SIZE(resources))
		return wrong(err, trigger, "is about none of cpu, memory, io and irq");
	if (!strcmp(name, "irq"))
		trigger->is_full = true;	/* Linux has no other */
	if (!parse_number(limit, &percent, &rest) || *rest != '%' || percent <= 0 || percent > 100 ||
	    (rest[1] && rest[1] != '/'))
		return wrong(err, trigger, "has no part of the time from 0% to 100% behind '>'");
	if (take_window(trigger, rest[1] ? rest + 2 : NULL, err))
		return -EINVAL;
	trigger->limit = (uint64_t)(percent / 100 * (double)trigger->window_us + 0.5);
	return trigger->limit ? 0 : wrong(err, trigger, "has a part of less than a microsecond");
}

/* Those that a program is free to use. */
static int take_signal(struct kb_trigger *trigger, struct kb_error *err)
{
	const char *name = trigger->name ?: "";
	char *rest = NULL;
	long number = -1;

	if (!strncmp(name, "SIG", 3))
		name += 3;
	if (!strcmp(name, "USR1"))
		trigger->signal = SIGUSR1;
	else if (!strcmp(name, "USR2"))
		trigger->signal = SIGUSR2;
	else if (!strcmp(name, "RTMIN"))
		trigger->signal = SIGRTMIN;
	else if (!strncmp(name, "RTMIN+", 6))
		number = strtol(name + 6, &rest, 10);
	if (rest && rest != name + 6 && !*rest && number >= 0 && number <= SIGRTMAX - SIGRTMIN)
		trigger->signal = SIGRTMIN + (int)number;
	return trigger->signal ? 0 :
	       wrong(err, trigger, "names none of USR1, USR2 and RTMIN+N");
}

/* ---- the expression ---- */

static int find_kind(struct kb_trigger *trigger, size_t length, struct kb_error *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (strlen(kinds[i].word) != length || memcmp(kinds[i].word, trigger->text, length) != 0)
			continue;
		trigger->kind = (enum kb_trigger_kind)i;
		return 0;
	}
	return kb_error_set(err, -EINVAL, KB_NO_OFFSET, "the trigger '%s' begins with an unknown word: "
			    "write one like latency>5ms, wakeup>5ms, irq>1ms, offcpu:NAME>1s, "
			    "wait:futex>5ms, syscall:fsync>20ms, block:vda>10ms, counter:NAME>1M/s, mark:TEXT, psi:cpu>10%%, "
			    "signal:USR1 or boot:crash",
			    trigger->text);
}

static int take_limit(struct kb_trigger *trigger, const char *limit, struct kb_error *err)
{
	switch (trigger->kind) {
	case KB_TRIGGER_COUNTER:
		return take_rate(trigger, limit, err);
	case KB_TRIGGER_PSI:
		return take_pressure(trigger, limit, err);
	default:
		return take_time(trigger, limit, err);
	}
}

static int parse(struct kb_trigger *trigger, struct kb_error *err)
{
	const char *text = trigger->text, *colon, *limit = NULL, *end;
	size_t word = strcspn(text, ":>");
	const struct kind *kind;

	if (find_kind(trigger, word, err))
		return -EINVAL;
	kind = &kinds[trigger->kind];
	colon = text[word] == ':' ? text + word : NULL;
	if (kind->has_limit)
		limit = strrchr(text, '>');
	end = limit ? limit : text + strlen(text);
	if (!kind->has_limit && text[word] == '>')
		return wrong(err, trigger, "has a limit, and there is none");
	if (colon && colon + 1 == end)
		return wrong(err, trigger, "has no name behind ':'");
	if (!colon && kind->needs_name)
		return wrong(err, trigger, "has no name");
	if (kind->has_limit && !limit)
		return wrong(err, trigger, "has no limit");
	if (colon) {
		trigger->name = strndup(colon + 1, (size_t)(end - colon - 1));
		if (!trigger->name)
			return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	}
	if (trigger->kind == KB_TRIGGER_SIGNAL)
		return take_signal(trigger, err);
	if (trigger->kind == KB_TRIGGER_BOOT && (!trigger->name || strcmp(trigger->name, "crash") != 0))
		return wrong(err, trigger, "names no crash");
	return limit ? take_limit(trigger, limit + 1, err) : 0;
}

int kb_trigger_parse(struct kb_trigger *trigger, const char *expression, struct kb_error *err)
{
	int ret;

	*trigger = (struct kb_trigger){ .text = strdup(expression) };
	if (!trigger->text)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	ret = parse(trigger, err);
	if (ret)
		kb_trigger_release(trigger);
	return ret;
}

void kb_trigger_release(struct kb_trigger *trigger)
{
	free((char *)trigger->text);
	free((char *)trigger->name);
	*trigger = (struct kb_trigger){ 0 };
}
