/* SPDX-License-Identifier: MIT */
/*
 * Parts of a profile of pprof, packed as the export writes it or in the form of Parca, for a server
 * that takes none of its size. A part has some of the samples, and what these refer to.
 */
#ifndef KB_LIB_EXPORT_VIEWERS_PPROF_SPLIT_H
#define KB_LIB_EXPORT_VIEWERS_PPROF_SPLIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kb_pprof_split;

struct kb_pprof_part {
	void *data;			/* to be freed */
	size_t size;
	uint64_t samples, waits;	/* sums of the values of these names */
};

/* Reads the profile; @out is to be closed. Returns 0, -ENOMEM, or -EINVAL: this is no such profile. */
int kb_pprof_split_open(struct kb_pprof_split **out, const void *data, size_t size);
void kb_pprof_split_close(struct kb_pprof_split *split);

/* How many samples the profile has, of any value. */
size_t kb_pprof_split_samples(const struct kb_pprof_split *split);

/*
 * Makes the part of the samples i with wanted[i]. It begins @ms later than the profile: servers take
 * two profiles of one moment for the same one. Returns 0 or a negative errno.
 */
int kb_pprof_split_part(struct kb_pprof_split *split, const bool *wanted, unsigned int ms,
			struct kb_pprof_part *part);

#endif
