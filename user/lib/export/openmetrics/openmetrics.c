// SPDX-License-Identifier: MIT
/*
 * One walk over a capture, by the same state machines as the report of latencies. What a record says
 * is added when the record counts: so of captures that overlap each record counts once, and those
 * before it only bring the machines to where they were.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/facts/idle_states.h"
#include "analysis/facts/losses_read.h"
#include "analysis/latency/wakeups.h"
#include "analysis/time/origin.h"
#include "analysis/trace/inside.h"
#include "base/array.h"
#include "base/options.h"
#include "base/table.h"
#include "export/openmetrics/sums.h"

#define CPUS		256U
#define ROWS		1024U
#define NUMBERS_MAX	16384U	/* handlers and states of one capture, of which a file may claim more */

/* What is known of the capture that is read. */
struct part {
	struct kb_trace *trace;
	struct kb_openmetrics_part how;
	struct kb_wanted wanted;
	struct kb_gaps gaps;
	struct kb_idle_states states;
	struct kb_tiles *tiles;
	struct kb_wakeups *wakeups;
	struct kb_table handlers, idle;		/* numbers of rows */
	bool counts;				/* the record that is read */
	bool *seen;				/* max_cores: it had a record */
	struct kb_latency before;		/* the machine's own counts when it began to count */
};

/* A loss as the facts of the last capture had it, which may be of the same session. */
struct told {
	uint32_t kind, core;
	char what[24];
	uint64_t count;
};

struct kb_openmetrics {
	struct kb_om_sums sums;
	struct part *part;			/* NULL: none is read */
	struct told *told;
	uint32_t nr_told, told_room;
	uint64_t written, overwritten;		/* of the last capture */
};

struct number {
	uint64_t key;
	uint32_t row;
};

static int no_memory(struct kb_error *err)
{
	return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
}

const struct kb_om_sums *kb_openmetrics_sums(const struct kb_openmetrics *metrics)
{
	return &metrics->sums;
}

int kb_openmetrics_create(struct kb_openmetrics **out, const struct kb_openmetrics_options *options,
			  struct kb_error *err)
{
	struct kb_openmetrics_options how;
	struct kb_openmetrics *metrics;
	int ret = KB_OPTIONS(&how, options, err);

	if (ret)
		return ret;
	metrics = calloc(1, sizeof(*metrics));
	if (!metrics)
		return no_memory(err);
	if (kb_om_sums_init(&metrics->sums, how.cpus ? how.cpus : CPUS, how.rows ? how.rows : ROWS)) {
		kb_openmetrics_destroy(metrics);
		return no_memory(err);
	}
	*out = metrics;
	return 0;
}

static void close_part(struct kb_openmetrics *metrics)
{
	struct part *part = metrics->part;

	if (!part)
		return;
	kb_wakeups_destroy(part->wakeups);
	kb_tiles_destroy(part->tiles);
	kb_idle_states_release(&part->states);
	kb_gaps_release(&part->gaps);
	kb_table_release(&part->handlers);
	kb_table_release(&part->idle);
	free(part->seen);
	free(part);
	metrics->part = NULL;
}

void kb_openmetrics_destroy(struct kb_openmetrics *metrics)
{
	if (!metrics)
		return;
	close_part(metrics);
	kb_om_sums_release(&metrics->sums);
	free(metrics->told);
	free(metrics);
}

/* ---- rows ---- */

/* Finds the row of @key by the number that is kept for it. NULL: it is not kept yet. */
static struct kb_om_row *kept(struct kb_om_rows *rows, const struct kb_table *numbers, uint64_t key)
{
	const struct number *number = kb_table_find(numbers, &key);

	return number ? &rows->rows[number->row] : NULL;
}

