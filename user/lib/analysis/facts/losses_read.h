/* SPDX-License-Identifier: MIT */
/* Reads what a capture lacks: kbarman/losses.h. */
#ifndef KB_LIB_ANALYSIS_FACTS_LOSSES_READ_H
#define KB_LIB_ANALYSIS_FACTS_LOSSES_READ_H

#include <kbarman/losses.h>

/* Read the losses from the facts of @barman. Returns 0 or -ENOMEM. */
int kb_losses_read(struct kb_losses *losses, const struct kb_barman *barman);
void kb_losses_release(struct kb_losses *losses);

/* Set @cores[core], of max_cores, for each core whose oldest records were overwritten. */
void kb_losses_overwritten(const struct kb_header *header, bool *cores);

#define KB_LOST_SERIES	"Lost records"

/* The custom series with the numbers of lost records; UINT32_MAX: there is none. */
uint32_t kb_losses_series(const struct kb_header *header);

#endif
