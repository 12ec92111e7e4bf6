/* SPDX-License-Identifier: MIT */
/*
 * cli/record/: kbarman record: options, the recording itself, its output, triggers, other sources
 * of records (extra.h), and what is left to do at its end. kbarman snapshot is a small recording.
 *
 * What a user says to `kbarman record`: the options, and whether they go together.
 */
#ifndef KB_CLI_RECORD_OPTIONS_H
#define KB_CLI_RECORD_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include <kbarman/device.h>
#include <kbarman/perf_events.h>
#include <kbarman/recorder.h>

#include "cli/base/cli.h"
#include "cli/record/extra.h"
#include "cli/record/trigger.h"
#include "cli/session/processes.h"

#define RECORD_CHAIN_PARTS	(KBARMAN_CONFIGURE_CHAIN_USER | KBARMAN_CONFIGURE_CHAIN_KERNEL)

struct record_options {
	const char *output;		/* NULL: the default */
	char *events_text;		/* NULL: the default */
	const char *cpus_text;
	const char *pids_text;
	unsigned long long frequency, period;
	unsigned long long ring_bytes;	/* 0: as much as fits into the memory that survives a reset */
	bool no_samples;		/* of code: -F 0 */
	bool no_addresses;		/* in any record: nothing is to be named */
	bool counters_switch;		/* when counters are read: at task switches; */
	unsigned long long counters_hz;	/* so many times a second, 0: not that */
	uint64_t turn_ms;	/* 0: all counters count all the time */
	enum kbarman_mode mode;
	bool stream;			/* --mode stream was given */
	uint32_t chain_flags;		/* KBARMAN_CONFIGURE_CHAIN_* */
	uint32_t sources;		/* KBARMAN_SOURCE_* */
	struct record_extra extra;
	struct record_trigger trigger;
	bool any_chain;			/* take the parts that this machine can give */
	bool any_method;		/* of finding callers: take stacks where this machine can */
	unsigned long long max_stack;	/* 0: the default */
	uint64_t off_cpu_min;		/* ns; 0: chains of all waits */
	unsigned long long max_tasks;	/* 0: the default */
	uint32_t notes;			/* KB_NOTE_* */
	bool all, bundle, no_objects;
	bool boot;			/* take over a session that runs already */
	bool reserved;			/* record into memory that survives a reset */
	bool keep_symbols;		/* of the kernel, in memory */
	const struct cli_option *choice;	/* one that says what to record; NULL: none */
	char **command;			/* NULL: none */

	struct kb_perf_event events[KB_EVENTS_MAX];
	unsigned int nr_events;
	struct processes processes;
};

/*
 * Fill @o with defaults and with what @argv says. Returns 0. With @done set, the result is the exit
 * status. Call record_options_close() in any case, while the device is open. It leaves @o->extra.
 */
int record_options_parse(struct record_options *o, int argc, char **argv, bool *done);
void record_options_close(struct record_options *o);

#endif
