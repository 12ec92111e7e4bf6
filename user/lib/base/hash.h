/* SPDX-License-Identifier: MIT */
/*
 * Hashes for tables in memory. They may change: nothing that is written or compared between
 * programs depends on them but the colours of flame graphs. A table whose keys a capture chooses
 * needs a seed of its own.
 */
#ifndef KB_LIB_HASH_H
#define KB_LIB_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <sys/random.h>

/* A seed that nobody can know beforehand; @owner stands for it if there is none yet. */
static inline uint64_t kb_hash_seed(const void *owner)
{
	uint64_t seed;

	return getrandom(&seed, sizeof(seed), GRND_NONBLOCK) == sizeof(seed) ? seed
									     : (uintptr_t)owner;
}

/* 2^64 divided by the golden ratio: the upper bits of a product depend on all bits of the key. */
static inline uint64_t kb_hash_spread(uint64_t key)
{
	return key * UINT64_C(0x9e3779b97f4a7c15);
}

/* Take one more word into @hash. All bits of the result can be used. */
static inline uint64_t kb_hash_word(uint64_t hash, uint64_t word)
{
	hash = kb_hash_spread(hash ^ word);
	return hash ^ hash >> 32;
}

/*
 * Take @length bytes into @hash: for tables, where @hash is a random seed, and for texts whose
 * hash is their name.
 */
static inline uint64_t kb_hash_bytes(uint64_t hash, const char *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++)
		hash = kb_hash_word(hash, (uint8_t)bytes[i]);
	return hash;
}

#define KB_HASH_TEXT	2166136261U	/* FNV-1a */

static inline uint32_t kb_hash_byte(uint32_t hash, uint8_t byte)
{
	return (hash ^ byte) * 16777619U;
}

/*
 * The lower bits are the good ones. Anybody can write texts that have one hash: it finds nothing
 * in a table.
 */
static inline uint32_t kb_hash_string(const char *string)
{
	uint32_t hash = KB_HASH_TEXT;

	for (; *string; string++)
		hash = kb_hash_byte(hash, (uint8_t)*string);
	return hash;
}

/* Brings what the upper bits know into the lower ones, for a table that is no power of two. */
static inline uint32_t kb_hash_fold(uint32_t hash)
{
	return hash ^ hash >> 15;
}

#endif
