// SPDX-License-Identifier: MIT
/*
 * Waits of a simulated machine, whose every nanosecond is known, and the parts of this analysis:
 * histograms with a bounded error, and chains with a bounded length.
 */
#include <errno.h>

#include <kbarman/ended.h>

#include "analysis/latency/chains.h"
#include "analysis/time/gaps.h"
#include "analysis/time/histogram.h"

#include "../lib/tap.h"
#include "detail_capture.h"

#define ROUNDS	40
#define STEPS	3000

/* ---- a machine ---- */

enum doing { IDLES, HALTS, RUNS };

struct cpu {
	enum doing doing;
	uint32_t task;			/* 0: the idle task */
	uint32_t irq, softirq;		/* number + 1; 0: none */
	uint32_t queue[TASKS], nr;
};

struct task {
	bool waits, preempted;
	bool waking;			/* no CPU is chosen yet */
	bool queued, runs;
	uint32_t cpu;
	uint64_t parts[KB_PARTS];
};

struct machine {
	struct made made;
	uint64_t now;
	struct cpu cpus[CORES];
	struct task tasks[TASKS];
	/* What the report has to say. */
	uint64_t count[2], sum[2], max[2], parts[2][KB_PARTS];	/* woken, preempted */
	uint64_t irq_ns, softirq_ns, irqs, halts;
};

static enum kb_part part_of(const struct cpu *cpu)
{
	if (cpu->irq)
		return KB_PART_IRQ;
	if (cpu->softirq)
		return KB_PART_SOFTIRQ;
	return cpu->doing == RUNS ? KB_PART_TASK : cpu->doing == HALTS ? KB_PART_HALT : KB_PART_AWAKE;
}

static void pass(struct machine *m, uint64_t ns)
{
	uint32_t i;

	m->now += ns;
	for (i = 1; i < TASKS; i++)
		if (m->tasks[i].waits)
			m->tasks[i].parts[m->tasks[i].waking ? KB_PART_WAKING :
					  part_of(&m->cpus[m->tasks[i].cpu])] += ns;
	for (i = 0; i < CORES; i++) {
		m->irq_ns += m->cpus[i].irq ? ns : 0;
		m->softirq_ns += m->cpus[i].softirq && !m->cpus[i].irq ? ns : 0;
	}
}

static void enqueue(struct machine *m, uint32_t task, uint32_t cpu)
{
	m->cpus[cpu].queue[m->cpus[cpu].nr++] = task;
	m->tasks[task].queued = true;
	m->tasks[task].cpu = cpu;
}

static void begin_wait(struct task *task, bool preempted)
{
	memset(task->parts, 0, sizeof(task->parts));
	task->waits = true;
	task->preempted = preempted;
}

static void end_wait(struct machine *m, struct task *task)
{
	uint64_t ns = 0;
	unsigned int i, kind = task->preempted;

	for (i = 0; i < KB_PARTS; i++) {
		ns += task->parts[i];
		m->parts[kind][i] += task->parts[i];
	}
	m->count[kind]++;
	m->sum[kind] += ns;
	m->max[kind] = ns > m->max[kind] ? ns : m->max[kind];
	task->waits = false;
}

/* Whatever runs on @core wakes a task that sleeps, if there is one. */
static void wake(struct machine *m, uint32_t core)
{
	struct cpu *cpu = &m->cpus[core];
	uint32_t id = 1 + random_below(TASKS - 1), to = random_below(CORES);
	struct task *task = &m->tasks[id];

	if (task->runs || task->queued)
		return;
	add_detail(&m->made, core, m->now, cpu->task,
		   random_below(4) ? KB_WHAT_WAKING : KB_WHAT_WAKING_NEW, id, task->cpu,
		   cpu->irq	  ? KB_CONTEXT_IRQ
		   : cpu->softirq ? KB_CONTEXT_SOFTIRQ
		   : cpu->task	  ? KB_CONTEXT_TASK
				  : KB_CONTEXT_IDLE);
	begin_wait(task, false);
	if (to != task->cpu) {
		task->waking = true;
		pass(m, random_below(30));
		task->waking = false;
		add_detail(&m->made, core, m->now, cpu->task, KB_WHAT_MIGRATE, id, to, 0);
	}
	enqueue(m, id, to);
}

