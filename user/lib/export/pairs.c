// SPDX-License-Identifier: MIT
#include "export/pairs.h"

int kb_pairs_init(struct kb_pairs *pairs, struct kb_trace *trace)
{
	kb_arrows_init(&pairs->wakeups);
	return kb_handlers_init(&pairs->handlers, trace);
}

void kb_pairs_release(struct kb_pairs *pairs)
{
	kb_handlers_release(&pairs->handlers);
	kb_arrows_release(&pairs->wakeups);
}

int kb_pairs_feed(struct kb_pairs *pairs, const struct kb_trace *trace, struct kb_paired *paired)
{
	int woken = kb_arrows_feed(&pairs->wakeups, &trace->walk, &paired->wakeup);
	int handled = kb_handlers_feed(&pairs->handlers, &trace->walk, &paired->handler);

	paired->woken = woken > 0 && kb_is_shown_arrow(trace, &paired->wakeup);
	paired->handled = handled > 0 && kb_is_shown_handler(trace, &paired->handler);
	return woken < 0 ? woken : handled < 0 ? handled : 0;
}
