// SPDX-License-Identifier: MIT
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/facts/end.h"
#include "cli/base/cli.h"
#include "cli/base/sandbox.h"
#include "cli/base/sides.h"
#include "cli/merged.h"
#include "cli/recover_memory.h"
#include "record/device/dumped.h"
#include "record/merge/captures.h"

/* The maps of a capture, open. */
struct maps {
	struct kb_barman **captures;
	unsigned int count;
};

static void close_maps(struct maps *maps)
{
	for (unsigned int i = 0; i < maps->count; i++)
		kb_barman_close(maps->captures[i]);
	free(maps->captures);
}

/* False after a message: one of them is no capture, or they are not of one recording. */
static bool open_maps(struct maps *maps, struct kb_dumped *dumped)
{
	struct kb_merge_conflict conflict;
	struct kb_error err;
	char name[64];

	*maps = (struct maps) { .captures = calloc(dumped->nr_cpus, sizeof(struct kb_barman *)) };
	if (!maps->captures) {
		cli_warn("out of memory");
		return false;
	}
	for (uint32_t i = 0; i < dumped->nr_cpus; i++) {
		struct kb_dumped_cpu *cpu = &dumped->cpus[i];

		snprintf(name, sizeof(name), "session %" PRIu64 ", CPU %u", cpu->session, cpu->cpu);
		if (kb_dumped_open(cpu, name, &maps->captures[i], &err)) {
			cli_warn("%s", kb_error_text(&err));
			return false;
		}
		maps->count++;
		kb_barman_set_window(maps->captures[i], MERGED_WINDOWS_BYTES / dumped->nr_cpus);
	}
	if (kb_captures_agree(maps->captures, maps->count, &conflict))
		return true;
	cli_warn("session %" PRIu64 ": CPU %u and CPU %u do not belong together: %s", dumped->session,
		 dumped->cpus[conflict.left].cpu, dumped->cpus[conflict.right].cpu, conflict.why);
	return false;
}

static unsigned int nr_running(const struct kb_dumped *dumped)
{
	unsigned int nr = 0;

	for (uint32_t i = 0; i < dumped->nr_cpus; i++)
		nr += dumped->cpus[i].running;
	return nr;
}

/* What the capture lacks of the recording. Returns an exit status. */
static int say_what_is_missing(const struct kb_dumped *dumped)
{
	unsigned int incomplete = 0;
	char words[KB_END_WORDS];

	for (uint32_t i = 0; i < dumped->nr_cpus; i++)
		incomplete += dumped->cpus[i].incomplete;
	if (nr_running(dumped))
		cli_note("session %" PRIu64 " was recording when the machine stopped", dumped->session);
	if (dumped->stamp) {
		struct kb_end end = kb_end_of(dumped->stamp);

		cli_note("the recording ended %s", kb_end_words(&end, words));
	}
	if (!incomplete)
		return CLI_OK;
	cli_warn("session %" PRIu64 ": the memory lacks pages of the maps of %u of %u CPUs: what was in them is "
		 "left out", dumped->session, incomplete, dumped->nr_cpus);
	return CLI_DAMAGED;
}

/* Whether something can be beside it. */
static bool is_file(const char *output)
{
	struct stat st;

	return strcmp(output, "-") && (stat(output, &st) || S_ISREG(st.st_mode));
}

/*
 * Writes the kernel's symbols for beside @capture, which is good without them. They are on the disk before the capture
 * is there: it may have the memory freed. Returns an exit status; CLI_IMPOSSIBLE: the memory has what could not be
 * written.
 */
static int write_symbols(struct cli_output *out, const struct kb_dumped *dumped, const char *capture)
{
	struct kb_error err;
	uint8_t *text;
	char *path;
	size_t size;
	int status;

	if (kb_dumped_symbols(dumped, &text, &size, &err)) {
		cli_warn("session %" PRIu64 ": the kernel's symbols are left out: %s", dumped->session,
			 kb_error_text(&err));
		return CLI_DAMAGED;
	}
	if (!text)
		return CLI_OK;
	side_remove(capture, SIDE_KALLSYMS);
	if (asprintf(&path, "%s" SIDE_KALLSYMS, capture) < 0)
		path = NULL;
	status = path ? cli_output_open_private(out, path) : cli_fail("out of memory");
	if (!status && (fwrite(text, 1, size, out->stream) != size || fflush(out->stream) || fsync(out->fd))) {
		status = cli_fail("can't write %s: %s", path, strerror(errno));
		cli_output_abandon(out);
	}
	free(path);
	free(text);
	return status;
}

