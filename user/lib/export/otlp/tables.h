/* SPDX-License-Identifier: MIT */
/*
 * The dictionary of one OTLP request: texts, attributes, images, functions, frames and chains, each
 * once, as its samples refer to them. Indexes begin at 1; 0 is the entry that means "none".
 *
 * Without memory every function returns 0 from then on, and `no_memory` is set.
 */
#ifndef KB_LIB_EXPORT_OTLP_TABLES_H
#define KB_LIB_EXPORT_OTLP_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kbarman/out.h>

#include "base/table.h"
#include "export/otlp/fields.h"
#include "export/stack_table.h"

struct kb_otlp_tables {
	const struct kb_stack_table *stacks;
	struct kb_out *out[KB_OTLP_TABLES];	/* by number of the table: its encoded entries */
	struct kb_table strings, attributes, mappings, functions, locations, chains;
	bool no_memory;
};

/* @stacks must live as long as @tables. Release @tables in any case. */
void kb_otlp_tables_init(struct kb_otlp_tables *tables, const struct kb_stack_table *stacks);
void kb_otlp_tables_release(struct kb_otlp_tables *tables);

/* The index of a text in any encoding. It is made valid UTF-8, and cut to KB_STACK_LABEL bytes. */
uint32_t kb_otlp_text(struct kb_otlp_tables *tables, const char *text, size_t length);

/* The index of an attribute whose value is a text, or a number. */
uint32_t kb_otlp_attribute(struct kb_otlp_tables *tables, const char *key, const char *value,
			   size_t length);
uint32_t kb_otlp_number(struct kb_otlp_tables *tables, const char *key, uint64_t value);

/* The index of the chain that ends in @node. */
uint32_t kb_otlp_chain(struct kb_otlp_tables *tables, uint32_t node);

/* Write the dictionary to @out, as the field of a request. */
void kb_otlp_tables_write(struct kb_otlp_tables *tables, struct kb_out *out);

/* Write what is in @from, an output to memory, as the message @field of @out, and empty @from. */
void kb_otlp_nest(struct kb_out *out, uint32_t field, struct kb_out *from);

#endif
