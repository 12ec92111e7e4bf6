// SPDX-License-Identifier: MIT
/* The agent's configuration: what it means, and that each error is told with its line. */
#include <stdlib.h>

#include "../../user/agent/config.h"
#include "../../user/agent/config.c"
#include "../../user/agent/trigger_list.c"
#include "../lib/tap.h"

static char said[4096];

static void collect(void *context, const char *sentence)
{
	(void)context;
	snprintf(said + strlen(said), sizeof(said) - strlen(said), "%s\n", sentence);
}

static unsigned int read_text(struct agent_config *config, const char *text)
{
	FILE *file = fmemopen((void *)text, strlen(text), "r");
	unsigned int errors;

	said[0] = '\0';
	errors = agent_config_read(config, file, "conf", collect, NULL);
	fclose(file);
	return errors;
}

/* The text has this error, and no other one. */
static void is_wrong(const char *text, const char *sentence, const char *name)
{
	struct agent_config config;
	unsigned int errors = read_text(&config, text);

	if (!tap_ok(errors == 1 && strstr(said, sentence) == said, name))
		tap_note("%u errors: %s", errors, said);
	agent_config_free(&config);
}

static void whole_files(void)
{
	static const char text[] =
		"# a comment\n"
		"[agent]\n"
		"folder = /srv/caps\n"
		"folder_max=2G\n"
		"labels = no\n"
		"\n"
		" [ session  all ] \n"
		"sources = sched wake, irq syscalls faults block\n"
		"cpus = 0-3\n"
		"  buffer = 2M  \n"
		"file_time = 5m\r\n"
		"[session b]\n"
		"sample = 49\n"
		"events = cpu-clock\n"
		"chains = both\n";
	struct agent_config config;
	const struct agent_wanted *a, *b;

	tap_is(read_text(&config, text), 0, "a_whole_file_has_no_error");
	tap_is_string(config.folder, "/srv/caps", "the_folder_is_taken");
	tap_is(config.folder_bytes, UINT64_C(2) << 30, "sizes_have_suffixes");
	tap_ok(!config.labels && !config.commands, "no_is_no");
	tap_is(config.nr_sessions, 2, "each_section_is_a_session");
	a = agent_config_find(&config, "all");
	b = agent_config_find(&config, "b");
	tap_ok(a && b && !agent_config_find(&config, "c"), "sessions_are_found_by_name");
	tap_ok(!a->notes && !b->notes, "nothing_is_noted_without_labels_and_commands");
	tap_is(a->sources, KBARMAN_SOURCE_SCHED | KBARMAN_SOURCE_WAKE | KBARMAN_SOURCE_IRQ |
	       KBARMAN_SOURCE_SYSCALLS | KBARMAN_SOURCE_FAULTS | KBARMAN_SOURCE_BLOCK,
	       "sources_are_words");
	tap_is_string(a->cpus, "0-3", "cpus_are_a_list");
	tap_is(a->ring_bytes, 2 << 20, "white_space_around_values_does_not_count");
	tap_is(a->file_seconds, 300, "times_have_suffixes_and_lines_may_end_as_on_windows");
	tap_is(b->sample, 49, "samples_are_a_rate");
	tap_is(b->chains, KBARMAN_CONFIGURE_CHAIN_USER | KBARMAN_CONFIGURE_CHAIN_KERNEL,
	       "chains_have_parts");
	tap_is(b->file_bytes, 64 << 20, "what_is_left_out_has_its_default");
	agent_config_free(&config);

	tap_is(read_text(&config, "[session a]\n"), 0, "nothing_but_a_session_is_needed");
	tap_is_string(config.folder, AGENT_FOLDER, "the_folder_has_a_default");
	tap_is(config.sessions[0].notes, KB_NOTE_CGROUP, "cgroups_are_noted_and_command_lines_are_not");
	agent_config_free(&config);
	read_text(&config, "[agent]\ncommands = yes\n[session a]\n");
	tap_is(config.sessions[0].notes, KB_NOTE_CGROUP | KB_NOTE_COMMAND, "command_lines_are_noted_with_commands");
	agent_config_free(&config);
}

static void changes(void)
{
	struct agent_config one, other;

	read_text(&one, "[session a]\nbuffer = 2M\nfile_time = 5s\n");
	read_text(&other, "[session a]\nfile_time = 9s\nbuffer = 2048K\n");
	tap_ok(agent_wanted_hash(&one.sessions[0]) == agent_wanted_hash(&other.sessions[0]),
	       "other_files_are_not_another_session");
	agent_config_free(&other);
	read_text(&other, "[session a]\nbuffer = 2M\ncpus = 0\n");
	tap_ok(agent_wanted_hash(&one.sessions[0]) != agent_wanted_hash(&other.sessions[0]),
	       "other_cpus_are_another_session");
	agent_config_free(&other);
	agent_config_free(&one);
}

