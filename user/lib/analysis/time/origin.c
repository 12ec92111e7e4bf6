// SPDX-License-Identifier: MIT
/* Names of who ran, woke or interrupted. */
#include <inttypes.h>
#include <stdio.h>

#include "analysis/facts/capture_names.h"
#include "analysis/time/origin.h"

static void name_irq(struct kb_trace *trace, const struct kb_origin *origin, char *name, size_t size)
{
	const struct kb_names *names = kb_trace_names(trace, NULL);
	struct kb_text text = kb_text(NULL);

	if (names)
		text = kb_names_irq(names, origin->id, origin->behind);
	if (text.length)
		snprintf(name, size, "%.*s", (int)text.length, text.data);
	else
		snprintf(name, size, "irq %" PRIu32, origin->id);
}

static void name_softirq(uint32_t id, char *name, size_t size)
{
	const char *known = kb_softirq_name(id);

	if (known)
		snprintf(name, size, "%s", known);
	else
		snprintf(name, size, "softirq %" PRIu32, id);
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
		name_softirq(origin->id, name, size);
	else if (origin->kind == KB_TILE_IPI)
		snprintf(name, size, "%s", kb_ipi_name(origin->id));
	else if (origin->kind == KB_TILE_IRQ)
		name_irq(trace, origin, name, size);
	else
		snprintf(name, size, "unknown");
	return name;
}

const char *kb_origin_call(struct kb_trace *trace, const struct kb_origin *origin)
{
	const struct kb_names *names = origin->call ? kb_trace_names(trace, NULL) : NULL;

	return names ? kb_names_numbered_call(names, false, (uint32_t)origin->call - 1) : NULL;
}

const char *kb_origin_kind(enum kb_tile_kind kind)
{
	static const char *const names[KB_TILE_KINDS] = {
		[KB_TILE_UNKNOWN] = "unknown",	[KB_TILE_LOST] = "lost",
		[KB_TILE_TASK] = "task",	[KB_TILE_IDLE] = "idle",
		[KB_TILE_HALT] = "halt",	[KB_TILE_SOFTIRQ] = "softirq",
		[KB_TILE_IRQ] = "irq",		[KB_TILE_IPI] = "ipi",
	};

	return (unsigned int)kind < KB_TILE_KINDS ? names[kind] : "unknown";
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
