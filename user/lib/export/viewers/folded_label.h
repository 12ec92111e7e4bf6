/* SPDX-License-Identifier: MIT */
#ifndef KB_LIB_EXPORT_VIEWERS_FOLDED_LABEL_H
#define KB_LIB_EXPORT_VIEWERS_FOLDED_LABEL_H

#include <stdbool.h>
#include <string.h>

#include <kbarman/out.h>

#include "base/text/utf8.h"

#define KB_FOLDED_LABEL	1024	/* bytes with the NUL */

/*
 * Write the label of a frame of a folded stack. It changes @label: ';' and line ends separate frames
 * and stacks. The last blank of a line separates the weight.
 */
static inline void kb_folded_label(struct kb_out *out, char label[KB_FOLDED_LABEL], bool kernel,
				   bool inlined)
{
	char clean[KB_UTF8_GROWTH * KB_FOLDED_LABEL], *at;
	size_t length;

	for (at = label; *at; at++)
		if (*at == ';')
			*at = ':';
	length = kb_utf8_clean(clean, label, (size_t)(at - label));
	kb_out_bytes(out, clean, kb_utf8_shown(clean, clean, length));
	if (kernel)
		kb_out_bytes(out, "_[k]", 4);
	else if (inlined)
		kb_out_bytes(out, "_[i]", 4);
}

#endif
