// SPDX-License-Identifier: MIT
/* The table of the files of differences. */
#include <string.h>

#include "base/options.h"
#include "export/diff/write.h"

static const struct kb_diff_format formats[] = {
	{ "flamegraph", ".svg", "one flame graph of both sides: red is more in B, blue is less",
	  kb_diff_write_flamegraph },
	{ "html", ".html", "one page with the tables, and a flame graph of A, of B and of both",
	  kb_diff_write_html },
	{ "folded", ".folded", "a line for each call chain, with its ns in A and in B",
	  kb_diff_write_folded },
	{ "pprof", ".pb.gz", "a profile for pprof: B, with A as its base", kb_diff_write_pprof },
	{ "speedscope", ".speedscope.json", "Speedscope: A, B, what is more in B and what is less",
	  kb_diff_write_speedscope },
	{ 0 },
};

const struct kb_diff_format *kb_diff_formats(void)
{
	return formats;
}

const struct kb_diff_format *kb_diff_format_find(const char *name)
{
	for (const struct kb_diff_format *format = formats; format->name; format++)
		if (strcmp(format->name, name) == 0)
			return format;
	return NULL;
}

int kb_diff_write(const struct kb_diff *diff, const struct kb_diff_format *format,
		  const struct kb_diff_write_options *options, struct kb_out *out,
		  struct kb_error *err)
{
	struct kb_diff_write_options how;
	int ret = KB_OPTIONS(&how, options, err);

	if (ret)
		return ret;
	ret = format->write(diff, &how, out) ?: kb_out_flush(out);
	return ret ? kb_error_set(err, ret, KB_NO_OFFSET, "can't write the differences: %s",
				  strerror(-ret))
		   : 0;
}
