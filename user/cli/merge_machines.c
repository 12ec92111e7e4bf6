// SPDX-License-Identifier: MIT
/*
 * See merge_machines.h. How wrong the order of events on different machines may be is said before
 * all else: a picture looks exact in any case.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kbarman/trace.h>

#include "base/text/json.h"
#include "cli/base/cli.h"
#include "cli/base/sandbox.h"
#include "cli/merge_machines.h"
#include "export/machines.h"

#define TEXT	48	/* bytes of a time */

struct merging {
	const struct merge_machines *how;
	const struct kb_export *format;
	struct kb_trace *traces[KB_MACHINES_MAX];
	struct kb_machine rows[KB_MACHINES_MAX];
	struct kb_machines machines;
};

/* ---- how exact it is ---- */

/* "1.234 ms", rounded up, so that it is never too little. */
static const char *time_text(uint64_t ns, char text[TEXT])
{
	static const char *const units[] = { "us", "ms", "s" };
	uint64_t thousandths = ns;
	unsigned int unit = 0;

	while (thousandths >= 1000000 && unit < 2) {
		thousandths = thousandths / 1000 + (thousandths % 1000 != 0);
		unit++;
	}
	snprintf(text, TEXT, "%" PRIu64 ".%03" PRIu64 " %s", thousandths / 1000, thousandths % 1000,
		 units[unit]);
	return text;
}

static void say_machine(const struct kb_machine *machine, const char *file)
{
	const struct kb_wall *wall = &machine->wall;
	char error[TEXT], clock[TEXT], between[TEXT];

	time_text(wall->between, between);
	if (wall->was_set)
		cli_warn("%s: %s: the clock was set while it was recorded, or the machine slept: its "
			 "times may be wrong by that, too", machine->name, file);
	if (wall->error == KB_WALL_UNKNOWN)
		cli_warn("%s: %s: it is not known how wrong its clock was: %s; besides, times may be "
			 "wrong by %s", machine->name, file, wall->why, between);
	else
		cli_note("%s: %s: times are right to %s: the clock to %s, as its kernel says, and %s "
			 "%s", machine->name, file, time_text(wall->error, error),
			 time_text(wall->clock, clock), between,
			 wall->has_end ? "between its readings" : "because it was read only once");
}

/* Two recordings of one machine, or two machines of one name: nobody knows. */
static void say_again(const struct merging *merging, unsigned int i)
{
	for (unsigned int of = 0; of < i; of++)
		if (!strcmp(merging->rows[of].name, merging->rows[i].name)) {
			cli_warn("'%s' and '%s' are both of '%s', and are shown as two machines",
				 merging->how->paths[of], merging->how->paths[i], merging->rows[i].name);
			return;
		}
}

static void say(const struct merging *merging)
{
	uint64_t error = kb_machines_error(&merging->machines);
	char text[TEXT];

	for (unsigned int i = 0; i < merging->machines.nr; i++) {
		say_machine(&merging->rows[i], merging->how->paths[i]);
		say_again(merging, i);
	}
	if (error == KB_WALL_UNKNOWN)
		cli_warn("the order of events on different machines is not known for sure");
	else
		cli_note("the order of events on different machines is right if they are more than "
			 "%s apart", time_text(error, text));
}

/* null: it is not known. */
static void put_error(struct kb_json *json, const char *key, uint64_t ns)
{
	if (ns == KB_WALL_UNKNOWN)
		kb_json_string(json, key, NULL);
	else
		kb_json_u64(json, key, ns);
}

static void put_machine(struct kb_json *json, const struct kb_machine *machine, const char *file)
{
	const struct kb_wall *wall = &machine->wall;

	kb_json_begin(json, "machine");
	kb_json_u64(json, "machine", machine->number);
	kb_json_string(json, "name", machine->name);
	kb_json_string(json, "file", file);
	kb_json_i64(json, "from_unix_ns", wall->at);
	kb_json_i64(json, "until_unix_ns", wall->end);
	kb_json_i64(json, "offset_ns", wall->at - machine->since);
	kb_json_double(json, "rate_ppm", wall->ppm);
	kb_json_u64(json, "readings", wall->has_end ? 2 : 1);
	kb_json_bool(json, "synchronized", wall->synchronized);
	kb_json_bool(json, "was_set", wall->was_set);
	put_error(json, "error_ns", wall->error);
	put_error(json, "clock_error_ns", wall->clock);
	put_error(json, "likely_error_ns", wall->likely);
	kb_json_u64(json, "between_ns", wall->between);
	kb_json_string(json, "why", wall->error == KB_WALL_UNKNOWN ? wall->why : NULL);
	kb_json_end(json);
}

