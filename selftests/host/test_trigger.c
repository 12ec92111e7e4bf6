// SPDX-License-Identifier: MIT
/*
 * Triggers: what each expression means and what is said of those that are none, what the detector
 * finds in captures whose moments are known, and which moments share a capture.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "analysis/latency/late_waits.h"
#include "analysis/latency/wakeups.h"
#include "analysis/trace/parts.h"
#include "base/text/pattern.h"
#include "trigger/detector.h"
#include "trigger/moments.h"
#include "trigger/pressure.h"
#include "trigger/rates.h"
#include "trigger/triggers.h"

#include "../lib/tap.h"
#include "detail_capture.h"

#define MS	UINT64_C(1000000)
#define S	UINT64_C(1000000000)

/* ---- expressions ---- */

static struct kb_trigger parsed(const char *text)
{
	struct kb_trigger trigger;
	struct kb_error err;

	if (kb_trigger_parse(&trigger, text, &err))
		tap_note("%s", kb_error_text(&err));
	return trigger;
}

static bool is(const char *text, enum kb_trigger_kind kind, const char *name, uint64_t limit)
{
	struct kb_trigger trigger = parsed(text);
	bool same = trigger.text && !strcmp(trigger.text, text) && trigger.kind == kind &&
		    trigger.limit == limit &&
		    (name ? trigger.name && !strcmp(trigger.name, name) : !trigger.name);

	if (!same)
		tap_note("%s: kind %u, name %s, limit %" PRIu64, text, trigger.kind,
			 trigger.name ? trigger.name : "-", trigger.limit);
	kb_trigger_release(&trigger);
	return same;
}

static void test_expressions(void)
{
	struct kb_trigger trigger;

	tap_ok(is("latency>5ms", KB_TRIGGER_LATENCY, NULL, 5 * MS), "latency_of_any_task");
	tap_ok(is("latency:sh>1.5us", KB_TRIGGER_LATENCY, "sh", 1500), "latency_of_a_task");
	tap_ok(is("latency:a>b>2s", KB_TRIGGER_LATENCY, "a>b", 2 * S),
	       "a_name_may_have_a_greater_sign");
	tap_ok(is("latency:a:b>1ns", KB_TRIGGER_LATENCY, "a:b", 1), "a_name_may_have_a_colon");
	tap_ok(is("wakeup>1h", KB_TRIGGER_WAKEUP, NULL, 0) == false, "hours_are_no_limit");
	tap_ok(is("wakeup:x>3600s", KB_TRIGGER_WAKEUP, "x", 3600 * S), "wakeup_of_up_to_an_hour");
	tap_ok(is("irq>1ms", KB_TRIGGER_IRQ, NULL, MS), "any_interrupt");
	tap_ok(is("irq:NET_RX>100us", KB_TRIGGER_IRQ, "NET_RX", MS / 10), "an_interrupt_by_name");
	tap_ok(is("offcpu:db*>1s", KB_TRIGGER_OFF_CPU, "db*", S), "time_off_a_cpu");
	tap_ok(is("wait:futex*>5ms", KB_TRIGGER_WAIT, "futex*", 5 * MS), "a_wait_in_a_call");
	tap_ok(is("syscall:f*sync>20ms", KB_TRIGGER_SYSCALL, "f*sync", 20 * MS), "a_call_that_takes_long");
	tap_ok(is("block:vd*>10ms", KB_TRIGGER_BLOCK, "vd*", 10 * MS), "a_request_that_takes_long");
	tap_ok(is("boot:crash", KB_TRIGGER_BOOT, "crash", 0), "a_crash_before_this_boot");
	tap_ok(is("mark:a > b", KB_TRIGGER_MARK, "a > b", 0), "a_mark_is_all_of_its_text");
	trigger = parsed("counter:cycles>1.5M/s");
	tap_ok(trigger.is_rate && trigger.scale > 1499999 && trigger.scale < 1500001,
	       "a_counter_has_a_rate");
	kb_trigger_release(&trigger);
	trigger = parsed("counter:heat>80");
	tap_ok(!trigger.is_rate && trigger.scale > 79.9 && trigger.scale < 80.1,
	       "a_counter_has_a_value");
	kb_trigger_release(&trigger);
	trigger = parsed("psi:memory.full>2.5%/2s");
	tap_ok(trigger.is_full && trigger.limit == 50000 && trigger.window_us == 2000000 &&
	       !strcmp(trigger.name, "memory"), "pressure_of_all_tasks_in_two_seconds");
	kb_trigger_release(&trigger);
	trigger = parsed("psi:cpu>10%");
	tap_ok(!trigger.is_full && trigger.limit == 100000 && trigger.window_us == 1000000,
	       "pressure_in_a_second");
	kb_trigger_release(&trigger);
	trigger = parsed("signal:SIGUSR2");
	tap_is(trigger.signal, SIGUSR2, "a_signal_with_or_without_sig");
	kb_trigger_release(&trigger);
	trigger = parsed("signal:RTMIN+3");
	tap_is(trigger.signal, SIGRTMIN + 3, "a_realtime_signal");
	kb_trigger_release(&trigger);
}

