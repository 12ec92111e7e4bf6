/* SPDX-License-Identifier: MIT */
/*
 * Captures, or a session that runs, become texts of metrics in a process of their own. It can't
 * reach the network, and no client of the server makes it wait. It ends when its parent does.
 */
#ifndef KBARMAN_PUSH_METRICS_READ_H
#define KBARMAN_PUSH_METRICS_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <kbarman/openmetrics.h>

#define METRICS_FORMS	2		/* enum kb_openmetrics_form */

struct metrics_reader {
	const char *const *inputs;	/* captures; none: a session that runs */
	int nr_inputs;
	double interval;		/* s, of a session: the longest time between two readings */
	/* the process */
	pid_t pid;
	int fd;				/* where its texts come from; does not block */
	int life;			/* which ends it when it is closed */
	/* what comes */
	void *partly;
	size_t got;
	/* what came last; each text is without its end ("# EOF"); to be freed */
	char *texts[METRICS_FORMS];
	size_t sizes[METRICS_FORMS];
	int64_t at_ms;			/* when it came; 0: nothing yet */
	bool ended;			/* nothing more comes; then the exit status: */
	int status;
};

/* Starts the process. Returns 0, or an exit status after a message. */
int metrics_reader_start(struct metrics_reader *reader);

/* Takes what is there, without waiting. Returns true if there are new texts. */
bool metrics_reader_take(struct metrics_reader *reader);

/* Ends the process, and frees the texts. */
void metrics_reader_close(struct metrics_reader *reader);

#endif
