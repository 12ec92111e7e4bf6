// SPDX-License-Identifier: MIT
/*
 * Both sides on one page that needs no other file: the text, and a flame graph of A, of B and of
 * both. Each picture is a document of its own within the page, because each has a script.
 */
#include <stdlib.h>

#include "export/diff/write.h"
#include "export/viewers/flamegraph_put.h"
#include "format/base64.h"

static const char head[] =
	"<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>";
static const char style[] =
	"</title>\n<style>body{font:14px sans-serif;margin:1em auto;max-width:1240px;background:#fbfaf6;"
	"color:#222}pre{font:12px/1.35 monospace;overflow-x:auto}.sure{font-weight:bold}"
	"iframe{border:1px solid #ddd;width:1220px;max-width:100%}</style>\n";

/* Write the lines of a text; those of certain differences are bold. */
static void put_lines(struct kb_out *out, const char *text, size_t size)
{
	for (size_t at = 0, length; at < size; at += length + 1) {
		const char *end = memchr(text + at, '\n', size - at);
		bool sure = text[at] == '*';

		length = end ? (size_t)(end - text) - at : size - at;
		if (sure)
			kb_out_printf(out, "<span class=\"sure\">");
		for (size_t i = 0; i < length; i += 512)
			kb_flame_text(out, text + at + i, length - i < 512 ? length - i : 512);
		kb_out_printf(out, sure ? "</span>\n" : "\n");
	}
}

static int put_text(const struct kb_diff *diff, struct kb_out *out)
{
	struct kb_out *memory;
	const char *text;
	size_t size;
	int ret = kb_out_memory(&memory);

	if (ret)
		return ret;
	ret = kb_diff_text(diff, NULL, memory, NULL);
	text = kb_out_data(memory, &size);
	kb_out_printf(out, "<pre>");
	if (!ret)
		put_lines(out, text, size);
	kb_out_printf(out, "</pre>\n");
	kb_out_destroy(memory);
	return ret;
}

#define PIECE	3072	/* bytes; a multiple of 3 */

static void put_base64(struct kb_out *out, const uint8_t *data, size_t size)
{
	char text[KB_BASE64_BYTES(PIECE)];

	for (size_t at = 0; at < size; at += PIECE) {
		size_t length = size - at < PIECE ? size - at : PIECE;

		kb_base64(text, data + at, length);
		kb_out_bytes(out, text, KB_BASE64_BYTES(length));
	}
}

/* The height of a picture, as it says itself at its beginning. */
static int height_of(const char *picture, size_t size)
{
	static const char word[] = "height=\"";
	const char *found = memmem(picture, size, word, sizeof(word) - 1);
	char number[12] = "";

	if (!found || size - (size_t)(found - picture) < sizeof(word) + sizeof(number))
		return 400;
	memcpy(number, found + sizeof(word) - 1, sizeof(number) - 1);
	return atoi(number);
}

static int put_picture(const struct kb_diff *diff, enum kb_diff_picture what,
		       const struct kb_diff_write_options *options, struct kb_out *out)
{
	static const char *const titles[] = { "A", "B", "Both: the mean of A and B" };
	struct kb_diff_write_options how = *options;
	struct kb_out *memory;
	const char *picture;
	size_t size;
	int ret = kb_out_memory(&memory);

	if (ret)
		return ret;
	how.title = titles[what];
	ret = kb_diff_put_flamegraph(diff, what, &how, memory);
	picture = kb_out_data(memory, &size);
	kb_out_printf(out, "<h2>%s</h2>\n<iframe height=\"%d\" src=\"data:image/svg+xml;base64,",
		      titles[what], height_of(picture, size) + 4);
	put_base64(out, (const uint8_t *)picture, size);
	kb_out_printf(out, "\"></iframe>\n");
	kb_out_destroy(memory);
	return ret;
}

int kb_diff_write_html(const struct kb_diff *diff, const struct kb_diff_write_options *options,
		       struct kb_out *out)
{
	static const enum kb_diff_picture pictures[] = {
		KB_DIFF_PICTURE_BOTH, KB_DIFF_PICTURE_A, KB_DIFF_PICTURE_B,
	};
	const char *title = options->title ? options->title : "A, then B";
	int ret;

	kb_out_bytes(out, head, sizeof(head) - 1);
	kb_flame_text(out, title, strlen(title));
	kb_out_bytes(out, style, sizeof(style) - 1);
	ret = put_text(diff, out);
	for (int i = 0; i < 3 && !ret; i++)
		ret = put_picture(diff, pictures[i], options, out);
	kb_out_printf(out, "</html>\n");
	return ret;
}