static void test_bad_expressions(void)
{
	static const struct {
		const char *text, *says, *advises, *name;
	} bad[] = {
		{ "", "unknown word", "latency>5ms", "nothing_is_no_trigger" },
		{ "late>5ms", "unknown word", "wakeup>5ms", "an_unknown_word_is_no_trigger" },
		{ "latency", "has no limit", "latency>5ms", "a_latency_needs_a_limit" },
		{ "latency:sh", "has no limit", "latency:NAME>5ms", "so_does_one_with_a_name" },
		{ "latency:>5ms", "no name behind ':'", "latency:NAME>5ms", "a_colon_needs_a_name" },
		{ "latency>", "no time behind '>'", "ns, us, ms, s, m or h", "a_limit_needs_a_time" },
		{ "latency>5", "no time behind '>'", "ns, us, ms, s, m or h", "a_time_needs_a_unit" },
		{ "latency>-5ms", "no time behind '>'", "latency>5ms", "a_time_is_not_negative" },
		{ "latency>5msec", "no time behind '>'", "latency>5ms", "a_unit_is_one_of_these" },
		{ "latency>nanms", "no time behind '>'", "latency>5ms", "a_time_is_a_number" },
		{ "latency>0ms", "below 1 ns", "latency>5ms", "a_time_is_not_zero" },
		{ "latency>3601s", "above an hour", "latency>5ms", "a_time_has_an_end" },
		{ "irq>1", "no time", "irq>1ms", "an_interrupt_needs_a_time" },
		{ "offcpu>1s", "has no name", "offcpu:NAME>1s", "off_cpu_needs_a_name" },
		{ "wait>1s", "has no name", "wait:futex>5ms", "a_wait_is_for_something" },
		{ "syscall>1s", "has no name", "syscall:fsync>20ms", "a_call_has_a_name" },
		{ "block>1s", "has no name", "block:vda>10ms", "a_disk_has_a_name" },
		{ "counter:x", "has no limit", "counter:NAME>1M/s", "a_counter_needs_a_limit" },
		{ "counter>1M/s", "has no name", "counter:NAME>1M/s", "a_counter_needs_a_name" },
		{ "counter:x>M/s", "no number", "counter:NAME>1M/s", "a_rate_needs_a_number" },
		{ "counter:x>1M/m", "k, M, G or '/s'", "counter:NAME>80", "a_rate_is_per_second" },
		{ "mark", "has no name", "mark:TEXT", "a_mark_needs_a_text" },
		{ "mark>5", "has a limit", "mark:TEXT", "a_mark_has_no_limit" },
		{ "psi:cpu", "has no limit", "psi:cpu>10%", "pressure_needs_a_limit" },
		{ "psi:cpu>10", "0% to 100%", "psi:cpu>10%", "pressure_is_in_percent" },
		{ "psi:cpu>101%", "0% to 100%", "psi:cpu>10%", "pressure_has_an_end" },
		{ "psi:disk>10%", "cpu, memory, io", "psi:cpu>10%", "pressure_is_of_a_resource" },
		{ "psi:cpu.half>10%", ".some or .full", "psi:cpu>10%", "pressure_is_some_or_full" },
		{ "psi:cpu>10%/1ms", "500ms to 10s", "psi:cpu>10%", "the_time_of_pressure_is_linuxs" },
		{ "boot:panic", "names no crash", "boot:crash", "a_boot_has_a_crash" },
		{ "signal:KILL", "USR1, USR2", "signal:USR1", "not_every_signal_is_free" },
		{ "signal:RTMIN+99", "USR1, USR2", "signal:USR1", "nor_is_one_that_is_not_there" },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct kb_triggers *triggers;
		struct kb_error err = { 0 };
		bool good;

		must(kb_triggers_create(&triggers, &err), "a list");
		good = kb_triggers_add(triggers, bad[i].text, &err) == -EINVAL &&
		       !kb_triggers_nr(triggers) && strstr(kb_error_text(&err), bad[i].says) &&
		       strstr(kb_error_text(&err), bad[i].advises);
		if (!good)
			tap_note("%s", kb_error_text(&err));
		tap_ok(good, bad[i].name);
		kb_triggers_destroy(triggers);
	}
}

