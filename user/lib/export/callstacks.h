/* SPDX-License-Identifier: MIT */
/*
 * The different call chains of a capture, each once, for formats whose samples refer to
 * them: a tree of frames, and tables of the frames and of the images that they are in.
 * All are numbered densely in the order of their first use, so what is new since an
 * export last looked is behind what it has written. Functions that were inlined are
 * frames, too, if the symbolizer tells of them. Memory grows with the different chains,
 * not with samples.
 */
#ifndef KB_LIB_EXPORT_CALLSTACKS_H
#define KB_LIB_EXPORT_CALLSTACKS_H

#include <stdbool.h>
#include <stdint.h>

#include <kbarman/event.h>
#include <kbarman/symbol.h>

#include "table.h"
#include "sym/elf.h"

#define KB_CALLSTACKS_DEPTH	512	/* frames; outer ones beyond are left out */
#define KB_CALLSTACKS_ROOT	0U

struct kb_stack_image {
	uint64_t key[3];		/* path, build_id, offset */
	const char *path, *base_name;	/* as kb_symbol has them */
	const struct kb_build_id *build_id;	/* NULL: not known */
	/* With addresses an image is what one mapping shows of a file, or what none shows. */
	bool mapped;			/* false: there is no row, and the next three are 0 */
	uint64_t start;			/* where it was, the first time */
	uint64_t end;			/* behind its last byte, of the longest such mapping */
	uint64_t offset;		/* of start, in the file; start itself if there is none */
	bool kernel;
};

struct kb_stack_frame {
	uint64_t key[3];		/* symbol, address, image and line */
	uint64_t address;		/* as if the image were always at its start; the PC itself
					 * if it is not mapped; 0 unless addresses are asked for */
	const char *name;		/* "" where unknown */
	const char *file;		/* of the source; "" where unknown, or not asked for */
	uint32_t line;			/* 0 likewise */
	uint32_t image;
	bool kernel;
};

struct kb_stack_node {
	uint64_t key[2];
	uint32_t parent;		/* the caller's node; the root is its own */
	uint32_t frame;
	uint32_t depth;			/* the root has 0 */
	uint32_t user;			/* for the export; 0 at first */
};

struct kb_callstacks {
	bool addresses;			/* a frame is an address, not only a symbol */
	struct kb_table images, frames, nodes;
	struct kb_table calls;		/* with addresses: from a node by an address to a node */
};

/* 0 or -ENOMEM. */
int kb_callstacks_init(struct kb_callstacks *stacks, bool addresses);
void kb_callstacks_release(struct kb_callstacks *stacks);

/*
 * The node of the innermost frame of a sample with a PC; -ENOMEM. Without @symbolizer
 * nothing is known but addresses.
 */
int64_t kb_callstacks_add(struct kb_callstacks *stacks, const struct kb_event *event,
			  struct kb_symbolizer *symbolizer);

static inline struct kb_stack_node *kb_stack_node(const struct kb_callstacks *stacks, uint32_t i)
{
	return kb_table_row(&stacks->nodes, i);
}

static inline struct kb_stack_frame *kb_stack_frame(const struct kb_callstacks *stacks, uint32_t i)
{
	return kb_table_row(&stacks->frames, i);
}

static inline struct kb_stack_image *kb_stack_image(const struct kb_callstacks *stacks, uint32_t i)
{
	return kb_table_row(&stacks->images, i);
}

/*
 * What to call a frame: its name, else its image in brackets. Valid UTF-8 without NULs;
 * returns its length, adds no NUL.
 */
#define KB_STACK_LABEL		1024
size_t kb_stack_label(const struct kb_callstacks *stacks, uint32_t frame,
		      char label[KB_STACK_LABEL]);

#endif
