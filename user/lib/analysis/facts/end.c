// SPDX-License-Identifier: MIT
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/facts/end.h"
#include "base/array.h"
#include "base/text/utf8.h"

static const char *const words_of[] = {
	[KBARMAN_END_UNKNOWN] = "unknown",
	[KBARMAN_END_REBOOT] = "reboot",
	[KBARMAN_END_PANIC] = "panic",
};

const char *kb_end_word(uint32_t how)
{
	return words_of[how < ARRAY_SIZE(words_of) ? how : KBARMAN_END_UNKNOWN];
}

struct kb_end kb_end_of(const struct kbarman_stamp *stamp)
{
	return (struct kb_end){ stamp->end, stamp->ticks, stamp->cpu, stamp->task_id, stamp->comm, stamp->text, NULL };
}

static uint64_t number(const char *fact)
{
	return fact ? strtoull(fact, NULL, 10) : 0;
}

bool kb_end_get(const struct kb_barman *barman, struct kb_end *end)
{
	const char *how = kb_barman_fact(barman, "end"), *task = kb_barman_fact(barman, "end_task");
	const char *text = kb_barman_fact(barman, "end_text"), *chain = kb_barman_fact(barman, "end_chain");
	const char *comma = task ? strchr(task, ',') : NULL;

	*end = (struct kb_end){
		.ticks = number(kb_barman_fact(barman, "end_ticks")),
		.cpu = (uint32_t)number(kb_barman_fact(barman, "end_cpu")),
		.task_id = (uint32_t)number(task),
		.task = comma ? comma + 1 : "",
		.text = text ? text : "",
		.chain = chain ? chain : "",
	};
	for (uint32_t i = 0; how && i < ARRAY_SIZE(words_of); i++)
		if (!strcmp(how, words_of[i]))
			end->how = i;
	return how;
}

const char *kb_end_words(const struct kb_end *end, char words[KB_END_WORDS])
{
	int used;

	if (end->how == KBARMAN_END_UNKNOWN)
		return "without a word from Linux: by a reset, a watchdog, a crash kernel, a debugger, or a loss of power";
	used = snprintf(words, KB_END_WORDS, "with a %s", kb_end_word(end->how));
	if (end->ticks)
		snprintf(words + used, KB_END_WORDS - (size_t)used,
			 "%s%.128s; CPU %" PRIu32 " ran %.16s (task %" PRIu32 ")", *end->text ? ": " : "",
			 end->text, end->cpu, end->task, end->task_id);
	words[kb_utf8_shown(words, words, strlen(words))] = '\0';
	return words;
}

/* ---- what a stamp says ---- */

__attribute__((format(printf, 2, 3)))
static void add(struct kb_end_facts *facts, const char *format, ...)
{
	unsigned int nr = 0;
	va_list args;

	while (facts->facts[nr])
		nr++;
	va_start(args, format);
	vsnprintf(facts->text[nr], sizeof(facts->text[nr]), format, args);
	va_end(args);
	facts->facts[nr] = facts->text[nr];
}

void kb_end_facts(struct kb_end_facts *facts, const struct kbarman_stamp *stamp)
{
	struct kb_end end = stamp ? kb_end_of(stamp) : (struct kb_end){ .how = KBARMAN_END_UNKNOWN };
	char chain[KBARMAN_STAMP_CHAIN * 20] = "";
	size_t used = 0;

	*facts = (struct kb_end_facts){ 0 };
	if (stamp)
		add(facts, "kbarman.stamp=%016" PRIx64, (uint64_t)stamp->capture);
	add(facts, "kbarman.end=%s", kb_end_word(end.how));
	if (!end.ticks)
		return;
	add(facts, "kbarman.end_ticks=%" PRIu64, end.ticks);
	add(facts, "kbarman.end_cpu=%" PRIu32, end.cpu);
	add(facts, "kbarman.end_task=%" PRIu32 ",%s", end.task_id, end.task);
	add(facts, "kbarman.end_text=%s", end.text);
	for (uint32_t i = 0; i < stamp->nr_chain; i++)
		used += (size_t)snprintf(chain + used, sizeof(chain) - used, "%s0x%" PRIx64, i ? "," : "",
					 (uint64_t)stamp->chain[i]);
	if (used)
		add(facts, "kbarman.end_chain=%s", chain);
}
