// SPDX-License-Identifier: MIT
/*
 * kbarman recover: makes a valid capture from the file of an interrupted recording. Copies the
 * tables and all whole records, one by one. The input is only read. Of memory: recover_memory.h.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <kbarman/barman.h>

#include "analysis/facts/capture_tables.h"
#include "analysis/facts/recorded.h"
#include "cli/base/cli.h"
#include "cli/base/sandbox.h"
#include "cli/base/sides.h"
#include "cli/recover_memory.h"
#include "record/device/dumped.h"

#define PARTIAL		".partial"	/* suffix of the file while record runs */

enum { OPTION_SESSION = 256, OPTION_BASE, OPTION_PREVIOUS, OPTION_RELEASE };

static const struct cli_option options[] = {
	{ 'o', "output", "OUT",
	  "write to OUT, a file; '-' is standard output. The default is FILE\n"
	  "without .partial, or else FILE.recovered. A file that exists is\n"
	  "replaced only if it is given with -o." },
	{ OPTION_SESSION, "session", "NUMBER", "of a memory dump: only the capture of this session" },
	{ OPTION_BASE, "base", "ADDRESS",
	  "FILE is raw memory, as a debugger saves it, from this physical\n"
	  "address on" },
	{ OPTION_PREVIOUS, "previous", "[=NUMBER]",
	  "instead of a file, read what was recorded before this boot into\n"
	  "memory that survives a reset: all, or the one with this number" },
	{ OPTION_RELEASE, "release", NULL,
	  "with --previous: free the memory as soon as its capture is on the disk" },
	{ 0 },
};

static const struct cli_usage usage = {
	.head =
	"usage: kbarman recover [-o OUT] [FILE]\n"
	"       kbarman recover [--session NUMBER] [--base ADDRESS] [-o OUT] MEMORY\n"
	"       kbarman recover --previous[=NUMBER] [--release] [-o OUT]\n"
	"\n"
	"Make a valid capture from FILE (default kbarman.cap.partial), which an interrupted\n"
	"recording left: the recorder was killed, the disk was full, or the power failed.\n"
	"FILE is not changed.\n"
	"\n"
	"Of MEMORY, the memory of a machine that crashed or was stopped, make a capture of each\n"
	"session that was recorded: MEMORY.SESSION.cap. MEMORY is /proc/vmcore, a dump of kdump,\n"
	"makedumpfile, QEMU, virsh or LiME, or raw memory.\n"
	"\n"
	"With --previous, make a capture of each recording that was in memory that survives a reset\n"
	"when this machine crashed or rebooted: previous-TIME.cap.\n"
	"\n",
	.options = options,
	.column = 21,
	.tail =
	"\n"
	"Exit status: 0 recovered; 1 recovered in part: something before the end is damaged; 2\n"
	"nothing could be recovered and nothing was written.\n",
};

struct recovered {
	struct kb_salvage salvage;
	uint64_t records, untold;	/* untold: records that the header did not count */
	uint64_t refused;		/* damaged records that contradict the header */
	struct kb_recorded recorded;
};

/* ---- records ---- */

static int write_records(struct kb_barman *from, struct kb_barman_writer *writer,
			 struct recovered *sum)
{
	uint64_t told = kb_barman_header(from)->buffer_start + kb_barman_header(from)->read_offset +
			sum->salvage.told;
	struct kb_event event;
	int ret = 0;

	while (!ret && kb_barman_next(from, &event, NULL) == 1) {
		ret = kb_barman_writer_event(writer, &event);
		if (ret == -EINVAL || ret == -ERANGE || ret == -E2BIG) {
			sum->refused++;
			ret = 0;
			continue;
		}
		/* Version 3 may write "the last known time", which is not a time. */
		if (event.timestamp != UINT64_MAX)
			kb_recorded_add(&sum->recorded, kb_barman_ns(from, event.timestamp));
		sum->records++;
		sum->untold += sum->salvage.untold && event.offset >= told;
	}
	return ret;
}

