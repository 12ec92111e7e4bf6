// SPDX-License-Identifier: MIT
/* See run.h. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/run.h"

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
