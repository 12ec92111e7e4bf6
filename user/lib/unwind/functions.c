// SPDX-License-Identifier: MIT
/* The functions of all sections are found, then sorted; those in others are left out. */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "unwind/functions.h"
#include "unwind/go_starts.h"
#include "unwind/init_code.h"
#include "unwind/signal_frame.h"

void kb_unwind_functions_damaged(struct kb_unwind_functions *functions, size_t offset,
				 const char *what)
{
	if (!functions->damage)
		functions->damage = kb_error_set(functions->err, -EBADMSG, offset,
						 "unwind tables are damaged at byte %zu: %s",
						 offset, what);
}

struct kb_frames kb_unwind_frames_of(const struct kb_unwind_functions *functions,
				     unsigned int source)
{
	return (struct kb_frames) {
		.machine = functions->machine, .swap = functions->swap,
		.section = functions->sections->frames[source].section,
		.debug = functions->sections->frames[source].debug,
	};
}

struct kb_exidx kb_unwind_exidx_of(const struct kb_unwind_functions *functions)
{
	return (struct kb_exidx) {
		.index = functions->sections->exidx, .table = functions->sections->extab,
		.swap = functions->swap,
	};
}

/* False: no memory. A function that is not in the code of the file is left out. */
static bool add_function(struct kb_unwind_functions *functions,
			 struct kb_unwind_function function)
{
	const struct kb_unwind_sections *sections = functions->sections;

	if (function.start < sections->low || function.end > sections->high ||
	    function.start >= function.end)
		return true;
	if (!KB_ARRAY_ROOM(functions->rows, functions->max, functions->nr + 1))
		return false;
	functions->rows[functions->nr++] = function;
	return true;
}

/* Add the function of @entry, which begins at @at. False: no memory. */
static bool add_frame(struct kb_unwind_functions *functions, const struct kb_frames *frames,
		      uint8_t source, const struct kb_frames_entry *entry, size_t at)
{
	const struct kb_cie_read *cie = kb_cies_get(&functions->cies, frames, source, entry->cie);
	struct kb_fde fde;

	if (cie && kb_frames_fde(frames, &cie->cie, entry, &fde))
		return add_function(functions, (struct kb_unwind_function) {
			.start = fde.start, .end = fde.end, .source = source, .at = at });
	kb_unwind_functions_damaged(functions, at, cie ? "an entry can't be read" :
				    "the common part of an entry can't be read");
	return true;
}

/* Find the functions of one section. False: no memory. */
static bool find_frames(struct kb_unwind_functions *functions, uint8_t source)
{
	const struct kb_frames frames = kb_unwind_frames_of(functions, source);
	struct kb_frames_entry entry;
	size_t at = 0, start;

	do {
		start = at;
		entry = kb_frames_next(&frames, &at);
		if (entry.kind == KB_FRAMES_BAD)
			kb_unwind_functions_damaged(functions, start,
						    "an entry does not end in the section");
		if (entry.kind == KB_FRAMES_FDE &&
		    !add_frame(functions, &frames, source, &entry, start))
			return false;
	} while (entry.kind != KB_FRAMES_BAD && entry.kind != KB_FRAMES_END);
	return true;
}

/* A function ends where that of the next entry begins. */
static bool find_exidx(struct kb_unwind_functions *functions)
{
	const struct kb_exidx exidx = kb_unwind_exidx_of(functions);
	size_t size = exidx.index.size, at;
	uint64_t start, end;

	if (functions->machine->elf != EM_ARM)
		return true;
	for (at = 0; size - at >= KB_EXIDX_ENTRY; at += KB_EXIDX_ENTRY) {
		start = kb_exidx_start(&exidx, at);
		end = size - at >= 2 * KB_EXIDX_ENTRY ?
			kb_exidx_start(&exidx, at + KB_EXIDX_ENTRY) : functions->sections->high;
		if (!add_function(functions, (struct kb_unwind_function) {
				.start = start, .end = end, .source = KB_UNWIND_EXIDX, .at = at }))
			return false;
	}
	return true;
}

