// SPDX-License-Identifier: MIT
/* What values of kbarman's own series say, put together: handlers, wakeups, names, places. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../lib/tap.h"
#include "analysis/time/handlers.h"
#include "analysis/facts/irq_names.h"
#include "analysis/time/task_cpus.h"
#include "analysis/time/arrows.h"
#include "record/recorder/idle_table.h"
#include "detail_capture.h"
#include "record/recorder/irq_table.h"

static struct kb_event about(uint8_t what, uint32_t core, uint32_t id)
{
	struct kb_event event = { .type = KB_EVENT_CUSTOM_COUNTER, .core = core, .task_id = 5 };

	event.custom_counter.what = what;
	event.custom_counter.id = id;
	return event;
}

static struct kb_event run(uint32_t core, uint32_t task, uint8_t reason)
{
	struct kb_event event = { .type = KB_EVENT_TASK_SWITCH, .core = core, .task_id = task };

	event.task_switch.reason = reason;
	return event;
}

/* ---- handlers ---- */

enum { RUN = 200, LOSS };	/* steps that are no value */

struct step {
	uint8_t what;
	uint32_t core, id;
	int64_t ns;
};

/* Write "id:start-end@depth " for each handler that ends in @steps. */
static const char *handled(const struct step *steps, size_t nr)
{
	static char text[4096];
	struct kb_handlers handlers;
	const struct kb_walk *walk;
	struct kb_handler done;
	struct kb_trace *trace;
	struct made made;
	size_t used = 0;

	begin(&made);
	for (size_t i = 0; i < nr; i++) {
		if (steps[i].what == RUN)
			add_switch(&made, steps[i].core, steps[i].ns, steps[i].id, false);
		else if (steps[i].what == LOSS)
			add_loss(&made, steps[i].core, steps[i].ns);
		else
			add_detail(&made, steps[i].core, steps[i].ns, 5, steps[i].what, steps[i].id, 0, 0);
	}
	trace = finish(&made);
	*text = '\0';
	must(kb_trace_rewind(trace, NULL) || kb_handlers_init(&handlers, trace), "handlers");
	while (kb_trace_next(trace, &walk, NULL) > 0)
		if (kb_handlers_feed(&handlers, walk, &done) > 0)
			used += snprintf(text + used, sizeof(text) - used, "%u:%d-%d@%u ", done.origin.id,
					 (int)done.start, (int)done.end, done.depth);
	kb_handlers_release(&handlers);
	kb_trace_close(trace);
	return text;
}

#define HANDLED(name, want, ...) do {							\
	static const struct step steps[] = { __VA_ARGS__ };				\
	tap_is_string(handled(steps, sizeof(steps) / sizeof(steps[0])), want, name);	\
} while (0)

static void handlers_are_times(void)
{
	enum { IN = KB_WHAT_IRQ_ENTRY, OUT = KB_WHAT_IRQ_EXIT, SOFT_IN = KB_WHAT_SOFTIRQ_ENTRY,
	       SOFT_OUT = KB_WHAT_SOFTIRQ_EXIT };
	struct step deep[20];

	HANDLED("handlers_nest", "7:12-13@1 1:10-15@0 ", { SOFT_IN, 0, 1, 10 }, { IN, 0, 7, 12 },
		{ OUT, 0, 7, 13 }, { SOFT_OUT, 0, 1, 15 });
	HANDLED("cpus_are_apart", "7:11-12@0 7:10-13@0 ", { IN, 0, 7, 10 }, { IN, 1, 7, 11 },
		{ OUT, 1, 7, 12 }, { OUT, 0, 7, 13 });
	HANDLED("an_end_without_a_begin_is_left_out", "7:2-3@0 ", { OUT, 0, 7, 1 }, { IN, 0, 7, 2 },
		{ OUT, 0, 7, 3 });
	HANDLED("a_lost_end_takes_nobody_else_along", "1:1-4@0 7:5-6@0 ", { SOFT_IN, 0, 1, 1 },
		{ IN, 0, 7, 2 }, { SOFT_OUT, 0, 1, 4 }, { IN, 0, 7, 5 }, { OUT, 0, 7, 6 });
	HANDLED("a_softirq_does_not_end_an_interrupt", "", { IN, 0, 1, 1 }, { SOFT_OUT, 0, 1, 2 });
	HANDLED("time_does_not_go_back", "7:5-5@0 ", { IN, 0, 7, 5 }, { OUT, 0, 7, 3 });
	HANDLED("no_handler_spans_a_gap", "7:40-41@0 ", { IN, 0, 7, 10 }, { LOSS, 0, 0, 20 },
		{ OUT, 0, 7, 30 }, { IN, 0, 7, 40 }, { OUT, 0, 7, 41 });
	HANDLED("a_softirq_goes_on_with_its_task", "3:30-40@0 2:20-60@0 ", { RUN, 0, 1, 10 },
		{ SOFT_IN, 0, 2, 20 }, { RUN, 0, 4, 25 }, { SOFT_IN, 0, 3, 30 }, { SOFT_OUT, 0, 3, 40 },
		{ RUN, 0, 1, 50 }, { SOFT_OUT, 0, 2, 60 });
	for (unsigned int i = 0; i < 10; i++) {
		deep[i] = (struct step){ IN, 0, i, i };
		deep[19 - i] = (struct step){ OUT, 0, i, 100 - i };
	}
	tap_ok(!strncmp(handled(deep, 20), "6:6-94@6 5:5-95@5 ", 18),
	       "the_outermost_of_too_many_are_kept");
}

