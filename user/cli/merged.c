// SPDX-License-Identifier: MIT
#include "cli/base/cli.h"
#include "cli/merged.h"
#include "record/merge/captures.h"

int merged_write(struct kb_barman *const *captures, unsigned int count, const char *const *facts,
		 const char *path, uint64_t *records)
{
	struct kb_error err = { 0 };
	struct cli_output out;

	if (cli_output_open_private(&out, path))
		return CLI_IMPOSSIBLE;
	if (kb_captures_merge(captures, count, facts, out.fd, records, &err)) {
		cli_warn("%s: %s", out.path, kb_error_text(&err));
		cli_output_abandon(&out);
		return CLI_IMPOSSIBLE;
	}
	return cli_output_commit(&out);
}

int merged_complain(struct kb_barman *const *captures, unsigned int count)
{
	int status = CLI_OK;

	for (unsigned int i = 0; i < count; i++) {
		const struct kb_error *first;
		unsigned int findings = kb_barman_damage(captures[i], &first);

		if (!findings)
			continue;
		if (findings == 1)
			cli_warn("%s", kb_error_text(first));
		else
			cli_warn("%s (and %u more findings)", kb_error_text(first), findings - 1);
		status = CLI_DAMAGED;
	}
	return status;
}
