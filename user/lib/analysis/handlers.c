// SPDX-License-Identifier: MIT
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/handlers.h"

struct cpu_handlers {
	uint32_t nr;
	struct kb_handler open[KB_HANDLERS_DEPTH];
};

int kb_handlers_init(struct kb_handlers *handlers, uint32_t nr_cpus)
{
	handlers->nr_cpus = nr_cpus;
	handlers->cpus = calloc(nr_cpus ? nr_cpus : 1, sizeof(*handlers->cpus));
	return handlers->cpus ? 0 : -ENOMEM;
}

void kb_handlers_release(struct kb_handlers *handlers)
{
	free(handlers->cpus);
}

/* If there are more than that, ends are missing: the outermost one has to go. */
static void open_handler(struct cpu_handlers *cpu, const struct kb_event *event, int64_t ns)
{
	if (cpu->nr == KB_HANDLERS_DEPTH)
		memmove(cpu->open, cpu->open + 1, --cpu->nr * sizeof(cpu->open[0]));
	cpu->open[cpu->nr] = (struct kb_handler){
		.what = event->custom_counter.what,
		.behind = event->custom_counter.cpu,
		.id = event->custom_counter.id,
		.core = event->core,
		.task_id = event->task_id,
		.depth = cpu->nr,
		.timestamp = event->timestamp,
		.start = ns,
	};
	cpu->nr++;
}

/* Those inside of it have lost their ends. */
static bool close_handler(struct cpu_handlers *cpu, uint8_t entry, uint32_t id, int64_t ns,
			  struct kb_handler *done)
{
	for (uint32_t i = cpu->nr; i--;) {
		if (cpu->open[i].what != entry || cpu->open[i].id != id)
			continue;
		*done = cpu->open[i];
		done->end = ns > done->start ? ns : done->start;
		cpu->nr = i;
		return true;
	}
	return false;
}

bool kb_handlers_feed(struct kb_handlers *handlers, const struct kb_event *event, int64_t ns,
		      struct kb_handler *done)
{
	struct cpu_handlers *cpu;

	if (event->type != KB_EVENT_CUSTOM_COUNTER || event->core >= handlers->nr_cpus)
		return false;
	cpu = &handlers->cpus[event->core];
	switch (event->custom_counter.what) {
	case KB_WHAT_IRQ_ENTRY:
	case KB_WHAT_IPI_ENTRY:
	case KB_WHAT_SOFTIRQ_ENTRY:
		open_handler(cpu, event, ns);
		return false;
	case KB_WHAT_IRQ_EXIT:
	case KB_WHAT_IPI_EXIT:
	case KB_WHAT_SOFTIRQ_EXIT:
		return close_handler(cpu, event->custom_counter.what - 1, event->custom_counter.id,
				     ns, done);
	default:
		return false;
	}
}

static size_t label_irq(const struct kb_names *names, const struct kb_handler *handler, char *label)
{
	struct kb_text name = kb_names_irq(names, handler->id, handler->behind);

	if (!name.length)
		return (size_t)snprintf(label, KB_HANDLER_LABEL, "irq %" PRIu32, handler->id);
	if (name.length >= KB_HANDLER_LABEL)
		name.length = KB_HANDLER_LABEL - 1;
	memcpy(label, name.data, name.length);
	label[name.length] = '\0';
	return name.length;
}

size_t kb_handler_label(const struct kb_names *names, const struct kb_handler *handler,
			char label[KB_HANDLER_LABEL])
{
	const char *softirq = kb_softirq_name(handler->id);

	if (handler->what == KB_WHAT_IRQ_ENTRY)
		return label_irq(names, handler, label);
	if (handler->what == KB_WHAT_IPI_ENTRY)
		return (size_t)snprintf(label, KB_HANDLER_LABEL, "%s", kb_ipi_name(handler->id));
	if (softirq)
		return (size_t)snprintf(label, KB_HANDLER_LABEL, "softirq %s", softirq);
	return (size_t)snprintf(label, KB_HANDLER_LABEL, "softirq %" PRIu32, handler->id);
}
