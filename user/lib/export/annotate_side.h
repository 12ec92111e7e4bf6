/* SPDX-License-Identifier: MIT */
/*
 * CAPTURE.annotate-side: what Annotate clients said during a recording and a capture has no
 * place for. Streams of Annotate one behind the other, each with its setup: where a
 * message would begin and an 'A' stands, the next one does. An annotation of the capture
 * whose group is ANNOTATE_SIDE_GROUP is the text of a picture that is in there.
 */
#ifndef KB_LIB_EXPORT_ANNOTATE_SIDE_H
#define KB_LIB_EXPORT_ANNOTATE_SIDE_H

#include <stdint.h>

#include <kbarman/annotate.h>

struct kb_export_options;

#define ANNOTATE_SIDE_SUFFIX	".annotate-side"
#define ANNOTATE_SIDE_GROUP	0x76697375U	/* "visu" */

/* The version that a stream with all messages of the file at @path has to have: 3 or 4. */
int32_t annotate_side_version(const char *path);

/*
 * All messages of the file at @path to @out, where their counters have keys from
 * @first_key on and no activity map is @own_view. Damage is said, and ends it.
 */
void annotate_side_write(const char *path, const struct kb_export_options *options,
			 struct kb_out *out, uint32_t first_key, int32_t own_view);

#endif
