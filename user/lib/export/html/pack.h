/* SPDX-License-Identifier: MIT */
/* Bytes as an element of the page: packed by gzip, in base64. */
#ifndef KB_LIB_EXPORT_HTML_PACK_H
#define KB_LIB_EXPORT_HTML_PACK_H

#include "base/io/out_packet.h"

#define KB_HTML_CHUNK	(3U << 12)	/* bytes of a line of base64: a multiple of 3 */

struct kb_gzip;

struct kb_html_pack {
	struct kb_gzip *gzip;
	struct kb_out *in;		/* what is to be packed goes there */
	struct kb_out *packed;
};

/* Write @length bytes, at most KB_HTML_CHUNK, as a line of base64. */
void kb_html_line(struct kb_out *page, const uint8_t *bytes, size_t length);

/* Begin an element. Returns 0 or -ENOMEM. A zeroed struct may be released. */
int kb_html_pack_begin(struct kb_html_pack *pack);
/* Write it to @page as an element of @class, and begin the next one. Returns 0 or a negative errno. */
int kb_html_pack_end(struct kb_html_pack *pack, struct kb_out *page, const char *class);
void kb_html_pack_release(struct kb_html_pack *pack);

#endif
