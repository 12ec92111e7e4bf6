/* SPDX-License-Identifier: MIT */
/* Which capture it is, whatever its file is called. */
#ifndef KB_LIB_FORMAT_BARMAN_IDENTITY_H
#define KB_LIB_FORMAT_BARMAN_IDENTITY_H

#include <string.h>

#include <kbarman/barman.h>

#include "base/digest.h"

/* A digest of all that the capture has. Copies have the same one, and so have all machines and releases. */
struct barman_identity {
	uint8_t bytes[KB_DIGEST_BYTES];
};

/*
 * Reads all records, so call it before the first one is read; a stream goes to a temporary file. Returns
 * 0 or a negative errno.
 */
int barman_identify(struct kb_barman *barman, struct barman_identity *identity, struct kb_error *err);

static inline bool barman_is_same(const struct barman_identity *a, const struct barman_identity *b)
{
	return !memcmp(a, b, sizeof(*a));
}

/* Whether both are of one session of one machine, for example parts of it. */
bool barman_same_session(const struct kb_barman *a, const struct kb_barman *b);

/*
 * The index of the first of @nr captures that is a copy of another one, and @of, the one before it;
 * @nr: there is none, but for captures without records. For few captures: it compares each with each.
 */
unsigned int barman_find_copy(struct kb_barman *const *captures, unsigned int nr, unsigned int *of);

#endif
