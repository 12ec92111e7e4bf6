// SPDX-License-Identifier: MIT
/*
 * kbarman snapshot: writes the records that a recording in overwrite mode keeps now to a capture,
 * without stopping the recording. Any descriptor of the device can do this, not only the
 * recorder's.
 */
#include <inttypes.h>
#include <string.h>
#include <sys/resource.h>

#include <kbarman/kernel_maps.h>
#include <kbarman/recorder.h>

#include "cli/base/cli.h"
#include "cli/base/decoder.h"
#include "cli/record/bundler.h"
#include "cli/record/output.h"
#include "cli/record/snapshot.h"
#include "cli/session/sessions.h"

enum { OPTION_NO_COMMANDS = 256 };

static const struct cli_option options[] = {
	{ 'o', "output", "FILE", "write to FILE (default kbarman.cap; '-' is standard output)" },
	{ OPTION_NO_COMMANDS, "no-commands", NULL, "leave out the command lines of processes" },
	{ 0 },
};

static const struct cli_usage usage = {
	.head =
	"usage: kbarman snapshot [OPTIONS]\n"
	"\n"
	"Write the records that the flight recorder, or 'record --mode overwrite', keeps at this\n"
	"moment. The recording continues.\n"
	"\n",
	.options = options,
	.column = 22,
};

static int check_session(struct kb_device *device)
{
	struct kbarman_query query;
	struct kb_error err;

	if (kb_device_query(device, &query, &err))
		return cli_fail_error(&err);
	if (!(query.state & KBARMAN_STATE_CONFIGURED) || !query.session)
		return cli_fail("nothing was recorded: start with 'kbarman flight start'");
	if (query.mode != KBARMAN_MODE_OVERWRITE)
		return cli_fail("the recording runs in stream mode, which has no snapshots: read "
				"its FILE.partial instead");
	return 0;
}

static void save_kernel_symbols(struct record_output *output)
{
	struct kb_kernel_maps maps = { 0 };
	FILE *side = record_output_side(output);
	struct kb_error err;

	if (!side)
		return;
	if (kb_kernel_maps_read(&maps, NULL, side, &err))
		cli_warn("kernel symbols will be missing: %s", kb_error_text(&err));
	record_output_side_done(output, maps.nr > 0);
	kb_kernel_maps_free(&maps);
}

static int save(struct kb_device *device, struct record_output *output, uint64_t off_cpu_min,
		uint32_t notes)
{
	const char *name = record_output_name(output);
	struct kb_recorder_totals totals;
	struct kb_recorder *recorder;
	struct kb_error err;
	int ret;

	if (kb_recorder_freeze(&recorder, device, output->fd, &err))
		return cli_fail_error(&err);
	ret = (off_cpu_min ? kb_recorder_off_cpu_min(recorder, off_cpu_min, &err) : 0) ?:
	      kb_recorder_note(recorder, notes, &err) ?:
	      kb_recorder_fact(recorder, "snapshot", "1", &err) ?:
	      (name ? kb_recorder_fact(recorder, "name", name, &err) : 0) ?:
	      kb_recorder_finish(recorder, true, &err);
	kb_recorder_totals(recorder, &totals);
	kb_recorder_destroy(recorder);
	cli_decoder_report();
	if (ret)
		return cli_fail_error(&err);
	save_kernel_symbols(output);
	ret = record_output_commit(output);
	if (ret)
		return ret;
	if (totals.recycled)
		cli_warn("tasks came and went so fast that names may be missing for the oldest "
			 "records");
	if (totals.damaged)
		cli_warn("buffers were damaged in %" PRIu64 " places, records there were skipped: "
			 "please report this bug", totals.damaged);
	cli_note("%s: %" PRIu64 " records of %u CPU%s", output->name, totals.records,
		 totals.nr_cpus, totals.nr_cpus == 1 ? "" : "s");
	return totals.damaged ? CLI_DAMAGED : CLI_OK;
}

int snapshot_save(struct kb_device *device, const char *path, uint64_t off_cpu_min, uint32_t notes)
{
	struct record_output output;
	int ret;

	record_output_init(&output);
	ret = check_session(device) ?: record_output_open(&output, path) ?:
	      save(device, &output, off_cpu_min, notes);
	record_output_close(&output);
	return ret;
}

int cmd_snapshot(int argc, char **argv)
{
	const char *path = CLI_CAPTURE;
	struct bundler bundler = { .nice = getpriority(PRIO_PROCESS, 0) };
	uint32_t notes = KB_NOTE_CGROUP | KB_NOTE_COMMAND | KB_NOTE_OBJECT;
	struct kb_device *device;
	struct kb_error err;
	int option, ret;

	while ((option = cli_getopt(argc, argv, &usage)) != -1) {
		if (option == 'o')
			path = optarg;
		else if (option == OPTION_NO_COMMANDS)
			notes &= ~(uint32_t)KB_NOTE_COMMAND;
		else
			return cli_usage(option == 'h', &usage);
	}
	if (optind < argc) {
		cli_warn("leave out '%s': snapshot takes only options", argv[optind]);
		return cli_usage(false, &usage);
	}
	cli_decoder_start();
	if (kb_device_open(&device, &err))
		return cli_fail_error(&err);
	sessions_choose_overwrite(device);
	ret = snapshot_save(device, path, 0, notes);
	kb_device_close(device);
	if (ret <= CLI_DAMAGED)
		bundler_begin(&bundler, path);
	bundler_wait(&bundler);
	return ret;
}
