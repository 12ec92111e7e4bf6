/* SPDX-License-Identifier: MIT */
/*
 * cli/stat/: kbarman stat: what is counted, where, and what is printed of it.
 *
 * The parts of kbarman stat. A run counts events at places: tasks or CPUs. What is printed are sums
 * over the places of a share: all of them, or those of a CPU, a core or a socket.
 */
#ifndef KB_CLI_STAT_STAT_H
#define KB_CLI_STAT_STAT_H

#include <kbarman/metrics.h>
#include <kbarman/perf_events.h>

#include "analysis/samples/turns.h"
#include "base/text/json.h"
#include "cli/base/cli.h"
#include "cli/session/command.h"
#include "cli/session/processes.h"
#include "record/perf/counter.h"
#include "record/perf/turn_draw.h"

#define STAT_METRICS_MAX	64
#define STAT_EVENTS_MAX		256

enum stat_shares { STAT_ALL, STAT_BY_CPU, STAT_BY_CORE, STAT_BY_SOCKET };
enum stat_form { STAT_TEXT, STAT_JSON, STAT_CSV };

/* Mean and deviation of what several runs counted, by Welford. */
struct stat_mean {
	double mean, squares;
	unsigned int nr;
};

/* An event at one place. */
struct stat_counter {
	int fd;				/* negative: refused, or its task has ended */
	bool beside;			/* in a group that another counter leads */
	bool alone;			/* the group of a set could not be counted at once here */
	struct kb_perf_count now, before;
};

/* What an event counted in a share. */
struct stat_result {
	double value;			/* extrapolated, if need be; with -r the mean */
	uint64_t enabled, running;	/* ns */
	double deviation;		/* of the mean, in percent of it */
	double on_ns;			/* time in which it could occur: of CPUs that have it */
	bool elsewhere;			/* it was not counted while tasks ran on other cores, and how
					 * long that was is not known: it is not extrapolated */
	double error;			/* of the value, if it was counted in turns; infinite: not known */
	bool in_turns;
	bool alone;			/* a counter of it was not in the group of its set */
	bool here;			/* there was a counter */
	bool known;			/* it counted at some time */
	bool ran;			/* there was a time in which it was counted: if not, a known
					 * value is 0 because no task ran */
};

struct stat_event {
	struct kb_perf_event event;
	struct stat_counter *counters;	/* of the places */
	struct stat_total {
		struct stat_mean value, enabled, running, on_ns;
		bool here, known, elsewhere, alone, ran;
	} *totals;			/* of the shares, with -r; else NULL */
	size_t nr_totals, max_totals;
	unsigned int group;		/* that takes turns; 0: it is counted all the time */
	struct kb_turns *turns;		/* of the shares, while the group takes turns */
	int kind;			/* of cores, that alone count it; -1: all do */
	unsigned int set;		/* of events that metrics need; 0: of -e */
	bool user_only;			/* the kernel may not be counted */
	bool off_cpus;			/* no chosen CPU is of its kind */
	int error;			/* why no counter was opened; 0: at least one was */
};

struct stat_run {
	const char *cpus_text, *pids_text, *metrics_text;
	char *events_text;		/* NULL: the usual ones */
	const char *path;		/* NULL: standard error */
	const char *separator;		/* of STAT_CSV */
	bool all, append;
	bool plain_numbers;		/* without commas between thousands */
	enum stat_shares by;
	enum stat_form form;
	unsigned int detail;		/* how many -d */
	unsigned int runs, nr_done;	/* of the command: wanted, and counted until now */
	uint64_t interval_ms, interval_count, timeout_ms, delay_ms;
	uint64_t turn_ms;		/* 0: nothing takes turns */
	char **argv;			/* NULL: no command */

