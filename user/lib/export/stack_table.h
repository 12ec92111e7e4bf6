/* SPDX-License-Identifier: MIT */
/*
 * The different call chains of a capture, each once, for formats in which samples refer to
 * them: a tree of nodes, and tables of the frames and their images. All are numbered densely in
 * the order of first use, so an export finds new rows behind those that it has written. Inlined
 * functions are frames, too, if the symbolizer knows them. Memory grows with the number of
 * different chains, not with samples.
 */
#ifndef KB_LIB_EXPORT_STACK_TABLE_H
#define KB_LIB_EXPORT_STACK_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include <kbarman/event.h>
#include <kbarman/symbol.h>

#include "base/table.h"
#include "sym/tables/elf_data.h"

#define KB_STACK_TABLE_DEPTH	512	/* frames; further outer frames are left out */
#define KB_STACK_TABLE_ROOT	0U

struct kb_stack_image {
	uint64_t key[3];		/* path, build_id, offset */
	const char *path, *base_name;	/* as in struct kb_symbol */
	const struct kb_build_id *build_id;	/* NULL: not known */
	/* With addresses an image is one mapping of a file, or all of it that no row maps. */
	bool mapped;			/* false: no row maps it; the next three are 0 */
	uint64_t start;			/* start address of its first mapping */
	uint64_t end;			/* behind the last byte of the longest such mapping */
	uint64_t offset;		/* of start in the file; start itself without a file */
	bool kernel;
};

struct kb_stack_frame {
	uint64_t key[3];		/* symbol, address, image and line */
	uint64_t address;		/* as if the image were always mapped at its start; the
					 * PC itself without a mapping; 0 unless addresses are
					 * requested */
	const char *name;		/* "" where unknown */
	const char *raw_name;		/* the same, mangled; "" where unknown */
	const char *file;		/* source file; "" where unknown or not requested */
	uint32_t line;			/* 0 where unknown or not requested */
	uint32_t image;
	bool kernel;
};

struct kb_stack_node {
	union {
		uint64_t key;
		struct {
			uint32_t parent;	/* node of the caller; the root is its own parent */
			uint32_t frame;		/* the root has UINT32_MAX */
		};
	};
	uint32_t depth : 31;		/* the root has 0 */
	uint32_t kernel : 1;		/* as of its frame */
	uint32_t user;			/* free for the export; 0 at first */
};

struct kb_stack_table {
	bool addresses;			/* a frame is an address instead of a symbol */
	struct kb_table images, frames, nodes;
	struct kb_table sites;		/* with addresses: the frames of each */
	struct kb_stack_memo *memo;	/* with addresses: whole chains that were added lately */
};

/* Returns 0 or -ENOMEM. */
int kb_stack_table_init(struct kb_stack_table *stacks, bool addresses);
void kb_stack_table_release(struct kb_stack_table *stacks);

/*
 * The node of the innermost frame of a sample with a PC; -ENOMEM. Without @symbolizer frames
 * have addresses only.
 */
int64_t kb_stack_table_add(struct kb_stack_table *stacks, const struct kb_event *event,
			   struct kb_symbolizer *symbolizer);

static inline struct kb_stack_node *kb_stack_node(const struct kb_stack_table *stacks, uint32_t i)
{
	return kb_table_row(&stacks->nodes, i);
}

static inline struct kb_stack_frame *kb_stack_frame(const struct kb_stack_table *stacks, uint32_t i)
{
	return kb_table_row(&stacks->frames, i);
}

static inline struct kb_stack_image *kb_stack_image(const struct kb_stack_table *stacks, uint32_t i)
{
	return kb_table_row(&stacks->images, i);
}

/*
 * The text of a frame: its name, or its image in brackets if it has none. It is valid UTF-8
 * without NULs. Returns its length and adds no NUL.
 */
#define KB_STACK_LABEL		1024
size_t kb_stack_label(const struct kb_stack_table *stacks, uint32_t frame,
		      char label[KB_STACK_LABEL]);

#endif
