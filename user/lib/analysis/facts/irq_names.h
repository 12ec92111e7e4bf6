/* SPDX-License-Identifier: MIT */
/*
 * Names of interrupts, from facts "kbarman.irq.N=NAME". Several handlers of an interrupt are
 * "NAME, NAME", in the order in which Linux calls them.
 */
#ifndef KB_LIB_ANALYSIS_FACTS_IRQ_NAMES_H
#define KB_LIB_ANALYSIS_FACTS_IRQ_NAMES_H

#include <kbarman/text.h>

#include "base/table.h"

struct kb_irq_names {
	struct kb_table rows;
};

void kb_irq_names_init(struct kb_irq_names *names);
void kb_irq_names_release(struct kb_irq_names *names);

/*
 * Take "N=NAME", which lives as long as @names. A later fact of the same interrupt replaces an
 * earlier one. Other texts are ignored, and more than any machine has. Returns 0 or -ENOMEM.
 */
int kb_irq_names_take(struct kb_irq_names *names, const char *fact);

/*
 * The handler of interrupt @irq that has @behind others behind it; empty: unknown. If fewer
 * handlers are known than that, all names.
 */
struct kb_text kb_irq_names_find(const struct kb_irq_names *names, uint32_t irq, uint32_t behind);

#endif
