// SPDX-License-Identifier: MIT
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text/utf8.h"
#include "trigger/reason.h"

#define TIME_TEXT	32

/* Names are bytes that anybody may choose. */
static void set(struct kb_fired *fired, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void set(struct kb_fired *fired, const char *format, ...)
{
	va_list args;
	size_t length;

	va_start(args, format);
	vsnprintf(fired->reason, sizeof(fired->reason), format, args);
	va_end(args);
	length = kb_utf8_shown(fired->reason, fired->reason, strlen(fired->reason));
	fired->reason[length] = '\0';
}

/* A time in the unit in which it is short: "7.2 ms". */
static const char *time_text(uint64_t ns, char text[TIME_TEXT])
{
	if (ns < 1000)
		snprintf(text, TIME_TEXT, "%" PRIu64 " ns", ns);
	else if (ns < 1000000)
		snprintf(text, TIME_TEXT, "%.3g us", (double)ns / 1e3);
	else if (ns < 1000000000)
		snprintf(text, TIME_TEXT, "%.3g ms", (double)ns / 1e6);
	else
		snprintf(text, TIME_TEXT, "%.3f s", (double)ns / 1e9);
	return text;
}

void kb_reason_wait(struct kb_fired *fired, const struct kb_latency_wait *wait, const char *task,
		    const char *waker)
{
	char text[TIME_TEXT];

	time_text(fired->measured, text);
	if (wait->preempted)
		set(fired, "'%s' (%" PRIu32 ") waited %s for CPU %" PRIu32 ", to go on after a preemption",
		    task, wait->task_id, text, wait->core);
	else
		set(fired, "'%s' (%" PRIu32 ") waited %s for CPU %" PRIu32 ", woken by '%s'", task,
		    wait->task_id, text, wait->core, waker);
}

void kb_reason_off(struct kb_fired *fired, const struct kb_off *off, bool is_over, const char *task,
		   const char *call, const char *object)
{
	const char *how = off->preempted ? "preempted" : "blocked";
	char text[TIME_TEXT], where[96] = "";

	time_text(fired->measured, text);
	if (call || object)
		snprintf(where, sizeof(where), "%s%s%s%s", call ? " in " : "", call ?: "", object ? " for a " : "",
			 object ?: "");
	if (is_over)
		set(fired, "'%s' (%" PRIu32 ") was off its CPU for %s, %s%s", task, off->task_id, text, how, where);
	else
		set(fired, "'%s' (%" PRIu32 ") is off its CPU, %s%s, for %s and still is", task, off->task_id, how,
		    where, text);
}

void kb_reason_irq(struct kb_fired *fired, const struct kb_tile *tile, const char *name,
		   const char *task)
{
	char text[TIME_TEXT];

	time_text(fired->measured, text);
	set(fired, "%s '%s' took %s on CPU %" PRIu32 "%s%s%s",
	    tile->kind == KB_TILE_SOFTIRQ ? "the softirq" : "the interrupt", name, text, tile->core,
	    task ? ", from '" : "", task ? task : "", task ? "'" : "");
}

void kb_reason_syscall(struct kb_fired *fired, const char *call, const char *task)
{
	char text[TIME_TEXT];

	set(fired, "%s took %s, called by '%s' (%" PRIu32 ")", call, time_text(fired->measured, text), task,
	    fired->task_id);
}

void kb_reason_block(struct kb_fired *fired, uint8_t operation, const char *disk, const char *task)
{
	const char *what = kb_block_operation_name(operation) ?: "a request";
	char text[TIME_TEXT];

	time_text(fired->measured, text);
	if (task)
		set(fired, "%s of %s took %s, for '%s' (%" PRIu32 ")", what, disk, text, task, fired->task_id);
	else
		set(fired, "%s of %s took %s", what, disk, text);
}

void kb_reason_rate(struct kb_fired *fired, const char *name, double rate)
{
	set(fired, "the counter '%s' grew by %.4g a second", name, rate);
}

void kb_reason_value(struct kb_fired *fired, const char *name, double value)
{
	set(fired, "the counter '%s' was %.10g", name, value);
}

void kb_reason_mark(struct kb_fired *fired, const struct kb_event *event, const char *task)
{
	set(fired, "'%s' (%" PRIu32 ") marked '%.*s'", task, event->task_id,
	    event->annotation.text_length < 128 ? (int)event->annotation.text_length : 128,
	    event->annotation.text);
}

void kb_reason_psi(struct kb_fired *fired)
{
	const struct kb_trigger *trigger = fired->trigger;

	set(fired, "%s tasks stalled for %s in more than %.3g %% of %.3g s",
	    trigger->is_full ? "all" : "some", trigger->name,
	    100 * (double)trigger->limit / (double)trigger->window_us,
	    (double)trigger->window_us / 1e6);
}

void kb_reason_signal(struct kb_fired *fired, const char *name)
{
	set(fired, "the signal %s came", name);
}
