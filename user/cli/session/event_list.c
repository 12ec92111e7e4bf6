// SPDX-License-Identifier: MIT
#include <stdio.h>
#include <stdlib.h>

#include "cli/base/cli.h"
#include "cli/session/event_list.h"

int event_list_add(char **list, const char *text)
{
	char *longer;

	if (asprintf(&longer, "%s%s%s", *list ?: "", *list ? "," : "", text) < 0)
		return cli_fail("out of memory");
	free(*list);
	*list = longer;
	return 0;
}
