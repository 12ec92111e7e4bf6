// SPDX-License-Identifier: MIT
/* kb_digest is BLAKE2b: `b2sum -l 128` of coreutils says the same. */
#include <string.h>

#include "base/digest.h"

#include "../lib/tap.h"

static bool is(const char *bytes, size_t nr, size_t piece, const char *wanted)
{
	uint8_t name[KB_DIGEST_BYTES];
	char text[2 * sizeof(name) + 1];
	struct kb_digest digest;

	kb_digest_begin(&digest);
	for (size_t at = 0; at < nr; at += piece)
		kb_digest_bytes(&digest, bytes + at, nr - at < piece ? nr - at : piece);
	kb_digest_end(&digest, name);
	for (size_t i = 0; i < sizeof(name); i++)
		sprintf(text + 2 * i, "%02x", name[i]);
	return !strcmp(text, wanted);
}

int main(void)
{
	static char many[1000];
	unsigned int wrong = 0;

	memset(many, 'x', sizeof(many));
	wrong += !is("", 0, 1, "cae66941d9efbd404e4d88758ea67670");
	wrong += !is("abc", 3, 3, "cf4ab791c62b8d2b2109c90275287816");
	for (size_t piece = 1; piece <= sizeof(many); piece = 2 * piece + 1) {
		wrong += !is(many, 127, piece, "faeac286ccce46d5273182d599dd943b");
		wrong += !is(many, 128, piece, "874acca82a22239ec64a3e70c3ae494e");
		wrong += !is(many, 129, piece, "b9ee96f69e8210c624fee55d71d5a54f");
		wrong += !is(many, sizeof(many), piece, "c9b2bd4ff487864c29fb41fab3e8187e");
	}
	tap_is(wrong, 0, "bytes_have_the_names_that_b2sum_gives");
	return tap_done();
}
