/* SPDX-License-Identifier: MIT */
/*
 * Notes in a capture in which cgroup each process is, which says its unit and its container:
 *
 *	kbarman.cgroup.K=PATH		a cgroup, K counts from 0
 *	kbarman.cgroup_of.ROW=K		the process of that row of the task table is in it
 *
 * The cgroup is read when the process gets its row: one that has ended by then has none.
 */
#ifndef KB_AGENT_LABELS_H
#define KB_AGENT_LABELS_H

#include <stddef.h>
#include <stdint.h>

#include <kbarman/recorder.h>

struct agent_labels {			/* of one capture; zeroed: none yet */
	char **paths;
	uint32_t nr, max;
	uint64_t unread;		/* processes that had ended */
};

/* Notes the cgroup of @process, which has the row @row in the capture. */
void agent_labels_note(struct agent_labels *labels, struct kb_recorder *recorder, uint32_t row,
		       uint32_t process);

/*
 * Finds the cgroup in the text of /proc/PID/cgroup: that of version 2, or else that of systemd, or
 * the first one. Returns a place in @text, where it is ended by a NUL; NULL: there is none.
 */
char *agent_cgroup_of(char *text);

void agent_labels_release(struct agent_labels *labels);

#endif
