// SPDX-License-Identifier: MIT
/* See terminal.h. */
#include <sys/ioctl.h>

#include "base/io/terminal.h"

bool kb_terminal_size(int fd, unsigned int *rows, unsigned int *columns)
{
	struct winsize size;

	if (ioctl(fd, TIOCGWINSZ, &size) || !size.ws_row || !size.ws_col)
		return false;
	*rows = size.ws_row;
	*columns = size.ws_col;
	return true;
}
