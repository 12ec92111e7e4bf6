/* SPDX-License-Identifier: MIT */
/*
 * How a recording ended that memory kept: the facts that `kbarman recover` makes of its stamp (uapi/stamp.h).
 *
 *	kbarman.stamp=HEX		the recording's number, as in the stamp
 *	kbarman.end=WORD		panic, reboot or unknown
 *	kbarman.end_ticks=TICKS		these only if the stamp was finished
 *	kbarman.end_cpu=CPU		where it ended
 *	kbarman.end_task=ID,NAME	who ran there
 *	kbarman.end_text=WORDS		what panic() was told; which reboot it was
 *	kbarman.end_chain=ADDRESS,...	of the kernel, the innermost first
 */
#ifndef KB_LIB_ANALYSIS_FACTS_END_H
#define KB_LIB_ANALYSIS_FACTS_END_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kbarman/barman.h>

#include <uapi/stamp.h>

struct kb_end {
	uint32_t how;		/* enum kbarman_end */
	uint64_t ticks;		/* 0: nobody knows what is below */
	uint32_t cpu, task_id;
	const char *task, *text;	/* never NULL; they are the stamp's or the reader's */
	const char *chain;	/* as in the fact; NULL: it is of a stamp */
};

/* Of @how, which is one of enum kbarman_end. */
const char *kb_end_word(uint32_t how);

struct kb_end kb_end_of(const struct kbarman_stamp *stamp);

/* False: the capture does not say. */
bool kb_end_get(const struct kb_barman *barman, struct kb_end *end);

/* How it ended, in words that follow "ended" and that can be shown. */
#define KB_END_WORDS	320
const char *kb_end_words(const struct kb_end *end, char words[KB_END_WORDS]);

/* The facts of a stamp whose texts end; NULL: there is none, and the recording ended with the machine. */
#define KB_END_FACTS	7
struct kb_end_facts {
	const char *facts[KB_END_FACTS + 1];	/* NULL behind the last one */
	char text[KB_END_FACTS][384];
};

void kb_end_facts(struct kb_end_facts *facts, const struct kbarman_stamp *stamp);

#endif