/* ---- wakeups ---- */

static int feed(struct kb_arrows *wakeups, struct kb_event event, int64_t ns, int64_t running,
		struct kb_arrow *done)
{
	struct kb_walk walk = { .event = event, .ns = ns, .known = running >= 0,
				.running = running < 0 ? 0 : running };

	return kb_arrows_feed(wakeups, &walk, done);
}

/* CPU 3 has lost records. */
static int feed_gap(struct kb_arrows *wakeups, int64_t ns)
{
	struct kb_walk walk = { .event = about(KB_WHAT_VALUE, 3, 0), .ns = ns, .nr_slices = 1,
				.slices = { { .kind = KB_SLICE_LOST, .core = 3, .end = ns } } };
	struct kb_arrow done;

	return kb_arrows_feed(wakeups, &walk, &done);
}

static void wakeups_are_pairs(void)
{
	struct kb_event waking = about(KB_WHAT_WAKING, 0, 9);
	struct kb_arrows wakeups;
	struct kb_arrow done;

	waking.custom_counter.context = KB_CONTEXT_IRQ;
	kb_arrows_init(&wakeups);
	tap_ok(!feed(&wakeups, waking, 100, 5, &done) &&
	       !feed(&wakeups, run(1, 8, KB_SWITCH_BLOCKED), 110, 0, &done) &&
	       feed(&wakeups, run(1, 9, KB_SWITCH_PREEMPTED), 120, 8, &done) == 1 &&
	       done.task_id == 9 && done.waker == 5 && done.from_core == 0 && done.to_core == 1 &&
	       done.from == 100 && done.to == 120 && done.context == KB_CONTEXT_IRQ && !done.is_new,
	       "a_wakeup_ends_where_the_task_runs");
	tap_ok(!feed(&wakeups, run(1, 0, KB_SWITCH_BLOCKED), 130, 9, &done) &&
	       !feed(&wakeups, run(1, 9, KB_SWITCH_BLOCKED), 140, 0, &done), "a_wakeup_counts_once");
	/* Woken on its way to sleep, and then only preempted. */
	tap_ok(!feed(&wakeups, waking, 150, 5, &done) &&
	       !feed(&wakeups, run(1, 8, KB_SWITCH_PREEMPTED), 160, 9, &done) &&
	       !feed(&wakeups, run(1, 9, KB_SWITCH_BLOCKED), 170, 8, &done),
	       "a_task_that_did_not_sleep_was_not_woken");
	/* The waker was faster than the switch. */
	tap_ok(!feed(&wakeups, waking, 180, 5, &done) &&
	       !feed(&wakeups, run(1, 0, KB_SWITCH_BLOCKED), 190, 9, &done) &&
	       feed(&wakeups, run(1, 9, KB_SWITCH_BLOCKED), 200, 0, &done) == 1 && done.from == 180,
	       "a_task_may_be_woken_before_its_switch_is_seen");
	tap_ok(!feed(&wakeups, about(KB_WHAT_WAKING_NEW, 0, 12), 210, 5, &done) &&
	       feed(&wakeups, run(0, 12, KB_SWITCH_PREEMPTED), 220, 5, &done) == 1 && done.is_new,
	       "a_new_task_is_told_from_others");
	/* It can run already. */
	tap_ok(!feed(&wakeups, run(1, 8, KB_SWITCH_PREEMPTED), 230, 9, &done) &&
	       !feed(&wakeups, waking, 240, 5, &done) &&
	       !feed(&wakeups, run(1, 9, KB_SWITCH_BLOCKED), 250, 8, &done),
	       "a_preempted_task_is_not_woken");
	tap_ok(!feed(&wakeups, run(1, 0, KB_SWITCH_BLOCKED), 260, 9, &done) &&
	       !feed(&wakeups, waking, 270, 5, &done) && !feed_gap(&wakeups, 280) &&
	       !feed(&wakeups, run(1, 9, KB_SWITCH_BLOCKED), 290, 0, &done),
	       "no_wakeup_spans_a_gap");
	tap_ok(!feed(&wakeups, run(1, 8, KB_SWITCH_PREEMPTED), 300, 9, &done) &&
	       !feed_gap(&wakeups, 310) && !feed(&wakeups, waking, 320, 5, &done) &&
	       feed(&wakeups, run(1, 9, KB_SWITCH_BLOCKED), 330, 8, &done) == 1 && done.from == 320,
	       "behind_a_gap_all_may_be_otherwise");
	kb_arrows_release(&wakeups);
}

