// SPDX-License-Identifier: MIT
/*
 * Fuzz target of the Annotate reader. A stream that it finds nothing wrong with, the
 * encoder writes again as the same bytes; of several in one file the reader tells only the
 * setups of those that have messages, so they are but read, and so are the versions 1 and 2,
 * which are not written.
 */
#include <stdlib.h>
#include <string.h>

#include <kbarman/annotate.h>

/* The whole image, NULL if it is cut off, which the next call says. */
static uint8_t *read_image(struct kb_annotate_reader *reader, struct kb_annotate_message *m,
			   size_t most)
{
	uint8_t *image;
	size_t done = 0, n;

	if (m->visual.image_bytes > most)
		return NULL;
	image = malloc((size_t)m->visual.image_bytes + 1);
	if (!image)
		abort();
	while ((n = kb_annotate_read_image(reader, image + done, 1000)) > 0)
		done += n;
	if (done != m->visual.image_bytes) {
		free(image);
		return NULL;
	}
	m->visual.image = image;
	return image;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kb_annotate_reader *reader;
	struct kb_annotate_message m;
	const struct kb_error *first;
	struct kb_error err;
	struct kb_out *out;
	uint8_t *image;
	size_t written;
	bool as_it_is;
	int result;

	if (kb_annotate_open_memory(&reader, data, size, &err))
		return 0;
	if (kb_out_memory(&out))
		abort();
	kb_annotate_write_setup(out, kb_annotate_setup(reader));
	as_it_is = kb_annotate_setup(reader)->version >= 3 && !memmem(data + 1, size - 1, "ANNOTATE ", 9);
	while ((result = kb_annotate_next(reader, &m, &err)) > 0) {
		image = NULL;
		if (m.type == KB_ANNOTATE_VISUAL) {
			image = read_image(reader, &m, size - (size_t)m.offset);
			if (!image)
				continue;
		}
		if (kb_annotate_write(out, &m))
			abort();
		free(image);
	}
	if (!result && !kb_annotate_damage(reader, &first) && as_it_is &&
	    (memcmp(kb_out_data(out, &written), data, size) != 0 || written != size))
		abort();
	kb_out_destroy(out);
	kb_annotate_close(reader);
	return 0;
}
