/* SPDX-License-Identifier: MIT */
/*
 * Who sends to its own machine. What a task sends there, Linux receives at once: it asks for the
 * softirq NET_RX in the task's place, which runs before the call goes on, whatever that is:
 * setsockopt(2) may send, too. If an interrupt asks as well, a packet of another machine may be what
 * wakes.
 */
#ifndef KB_LIB_ANALYSIS_TIME_SENDER_H
#define KB_LIB_ANALYSIS_TIME_SENDER_H

#include <kbarman/tiles.h>

#define KB_SENDER_UNKNOWN	0U
#define KB_SENDER_OTHERS	UINT32_MAX	/* not a task, or not it alone */

/* Of a CPU; zeros at the beginning, and where records are missing. */
struct kb_sender {
	uint32_t now, next;	/* the task that asked for the softirq, and for the one behind it */
	bool runs;
};

/* Take @event, the next KB_EVENT_CUSTOM_COUNTER of the CPU. */
void kb_sender_feed(struct kb_sender *sender, const struct kb_event *event);

/* Who asked for the softirq NET_RX that runs on @core. */
uint32_t kb_tiles_sender(const struct kb_tiles *tiles, uint32_t core);

bool kb_softirq_is_net_rx(uint32_t softirq);

#endif
