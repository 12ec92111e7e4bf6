/* SPDX-License-Identifier: MIT */
/* Probes of the kernel's functions that are made on the spot, in the group kbarman_test. */
#ifndef KBARMAN_VM_KPROBES_H
#define KBARMAN_VM_KPROBES_H

#include "lib.h"

#define KPROBES		"/sys/kernel/tracing/kprobe_events"
#define KPROBE_HITS	"/sys/kernel/tracing/kprobe_profile"

/* Make or remove a probe, as kprobetrace.rst has it: 0; -ENOSYS: this kernel has none; -errno. */
static inline int kprobe_command(const char *command)
{
	int fd = open(KPROBES, O_WRONLY | O_APPEND | O_CLOEXEC);
	int error = 0;

	if (fd < 0)
		return -ENOSYS;
	if (write(fd, command, strlen(command)) <= 0)
		error = -errno;
	close(fd);
	return error;
}

/* How often the probe @event was hit while it was on. */
static inline unsigned long kprobe_hits(const char *event)
{
	FILE *profile = fopen(KPROBE_HITS, "re");
	char line[256], name[64];
	unsigned long hits;

	while (profile && fgets(line, sizeof(line), profile)) {
		if (sscanf(line, " %63s %lu", name, &hits) == 2 && !strcmp(name, event)) {
			fclose(profile);
			return hits;
		}
	}
	lost("no %s in kprobe_profile", event);
}

#endif /* KBARMAN_VM_KPROBES_H */
