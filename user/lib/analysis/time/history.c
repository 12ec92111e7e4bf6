// SPDX-License-Identifier: MIT
/*
 * A ring of tiles for each CPU. Each entry has the sums of all tiles before it, so the sums of any
 * time are the difference of those at its ends.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/time/history.h"
#include "analysis/time/origin.h"
#include "base/bisect.h"

#define SUMS		5U		/* parts with a sum, from KB_PART_HALT on */
#define ENTRIES_MAX	4096U
#define ENTRIES_MIN	64U
#define ENTRIES_ALL	(16U * 1024 * 1024 / sizeof(struct entry))

struct entry {
	int64_t start;
	uint64_t sums[SUMS];		/* ns in each part before `start` */
	uint32_t id;			/* of the task, softirq, interrupt */
	uint16_t behind;
	uint8_t kind : 6;
	uint8_t halts : 1;		/* or an interrupt inside of the halt: */
	uint8_t halt_ends : 1;		/* ... with this entry */
	uint8_t state;			/* ... idle state + 1 */
};

struct cpu {
	struct entry *ring;
	uint64_t nr;			/* entries so far: also those that are no longer there */
	int64_t end;			/* of the last tile */
	uint64_t sums[SUMS];		/* up to there */
};

struct kb_history {
	uint32_t max_cores, room;	/* entries of a ring, a power of two */
	uint64_t left;			/* entries that may still be allocated */
	struct cpu *cpus;
};

int kb_history_create(struct kb_history **out, uint32_t max_cores)
{
	struct kb_history *history = calloc(1, sizeof(*history));

	if (history)
		history->cpus = calloc((size_t)max_cores + 1, sizeof(*history->cpus));
	if (!history || !history->cpus) {
		free(history);
		return -ENOMEM;
	}
	history->max_cores = max_cores;
	history->left = ENTRIES_ALL;
	history->room = ENTRIES_MAX;
	while (history->room > ENTRIES_MIN && (uint64_t)history->room * max_cores > ENTRIES_ALL)
		history->room /= 2;
	*out = history;
	return 0;
}

void kb_history_destroy(struct kb_history *history)
{
	uint32_t i;

	if (!history)
		return;
	for (i = 0; i < history->max_cores; i++)
		free(history->cpus[i].ring);
	free(history->cpus);
	free(history);
}

enum kb_part kb_history_part(enum kb_tile_kind kind)
{
	static const enum kb_part parts[KB_TILE_KINDS] = {
		[KB_TILE_UNKNOWN] = KB_PART_UNKNOWN,	[KB_TILE_LOST] = KB_PART_UNKNOWN,
		[KB_TILE_TASK] = KB_PART_TASK,		[KB_TILE_IDLE] = KB_PART_AWAKE,
		[KB_TILE_HALT] = KB_PART_HALT,		[KB_TILE_SOFTIRQ] = KB_PART_SOFTIRQ,
		[KB_TILE_IRQ] = KB_PART_IRQ,		[KB_TILE_IPI] = KB_PART_IRQ,
	};

	return (unsigned int)kind < KB_TILE_KINDS ? parts[kind] : KB_PART_UNKNOWN;
}

static void add_time(uint64_t sums[SUMS], enum kb_tile_kind kind, int64_t from, int64_t until)
{
	enum kb_part part = kb_history_part(kind);

	if (part != KB_PART_UNKNOWN)
		sums[part - KB_PART_HALT] += (uint64_t)until - (uint64_t)from;
}

static struct entry *entry_at(const struct kb_history *history, const struct cpu *cpu, uint64_t i)
{
	return &cpu->ring[i & (history->room - 1)];
}

int kb_history_add(struct kb_history *history, const struct kb_tile *tile)
{
	struct cpu *cpu = &history->cpus[tile->core];
	bool halt_ends = tile->kind == KB_TILE_HALT && tile->ends;
	struct entry *entry;

	if (tile->end == tile->start) {
		if (halt_ends && cpu->nr)
			entry_at(history, cpu, cpu->nr - 1)->halt_ends = true;
		return 0;
	}
	if (!cpu->ring) {
		if (history->left < history->room)
			return 0;	/* more CPUs than it remembers */
		cpu->ring = malloc(history->room * sizeof(*cpu->ring));
		if (!cpu->ring)
			return -ENOMEM;
		history->left -= history->room;
	}
	entry = entry_at(history, cpu, cpu->nr++);
	entry->start = tile->start;
	memcpy(entry->sums, cpu->sums, sizeof(entry->sums));
	entry->kind = (uint8_t)tile->kind & 0x3f;
	entry->halts = tile->halts;
	entry->halt_ends = halt_ends;
	entry->state = (uint8_t)(tile->idle_state + 1);
	entry->behind = tile->behind;
	entry->id = tile->kind == KB_TILE_TASK ? tile->task_id : tile->id;
	add_time(cpu->sums, tile->kind, tile->start, tile->end);
	cpu->end = tile->end;
	return 0;
}

