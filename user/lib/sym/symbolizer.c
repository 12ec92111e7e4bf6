// SPDX-License-Identifier: MIT
/*
 * The way from an address to a name: the mapping that was valid at the time, the image of the
 * mapping, the symbols of the image. If a step fails, the answer has what is known up to there.
 *
 * An answer is valid for a range of addresses, a range of time and one task. The last answer is
 * returned again while requests stay within these.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kbarman/symbol.h>
#include <kbarman/tasks.h>

#include "base/array.h"
#include "base/hash.h"
#include "sym/ahead.h"
#include "sym/bundle.h"
#include "sym/demangle.h"
#include "sym/elf.h"
#include "sym/image_load.h"
#include "sym/kallsyms.h"
#include "sym/kernel.h"
#include "sym/line_cache.h"
#include "sym/maps.h"
#include "sym/place.h"
#include "sym/side.h"


/* Limit for what is kept when another capture replaces the present one. */
#define RENEWED_IMAGES	4096U
#define RENEWED_IDS	(1U << 20)

struct kb_symbolizer {
	struct kb_tasks *tasks;
	struct kb_maps *maps;
	struct kb_images images;
	struct kb_image **row_images;	/* by row of the mmap table; NULL: not requested yet */
	struct kb_image **kernel_images; /* by group of kallsyms; NULL: not requested yet */
	bool wide;			/* 64-bit addresses */
	struct kb_image *jit;		/* of process jit_pid, the last one requested */
	uint32_t jit_pid;

	const struct kb_barman *barman;
	char *kallsyms_path;		/* NULL: the kernel's symbols are not available */
	bool kallsyms_tried;
	uint64_t modules;		/* modules_now() at that time, if it is this machine */
	struct kb_kallsyms kallsyms;
	struct kb_error kallsyms_error;
	struct kb_error bundle_error;

	bool raw_names;
	struct kb_demangler demangler;
	char **demangled;		/* by id; NULL: the name does not change */
	uint32_t max_demangled;

	uint32_t nr_ids;		/* id 0 is used only when there is no memory */
	bool unmapped;			/* an address was in no mapping */
	bool nameless_kernel;		/* a kernel address was resolved without kernel symbols */

	bool wants_lines;
	struct kb_line_cache frames;
	char *vmlinux;			/* from the options; NULL: search for it */
	struct kb_elf kernel_elf;	/* of vmlinux, to find lines */

	struct kb_frame frame;
	struct kb_image *place;		/* image of the answer, if it is in a file, */
	uint64_t place_offset;		/* at offset pc + this */
	struct kb_maps_hit holds;	/* where the answer is valid; low > high: nowhere */
	uint32_t holds_for;		/* task id for which it is valid */
};

static int set_symfs(struct kb_symbolizer *symbolizer, const char *symfs)
{
	size_t length = symfs ? strlen(symfs) : 0;

	while (length && symfs[length - 1] == '/')
		length--;
	symbolizer->images.symfs = strndup(length ? symfs : "", length);
	return symbolizer->images.symfs ? 0 : -ENOMEM;
}

/*
 * A hash of /proc/modules: names and addresses of the modules. The third and fourth words of a
 * line are its users, which change all the time.
 */
static uint64_t modules_now(void)
{
	FILE *file = fopen("/proc/modules", "re");
	unsigned int word = 0;
	uint64_t hash = 1;
	int c;

	while (file && (c = getc_unlocked(file)) != EOF) {
		word = c == '\n' ? 0 : word + (c == ' ');
		if (word != 2 && word != 3)
			hash = kb_hash_word(hash, (uint8_t)c);
	}
	if (file)
		fclose(file);
	return hash;
}