/* ---- where tasks belong ---- */

static int64_t moved(struct kb_task_cpus *cpus, uint8_t what, uint32_t core, uint32_t task, uint16_t cpu)
{
	struct kb_event event = about(what, core, task);

	event.custom_counter.cpu = cpu;
	return kb_task_cpus_feed(cpus, &event);
}

static void migrations_say_from_where(void)
{
	struct kb_event event = run(4, 9, KB_SWITCH_BLOCKED);
	struct kb_task_cpus cpus;

	kb_task_cpus_init(&cpus);
	tap_is(moved(&cpus, KB_WHAT_MIGRATE, 2, 9, 3), 2, "an_unknown_place_is_that_of_the_record");
	tap_is(moved(&cpus, KB_WHAT_MIGRATE, 2, 9, 1), 3, "a_migration_begins_where_the_last_one_ended");
	kb_task_cpus_feed(&cpus, &event);
	tap_is(moved(&cpus, KB_WHAT_MIGRATE, 2, 9, 0), 4, "a_task_belongs_where_it_ran");
	moved(&cpus, KB_WHAT_WAKING, 2, 9, 6);
	tap_is(moved(&cpus, KB_WHAT_MIGRATE, 2, 9, 0), 6, "a_wakeup_says_where_a_task_ran");
	kb_task_cpus_release(&cpus);
}

/* ---- names ---- */

static const char *irq_name(const struct kb_irq_names *names, uint32_t irq, uint32_t behind)
{
	struct kb_text text = kb_irq_names_find(names, irq, behind);
	static char name[128];

	snprintf(name, sizeof(name), "%.*s", (int)text.length, text.data);
	return name;
}

static void interrupts_have_names(void)
{
	char endless[2048] = "";
	struct kb_irq_names names;

	kb_irq_names_init(&names);
	for (const char *const *fact = (const char *const []){ "33=a, b, c", "34=old", "34=new", "35=",
		"=x", "1x=y", "-3=z", "4294967296=w", NULL }; *fact; fact++)
		kb_irq_names_take(&names, *fact);
	memset(endless, 'n', sizeof(endless) - 1);
	memcpy(endless, "36=", 3);
	kb_irq_names_take(&names, endless);
	tap_is_string(irq_name(&names, 36, 0), "", "names_without_end_are_left_out");
	tap_is_string(irq_name(&names, 33, 2), "a", "the_first_of_several_handlers");
	tap_is_string(irq_name(&names, 33, 1), "b", "a_handler_between_others");
	tap_is_string(irq_name(&names, 33, 0), "c", "the_last_of_several_handlers");
	tap_is_string(irq_name(&names, 33, 3), "a, b, c", "more_handlers_than_names");
	tap_is_string(irq_name(&names, 34, 0), "new", "a_later_name_replaces_an_earlier_one");
	tap_is_string(irq_name(&names, 35, 0), "", "a_name_may_be_empty");
	tap_is_string(irq_name(&names, 0, 0), "", "an_interrupt_may_have_no_name");
	kb_irq_names_release(&names);
	tap_ok(!strcmp(kb_softirq_name(0), "HI") && !strcmp(kb_softirq_name(9), "RCU") &&
	       !kb_softirq_name(10) && !kb_what_name(13) && !kb_context_name(4) &&
	       !strcmp(kb_ipi_name(77), kb_ipi_name(KB_IPI_OTHER)), "words_end_where_numbers_do");
}

