// SPDX-License-Identifier: MIT
/* Options that are lengths of time. */
#include "base/clock.h"
#include "base/duration.h"
#include "cli/base/cli.h"

int cli_take_duration(const char *option, const char *value, uint64_t unit_ns, uint64_t least,
		      uint64_t most, uint64_t *ns)
{
	char first[KB_DURATION_TEXT], last[KB_DURATION_TEXT];

	*ns = 0;
	if (kb_duration_parse(value, unit_ns, ns) && *ns >= least && *ns <= most)
		return 0;
	return cli_fail("%s %s: give a time from %s to %s (with ns, us, ms, s, m or h; without, in %s)",
			option, value, kb_duration_text(first, least), kb_duration_text(last, most),
			unit_ns == KB_NS_PER_MS ? "milliseconds" : "seconds");
}

int cli_take_ms(const char *option, const char *value, uint64_t least, uint64_t most, uint64_t *ms)
{
	int ret = cli_take_duration(option, value, KB_NS_PER_MS, least * KB_NS_PER_MS,
				    most * KB_NS_PER_MS, ms);

	*ms /= KB_NS_PER_MS;
	return ret;
}
