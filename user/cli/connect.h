/* SPDX-License-Identifier: MIT */
/* Connections to programs that take what the tool writes. */
#ifndef KBARMAN_CLI_CONNECT_H
#define KBARMAN_CLI_CONNECT_H

#include <stdbool.h>

/* Whether @where names a connection and not a file: "tcp:…", "udp:…", "unix:…". */
bool cli_is_connection(const char *where);

/*
 * Connect to "tcp:HOST:PORT", "udp:HOST:PORT" ("//" may stand before the host, an IPv6
 * address is in brackets), "unix:PATH" or "unix:@NAME" (abstract); without a scheme it
 * is TCP. Returns the socket, or -1 after a message.
 */
int cli_connect(const char *where);

/* To an Annotate daemon of this machine: its abstract socket, else its TCP port. */
int cli_connect_annotate(void);

#endif