/*
 * The function to which a handler returns was never called: its address is looked up one byte
 * before its beginning.
 */
static bool find_trampolines(struct kb_unwind_functions *functions)
{
	uint64_t address;
	size_t at = 0;

	while (kb_unwind_trampoline(&functions->sections->vdso, functions->machine, &at, &address))
		if (!add_function(functions, (struct kb_unwind_function) {
				.start = address - 1, .end = address + KB_UNWIND_TRAMPOLINE,
				.source = KB_UNWIND_HANDLERS_END }))
			return false;
	return true;
}

static bool find_init(struct kb_unwind_functions *functions)
{
	struct kb_unwind_init_row rows[KB_UNWIND_INIT_ROWS];

	for (size_t i = 0; i < KB_UNWIND_INITS; i++) {
		const struct kb_unwind_section *code = &functions->sections->init[i];

		if (kb_unwind_init_rows(code, functions->machine, rows) &&
		    !add_function(functions, (struct kb_unwind_function) {
				.start = code->address, .end = code->address + code->size,
				.source = KB_UNWIND_INIT, .at = i }))
			return false;
	}
	return true;
}

static bool find_starts(struct kb_unwind_functions *functions)
{
	struct kb_go_starts starts;
	uint64_t start, end;

	kb_go_starts_begin(&starts, &functions->sections->go, functions->swap);
	while (kb_go_starts_next(&starts, &start, &end))
		if (!add_function(functions, (struct kb_unwind_function) {
				.start = start, .end = end, .source = KB_UNWIND_START }))
			return false;
	return true;
}

static bool find_all(struct kb_unwind_functions *functions)
{
	for (uint8_t source = 0; source < KB_UNWIND_FRAMES; source++)
		if (!find_frames(functions, source))
			return false;
	return find_exidx(functions) && find_trampolines(functions) && find_init(functions) &&
	       find_starts(functions);
}

static int compare(const void *a, const void *b)
{
	const struct kb_unwind_function *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	return (x->at > y->at) - (x->at < y->at);
}

/*
 * A function ends where the next one begins. One that begins in a function of a better section
 * is left out, and so is a second one with the same beginning.
 */
static void leave_out(struct kb_unwind_functions *functions)
{
	struct kb_unwind_function *rows = functions->rows, *last = NULL;
	size_t kept = 0;

	for (size_t i = 0; i < functions->nr; i++) {
		const struct kb_unwind_function *function = &rows[i];

		if (last && function->start < last->end) {
			if (function->start == last->start || last->source < function->source)
				continue;
			last->end = function->start;
		}
		last = &rows[kept++];
		*last = *function;
	}
	functions->nr = kept;
}

int kb_unwind_functions_find(struct kb_unwind_functions *functions,
			     const struct kb_unwind_sections *sections, struct kb_error *err)
{
	*functions = (struct kb_unwind_functions) {
		.sections = sections, .err = err,
		.machine = kb_unwind_machine(sections->elf, sections->word),
		.swap = sections->big_endian != KB_HOST_BIG_ENDIAN,
	};
	if (!functions->machine)
		return kb_error_set(err, -ENOTSUP, KB_NO_OFFSET,
				    "unwinding is not known for machine %u", sections->elf);
	if (sections->high < sections->low || sections->high - sections->low > UINT32_MAX)
		return kb_error_set(err, -EFBIG, KB_NO_OFFSET, "its code is larger than 4 GiB");
	if (!find_all(functions))
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET,
				    "unwind tables need more memory than there is");
	if (functions->nr)
		qsort(functions->rows, functions->nr, sizeof(*functions->rows), compare);
	leave_out(functions);
	return 0;
}

void kb_unwind_functions_free(struct kb_unwind_functions *functions)
{
	free(functions->rows);
	functions->rows = NULL;
}
