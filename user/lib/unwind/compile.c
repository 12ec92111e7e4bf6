// SPDX-License-Identifier: MIT
/* The instructions of each function make rows, in the order of addresses. */
#include <errno.h>
#include <stdlib.h>

#include "unwind/builder.h"
#include "unwind/cfi_rule.h"
#include "unwind/compile.h"
#include "unwind/init_code.h"
#include "unwind/signal_frame.h"

struct compiler {
	struct kb_unwind_functions functions;
	struct kb_unwind_builder builder;
	struct kb_cfi cfi;
	struct kb_unwind_rule rule;
};

static void add_row(struct compiler *compiler, uint64_t address, bool function)
{
	kb_unwind_builder_row(&compiler->builder, address,
			      kb_unwind_builder_rule(&compiler->builder, compiler->rule.steps),
			      function);
}

/* Execute the instructions @code of @function, from the state on that its CIE has made. */
static void run_frame(struct compiler *compiler, const struct kb_unwind_function *function,
		      struct kb_bytes *code)
{
	struct kb_cfi *cfi = &compiler->cfi;
	uint64_t address = function->start;
	enum kb_cfi_result result;

	do {
		result = kb_cfi_run(cfi, code);
		if (cfi->address < address)
			result = KB_CFI_BAD;
		if (result == KB_CFI_BAD)
			kb_unwind_rule_none(&compiler->rule, KB_UNWIND_DAMAGED);
		else
			kb_unwind_rule_of(&compiler->rule, cfi);
		add_row(compiler, address, address == function->start);
		address = cfi->address;
	} while (result == KB_CFI_ADVANCED && address < function->end);
	if (result == KB_CFI_BAD)
		kb_unwind_functions_damaged(&compiler->functions, function->at,
					    "an instruction can't be read");
}

/* The rows of @function, which is one of .eh_frame or .debug_frame. */
static void compile_frame(struct compiler *compiler, const struct kb_unwind_function *function)
{
	const struct kb_frames frames = kb_unwind_frames_of(&compiler->functions,
							    function->source);
	struct kb_cfi *cfi = &compiler->cfi;
	size_t at = function->at;
	struct kb_frames_entry entry = kb_frames_next(&frames, &at);
	const struct kb_cie_read *read = kb_cies_get(&compiler->functions.cies, &frames,
						     function->source, entry.cie);
	struct kb_fde fde;

	/* Both were read before. */
	if (!read || !kb_frames_fde(&frames, &read->cie, &entry, &fde))
		return;
	cfi->frames = &frames;
	cfi->cie = &read->cie;
	cfi->initial = &read->initial;
	cfi->nr_saved = 0;
	cfi->now = read->initial;
	cfi->address = function->start;
	run_frame(compiler, function, &fde.code);
}

static void compile_init(struct compiler *compiler, const struct kb_unwind_function *function)
{
	const struct kb_unwind_section *code = &compiler->functions.sections->init[function->at];
	struct kb_unwind_init_row rows[KB_UNWIND_INIT_ROWS];
	unsigned int nr = kb_unwind_init_rows(code, compiler->functions.machine, rows);

	for (unsigned int i = 0; i < nr && function->start + rows[i].at < function->end; i++) {
		kb_unwind_init_rule(&compiler->rule, compiler->functions.machine, &rows[i]);
		add_row(compiler, function->start + rows[i].at, i == 0);
	}
}

static void no_caller(struct kb_unwind_rule *rule, const struct kb_unwind_machine *machine)
{
	const uint8_t ra = machine->link ?: machine->nr - 1U;

	kb_unwind_rule_begin(rule, ra, 0);
	kb_unwind_rule_step(rule, KB_UNWIND_CFA_BASE, 0, machine->sp, 0);
	kb_unwind_rule_step(rule, KB_UNWIND_UNDEFINED, ra, 0, 0);
}

static void compile_function(struct compiler *compiler, const struct kb_unwind_function *function)
{
	struct kb_exidx exidx = kb_unwind_exidx_of(&compiler->functions);

	if (function->source < KB_UNWIND_EXIDX) {
		compile_frame(compiler, function);
		return;
	}
	if (function->source == KB_UNWIND_INIT) {
		compile_init(compiler, function);
		return;
	}
	if (function->source == KB_UNWIND_EXIDX)
		kb_exidx_rule(&exidx, function->at, &compiler->rule);
	else if (function->source == KB_UNWIND_START)
		no_caller(&compiler->rule, compiler->functions.machine);
	else
		kb_unwind_signal_frame(&compiler->rule, compiler->functions.machine);
	add_row(compiler, function->start, true);
}

static void compile_functions(struct compiler *compiler)
{
	const struct kb_unwind_functions *functions = &compiler->functions;

	for (size_t i = 0; i < functions->nr; i++) {
		const struct kb_unwind_function *function = &functions->rows[i];

		compile_function(compiler, function);
		if (i + 1 == functions->nr || function->end < function[1].start)
			kb_unwind_builder_row(&compiler->builder, function->end,
					      KB_UNWIND_UNCOVERED, false);
	}
}

static int no_memory(struct kb_error *err)
{
	return kb_error_set(err, -ENOMEM, KB_NO_OFFSET,
			    "unwind rows need more memory than there is");
}

static int compile(struct compiler *compiler, struct kb_unwind_rows *rows,
		   const struct kb_unwind_sections *sections, struct kb_error *err)
{
	int ret = kb_unwind_functions_find(&compiler->functions, sections, err);

	if (ret)
		return ret;
	if (!kb_unwind_builder_init(&compiler->builder, compiler->functions.machine,
				    sections->low))
		return no_memory(err);
	compile_functions(compiler);
	ret = kb_unwind_builder_finish(&compiler->builder, rows);
	kb_unwind_builder_release(&compiler->builder);
	return ret ? no_memory(err) : compiler->functions.damage;
}

int kb_unwind_compile(struct kb_unwind_rows *rows, const struct kb_unwind_sections *sections,
		      struct kb_error *err)
{
	struct compiler *compiler = calloc(1, sizeof(*compiler));
	int ret;

	if (!compiler)
		return no_memory(err);
	ret = compile(compiler, rows, sections, err);
	kb_unwind_functions_free(&compiler->functions);
	free(compiler);
	return ret;
}