static int recover(struct kb_trace *trace, const struct cli_output *out, struct recovered *sum)
{
	struct kb_barman *from = kb_trace_barman(trace);
	const struct kb_losses *losses;
	struct kb_barman_layout layout;
	struct kb_barman_writer *writer;
	struct kb_error err = { 0 };
	int ret;

	losses = kb_trace_losses(trace, &err);
	if (!losses)
		return cli_fail_error(&err);
	kb_recorded_init(&sum->recorded, from, losses);
	kb_tables_layout(kb_barman_header(from), &layout);
	ret = kb_barman_writer_create(&writer, out->fd, &layout, &err);
	if (ret)
		return cli_fail("%s: %s", out->path, kb_error_text(&err));
	ret = kb_tables_copy(kb_barman_header(from), NULL, writer) ?: write_records(from, writer, sum);
	/* kb_barman_writer_finish() knows the error of the file and its message. */
	if (!ret || ret == kb_barman_writer_sync(writer))
		ret = kb_barman_writer_finish(writer, true, &err);
	kb_barman_writer_destroy(writer);
	if (ret)
		return cli_fail("%s: %s", out->path,
				err.code ? kb_error_text(&err) : strerror(-ret));
	return 0;
}

/* ---- files ---- */

/* The default of OUT, malloc()ed. NULL after a message. */
static char *default_output(const char *file)
{
	size_t length = strlen(file), partial = strlen(PARTIAL);
	char *name = NULL;

	if (strcmp(file, "-") == 0) {
		cli_fail("standard input has no name to make an output name of: give -o OUT");
		return NULL;
	}
	if (length > partial && strcmp(file + length - partial, PARTIAL) == 0)
		name = strndup(file, length - partial);
	else if (asprintf(&name, "%s.recovered", file) < 0)
		/* cppcheck-suppress memleak ; asprintf() that fails has allocated nothing */
		name = NULL;
	return cli_output_new(name);
}

static bool same_file(const char *a, const char *b)
{
	struct stat left, right;

	return strcmp(a, "-") && strcmp(b, "-") && !stat(a, &left) && !stat(b, &right) &&
	       left.st_dev == right.st_dev && left.st_ino == right.st_ino;
}

static void say_what_was_kept(const char *name, const struct recovered *sum)
{
	const struct kb_salvage *s = &sum->salvage;

	cli_note("%s: kept %" PRIu64 " records, %.3f s, of %" PRIu64 " bytes", name, sum->records,
		 (double)kb_recorded_duration(&sum->recorded) / 1e9, s->told + s->untold);
	if (sum->untold)
		cli_note("%" PRIu64 " of these records were not yet counted in the header",
			 sum->untold);
	if (s->stacks)
		cli_note("%" PRIu64 " call chains end in their first function of user code: the recorder had not yet "
			 "unwound their stacks", s->stacks);
	if (s->dropped)
		cli_note("dropped %" PRIu64 " bytes that contain no whole block", s->dropped);
	if (s->missing)
		cli_note("%" PRIu64 " bytes that the header counts are not in the file",
			 s->missing);
}

/* Reports damage before the end, whose records are missing in the middle. */
static int complain(const struct kb_barman *from, const struct recovered *sum)
{
	const struct kb_error *first;
	unsigned int findings = kb_barman_damage(from, &first);

	if (findings == 1)
		cli_warn("left out: %s", kb_error_text(first));
	else if (findings)
		cli_warn("left out: %s (and %u more findings)", kb_error_text(first), findings - 1);
	if (sum->refused)
		cli_warn("left out: %" PRIu64 " records that contradict the header", sum->refused);
	return findings || sum->refused ? CLI_DAMAGED : CLI_OK;
}

