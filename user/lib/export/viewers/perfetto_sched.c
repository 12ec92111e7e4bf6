// SPDX-License-Identifier: MIT
#include "base/array.h"
#include "export/viewers/perfetto_events.h"
#include "export/viewers/perfetto_fields.h"
#include "export/viewers/perfetto_sched.h"
#include "format/protobuf.h"

static const uint8_t fields[] = {
	[KB_SWITCH_TIMES] = COMPACT_SWITCH_TIMESTAMP,
	[KB_SWITCH_STATES] = COMPACT_SWITCH_PREV_STATE,
	[KB_SWITCH_TASKS] = COMPACT_SWITCH_NEXT_PID,
	[KB_SWITCH_PRIORITIES] = COMPACT_SWITCH_NEXT_PRIO,
	[KB_SWITCH_NAMES] = COMPACT_SWITCH_NEXT_COMM,
	[KB_WAKING_TIMES] = COMPACT_WAKING_TIMESTAMP,
	[KB_WAKING_TASKS] = COMPACT_WAKING_PID,
	[KB_WAKING_CPUS] = COMPACT_WAKING_TARGET_CPU,
	[KB_WAKING_PRIORITIES] = COMPACT_WAKING_PRIO,
	[KB_WAKING_NAMES] = COMPACT_WAKING_COMM,
	[KB_WAKING_FLAGS] = COMPACT_WAKING_FLAGS,
};

bool kb_perfetto_sched_full(const struct kb_perfetto_sched *sched)
{
	return sched->switches == KB_PERFETTO_SCHED_MAX || sched->wakings == KB_PERFETTO_SCHED_MAX ||
	       sizeof(sched->names) - sched->length < KB_PERFETTO_NAME;
}

static uint32_t number_of(struct kb_perfetto_sched *sched, uint32_t task,
			  const struct kb_task_name *name)
{
	unsigned int i = task % ARRAY_SIZE(sched->known);
	uint8_t *at = sched->names + sched->length;

	if (sched->known[i].name != name->name.data || sched->known[i].task != task) {
		at = kb_perfetto_put_task(at, COMPACT_INTERN_TABLE, name);
		sched->length = (uint32_t)(at - sched->names);
		sched->known[i].name = name->name.data;
		sched->known[i].task = task;
		sched->known[i].number = sched->nr_names++;
	}
	return sched->known[i].number;
}

void kb_perfetto_add_switch(struct kb_perfetto_sched *sched, uint64_t time, uint32_t state,
			    uint32_t task, const struct kb_task_name *name)
{
	uint32_t i = sched->switches++;

	sched->lists[KB_SWITCH_TIMES][i] = time - sched->last_switch;
	sched->lists[KB_SWITCH_STATES][i] = state;
	sched->lists[KB_SWITCH_TASKS][i] = task;
	sched->lists[KB_SWITCH_NAMES][i] = number_of(sched, task, name);
	sched->last_switch = time;
}

void kb_perfetto_add_waking(struct kb_perfetto_sched *sched, uint64_t time, uint32_t flags,
			    uint32_t task, const struct kb_task_name *name, uint32_t cpu)
{
	uint32_t i = sched->wakings++;

	sched->lists[KB_WAKING_TIMES][i] = time - sched->last_waking;
	sched->lists[KB_WAKING_TASKS][i] = task;
	sched->lists[KB_WAKING_CPUS][i] = cpu;
	sched->lists[KB_WAKING_NAMES][i] = number_of(sched, task, name);
	sched->lists[KB_WAKING_FLAGS][i] = flags;
	sched->last_waking = time;
}

void kb_perfetto_forget_sched(struct kb_perfetto_sched *sched)
{
	memset(sched->known, 0, sizeof(sched->known));
	sched->last_switch = sched->last_waking = 0;
	sched->switches = sched->wakings = sched->nr_names = sched->length = 0;
}

static uint8_t *put_list(uint8_t *at, uint32_t field, const uint64_t *values, uint32_t nr)
{
	uint8_t *list = kb_proto_begin(at, field, KB_PROTO_EVENT);

	at = list;
	for (uint32_t i = 0; i < nr; i++)
		at = kb_proto_put_varint(at, values[i]);
	return kb_proto_end(list, at, KB_PROTO_EVENT);
}

uint8_t *kb_perfetto_put_sched(uint8_t *at, struct kb_perfetto_sched *sched)
{
	uint8_t *message = kb_proto_begin(at, BUNDLE_COMPACT_SCHED, KB_PROTO_PACKET);
	uint32_t list, nr;

	if (!sched->switches && !sched->wakings)
		return at;
	memcpy(message, sched->names, sched->length);
	at = message + sched->length;
	for (list = 0; list < KB_PERFETTO_LISTS; list++) {
		nr = list < KB_WAKING_TIMES ? sched->switches : sched->wakings;
		if (nr)
			at = put_list(at, fields[list], sched->lists[list], nr);
	}
	kb_perfetto_forget_sched(sched);
	return kb_proto_end(message, at, KB_PROTO_PACKET);
}
