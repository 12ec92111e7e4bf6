/* SPDX-License-Identifier: MIT */
/*
 * Handlers of interrupts, IPIs and softirqs as times, from the records of their begin and end. They
 * nest: an interrupt may come during a softirq. A handler without its begin or its end is left out.
 */
#ifndef KB_LIB_ANALYSIS_HANDLERS_H
#define KB_LIB_ANALYSIS_HANDLERS_H

#include <stddef.h>

#include <kbarman/names.h>

#define KB_HANDLERS_DEPTH	8	/* handlers in each other, of one CPU */
#define KB_HANDLER_LABEL	256	/* bytes, with the NUL */

struct kb_handler {
	uint8_t what;		/* KB_WHAT_IRQ_ENTRY, KB_WHAT_IPI_ENTRY or KB_WHAT_SOFTIRQ_ENTRY */
	uint16_t behind;	/* as in the event of its begin */
	uint32_t id;
	uint32_t core, task_id;	/* the task in whose time it ran */
	uint32_t depth;		/* handlers that it has interrupted */
	uint64_t timestamp;	/* ticks: its begin */
	int64_t start, end;	/* ns */
};

struct kb_handlers {
	struct cpu_handlers *cpus;
	uint32_t nr_cpus;
};

/* Returns 0 or -ENOMEM. A zeroed struct may be released. */
int kb_handlers_init(struct kb_handlers *handlers, uint32_t nr_cpus);
void kb_handlers_release(struct kb_handlers *handlers);

/* Take the next event, at @ns. True: it ends a handler, and fills @done. */
bool kb_handlers_feed(struct kb_handlers *handlers, const struct kb_event *event, int64_t ns,
		      struct kb_handler *done);

/*
 * The name of a handler: "virtio0", "irq 33" for one without a name, "Rescheduling interrupts", or
 * "softirq NET_RX". Not escaped, may be invalid UTF-8. Returns its length.
 */
size_t kb_handler_label(const struct kb_names *names, const struct kb_handler *handler,
			char label[KB_HANDLER_LABEL]);

#endif
