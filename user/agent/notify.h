/* SPDX-License-Identifier: MIT */
/*
 * The service manager's protocol: datagrams to the socket $NOTIFY_SOCKET, as sd_notify(3) describes
 * them, and descriptors that the manager keeps while the agent is not there. Without a manager the
 * functions do nothing.
 */
#ifndef KB_AGENT_NOTIFY_H
#define KB_AGENT_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

/* Tells the manager lines "KEY=VALUE". */
void agent_notify(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Lets the manager keep @fd under @name; lets it forget the descriptors of that name. */
void agent_notify_store(int fd, const char *name);
void agent_notify_forget(const char *name);

/*
 * Calls @take for each descriptor that the manager kept, with its name. @take owns the descriptor.
 * The descriptors have close-on-exec set. Call it once.
 */
void agent_kept(void (*take)(void *context, int fd, const char *name), void *context);

/* How often the manager wants to hear of the agent, in ms; 0: it does not. */
uint64_t agent_watchdog_ms(void);

#endif
