/* SPDX-License-Identifier: MIT */
/* Machines whose CPUs are of several kinds, as with big.LITTLE: which of them count what. */
#ifndef KB_CLI_SESSION_PER_CORE_H
#define KB_CLI_SESSION_PER_CORE_H

#include <kbarman/device.h>

struct kb_json;
struct kb_uncounted;

/*
 * For a session that has started, whose CPUs may count different events: says which CPUs do not count
 * what, and which take no samples. Returns CLI_IMPOSSIBLE after a message if no CPU counts anything.
 */
int per_core_say(struct kb_device *device);

/* Write an object of @kind for each of the @nr @rows. */
void per_core_json(struct kb_json *json, const char *kind, const struct kb_uncounted *rows,
		   uint32_t nr);

#endif /* KB_CLI_SESSION_PER_CORE_H */
