// SPDX-License-Identifier: MIT
/*
 * Rules are found by a hash table of fixed size. A search in it has few steps, whatever rules a
 * file has: a rule that finds no slot soon is one too many.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"
#include "unwind/builder.h"

#define SLOTS	(2 * KB_UNWIND_MAX_RULES)
#define PROBES	64U

static uint16_t add_rule(struct kb_unwind_builder *builder, const struct kb_unwind_step *rule)
{
	uint32_t nr = rule->count + 1;

	if (!KB_ARRAY_ROOM(builder->rules, builder->max_rules, builder->nr_rules + 1) ||
	    !KB_ARRAY_ROOM(builder->steps, builder->max_steps, builder->nr_steps + nr)) {
		builder->no_memory = true;
		return KB_UNWIND_TOO_MANY;
	}
	memcpy(&builder->steps[builder->nr_steps], rule, nr * sizeof(*rule));
	builder->rules[builder->nr_rules] = builder->nr_steps;
	builder->nr_steps += nr;
	return builder->nr_rules++;
}

bool kb_unwind_builder_init(struct kb_unwind_builder *builder,
			    const struct kb_unwind_machine *machine, uint64_t base)
{
	*builder = (struct kb_unwind_builder) { .machine = machine, .base = base };
	builder->slots = calloc(SLOTS, sizeof(*builder->slots));
	if (!builder->slots)
		return false;
	for (int i = 0; i < KB_UNWIND_REASONS; i++)
		add_rule(builder, &(struct kb_unwind_step) {
			.what = KB_UNWIND_NO_RULE, .offset = i });
	if (builder->no_memory)
		kb_unwind_builder_release(builder);
	return !builder->no_memory;
}

void kb_unwind_builder_release(struct kb_unwind_builder *builder)
{
	free(builder->starts);
	free(builder->rule_of);
	free(builder->steps);
	free(builder->rules);
	free(builder->slots);
}

static uint32_t hash_of(const struct kb_unwind_step *rule)
{
	uint64_t hash = 0, word;

	for (unsigned int i = 0; i <= rule->count; i++) {
		memcpy(&word, &rule[i], sizeof(word));
		hash = kb_hash_word(hash, word);
	}
	return (uint32_t)(hash >> 32);
}

static bool equal(const struct kb_unwind_builder *builder, uint16_t number,
		  const struct kb_unwind_step *rule)
{
	const struct kb_unwind_step *other = &builder->steps[builder->rules[number]];

	return other->count == rule->count &&
	       !memcmp(other, rule, (rule->count + 1) * sizeof(*rule));
}

uint16_t kb_unwind_builder_rule(struct kb_unwind_builder *builder,
				const struct kb_unwind_step *rule)
{
	uint32_t hash;

	if (rule->what == KB_UNWIND_NO_RULE)
		return rule->offset;
	hash = hash_of(rule);
	for (uint32_t i = 0; i < PROBES; i++) {
		uint16_t *slot = &builder->slots[(hash + i) % SLOTS];

		if (*slot && equal(builder, *slot, rule))
			return *slot;
		if (*slot)
			continue;
		if (builder->nr_rules == KB_UNWIND_MAX_RULES)
			break;
		*slot = add_rule(builder, rule);
		return *slot;
	}
	return KB_UNWIND_TOO_MANY;
}

void kb_unwind_builder_row(struct kb_unwind_builder *builder, uint64_t address, uint16_t rule,
			   bool function)
{
	uint32_t start = address - builder->base, nr = builder->nr_rows;
	uint16_t flag = function ? KB_UNWIND_FUNCTION : 0;

	if (nr && builder->starts[nr - 1] == start) {
		/* It replaces what held for no byte. */
		flag |= builder->rule_of[nr - 1] & KB_UNWIND_FUNCTION;
		builder->rule_of[nr - 1] = rule | flag;
		return;
	}
	if (nr && !function && (builder->rule_of[nr - 1] & ~KB_UNWIND_FUNCTION) == rule)
		return;
	if (!KB_ARRAY_ROOM(builder->starts, builder->max_starts, nr + 1) ||
	    !KB_ARRAY_ROOM(builder->rule_of, builder->max_rule_of, nr + 1)) {
		builder->no_memory = true;
		return;
	}
	builder->starts[nr] = start;
	builder->rule_of[nr] = rule | flag;
	builder->nr_rows++;
}

int kb_unwind_builder_finish(const struct kb_unwind_builder *builder,
			     struct kb_unwind_rows *rows)
{
	uint64_t size = kb_unwind_block_size(builder->nr_rows, builder->nr_rules,
					     builder->nr_steps);
	struct kb_unwind_header *header = NULL;

	if (!builder->no_memory && size <= PTRDIFF_MAX)
		header = calloc(1, size);
	if (!header)
		return -ENOMEM;
	*header = (struct kb_unwind_header) {
		.magic = { 'k', 'b', 'u', 'n', 'w', 'i', 'n', 'd' }, .version = KB_UNWIND_VERSION,
		.size = size, .base = builder->base,
		.elf = builder->machine->elf, .word = builder->machine->word,
		.nr_rows = builder->nr_rows, .nr_rules = builder->nr_rules,
		.nr_steps = builder->nr_steps,
	};
	kb_unwind_rows_point(rows, header);
	memcpy((void *)rows->rules, builder->rules, builder->nr_rules * sizeof(*rows->rules));
	memcpy((void *)rows->steps, builder->steps, builder->nr_steps * sizeof(*rows->steps));
	if (builder->nr_rows) {
		memcpy((void *)rows->starts, builder->starts,
		       builder->nr_rows * sizeof(*rows->starts));
		memcpy((void *)rows->rule_of, builder->rule_of,
		       builder->nr_rows * sizeof(*rows->rule_of));
	}
	header->crc = kb_unwind_block_crc(header);
	return 0;
}
