// SPDX-License-Identifier: MIT
#include <inttypes.h>

#include "base/percent.h"
#include "export/text/latency_put.h"

void latency_put_origin(const struct latency_text *text, const struct kb_origin *origin,
			uint64_t ticks)
{
	text_put_origin(&text->put, origin, ticks);
}

bool latency_is_shown(const struct latency_text *text, uint64_t part, uint64_t whole)
{
	return kb_percent(part, whole) >= text->options.percent_limit;
}

void latency_put_rest(const struct latency_text *text, uint32_t nr, const char *what)
{
	if (nr)
		text_printf(&text->put, "# %u more %s%s below %g%% of the sum: --percent-limit 0 "
			    "shows all\n", nr, what, nr == 1 ? " is" : "s are",
			    text->options.percent_limit);
}
