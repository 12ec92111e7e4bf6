// SPDX-License-Identifier: MIT
/*
 * The way from an address to a name: the mapping that was valid at the time, the image of the
 * mapping, the symbols of the image. If a step fails, the answer has what is known up to there.
 *
 * An answer is valid for a range of addresses, a range of time and one task. The last answer is
 * returned again while requests stay within these.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <kbarman/tasks.h>

#include "base/options.h"
#include "sym/image/load.h"
#include "sym/names/python_name.h"
#include "sym/symbolizer/ahead.h"
#include "sym/symbolizer/inside.h"
#include "sym/symbolizer/kernel_lines.h"
#include "sym/symbolizer/place.h"
#include "sym/symbolizer/shared_tasks.h"

int kb_symbolizer_share(struct kb_symbolizer **out, const struct kb_barman *barman,
			const struct kb_tasks *tasks, const char *path,
			const struct kb_symbol_options *options, struct kb_error *err)
{
	const struct kb_header *header = kb_barman_header(barman);
	struct kb_symbolizer *symbolizer;
	struct kb_symbol_options known;
	int ret = KB_OPTIONS(&known, options, err);

	if (ret)
		return ret;
	symbolizer = calloc(1, sizeof(*symbolizer));
	if (!symbolizer)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	symbolizer->cache = known.cache;
	symbolizer->tasks = tasks;
	symbolizer->wide = header->word_size == 8;
	symbolizer->frame.file = "";
	symbolizer->holds.low = 1;
	symbolizer->row_images = calloc(header->nr_maps + 1, sizeof(*symbolizer->row_images));
	kb_jit_clock_init(&symbolizer->jit_clock, barman);
	if (!symbolizer->row_images || kb_maps_create(&symbolizer->maps, barman) ||
	    kb_jit_rows_init(&symbolizer->jit_rows, header, tasks))
		ret = kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	if (!ret && !symbolizer->cache) {
		ret = kb_symbol_cache_create(&symbolizer->own_cache, options, err);
		symbolizer->cache = symbolizer->own_cache;
	} else {
		path = NULL;	/* what is beside this capture is not of the others */
	}
	if (!ret)
		ret = kb_symbol_cache_serve(symbolizer->cache, barman, path, err);
	if (ret)
		kb_symbolizer_destroy(symbolizer);
	else
		*out = symbolizer;
	return ret;
}

int kb_symbolizer_create(struct kb_symbolizer **out, const struct kb_barman *barman,
			 const char *path, const struct kb_symbol_options *options,
			 struct kb_error *err)
{
	struct kb_tasks *tasks;
	int ret;

	if (kb_tasks_create(&tasks, barman))
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	ret = kb_symbolizer_share(out, barman, tasks, path, options, err);
	if (ret)
		kb_tasks_destroy(tasks);
	else
		(*out)->own_tasks = tasks;
	return ret;
}

void kb_symbolizer_destroy(struct kb_symbolizer *symbolizer)
{
	if (!symbolizer)
		return;
	kb_symbol_cache_destroy(symbolizer->own_cache);
	kb_tasks_destroy(symbolizer->own_tasks);
	kb_maps_destroy(symbolizer->maps);
	kb_jit_rows_release(&symbolizer->jit_rows);
	free(symbolizer->row_images);
	free(symbolizer);
}

/* Answer with @image and without a symbol. */
static void answer_image(struct kb_symbolizer *symbolizer, struct kb_image *image, bool kernel)
{
	symbolizer->place = NULL;
	symbolizer->frame = (struct kb_frame) {
		.symbol = {
			.name = "",
			.raw_name = "",
			.image = image->name,
			.image_base = image->base,
			.kernel = kernel,
			.id = kb_symbol_cache_id(symbolizer->cache, &image->unknown_id),
		},
		.file = "",
	};
}

/* Answer with the symbol of @hit, which is in the address space of @symtab, @pc at @address. */
static void name_symbol(struct kb_symbolizer *symbolizer, const struct kb_symtab *symtab,
			const struct kb_symtab_hit *hit, uint64_t pc, uint64_t address)
{
	struct kb_symbol *symbol = &symbolizer->frame.symbol;

	if (!hit->symbol)
		return;
	symbol->name = kb_symbol_cache_name(symbolizer->cache, symtab, hit->symbol);
	symbol->raw_name = kb_symtab_name(symtab, hit->symbol);
	symbol->address = pc - (address - hit->symbol->start);
	symbol->size = hit->symbol->size;
	symbol->id = hit->symbol->id;
}

