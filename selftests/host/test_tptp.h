/* SPDX-License-Identifier: MIT */
/* What the tests of the TPTP codec share: encode in memory, decode, compare. */
#ifndef KBARMAN_TEST_TPTP_H
#define KBARMAN_TEST_TPTP_H

#include <errno.h>
#include <stdlib.h>

#include <kbarman/tptp.h>

#include "../lib/tap.h"

/* A trace that is written to memory. */
struct trace {
	struct kb_out *out;
	struct kb_tptp_writer *writer;
};

#define LAYOUT(...)	{ .size = sizeof(struct kb_tptp_layout), __VA_ARGS__ }

static inline void trace_begin(struct trace *trace, const struct kb_tptp_layout *layout)
{
	if (kb_out_memory(&trace->out) ||
	    kb_tptp_writer_create(&trace->writer, trace->out, layout)) {
		printf("Bail out! can't create a writer\n");
		exit(1);
	}
}

static inline const uint8_t *trace_data(const struct trace *trace, size_t *size)
{
	return kb_out_data(trace->out, size);
}

static inline void trace_free(struct trace *trace)
{
	kb_tptp_writer_destroy(trace->writer);
	kb_out_destroy(trace->out);
}

static inline bool same_text(const struct kb_text *a, const struct kb_text *b)
{
	return a->length == b->length && (!a->length || !memcmp(a->data, b->data, a->length));
}

/* The first field that differs, -1 if none does. */
static inline int difference(const struct kb_tptp_message *a, const struct kb_tptp_message *b)
{
	uint32_t depth = kb_tptp_message_depth(a);

	if (a->table != b->table)
		return KB_TPTP_MAX_FIELDS;
	for (int i = 0; i < a->table->nr_fields; i++) {
		const union kb_tptp_value *x = &a->values[i], *y = &b->values[i];

		switch (a->table->fields[i].type) {
		case KB_TPTP_TYPE_STRING:
			if (!same_text(&x->string, &y->string))
				return i;
			break;
		case KB_TPTP_TYPE_STRINGS:
			for (uint32_t k = 0; k < depth; k++)
				if (!same_text(&x->strings[k], &y->strings[k]))
					return i;
			break;
		case KB_TPTP_TYPE_LONGS:
			for (uint32_t k = 0; k < depth; k++)
				if (x->longs[k] != y->longs[k])
					return i;
			break;
		default:
			if (x->number != y->number)
				return i;
		}
	}
	return -1;
}

/* xorshift64*, so that a seed is a test. */
static inline uint64_t random64(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(0x2545f4914f6cdd1d);
}

static inline uint32_t random_below(uint64_t *state, uint32_t limit)
{
	return (random64(state) >> 32) * limit >> 32;
}

/* A message with random content that every form can carry. */
struct random_message {
	struct kb_tptp_message message;
	char text[24 * 1024];
	size_t used;
	struct kb_text strings[12];
	int64_t longs[12];
};

/* What XML must escape, may not split, or has rules for, and every width of UTF-8. */
static inline struct kb_text random_text(struct random_message *random, uint64_t *state)
{
	static const char *const pieces[] = {
		"a", "Z", "0", " ", "  ", "%", "%20", "%25", "%2", "\"", "'", "&", "<", ">",
		"&amp;", "]]>", "-->", "<!--", "\t", "\n", "\r", "\r\n", "/", "\\", "\x7f",
		"\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
		"\xef\xbf\xbd", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf", "\xe2\x82\xac",
		"Reference Handler", "do_syscall_64",
	};
	struct kb_text text = { random->text + random->used, 0 };
	uint32_t nr = random_below(state, 3) ? random_below(state, 12) : 0;

	for (uint32_t i = 0; i < nr; i++) {
		const char *piece = pieces[random_below(state, sizeof(pieces) / sizeof(pieces[0]))];

		memcpy(random->text + random->used, piece, strlen(piece));
		random->used += strlen(piece);
		text.length += strlen(piece);
	}
	return text;
}

static inline int64_t random_number(uint64_t *state, uint8_t type)
{
	static const int64_t edges[] = {
		0, 1, -1, INT64_MAX, INT64_MIN, INT32_MAX, INT32_MIN, 999999999, 1000000000,
		-999999999, -1000000000, 1185890426304424453,
	};
	uint64_t number = random64(state) >> random_below(state, 64);

	if (!random_below(state, 3))
		number = edges[random_below(state, sizeof(edges) / sizeof(edges[0]))];
	else if (!random_below(state, 3))
		number = -number;
	if (type == KB_TPTP_TYPE_BYTE)
		return (uint8_t)number;
	if (type == KB_TPTP_TYPE_INTEGER)
		return (int32_t)number;
	return number;
}

static inline void random_fill(struct random_message *random, uint64_t *state, enum kb_tptp_id id)
{
	struct kb_tptp_message *message = &random->message;
	const struct kb_tptp_table *table;

	random->used = 0;
	kb_tptp_message_init(message, id);
	table = message->table;
	for (int i = 0; i < table->nr_fields; i++) {
		union kb_tptp_value *value = &message->values[i];

		switch (table->fields[i].type) {
		case KB_TPTP_TYPE_STRING:
			value->string = random_text(random, state);
			break;
		case KB_TPTP_TYPE_STRINGS:
			message->values[i - 1].number = random_below(state, 3) ? random_below(state, 12) : 0;
			for (int k = 0; k < 12; k++)
				random->strings[k] = random_text(random, state);
			value->strings = random->strings;
			break;
		case KB_TPTP_TYPE_LONGS:
			for (int k = 0; k < 12; k++)
				random->longs[k] = random_number(state, KB_TPTP_TYPE_LONG);
			value->longs = random->longs;
			break;
		default:
			value->number = random_number(state, table->fields[i].type);
		}
	}
}

#endif
