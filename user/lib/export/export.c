// SPDX-License-Identifier: MIT
/* The table of exports. */
#include <string.h>

#include "analysis/time/shown.h"
#include "base/options.h"
#include "export/list.h"

static const struct kb_export *const exports[] = {
#ifndef KBARMAN_WITHOUT_heph
	&kb_export_heph,
#endif
	&kb_export_annotate,
#ifndef KBARMAN_WITHOUT_tptp
	&kb_export_tptp,
#endif
	&kb_export_folded,
	&kb_export_flamegraph,
	&kb_export_perfetto,
	&kb_export_html,
	&kb_export_chrome,
	&kb_export_pprof,
	&kb_export_speedscope,
	&kb_export_firefox,
	&kb_export_ctf,
	&kb_export_parquet,
	&kb_export_barman,
	NULL,
};

const struct kb_export *const *kb_export_all(void)
{
	return exports;
}

int kb_export_run(const struct kb_export *format, struct kb_trace *trace,
		  const struct kb_export_options *options, struct kb_out *out,
		  struct kb_error *err)
{
	struct kb_export_options known;
	struct kb_wanted wanted;
	int ret = KB_OPTIONS(&known, options, err);

	if (!ret && known.filter)
		ret = kb_wanted_init(&wanted, trace, known.filter, err);
	if (ret)
		return ret;
	kb_show_only(trace, known.filter ? &wanted : NULL);
	ret = format->run(trace, &known, out, err);
	kb_show_only(trace, NULL);
	return ret;
}

const struct kb_export *kb_export_find(const char *name)
{
	const struct kb_export *const *e;

	for (e = exports; *e; e++)
		if (strcmp((*e)->name, name) == 0)
			return *e;
	return NULL;
}
