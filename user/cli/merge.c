// SPDX-License-Identifier: MIT
/*
 * kbarman merge: merges the captures of a session's CPUs into one, in time order. Each input is
 * read once, in its own order, and a heap holds the next record of each input. Memory use is a
 * window of each input and does not depend on their sizes.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "merge.h"
#include "sandbox.h"
#include "sides.h"

#define WINDOWS_BYTES	((size_t)16 << 20)	/* of all inputs together, if possible */

static const struct cli_option options[] = {
	{ 'o', "output", "OUT", "write to the file OUT (default '-', which is standard output)" },
	{ 0 },
};

static const struct cli_usage usage = {
	.head =
	"usage: kbarman merge [-o OUT] FILE…\n"
	"\n"
	"Merge Barman captures of one session, such as the saved maps of its CPUs, into one\n"
	"linear capture in time order. A row that is in several tables is written once.\n"
	"\n",
	.options = options,
	.column = 21,
	.tail =
	"\n"
	"Exit status: 0 merged; 1 an input is damaged, its undamaged part was merged; 2 nothing\n"
	"was written.\n",
};

struct heap {
	struct merge_input **inputs;
	unsigned int count;
};

/* Equal times keep the order of the arguments. */
static bool before(const struct merge_input *a, const struct merge_input *b)
{
	return a->order < b->order || (a->order == b->order && a < b);
}

static void sift_down(struct heap *heap, unsigned int at)
{
	struct merge_input *moved = heap->inputs[at];

	for (;;) {
		unsigned int child = 2 * at + 1;

		if (child >= heap->count)
			break;
		if (child + 1 < heap->count && before(heap->inputs[child + 1], heap->inputs[child]))
			child++;
		if (!before(heap->inputs[child], moved))
			break;
		heap->inputs[at] = heap->inputs[child];
		at = child;
	}
	heap->inputs[at] = moved;
}

/* Reads the input's next record. False: the input has ended. */
static bool advance(struct merge_input *input)
{
	if (kb_barman_next(input->barman, &input->event, NULL) != 1)
		return false;
	/* Version 3 may write "the last known time" as a timestamp, which has no order. */
	if (input->event.timestamp != UINT64_MAX)
		input->order = input->event.timestamp;
	return true;
}

static int merge_records(struct merge_input *inputs, unsigned int count,
			 struct kb_barman_writer *writer)
{
	struct heap heap = { .inputs = malloc(count * sizeof(*heap.inputs)) };
	int ret = 0;

	if (!heap.inputs)
		return -ENOMEM;
	for (unsigned int i = 0; i < count; i++) {
		if (advance(&inputs[i]))
			heap.inputs[heap.count++] = &inputs[i];
	}
	for (unsigned int i = heap.count / 2; i--;)
		sift_down(&heap, i);
	while (heap.count && !ret) {
		struct merge_input *first = heap.inputs[0];

		ret = kb_barman_writer_event(writer, &first->event);
		if (!advance(first))
			heap.inputs[0] = heap.inputs[--heap.count];
		sift_down(&heap, 0);
	}
	free(heap.inputs);
	return ret;
}

static int write_merged(struct merge_input *inputs, unsigned int count, const char *path)
{
	struct kb_barman_layout layout;
	struct kb_barman_writer *writer;
	struct kb_error err = { 0 };
	struct cli_output out;
	int ret;

	if (cli_output_open(&out, path))
		return CLI_IMPOSSIBLE;
	merge_layout(inputs, count, &layout);
	ret = kb_barman_writer_create(&writer, out.fd, &layout, &err);
	if (!ret) {
		ret = merge_tables(inputs, count, writer);
		if (!ret)
			ret = merge_records(inputs, count, writer);
		/* kb_barman_writer_finish() knows the error of the file and its message. */
		if (!ret || ret == kb_barman_writer_sync(writer))
			ret = kb_barman_writer_finish(writer, true, &err);
		kb_barman_writer_destroy(writer);
	}
	if (ret) {
		cli_warn("%s: %s", out.path, err.code ? kb_error_text(&err) : strerror(-ret));
		cli_output_abandon(&out);
		return CLI_IMPOSSIBLE;
	}
	return cli_output_commit(&out);
}

/* Reports the errors of the inputs after they were read. */
static int complain(const struct merge_input *inputs, unsigned int count)
{
	int status = CLI_OK;

	for (unsigned int i = 0; i < count; i++) {
		const struct kb_error *first;
		unsigned int findings = kb_barman_damage(inputs[i].barman, &first);

		if (!findings)
			continue;
		if (findings == 1)
			cli_warn("%s", kb_error_text(first));
		else
			cli_warn("%s (and %u more findings)", kb_error_text(first), findings - 1);
		status = CLI_DAMAGED;
	}
	return status;
}

static bool open_inputs(struct merge_input *inputs, unsigned int count, char **paths)
{
	for (unsigned int i = 0; i < count; i++) {
		struct kb_error err;

		inputs[i].path = paths[i];
		if (kb_barman_open(&inputs[i].barman, paths[i], &err)) {
			cli_fail_error(&err);
			return false;
		}
		inputs[i].header = kb_barman_header(inputs[i].barman);
		kb_barman_set_counters(inputs[i].barman, KB_COUNTERS_DELTA);
		kb_barman_set_window(inputs[i].barman, WINDOWS_BYTES / count);
	}
	return merge_check(inputs, count);
}

/* If the output is one of the inputs, the files beside it still belong to it. */
static bool is_input(const char *output, const struct merge_input *inputs, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		if (strcmp(inputs[i].path, output) == 0)
			return true;
	return strcmp(output, "-") == 0;
}

int cmd_merge(int argc, char **argv)
{
	struct merge_input *inputs;
	const char *output = "-";
	int option, status = CLI_IMPOSSIBLE;
	unsigned int count;

	while ((option = cli_getopt(argc, argv, &usage)) != -1) {
		switch (option) {
		case 'o':
			output = optarg;
			break;
		default:
			return cli_usage(option == 'h', &usage);
		}
	}
	if (optind == argc) {
		cli_warn("give the FILEs to merge");
		return cli_usage(false, &usage);
	}
	if (strcmp(output, "-") == 0 && isatty(STDOUT_FILENO))
		return cli_fail("won't write a capture to a terminal: give -o FILE");
	count = argc - optind;
	inputs = calloc(count, sizeof(*inputs));
	if (!inputs)
		return cli_fail("out of memory");
	cli_sandbox(&(struct cli_sandbox) { .inputs = (const char *const *)argv + optind,
					    .nr_inputs = (int)count, .output = output });
	if (open_inputs(inputs, count, argv + optind))
		status = write_merged(inputs, count, output);
	if (!status) {
		if (!is_input(output, inputs, count))
			sides_remove(output);
		status = complain(inputs, count);
	}
	for (unsigned int i = 0; i < count; i++)
		kb_barman_close(inputs[i].barman);
	free(inputs);
	return status;
}
