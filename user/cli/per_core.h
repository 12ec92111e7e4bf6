/* SPDX-License-Identifier: MIT */
/* Lists of events on machines whose CPUs are of several kinds, as with big.LITTLE. */
#ifndef KB_CLI_PER_CORE_H
#define KB_CLI_PER_CORE_H

#include <kbarman/device.h>

struct kb_json;
struct kb_uncounted;

/*
 * Let each CPU count the events that it can, if the machine has CPUs of several kinds. A generic
 * event becomes several, one for each kind of CPU, because on x86 it means one of them only.
 * @events has room for @max. @sysfs: NULL for "/sys". Returns 0 and changes @configure, or
 * CLI_IMPOSSIBLE after a message.
 */
int per_core_prepare(struct kbarman_configure *configure, struct kbarman_event *events,
		     unsigned int nr, unsigned int max, const char *sysfs);

/*
 * For a session with KBARMAN_CONFIGURE_PER_CORE that has started: says which CPUs do not count
 * what, and which take no samples. Returns CLI_IMPOSSIBLE after a message if no CPU counts anything.
 */
int per_core_say(struct kb_device *device);

/* Write an object of @kind for each of the @nr @rows. */
void per_core_json(struct kb_json *json, const char *kind, const struct kb_uncounted *rows,
		   uint32_t nr);

#endif /* KB_CLI_PER_CORE_H */
