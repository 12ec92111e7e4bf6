// SPDX-License-Identifier: MIT
/*
 * Labels of any length and content against the same made one character at a time: what
 * is written, and that not a byte beyond it is touched where there is no room.
 */
#include <stdlib.h>

#include "base/text/utf8.h"
#include "export/label.h"

#include "../lib/random.h"
#include "../lib/tap.h"

#define LONGEST	40

static size_t slow_label(char *to, size_t room, const char *from, size_t length, bool plain)
{
	size_t done = 0, at = 0;

	while (at < length) {
		char character[4];
		uint32_t code;
		size_t taken = kb_utf8_next(from + at, length - at, &code), size;

		if (plain && code < 0x80)
			code = code < 0x20 || code == 0x7f ? ' ' : code == '"' ? '\'' :
			       code == '\\' ? '/' : code;
		size = kb_utf8_put(character, code ? code : KB_UTF8_REPLACEMENT);
		if (size > room - done)
			break;
		memcpy(to + done, character, size);
		done += size;
		at += taken;
	}
	return done;
}

/* Mostly what names are made of. */
static char random_byte(void)
{
	static const char odd[] = "\"\\\0\t\x7f\x1f\xc3\xa4\xff\x80\xf0\x9f\x98\x80";

	return random_below(16) ? (char)('a' + random_below(26)) :
				  odd[random_below(sizeof(odd) - 1)];
}

static bool labels_agree(bool plain)
{
	for (int i = 0; i < 200000; i++) {
		/* ends where it ends, for a sanitizer to see */
		size_t length = random_below(LONGEST), room = random_below(3 * LONGEST);
		char *from = malloc(length ? length : 1), *to = malloc(room + 1);
		char want[4 * LONGEST];
		size_t wanted, got;
		bool same;

		for (size_t k = 0; k < length; k++)
			from[k] = random_byte();
		memset(to, '#', room + 1);
		wanted = slow_label(want, room, from, length, plain);
		got = kb_label(to, room, from, length, plain);
		same = got == wanted && !memcmp(to, want, got) && to[room] == '#';
		if (!same)
			tap_note("\"%.*s\", %zu bytes in %zu: got %zu, want %zu", (int)length, from,
				 length, room, got, wanted);
		free(from);
		free(to);
		if (!same)
			return false;
	}
	return true;
}

int main(void)
{
	random_start();
	tap_ok(labels_agree(false), "labels_are_utf8_without_nuls");
	tap_ok(labels_agree(true), "plain_labels_have_nothing_to_escape");
	return tap_done();
}