static int load_kallsyms(struct kb_symbolizer *symbolizer)
{
	struct kb_kallsyms *kallsyms = &symbolizer->kallsyms;
	int ret;

	symbolizer->kallsyms_tried = true;
	if (symbolizer->images.native)
		symbolizer->modules = modules_now();
	if (!symbolizer->kallsyms_path)
		return kb_error_set(&symbolizer->kallsyms_error, -ENOENT, KB_NO_OFFSET,
				    "there is no %.200s.kallsyms beside the capture: copy it "
				    "there, or give the kernel's symbols with --kallsyms FILE",
				    kb_side_name(symbolizer->barman) ?: "CAPTURE");
	ret = kb_kallsyms_load(kallsyms, symbolizer->kallsyms_path, &symbolizer->kallsyms_error);
	if (ret)
		return ret;
	symbolizer->kernel_images = calloc(kallsyms->nr_images,
					   sizeof(*symbolizer->kernel_images));
	if (symbolizer->kernel_images)
		return 0;
	kb_kallsyms_release(kallsyms);
	return kb_error_set(&symbolizer->kallsyms_error, -ENOMEM, KB_NO_OFFSET, "out of memory");
}

/* Read CAPTURE.symbols if it exists. An error in it does not stop the symbolizer. */
static void read_bundle(struct kb_symbolizer *symbolizer, const char *capture)
{
	char *path = kb_side_find(symbolizer->barman, capture, KB_BUNDLE_SUFFIX);

	if (path)
		kb_bundle_read(&symbolizer->images, path, &symbolizer->bundle_error);
	free(path);
}

int kb_symbolizer_create(struct kb_symbolizer **out, const struct kb_barman *barman,
			 const char *path, const struct kb_symbol_options *options,
			 struct kb_error *err)
{
	static const struct kb_symbol_options none;
	const struct kb_header *header = kb_barman_header(barman);
	struct kb_symbolizer *symbolizer;
	int ret;

	if (!options)
		options = &none;
	symbolizer = calloc(1, sizeof(*symbolizer));
	if (!symbolizer)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	symbolizer->barman = barman;
	symbolizer->wide = header->word_size == 8;
	symbolizer->raw_names = options->raw_names;
	symbolizer->wants_lines = options->lines || options->inlined;
	symbolizer->frame.file = "";
	symbolizer->frames = (struct kb_line_cache) {
		.inlined = options->inlined,
		.demangler = options->raw_names ? NULL : &symbolizer->demangler,
		.nr_ids = &symbolizer->nr_ids,
	};
	kb_line_cache_init(&symbolizer->frames);
	symbolizer->images.header = header;
	symbolizer->images.native = kb_kernel_is_running(barman);
	symbolizer->images.foreign = !options->symfs && kb_kernel_is_elsewhere(barman);
	symbolizer->holds.low = 1;
	symbolizer->nr_ids = 1;
	symbolizer->row_images = calloc(header->nr_maps + 1, sizeof(*symbolizer->row_images));
	ret = kb_tasks_create(&symbolizer->tasks, barman);
	if (!ret)
		ret = kb_maps_create(&symbolizer->maps, barman);
	if (!ret)
		ret = set_symfs(symbolizer, options->symfs);
	if (!ret)
		read_bundle(symbolizer, path);
	if (ret || !symbolizer->row_images) {
		ret = kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
		goto err_destroy;
	}
	if (options->vmlinux && !(symbolizer->vmlinux = strdup(options->vmlinux))) {
		ret = kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
		goto err_destroy;
	}
	symbolizer->kallsyms_path = kb_kernel_symbols_path(barman, path, options->kallsyms);
	if (options->kallsyms && load_kallsyms(symbolizer)) {
		if (err)
			*err = symbolizer->kallsyms_error;
		ret = symbolizer->kallsyms_error.code;
		goto err_destroy;
	}
	*out = symbolizer;
	return 0;

err_destroy:
	kb_symbolizer_destroy(symbolizer);
	return ret;
}

void kb_symbolizer_destroy(struct kb_symbolizer *symbolizer)
{
	uint32_t i;

	if (!symbolizer)
		return;
	for (i = 0; i < symbolizer->max_demangled; i++)
		free(symbolizer->demangled[i]);
	free(symbolizer->demangled);
	kb_line_cache_release(&symbolizer->frames);
	kb_elf_release(&symbolizer->kernel_elf);
	free(symbolizer->vmlinux);
	kb_demangler_release(&symbolizer->demangler);
	kb_tasks_destroy(symbolizer->tasks);
	kb_maps_destroy(symbolizer->maps);
	kb_images_release(&symbolizer->images);
	kb_kallsyms_release(&symbolizer->kallsyms);
	free(symbolizer->kallsyms_path);
	free(symbolizer->kernel_images);
	free(symbolizer->row_images);
	free(symbolizer);
}

