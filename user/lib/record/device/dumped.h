/* SPDX-License-Identifier: MIT */
/*
 * The captures in the memory of a machine that does not run any more: where their beacons (uapi/beacon.h) say, and how
 * they ended, where there are stamps (uapi/stamp.h). Nothing of the memory is believed: the pages of a capture are read
 * as a file is.
 */
#ifndef KB_LIB_RECORD_DEVICE_DUMPED_H
#define KB_LIB_RECORD_DEVICE_DUMPED_H

#include <stdbool.h>
#include <stdint.h>

#include <kbarman/barman.h>
#include <kbarman/error.h>

#include "format/memory/memory.h"
#include <uapi/kbarman.h>
#include <uapi/stamp.h>

/* The map of a CPU. */
struct kb_dumped_cpu {
	uint32_t cpu;
	bool running;			/* when the machine stopped */
	uint64_t session;		/* as in struct kbarman_map_tail */
	struct kb_beacon_range {	/* internal: the beacons of its two parts */
		uint32_t from, to;
	} header, ring;
	struct kb_dumps *dumps;
	bool incomplete;		/* the memory lacks pages that were read: they are zeros */
};

/* One capture: the maps of its CPUs, in the order of their numbers. */
struct kb_dumped {
	uint64_t session;
	uint32_t nr_cpus;
	struct kb_dumped_cpu *cpus;
	const struct kbarman_stamp *stamp;	/* in this machine's byte order, with texts that end; NULL: none */
	struct kb_beacon_range symbols;	/* internal */
};

/* A machine has two: a memory of more is not one. */
#define KB_STAMPS_MAX	16

struct kb_dumps {
	uint32_t nr_captures, max_captures;
	struct kb_dumped *captures;	/* by session */
	uint64_t damaged;		/* pages that begin as a beacon or a stamp does and are none */
	struct kb_memory *memory;	/* internal, as those below */
	struct kb_beacon *beacons;
	uint32_t nr_beacons, max_beacons;
	struct kbarman_stamp stamps[KB_STAMPS_MAX];
	uint32_t nr_stamps;
};

/* Load what reading may need. Call it before files can't be opened any more. */
void kb_dumps_prepare(void);

/* Is the file a dump of memory that says itself where its bytes were? */
bool kb_dumps_is(const char *path);

/*
 * Find all captures in the memory that @path has: raw from the physical address @base on, KB_DUMPS_NO_BASE: of a form
 * that says where its bytes were (format/memory/). Returns 0 or a negative errno; none is no error.
 */
#define KB_DUMPS_NO_BASE	KB_MEMORY_NO_BASE

int kb_dumps_find(struct kb_dumps **out, const char *path, uint64_t base, struct kb_error *err);
/* The one capture of @former, which is open: its descriptor is @out's, also on an error. @name: for error texts. */
int kb_dumps_former(struct kb_dumps **out, const struct kbarman_former *former, const char *name, struct kb_error *err);
void kb_dumps_free(struct kb_dumps *dumps);	/* NULL is allowed */

/* Open the map of @cpu, which lives as long as the reader. @name: for the texts of errors. */
int kb_dumped_open(struct kb_dumped_cpu *cpu, const char *name, struct kb_barman **out, struct kb_error *err);

/*
 * The kernel's symbols that were kept beside the rings, in the format of /proc/kallsyms, malloc()ed; *@text is NULL if
 * there are none. Returns 0 or a negative errno.
 */
int kb_dumped_symbols(const struct kb_dumped *dumped, uint8_t **text, size_t *size, struct kb_error *err);

#endif
