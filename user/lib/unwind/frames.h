/* SPDX-License-Identifier: MIT */
/*
 * The entries of .eh_frame and .debug_frame. A CIE says what several functions have in common,
 * an FDE has the instructions of one function. Sources: "Call Frame Information" of DWARF 5, and
 * "Exception Frames" of the LSB, which .eh_frame follows.
 */
#ifndef KB_LIB_UNWIND_FRAMES_H
#define KB_LIB_UNWIND_FRAMES_H

#include "unwind/bytes.h"
#include "unwind/machine.h"

/* A section of a file. */
struct kb_unwind_section {
	const uint8_t *data;
	size_t size;		/* 0: there is none */
	uint64_t address;	/* virtual */
};

struct kb_frames {
	const struct kb_unwind_machine *machine;
	struct kb_unwind_section section;
	bool swap;
	bool debug;		/* .debug_frame */
};

struct kb_cie {
	uint64_t code_align;
	int64_t data_align;
	uint64_t ra;		/* register with the return address */
	uint8_t encoding;	/* of addresses in its FDEs */
	bool augmented;		/* FDEs have augmentation data */
	bool signal;
	struct kb_bytes code;	/* its instructions */
};

struct kb_fde {
	uint64_t start, end;	/* addresses */
	uint64_t cie;		/* offset in the section */
	struct kb_bytes code;
};

enum kb_frames_kind {
	KB_FRAMES_END,
	KB_FRAMES_CIE,
	KB_FRAMES_FDE,
	KB_FRAMES_BAD,		/* it leaves the section */
};

/* An entry; body: what follows its id. */
struct kb_frames_entry {
	enum kb_frames_kind kind;
	uint64_t cie;		/* of an FDE: offset of its CIE */
	struct kb_bytes body;
};

/* Read the entry at *@at and set *@at after it. Empty entries, which end a part, are skipped. */
struct kb_frames_entry kb_frames_next(const struct kb_frames *frames, size_t *at);

#define KB_FRAMES_MAX_CIE	1024U	/* bytes; real ones have less than 100 */

/* Read the CIE at @at. False: there is none, one of an unknown kind, or a larger one. */
bool kb_frames_cie(const struct kb_frames *frames, uint64_t at, struct kb_cie *cie);

/* Read the FDE that is @entry. False: it can't be read. */
bool kb_frames_fde(const struct kb_frames *frames, const struct kb_cie *cie,
		   const struct kb_frames_entry *entry, struct kb_fde *fde);

/* Read an address in @encoding. False: of a kind that these sections can't use. */
bool kb_frames_address(const struct kb_frames *frames, struct kb_bytes *bytes, uint8_t encoding,
		       uint64_t *address);

#endif
