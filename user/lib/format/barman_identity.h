/* SPDX-License-Identifier: MIT */
/* Which capture it is, whatever its file is called. */
#ifndef KB_LIB_FORMAT_BARMAN_IDENTITY_H
#define KB_LIB_FORMAT_BARMAN_IDENTITY_H

#include <kbarman/barman.h>

/*
 * A number by what the capture says of itself and by its first records. Copies have the same one, and so
 * have all machines and releases. Call it before the first record is read.
 */
uint64_t barman_identity(struct kb_barman *barman);

/* Whether both are of one session of one machine, for example parts of it. */
bool barman_same_session(const struct kb_barman *a, const struct kb_barman *b);

/*
 * The index of the first of @nr captures that is a copy of another one, and @of, the one before it;
 * @nr: there is none, but for captures without records. For few captures: it compares each with each.
 */
unsigned int barman_find_copy(struct kb_barman *const *captures, unsigned int nr, unsigned int *of);

#endif
