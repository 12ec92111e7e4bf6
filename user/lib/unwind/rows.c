// SPDX-License-Identifier: MIT
/*
 * The starts of rows stand together, so that a search reads few cache lines. A block that was
 * taken is right in every byte that is read later: neither look-ups nor the walker check again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "unwind/rows.h"

static const struct kb_unwind_step uncovered = {
	.what = KB_UNWIND_NO_RULE, .offset = KB_UNWIND_UNCOVERED,
};

static uint64_t steps_at(uint32_t nr_rows, uint32_t nr_rules)
{
	uint64_t end = sizeof(struct kb_unwind_header) + ((uint64_t)nr_rows + nr_rules) * 4 +
		(uint64_t)nr_rows * 2;

	return (end + 7) & ~UINT64_C(7);
}

uint64_t kb_unwind_block_size(uint32_t nr_rows, uint32_t nr_rules, uint32_t nr_steps)
{
	return steps_at(nr_rows, nr_rules) + (uint64_t)nr_steps * sizeof(struct kb_unwind_step);
}

void kb_unwind_rows_point(struct kb_unwind_rows *rows, const void *block)
{
	const struct kb_unwind_header *header = block;

	rows->header = header;
	rows->machine = kb_unwind_machine(header->elf, header->word);
	rows->starts = (const uint32_t *)(header + 1);
	rows->rules = rows->starts + header->nr_rows;
	rows->rule_of = (const uint16_t *)(rows->rules + header->nr_rules);
	rows->steps = (const struct kb_unwind_step *)((const char *)block +
						      steps_at(header->nr_rows, header->nr_rules));
}

uint32_t kb_unwind_block_crc(const void *block)
{
	const struct kb_unwind_header *header = block;
	const Bytef *at = (const Bytef *)&header->size;
	uint64_t left = header->size - offsetof(struct kb_unwind_header, size);
	uLong crc = crc32(0, NULL, 0);

	while (left) {
		uInt piece = left > 1U << 30 ? 1U << 30 : (uInt)left;

		crc = crc32(crc, at, piece);
		at += piece;
		left -= piece;
	}
	return (uint32_t)crc;
}

static int damaged(struct kb_error *err, uint64_t offset, const char *what)
{
	return kb_error_set(err, -EBADMSG, offset, "unwind rows are damaged at byte %llu: %s",
			    (unsigned long long)offset, what);
}

static int check_header(const struct kb_unwind_header *header, size_t size, struct kb_error *err)
{
	if (size < sizeof(*header) || memcmp(header->magic, KB_UNWIND_MAGIC, 8))
		return damaged(err, 0, "they don't begin as rows do");
	if (header->version != KB_UNWIND_VERSION)
		return kb_error_set(err, -EPROTO, 8, "unwind rows are those of version %u, not %u",
				    header->version, KB_UNWIND_VERSION);
	if (header->size != size || header->nr_rules > KB_UNWIND_MAX_RULES ||
	    kb_unwind_block_size(header->nr_rows, header->nr_rules, header->nr_steps) != size)
		return damaged(err, offsetof(struct kb_unwind_header, size), "the sizes disagree");
	if (!kb_unwind_machine(header->elf, header->word))
		return damaged(err, offsetof(struct kb_unwind_header, elf), "no known machine");
	if (kb_unwind_block_crc(header) != header->crc)
		return damaged(err, offsetof(struct kb_unwind_header, crc), "the checksum differs");
	return 0;
}

static uint64_t offset_of(const struct kb_unwind_rows *rows, const void *member)
{
	return (const char *)member - (const char *)rows->header;
}

static int check_rows(const struct kb_unwind_rows *rows, struct kb_error *err)
{
	uint32_t nr = rows->header->nr_rows;

	for (uint32_t i = 0; i < nr; i++) {
		if (i && rows->starts[i] <= rows->starts[i - 1])
			return damaged(err, offset_of(rows, &rows->starts[i]),
				       "rows are not sorted");
		if ((rows->rule_of[i] & ~KB_UNWIND_FUNCTION) >= rows->header->nr_rules)
			return damaged(err, offset_of(rows, &rows->rule_of[i]), "no such rule");
	}
	if (nr && rows->starts[nr - 1] > UINT64_MAX - rows->header->base)
		return damaged(err, offsetof(struct kb_unwind_header, base),
			       "addresses leave the address space");
	return 0;
}

/* @before: the step before it, or the header. Steps to the CFA come first. */
static bool step_is_good(const struct kb_unwind_step *step, const struct kb_unwind_step *before)
{
	if ((before->what == KB_UNWIND_RULE) != (step->what == KB_UNWIND_CFA_BASE))
		return false;
	if (step->what <= KB_UNWIND_CFA_PLT && before->what > KB_UNWIND_CFA_PLT)
		return false;
	if (step->what <= KB_UNWIND_NO_RULE || step->what >= KB_UNWIND_WHATS)
		return false;
	if (step->what == KB_UNWIND_CFA_PLT)
		return step->count < 8;
	return step->target < KB_UNWIND_REGISTERS && step->base < KB_UNWIND_REGISTERS;
}

