// SPDX-License-Identifier: MIT
/*
 * Fuzz target of the comparison of captures: a capture with whatever in its header and records
 * beside itself, or twice beside itself. Whatever differs must be a number, and what is written must
 * be UTF-8. The last byte chooses.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <kbarman/diff_export.h>

#include "base/text/utf8.h"

static void must(bool good)
{
	if (!good)
		abort();
}

static void check_text(struct kb_out *out)
{
	size_t size;
	const char *data = kb_out_data(out, &size);

	must(kb_utf8_valid(data, size) == size);
}

static void check_rows(const struct kb_diff *diff)
{
	for (uint32_t i = 0; i < diff->nr; i++) {
		const struct kb_diff_row *row = &diff->rows[i];

		must(!isnan(row->a) && !isnan(row->b) && !isnan(row->change));
		must(row->low <= row->high && row->p >= 0 && row->p <= 1);
		must(row->q >= row->p && row->q <= 1);
		must(!row->certain || row->compared);
		must(row->by != KB_DIFF_CHAIN || row->node < diff->nr_nodes);
		must(!isnan(kb_diff_exceeds(row, 0.02, false)));
	}
	for (uint32_t i = 1; i < diff->nr_nodes; i++)
		must(diff->nodes[i].parent < i);
}

static void check_files(const struct kb_diff *diff, bool waits)
{
	const struct kb_diff_text_options how = { .size = sizeof(how), .all = true };
	const struct kb_diff_write_options options = { .size = sizeof(options), .waits = waits };
	struct kb_error err;
	struct kb_out *out;

	must(!kb_out_memory(&out) && !kb_diff_text(diff, &how, out, &err));
	check_text(out);
	kb_out_destroy(out);
	for (const struct kb_diff_format *format = kb_diff_formats(); format->name; format++) {
		must(!kb_out_memory(&out) && !kb_diff_write(diff, format, &options, out, &err));
		if (strcmp(format->name, "pprof"))
			check_text(out);
		kb_out_destroy(out);
	}
}

/* One more capture of side @side; false: it can't be read. */
static bool add(struct kb_differ *differ, unsigned int side, const uint8_t *data, size_t size)
{
	/* no image of this machine is read, whatever the capture calls for */
	const struct kb_symbol_options nothing = {
		.size = sizeof(nothing), .symfs = "/nonexistent",
	};
	const struct kb_trace_options how = { .size = sizeof(how), .symbols = &nothing };
	struct kb_trace *trace;
	struct kb_error err;
	int ret;

	if (kb_trace_open_memory(&trace, data, size, &how, &err))
		return false;
	ret = kb_differ_add(differ, side, trace, &err);
	kb_trace_close(trace);
	return ret >= 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kb_diff_options options = { .size = sizeof(options) };
	unsigned int choice = size ? data[size - 1] : 0, captures = choice & 1 ? 4 : 2;
	struct kb_differ *differ;
	const struct kb_diff *diff;
	struct kb_error err;
	bool good = true;

	options.per_second = choice & 2;
	options.least = choice & 4 ? -1 : 0;
	must(!kb_differ_create(&differ, &options, &err));
	/* half of it is a capture, too, if a damaged one */
	for (unsigned int i = 0; i < captures && good; i++)
		good = add(differ, i & 1, data, choice & 16 && i & 1 ? size / 4 * 3 : size);
	if (good) {
		must(!kb_differ_judge(differ, &diff, &err));
		check_rows(diff);
		check_files(diff, choice & 8);
	}
	kb_differ_destroy(differ);
	return 0;
}
