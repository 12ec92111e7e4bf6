// SPDX-License-Identifier: MIT
#include <string.h>

#include <kbarman/chain.h>
#include <kbarman/symbol.h>

#include "analysis/latency/inferred.h"
#include "base/array.h"

struct clue {
	const char *text;
	enum kb_inferred is;
};

/* How names of functions begin. The innermost function that has one counts. */
static const struct clue functions[] = {
	{ "futex_", KB_INFERRED_LOCK },
	{ "__mutex_lock", KB_INFERRED_LOCK },
	{ "rwsem_down_", KB_INFERRED_LOCK },
	{ "pipe_", KB_INFERRED_PIPE },
	{ "anon_pipe_", KB_INFERRED_PIPE },
	{ "do_nanosleep", KB_INFERRED_TIME },
	{ "io_schedule", KB_INFERRED_DISK },
	{ "jbd2_log_wait_", KB_INFERRED_DISK },
	{ "sk_", KB_INFERRED_NET },
	{ "sock_", KB_INFERRED_NET },
	{ "__skb_wait_", KB_INFERRED_NET },
	{ "unix_", KB_INFERRED_NET },
	{ "inet_", KB_INFERRED_NET },
	{ "tcp_", KB_INFERRED_NET },
};

/* What is somewhere in names of softirqs: HRTIMER is one, too. */
static const struct clue softirqs[] = {
	{ "TIMER", KB_INFERRED_TIME },
	{ "NET_", KB_INFERRED_NET },
	{ "BLOCK", KB_INFERRED_DISK },
	{ "IRQ_POLL", KB_INFERRED_DISK },
};

/* What is somewhere in names of interrupts. */
static const struct clue interrupts[] = {
	{ "timer", KB_INFERRED_TIME },
	{ "nvme", KB_INFERRED_DISK },
	{ "ahci", KB_INFERRED_DISK },
	{ "ata_", KB_INFERRED_DISK },
	{ "scsi", KB_INFERRED_DISK },
	{ "sas", KB_INFERRED_DISK },
	{ "mmc", KB_INFERRED_DISK },
	{ "-req", KB_INFERRED_DISK },		/* of virtio */
	{ "-input", KB_INFERRED_NET },
	{ "-output", KB_INFERRED_NET },
	{ "eth", KB_INFERRED_NET },
	{ "TxRx", KB_INFERRED_NET },
	{ "mlx", KB_INFERRED_NET },
};

static const char *const names[] = {
	[KB_INFERRED_DISK] = "disk",
	[KB_INFERRED_NET] = "net",
	[KB_INFERRED_TIME] = "time",
	[KB_INFERRED_PIPE] = "pipe",
	[KB_INFERRED_LOCK] = "lock",
};

const char *kb_inferred_name(unsigned int inferred)
{
	return inferred < ARRAY_SIZE(names) ? names[inferred] : NULL;
}

static enum kb_inferred by_function(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(functions); i++)
		if (!strncmp(name, functions[i].text, strlen(functions[i].text)))
			return functions[i].is;
	return KB_INFERRED_NOTHING;
}

static enum kb_inferred within(const char *name, const struct clue *clues, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (strstr(name, clues[i].text))
			return clues[i].is;
	return KB_INFERRED_NOTHING;
}

enum kb_inferred kb_inferred_by_chain(struct kb_trace *trace, const struct kb_event *event, uint32_t task_id)
{
	struct kb_symbolizer *symbolizer = event->task_switch.nr_chain_kernel ? kb_trace_symbolizer(trace, NULL) : NULL;
	enum kb_inferred found = KB_INFERRED_NOTHING;

	for (uint32_t i = 0; symbolizer && !found && i < event->task_switch.nr_chain_kernel; i++)
		found = by_function(kb_symbolizer_resolve(symbolizer, task_id, event->timestamp,
							  kb_chain_lookup(event, i))->name);
	return found;
}

enum kb_inferred kb_inferred_by_waker(struct kb_trace *trace, const struct kb_origin *waker, uint64_t ticks)
{
	char name[KB_ORIGIN_NAME];

	switch (waker->kind) {
	case KB_TILE_SOFTIRQ:
		return within(kb_origin_name(trace, waker, ticks, name, sizeof(name)), softirqs, ARRAY_SIZE(softirqs));
	case KB_TILE_IRQ:
	case KB_TILE_IPI:
		return within(kb_origin_name(trace, waker, ticks, name, sizeof(name)), interrupts,
			      ARRAY_SIZE(interrupts));
	default:
		return KB_INFERRED_NOTHING;
	}
}
