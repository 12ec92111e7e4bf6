/* SPDX-License-Identifier: MIT */
/*
 * record --trigger: a recording in overwrite mode that writes a capture of the time around each moment
 * that an expression describes (kbarman/trigger.h), into a folder, and no other file.
 */
#ifndef KB_CLI_RECORD_TRIGGER_H
#define KB_CLI_RECORD_TRIGGER_H

#include <signal.h>
#include <stdio.h>

#include <kbarman/trigger.h>

#include "cli/base/cli.h"

enum {
	OPTION_TRIGGER = 0x1200, OPTION_BEFORE, OPTION_AFTER, OPTION_EVERY, OPTION_FOLDER_MAX,
};

/* For a table of options. */
#define RECORD_TRIGGER_OPTIONS \
	{ OPTION_TRIGGER, "trigger", "EXPRESSION", \
	  "keep the newest records, and write a capture into the folder of -o\n" \
	  "each time this happens: latency>5ms, wakeup:NAME>5ms, irq>1ms,\n" \
	  "offcpu:NAME>1s, wait:futex>5ms, syscall:fsync>20ms, block:vda>10ms,\n" \
	  "counter:NAME>1M/s, mark:TEXT, psi:cpu>10%, signal:USR1; may be given\n" \
	  "several times" }, \
	{ OPTION_BEFORE, "before", "TIME", \
	  "with --trigger: begin a capture so long before the moment (default 2s;\n" \
	  "all: with the oldest record)" }, \
	{ OPTION_AFTER, "after", "TIME", \
	  "with --trigger: and end it so long after the moment (default 500ms)" }, \
	{ OPTION_EVERY, "every", "TIME", \
	  "with --trigger: write a capture once in TIME at most, and count what\n" \
	  "happens meanwhile (default 60s; 0s: write all)" }, \
	{ OPTION_FOLDER_MAX, "folder-max", "SIZE[,N]", \
	  "with --trigger: the oldest captures of the folder make room when they\n" \
	  "have more bytes, or are more than N (default 1G,1000; 0: they all stay)" }

#define RECORD_TRIGGER_FOLDER	"kbarman.triggers"	/* the default of -o */

/* A capture of this recording. Its time is that of the clock, unless that was set back. */
struct record_trigger_own {
	uint64_t inode;
	int64_t ns;
};

struct record_trigger {
	struct kb_triggers *triggers;	/* NULL: there are none */
	struct kb_watch_options how;
	bool asked;			/* for a time or a bound */
	unsigned long long most_bytes;	/* of the folder; 0: no bound, */
	unsigned long most;		/* ... and captures */
	uint64_t removed, removed_told;	/* captures, to keep the bound */
	struct record_trigger_own *own;	/* those that are there, by their inodes */
	size_t nr_own, room_own;
	int64_t last_ns;		/* of the youngest */
	const char *folder;
	struct bundler *bundler;	/* NULL: symbols are not saved */
	struct kb_watch *watch;
	char *symbols;			/* the file with the kernel's symbols; NULL: there is none */
	uint64_t lost_times;		/* when losses were told last, */
	int64_t told_ms, removed_ms;	/* when losses, and removals, were told */
	bool failed;			/* a capture could not be written, or lacks its moment */
};

void record_trigger_init(struct record_trigger *trigger);

/* Takes @option with its value. Returns 0, -1: it is none of these; or CLI_IMPOSSIBLE after a message. */
int record_trigger_take(struct record_trigger *trigger, int option, const char *value);

static inline bool record_trigger_is_on(const struct record_trigger *trigger)
{
	return trigger->triggers != NULL;
}

/* Each of these returns 0, or CLI_IMPOSSIBLE after a message. @folder is made if it is not there. */
int record_trigger_check(const struct record_trigger *trigger);
int record_trigger_open(struct record_trigger *trigger, const char *folder);
int record_trigger_start(struct record_trigger *trigger, struct kb_device *device,
			 uint64_t off_cpu_min, uint32_t notes);

/* The file for the kernel's symbols, which record_trigger_symbols_done() closes; NULL: no file. */
FILE *record_trigger_symbols(struct record_trigger *trigger);
void record_trigger_symbols_done(struct record_trigger *trigger, FILE *file, bool useful);

/* Adds the signals of the expressions to @mask. */
void record_trigger_mask(const struct record_trigger *trigger, sigset_t *mask);

/* For poll(). */
int record_trigger_fd(const struct record_trigger *trigger);

/* Returns 0 or -errno with @err: the recording must end. */
int record_trigger_serve(struct record_trigger *trigger, struct kb_error *err);

/* Does an expression name the signal that came? */
bool record_trigger_signal(struct record_trigger *trigger, int signal);

/* After the stop: writes what is left, and a summary. Returns an exit status. */
int record_trigger_finish(struct record_trigger *trigger);
void record_trigger_close(struct record_trigger *trigger);

#endif