static struct kb_om_row *keep(struct kb_om_rows *rows, struct kb_table *numbers, uint64_t key,
			      uint32_t row)
{
	struct number *number;

	if (row == UINT32_MAX)
		return NULL;
	/* what is not kept is looked for again */
	if (numbers->nr < NUMBERS_MAX) {
		number = kb_table_get(numbers, &key);
		if (!number)
			return NULL;
		number->row = row;
	}
	return &rows->rows[row];
}

static struct kb_om_row *handler(struct kb_openmetrics *metrics, const struct kb_origin *origin)
{
	struct kb_om_rows *rows = &metrics->sums.handlers;
	struct part *part = metrics->part;
	uint64_t key = kb_origin_key(origin);
	struct kb_om_row *row = kept(rows, &part->handlers, key);
	char name[KB_ORIGIN_NAME];

	if (row)
		return row;
	kb_origin_name(part->trace, origin, 0, name, sizeof(name));
	return keep(rows, &part->handlers, key,
		    kb_om_rows_get(rows, origin->kind, 0, name, strlen(name)));
}

static struct kb_om_row *idle(struct kb_openmetrics *metrics, uint32_t core, int state)
{
	struct kb_om_rows *rows = &metrics->sums.idle;
	struct part *part = metrics->part;
	uint64_t key = kb_idle_state_key(core, state);
	struct kb_om_row *row = kept(rows, &part->idle, key);
	struct kb_text name;

	if (row)
		return row;
	name = kb_idle_states_name(&part->states, core, state);
	return keep(rows, &part->idle, key,
		    kb_om_rows_get(rows, kb_om_cpu_number(&metrics->sums, core),
				   (uint32_t)state + 1, name.data, name.length));
}

/* ---- records ---- */

static int take_wait(void *context, const struct kb_late *late)
{
	struct kb_openmetrics *metrics = context;

	if (metrics->part->counts)
		kb_om_times_add(&kb_om_cpu(&metrics->sums, late->wait.core)->waits[late->wait.preempted],
				late->wait.ns);
	return 0;
}

static int add_halt(struct kb_openmetrics *metrics, const struct kb_tile *tile)
{
	struct kb_om_row *row = idle(metrics, tile->core, tile->idle_state);

	if (!row)
		return -ENOMEM;
	row->values[KB_OM_COUNT]++;
	row->values[KB_OM_NS] += tile->own;
	return 0;
}

static int add_tile(struct kb_openmetrics *metrics, const struct kb_tile *tile)
{
	uint64_t ns = (uint64_t)tile->end - (uint64_t)tile->start;
	const struct kb_origin origin = kb_origin_in(tile);
	struct kb_om_row *row;

	kb_om_cpu(&metrics->sums, tile->core)->tile_ns[tile->kind] += ns;
	if (tile->kind == KB_TILE_HALT && tile->ends)
		return add_halt(metrics, tile);
	if (!kb_origin_interrupts(tile->kind))
		return 0;
	row = handler(metrics, &origin);
	if (!row)
		return -ENOMEM;
	row->values[KB_OM_NS] += ns;
	return 0;
}

static int count_handler(struct kb_openmetrics *metrics, const struct kb_event *event,
			 enum kb_tile_kind kind)
{
	const struct kb_origin origin = {
		.kind = kind, .id = event->custom_counter.id,
		.behind = kind == KB_TILE_IRQ ? event->custom_counter.cpu : 0,
	};
	struct kb_om_row *row = handler(metrics, &origin);

	if (!row)
		return -ENOMEM;
	row->values[KB_OM_COUNT]++;
	return 0;
}

/* Linux says of a halt that another state would have paid. */
static int count_miss(struct kb_openmetrics *metrics, const struct kb_event *event)
{
	struct kb_om_row *row;

	if (event->custom_counter.id > UINT8_MAX)
		return 0;
	row = idle(metrics, event->core, (int)event->custom_counter.id);
	if (!row)
		return -ENOMEM;
	row->values[event->custom_counter.context ? KB_OM_SHALLOW : KB_OM_DEEP]++;
	return 0;
}