static int recover_file(const char *file, const char *output)
{
	/* The values as they are in the file. */
	const struct kb_trace_options how = {
		.size = sizeof(how), .counters = KB_COUNTERS_DELTA,
	};
	struct recovered sum = { 0 };
	struct kb_barman *from;
	struct kb_trace *trace;
	struct cli_output out = { .fd = -1 };
	struct kb_error err;
	struct stat st;
	int status;

	if (!stat(file, &st) && S_ISREG(st.st_mode) && !st.st_size)
		return cli_fail("%s is empty, there is nothing to recover: overwrite mode writes "
				"only at the end", file);
	if (kb_trace_open(&trace, file, &how, &err)) {
		cli_fail_error(&err);
		if (err.code == -EBADMSG)
			cli_warn("nothing can be recovered without a valid header");
		return CLI_IMPOSSIBLE;
	}
	from = kb_trace_barman(trace);
	status = kb_barman_salvage(from, &sum.salvage, &err) ? cli_fail_error(&err) :
		 cli_output_open_private(&out, output);
	if (!status) {
		status = recover(trace, &out, &sum);
		if (status)
			cli_output_abandon(&out);
		else
			status = cli_output_commit(&out);
		if (!status) {
			if (strcmp(output, "-") && strcmp(file, "-"))
				sides_copy(file, output);
			else if (strcmp(output, "-"))
				sides_remove(output);
			say_what_was_kept(strcmp(output, "-") ? output : "standard output", &sum);
			status = complain(from, &sum);
		}
	}
	kb_trace_close(trace);
	return status;
}

/* The value of @option, a number in any of the bases of C. False after a message. */
static bool take_number(const char *option, const char *value, uint64_t *number)
{
	char *end;

	errno = 0;
	*number = strtoull(value, &end, 0);
	if (!errno && *end == '\0' && *value >= '0' && *value <= '9')
		return true;
	cli_warn("--%s wants a number, such as 0x40000000, not '%s'", option, value);
	return false;
}

int cmd_recover(int argc, char **argv)
{
	struct recover_memory memory = { .base = KB_DUMPS_NO_BASE };
	struct recover_previous previous = { .number = -1 };
	bool is_previous = false;
	const char *output = NULL, *file;
	char *otherwise = NULL;
	int option, status;

	while ((option = cli_getopt(argc, argv, &usage)) != -1) {
		switch (option) {
		case 'o':
			output = optarg;
			break;
		case OPTION_SESSION:
			if (!take_number("session", optarg, &memory.session))
				return CLI_IMPOSSIBLE;
			break;
		case OPTION_BASE:
			if (!take_number("base", optarg, &memory.base))
				return CLI_IMPOSSIBLE;
			break;
		case OPTION_PREVIOUS:
			is_previous = true;
			if (optarg && strcmp(optarg, "0") && strcmp(optarg, "1"))
				return cli_fail("--previous=%s: give 0 or 1, or no number", optarg);
			previous.number = optarg ? *optarg - '0' : -1;
			break;
		case OPTION_RELEASE:
			previous.release = true;
			break;
		default:
			return cli_usage(option == 'h', &usage);
		}
	}
	if (output && !strcmp(output, "-") && isatty(STDOUT_FILENO))
		return cli_fail("won't write a capture to a terminal: give -o FILE");
	if (is_previous) {
		if (optind < argc || memory.session || memory.base != KB_DUMPS_NO_BASE)
			return cli_fail("--previous reads the memory of this machine: leave out FILE, --session "
					"and --base");
		previous.output = output;
		return recover_previous(&previous);
	}
	if (previous.release)
		return cli_fail("--release frees memory that survived a reset: give --previous");
	file = cli_input(NULL, argc, argv, CLI_CAPTURE PARTIAL);
	if (!file)
		return CLI_IMPOSSIBLE;
	if (output && same_file(file, output))
		return cli_fail("%s is the input: give another file with -o", file);
	if (memory.base != KB_DUMPS_NO_BASE || kb_dumps_is(file)) {
		memory.file = file;
		memory.output = output;
		return recover_memory(&memory);
	}
	if (memory.session)
		return cli_fail("%s is no memory dump: --session is for these; raw memory needs --base", file);
	if (!output)
		output = otherwise = default_output(file);
	if (!output)
		return CLI_IMPOSSIBLE;
	cli_progress("recovering", !strcmp(output, "-"));
	cli_sandbox(&(struct cli_sandbox) { .inputs = &file, .nr_inputs = 1, .output = output });
	status = recover_file(file, output);
	cli_progress_end();
	free(otherwise);
	return status;
}
