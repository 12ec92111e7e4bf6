/* SPDX-License-Identifier: MIT */
/* What a row or a node of differences is called. */
#ifndef KB_LIB_EXPORT_DIFF_LABEL_H
#define KB_LIB_EXPORT_DIFF_LABEL_H

#include <string.h>

#include <kbarman/report.h>

#define KB_DIFF_LABEL	1024

/* As nodes of a report are called. Returns the length of the label. */
static inline size_t kb_diff_label(char label[KB_DIFF_LABEL], const char *name, const char *image)
{
	const struct kb_calltree_node node = { .name = name, .image_base = image };

	kb_calltree_label(&node, label, KB_DIFF_LABEL);
	return strlen(label);
}

#endif