static int check_rule(const struct kb_unwind_rows *rows, uint32_t at, struct kb_error *err)
{
	const struct kb_unwind_step *rule = &rows->steps[at];

	if (rule->what == KB_UNWIND_NO_RULE && (uint32_t)rule->offset < KB_UNWIND_REASONS)
		return 0;
	if (rule->what != KB_UNWIND_RULE || rule->target >= KB_UNWIND_REGISTERS ||
	    !rule->count || rule->count >= KB_UNWIND_MAX_STEPS ||
	    rule->count >= rows->header->nr_steps - at)
		return damaged(err, offset_of(rows, rule), "not a rule");
	for (unsigned int i = 1; i <= rule->count; i++)
		if (!step_is_good(&rule[i], &rule[i - 1]))
			return damaged(err, offset_of(rows, &rule[i]), "not a step");
	return 0;
}

static int check_rules(const struct kb_unwind_rows *rows, struct kb_error *err)
{
	int ret = 0;

	for (uint32_t i = 0; i < rows->header->nr_rules && !ret; i++)
		ret = rows->rules[i] < rows->header->nr_steps ?
			check_rule(rows, rows->rules[i], err) :
			damaged(err, offset_of(rows, &rows->rules[i]), "no such step");
	return ret;
}

int kb_unwind_rows_take(struct kb_unwind_rows *rows, void *block, size_t size,
			struct kb_error *err)
{
	struct kb_unwind_rows found;
	int ret = check_header(block, size, err);

	if (ret)
		return ret;
	kb_unwind_rows_point(&found, block);
	ret = check_rows(&found, err);
	if (!ret)
		ret = check_rules(&found, err);
	if (!ret)
		*rows = found;
	return ret;
}

void kb_unwind_rows_release(struct kb_unwind_rows *rows)
{
	free((void *)rows->header);
	*rows = (struct kb_unwind_rows) { 0 };
}

/* The number of rows that begin at @address or before it: the last of them holds there. */
static uint32_t rows_up_to(const struct kb_unwind_rows *rows, uint64_t address)
{
	uint64_t wanted = address - rows->header->base;
	const uint32_t *first = rows->starts;
	uint32_t left = rows->header->nr_rows;

	if (address < rows->header->base)
		return 0;
	/* Without branches that depend on the address: it is not foreseeable. */
	while (left) {
		uint32_t half = left / 2;

		first = first[half] <= wanted ? first + (left - half) : first;
		left = half;
	}
	return first - rows->starts;
}

const struct kb_unwind_step *kb_unwind_rule_at(const struct kb_unwind_rows *rows,
					       uint64_t address)
{
	uint32_t nr = rows_up_to(rows, address);

	if (!nr)
		return &uncovered;
	return &rows->steps[rows->rules[rows->rule_of[nr - 1] & ~KB_UNWIND_FUNCTION]];
}

static bool is_uncovered(const struct kb_unwind_rows *rows, uint32_t row)
{
	const struct kb_unwind_step *rule =
		&rows->steps[rows->rules[rows->rule_of[row] & ~KB_UNWIND_FUNCTION]];

	return rule->what == KB_UNWIND_NO_RULE && rule->offset == KB_UNWIND_UNCOVERED;
}

bool kb_unwind_function_at(const struct kb_unwind_rows *rows, uint64_t address,
			   struct kb_unwind_bounds *bounds)
{
	uint32_t first = rows_up_to(rows, address), next = first;

	if (!first--)
		return false;
	while (first && !(rows->rule_of[first] & KB_UNWIND_FUNCTION) && !is_uncovered(rows, first))
		first--;
	if (!(rows->rule_of[first] & KB_UNWIND_FUNCTION))
		return false;
	while (next < rows->header->nr_rows && !(rows->rule_of[next] & KB_UNWIND_FUNCTION) &&
	       !is_uncovered(rows, next))
		next++;
	if (next == rows->header->nr_rows)
		return false;
	bounds->start = rows->header->base + rows->starts[first];
	bounds->end = rows->header->base + rows->starts[next];
	return true;
}

const char *kb_unwind_reason_text(enum kb_unwind_reason reason)
{
	static const char *const texts[KB_UNWIND_REASONS] = {
		"no table describes the code", "the table says that it can't be unwound",
		"an expression of an unknown form", "a number that is too large",
		"damaged instructions", "too many different rules",
	};

	return reason < KB_UNWIND_REASONS ? texts[reason] : "unknown";
}
