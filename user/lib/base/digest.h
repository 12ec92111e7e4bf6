/* SPDX-License-Identifier: MIT */
/*
 * BLAKE2b with 16 bytes (RFC 7693): a name for bytes that nobody can give to other bytes as well. For
 * what is written into files or compared with them; base/hash.h has what tables in memory need.
 */
#ifndef KB_LIB_BASE_DIGEST_H
#define KB_LIB_BASE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#define KB_DIGEST_BYTES	16

struct kb_digest {
	uint64_t state[8];
	uint64_t before;		/* bytes that are in the state */
	uint8_t block[128];
	size_t length;			/* of the block */
};

void kb_digest_begin(struct kb_digest *digest);
void kb_digest_bytes(struct kb_digest *digest, const void *bytes, size_t nr);
/* The same on every machine. */
void kb_digest_number(struct kb_digest *digest, uint64_t number);
void kb_digest_end(struct kb_digest *digest, uint8_t name[KB_DIGEST_BYTES]);

#endif
