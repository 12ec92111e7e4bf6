// SPDX-License-Identifier: MIT
/* See pack.h. An element is in memory, packed, until it is complete. */
#include <errno.h>

#include "export/html/pack.h"
#include "format/base64.h"
#include "format/gzip.h"

void kb_html_line(struct kb_out *page, const uint8_t *bytes, size_t length)
{
	uint8_t *at = kb_out_reserve(page, KB_BASE64_BYTES(length) + 1);

	if (!at)
		return;
	kb_base64((char *)at, bytes, length);
	at[KB_BASE64_BYTES(length)] = '\n';
	kb_out_commit(page, at + KB_BASE64_BYTES(length) + 1);
}

int kb_html_pack_begin(struct kb_html_pack *pack)
{
	if (kb_out_memory(&pack->packed))
		return -ENOMEM;
	return kb_gzip_create(&pack->gzip, pack->packed, &pack->in);
}

void kb_html_pack_release(struct kb_html_pack *pack)
{
	kb_gzip_destroy(pack->gzip);
	kb_out_destroy(pack->packed);
	*pack = (struct kb_html_pack) { 0 };
}

int kb_html_pack_end(struct kb_html_pack *pack, struct kb_out *page, const char *class)
{
	int error = kb_gzip_finish(pack->gzip);
	const uint8_t *bytes;
	size_t size;

	if (error)
		return error;
	bytes = kb_out_data(pack->packed, &size);
	kb_out_printf(page, "<script type=\"text/plain\" class=\"%s\">\n", class);
	for (; size > KB_HTML_CHUNK; size -= KB_HTML_CHUNK, bytes += KB_HTML_CHUNK)
		kb_html_line(page, bytes, KB_HTML_CHUNK);
	kb_html_line(page, bytes, size);
	kb_out_printf(page, "</script>\n");
	kb_html_pack_release(pack);
	return kb_html_pack_begin(pack);
}
