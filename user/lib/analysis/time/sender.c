// SPDX-License-Identifier: MIT
#include <string.h>

#include "analysis/time/sender.h"

bool kb_softirq_is_net_rx(uint32_t softirq)
{
	const char *name = kb_softirq_name(softirq);

	return name && strcmp(name, "NET_RX") == 0;
}

static uint32_t both(uint32_t one, uint32_t other)
{
	return !one || one == other ? other : KB_SENDER_OTHERS;
}

static void feed_raise(struct kb_sender *sender, const struct kb_event *event)
{
	uint8_t context = event->custom_counter.context;
	uint32_t who = KB_SENDER_OTHERS;

	if (context == KB_CONTEXT_TASK && event->task_id)
		who = event->task_id;
	else if (context == KB_CONTEXT_SOFTIRQ && sender->runs && sender->now)
		who = sender->now;	/* an answer */
	if (sender->runs)
		sender->next = both(sender->next, who);
	sender->now = both(sender->now, who);
}

void kb_sender_feed(struct kb_sender *sender, const struct kb_event *event)
{
	uint8_t what = event->custom_counter.what;

	if (what < KB_WHAT_SOFTIRQ_RAISE || what > KB_WHAT_SOFTIRQ_EXIT ||
	    !kb_softirq_is_net_rx(event->custom_counter.id))
		return;
	if (what == KB_WHAT_SOFTIRQ_RAISE) {
		feed_raise(sender, event);
	} else if (what == KB_WHAT_SOFTIRQ_ENTRY) {
		sender->runs = true;
	} else {
		sender->now = sender->next;
		sender->next = KB_SENDER_UNKNOWN;
		sender->runs = false;
	}
}
