/* SPDX-License-Identifier: MIT */
/*
 * Why a capture was made: the facts that a watch writes (kbarman/trigger.h).
 *
 *	kbarman.trigger=NUMBER				moments of this capture
 *	kbarman.trigger.I=TICKS,CPU,TASK,MEASURED,EXPRESSION
 *	kbarman.trigger.I.reason=WORDS
 *	kbarman.trigger.suppressed=NUMBER		moments since the capture before it
 *	kbarman.trigger.unwatched=BYTES			of records that the watch could not read in time
 */
#ifndef KB_LIB_ANALYSIS_FACTS_TRIGGERED_H
#define KB_LIB_ANALYSIS_FACTS_TRIGGERED_H

#include <kbarman/barman.h>

#define KB_TRIGGERED_FACT	"trigger"

struct kb_triggered {
	uint64_t ticks;
	int64_t ns;			/* as kb_barman_ns() */
	uint32_t core;			/* KB_CORE_NONE: it happened on none */
	uint32_t task_id;		/* 0: it is about none */
	uint64_t measured;		/* ns, or the counter's value or rate; 0: nothing */
	const char *expression, *reason;	/* never NULL; they are the reader's */
};

/* Moment @i of the capture; false: it has none. */
bool kb_triggered_get(const struct kb_barman *barman, uint32_t i, struct kb_triggered *triggered);

/* The number that the fact @key has, such as KB_TRIGGERED_FACT ".suppressed"; 0: there is none. */
uint64_t kb_triggered_number(const struct kb_barman *barman, const char *key);

#endif