static bool matches(const char *pattern, const char *text)
{
	return kb_pattern_matches(pattern, text, strlen(text));
}

static void test_names(void)
{
	tap_ok(matches("abc", "abc") && !matches("abc", "ab") && !matches("ab", "abc") &&
	       !matches("abc", ""), "a_name_is_all_of_it");
	tap_ok(matches("a*c", "ac") && matches("a*c", "abbc") && !matches("a*c", "abcd") &&
	       matches("*", "") && matches("*b*", "abc") && matches("a**", "a") &&
	       matches("*aab", "aaaab"), "a_star_is_any_text");
	tap_ok(matches("a?c", "abc") && !matches("a?c", "ac"), "a_question_mark_is_one_character");
	tap_ok(!kb_pattern_matches("a", "a\0", 2) && !kb_pattern_matches("a", "\0", 1) &&
	       kb_pattern_matches(NULL, "x", 1), "a_text_may_have_a_nul");
}

static void test_sources(void)
{
	struct kb_triggers *triggers;

	must(kb_triggers_create(&triggers, NULL) || kb_triggers_add(triggers, "psi:io>1%", NULL), "a list");
	tap_is(kb_triggers_sources(triggers), 0, "pressure_needs_no_source");
	must(kb_triggers_add(triggers, "wakeup>1ms", NULL) || kb_triggers_add(triggers, "irq>1ms", NULL),
	     "triggers");
	tap_is(kb_triggers_sources(triggers), KBARMAN_SOURCE_SCHED | KBARMAN_SOURCE_WAKE |
	       KBARMAN_SOURCE_IRQ | KBARMAN_SOURCE_SOFTIRQ, "sources_are_those_of_all");
	tap_ok(!kb_triggers_need_objects(triggers), "these_need_no_objects");
	must(kb_triggers_add(triggers, "wait:fsync>1ms", NULL), "a trigger");
	tap_ok(kb_triggers_need_objects(triggers), "waits_need_objects");
	must(kb_triggers_add(triggers, "syscall:fsync>1ms", NULL), "a trigger");
	tap_ok(kb_triggers_sources(triggers) & KBARMAN_SOURCE_SYSCALLS, "calls_need_theirs");
	must(kb_triggers_add(triggers, "block:vda>1ms", NULL), "a trigger");
	tap_ok(kb_triggers_sources(triggers) & KBARMAN_SOURCE_BLOCK, "requests_need_theirs");
	kb_triggers_destroy(triggers);
}

/* ---- the detector ---- */

/* Finds the moments of @expression in what was @made. Returns their number, and the first ones. */
static uint32_t detect(struct kb_trace *trace, const char *expression,
		       const struct kb_detector_options *options, int64_t end, struct kb_fired *fired,
		       uint32_t room)
{
	struct kb_detector *detector;
	struct kb_triggers *triggers;
	const struct kb_walk *walk;
	struct kb_fired one;
	struct kb_error err;
	uint32_t nr = 0;

	must(kb_triggers_create(&triggers, &err) || kb_triggers_add(triggers, expression, &err),
	     expression);
	must(kb_detector_create(&detector, triggers, trace, options, &err), "a detector");
	while (kb_trace_next(trace, &walk, NULL) > 0)
		must(kb_detector_feed(detector, walk), "a record");
	if (end)
		must(kb_detector_time(detector, end), "a time");
	for (; kb_detector_fired(detector, INT64_MAX, &one); nr++)
		if (nr < room)
			fired[nr] = one;
	for (uint32_t i = 0; i < nr && i < room; i++)
		fired[i].trigger = NULL;	/* it is gone */
	kb_detector_destroy(detector);
	kb_triggers_destroy(triggers);
	must(kb_trace_rewind(trace, NULL), "a rewind");
	return nr;
}

/*
 * Task 1 runs on CPU 0, 2 waits there after a wakeup for 7 ms, 1 is preempted for 4 ms, an interrupt
 * takes 2 ms of that; task 3 sleeps on CPU 1 for 2 s, and 4 from then on.
 */
static struct kb_trace *make_known(void)
{
	struct made made;

