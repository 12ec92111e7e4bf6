// SPDX-License-Identifier: MIT
/* The table of exports, and functions that all of them need. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/export.h"

static const struct kb_export *const exports[] = {
	&kb_export_heph,
	&kb_export_annotate,
	&kb_export_tptp,
	&kb_export_folded,
	&kb_export_flamegraph,
	&kb_export_perfetto,
	&kb_export_html,
	&kb_export_chrome,
	&kb_export_pprof,
	&kb_export_speedscope,
	&kb_export_firefox,
	&kb_export_ctf,
	NULL,
};

const struct kb_export *const *kb_export_all(void)
{
	return exports;
}

const struct kb_export *kb_export_find(const char *name)
{
	const struct kb_export *const *e;

	for (e = exports; *e; e++)
		if (strcmp((*e)->name, name) == 0)
			return *e;
	return NULL;
}

void kb_export_say(const struct kb_export_options *options, const char *format, ...)
{
	va_list args;
	char *sentence;

	if (!options->say)
		return;
	va_start(args, format);
	if (vasprintf(&sentence, format, args) < 0)
		sentence = NULL;
	va_end(args);
	options->say(options->context, sentence ? sentence : "out of memory");
	free(sentence);
}

int kb_export_rewind(struct kb_barman *barman, struct kb_error *err)
{
	int error = kb_barman_rewind(barman);

	if (error)
		return kb_error_set(err, error, KB_NO_OFFSET, "the capture comes from a pipe and "
				    "was read already: write it to a file first");
	return 0;
}

int kb_export_end(const struct kb_barman *barman, struct kb_out *out, int damage,
		  struct kb_error *err)
{
	const struct kb_error *first;
	int error = kb_out_flush(out);

	if (error)
		return kb_error_set(err, error, KB_NO_OFFSET, "can't write the output: %s",
				    strerror(-error));
	if (damage < 0)
		return 1;
	if (!kb_barman_damage(barman, &first))
		return 0;
	if (err)
		*err = *first;
	return 1;
}