/* Whether the file has no symbol there; the answer may have a name that was made. */
static bool is_nameless(const struct kb_symtab_hit *hit)
{
	return !hit->symbol || hit->symbol->rank == KB_RANK_NAMELESS;
}

/* Answer with the symbol of @hit; the answer holds as far as @hit does. */
static void answer_symbol(struct kb_symbolizer *symbolizer, const struct kb_symtab *symtab,
			  const struct kb_symtab_hit *hit, uint64_t pc, uint64_t address)
{
	struct kb_maps_hit *holds = &symbolizer->holds;

	if (address - hit->low < pc - holds->low)
		holds->low = pc - (address - hit->low);
	if (hit->high - address < holds->high - pc)
		holds->high = pc + (hit->high - address);
	name_symbol(symbolizer, symtab, hit, pc, address);
}

/*
 * Whether @pc is a kernel address if no row covers it: it is in the upper half; with 32 bits,
 * not below the kernel's symbols. An answer holds on one side of that border only.
 */
static bool is_kernel_address(struct kb_symbolizer *symbolizer, uint64_t pc)
{
	struct kb_maps_hit *holds = &symbolizer->holds;
	uint64_t lowest = UINT64_C(1) << 63;

	if (!symbolizer->wide) {
		kb_symbol_cache_load_kernel(symbolizer->cache);
		if (!symbolizer->cache->kallsyms.nr_images)
			return false;
		lowest = symbolizer->cache->kallsyms.lowest;
	}
	if (pc >= lowest) {
		if (holds->low < lowest)
			holds->low = lowest;
		return true;
	}
	if (holds->high >= lowest)
		holds->high = lowest - 1;
	return false;
}

/*
 * @image: image of the row that covers @pc; NULL if there is none. Returns 0 or a negative
 * errno.
 */
static int resolve_kernel(struct kb_symbolizer *symbolizer, struct kb_image *image, uint64_t pc)
{
	struct kb_symtab_hit hit;

	kb_symtab_find(&symbolizer->cache->kallsyms.symbols, pc, &hit);
	if (hit.symbol)
		image = kb_symbol_cache_kernel_image(symbolizer->cache, hit.symbol->group);
	else if (!image)
		image = kb_images_get(&symbolizer->cache->images, KB_KERNEL_IMAGE, true);
	if (!image)
		return -ENOMEM;
	answer_image(symbolizer, image, true);
	symbolizer->place = image;
	symbolizer->place_offset = 0;
	answer_symbol(symbolizer, &symbolizer->cache->kallsyms.symbols, &hit, pc, pc);
	return 0;
}

/* The segment of @image that @row maps at @pc. *@before: offset of @pc in the segment. */
static const struct kb_elf_segment *segment_at(const struct kb_image *image,
					       const struct kb_map *row, uint64_t pc,
					       uint64_t *before)
{
	uint64_t offset = pc - row->base_address + row->image_offset;
	const struct kb_elf_segment *segment = kb_elf_segment_at(image->elf, offset);

	*before = segment ? offset - segment->offset : 0;
	return segment;
}

static void resolve_file(struct kb_symbolizer *symbolizer, struct kb_image *image,
			 const struct kb_map *row, uint64_t pc)
{
	uint64_t before, behind;
	const struct kb_elf_segment *segment = segment_at(image, row, pc, &before);
	struct kb_symtab_hit hit;

	answer_image(symbolizer, image, false);
	if (!segment) {
		if (!image->elf->nr_segments)
			return;
		/* A row may be longer than the code: data may have been mapped over its end. */
		if (!kb_elf_maps_page(image->elf, row->image_offset))
			kb_image_complain(image, "%s is not the file that was recorded: nothing of "
					  "it is mapped from offset 0x%llx", image->name,
					  (unsigned long long)row->image_offset);
		symbolizer->holds.low = symbolizer->holds.high = pc;
		return;
	}
	symbolizer->place = image;
	symbolizer->place_offset = segment->vaddr + before - pc;
	behind = segment->size - 1 - before;
	kb_symtab_find(&image->elf->symbols, segment->vaddr + before, &hit);
	if (before < pc - symbolizer->holds.low)
		symbolizer->holds.low = pc - before;
	if (behind < symbolizer->holds.high - pc)
		symbolizer->holds.high = pc + behind;
	answer_symbol(symbolizer, &image->elf->symbols, &hit, pc, segment->vaddr + before);
	image->lacks_names |= is_nameless(&hit);
}