	begin(&made);
	add_switch(&made, 0, 1 * MS, 1, true);
	add_switch(&made, 1, 1 * MS, 3, true);
	add_detail(&made, 1, 2 * MS, 3, KB_WHAT_WAKING, 2, 0, KB_CONTEXT_TASK);
	add_switch(&made, 1, 3 * MS, 0, true);
	add_switch(&made, 0, 9 * MS, 2, false);
	add_detail(&made, 0, 10 * MS, 2, KB_WHAT_IRQ_ENTRY, 1, 0, KB_CONTEXT_TASK);
	add_detail(&made, 0, 12 * MS, 2, KB_WHAT_IRQ_EXIT, 1, 0, KB_CONTEXT_TASK);
	add_switch(&made, 0, 13 * MS, 1, true);
	add(&made, (struct kb_event){ .type = KB_EVENT_ANNOTATION, .core = 0, .timestamp = 14 * MS,
		.task_id = 1, .annotation = { .type = KB_ANNOTATION_BOOKMARK, .text = "here it is",
					      .text_length = 10, .data_length = 11 } });
	add_detail(&made, 1, 2003 * MS - 1000, 0, KB_WHAT_WAKING, 3, 1, KB_CONTEXT_IDLE);
	add_switch(&made, 1, 2003 * MS, 3, false);
	add_switch(&made, 1, 2004 * MS, 4, false);
	add_switch(&made, 1, 2005 * MS, 0, true);
	return finish(&made);
}

static bool own_task(void *context, uint32_t task_id)
{
	return task_id == *(const uint32_t *)context;
}

static void test_waits(struct kb_trace *trace)
{
	struct kb_fired fired[4];
	uint32_t own = 1;
	const struct kb_detector_options options = {
		.size = sizeof(options), .is_own = own_task, .context = &own,
	};

	tap_is(detect(trace, "latency>3999us", NULL, 0, fired, 4), 2, "waits_after_wakeups_and_preemptions");
	tap_ok(fired[0].ns == 9 * (int64_t)MS && fired[0].ticks == 9 * MS && fired[0].has_record &&
	       fired[0].core == 0 && fired[0].task_id == 2 && fired[0].measured == 7 * MS,
	       "the_moment_is_when_the_task_runs");
	tap_is_string(fired[0].reason, "'a' (2) waited 7 ms for CPU 0, woken by 'a'", "in_words");
	tap_is_string(fired[1].reason, "'a' (1) waited 4 ms for CPU 0, to go on after a preemption",
		      "a_preemption_in_words");
	tap_is(detect(trace, "latency>4ms", NULL, 0, fired, 4), 1, "longer_is_not_as_long");
	tap_is(detect(trace, "wakeup>1ms", NULL, 0, fired, 4), 1, "wakeups_alone");
	tap_is(detect(trace, "latency:b>1ms", NULL, 0, fired, 4), 0, "of_no_other_task");
	tap_is(detect(trace, "latency:?>1ms", NULL, 0, fired, 4), 2, "of_tasks_with_such_names");
	/* Task 1, which is ours, ran while 2 waited; and its own wait is none. */
	tap_is(detect(trace, "latency>1ns", &options, 0, fired, 4), 1, "own_work_is_no_wait");
	tap_is(fired[0].task_id, 3, "what_others_waited_is");
}

static void test_off_cpu(struct kb_trace *trace)
{
	struct kb_fired fired[4];

	tap_is(detect(trace, "offcpu:a>1s", NULL, 0, fired, 4), 1, "a_time_off_a_cpu");
	tap_ok(fired[0].task_id == 3 && fired[0].measured == 2000 * MS &&
	       fired[0].ns == 2003 * (int64_t)MS, "ends_when_the_task_runs");
	tap_is_string(fired[0].reason, "'a' (3) was off its CPU for 2.000 s, blocked", "and_is_told");
	tap_is(detect(trace, "offcpu:a>1s", NULL, 5000 * (int64_t)MS, fired, 4), 4,
	       "a_task_that_never_comes_back_is_told");
	for (int i = 1; i < 4; i++) {
		if (fired[i].task_id != 4)
			continue;
		tap_ok(!fired[i].has_record && fired[i].ns == 3005 * (int64_t)MS,
		       "when_the_limit_was_reached");
		tap_is_string(fired[i].reason, "'a' (4) is off its CPU, blocked, for 2.995 s and still is",
			      "as_one_that_goes_on");
	}
}

static void test_interrupts(struct kb_trace *trace)
{
	struct kb_fired fired[2];

	tap_is(detect(trace, "irq>1999us", NULL, 0, fired, 2), 1, "an_interrupt_that_is_long");
	tap_ok(fired[0].ns == 12 * (int64_t)MS && fired[0].measured == 2 * MS && fired[0].task_id == 2,
	       "when_it_ends");
	tap_is_string(fired[0].reason, "the interrupt 'disk' took 2 ms on CPU 0, from 'a'", "by_name");
	tap_is(detect(trace, "irq>2ms", NULL, 0, fired, 2), 0, "not_one_that_is_as_long");
	tap_is(detect(trace, "irq:disk>1ms", NULL, 0, fired, 2), 1, "one_of_this_name");
	tap_is(detect(trace, "irq:net>1ms", NULL, 0, fired, 2), 0, "and_of_no_other");
}

