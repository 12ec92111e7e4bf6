/* SPDX-License-Identifier: MIT */
/*
 * From addresses to names. A symbolizer takes mappings from a capture, and symbols from ELF
 * files, kallsyms and the capture's side file (CAPTURE.symbols).
 */
#ifndef KBARMAN_SYMBOL_H
#define KBARMAN_SYMBOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kbarman/barman.h>
#include <kbarman/error.h>

#ifdef __cplusplus
extern "C" {
#endif

struct kb_symbolizer;
struct kb_symbol_cache;

/* Where names come from. All zero behind `size` is the default. */
struct kb_symbol_options {
	size_t size;		/* of this struct, as the caller knows it: sizeof() */
	const char *kallsyms;	/* path; NULL = the capture's side file; if there is none and
				 * this running kernel made the capture: /proc/kallsyms */
	const char *symfs;	/* directory in which images are looked up; NULL = "/", but only
				 * for a capture of this host. If several files of the capture
				 * have one path, only the file with the recorded size and time
				 * is used */
	bool raw_names;		/* do not demangle C++ and Rust names */
	const char *vmlinux;	/* the kernel's file with DWARF; NULL = search the usual places */
	bool lines;		/* kb_symbolizer_frames() gives files and lines, */
	bool inlined;		/* and inlined functions, both from DWARF */
	struct kb_symbol_cache *cache;	/* has other options than this one, which are not used
					 * then; NULL: a cache of the symbolizer's own */
	uint32_t complaints;	/* kb_symbolizer_complaints() tells of so many single images;
				 * 0 = of ten */
};

/*
 * What was read to resolve addresses: images, symbols of the kernel, readable names. A program that
 * reads many captures of one machine, one after the other, keeps a cache, so that it reads every
 * image once. The cache serves the symbolizer that was created last; destroy the one before it
 * first. Strings and ids of answers stay the same, unless there are so many that the cache begins
 * anew. What may have changed is looked for again: files that were not there, maps of JIT
 * compilers, the kernel's modules. Side files of the captures are not used.
 *
 * kb_symbol_cache_create() returns 0, -ENOMEM or -EINVAL, and copies @options, which may be NULL.
 * kb_symbol_cache_destroy() frees the cache, which may be NULL, after its last symbolizer. One
 * thread at a time may use a cache and its symbolizers.
 */
int kb_symbol_cache_create(struct kb_symbol_cache **out, const struct kb_symbol_options *options,
			   struct kb_error *err);
void kb_symbol_cache_destroy(struct kb_symbol_cache *cache);

/* The meaning of an address. The symbolizer owns the strings; none is NULL. */
struct kb_symbol {
	const char *name;	/* "" where unknown; FILE+0xADDRESS: a function of the file that
				 * has no symbol there */
	const char *raw_name;	/* as the file has it: mangled if name is not, else as name; "" where
				 * unknown */
	const char *image;	/* path as mapped, "[kernel.kallsyms]", "[MODULE]",
				 * "[unknown]" */
	const char *image_base;	/* the last component of image */
	uint64_t address;	/* start of the symbol, in the address space of pc */
	uint64_t size;		/* bytes, 0 where unknown */
	bool kernel;
	uint32_t id;		/* the same for the same (image, symbol), from 0 and below
				 * kb_symbolizer_count(): use it as an index */
	bool inlined;		/* the function is inlined into another one, which address and
				 * size describe; set by kb_symbolizer_frames() only */
};

/* A function and a place in it. The symbolizer owns the strings; none is NULL. */
struct kb_frame {
	struct kb_symbol symbol;
	const char *file;	/* path as in the debug information, "" where unknown */
	uint32_t line;		/* 0 where unknown */
	uint32_t line_id;	/* the same for the same (file, line), dense; 0: unknown */
};

/*
 * Create a symbolizer for @barman, which must live as long as the symbolizer. @path: file name
 * of the capture, to find its side files; may be NULL. Returns 0, -ENOMEM, -EINVAL for options
 * that can't be, -EXDEV if the cache of @options is of another machine or kernel, or the error of
 * kallsyms in @options. For other files that could not be read see kb_symbolizer_complaints().
 * kb_symbolizer_destroy() frees the symbolizer.
 */
int kb_symbolizer_create(struct kb_symbolizer **out, const struct kb_barman *barman,
			 const char *path, const struct kb_symbol_options *options,
			 struct kb_error *err);
void kb_symbolizer_destroy(struct kb_symbolizer *symbolizer);

/*
 * Resolve @pc of @task_id at @timestamp (ticks). @pc is where an instruction is: for a caller not
 * the return address, but what kb_chain_lookup() of kbarman/chain.h returns. Never fails: an
 * unknown address has the values that struct kb_symbol lists. The result holds until the next
 * call; its strings and its id hold as long as the symbolizer.
 */
const struct kb_symbol *kb_symbolizer_resolve(struct kb_symbolizer *symbolizer, uint32_t task_id,
					      uint64_t timestamp, uint64_t pc);

/*
 * The same, with the source line of @pc and the functions inlined there, as far as
 * kb_symbol_options asked for them. Sets @frames to an array, innermost function first, and
 * returns its length, at least 1. The last element is what kb_symbolizer_resolve() returns. The
 * line of an outer function is where it calls the inner one. The array holds until the next
 * call.
 */
uint32_t kb_symbolizer_frames(struct kb_symbolizer *symbolizer, uint32_t task_id,
			      uint64_t timestamp, uint64_t pc, const struct kb_frame **frames);

/* How many ids answers have had so far. All are below this number, which grows. */
uint32_t kb_symbolizer_count(const struct kb_symbolizer *symbolizer);

/*
 * Explain missing names: calls @say with one sentence for each image that could not be read or
 * does not match, those with most addresses first, and one sentence for all stripped images that
 * says what to do. Of more images than the options allow it says how many they are.
 */
void kb_symbolizer_complaints(const struct kb_symbolizer *symbolizer,
			      void (*say)(void *context, const char *sentence), void *context);

/*
 * Write CAPTURE.symbols beside the capture named @capture: the symbols of every image that was
 * resolved so far. kb_symbolizer_create() reads this file, so other machines find the same
 * names without the images. -EXDEV: the capture was made on another machine and no symfs was
 * given.
 */
int kb_symbolizer_save(const struct kb_symbolizer *symbolizer, const char *capture,
		       struct kb_error *err);

#ifdef __cplusplus
}
#endif

#endif
