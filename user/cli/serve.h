/* SPDX-License-Identifier: MIT */
/* Programs that connect to the tool to receive its output. */
#ifndef KBARMAN_CLI_SERVE_H
#define KBARMAN_CLI_SERVE_H

/*
 * Listens at "[HOST:]PORT" (without HOST: on the loopback interface; port 0: any free port), prints
 * the address, and waits for one client. Returns the socket, or -1 after a message.
 */
int cli_serve(const char *where);

/* Ends a connection in a way that all data arrives, and closes it. */
void cli_hang_up(int fd);

#endif