static int print_json(const struct merging *merging)
{
	struct kb_json json = { 0 };
	int error = kb_out_fd(&json.out, STDOUT_FILENO);

	if (error)
		return cli_fail("out of memory");
	for (unsigned int i = 0; i < merging->machines.nr; i++)
		put_machine(&json, &merging->rows[i], merging->how->paths[i]);
	kb_json_begin(&json, "machines");
	kb_json_u64(&json, "machines", merging->machines.nr);
	put_error(&json, "error_ns", kb_machines_error(&merging->machines));
	kb_json_end(&json);
	error = kb_out_flush(json.out);
	kb_out_destroy(json.out);
	return error ? cli_fail("can't write standard output: %s", strerror(-error)) : 0;
}

/* ---- the trace ---- */

static void complain(void *context, const char *sentence)
{
	(void)context;
	cli_warn("%s", sentence);
}

static int open_inputs(struct merging *merging)
{
	const struct merge_machines *how = merging->how;
	const struct kb_trace_options options = { .size = sizeof(options),
						  .symbols = &how->symbols };
	struct kb_error err = { 0 };

	for (unsigned int i = 0; i < how->count; i++)
		if (kb_trace_open(&merging->traces[i], how->paths[i], &options, &err))
			return cli_fail_error(&err);
	merging->machines = (struct kb_machines){
		.traces = merging->traces, .nr = how->count, .machines = merging->rows,
	};
	for (unsigned int i = 0; i < how->count; i++)
		if (!kb_trace_symbolizer(merging->traces[i], &err))
			return cli_fail_error(&err);
	return kb_machines_read(&merging->machines, how->paths, &err) ? cli_fail_error(&err) : 0;
}

static int write_trace(struct merging *merging)
{
	const struct kb_export_options options = { .size = sizeof(options), .say = complain };
	struct kb_error err = { 0 };
	struct cli_output file;
	struct kb_out *out;
	int ret, status;

	if (cli_output_open(&file, merging->how->output))
		return CLI_IMPOSSIBLE;
	ret = kb_out_fd(&out, file.fd);
	if (ret) {
		cli_output_abandon(&file);
		return cli_fail("out of memory");
	}
	ret = kb_machines_run(&merging->machines, merging->format, &options, out, &err);
	cli_progress_end();
	kb_out_destroy(out);
	if (ret < 0) {
		cli_output_abandon(&file);
		return cli_fail_error(&err);
	}
	if (ret > 0)
		cli_warn("%s", kb_error_text(&err));
	status = cli_output_commit(&file);
	return status ? status : ret ? CLI_DAMAGED : CLI_OK;
}

/* A file of JSON is one for Chrome, all others are Perfetto's. */
static int choose_format(struct merging *merging)
{
	const char *to = merging->how->to, *output = merging->how->output;
	size_t length = strlen(output);

	if (!to)
		to = length > 5 && !strcmp(output + length - 5, ".json") ? "chrome" : "perfetto";
	merging->format = kb_export_find(to);
	if (merging->format && kb_machines_takes(merging->format))
		return 0;
	return cli_fail("--to %s: give perfetto or chrome: other formats have one machine", to);
}

static int merge(struct merging *merging)
{
	int status = open_inputs(merging);

	if (status)
		return status;
	say(merging);
	status = merging->how->json ? print_json(merging) : 0;
	status = status ? status : write_trace(merging);
	if (status < CLI_IMPOSSIBLE)
		cli_wrote(merging->how->output, 0);
	return status;
}

int merge_machines(const struct merge_machines *how)
{
	struct merging merging = { .how = how };
	bool to_stdout = !strcmp(how->output, "-");
	int status;

	if (how->count < 2)
		return cli_fail("--machines: give the captures of two machines or more");
	if (how->count > KB_MACHINES_MAX)
		return cli_fail("--machines: give at most %u captures", KB_MACHINES_MAX);
	if (how->json && to_stdout)
		return cli_fail("-j writes to standard output: give -o FILE");
	status = choose_format(&merging);
	if (status)
		return status;
	cli_progress("merging", to_stdout);
	cli_sandbox(&(struct cli_sandbox) { .inputs = how->paths, .nr_inputs = (int)how->count,
					    .output = how->output });
	status = merge(&merging);
	for (unsigned int i = 0; i < how->count; i++)
		kb_trace_close(merging.traces[i]);
	return status;
}