static int count_detail(struct kb_openmetrics *metrics, const struct kb_event *event)
{
	struct kb_om_cpu *cpu = kb_om_cpu(&metrics->sums, event->core);

	switch (event->custom_counter.what) {
	case KB_WHAT_WAKING:
	case KB_WHAT_WAKING_NEW:
		cpu->wakeups++;
		return 0;
	case KB_WHAT_MIGRATE:
		cpu->migrations++;
		return 0;
	case KB_WHAT_IRQ_ENTRY:
		return count_handler(metrics, event, KB_TILE_IRQ);
	case KB_WHAT_IPI_ENTRY:
		return count_handler(metrics, event, KB_TILE_IPI);
	case KB_WHAT_SOFTIRQ_ENTRY:
		return count_handler(metrics, event, KB_TILE_SOFTIRQ);
	case KB_WHAT_IDLE_MISS:
		return count_miss(metrics, event);
	default:
		return 0;
	}
}

static int count_record(struct kb_openmetrics *metrics, const struct kb_event *event)
{
	kb_om_cpu(&metrics->sums, event->core)->records++;
	if (event->core == KB_CORE_NONE)
		return 0;
	if (event->type == KB_EVENT_TASK_SWITCH)
		kb_om_cpu(&metrics->sums, event->core)
			->switches[event->task_switch.reason == KB_SWITCH_BLOCKED]++;
	return event->type == KB_EVENT_CUSTOM_COUNTER ? count_detail(metrics, event) : 0;
}

/* Records behind the last one that counted were overwritten if the oldest one is younger. */
static void find_unread(struct kb_openmetrics *metrics, const struct kb_walk *walk)
{
	struct part *part = metrics->part;
	const struct kb_event *event = &walk->event;
	uint32_t core = event->core;

	if (core >= kb_trace_header(part->trace)->max_cores || !part->seen[core])
		return;
	part->seen[core] = false;
	if (event->timestamp > part->how.after)
		kb_om_cpu(&metrics->sums, core)->unread_ns +=
			(uint64_t)walk->ns - (uint64_t)kb_barman_ns(kb_trace_barman(part->trace),
								    part->how.after);
}

/* The record is the first one that counts, or the first one behind those. */
static void begin_counting(struct kb_openmetrics *metrics, bool counts)
{
	struct kb_om_sums *sums = &metrics->sums;
	struct part *part = metrics->part;
	struct kb_latency now = { 0 };

	kb_wakeups_finish(part->wakeups, &now);
	if (part->counts) {
		sums->cut += now.cut - part->before.cut;
		sums->unexplained += now.unexplained - part->before.unexplained;
		sums->unsure += now.unsure - part->before.unsure;
	}
	part->before = now;
	part->counts = counts;
}

static bool is_counted(const struct part *part, uint64_t ticks)
{
	if (part->how.after && ticks <= part->how.after)
		return false;
	return !part->how.until || ticks <= part->how.until;
}

int kb_openmetrics_feed(struct kb_openmetrics *metrics, const struct kb_walk *walk)
{
	struct part *part = metrics->part;
	struct kb_tile tiles[KB_TILES_MOST];
	bool counts = is_counted(part, walk->event.timestamp);
	int nr, i, ret = 0;

	if (part->seen)
		find_unread(metrics, walk);
	if (counts != part->counts)
		begin_counting(metrics, counts);
	nr = kb_tiles_feed(part->tiles, walk, tiles);
	if (nr < 0)
		return nr;
	for (i = 0; i < nr && counts && !ret; i++)
		ret = add_tile(metrics, &tiles[i]);
	ret = ret ?: kb_wakeups_feed(part->wakeups, walk);
	return ret || !counts ? ret : count_record(metrics, &walk->event);
}

/* ---- the facts ---- */