static void errors(void)
{
	struct agent_config config;

	tap_is(read_text(&config, "\xef\xbb\xbf[session a]\n"), 0, "a_mark_of_the_byte_order_is_left_out");
	agent_config_free(&config);
	is_wrong("[session a]\nevery = 5s\n", "conf:1: [session a]: 'before' and 'every' are about",
		 "every_without_a_trigger_is_told");
	is_wrong("[session a]\nbefore = 2s\n", "conf:1: [session a]: 'before' and 'every' are about",
		 "before_without_a_trigger_is_told");
	{
		char text[1000 * 2 + 1];
		unsigned int lines = 0;

		memset(text, 'x', sizeof(text) - 1);
		for (size_t i = 1; i < sizeof(text); i += 2)
			text[i] = '\n';
		text[sizeof(text) - 1] = '\0';
		tap_is(read_text(&config, text), 1000, "each_error_counts");
		for (const char *at = said; *at; at++)
			lines += *at == '\n';
		tap_ok(lines == 21 && strstr(said, "conf: 980 more lines are wrong"), "a_file_of_errors_is_told_in_few_lines");
		agent_config_free(&config);
	}
	is_wrong("", "conf: nothing is to be recorded: add a section [session NAME]\n",
		 "an_empty_file_is_told");
	is_wrong("folder = /x\n[session a]\n", "conf:1: 'folder' stands in front of the first section",
		 "a_key_without_section_is_told");
	is_wrong("[session a]\n[sesion b]\n", "conf:2: no section [sesion b]: there are [agent] and",
		 "an_unknown_section_is_told");
	is_wrong("[session a]\n[session a]\n", "conf:2: [session a]: this name has the section of line 1",
		 "a_name_that_is_there_is_told");
	is_wrong("[session a b]\n", "conf:1: [session a b]: a name has letters", "a_bad_name_is_told");
	is_wrong("[session]\n", "conf:1: [session ]: a name has letters", "a_missing_name_is_told");
	is_wrong("[session a\nbuffer = x\n", "conf:1: a section is '[agent]'", "an_open_bracket_is_told");
	is_wrong("[agent] x\n[session a]\n", "conf:1: a section is '[agent]'",
		 "text_behind_a_section_is_told");
	is_wrong("[agent]\n[session a]\n[agent]\n", "conf:3: [agent] stands here for the second time",
		 "two_sections_of_the_agent_are_told");
	is_wrong("[session a]\nbuffer\n", "conf:2: 'buffer' is no section and has no '='",
		 "a_line_without_value_is_told");
	is_wrong("[session a]\nbufer = 2M\n", "conf:2: a session has no 'bufer': there are sources, cpus",
		 "an_unknown_key_is_told_with_those_that_there_are");
	is_wrong("[agent]\nbuffer = 2M\n[session a]\n", "conf:2: [agent] has no 'buffer': there are folder",
		 "a_key_of_another_section_is_told");
	is_wrong("[session a]\nbuffer = 2M\nbuffer = 2M\n", "conf:3: 'buffer' stands here for the second",
		 "a_key_that_is_there_is_told");
	is_wrong("[session a]\nbuffer = big\n", "conf:2: buffer = big: not a size, as in 512K",
		 "a_value_that_is_no_size_is_told");
	is_wrong("[session a]\nbuffer = 1K\n", "conf:2: buffer = 1K: give a size from 64K to 1024M",
		 "a_size_out_of_range_is_told");
	is_wrong("[session a]\nsources = sched samples\n", "conf:2: sources: no 'samples': there are sched",
		 "a_source_that_is_none_is_told");
	is_wrong("[session a]\nsources =\n", "conf:2: sources: nothing to record", "no_source_is_told");
	is_wrong("[session a]\nrecord =\n", "conf:2: sources: nothing to record",
		 "the_older_name_of_sources_is_taken");
	is_wrong("[session a]\nrecord = sched\nsources = idle\n", "conf:3: 'sources' stands here for the second",
		 "the_older_name_beside_sources_is_told");
	is_wrong("[session a]\ncpus = 0-\n", "conf:2: cpus = 0-: ", "a_bad_list_of_cpus_is_told");
	is_wrong("[session a]\nsample = -1\n", "conf:2: sample = -1: not a number from 0 to 100000",
		 "a_bad_number_is_told");
	is_wrong("[session a]\nfile_time = soon\n", "conf:2: file_time = soon: not a time in whole seconds, as in 30s",
		 "a_bad_time_is_told");
	is_wrong("[session a]\nfile_time = 0\n", "conf:2: file_time = 0: give a time from 1s",
		 "a_time_out_of_range_is_told");
	is_wrong("[session a]\nchains = yes\n", "conf:2: chains = yes: give no, user, kernel or both",
		 "bad_chains_are_told");
	is_wrong("[agent]\nfolder = caps\n[session a]\n", "conf:2: folder = caps: give a path that begins",
		 "a_relative_path_is_told");
	is_wrong("[agent]\nlabels = maybe\n[session a]\n", "conf:2: labels = maybe: give yes or no",
		 "neither_yes_nor_no_is_told");
	is_wrong("[session a]\nevents = cycles\n", "conf:1: [session a]: events are counted by samples",
		 "events_without_samples_are_told");
	is_wrong("[session a]\nsample = 9\nevents = bogus\n", "conf:1: [session a]: events = bogus: ",
		 "an_unknown_event_is_told");
	is_wrong("[session a]\ntrigger = latency>5ms nonsense>1\n", "conf:2: trigger = latency>5ms nonsense>1: ",
		 "a_bad_trigger_is_told");
	is_wrong("[session a]\ntrigger =\n", "conf:2: trigger = : give one or more", "no_trigger_is_told");
	is_wrong("[session a]\nchains = user\n", "conf:1: [session a]: chains are those of samples",
		 "chains_without_samples_are_told");
	is_wrong("[agent]\nfolder_max = 100M\n[session a]\n", "conf: folder_max is less than two files of each "
		 "session: give 128M or more", "a_folder_that_is_too_small_is_told");

	tap_is(read_text(&config, "x = 1\n[session a]\nbuffer = x\nchains = x\n"), 3,
	       "all_errors_are_told");
	tap_ok(strstr(said, "conf:1: ") && strstr(said, "\nconf:3: ") && strstr(said, "\nconf:4: "),
	       "each_error_has_its_line");
	agent_config_free(&config);
	tap_is(read_text(&config, "[sesion a]\nbuffer = x\n"), 1,
	       "lines_of_a_section_that_is_wrong_are_not_told");
	agent_config_free(&config);
}

int main(void)
{
	whole_files();
	changes();
	errors();
	return tap_done();
}