static void schedule(struct machine *m, uint32_t core)
{
	struct cpu *cpu = &m->cpus[core];
	uint32_t before = cpu->task, next = cpu->nr ? cpu->queue[0] : 0;
	bool blocked = before && (!next || random_below(2));

	if (before == next)
		return;
	if (cpu->nr)
		memmove(cpu->queue, cpu->queue + 1, --cpu->nr * sizeof(cpu->queue[0]));
	add_switch(&m->made, core, m->now, next, blocked);
	cpu->task = next;
	cpu->doing = next ? RUNS : IDLES;
	if (before) {
		m->tasks[before].runs = false;
		m->tasks[before].cpu = core;
		if (!blocked) {
			begin_wait(&m->tasks[before], true);
			enqueue(m, before, core);
		}
	}
	if (next) {
		m->tasks[next].queued = false;
		m->tasks[next].runs = true;
		if (m->tasks[next].waits)
			end_wait(m, &m->tasks[next]);
	}
}

static void set_handler(struct machine *m, uint32_t core, uint32_t *handler, uint8_t entry,
			uint8_t context)
{
	bool begins = !*handler;
	uint32_t id = begins ? (uint32_t)random_below(4) : *handler - 1;

	add_detail(&m->made, core, m->now, m->cpus[core].task, entry + !begins, id, 0, context);
	*handler = begins ? id + 1 : 0;
}

static void step(struct machine *m, uint32_t core)
{
	struct cpu *cpu = &m->cpus[core];
	unsigned int action = random_below(8);

	if (action < 2) {
		m->irqs += !cpu->irq;
		if (cpu->doing != HALTS || cpu->irq || cpu->softirq || random_below(2))
			set_handler(m, core, &cpu->irq, KB_WHAT_IRQ_ENTRY, KB_CONTEXT_IRQ);
		else
			m->irqs--;
	} else if (cpu->irq) {
		wake(m, core);
	} else if (action == 2 && cpu->doing != HALTS) {
		set_handler(m, core, &cpu->softirq, KB_WHAT_SOFTIRQ_ENTRY, KB_CONTEXT_SOFTIRQ);
	} else if (cpu->softirq) {
		wake(m, core);
	} else if (cpu->doing == HALTS) {
		add_halt(&m->made, core, m->now, false, 0);
		cpu->doing = IDLES;
		m->halts++;
	} else if (cpu->doing == IDLES && !cpu->nr && action == 3) {
		add_halt(&m->made, core, m->now, true, 1);
		cpu->doing = HALTS;
	} else if (action < 6) {
		schedule(m, core);
	} else {
		wake(m, core);
	}
}

static uint64_t sum_of(const struct kb_interrupt *rows, uint32_t nr, enum kb_tile_kind kind,
		       uint64_t *count)
{
	uint64_t ns = 0;

	*count = 0;
	for (uint32_t i = 0; i < nr; i++) {
		ns += rows[i].origin.kind == kind ? rows[i].ns : 0;
		*count += rows[i].origin.kind == kind ? rows[i].count : 0;
	}
	return ns;
}

static bool is_stats(const struct machine *m, unsigned int kind, const struct kb_latency_stats *stats,
		     const uint64_t parts[KB_PARTS])
{
	return stats->count == m->count[kind] && stats->sum_ns == m->sum[kind] &&
	       stats->max_ns == m->max[kind] &&
	       memcmp(parts, m->parts[kind], sizeof(m->parts[kind])) == 0;
}

struct verdict {
	bool woken, preempted, interrupts, halts;
};

static void judge(const struct machine *m, const struct kb_latency *latency, struct verdict *good)
{
	uint64_t count, halts = 0;

	good->woken &= is_stats(m, 0, &latency->woken, latency->woken_parts);
	good->preempted &= is_stats(m, 1, &latency->preempted, latency->preempted_parts);
	good->interrupts &= sum_of(latency->interrupts, latency->nr_interrupts, KB_TILE_SOFTIRQ,
				   &count) == m->softirq_ns &&
			    sum_of(latency->interrupts, latency->nr_interrupts, KB_TILE_IRQ,
				   &count) == m->irq_ns && count == m->irqs;
	for (uint32_t i = 0; i < latency->nr_halts; i++)
		halts += latency->halts[i].count;
	good->halts &= halts == m->halts;
}

static void run_machine(struct verdict *good)
{
	struct machine m = { .now = 1000 };
	const struct kb_latency *latency;
	struct kb_trace *trace;
	struct kb_error err;
	uint32_t i;

	begin(&m.made);
	for (i = 0; i < CORES; i++)
		add_switch(&m.made, i, m.now, 0, false);
	for (i = 0; i < STEPS; i++) {
		pass(&m, random_below(4) ? random_below(100) : 0);
		step(&m, random_below(CORES));
	}
	for (i = 0; i < CORES; i++) {	/* what has no end would not count to the end */
		if (m.cpus[i].irq)
			set_handler(&m, i, &m.cpus[i].irq, KB_WHAT_IRQ_ENTRY, KB_CONTEXT_IRQ);
		if (m.cpus[i].softirq)
			set_handler(&m, i, &m.cpus[i].softirq, KB_WHAT_SOFTIRQ_ENTRY,
				    KB_CONTEXT_SOFTIRQ);
	}
	for (i = 0; i < CORES; i++)
		add_detail(&m.made, i, m.now, m.cpus[i].task, KB_WHAT_FREQUENCY, 0, 0, 0);
	trace = finish(&m.made);
	must(kb_latency_create(&latency, trace, NULL, &err), "latencies");
	judge(&m, latency, good);
	kb_latency_destroy(latency);
	kb_trace_close(trace);
}

