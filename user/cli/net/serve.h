/* SPDX-License-Identifier: MIT */
/*
 * cli/net/: connections: to a program that receives output, and from programs that connect to the
 * tool.
 *
 * Programs that connect to the tool to receive its output.
 */
#ifndef KB_CLI_NET_SERVE_H
#define KB_CLI_NET_SERVE_H

#include <stdbool.h>

/*
 * Listens at "[HOST:]PORT" (without HOST: on the loopback interface; port 0: any free port), prints
 * the address, and waits for one client. Returns the socket, or -1 after a message.
 */
int cli_serve(const char *where);

/*
 * Only listens, with a queue of @backlog clients. @option is the option's name for messages. Returns
 * the socket, or -1 after a message.
 */
int cli_listen(const char *option, const char *where, int backlog);

/*
 * The real address of a listening socket: with port 0 the kernel has chosen the port. @host has room
 * for NI_MAXHOST bytes, @port for NI_MAXSERV. False: it is not known.
 */
bool cli_listens_on(int listener, char *host, char *port);

/* Ends a connection in a way that all data arrives, and closes it. */
void cli_hang_up(int fd);

#endif