static uint64_t oldest(const struct kb_history *history, const struct cpu *cpu)
{
	return cpu->nr > history->room ? cpu->nr - history->room : 0;
}

/* The last entry that begins at @at or before. There is one: the oldest. */
static uint64_t find(const struct kb_history *history, const struct cpu *cpu, int64_t at)
{
	return KB_BISECT(i, oldest(history, cpu) + 1, cpu->nr,
			 entry_at(history, cpu, i)->start <= at) - 1;
}

static int64_t end_of(const struct kb_history *history, const struct cpu *cpu, uint64_t i)
{
	return i + 1 < cpu->nr ? entry_at(history, cpu, i + 1)->start : cpu->end;
}

static void sums_at(const struct kb_history *history, const struct cpu *cpu, int64_t at,
		    uint64_t sums[SUMS])
{
	const struct entry *entry = entry_at(history, cpu, find(history, cpu, at));

	memcpy(sums, entry->sums, sizeof(entry->sums));
	add_time(sums, (enum kb_tile_kind)entry->kind, entry->start, at);
}

static const struct cpu *known_cpu(const struct kb_history *history, uint32_t core)
{
	return core < history->max_cores && history->cpus[core].nr ? &history->cpus[core] : NULL;
}

void kb_history_split(const struct kb_history *history, uint32_t core, int64_t from, int64_t until,
		      uint64_t parts[KB_PARTS])
{
	const struct cpu *cpu = known_cpu(history, core);
	uint64_t before[SUMS], behind[SUMS], all = (uint64_t)until - (uint64_t)from;
	int64_t first, last;
	unsigned int i;

	if (cpu) {
		first = entry_at(history, cpu, oldest(history, cpu))->start;
		first = from > first ? from : first;
		last = until < cpu->end ? until : cpu->end;
	}
	if (cpu && first < last) {
		sums_at(history, cpu, first, before);
		sums_at(history, cpu, last, behind);
		for (i = 0; i < SUMS; i++) {
			parts[KB_PART_HALT + i] += behind[i] - before[i];
			all -= behind[i] - before[i];
		}
	}
	parts[KB_PART_UNKNOWN] += all;
}

void kb_history_look(const struct kb_history *history, uint32_t core, int64_t from, int64_t until,
		     unsigned int most,
		     bool (*take)(void *context, const struct kb_origin *what, uint64_t ns),
		     void *context)
{
	const struct cpu *cpu = known_cpu(history, core);
	uint64_t i;

	if (!cpu || until <= from)
		return;
	for (i = find(history, cpu, until - 1) + 1; most && i-- > oldest(history, cpu); most--) {
		const struct entry *entry = entry_at(history, cpu, i);
		int64_t start = entry->start > from ? entry->start : from;
		int64_t end = end_of(history, cpu, i);
		enum kb_part part = kb_history_part((enum kb_tile_kind)entry->kind);
		const struct kb_origin what = { .kind = (enum kb_tile_kind)entry->kind, .id = entry->id,
						.behind = entry->behind };

		end = end < until ? end : until;
		if (end <= start)
			break;
		if (part != KB_PART_TASK && part != KB_PART_SOFTIRQ && part != KB_PART_IRQ)
			continue;
		if (!take(context, &what, (uint64_t)end - (uint64_t)start))
			break;
	}
}

bool kb_ran_take(void *context, const struct kb_origin *what, uint64_t ns)
{
	struct kb_ran *ran = context;
	uint32_t i;

	ran->looked++;
	for (i = 0; i < ran->nr; i++)
		if (kb_origin_key(&ran->pieces[i].what) == kb_origin_key(what))
			break;
	if (i == KB_RAN_MAX)
		return true;
	if (i == ran->nr)
		ran->pieces[ran->nr++] = (struct kb_latency_piece){ .what = *what };
	ran->pieces[i].ns += ns;
	return true;
}

bool kb_history_halted(const struct kb_history *history, uint32_t core, int64_t from, int *state,
		       int64_t *left)
{
	const struct cpu *cpu = known_cpu(history, core);
	uint64_t i;

	if (!cpu || from < entry_at(history, cpu, oldest(history, cpu))->start || from >= cpu->end)
		return false;
	i = find(history, cpu, from);
	while (i + 1 < cpu->nr && entry_at(history, cpu, i)->kind == KB_TILE_IDLE)
		i++;
	if (!entry_at(history, cpu, i)->halts)
		return false;
	*state = (int)entry_at(history, cpu, i)->state - 1;
	while (i + 1 < cpu->nr && !entry_at(history, cpu, i)->halt_ends &&
	       entry_at(history, cpu, i + 1)->halts)
		i++;
	*left = end_of(history, cpu, i);
	return true;
}