static void test_machine(void)
{
	struct verdict good = { true, true, true, true };
	int round;

	for (round = 0; round < ROUNDS; round++)
		run_machine(&good);
	tap_ok(good.woken, "waits_of_woken_tasks_and_their_parts_are_exact");
	tap_ok(good.preempted, "waits_of_preempted_tasks_and_their_parts_are_exact");
	tap_ok(good.interrupts, "times_of_interrupts_and_softirqs_are_exact");
	tap_ok(good.halts, "all_halts_are_counted");
}

/* ---- what takes time ---- */

/* Of values and wakeups nothing says how long they took. */
static void test_ended(void)
{
	static const enum kb_what whats[] = { KB_WHAT_VALUE, KB_WHAT_WAKING, KB_WHAT_IDLE_MISS };
	struct kb_ended_options how = { .size = sizeof(how) };
	struct machine m = { .now = 1000 };
	const struct kb_ended *ended;
	struct kb_trace *trace;
	struct kb_error err;
	bool refused;

	begin(&m.made);
	add_switch(&m.made, 0, m.now, 1, false);
	add_detail(&m.made, 0, m.now, 1, KB_WHAT_WAKING, 2, 0, 0);
	trace = finish(&m.made);
	refused = kb_ended_create(&ended, trace, NULL, &err) == -EINVAL;
	for (size_t i = 0; i < sizeof(whats) / sizeof(*whats); i++) {
		how.what = whats[i];
		refused &= kb_ended_create(&ended, trace, &how, &err) == -EINVAL;
	}
	tap_ok(refused, "only_what_takes_time_is_added_up");
	kb_trace_close(trace);
}

/* ---- histograms ---- */

