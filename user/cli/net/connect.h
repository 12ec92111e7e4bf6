/* SPDX-License-Identifier: MIT */
/* Connections to programs that receive the output of the tool. */
#ifndef KB_CLI_NET_CONNECT_H
#define KB_CLI_NET_CONNECT_H

#include <stdbool.h>

/* Does @where name a connection ("tcp:…", "udp:…", "unix:…"), not a file? */
bool cli_is_connection(const char *where);

/*
 * Connects to "tcp:HOST:PORT", "udp:HOST:PORT", "unix:PATH" or "unix:@NAME" (an abstract socket).
 * The host may follow "//"; an IPv6 address is in brackets. Without a scheme the transport is TCP.
 * Returns the socket, or -1 after a message.
 */
int cli_connect(const char *where);

/* Connects to the Annotate daemon of this machine: to its abstract socket, else to its TCP port. */
int cli_connect_annotate(void);

#endif
