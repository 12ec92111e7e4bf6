// SPDX-License-Identifier: MIT
/* The list of expressions. Each has a place of its own in memory, so that a pointer to one holds. */
#include <errno.h>
#include <stdlib.h>

#include <uapi/kbarman.h>

#include "base/array.h"
#include "trigger/triggers.h"

struct kb_triggers {
	struct kb_trigger **rows;
	uint32_t nr, room;
};

int kb_triggers_create(struct kb_triggers **out, struct kb_error *err)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
}

void kb_triggers_destroy(struct kb_triggers *triggers)
{
	if (!triggers)
		return;
	for (uint32_t i = 0; i < triggers->nr; i++) {
		kb_trigger_release(triggers->rows[i]);
		free(triggers->rows[i]);
	}
	free(triggers->rows);
	free(triggers);
}

int kb_triggers_add(struct kb_triggers *triggers, const char *expression, struct kb_error *err)
{
	struct kb_trigger *trigger;
	int ret;

	if (!KB_ARRAY_ROOM(triggers->rows, triggers->room, (size_t)triggers->nr + 1))
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	trigger = malloc(sizeof(*trigger));
	if (!trigger)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	ret = kb_trigger_parse(trigger, expression, err);
	if (ret) {
		free(trigger);
		return ret;
	}
	triggers->rows[triggers->nr++] = trigger;
	return 0;
}

uint32_t kb_triggers_nr(const struct kb_triggers *triggers)
{
	return triggers->nr;
}

const struct kb_trigger *kb_triggers_get(const struct kb_triggers *triggers, uint32_t i)
{
	return triggers->rows[i];
}

uint32_t kb_triggers_sources(const struct kb_triggers *triggers)
{
	uint32_t sources = 0;

	for (uint32_t i = 0; i < triggers->nr; i++) {
		switch (triggers->rows[i]->kind) {
		case KB_TRIGGER_LATENCY:
		case KB_TRIGGER_WAKEUP:
			sources |= KBARMAN_SOURCE_SCHED | KBARMAN_SOURCE_WAKE;
			break;
		case KB_TRIGGER_IRQ:
			sources |= KBARMAN_SOURCE_IRQ | KBARMAN_SOURCE_SOFTIRQ;
			break;
		case KB_TRIGGER_OFF_CPU:
		case KB_TRIGGER_WAIT:
			sources |= KBARMAN_SOURCE_SCHED;
			break;
		case KB_TRIGGER_SYSCALL:
			sources |= KBARMAN_SOURCE_SYSCALLS;
			break;
		case KB_TRIGGER_BLOCK:
			sources |= KBARMAN_SOURCE_BLOCK;
			break;
		case KB_TRIGGER_MARK:
			sources |= KBARMAN_SOURCE_MARKS;
			break;
		default:
			break;
		}
	}
	return sources;
}

bool kb_triggers_need_objects(const struct kb_triggers *triggers)
{
	for (uint32_t i = 0; i < triggers->nr; i++)
		if (triggers->rows[i]->kind == KB_TRIGGER_WAIT)
			return true;
	return false;
}