static int compare(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

static void test_histogram(void)
{
	static uint64_t values[1001];
	uint64_t powers[64], all = 0, exact, found;
	struct kb_histogram histogram;
	bool bounded = true, counted = true;
	unsigned int round, i, percent;

	for (round = 0; round < ROUNDS; round++) {
		unsigned int nr = 1 + random_below(1001);

		histogram = (struct kb_histogram){ 0 };
		for (i = 0; i < nr; i++) {
			values[i] = random_magnitude();
			must(kb_histogram_add(&histogram, values[i]), "memory");
		}
		qsort(values, nr, sizeof(values[0]), compare);
		for (percent = 1; percent <= 100; percent++) {
			exact = values[(nr * percent + 99) / 100 - 1];
			found = kb_histogram_quantile(&histogram, percent);
			bounded &= found >= exact && found - exact <= exact / 32 &&
				   found <= values[nr - 1];
		}
		kb_histogram_powers(&histogram, powers);
		for (i = 0, all = 0; i < 64; i++)
			all += powers[i];
		counted &= all == nr && histogram.max == values[nr - 1];
		kb_histogram_release(&histogram);
	}
	tap_ok(bounded, "quantiles_are_at_most_a_32nd_too_high");
	tap_ok(counted, "every_value_is_in_one_power_of_two");
	tap_is(kb_histogram_quantile(&histogram, 50), 0, "nothing_has_no_median");
}

/* ---- chains ---- */

static uint32_t add_link(struct kb_chains *chains, uint32_t before, uint32_t task, int64_t start)
{
	const struct kb_link link = { .task_id = task, .start = start, .end = start + 10 };

	return kb_chains_add(chains, before, &link);
}

static void test_chains(void)
{
	struct kb_chains chains;
	uint32_t one, two, i;

	kb_chains_init(&chains, 100);
	one = add_link(&chains, KB_CHAIN_NONE, 1, 0);
	tap_is(add_link(&chains, one, 1, 10), one, "a_link_goes_on_as_long_as_it_is_alike");
	two = add_link(&chains, kb_chains_hold(&chains, one), 2, 20);
	tap_ok(chains.used == 2 && chains.links[two].before == one, "chains_share_their_beginning");
	i = add_link(&chains, one, 1, 20);
	tap_ok(i != one && chains.links[one].link.end == 20,
	       "a_link_that_others_have_does_not_change");
	kb_chains_drop(&chains, two);
	kb_chains_drop(&chains, i);
	tap_is(chains.used, 0, "what_nobody_holds_is_free");

	one = KB_CHAIN_NONE;
	for (i = 0; i < 1000; i++)
		one = add_link(&chains, one, i % 2, 10 * (int64_t)i);
	tap_ok(chains.used <= 100 && chains.nr <= 101, "a_long_chain_is_cut");
	tap_is(chains.links[one].link.end, 10000, "and_keeps_its_end");
	for (two = one, i = 0; two < KB_CHAIN_CUT; i++)
		two = chains.links[two].before;
	tap_ok(two == KB_CHAIN_CUT && i >= 40 && i <= 100, "which_is_at_least_its_younger_part");
	kb_chains_release(&chains);
}

/* Each of many tasks holds a chain, as it does when it has ended. */
static void test_many_chains(void)
{
	struct kb_chains chains;
	uint32_t one = KB_CHAIN_NONE, i, length = 0;

	kb_chains_init(&chains, 100);
	for (i = 0; i < 90; i++)
		add_link(&chains, KB_CHAIN_NONE, 2 + i, 0);
	for (i = 0; i < 1000; i++)
		one = add_link(&chains, one, i % 2, 10 * (int64_t)i);
	for (; one < KB_CHAIN_CUT; one = chains.links[one].before)
		length++;
	tap_ok(length >= 20, "a_chain_keeps_its_younger_part_beside_many_others");
	tap_ok(chains.used <= 200, "and_there_are_not_many_more_links");
	kb_chains_release(&chains);
}

static uint32_t add_through(struct kb_chains *chains, uint32_t before, int64_t start,
			    uint32_t through)
{
	const struct kb_link link = { .task_id = 9, .start = start, .end = start + 10 };

	return kb_chains_add_through(chains, before, &link, through);
}

/* A wait for a task that waited for one that waited, and so on. */
static void test_chains_through_chains(void)
{
	struct kb_chains chains;
	uint32_t one, two, through;

	kb_chains_init(&chains, 1000000);
	one = add_link(&chains, KB_CHAIN_NONE, 1, 0);
	two = add_through(&chains, KB_CHAIN_NONE, 0, one);
	tap_ok(add_link(&chains, two, 9, 10) != two && chains.used == 3,
	       "a_link_through_a_chain_does_not_go_on");
	kb_chains_drop(&chains, one);
	tap_ok(chains.used == 3 && chains.links[one].users == 1, "it_holds_that_chain");
	kb_chains_drop(&chains, chains.nr - 1);
	tap_is(chains.used, 0, "and_lets_it_go");
	one = KB_CHAIN_NONE;
	for (int64_t i = 0; i < 500000; i++) {
		through = one;
		one = add_through(&chains, add_link(&chains, KB_CHAIN_NONE, 1, i - 10), i, through);
		kb_chains_drop(&chains, through);
	}
	kb_chains_drop(&chains, one);
	tap_is(chains.used, 0, "however_deep_they_are");
	kb_chains_release(&chains);
}

/* ---- gaps ---- */

/* If each gap behind the 65536th had them all joined again, this would take minutes. */
static void test_many_gaps(void)
{
	struct kb_gaps gaps;
	struct kb_trace *trace;
	struct made made;
	int64_t now = 0;
	uint32_t i;
	bool good;

	begin(&made);
	for (i = 0; i < 65535; i++, now += 100) {
		add_switch(&made, 0, (uint64_t)now, 1, false);
		add_loss(&made, 0, (uint64_t)now + 10);
	}
	add_switch(&made, 1, (uint64_t)now, 1, false);
	for (i = 0; i < 40000; i++, now++)
		add_loss(&made, 1, (uint64_t)now);
	add_switch(&made, 1, (uint64_t)now + 10, 1, false);
	trace = finish(&made);
	must(kb_gaps_read(&gaps, trace, NULL), "gaps");
	good = gaps.nr && gaps.nr <= 65536;
	for (i = 0; i < 65535; i++)
		good &= kb_gaps_overlap(&gaps, 100 * (int64_t)i, 100 * (int64_t)i + 10);
	tap_ok(good && kb_gaps_overlap(&gaps, now - 20, now - 10), "all_of_many_gaps_are_known");
	tap_ok(!kb_gaps_overlap(&gaps, now, now + 10), "behind_them_there_is_none");
	kb_gaps_release(&gaps);
	kb_trace_close(trace);
}

int main(void)
{
	random_start();
	test_histogram();
	test_chains();
	test_many_chains();
	test_chains_through_chains();
	test_many_gaps();
	test_machine();
	test_ended();
	return tap_done();
}