static void forget_kernel(struct kb_symbolizer *symbolizer)
{
	kb_kallsyms_release(&symbolizer->kallsyms);
	free(symbolizer->kernel_images);
	symbolizer->kernel_images = NULL;
	symbolizer->kallsyms_tried = false;
	symbolizer->nameless_kernel = false;
}

/* Limits memory when captures are renewed for weeks and programs come and go. */
static void forget_all(struct kb_symbolizer *symbolizer)
{
	forget_kernel(symbolizer);
	kb_line_cache_release(&symbolizer->frames);
	kb_line_cache_init(&symbolizer->frames);
	kb_elf_release(&symbolizer->kernel_elf);
	kb_images_forget(&symbolizer->images);
	for (uint32_t i = 0; i < symbolizer->max_demangled; i++)
		free(symbolizer->demangled[i]);
	free(symbolizer->demangled);
	symbolizer->demangled = NULL;
	symbolizer->max_demangled = 0;
	symbolizer->nr_ids = 1;
}

int kb_symbolizer_renew(struct kb_symbolizer *symbolizer, const struct kb_barman *barman,
			struct kb_error *err)
{
	const struct kb_header *header = kb_barman_header(barman);
	struct kb_image **row_images = calloc(header->nr_maps + 1, sizeof(*row_images));
	struct kb_tasks *tasks = NULL;
	struct kb_maps *maps = NULL;

	if (!row_images || kb_tasks_create(&tasks, barman) || kb_maps_create(&maps, barman)) {
		kb_tasks_destroy(tasks);
		free(row_images);
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	}
	kb_tasks_destroy(symbolizer->tasks);
	kb_maps_destroy(symbolizer->maps);
	free(symbolizer->row_images);
	symbolizer->barman = barman;
	symbolizer->tasks = tasks;
	symbolizer->maps = maps;
	symbolizer->row_images = row_images;
	symbolizer->jit = NULL;
	symbolizer->place = NULL;
	symbolizer->holds = (struct kb_maps_hit){ .low = 1 };
	symbolizer->unmapped = false;
	kb_images_renew(&symbolizer->images, header);
	if (symbolizer->kallsyms_tried && symbolizer->images.native &&
	    symbolizer->modules != modules_now())
		forget_kernel(symbolizer);
	if (symbolizer->images.nr > RENEWED_IMAGES || symbolizer->nr_ids > RENEWED_IDS)
		forget_all(symbolizer);
	return 0;
}

static uint32_t id_of(struct kb_symbolizer *symbolizer, uint32_t *id)
{
	if (*id == KB_SYMTAB_NO_ID)
		*id = symbolizer->nr_ids++;
	return *id;
}

/* Demangle the name of the symbol with the new id @id. Without memory the name stays. */
static void demangle(struct kb_symbolizer *symbolizer, uint32_t id, const char *name)
{
	char *text = symbolizer->raw_names ? NULL : kb_demangle(&symbolizer->demangler, name);
	uint32_t old = symbolizer->max_demangled;

	if (!text)
		return;
	if (!KB_ARRAY_ROOM(symbolizer->demangled, symbolizer->max_demangled, (size_t)id + 1)) {
		free(text);
		return;
	}
	memset(symbolizer->demangled + old, 0,
	       (symbolizer->max_demangled - old) * sizeof(*symbolizer->demangled));
	symbolizer->demangled[id] = text;
}

static const char *name_of(struct kb_symbolizer *symbolizer, const struct kb_symtab *symtab,
			   struct kb_symtab_symbol *symbol)
{
	const char *name = kb_symtab_name(symtab, symbol);
	bool is_new = symbol->id == KB_SYMTAB_NO_ID;
	uint32_t id = id_of(symbolizer, &symbol->id);

	if (is_new && name[0] == '_')
		demangle(symbolizer, id, name);
	return id < symbolizer->max_demangled && symbolizer->demangled[id] ?
		symbolizer->demangled[id] : name;
}

