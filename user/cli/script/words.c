// SPDX-License-Identifier: MIT
/* The words that --kinds and -F take. */
#include <string.h>

#include "base/array.h"
#include "cli/base/cli.h"
#include "cli/script/script.h"

struct word {
	struct kb_text word;
	unsigned int bit;
};

#define WORD(word, bit)	{ { word, sizeof(word) - 1 }, bit }

static const struct word kinds[] = {
	WORD("sample", 1U << SCRIPT_SAMPLE),	WORD("switch", 1U << SCRIPT_SWITCH),
	WORD("idle", 1U << SCRIPT_IDLE),		WORD("wake", 1U << SCRIPT_WAKE),
	WORD("migrate", 1U << SCRIPT_MIGRATE),	WORD("irq", 1U << SCRIPT_IRQ),
	WORD("softirq", 1U << SCRIPT_SOFTIRQ),	WORD("freq", 1U << SCRIPT_FREQ),
	WORD("syscalls", 1U << SCRIPT_SYSCALLS),	WORD("faults", 1U << SCRIPT_FAULTS),
	WORD("block", 1U << SCRIPT_BLOCK),
	WORD("annotation", 1U << SCRIPT_ANNOTATION),
	WORD("counter", 1U << SCRIPT_COUNTER),
};

static const struct word fields[] = {
	WORD("comm", FIELD_COMM),		WORD("pid", FIELD_PID),		WORD("tid", FIELD_TID),
	WORD("cpu", FIELD_CPU),		WORD("time", FIELD_TIME),		WORD("period", FIELD_PERIOD),
	WORD("event", FIELD_EVENT),	WORD("trace", FIELD_TRACE),	WORD("ip", FIELD_IP),
	WORD("sym", FIELD_SYM),		WORD("symoff", FIELD_SYMOFF),	WORD("dso", FIELD_DSO),
	WORD("srcline", FIELD_SRCLINE),
};

/* Parses "word,word". Returns the bits, 0 after a message. */
static unsigned int parse(const char *option, const char *text, const struct word *words, size_t nr)
{
	const char *at = text;
	unsigned int bits = 0;
	size_t i, length, used = 0;
	char list[256] = "";

	for (i = nr; *at; at += length + (at[length] == ',')) {
		length = strcspn(at, ",");
		for (i = 0; i < nr; i++)
			if (words[i].word.length == length && !memcmp(words[i].word.data, at, length))
				break;
		if (i == nr)
			break;
		bits |= words[i].bit;
	}
	if (i < nr)
		return bits;
	for (i = 0; i < nr && used < sizeof(list); i++)
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "",
					 words[i].word.data);
	cli_fail("%s %s: give some of %s, with commas between", option, text, list);
	return 0;
}

bool script_take_kinds(const char *text, unsigned int *bits)
{
	*bits = parse("--kinds", text, kinds, ARRAY_SIZE(kinds));
	return *bits;
}

bool script_take_fields(const char *text, unsigned int *bits)
{
	*bits = parse("--fields", text, fields, ARRAY_SIZE(fields));
	return *bits;
}

struct kb_text script_kind_word(enum script_kind kind)
{
	return kinds[kind].word;
}
