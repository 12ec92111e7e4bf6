/* SPDX-License-Identifier: MIT */
/*
 * cli/script/: kbarman script: records as lines, in the format of perf script or as JSON.
 *
 * What `kbarman script` prints, and how. script.c reads the options and the capture, text.c
 * and json.c print a record.
 */
#ifndef KB_CLI_SCRIPT_SCRIPT_H
#define KB_CLI_SCRIPT_SCRIPT_H

#include <kbarman/names.h>
#include <kbarman/trace.h>

#include "analysis/time/task_cpus.h"
#include "cli/base/filters.h"
#include "cli/script/line.h"
#include "cli/script/tasks.h"

/* How records are called in -e. */
enum script_kind {
	SCRIPT_SAMPLE, SCRIPT_SWITCH, SCRIPT_IDLE, SCRIPT_WAKE, SCRIPT_MIGRATE, SCRIPT_IRQ,
	SCRIPT_SOFTIRQ, SCRIPT_FREQ, SCRIPT_SYSCALLS, SCRIPT_FAULTS, SCRIPT_BLOCK,
	SCRIPT_ANNOTATION, SCRIPT_COUNTER, SCRIPT_KINDS,
};

/* Of -F: bits, in the order in which they are printed. */
enum script_field {
	FIELD_COMM	= 1U << 0,
	FIELD_PID	= 1U << 1,
	FIELD_TID	= 1U << 2,
	FIELD_CPU	= 1U << 3,
	FIELD_TIME	= 1U << 4,
	FIELD_PERIOD	= 1U << 5,
	FIELD_EVENT	= 1U << 6,
	FIELD_TRACE	= 1U << 7,
	FIELD_IP	= 1U << 8,
	FIELD_SYM	= 1U << 9,
	FIELD_SYMOFF	= 1U << 10,
	FIELD_DSO	= 1U << 11,
	FIELD_SRCLINE	= 1U << 12,
};

#define FIELDS_TASK	(FIELD_COMM | FIELD_PID | FIELD_TID)
#define FIELDS_FRAME	(FIELD_IP | FIELD_SYM | FIELD_SYMOFF | FIELD_DSO | FIELD_SRCLINE)
#define FIELDS_DEFAULT	(FIELD_SRCLINE - 1)

struct script {
	const char *path;
	unsigned int kinds;		/* bits of enum script_kind */
	unsigned int fields;
	bool counters, json;
	struct filters filters;
	struct kb_symbol_options symbols;

	struct kb_trace *trace;
	const struct kb_header *header;
	struct kb_names *names;
	struct kb_symbolizer *symbolizer;
	struct script_tasks *tasks;
	struct kb_task_cpus cpus;
	struct line line;
	uint64_t clock_base;		/* ns that are added to the times of the lines */
	uint64_t records;		/* printed */

	/* The seconds of the time before, as text: "  123." */
	bool second_negative;
	uint64_t second_start;		/* ns */
	size_t second_length;
	char second[32 + LINE_SLACK];
};

/* Prints a record of @kind. @from: the CPU that a migrated task leaves. */
void script_text(struct script *script, const struct kb_walk *walk, enum script_kind kind,
		 uint32_t from);
void script_json(struct script *script, const struct kb_walk *walk, enum script_kind kind,
		 uint32_t from);

/* Parses the words of -e and of -F. Returns false after a message that has all of them. */
bool script_take_kinds(const char *text, unsigned int *bits);
bool script_take_fields(const char *text, unsigned int *bits);

/* The word of -e. */
struct kb_text script_kind_word(enum script_kind kind);

/* Whether a record has frames below its line. */
static inline bool script_has_chain(const struct kb_event *event)
{
	return event->type == KB_EVENT_TASK_SWITCH ? event->task_switch.nr_chain :
	       event->type == KB_EVENT_SAMPLE && event->sample.has_pc && event->sample.nr_chain;
}

#endif