	struct stat_event events[STAT_EVENTS_MAX];
	unsigned int nr_events, nr_kinds;
	struct { const struct kb_metric *metric; unsigned int set; } metrics[STAT_METRICS_MAX];
	unsigned int nr_metrics;
	struct stat_place {
		pid_t pid;
		int cpu;
		unsigned int share;
	} *places;
	size_t nr_places, max_places;
	struct stat_share {
		char name[48];		/* as perf calls it; "": all */
		unsigned int nr_cpus;
	} *shares;
	size_t nr_shares, max_shares;
	struct stat_clock {
		int fd;
		/* ns in which there was something to count: until the last reading, until the turn,
		 * and until the interval */
		uint64_t now, turn, before;
	} *clocks;			/* of the places; NULL: nothing takes turns */
	unsigned int nr_groups;		/* that take turns */
	struct kb_turn_draw draw;
	unsigned int turn;		/* the group whose turn it is */
	int64_t turn_begun;		/* ns */
	struct command command;
	struct processes processes;
	sigset_t old_mask;
	int signals;
	bool interrupted;
	bool told;			/* the last interval ended the run */
	bool ending;			/* the command was told to end */
	int64_t begun, since, ended;	/* ns: start of counting; start and end of this reading */
	struct stat_mean elapsed;	/* s */
	struct cli_output output;
	int appended;			/* descriptor of the file of --append; -1: none */
	struct kb_json json;
};

/* Functions with an int return 0, or CLI_IMPOSSIBLE after a message. */

/* events.c: what to count */
int stat_choose_events(struct stat_run *run);

/* places.c: where. stat_places() is for each run */
int stat_places(struct stat_run *run);

/* read.c */
bool stat_is_beside(const struct stat_run *run, unsigned int i);	/* in the group of the event in front */
struct kb_perf_place stat_place_of(const struct stat_run *run, size_t j);
void stat_read_event(struct stat_run *run, unsigned int i);	/* and the group that it leads */

/* count.c */
int stat_open(struct stat_run *run);
void stat_start(struct stat_run *run);
void stat_stop(struct stat_run *run);
void stat_read(struct stat_run *run);
void stat_keep(struct stat_run *run);		/* what this run counted, for -r */
void stat_close(struct stat_run *run);
struct stat_result stat_result_of(const struct stat_run *run, const struct stat_event *event,
				  size_t share);
const char *stat_why_not(const struct stat_event *event);
void stat_mean_add(struct stat_mean *mean, double value);
/* Of the mean itself, in percent of it, as perf has it. */
double stat_mean_deviation(const struct stat_mean *mean);

/* turns.c: groups that take turns, if they do */
int stat_turns_choose(struct stat_run *run);
bool stat_turns_waits(const struct stat_run *run, const struct stat_event *event);
int stat_turns_open(struct stat_run *run);
void stat_turns_close(struct stat_run *run);
void stat_turns_start(struct stat_run *run);		/* the clocks, and stop them */
void stat_turns_stop(struct stat_run *run);
/* The next turn; @running: its counters do already. Returns when it ends. */
int64_t stat_turns_begin(struct stat_run *run, bool running);
void stat_turns_end(struct stat_run *run);
void stat_turns_forget(struct stat_run *run);		/* all until now: an interval begins */
struct stat_result stat_turns_result(const struct stat_run *run, const struct stat_event *event,
				     size_t share);

/* relation.c: a count beside another one */
struct stat_relation {
	double value;
	const char *format;		/* for the value */
	const char *unit;		/* in our words; "": there is no relation */
	const char *perf_unit;		/* in perf's */
};
bool stat_is_time(const struct stat_event *event);
struct stat_relation stat_relation(const struct stat_run *run, const struct stat_event *event,
				   double value, size_t share);

/* metrics.c */
struct stat_metric_value {
	const struct kb_metric *metric;
	const char *pmu;		/* of a kind of cores; pmu_length is 0 if there is one kind */
	size_t pmu_length;
	struct kb_metric_value value;
	const char *why;		/* there is none; NULL: it is known */
};
/* Calls @put for each metric in @share. */
void stat_metrics(struct stat_run *run, size_t share,
		  void (*put)(struct stat_run *run, size_t share,
			      const struct stat_metric_value *value));

/* print.c: one line of each form */
void stat_put_title(struct stat_run *run);
void stat_put_all(struct stat_run *run);
void stat_put_end(struct stat_run *run);

#endif
