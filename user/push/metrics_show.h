/* SPDX-License-Identifier: MIT */
/* kbarman push --openmetrics: shows metrics to Prometheus, or writes them to a file. */
#ifndef KBARMAN_PUSH_METRICS_SHOW_H
#define KBARMAN_PUSH_METRICS_SHOW_H

#include <signal.h>

struct push_metrics {
	const char *where;		/* [HOST:]PORT or a file */
	double interval;		/* s */
	const char *const *inputs;	/* captures; none: a session that runs */
	int nr_inputs;
	volatile sig_atomic_t *stop;	/* not 0: end in good order */
	void (*catch_signals)(void);	/* which set it */
};

/* Returns an exit status. */
int push_metrics(const struct push_metrics *how);

#endif
