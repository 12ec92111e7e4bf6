// SPDX-License-Identifier: MIT
#include "export/pairs.h"

int kb_pairs_init(struct kb_pairs *pairs, uint32_t nr_cpus)
{
	kb_arrows_init(&pairs->wakeups);
	return kb_handlers_init(&pairs->handlers, nr_cpus);
}

void kb_pairs_release(struct kb_pairs *pairs)
{
	kb_handlers_release(&pairs->handlers);
	kb_arrows_release(&pairs->wakeups);
}

int kb_pairs_feed(struct kb_pairs *pairs, const struct kb_walk *walk, struct kb_paired *paired)
{
	int woken = kb_arrows_feed(&pairs->wakeups, walk, &paired->wakeup);

	if (woken < 0)
		return woken;
	paired->woken = woken;
	paired->handled = kb_handlers_feed(&pairs->handlers, &walk->event, walk->ns,
					   &paired->handler);
	return 0;
}