/* Answer with @image and without a symbol. */
static void answer_image(struct kb_symbolizer *symbolizer, struct kb_image *image, bool kernel)
{
	symbolizer->place = NULL;
	symbolizer->frame.symbol = (struct kb_symbol) {
		.name = "",
		.image = image->name,
		.image_base = image->base,
		.kernel = kernel,
		.id = id_of(symbolizer, &image->unknown_id),
	};
}

/* Answer with @hit, which is in the address space of @symtab, where @pc is at @address. */
static void answer_symbol(struct kb_symbolizer *symbolizer, const struct kb_symtab *symtab,
			  const struct kb_symtab_hit *hit, uint64_t pc, uint64_t address)
{
	struct kb_maps_hit *holds = &symbolizer->holds;

	if (address - hit->low < pc - holds->low)
		holds->low = pc - (address - hit->low);
	if (hit->high - address < holds->high - pc)
		holds->high = pc + (hit->high - address);
	if (!hit->symbol)
		return;
	symbolizer->frame.symbol.name = name_of(symbolizer, symtab, hit->symbol);
	symbolizer->frame.symbol.address = pc - (address - hit->symbol->start);
	symbolizer->frame.symbol.size = hit->symbol->size;
	symbolizer->frame.symbol.id = hit->symbol->id;
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
		if (!symbolizer->kallsyms_tried)
			load_kallsyms(symbolizer);
		if (!symbolizer->kallsyms.nr_images)
			return false;
		lowest = symbolizer->kallsyms.lowest;
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

/* The image of a kernel symbol from kallsyms. */
static struct kb_image *kernel_image(struct kb_symbolizer *symbolizer, uint32_t group)
{
	struct kb_image **image = &symbolizer->kernel_images[group];

	if (!*image)
		*image = kb_images_get(&symbolizer->images, symbolizer->kallsyms.images[group],
				       true);
	return *image;
}

/*
 * @image: image of the row that covers @pc; NULL if there is none. Returns 0 or a negative
 * errno.
 */
static int resolve_kernel(struct kb_symbolizer *symbolizer, struct kb_image *image, uint64_t pc)
{
	struct kb_symtab_hit hit;

	kb_symtab_find(&symbolizer->kallsyms.symbols, pc, &hit);
	if (hit.symbol)
		image = kernel_image(symbolizer, hit.symbol->group);
	else if (!image)
		image = kb_images_get(&symbolizer->images, KB_KERNEL_IMAGE, true);
	if (!image)
		return -ENOMEM;
	answer_image(symbolizer, image, true);
	symbolizer->place = image;
	symbolizer->place_offset = 0;
	answer_symbol(symbolizer, &symbolizer->kallsyms.symbols, &hit, pc, pc);
	return 0;
}

/* The segment of @image that @row maps at @pc. *@before: offset of @pc in the segment. */
static const struct kb_elf_segment *segment_at(const struct kb_image *image,
					       const struct kb_map *row, uint64_t pc,
					       uint64_t *before)
{
	uint64_t offset = pc - row->base_address + row->image_offset;
	const struct kb_elf_segment *segment = kb_elf_segment_at(&image->elf, offset);

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
		if (!image->elf.nr_segments)
			return;
		/* A row may be longer than the code: data may have been mapped over its end. */
		if (!kb_elf_maps_page(&image->elf, row->image_offset))
			kb_image_complain(image, "%s is not the file that was recorded: nothing of "
					  "it is mapped from offset 0x%llx", image->name,
					  (unsigned long long)row->image_offset);
		symbolizer->holds.low = symbolizer->holds.high = pc;
		return;
	}
	symbolizer->place = image;
	symbolizer->place_offset = segment->vaddr + before - pc;
	behind = segment->size - 1 - before;
	kb_symtab_find(&image->elf.symbols, segment->vaddr + before, &hit);
	if (before < pc - symbolizer->holds.low)
		symbolizer->holds.low = pc - before;
	if (behind < symbolizer->holds.high - pc)
		symbolizer->holds.high = pc + behind;
	answer_symbol(symbolizer, &image->elf.symbols, &hit, pc, segment->vaddr + before);
}