static void test_marks(struct kb_trace *trace)
{
	struct kb_fired fired[2];

	tap_is(detect(trace, "mark:here*", NULL, 0, fired, 2), 1, "a_mark");
	tap_ok(fired[0].ns == 14 * (int64_t)MS && fired[0].task_id == 1, "with_its_time_and_task");
	tap_is_string(fired[0].reason, "'a' (1) marked 'here it is'", "and_its_text");
	tap_is(detect(trace, "mark:here", NULL, 0, fired, 2), 0, "a_part_of_it_is_another_mark");
}

static void add_value(struct made *made, uint64_t when, uint64_t value)
{
	add(made, (struct kb_event){ .type = KB_EVENT_CUSTOM_COUNTER, .core = 0, .timestamp = when,
		.custom_counter = { .counter = 1, .value = value } });
}

static void test_counters(void)
{
	struct kb_fired fired[4];
	struct kb_trace *trace;
	struct made made;

	begin(&made);
	for (uint64_t ms = 10; ms < 1000; ms += 10)	/* 1000 a second, but 2200 from 400 to 500 ms */
		add_value(&made, ms * MS, ms >= 400 && ms < 500 ? 22 : 10);
	trace = finish(&made);
	tap_is(detect(trace, "counter:Interrupts>2k/s", NULL, 0, fired, 4), 1,
	       "a_rate_fires_once_when_it_rises");
	tap_ok(fired[0].ns > 400 * (int64_t)MS && fired[0].ns < 500 * (int64_t)MS,
	       "within_a_tenth_of_a_second");
	tap_ok(strstr(fired[0].reason, "'Interrupts' grew by 2") != NULL, "and_is_told_as_a_rate");
	tap_is(detect(trace, "counter:Interrupts>2201/s", NULL, 0, fired, 4), 0, "a_lower_rate_does_not");
	tap_is(detect(trace, "counter:Interrupts>21", NULL, 0, fired, 4), 10, "values_fire_each");
	tap_is_string(fired[0].reason, "the counter 'Interrupts' was 22", "and_are_told");
	tap_is(detect(trace, "counter:nothing>1", NULL, 0, fired, 4), 0,
	       "a_counter_that_is_not_there_never_fires");
	kb_trace_close(trace);
}

static void test_gaps(void)
{
	struct kb_fired fired[4];
	struct kb_trace *trace;
	struct made made;

	begin(&made);
	add_switch(&made, 0, 1 * MS, 1, true);
	add_switch(&made, 1, 1 * MS, 3, true);
	add_detail(&made, 1, 2 * MS, 3, KB_WHAT_WAKING, 2, 0, KB_CONTEXT_TASK);
	add_switch(&made, 0, 3 * MS, 4, false);
	add_loss(&made, 0, 8 * MS);	/* 2 may have run there meanwhile */
	add_switch(&made, 1, 9 * MS, 2, true);
	trace = finish(&made);
	tap_is(detect(trace, "latency>1ms", NULL, 0, fired, 4), 0, "a_wait_over_lost_records_is_none");
	tap_is(detect(trace, "offcpu:*>1ms", NULL, 0, fired, 4), 0, "nor_is_a_time_off_a_cpu");
	kb_trace_close(trace);
}

/* A reader of rings tells of a loss whose reason and number nobody knows. */
static void test_gaps_of_a_reader(void)
{
	const struct kb_event loss = { .type = KB_EVENT_CUSTOM_COUNTER, .core = 1, .timestamp = 8 * MS,
		.custom_counter = { .value = 1, .begin = 2 * MS } };
	const struct kb_walk *walk;
	struct kb_trace *trace;
	struct kb_error err;
	struct made made;

	begin(&made);
	add_switch(&made, 0, 1 * MS, 1, true);
	trace = finish(&made);
	tap_ok(kb_trace_timeline(trace, &err) && kb_trace_next(trace, &walk, &err) == 1, "a_cpu_has_a_record");
	walk = kb_trace_feed(trace, &loss);
	tap_ok(walk->nr_slices == 1 && walk->slices[0].kind == KB_SLICE_LOST &&
	       walk->slices[0].start == 2 * (int64_t)MS && walk->slices[0].end == 8 * (int64_t)MS,
	       "another_one_lost_its_first_ones_since_it_was_followed");
	kb_trace_close(trace);
}

/* ---- as reports ---- */

struct counted {
	uint64_t limit;
	uint32_t nr;
};

static int count_late(void *context, const struct kb_late *late)
{
	struct counted *counted = context;

	counted->nr += late->wait.ns > counted->limit;
	return 0;
}

