// SPDX-License-Identifier: MIT
/* The walker finds the kept chains of unwind_cases.txt again, on any machine. */
#include <stdlib.h>

#include "../lib/tap.h"
#include "base/array.h"
#include "unwind/builder.h"
#include "unwind/walker.h"

#define MAX_ROWS	256
#define MAX_WORDS	4096

struct test_case {
	char name[256], end[64];
	const struct kb_unwind_machine *machine;
	struct kb_unwind_registers regs;
	struct kb_unwind_word words[MAX_WORDS];
	struct kb_unwind_stack stack;
	struct {
		uint64_t address;
		struct kb_unwind_rows rows;
	} rows[MAX_ROWS];
	unsigned int nr_rows;
	struct kb_unwind_frame frames[MAX_ROWS];
	unsigned int nr_frames;
};

static const struct kb_unwind_rows *find(void *closure, uint64_t address, uint64_t *bias)
{
	const struct test_case *test = closure;

	*bias = 0;
	for (unsigned int i = 0; i < test->nr_rows; i++)
		if (test->rows[i].address == address)
			return &test->rows[i].rows;
	return NULL;
}

static void take_row(struct test_case *test, const char *line)
{
	struct kb_unwind_step rule[KB_UNWIND_MAX_STEPS] = { 0 };
	struct kb_unwind_builder builder;
	unsigned int nr = 0, what, target, base, count;
	uint64_t address;
	int offset, length;

	if (sscanf(line, "row %" SCNx64 "%n", &address, &length) != 1 || test->nr_rows == MAX_ROWS)
		return;
	for (line += length; nr < KB_UNWIND_MAX_STEPS &&
	     sscanf(line, "%u,%u,%u,%u,%d%n", &what, &target, &base, &count, &offset,
		    &length) == 5; line += length)
		rule[nr++] = (struct kb_unwind_step) { what, target, base, count, offset };
	if (!kb_unwind_builder_init(&builder, test->machine, address))
		return;
	kb_unwind_builder_row(&builder, address, kb_unwind_builder_rule(&builder, rule), true);
	test->rows[test->nr_rows].address = address;
	if (!kb_unwind_builder_finish(&builder, &test->rows[test->nr_rows].rows))
		test->nr_rows++;
	kb_unwind_builder_release(&builder);
}

static void run(struct test_case *test)
{
	struct kb_unwind_frame frames[MAX_ROWS];
	struct kb_unwind_chain chain = { .frames = frames, .max = MAX_ROWS };
	bool same;

	kb_unwind_walk(&chain, &test->regs, &test->stack, find, test);
	same = chain.nr == test->nr_frames && !strcmp(kb_unwind_end_text(chain.end), test->end);
	for (unsigned int i = 0; i < chain.nr && same; i++)
		same = frames[i].pc == test->frames[i].pc &&
			frames[i].exact == test->frames[i].exact;
	if (!tap_ok(same, test->name))
		tap_note("%u frames, not %u; the end is '%s', not '%s'", chain.nr, test->nr_frames,
			 kb_unwind_end_text(chain.end), test->end);
	for (unsigned int i = 0; i < test->nr_rows; i++)
		kb_unwind_rows_release(&test->rows[i].rows);
}

static void take_line(struct test_case *test, const char *line)
{
	uint64_t value, word;
	unsigned int number;
	int exact;

	if (!strncmp(line, "case ", 5)) {
		memset(test, 0, sizeof(*test));
		snprintf(test->name, sizeof(test->name), "chain_from %.*s",
			 (int)strcspn(line + 5, "\n"), line + 5);
	} else if (sscanf(line, "machine %u %" SCNu64, &number, &value) == 2) {
		test->machine = kb_unwind_machine(number, value);
	} else if (sscanf(line, "register %u %" SCNx64, &number, &value) == 2 &&
		   number < KB_UNWIND_REGISTERS) {
		test->regs.value[number] = value;
		test->regs.known |= UINT64_C(1) << number;
	} else if (sscanf(line, "stack %" SCNx64 " %" SCNx64, &value, &word) == 2) {
		test->stack.words = test->words;
		test->stack.low = value;
		test->stack.high = word;
	} else if (sscanf(line, "word %" SCNx64 " %" SCNx64, &value, &word) == 2 &&
		   test->stack.nr < MAX_WORDS) {
		test->words[test->stack.nr++] = (struct kb_unwind_word) { value, word };
	} else if (!strncmp(line, "row ", 4)) {
		take_row(test, line);
	} else if (sscanf(line, "frame %" SCNx64 " %d", &value, &exact) == 2 &&
		   test->nr_frames < MAX_ROWS) {
		test->frames[test->nr_frames++] = (struct kb_unwind_frame) { value, exact };
	} else if (!strncmp(line, "end ", 4)) {
		snprintf(test->end, sizeof(test->end), "%.*s", (int)strcspn(line + 4, "\n"),
			 line + 4);
		run(test);
	}
}

int main(void)
{
	struct test_case *test = calloc(1, sizeof(*test));
	FILE *cases = fopen("selftests/host/unwind_cases.txt", "re");
	char line[4096];

	while (test && cases && fgets(line, sizeof(line), cases))
		take_line(test, line);
	tap_ok(tap_count >= 8, "the_cases_are_there");
	if (cases)
		fclose(cases);
	free(test);
	return tap_done();
}
