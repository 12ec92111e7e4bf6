/* SPDX-License-Identifier: MIT */
#ifndef KB_LIB_BASE_IO_TERMINAL_H
#define KB_LIB_BASE_IO_TERMINAL_H

#include <stdbool.h>

/* The size of the terminal that is open as @fd. False: it tells none, as a serial line. */
bool kb_terminal_size(int fd, unsigned int *rows, unsigned int *columns);

#endif