/* The answer is for @pc only: addresses beside it may have another one. */
static void hold_address(struct kb_symbolizer *symbolizer, uint64_t pc)
{
	symbolizer->holds.low = symbolizer->holds.high = pc;
}

static void hold_time(struct kb_symbolizer *symbolizer, uint64_t timestamp)
{
	symbolizer->holds.since = symbolizer->holds.until = timestamp;
}

/* Where the code that was answered comes from. @line: NULL, only its name may say it. */
static void place_jit(struct kb_symbolizer *symbolizer, const struct kb_image *image,
		      const struct kb_symtab_symbol *symbol, const struct kb_jit_line *line)
{
	const char *file = line ? image->elf->jit.files + line->file :
			   kb_python_file(kb_symtab_name(&image->elf->symbols, symbol));

	if (file)
		kb_line_cache_place(&symbolizer->cache->frames, file, line ? line->line : 0,
				    &symbolizer->frame);
}

/* True: the jitdump of process @tgid has code at @pc. */
static bool resolve_dump(struct kb_symbolizer *symbolizer, uint32_t tgid, uint64_t timestamp,
			 uint64_t pc)
{
	bool only, lines = symbolizer->cache->wants_lines;
	const struct kb_map *row = kb_jit_rows_find(&symbolizer->jit_rows, tgid, timestamp, &only);
	struct kb_symtab_symbol *first;
	const struct kb_jit *jit;
	struct kb_jit_hit hit;
	uint64_t time;

	if (!row)
		return false;
	if (row != symbolizer->dump_row) {
		symbolizer->dump_row = row;
		symbolizer->dump = kb_images_jitdump(&symbolizer->cache->images, row);
	}
	if (!only)
		hold_time(symbolizer, timestamp);
	if (!symbolizer->dump || !symbolizer->dump->elf->jit.nr_codes)
		return false;
	jit = &symbolizer->dump->elf->jit;
	time = kb_jit_clock_ns(&symbolizer->jit_clock, symbolizer->cache->barman, timestamp);
	kb_jit_find(jit, &symbolizer->dump->elf->symbols, pc, time, &hit);
	if (!hit.always)
		hold_time(symbolizer, timestamp);
	if (!hit.symbol) {
		hold_address(symbolizer, pc);
		return false;
	}
	first = &symbolizer->dump->elf->symbols.symbols[hit.symbol->group];
	kb_symbol_cache_name(symbolizer->cache, &symbolizer->dump->elf->symbols, first);
	hit.symbol->id = first->id;
	answer_image(symbolizer, symbolizer->dump, false);
	answer_symbol(symbolizer, &symbolizer->dump->elf->symbols,
		      &(struct kb_symtab_hit) { hit.symbol, hit.low, hit.high }, pc, pc);
	if (lines && hit.code->nr_lines)
		hold_address(symbolizer, pc);
	if (lines)
		place_jit(symbolizer, symbolizer->dump, hit.symbol,
			  kb_jit_line_at(jit, hit.code, pc - hit.symbol->start));
	return true;
}

/* True: the perf map of process @tgid has code at @pc. */
static bool resolve_perfmap(struct kb_symbolizer *symbolizer, uint32_t tgid, uint64_t pc)
{
	struct kb_symtab_hit hit;

	if (!symbolizer->jit_asked || symbolizer->jit_pid != tgid) {
		symbolizer->jit = kb_images_perfmap(&symbolizer->cache->images, tgid);
		symbolizer->jit_pid = tgid;
		symbolizer->jit_asked = true;
	}
	if (!symbolizer->jit)
		return false;
	kb_symtab_find(&symbolizer->jit->elf->symbols, pc, &hit);
	if (!hit.symbol) {
		if (symbolizer->jit->elf->symbols.nr_symbols)
			hold_address(symbolizer, pc);
		return false;
	}
	answer_image(symbolizer, symbolizer->jit, false);
	answer_symbol(symbolizer, &symbolizer->jit->elf->symbols, &hit, pc, pc);
	if (symbolizer->cache->wants_lines)
		place_jit(symbolizer, symbolizer->jit, hit.symbol, NULL);
	return true;
}

