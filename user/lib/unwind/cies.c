// SPDX-License-Identifier: MIT
/* A CIE has one place in the cache; that it can't be read is kept there, too. */
#include "unwind/cies.h"

/* Read the CIE and execute its instructions. */
static bool read_cie(struct kb_cie_read *read, const struct kb_frames *frames)
{
	struct kb_cfi cfi = { .frames = frames, .cie = &read->cie };
	struct kb_bytes code;

	if (!kb_frames_cie(frames, read->at, &read->cie))
		return false;
	code = read->cie.code;
	if (kb_cfi_run(&cfi, &code) != KB_CFI_END)
		return false;
	read->initial = cfi.now;
	return true;
}

const struct kb_cie_read *kb_cies_get(struct kb_cies *cies, const struct kb_frames *frames,
				      uint8_t source, uint64_t at)
{
	struct kb_cie_read *read = &cies->read[(at >> 2 ^ at >> 8 ^ source) % KB_CIES];

	if (!read->used || read->at != at || read->source != source) {
		read->used = true;
		read->at = at;
		read->source = source;
		read->good = read_cie(read, frames);
	}
	return read->good ? read : NULL;
}