static int recover_capture(struct kb_dumped *dumped, const char *output)
{
	int status = CLI_IMPOSSIBLE, missing = CLI_OK;
	struct cli_output symbols = { 0 };
	struct kb_end_facts facts = { 0 };
	uint64_t records = 0;
	struct maps maps;

	if (dumped->stamp || nr_running(dumped))
		kb_end_facts(&facts, dumped->stamp);
	if (open_maps(&maps, dumped)) {
		if (is_file(output))
			missing = write_symbols(&symbols, dumped, output);
		status = merged_write(maps.captures, maps.count, facts.facts, output, &records);
	}
	if (!status) {
		status = say_what_is_missing(dumped);
		if (strcmp(output, "-"))
			sides_remove(output);
		missing = cli_output_commit(&symbols) ? CLI_IMPOSSIBLE : missing;
		cli_wrote(output, records);
		status = merged_complain(maps.captures, maps.count) ? CLI_DAMAGED : status;
		status = missing > status ? missing : status;
	}
	cli_output_abandon(&symbols);
	close_maps(&maps);
	return status;
}

/* The default name of the output, malloc()ed: beside the memory, and of the crash kernel's in this folder. */
static char *output_of(const char *file, uint64_t session)
{
	char *name;

	return asprintf(&name, "%s.%" PRIu64 ".cap", strcmp(file, "/proc/vmcore") ? file : "vmcore", session) < 0 ?
	       NULL : name;
}

static int recover_dumps(const struct recover_memory *how, struct kb_dumps *dumps)
{
	unsigned int wanted = 0, of = 0;
	int status = CLI_OK;

	if (dumps->damaged)
		cli_warn("%" PRIu64 " pages begin as a page that says where a capture is or how one ended, and are "
			 "damaged",
			 dumps->damaged);
	for (uint32_t i = 0; i < dumps->nr_captures; i++)
		wanted += !how->session || dumps->captures[i].session == how->session;
	if (!wanted)
		return cli_fail(how->session ? "%s has no capture of session %" PRIu64 :
				"%s has no capture: no session was configured when the machine stopped, its "
				"module is from before the first one that says where captures are, or the "
				"memory is not all there", how->file, how->session);
	if (wanted > 1 && how->output)
		return cli_fail("%s has captures of %u sessions, %" PRIu64 " and others: choose one with "
				"--session, or leave -o away", how->file, wanted, dumps->captures[0].session);
	for (uint32_t i = 0; i < dumps->nr_captures; i++) {
		struct kb_dumped *dumped = &dumps->captures[i];
		char *otherwise = NULL;
		int its = CLI_IMPOSSIBLE;

		if (how->session && dumped->session != how->session)
			continue;
		if (how->output || (otherwise = cli_output_new(output_of(how->file, dumped->session))))
			its = recover_capture(dumped, how->output ? how->output : otherwise);
		free(otherwise);
		of += its != CLI_IMPOSSIBLE;
		status = its > status ? its : status;
	}
	return status == CLI_IMPOSSIBLE && of ? CLI_DAMAGED : status;
}

int recover_memory(const struct recover_memory *how)
{
	struct kb_dumps *dumps = NULL;
	char *some = output_of(how->file, how->session);
	struct kb_error err;
	int status;

	kb_dumps_prepare();
	cli_progress("recovering", how->output && !strcmp(how->output, "-"));
	cli_sandbox(&(struct cli_sandbox) { .inputs = &how->file, .nr_inputs = 1,
					    .output = how->output ? how->output : some });
	free(some);
	if (how->former ? kb_dumps_former(&dumps, how->former, how->file, &err) :
			  kb_dumps_find(&dumps, how->file, how->base, &err))
		status = cli_fail_error(&err);
	else
		status = recover_dumps(how, dumps);
	kb_dumps_free(dumps);
	cli_progress_end();
	return status;
}