/* Code that was made at run time. A jitdump knows times, so it is asked first. */
static bool resolve_jit(struct kb_symbolizer *symbolizer, uint32_t task_id, uint64_t timestamp,
			uint64_t pc)
{
	struct kb_task_hit task;

	kb_tasks_find(symbolizer->tasks, task_id, timestamp, &task);
	return resolve_dump(symbolizer, task.tgid, timestamp, pc) ||
	       resolve_perfmap(symbolizer, task.tgid, pc);
}

/* The loaded image of a row of the mmap table. */
static struct kb_image *row_image(struct kb_symbolizer *symbolizer, const struct kb_maps_hit *hit)
{
	struct kb_image *image = symbolizer->row_images[hit->index];

	if (image)
		return image;
	image = kb_images_get_file(&symbolizer->cache->images, hit->row->image, hit->row->file,
				   !hit->row->task_id);
	if (!image)
		return NULL;
	if (!image->row && hit->row->task_id)
		image->row = hit->row;
	image = kb_image_load(&symbolizer->cache->images, image);
	symbolizer->row_images[hit->index] = image;
	return image;
}

static int resolve(struct kb_symbolizer *symbolizer, uint32_t task_id, uint64_t timestamp,
		   uint64_t pc)
{
	struct kb_maps_hit *holds = &symbolizer->holds;
	struct kb_image *image = NULL;
	bool kernel;
	int ret;

	ret = kb_maps_find(symbolizer->maps, symbolizer->tasks, task_id, timestamp, pc, holds);
	if (ret)
		return ret;
	if (holds->row) {
		image = row_image(symbolizer, holds);
		if (!image)
			return -ENOMEM;
	}
	kernel = image ? image->kind == KB_IMAGE_KERNEL : is_kernel_address(symbolizer, pc);
	if (kernel) {
		kb_symbol_cache_load_kernel(symbolizer->cache);
		symbolizer->nameless_kernel |= !symbolizer->cache->kallsyms.nr_images;
		return resolve_kernel(symbolizer, image, pc);
	}
	if (task_id && (!image || image->anonymous) &&
	    resolve_jit(symbolizer, task_id, timestamp, pc))
		return 0;
	if (image) {
		resolve_file(symbolizer, image, holds->row, pc);
		image->asked++;
		image->lacks_names |= !*symbolizer->frame.symbol.name;
		return 0;
	}
	symbolizer->unmapped = true;
	image = kb_images_get(&symbolizer->cache->images, "[unknown]", false);
	if (!image)
		return -ENOMEM;
	answer_image(symbolizer, image, false);
	return 0;
}

static void set_place(struct kb_symbolizer *symbolizer)
{
	const struct kb_map *row = symbolizer->holds.row;
	const struct kb_image *image = row ? symbolizer->row_images[symbolizer->holds.index] : NULL;

	symbolizer->where = (struct kb_place) {
		.row = row,
		.build_id = image && image->elf->build_id.length ? &image->elf->build_id : NULL,
		.anonymous = image && image->anonymous,
		.line_id = symbolizer->frame.line_id,
	};
}

/* Not inlined, so that the fast path of kb_symbolizer_resolve() saves no registers. */
static const struct kb_symbol *__attribute__((noinline))
resolve_anew(struct kb_symbolizer *symbolizer, uint32_t task_id, uint64_t timestamp, uint64_t pc)
{
	symbolizer->holds_for = task_id;
	if (resolve(symbolizer, task_id, timestamp, pc)) {
		/* Without memory the answer is "unknown" and is not reused. */
		symbolizer->holds = (struct kb_maps_hit) { .low = 1 };
		symbolizer->place = NULL;
		symbolizer->frame = (struct kb_frame) {
			.symbol = {
				.name = "",
				.raw_name = "",
				.image = "[unknown]",
				.image_base = "[unknown]",
			},
			.file = "",
		};
	}
	set_place(symbolizer);
	return &symbolizer->frame.symbol;
}

const struct kb_symbol *kb_symbolizer_resolve(struct kb_symbolizer *symbolizer, uint32_t task_id,
					      uint64_t timestamp, uint64_t pc)
{
	const struct kb_maps_hit *holds = &symbolizer->holds;

	if (__builtin_expect(pc >= holds->low && pc <= holds->high &&
			     task_id == symbolizer->holds_for && timestamp >= holds->since &&
			     timestamp <= holds->until, 1))
		return &symbolizer->frame.symbol;
	return resolve_anew(symbolizer, task_id, timestamp, pc);
}