/* Code that was made at run time. True: a perf map of the process contains @pc. */
static bool resolve_jit(struct kb_symbolizer *symbolizer, uint32_t task_id, uint64_t timestamp,
			uint64_t pc)
{
	struct kb_symtab_hit hit;
	struct kb_task_hit task;

	kb_tasks_find(symbolizer->tasks, task_id, timestamp, &task);
	if (!symbolizer->jit || symbolizer->jit_pid != task.tgid) {
		symbolizer->jit = kb_images_perfmap(&symbolizer->images, task.tgid);
		symbolizer->jit_pid = task.tgid;
	}
	if (!symbolizer->jit)
		return false;
	kb_symtab_find(&symbolizer->jit->elf.symbols, pc, &hit);
	if (!hit.symbol)
		return false;
	answer_image(symbolizer, symbolizer->jit, false);
	answer_symbol(symbolizer, &symbolizer->jit->elf.symbols, &hit, pc, pc);
	return true;
}

/* The loaded image of a row of the mmap table. */
static struct kb_image *row_image(struct kb_symbolizer *symbolizer, const struct kb_maps_hit *hit)
{
	struct kb_image *image = symbolizer->row_images[hit->index];

	if (image)
		return image;
	image = kb_images_get_file(&symbolizer->images, hit->row->image, hit->row->file,
				   !hit->row->task_id);
	if (!image)
		return NULL;
	if (!image->row && hit->row->task_id)
		image->row = hit->row;
	image = kb_image_load(&symbolizer->images, image);
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
	if (kernel && !symbolizer->kallsyms_tried)
		load_kallsyms(symbolizer);
	if (kernel) {
		symbolizer->nameless_kernel |= !symbolizer->kallsyms.nr_images;
		return resolve_kernel(symbolizer, image, pc);
	}
	if (task_id && (!image || kb_image_is_anonymous(image))) {
		/* Addresses between entries of the map have another answer. */
		if (resolve_jit(symbolizer, task_id, timestamp, pc))
			return 0;
		if (symbolizer->jit && symbolizer->jit->elf.symbols.nr_symbols)
			holds->low = holds->high = pc;
	}
	if (image) {
		resolve_file(symbolizer, image, holds->row, pc);
		image->lacks_names |= !*symbolizer->frame.symbol.name;
		return 0;
	}
	symbolizer->unmapped = true;
	image = kb_images_get(&symbolizer->images, "[unknown]", false);
	if (!image)
		return -ENOMEM;
	answer_image(symbolizer, image, false);
	return 0;
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
		symbolizer->frame.symbol = (struct kb_symbol) {
			.name = "",
			.image = "[unknown]",
			.image_base = "[unknown]",
		};
	}
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
	const struct kb_image *image;
	struct kb_maps_hit hit;
	uint64_t before;

	ahead->symtab = NULL;
	if (kb_maps_find(symbolizer->maps, symbolizer->tasks, task_id, timestamp, pc, &hit))
		return;
	image = hit.row ? symbolizer->row_images[hit.index] : NULL;
	if (image && image->kind != KB_IMAGE_KERNEL) {
		segment = segment_at(image, hit.row, pc, &before);
		if (!segment)
			return;
		ahead->symtab = &image->elf.symbols;
		ahead->address = segment->vaddr + before;
	} else if (image || (!hit.row && symbolizer->wide && pc >> 63)) {
		ahead->symtab = &symbolizer->kallsyms.symbols;
		ahead->address = pc;
	} else {
		return;
	}
	kb_symtab_fetch_bucket(ahead->symtab, ahead->address);
}

void kb_symbolizer_place(const struct kb_symbolizer *symbolizer, struct kb_place *place)
{
	const struct kb_image *image;

	*place = (struct kb_place) { .row = symbolizer->holds.row };
	image = place->row ? symbolizer->row_images[symbolizer->holds.index] : NULL;
	if (image && image->elf.build_id.length)
		place->build_id = &image->elf.build_id;
	place->anonymous = image && kb_image_is_anonymous(image);
}

