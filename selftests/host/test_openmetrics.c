// SPDX-License-Identifier: MIT
/*
 * Sums for OpenMetrics: they are those of the report of latencies whatever the records are, and they
 * do not depend on how a session is cut into captures.
 */
#include <errno.h>

#include <kbarman/openmetrics.h>

#include "export/openmetrics/sums.h"

#include "../lib/tap.h"
#include "detail_capture.h"

#define ROUNDS	60
#define STEPS	800

static unsigned int wrong;

static void check(bool good, unsigned int line)
{
	if (good)
		return;
	if (!wrong++)
		tap_note("line %u", line);
}

#define CHECK(condition)	check(condition, __LINE__)

/* Records that need not make sense, with times that do not go back. */
static struct kb_trace *make(uint64_t *last)
{
	static const uint8_t contexts[] = { KB_CONTEXT_TASK, KB_CONTEXT_SOFTIRQ, KB_CONTEXT_IRQ };
	uint64_t now = 1;
	struct made made;

	begin(&made);
	for (unsigned int i = 0; i < STEPS; i++) {
		uint32_t core = random_below(CORES), task = random_below(TASKS);

		now += random_below(4) * random_below(3000);
		switch (random_below(5)) {
		case 0:
			add_switch(&made, core, now, task, random_below(2));
			break;
		case 1:
			add_halt(&made, core, now, random_below(2), (int)random_below(4));
			break;
		case 2:
			if (!random_below(20))
				add_loss(&made, core, now);
			break;
		default:
			add_detail(&made, core, now, task, (uint8_t)(1 + random_below(12)),
				   random_below(6), (uint16_t)random_below(CORES),
				   contexts[random_below(3)]);
		}
	}
	*last = now;
	return finish(&made);
}

static char *text_of(const struct kb_openmetrics *metrics, enum kb_openmetrics_form form)
{
	struct kb_out *out;
	const void *data;
	size_t size;
	char *text;

	must(kb_out_memory(&out) || kb_openmetrics_write(metrics, form, out), "a text");
	data = kb_out_data(out, &size);
	text = strndup(data, size);
	kb_out_destroy(out);
	return text;
}

static struct kb_openmetrics *create(void)
{
	struct kb_openmetrics *metrics;

	must(kb_openmetrics_create(&metrics, NULL, NULL), "metrics");
	return metrics;
}

static void compare_cpus(const struct kb_om_sums *sums, const struct kb_latency *latency)
{
	uint64_t count[2] = { 0 }, sum[2] = { 0 };

	for (uint32_t i = 0; i < CORES; i++) {
		for (unsigned int kind = 0; kind < KB_TILE_KINDS; kind++)
			CHECK(sums->cpus[i].tile_ns[kind] == latency->cpus[i].ns[kind]);
		for (unsigned int cause = 0; cause < 2; cause++) {
			count[cause] += sums->cpus[i].waits[cause].count;
			sum[cause] += sums->cpus[i].waits[cause].sum_ns;
		}
	}
	CHECK(count[0] == latency->woken.count && sum[0] == latency->woken.sum_ns);
	CHECK(count[1] == latency->preempted.count && sum[1] == latency->preempted.sum_ns);
	CHECK(sums->cut == latency->cut && sums->unexplained == latency->unexplained);
	CHECK(sums->gaps == latency->gaps);
}

static void compare_rows(struct kb_trace *trace, const struct kb_om_sums *sums,
			 const struct kb_latency *latency)
{
	uint64_t ns = 0, count = 0, halts = 0, halt_ns = 0, deep = 0, shallow = 0;
	char name[KB_ORIGIN_NAME];

	for (uint32_t i = 0; i < latency->nr_interrupts; i++) {
		const struct kb_interrupt *want = &latency->interrupts[i];

		kb_origin_name(trace, &want->origin, 0, name, sizeof(name));
		ns += want->ns;
		count += want->count;
	}
	for (uint32_t i = 0; i < sums->handlers.nr; i++) {
		ns -= sums->handlers.rows[i].values[KB_OM_NS];
		count -= sums->handlers.rows[i].values[KB_OM_COUNT];
	}
	CHECK(ns == 0 && count == 0);
	for (uint32_t i = 0; i < latency->nr_halts; i++) {
		halts += latency->halts[i].count;
		halt_ns += latency->halts[i].ns;
		deep += latency->halts[i].too_deep;
		shallow += latency->halts[i].too_shallow;
	}
	for (uint32_t i = 0; i < sums->idle.nr; i++) {
		halts -= sums->idle.rows[i].values[KB_OM_COUNT];
		halt_ns -= sums->idle.rows[i].values[KB_OM_NS];
		deep -= sums->idle.rows[i].values[KB_OM_DEEP];
		shallow -= sums->idle.rows[i].values[KB_OM_SHALLOW];
	}
	CHECK(halts == 0 && halt_ns == 0 && deep == 0 && shallow == 0);
}

