// SPDX-License-Identifier: MIT
#include <string.h>

#include <uapi/kbarman.h>

#include "base/array.h"
#include "record/device/source_words.h"

static const struct kb_source_word words[] = {
	{ KBARMAN_SOURCE_SCHED, "sched", "sched_switch", "task switches" },
	{ KBARMAN_SOURCE_IDLE, "idle", "cpu_idle", "idling" },
	{ KBARMAN_SOURCE_PMU, "samples", NULL, "samples" },
	{ KBARMAN_SOURCE_MAPS, "maps", NULL, "mappings" },
	{ KBARMAN_SOURCE_MARKS, "marks", NULL, "marks" },
	{ KBARMAN_SOURCE_WAKE, "wake", "sched_waking", "wakeups" },
	{ KBARMAN_SOURCE_MIGRATE, "migrate", "sched_migrate_task", "migrations" },
	{ KBARMAN_SOURCE_IRQ, "irq", "irq_handler_entry", "interrupts" },
	{ KBARMAN_SOURCE_SOFTIRQ, "softirq", "softirq_entry", "softirqs" },
	{ KBARMAN_SOURCE_FREQ, "freq", "cpu_frequency", "frequencies" },
	{ KBARMAN_SOURCE_SYSCALLS, "syscalls", "sys_exit", "system calls" },
	{ KBARMAN_SOURCE_FAULTS, "faults", "sched_process_exit", "page faults" },
	{ KBARMAN_SOURCE_BLOCK, "block", "block_rq_complete", "requests to block devices" },
};

const struct kb_source_word *kb_source_word(size_t i)
{
	return i < ARRAY_SIZE(words) ? &words[i] : NULL;
}

const struct kb_source_word *kb_source_find(const char *word, size_t length)
{
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (strlen(words[i].word) == length && !memcmp(words[i].word, word, length))
			return &words[i];
	return NULL;
}