/* What is added to an address in vmlinux: the kernel has another address after each boot. */
static uint64_t kernel_shift(const struct kb_symbolizer *symbolizer)
{
	return symbolizer->kallsyms.stext - symbolizer->kernel_elf.stext;
}

/*
 * Is vmlinux of the kernel whose symbols these are? Then a symbol of its text is at the same place
 * in both. A kernel may call some differently, and 1 in 10 shall not matter. Another build of the
 * same source agrees up to the first function that has another length.
 */
static bool is_recorded_kernel(const struct kb_symbolizer *symbolizer)
{
	const struct kb_kallsyms *kallsyms = &symbolizer->kallsyms;
	const struct kb_elf *elf = &symbolizer->kernel_elf;
	uint32_t nr = 0, differ = 0;

	if (!kallsyms->stext || !elf->stext)
		return false;
	for (uint32_t i = 0; i < kallsyms->symbols.nr_symbols; i++) {
		const struct kb_symtab_symbol *symbol = &kallsyms->symbols.symbols[i];
		uint64_t address = symbol->start - kernel_shift(symbolizer);
		struct kb_symtab_hit hit;

		if (symbol->group || symbol->rank == KB_RANK_BOUNDARY ||
		    symbol->start < kallsyms->stext)
			continue;
		kb_symtab_find(&elf->symbols, address, &hit);
		nr++;
		differ += !hit.symbol || hit.symbol->start != address ||
			  strcmp(kb_symtab_name(&elf->symbols, hit.symbol),
				 kb_symtab_name(&kallsyms->symbols, symbol)) != 0;
	}
	return nr && differ <= nr / 10;
}

/* Open the DWARF of the kernel: of the vmlinux in the options, or of one in a usual place. */
static void load_kernel_lines(struct kb_symbolizer *symbolizer, struct kb_image *image)
{
	struct kb_error err = { 0 };
	char *path;

	if (image->lines_tried)
		return;
	path = symbolizer->images.foreign && !symbolizer->vmlinux ? NULL :
		kb_kernel_image_path(symbolizer->barman, symbolizer->images.symfs,
				     symbolizer->vmlinux);
	if (path && kb_elf_load(&symbolizer->kernel_elf, path, &err))
		kb_image_complain(image, "%s", kb_error_text(&err));
	else if (path && !is_recorded_kernel(symbolizer))
		kb_image_complain(image, "%s is not of the kernel that was recorded: its lines are "
				  "not used", path);
	else if (path) {
		kb_image_take_lines(&symbolizer->images, image, path);
		return;
	}
	free(path);
	kb_image_take_lines(&symbolizer->images, image, NULL);
}

/*
 * The address in vmlinux of one in the kernel. If the symbol there has another name, it may be an
 * alias, but that is not certain.
 */
static bool kernel_place(struct kb_symbolizer *symbolizer, struct kb_image *image,
			 uint64_t *address)
{
	const struct kb_symbol *symbol = &symbolizer->frame.symbol;
	struct kb_symtab_hit hit;
	uint64_t start;

	load_kernel_lines(symbolizer, image);
	if (!image->lines || !symbol->address)
		return false;
	*address -= kernel_shift(symbolizer);
	start = symbol->address - kernel_shift(symbolizer);
	kb_symtab_find(&symbolizer->kernel_elf.symbols, start, &hit);
	return hit.symbol && hit.symbol->start == start &&
	       strcmp(kb_symtab_name(&symbolizer->kernel_elf.symbols, hit.symbol), symbol->name) == 0;
}

uint32_t kb_symbolizer_frames(struct kb_symbolizer *symbolizer, uint32_t task_id,
			      uint64_t timestamp, uint64_t pc, const struct kb_frame **frames)
{
	const struct kb_symbol *symbol = kb_symbolizer_resolve(symbolizer, task_id, timestamp, pc);
	struct kb_image *place = symbolizer->place;
	uint64_t address = pc + symbolizer->place_offset;
	uint32_t nr = 0;

	*frames = &symbolizer->frame;
	if (!symbolizer->wants_lines || !place)
		return 1;
	if (place->kind == KB_IMAGE_KERNEL) {
		if (strcmp(place->name, KB_KERNEL_IMAGE) != 0 ||
		    !kernel_place(symbolizer, place, &address))
			return 1;
	} else if (place->kind == KB_IMAGE_FILE) {
		kb_image_load_lines(&symbolizer->images, place);
	}
	if (place->lines)
		nr = kb_line_cache_get(&symbolizer->frames, place, address, symbol, frames);
	return nr ? nr : 1;
}