static void sums_are_those_of_the_report(void)
{
	for (unsigned int round = 0; round < ROUNDS; round++) {
		uint64_t last;
		struct kb_trace *trace = make(&last);
		struct kb_openmetrics *metrics = create();
		const struct kb_latency *latency;

		CHECK(kb_openmetrics_read(metrics, trace, NULL, NULL) == 0);
		CHECK(kb_latency_create(&latency, trace, NULL, NULL) == 0);
		compare_cpus(kb_openmetrics_sums(metrics), latency);
		compare_rows(trace, kb_openmetrics_sums(metrics), latency);
		kb_latency_destroy(latency);
		kb_openmetrics_destroy(metrics);
		kb_trace_close(trace);
	}
}

/* Pieces are counted, too: that number differs. */
static void forget_pieces(char *text)
{
	static const char line[] = "\nkbarman_captures_total ";
	char *at = strstr(text, line) + strlen(line), *end = strchr(at, '\n');

	memmove(at, end, strlen(end) + 1);
}

/* Reads @trace in pieces of random length, as frozen copies of a session are. */
static void read_pieces(struct kb_openmetrics *metrics, struct kb_trace *trace, uint64_t last)
{
	struct kb_openmetrics_part part = { .size = sizeof(part) };

	for (uint64_t until = 1; until < last; until += 1 + random_below((uint32_t)last / 3)) {
		part.until = until;
		CHECK(kb_openmetrics_read(metrics, trace, &part, NULL) == 0);
		part.after = until;
		part.goes_on = true;
	}
	part.until = 0;
	CHECK(kb_openmetrics_read(metrics, trace, &part, NULL) == 0);
}

static void a_session_may_be_cut_anywhere(void)
{
	for (unsigned int round = 0; round < ROUNDS; round++) {
		uint64_t last;
		struct kb_trace *trace = make(&last);
		struct kb_openmetrics *whole = create(), *pieces = create();
		char *want, *got;

		CHECK(kb_openmetrics_read(whole, trace, NULL, NULL) == 0);
		read_pieces(pieces, trace, last);
		want = text_of(whole, KB_OPENMETRICS);
		got = text_of(pieces, KB_OPENMETRICS);
		forget_pieces(want);
		forget_pieces(got);
		CHECK(!strcmp(want, got));
		free(want);
		free(got);
		kb_openmetrics_destroy(whole);
		kb_openmetrics_destroy(pieces);
		kb_trace_close(trace);
	}
}

static void what_was_read_does_not_count_again(void)
{
	struct kb_openmetrics_part part = { .size = sizeof(part), .goes_on = true };
	struct kb_openmetrics *metrics = create();
	struct kb_trace *trace;
	char *before, *after;

	trace = make(&part.until);
	CHECK(kb_openmetrics_read(metrics, trace, &part, NULL) == 0);
	before = text_of(metrics, KB_OPENMETRICS_PROMETHEUS);
	part.after = part.until;
	for (unsigned int i = 0; i < 3; i++)
		CHECK(kb_openmetrics_read(metrics, trace, &part, NULL) == 0);
	after = text_of(metrics, KB_OPENMETRICS_PROMETHEUS);
	forget_pieces(before);
	forget_pieces(after);
	CHECK(!strcmp(before, after));
	free(before);
	free(after);
	kb_openmetrics_destroy(metrics);
	kb_trace_close(trace);
}

static void wrong_calls_are_errors(void)
{
	const struct kb_openmetrics_cost cost = { .size = sizeof(cost), .cpu_ns = 5 };
	const struct kb_openmetrics_cost less = { .size = sizeof(less), .cpu_ns = 3 };
	struct kb_openmetrics_part part = { .size = 4096 };
	struct kb_openmetrics *metrics = create();
	struct kb_trace *trace;
	uint64_t last;

	trace = make(&last);
	CHECK(kb_openmetrics_end(metrics, NULL) == -EINVAL);
	CHECK(kb_openmetrics_read(metrics, trace, &part, NULL) == -EINVAL);
	CHECK(kb_openmetrics_begin(metrics, trace, NULL, NULL) == 0);
	CHECK(kb_openmetrics_begin(metrics, trace, NULL, NULL) == -EINVAL);
	CHECK(kb_openmetrics_end(metrics, NULL) == 0);
	/* a number that would fall stays */
	CHECK(kb_openmetrics_cost(metrics, &cost, NULL) == 0);
	CHECK(kb_openmetrics_cost(metrics, &less, NULL) == 0);
	CHECK(kb_openmetrics_sums(metrics)->cost.cpu_ns == 5);
	/* in the middle of a capture: its memory goes with the metrics */
	CHECK(kb_openmetrics_begin(metrics, trace, NULL, NULL) == 0);
	kb_openmetrics_destroy(metrics);
	kb_openmetrics_destroy(NULL);
	kb_trace_close(trace);
}

static bool passes(void (*test)(void))
{
	wrong = 0;
	test();
	return !wrong;
}

int main(void)
{
	random_start();
	tap_ok(passes(sums_are_those_of_the_report), "sums_are_those_of_the_report");
	tap_ok(passes(a_session_may_be_cut_anywhere), "a_session_may_be_cut_anywhere");
	tap_ok(passes(what_was_read_does_not_count_again), "what_was_read_does_not_count_again");
	tap_ok(passes(wrong_calls_are_errors), "wrong_calls_are_errors");
	return tap_done();
}
