// SPDX-License-Identifier: MIT
/* Lines of facts on standard output: see fact_lines.h. */
#include <string.h>
#include <unistd.h>

#include "cli/base/cli.h"
#include "cli/base/fact_lines.h"

int lines_open(struct kb_json *json, bool people)
{
	*json = (struct kb_json){ .people = people };
	return kb_out_fd(&json->out, STDOUT_FILENO) ? cli_fail("out of memory") : CLI_OK;
}

int lines_close(struct kb_json *json, int status)
{
	int ret = kb_out_flush(json->out);

	kb_out_destroy(json->out);
	if (ret)
		return cli_fail("can't write standard output: %s", strerror(-ret));
	return status;
}