uint32_t kb_symbolizer_count(const struct kb_symbolizer *symbolizer)
{
	return symbolizer->nr_ids;
}

struct listener {
	void (*say)(void *context, const char *sentence);
	void *context;
	struct list {
		char names[320];	/* names of images, separated by ", " */
		unsigned int nr, more;	/* more: how many are not in names */
	} stripped, without_lines;
};

static void note(struct list *list, const char *name)
{
	size_t used = strlen(list->names), length = strlen(name);

	list->nr++;
	if (used + length + 3 > sizeof(list->names))
		list->more++;
	else
		sprintf(list->names + used, "%s%s", used ? ", " : "", name);
}

static void say_complaint(struct kb_image *image, void *closure)
{
	bool lacks_names = image->stripped && image->lacks_names;
	struct listener *listener = closure;

	if (image->complaint)
		listener->say(listener->context, image->complaint);
	if (lacks_names)
		note(&listener->stripped, image->name);
	if (image->no_lines && !lacks_names)
		note(&listener->without_lines, image->name);
}

static void say_list(const struct listener *listener, const struct list *list, const char *what)
{
	char sentence[512], more[48] = "";

	if (!list->nr)
		return;
	if (list->more)
		snprintf(more, sizeof(more), "%sand %u more", list->names[0] ? " " : "", list->more);
	snprintf(sentence, sizeof(sentence), "%s (packages with their debug symbols would help): %s%s",
		 what, list->names, more);
	listener->say(listener->context, sentence);
}

void kb_symbolizer_complaints(const struct kb_symbolizer *symbolizer,
			      void (*say)(void *context, const char *sentence), void *context)
{
	struct listener listener = { .say = say, .context = context };
	char *sentence;

	if (symbolizer->bundle_error.code)
		say(context, kb_error_text(&symbolizer->bundle_error));
	kb_images_walk(&symbolizer->images, say_complaint, &listener);
	say_list(&listener, &listener.stripped, "functions without names, these files are stripped");
	say_list(&listener, &listener.without_lines, "no lines, they have no debug information");
	if (symbolizer->images.no_libdw)
		say(context, "no lines, they need libdw: install the package libdw1, or "
		    "elfutils-libs");
	if (symbolizer->images.was_foreign &&
	    asprintf(&sentence, "the capture was made on %.100s, not here: run 'kbarman bundle' "
		     "there and bring %s.symbols along, or give the file tree of that machine "
		     "with --symfs DIR (--symfs / uses the files of this machine)",
		     kb_barman_fact(symbolizer->barman, "host"),
		     kb_side_name(symbolizer->barman) ?: "CAPTURE") >= 0) {
		say(context, sentence);
		free(sentence);
	}
	if (symbolizer->nameless_kernel &&
	    asprintf(&sentence, "kernel addresses have no names: %s",
		     kb_error_text(&symbolizer->kallsyms_error)) >= 0) {
		say(context, sentence);
		free(sentence);
	}
	if (symbolizer->unmapped)
		say(context, "some addresses are in no mapping of the capture; they are counted "
			     "as [unknown]");
}

int kb_symbolizer_save(const struct kb_symbolizer *symbolizer, const char *capture,
		       struct kb_error *err)
{
	char *path;
	int ret;

	/* An empty file must not replace symbols that the recording machine has saved. */
	if (symbolizer->images.was_foreign)
		return kb_error_set(err, -EXDEV, KB_NO_OFFSET, "nothing was saved: the files of the "
				    "machine that recorded %s are not here", capture);
	if (asprintf(&path, "%s" KB_BUNDLE_SUFFIX, capture) < 0)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	ret = kb_bundle_write(&symbolizer->images, path, err);
	free(path);
	return ret;
}