static struct kb_trace *make_random(void)
{
	uint32_t running[CORES] = { 0 };
	struct made made;
	uint64_t now = 0;

	begin(&made);
	for (int i = 0; i < 4000; i++) {
		uint32_t core = random_below(CORES), task = random_below(TASKS);

		now += 1 + random_below(1000);
		if (!random_below(200)) {
			add_loss(&made, core, now);
		} else if (random_below(2)) {
			add_switch(&made, core, now, task, random_below(2));
			running[core] = task;
		} else {
			add_detail(&made, core, now, running[core], KB_WHAT_WAKING, task, core, 0);
		}
	}
	return finish(&made);
}

static void test_as_reports(void)
{
	bool same = true;
	uint32_t all = 0;

	for (int round = 0; round < 20 && same; round++) {
		struct kb_trace *trace = make_random();
		struct counted counted = { .limit = 20000 };
		struct kb_late_waits *waits;
		const struct kb_walk *walk;
		struct kb_error err;
		uint32_t found = detect(trace, "latency>20us", NULL, 0, NULL, 0);

		must(kb_late_waits_create(&waits, trace, count_late, &counted, &err), "waits");
		while (kb_trace_next(trace, &walk, NULL) > 0)
			must(kb_late_waits_feed(waits, walk), "a record");
		kb_late_waits_destroy(waits);
		kb_trace_close(trace);
		same = found == counted.nr;
		all += found;
		if (!same)
			tap_note("found %u, want %u", found, counted.nr);
	}
	tap_ok(same && all > 100, "finds_the_waits_that_reports_have");
}

static void test_tasks_that_ended(void)
{
	struct kb_fired fired[2];
	struct kb_trace *trace;
	struct made made;

	begin(&made);
	for (uint32_t i = 1; i <= 20000; i++) {	/* as many ids; the last one stays */
		add_switch(&made, 0, i * 1000, i, i > 1);
		add(&made, (struct kb_event){ .type = KB_EVENT_TASK_SWITCH, .core = 0,
			.timestamp = i * 1000 + 500, .task_id = 0,
			.task_switch = { .reason = KB_SWITCH_BLOCKED,
					 .prev_state = i == 20000 ? 1 : 0x80 } });
	}
	trace = finish(&made);
	tap_is(detect(trace, "offcpu:*>1s", NULL, (int64_t)(10 * S), fired, 2), 1,
	       "tasks_that_have_ended_are_forgotten");
	tap_is(fired[0].task_id, 20000, "others_are_not");
	kb_trace_close(trace);
}

/* Task 1 waits for 3 ms in each of these, one after the other. */
static struct kb_trace *make_waits(void)
{
	static const struct {
		uint8_t object, flags;
		uint16_t call;
	} waits[] = {
		{ KB_OBJECT_PIPE, 0, 0 }, { KB_OBJECT_CALL, 0, 230 }, { KB_OBJECT_FUTEX, 0, 202 },
		{ KB_OBJECT_NO_CALL, 0, 0 }, { KB_OBJECT_RWSEM_WRITE, 0, 1 },
		{ KB_OBJECT_MUTEX, KB_OBJECT_OUTSIDE, 0 }, { KB_OBJECT_CALL, KB_OBJECT_COMPAT, 0 },
	};
	struct made made;

	begin(&made);
	must(kb_barman_writer_fact(made.writer, "machine", "x86_64") ||
	     kb_barman_writer_fact(made.writer, "objects", "1"), "facts");
	add_switch(&made, 0, 0, 1, true);
	for (uint32_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
		add(&made, (struct kb_event){ .type = KB_EVENT_TASK_SWITCH, .core = 0,
			.timestamp = i * 4 * MS + MS, .task_id = 0,
			.task_switch = { .reason = KB_SWITCH_BLOCKED, .prev_state = 1,
					 .object = { waits[i].object, waits[i].flags, waits[i].call, 0, 0 } } });
		add_switch(&made, 0, (i + 1) * 4 * MS, 1, false);
	}
	return finish(&made);
}

