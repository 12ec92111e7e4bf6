/* SPDX-License-Identifier: MIT */
/* Records that belong together: a wakeup and the run that it led to, the begin and end of a handler. */
#ifndef KB_LIB_EXPORT_PAIRS_H
#define KB_LIB_EXPORT_PAIRS_H

#include "analysis/time/shown.h"

struct kb_pairs {
	struct kb_arrows wakeups;
	struct kb_handlers handlers;
};

/* What a record has ended. */
struct kb_paired {
	bool woken, handled;
	struct kb_arrow wakeup;		/* if woken */
	struct kb_handler handler;	/* if handled */
};

/* Returns 0 or -ENOMEM. A zeroed struct may be released. */
int kb_pairs_init(struct kb_pairs *pairs, struct kb_trace *trace);
void kb_pairs_release(struct kb_pairs *pairs);

/*
 * Take the current record of @trace, whether it is shown or not. Returns 0 and fills @paired with what
 * is to be shown, or -ENOMEM.
 */
int kb_pairs_feed(struct kb_pairs *pairs, const struct kb_trace *trace, struct kb_paired *paired);

#endif
