/* SPDX-License-Identifier: MIT */
/*
 * export/arm/: formats of Arm's tools: Barman again, for readers that know no processes, and
 * Annotate.
 *
 * CAPTURE.annotate-side: messages of Annotate clients for which a capture has no records. The
 * file has streams of Annotate one behind the other, each with its setup. An 'A' in place of a
 * message begins the next stream. If an annotation of the capture has the group
 * ANNOTATE_SIDE_GROUP, it is the text of a picture in this file.
 */
#ifndef KB_LIB_EXPORT_ARM_ANNOTATE_SIDE_H
#define KB_LIB_EXPORT_ARM_ANNOTATE_SIDE_H

#include <stdint.h>

#include <kbarman/annotate.h>

struct kb_export_options;

#define ANNOTATE_SIDE_SUFFIX	".annotate-side"
#define ANNOTATE_SIDE_GROUP	0x76697375U	/* "visu" */

/* The version that a stream with all messages of the file at @path needs: 3 or 4. */
int32_t annotate_side_version(const char *path);

/*
 * Write all messages of the file at @path to @out. Their counters get keys from @first_key on,
 * and no activity map gets the number @own_view. Damage is reported and ends the copy.
 */
void annotate_side_write(const char *path, const struct kb_export_options *options,
			 struct kb_out *out, uint32_t first_key, int32_t own_view);

#endif