/* What fact @kind says more than in the capture before, if that was of the same session. */
static uint64_t news(struct kb_openmetrics *metrics, uint32_t kind, const struct kb_loss *loss)
{
	bool goes_on = metrics->part->how.goes_on;
	uint64_t before = 0;
	uint32_t i;

	for (i = 0; i < metrics->nr_told; i++)
		if (metrics->told[i].kind == kind && metrics->told[i].core == loss->core &&
		    !strcmp(metrics->told[i].what, loss->what))
			break;
	if (i < metrics->nr_told) {
		before = goes_on ? metrics->told[i].count : 0;
	} else if (i < metrics->sums.lost.most * 3 &&
		   KB_ARRAY_ROOM(metrics->told, metrics->told_room, (size_t)i + 1)) {
		metrics->told[metrics->nr_told++] = (struct told){ .kind = kind, .core = loss->core };
		memcpy(metrics->told[i].what, loss->what, sizeof(loss->what));
	} else {
		return goes_on ? 0 : loss->count;
	}
	metrics->told[i].count = loss->count;
	return loss->count > before ? loss->count - before : 0;
}

static int take_facts(struct kb_openmetrics *metrics, struct kb_om_rows *rows, uint32_t kind,
		      const struct kb_loss *facts, uint32_t nr)
{
	uint32_t i, row;

	for (i = 0; i < nr; i++) {
		row = kb_om_rows_get(rows, kb_om_cpu_number(&metrics->sums, facts[i].core), 0,
				     facts[i].what, strlen(facts[i].what));
		if (row == UINT32_MAX)
			return -ENOMEM;
		rows->rows[row].values[KB_OM_COUNT] += news(metrics, kind, &facts[i]);
	}
	return 0;
}

static uint64_t more(uint64_t now, uint64_t *before, bool goes_on)
{
	uint64_t from = goes_on ? *before : 0;

	*before = now;
	return now > from ? now - from : 0;
}

static int take_losses(struct kb_openmetrics *metrics, const struct kb_losses *losses)
{
	struct kb_om_sums *sums = &metrics->sums;
	bool goes_on = metrics->part->how.goes_on;

	if (!goes_on)
		metrics->nr_told = 0;
	sums->written += more(losses->written, &metrics->written, goes_on);
	sums->overwritten += more(losses->overwritten, &metrics->overwritten, goes_on);
	return take_facts(metrics, &sums->lost, 0, losses->rows, losses->nr_rows) ?:
	       take_facts(metrics, &sums->missed, 1, losses->missed, losses->nr_missed) ?:
	       take_facts(metrics, &sums->stopped, 2, losses->stopped, losses->nr_stopped);
}

static void count_gaps(struct kb_openmetrics *metrics)
{
	const struct part *part = metrics->part;
	const struct kb_barman *barman = kb_trace_barman(part->trace);
	int64_t after = part->how.after ? kb_barman_ns(barman, part->how.after) : INT64_MIN;
	int64_t until = part->how.until ? kb_barman_ns(barman, part->how.until) : INT64_MAX;
	uint32_t i;

	for (i = 0; i < part->gaps.nr; i++)
		metrics->sums.gaps += part->gaps.rows[i].end > after &&
				      part->gaps.rows[i].end <= until;
}

/* ---- a capture ---- */

/* The CPUs whose oldest records were overwritten, if it matters which one is the oldest. */
static int prepare_unread(struct part *part)
{
	const struct kb_header *header = kb_trace_header(part->trace);

	if (!part->how.after || !part->how.goes_on)
		return 0;
	part->seen = calloc((size_t)header->max_cores + 1, sizeof(*part->seen));
	if (!part->seen)
		return -ENOMEM;
	kb_losses_overwritten(header, part->seen);
	return 0;
}

