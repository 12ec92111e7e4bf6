/* SPDX-License-Identifier: MIT */
/* Programs that connect to the tool to take what it writes. */
#ifndef KBARMAN_CLI_SERVE_H
#define KBARMAN_CLI_SERVE_H

/*
 * Listen at "[HOST:]PORT" (without HOST: on the loopback interface; port 0: any that is
 * free), tell where, and wait for one client. Returns the socket, or -1 after a message.
 */
int cli_serve(const char *where);

/* End a connection so that everything arrives, and close it. */
void cli_hang_up(int fd);

#endif
