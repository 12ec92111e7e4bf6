/* SPDX-License-Identifier: MIT */
/*
 * The common parts of frame entries, read once for many functions. The cache has a fixed size
 * and a CIE has a limit (KB_FRAMES_MAX_CIE), so that no order of entries is slow.
 */
#ifndef KB_LIB_UNWIND_CIES_H
#define KB_LIB_UNWIND_CIES_H

#include "unwind/cfi.h"

#define KB_CIES		64U	/* files have one to ten */

struct kb_cie_read {
	bool used, good;
	uint8_t source;
	uint64_t at;
	struct kb_cie cie;
	struct kb_cfi_state initial;	/* what its instructions made */
};

/* All zero at first. */
struct kb_cies {
	struct kb_cie_read read[KB_CIES];
};

/*
 * The CIE at @at of @frames, which are those of number @source; NULL: there is no good one. It
 * stays until the next call.
 */
const struct kb_cie_read *kb_cies_get(struct kb_cies *cies, const struct kb_frames *frames,
				      uint8_t source, uint64_t at);

#endif