void kb_symbolizer_ahead(struct kb_symbolizer *symbolizer, uint32_t task_id, uint64_t timestamp,
			 uint64_t pc, struct kb_ahead *ahead)
{
	const struct kb_elf_segment *segment;
	struct kb_maps_hit hit;
	struct kb_image *image;
	uint64_t before;

	ahead->symtab = NULL;
	ahead->image = NULL;
	if (kb_maps_find(symbolizer->maps, symbolizer->tasks, task_id, timestamp, pc, &hit))
		return;
	image = hit.row ? symbolizer->row_images[hit.index] : NULL;
	if (image && image->kind != KB_IMAGE_KERNEL) {
		segment = segment_at(image, hit.row, pc, &before);
		if (!segment)
			return;
		ahead->symtab = &image->elf->symbols;
		ahead->address = segment->vaddr + before;
		ahead->image = image;
	} else if (image || (!hit.row && symbolizer->wide && pc >> 63)) {
		ahead->symtab = &symbolizer->cache->kallsyms.symbols;
		ahead->address = pc;
	} else {
		return;
	}
	kb_symtab_fetch_bucket(ahead->symtab, ahead->address);
}

const struct kb_place *kb_symbolizer_place(const struct kb_symbolizer *symbolizer)
{
	return &symbolizer->where;
}

void kb_symbolizer_holds(const struct kb_symbolizer *symbolizer, uint64_t *since, uint64_t *until)
{
	*since = symbolizer->holds.since;
	*until = symbolizer->holds.until;
}

uint32_t kb_symbolizer_frames(struct kb_symbolizer *symbolizer, uint32_t task_id,
			      uint64_t timestamp, uint64_t pc, const struct kb_frame **frames)
{
	const struct kb_symbol *symbol = kb_symbolizer_resolve(symbolizer, task_id, timestamp, pc);
	struct kb_image *place = symbolizer->place;
	uint64_t address = pc + symbolizer->place_offset;
	uint32_t nr = 0;

	*frames = &symbolizer->frame;
	if (!symbolizer->cache->wants_lines || !place)
		return 1;
	if (place->kind == KB_IMAGE_KERNEL) {
		if (strcmp(place->name, KB_KERNEL_IMAGE) != 0 ||
		    !kb_kernel_lines_place(symbolizer->cache, place, symbol, &address))
			return 1;
	} else if (place->kind == KB_IMAGE_FILE) {
		kb_image_load_lines(&symbolizer->cache->images, place);
	}
	if (place->lines)
		nr = kb_line_cache_get(&symbolizer->cache->frames, place, address, symbol, frames);
	return nr ? nr : 1;
}

uint32_t kb_symbolizer_arrive_id(const struct kb_symbolizer *symbolizer,
				 const struct kb_ahead *ahead)
{
	return ahead->symtab && !symbolizer->cache->wants_lines ?
		kb_symtab_find_id(ahead->symtab, ahead->address) : KB_SYMTAB_NO_ID;
}

uint32_t kb_symbolizer_arrive(struct kb_symbolizer *symbolizer, uint32_t task_id,
			      uint64_t timestamp, uint64_t pc, const struct kb_ahead *ahead,
			      const struct kb_frame **frames)
{
	struct kb_image *image = ahead->image;
	struct kb_symtab_hit hit;
	uint32_t nr = 1;

	if (!image || symbolizer->cache->wants_lines || image->anonymous) {
		nr = kb_symbolizer_frames(symbolizer, task_id, timestamp, pc, frames);
	} else {
		symbolizer->holds = (struct kb_maps_hit) { .low = 1 };	/* how far it holds is not known */
		kb_symtab_find(ahead->symtab, ahead->address, &hit);
		answer_image(symbolizer, image, false);
		name_symbol(symbolizer, ahead->symtab, &hit, pc, ahead->address);
		image->lacks_names |= is_nameless(&hit);
		*frames = &symbolizer->frame;
	}
	/* Kernel code without a symbol may be of another image elsewhere. */
	if (ahead->symtab && (image ? !image->anonymous :
			      symbolizer->frame.symbol.kernel && *symbolizer->frame.symbol.name))
		kb_symtab_note_id(ahead->symtab, ahead->address, (*frames)->symbol.id);
	return nr;
}

uint32_t kb_symbolizer_count(const struct kb_symbolizer *symbolizer)
{
	return symbolizer->cache->nr_ids;
}
