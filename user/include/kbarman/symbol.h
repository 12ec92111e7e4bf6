/* SPDX-License-Identifier: MIT */
/*
 * From addresses to names. A symbolizer takes its mappings from a capture and
 * its symbols from ELF files, kallsyms and the capture's side file.
 */
#ifndef KBARMAN_SYMBOL_H
#define KBARMAN_SYMBOL_H

#include <stdbool.h>
#include <stdint.h>

#include <kbarman/barman.h>
#include <kbarman/error.h>

#ifdef __cplusplus
extern "C" {
#endif

struct kb_symbolizer;

struct kb_symbol_options {
	const char *kallsyms;	/* file; NULL = the capture's side file, else, if the
				 * capture was made by this running kernel, its own */
	const char *symfs;	/* look images up below this directory; NULL = "/", but
				 * only if the capture was made on this host. Of several
				 * files of a path only the one of that size and time is
				 * taken from there */
	bool raw_names;		/* leave C++ and Rust names as the linker has them */
	const char *vmlinux;	/* the kernel's file with DWARF; NULL = where distributions
				 * put it */
	bool lines;		/* for kb_symbolizer_frames(): files and lines, from DWARF, */
	bool inlined;		/* and inlined functions */
};

/* What an address is. Strings live as long as the symbolizer; none is NULL. */
struct kb_symbol {
	const char *name;	/* "" where unknown */
	const char *image;	/* path as mapped, "[kernel.kallsyms]", "[MODULE]",
				 * "[unknown]" */
	const char *image_base;	/* the last component of it */
	uint64_t address;	/* start of the symbol, in the address space of pc */
	uint64_t size;		/* bytes, 0 where unknown */
	bool kernel;
	uint32_t id;		/* dense, the same for the same (image, symbol); for
				 * use as an index: below kb_symbolizer_count() */
	bool inlined;		/* the compiler put it into another one, which is where
				 * address and size are; kb_symbolizer_frames() only */
};

/* A function and a place in it. Strings live as long as the symbolizer; none is NULL. */
struct kb_frame {
	struct kb_symbol symbol;
	const char *file;	/* path as the compiler had it, "" where unknown */
	uint32_t line;		/* 0 where unknown */
	uint32_t line_id;	/* dense, the same for the same (file, line); 0: unknown */
};

/* @path: the capture's file name, to find its side file; may be NULL. */
int kb_symbolizer_create(struct kb_symbolizer **out, const struct kb_barman *barman,
			 const char *path, const struct kb_symbol_options *options,
			 struct kb_error *err);
void kb_symbolizer_destroy(struct kb_symbolizer *symbolizer);

/*
 * From now on @symbolizer, which must have been made without a path, answers about @barman:
 * a later capture of the same machine since the same boot. The images that were read stay,
 * and the kernel's symbols as long as its modules do. What was answered before holds no
 * longer. 0, or -ENOMEM, and nothing has changed.
 */
int kb_symbolizer_renew(struct kb_symbolizer *symbolizer, const struct kb_barman *barman,
			struct kb_error *err);

/*
 * Resolve @pc of @task_id at @timestamp (ticks). Never fails: see kb_symbol. The
 * struct holds until the next call, its strings and its id for good.
 */
const struct kb_symbol *kb_symbolizer_resolve(struct kb_symbolizer *symbolizer, uint32_t task_id,
					      uint64_t timestamp, uint64_t pc);

/*
 * The same, with the line of @pc and the functions that were inlined there, as far as
 * kb_symbol_options asked for them: sets @frames to them, innermost first, returns how
 * many, at least one. The last one is what kb_symbolizer_resolve() gives; the line of an
 * outer one is where it calls the one before. They hold until the next call.
 */
uint32_t kb_symbolizer_frames(struct kb_symbolizer *symbolizer, uint32_t task_id,
			      uint64_t timestamp, uint64_t pc, const struct kb_frame **frames);

uint32_t kb_symbolizer_count(const struct kb_symbolizer *symbolizer);

/*
 * Why names may be missing: calls @say with one sentence for each image that could not
 * be read or does not fit, and one for all that are stripped, that says what to do.
 */
void kb_symbolizer_complaints(const struct kb_symbolizer *symbolizer,
			      void (*say)(void *context, const char *sentence), void *context);

/*
 * Write CAPTURE.symbols beside the capture called @capture: the symbols of every image
 * that was asked for so far, so that other machines find the same names without the
 * images. kb_symbolizer_create() reads it. 0 or a negative errno: -EXDEV if the capture
 * was made on another machine, whose files were not told of by symfs.
 */
int kb_symbolizer_save(const struct kb_symbolizer *symbolizer, const char *capture,
		       struct kb_error *err);

/*
 * The same for the finished capture at @capture, with every image that its samples and
 * call chains hit; @say (may be NULL) hears why some are left out. 0; 1 if the capture
 * is damaged, and @err says where; or a negative errno.
 */
int kb_capture_save_symbols(const char *capture, const struct kb_symbol_options *options,
			    void (*say)(void *context, const char *sentence), void *context,
			    struct kb_error *err);

#ifdef __cplusplus
}
#endif

#endif