static void test_waits_for(void)
{
	struct kb_trace *trace = make_waits();
	struct kb_fired fired[2];

	tap_is(detect(trace, "wait:*>2ms", NULL, 0, fired, 2), 7, "each_wait_has_an_object");
	tap_is(detect(trace, "wait:*>3ms", NULL, 0, fired, 2), 0, "none_that_is_as_long");
	tap_is(detect(trace, "wait:read>2ms", NULL, 0, fired, 2), 1, "a_wait_by_its_call");
	tap_is_string(fired[0].reason, "'a' (1) was off its CPU for 3 ms, blocked in read for a pipe", "with_both");
	tap_is(detect(trace, "wait:pipe>2ms", NULL, 0, fired, 2), 1, "a_wait_by_its_object");
	tap_is(detect(trace, "wait:clock_*>2ms", NULL, 0, fired, 2), 1, "a_call_is_all");
	tap_is_string(fired[0].reason, "'a' (1) was off its CPU for 3 ms, blocked in clock_nanosleep", "in_words");
	tap_is(detect(trace, "wait:mutex>2ms", NULL, 0, fired, 2), 1, "a_lock_of_linux");
	tap_is_string(fired[0].reason, "'a' (1) was off its CPU for 3 ms, blocked for a mutex", "in_no_call");
	tap_is(detect(trace, "wait:futex>2ms", NULL, 0, fired, 2), 1, "a_futex_once");
	kb_trace_close(trace);
}

/* A call of task 1, in a capture of amd64; @begin is 0 if it is not known. */
static void add_call(struct made *made, uint32_t number, uint64_t begin, uint64_t end, bool compat)
{
	static const uint64_t arguments[KB_SYSCALL_ARGUMENTS];

	add(made, (struct kb_event){ .type = KB_EVENT_CUSTOM_COUNTER, .core = 0, .timestamp = end, .task_id = 1,
		.custom_counter = { .counter = 1, .value = 1, .what = KB_WHAT_SYSCALL, .id = number,
				    .cpu = compat ? KB_SYSCALL_COMPAT : 0, .begin = begin,
				    .arguments = arguments } });
}

static void test_calls(void)
{
	enum { FSYNC = 74, FDATASYNC = 75 };
	struct kb_fired fired[2];
	struct kb_trace *trace;
	struct made made;

	begin(&made);
	must(kb_barman_writer_fact(made.writer, "machine", "x86_64"), "a fact");
	add_switch(&made, 0, 0, 1, false);
	add_call(&made, FSYNC, MS, 31 * MS, false);
	add_call(&made, FSYNC, 40 * MS, 60 * MS, false);
	add_call(&made, FSYNC, 0, 70 * MS, false);
	add_call(&made, FSYNC, 71 * MS, 99 * MS, true);
	add_call(&made, FDATASYNC, 100 * MS, 150 * MS, false);
	trace = finish(&made);
	tap_is(detect(trace, "syscall:fsync>20ms", NULL, 0, fired, 2), 1, "a_call_of_that_name_that_took_longer");
	tap_is_string(fired[0].reason, "fsync took 30 ms, called by 'a' (1)", "who_called");
	tap_ok(fired[0].ns == 31 * (int64_t)MS && fired[0].measured == 30 * MS, "the_moment_is_its_end");
	tap_is(detect(trace, "syscall:f*sync>20ms", NULL, 0, fired, 2), 2, "calls_of_several_names");
	tap_is(detect(trace, "syscall:fsync>1ns", NULL, 0, fired, 2), 2, "an_unknown_begin_is_no_moment");
	kb_trace_close(trace);
}

/* A read of task 1, or of an unknown one if @task is 0. */
static void add_request(struct made *made, uint32_t disk, uint32_t task, uint64_t begin, uint64_t end)
{
	const uint64_t arguments[KB_SYSCALL_ARGUMENTS] = { [KB_BLOCK_DEVICE] = disk, [KB_BLOCK_BYTES] = 4096 };

	add(made, (struct kb_event){ .type = KB_EVENT_CUSTOM_COUNTER, .core = 0, .timestamp = end, .task_id = 2,
		.custom_counter = { .counter = 1, .value = 1, .what = KB_WHAT_BLOCK, .id = task, .begin = begin,
				    .arguments = arguments } });
}

static void test_requests(void)
{
	enum { VDA = 254 << 20, VDB = VDA + 16 };
	struct kb_fired fired[3];
	struct kb_trace *trace;
	struct made made;
	char key[32];

	begin(&made);
	snprintf(key, sizeof(key), "disk.%u", VDA);
	must(kb_barman_writer_fact(made.writer, key, "vda"), "a fact");
	add_switch(&made, 0, 0, 1, false);
	add_request(&made, VDA, 1, MS, 31 * MS);
	add_request(&made, VDA, 1, 40 * MS, 45 * MS);
	add_request(&made, VDA, 0, 50 * MS, 70 * MS);
	add_request(&made, VDA, 1, 0, 80 * MS);
	add_request(&made, VDB, 1, 81 * MS, 99 * MS);
	trace = finish(&made);
	tap_is(detect(trace, "block:vda>10ms", NULL, 0, fired, 3), 2, "requests_to_that_disk_that_took_longer");
	tap_is_string(fired[0].reason, "read of vda took 30 ms, for 'a' (1)", "for_whom");
	tap_ok(fired[0].ns == 31 * (int64_t)MS && fired[0].task_id == 1, "the_moment_is_its_end");
	tap_is_string(fired[1].reason, "read of vda took 20 ms", "for_nobody_who_is_known");
	tap_is(detect(trace, "block:*>1ms", NULL, 0, fired, 3), 4, "requests_to_any_disk");
	tap_is(detect(trace, "block:254:16>1ms", NULL, 0, fired, 3), 1, "a_disk_without_a_name_has_its_numbers");
	kb_trace_close(trace);
}

