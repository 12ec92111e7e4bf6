// SPDX-License-Identifier: MIT
/* Names of who ran, woke or interrupted. Linux's names of softirqs do not change. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <kbarman/text.h>

#include "analysis/origin.h"
#include "base/array.h"

static const char *const softirqs[] = {
	"HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU",
};

static const char *const ipis[] = {
	[KB_IPI_OTHER] = "IPI",			[KB_IPI_TIMER] = "timer",
	[KB_IPI_RESCHEDULE] = "reschedule",	[KB_IPI_CALL] = "call",
	[KB_IPI_CALL_ONE] = "call_one",		[KB_IPI_WORK] = "work",
	[KB_IPI_TICK] = "tick",			[KB_IPI_STOP] = "stop",
};

/* One handler of "a, b, c", which has @behind others behind it; all of them if it has not so many. */
static struct kb_text handler(const char *names, unsigned int behind)
{
	const char *begin = names, *end = names + strlen(names), *comma;
	unsigned int nr = 1;

	for (comma = names; (comma = strstr(comma, ", ")); comma += 2)
		nr++;
	if (behind >= nr)
		return kb_text(names);
	for (nr -= behind + 1; nr; nr--)
		begin = strstr(begin, ", ") + 2;
	comma = strstr(begin, ", ");
	return (struct kb_text){ begin, (size_t)((comma ? comma : end) - begin) };
}

static void name_irq(struct kb_trace *trace, const struct kb_origin *origin, char *name, size_t size)
{
	const char *names;
	struct kb_text text;
	char key[24];

	snprintf(key, sizeof(key), "irq.%" PRIu32, origin->id);
	names = kb_barman_fact(kb_trace_barman(trace), key);
	if (names && *names) {
		text = handler(names, origin->behind);
		snprintf(name, size, "%.*s", (int)text.length, text.data);
	} else {
		snprintf(name, size, "irq %" PRIu32, origin->id);
	}
}

static void name_number(const char *const *names, size_t nr, const char *what, uint32_t id,
			char *name, size_t size)
{
	if (id < nr)
		snprintf(name, size, "%s", names[id]);
	else
		snprintf(name, size, "%s %" PRIu32, what, id);
}

char *kb_origin_name(struct kb_trace *trace, const struct kb_origin *origin, uint64_t ticks,
		     char *name, size_t size)
{
	const struct kb_tasks *tasks = kb_trace_tasks(trace, NULL);
	char buffer[KB_TASK_NAME_BUFFER];

	if (origin->kind == KB_TILE_TASK && tasks)
		snprintf(name, size, "%s", kb_tasks_name(tasks, origin->id, ticks, buffer));
	else if (origin->kind == KB_TILE_IDLE)
		snprintf(name, size, "idle");
	else if (kb_origin_interrupts(origin->kind) && origin->id == KB_ORIGIN_ANY)
		snprintf(name, size, "%s", origin->kind == KB_TILE_SOFTIRQ ? "a softirq"
									   : "an interrupt");
	else if (origin->kind == KB_TILE_SOFTIRQ)
		name_number(softirqs, ARRAY_SIZE(softirqs), "softirq", origin->id, name, size);
	else if (origin->kind == KB_TILE_IPI)
		name_number(ipis, ARRAY_SIZE(ipis), "IPI", origin->id, name, size);
	else if (origin->kind == KB_TILE_IRQ)
		name_irq(trace, origin, name, size);
	else
		snprintf(name, size, "unknown");
	return name;
}

const char *kb_part_name(enum kb_part part)
{
	static const char *const names[KB_PARTS] = {
		[KB_PART_WAKING] = "waking",	[KB_PART_HALT] = "halt",
		[KB_PART_AWAKE] = "idle",	[KB_PART_TASK] = "queue",
		[KB_PART_SOFTIRQ] = "softirq",	[KB_PART_IRQ] = "irq",
		[KB_PART_UNKNOWN] = "unknown",
	};

	return (unsigned int)part < KB_PARTS ? names[part] : "unknown";
}
