/* SPDX-License-Identifier: MIT */
/*
 * CAPTURE.annotate: what Annotate clients said during a recording and a capture has no
 * place for. Streams of Annotate v3 one behind the other, each with its setup: where a
 * message would begin and an 'A' stands, the next one does. An annotation of the capture
 * whose group is ANNOTATE_SIDE_GROUP is the text of a picture that is in there.
 */
#ifndef KB_LIB_EXPORT_ANNOTATE_SIDE_H
#define KB_LIB_EXPORT_ANNOTATE_SIDE_H

#define ANNOTATE_SIDE_SUFFIX	".annotate"
#define ANNOTATE_SIDE_GROUP	0x76697375U	/* "visu" */

#endif