/* ---- moments ---- */

static struct kb_fired at(uint64_t ms)
{
	static const struct kb_trigger trigger = { .kind = KB_TRIGGER_MARK, .text = "mark:x" };

	return (struct kb_fired){ .trigger = &trigger, .ns = (int64_t)(ms * MS) };
}

static int moment(struct kb_moments *moments, uint64_t ms)
{
	const struct kb_fired fired = at(ms);

	return kb_moments_add(moments, &fired);
}

static void test_moments(void)
{
	struct kb_moments m;
	int64_t due = 0;

	kb_moments_init(&m, 500 * MS, 60 * S);
	tap_ok(!kb_moments_due(&m, &due), "nothing_is_due_at_first");
	tap_ok(moment(&m, 1000) == 1 && kb_moments_due(&m, &due) && due == 1500 * (int64_t)MS,
	       "a_capture_ends_behind_its_moment");
	tap_ok(!moment(&m, 1400) && !moment(&m, 900) && m.nr == 3, "moments_until_then_share_it");
	moment(&m, 1501);
	tap_is(m.totals.suppressed, 1, "what_is_too_soon_is_suppressed");
	kb_moments_done(&m, true);
	tap_ok(m.totals.kept == 3 && m.totals.captures == 1 && m.totals.fired == 4, "it_is_counted");
	tap_ok(!moment(&m, 60999) && m.totals.suppressed == 2 && m.suppressed_since == 1,
	       "also_after_the_capture");
	tap_is(moment(&m, 61000), 1, "until_the_time_is_over");
	kb_moments_done(&m, false);
	tap_ok(m.totals.failed == 1 && m.suppressed_since == 1, "one_that_failed_is_counted");
	tap_ok(!moment(&m, 61001) && m.totals.suppressed == 3, "the_next_one_is_not_sooner");
	tap_is(moment(&m, 121000), 1, "and_is_written_then");
	kb_moments_done(&m, true);
	tap_is(m.suppressed_since, 0, "with_what_was_too_soon_until_then");
	kb_moments_release(&m);

	kb_moments_init(&m, 10 * MS, 0);
	moment(&m, 1);
	tap_ok(!moment(&m, 12) && !moment(&m, 13) && !moment(&m, 40) && m.nr_waiting == 3,
	       "without_a_limit_they_wait");
	tap_ok(kb_moments_done(&m, true) == 1 && m.nr == 2 && m.nr_waiting == 1, "and_share_the_next");
	tap_ok(kb_moments_done(&m, true) == 1 && m.nr == 1, "or_the_one_behind_it");
	kb_moments_done(&m, true);
	tap_ok(m.totals.fired == 4 && m.totals.kept == 4 && !m.totals.suppressed, "none_is_lost");
	for (int i = 0; i < 100; i++)
		moment(&m, 100);
	tap_ok(m.nr == KB_MOMENTS_MAX && m.further == 100 - KB_MOMENTS_MAX, "too_many_are_counted");
	kb_moments_done(&m, true);
	tap_is(m.totals.kept, 104, "as_kept");
	kb_moments_release(&m);
}

static void test_pressure(void)
{
	struct kb_trigger trigger = parsed("psi:cpu>10%");
	struct kb_error err;

	tap_ok(kb_pressure_open(&trigger, "/nowhere", &err) == -ENOTSUP &&
	       strstr(kb_error_text(&err), "psi=1"), "a_kernel_without_psi_is_told");
	kb_trigger_release(&trigger);
}

int main(void)
{
	struct kb_trace *trace = make_known();

	test_expressions();
	test_bad_expressions();
	test_names();
	test_sources();
	test_waits(trace);
	test_off_cpu(trace);
	test_interrupts(trace);
	test_marks(trace);
	test_counters();
	test_gaps();
	test_gaps_of_a_reader();
	test_as_reports();
	test_tasks_that_ended();
	test_waits_for();
	test_calls();
	test_requests();
	test_moments();
	test_pressure();
	kb_trace_close(trace);
	return tap_done();
}