static int note(void *context, uint32_t irq, const char *names)
{
	char *text = context;

	sprintf(text + strlen(text), "%u=%s;", irq, names);
	return irq == 99 ? -7 : 0;
}

static void proc_interrupts_is_read(void)
{
	char folder[] = "/tmp/kbarman-test-XXXXXX", path[64], text[1024] = "";
	FILE *file;
	int ret;

	if (!mkdtemp(folder))
		return;
	snprintf(path, sizeof(path), "%s/interrupts", folder);
	tap_is(kb_irq_table_read(folder, note, text), 0, "a_machine_may_have_no_interrupts");
	file = fopen(path, "w");
	if (!file)
		return;
	fputs("            CPU0       CPU1\n"
	      "  1:          9          0   IO-APIC   1-edge      i8042\n"
	      " 34:          1          0     GICv3  27 Level     arch timer, x:y\n"
	      " 35:          5          0     GICv3  28 Level   \n"
	      "NMI:          0          0   Non-maskable interrupts\n"
	      " 99:          1          1   IO-APIC  16-fasteoi   uhci_hcd:usb1\n"
	      "100:          1          1   IO-APIC  17-fasteoi   never", file);
	fclose(file);
	ret = kb_irq_table_read(folder, note, text);
	tap_is_string(text, "1=i8042;34=arch timer, x:y;99=uhci_hcd:usb1;", "handlers_are_read");
	tap_is(ret, -7, "an_error_ends_the_reading");
	unlink(path);
	rmdir(folder);
}

/* ---- idle states ---- */

static void put_state(const char *folder, uint32_t cpu, uint32_t state, const char *const values[4])
{
	static const char *const names[4] = { "name", "residency", "latency", "disable" };
	char path[128];
	FILE *file;
	int i;

	snprintf(path, sizeof(path), "mkdir -p %s/cpu%u/cpuidle/state%u", folder, cpu, state);
	if (system(path))
		return;
	for (i = 0; i < 4; i++) {
		snprintf(path, sizeof(path), "%s/cpu%u/cpuidle/state%u/%s", folder, cpu, state,
			 names[i]);
		file = values[i] ? fopen(path, "w") : NULL;
		if (!file)
			continue;
		fprintf(file, "%s\n", values[i]);
		fclose(file);
	}
}

static int note_state(void *context, uint32_t cpu, uint32_t state, const struct kb_idle_row *row)
{
	char *text = context;

	sprintf(text + strlen(text), "%u.%u=%u,%u,%d,%s;", cpu, state, row->residency, row->latency,
		row->disabled, row->name);
	return row->residency == 7 ? -7 : 0;
}

static void idle_states_are_read(void)
{
	char folder[] = "/tmp/kbarman-test-XXXXXX", command[64], text[1024] = "";

	if (!mkdtemp(folder))
		return;
	tap_is(kb_idle_table_read(folder, 4, note_state, text), 0, "a_machine_may_have_no_idle_states");
	put_state(folder, 0, 0, (const char *const[]){ "POLL", "0", "0", "0" });
	put_state(folder, 0, 1, (const char *const[]){ "C1, x", "20", "2", NULL });
	put_state(folder, 0, 2, (const char *const[]){ "C2", "500", "50", "1" });
	put_state(folder, 1, 0, (const char *const[]){ "POLL", "0", "0", "0" });
	put_state(folder, 1, 1, (const char *const[]){ "C1, x", "20", "2", "0" });
	put_state(folder, 1, 2, (const char *const[]){ "C2", "600", "50", "1" });
	/* CPU 2 is offline; CPU 3 has other states */
	put_state(folder, 3, 0, (const char *const[]){ "POLL", "0", "0", "0" });
	kb_idle_table_read(folder, 4, note_state, text);
	tap_is_string(text, "0.0=0,0,0,POLL;0.1=20,2,0,C1, x;0.2=500,50,1,C2;1.2=600,50,1,C2;"
			    "3.1=0,0,1,;3.2=0,0,1,;", "states_that_differ_from_those_of_cpu_0_are_told");
	put_state(folder, 0, 1, (const char *const[]){ "C1", "7", "2", "0" });
	tap_is(kb_idle_table_read(folder, 4, note_state, text), -7, "an_error_ends_this_reading");
	snprintf(command, sizeof(command), "rm -r %s", folder);
	tap_ok(!system(command), "the_states_are_gone");
}

int main(void)
{
	idle_states_are_read();
	handlers_are_times();
	wakeups_are_pairs();
	migrations_say_from_where();
	interrupts_have_names();
	proc_interrupts_is_read();
	return tap_done();
}
