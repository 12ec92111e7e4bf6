/* SPDX-License-Identifier: MIT */
/*
 * record/device/: the device and its maps, and who else speaks to a recording: programs with marks,
 * clients of Annotate.
 *
 * What a session can record (KBARMAN_SOURCE_*), in words.
 */
#ifndef KB_LIB_RECORD_DEVICE_SOURCE_WORDS_H
#define KB_LIB_RECORD_DEVICE_SOURCE_WORDS_H

#include <stddef.h>
#include <stdint.h>

struct kb_source_word {
	uint32_t bit;			/* KBARMAN_SOURCE_* */
	const char *word;
	const char *tracepoint;		/* without it the kernel can't give the source; NULL: every
					 * kernel can */
	const char *what;		/* for messages: "wakeups" */
};

/* All of them, in the order of their bits; NULL behind the last one. */
const struct kb_source_word *kb_source_word(size_t i);

/* The one with that word of @length bytes; NULL: none has it. */
const struct kb_source_word *kb_source_find(const char *word, size_t length);

#endif