static int prepare(struct kb_openmetrics *metrics, struct kb_trace *trace, struct kb_error *err)
{
	struct part *part = metrics->part;
	const struct kb_losses *losses;
	struct kb_wakeups_parts parts;
	int ret = kb_trace_rewind(trace, err) ?: kb_wanted_init(&part->wanted, trace, NULL, err);

	if (ret)
		return ret;
	part->trace = trace;
	kb_table_init(&part->handlers, sizeof(struct number), 1);
	kb_table_init(&part->idle, sizeof(struct number), 1);
	losses = kb_trace_losses(trace, err);
	if (!losses || kb_idle_states_create(&part->states, kb_trace_header(trace)) ||
	    prepare_unread(part))
		return no_memory(err);
	ret = kb_gaps_read(&part->gaps, trace, err);
	if (ret)
		return ret;
	if (kb_tiles_create(&part->tiles, trace, err))
		return no_memory(err);
	parts = (struct kb_wakeups_parts){
		.wanted = &part->wanted, .tiles = part->tiles, .gaps = &part->gaps,
		.take = take_wait, .context = metrics,
	};
	if (kb_wakeups_create(&part->wakeups, &parts) || take_losses(metrics, losses))
		return no_memory(err);
	count_gaps(metrics);
	metrics->sums.captures++;
	return 0;
}

int kb_openmetrics_begin(struct kb_openmetrics *metrics, struct kb_trace *trace,
			 const struct kb_openmetrics_part *part, struct kb_error *err)
{
	struct kb_openmetrics_part how;
	int ret = KB_OPTIONS(&how, part, err);

	if (ret)
		return ret;
	if (metrics->part)
		return kb_error_set(err, -EINVAL, KB_NO_OFFSET, "another capture is being read");
	metrics->part = calloc(1, sizeof(*metrics->part));
	if (!metrics->part)
		return no_memory(err);
	metrics->part->how = how;
	ret = prepare(metrics, trace, err);
	if (ret)
		close_part(metrics);
	return ret;
}

int kb_openmetrics_end(struct kb_openmetrics *metrics, struct kb_error *err)
{
	struct part *part = metrics->part;
	const struct kb_error *first;
	struct kb_tile tile;
	int ret = 0;

	if (!part)
		return kb_error_set(err, -EINVAL, KB_NO_OFFSET, "no capture is being read");
	if (part->counts)
		begin_counting(metrics, false);
	while (!ret && !part->how.until && kb_tiles_end(part->tiles, &tile))
		ret = add_tile(metrics, &tile);
	if (!ret && kb_barman_damage(kb_trace_barman(part->trace), &first)) {
		metrics->sums.damaged++;
		if (err)
			*err = *first;
		ret = 1;
	}
	close_part(metrics);
	return ret < 0 ? no_memory(err) : ret;
}

int kb_openmetrics_read(struct kb_openmetrics *metrics, struct kb_trace *trace,
			const struct kb_openmetrics_part *part, struct kb_error *err)
{
	int ret = kb_openmetrics_begin(metrics, trace, part, err), fed = 0, next = 0;
	const struct kb_walk *walk;

	if (ret)
		return ret;
	while (!fed && (next = kb_trace_next(trace, &walk, err)) > 0)
		fed = kb_openmetrics_feed(metrics, walk);
	ret = kb_openmetrics_end(metrics, err);
	if (fed || (ret >= 0 && next == -ENOMEM))
		return no_memory(err);
	if (!ret && next < 0) {
		metrics->sums.damaged++;
		ret = 1;
	}
	return ret;
}

/* ---- what reading cost ---- */

static void raise_to(uint64_t *number, uint64_t now)
{
	if (now > *number)
		*number = now;
}

int kb_openmetrics_cost(struct kb_openmetrics *metrics, const struct kb_openmetrics_cost *cost,
			struct kb_error *err)
{
	struct kb_openmetrics_cost *sums = &metrics->sums.cost, now;
	int ret = KB_OPTIONS(&now, cost, err);

	if (ret)
		return ret;
	raise_to(&sums->cpu_ns, now.cpu_ns);
	raise_to(&sums->bytes, now.bytes);
	raise_to(&sums->wakeups, now.wakeups);
	sums->resident = now.resident;
	return 0;
}
