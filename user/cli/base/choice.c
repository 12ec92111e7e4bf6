// SPDX-License-Identifier: MIT
/*
 * Do options choose anything of a capture? A mistyped name would give empty tables, which look like an
 * answer. Each option is judged by itself: that no task named 'xz' ran on CPU 1 is something to know. The
 * table of tasks is asked first, and records are read only as far as it can't say.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "analysis/trace/wanted.h"
#include "base/clock.h"
#include "cli/base/filters.h"

#define NAMES_SHOWN	8

enum { BY_CPU, BY_TASK, BY_TID, BY_TIME, NR_BY };

struct choice {
	const struct filters *filters;
	struct kb_trace *trace;
	struct kb_wanted by[NR_BY];	/* what each option alone wants */
	bool open[NR_BY];		/* which nothing was found for yet */
	uint64_t seen[KB_CPU_WORDS];	/* CPUs that have records */
	int64_t last;			/* ns: of the records that were read */
};

/* ---- what is there ---- */

static bool has_task(const struct choice *choice, int by)
{
	const struct kb_header *header = kb_trace_header(choice->trace);
	const struct kb_filter *filter = &choice->filters->how;

	for (uint32_t i = 0; i < header->nr_tasks; i++) {
		const struct kb_task *task = &header->tasks[i];

		if (by == BY_TASK ? task->name && !strcmp(task->name, filter->task) :
				    task->task_id == filter->tid || task->tgid == filter->tid)
			return true;
	}
	return false;
}

/* Is the time that is wanted one of the capture, of which one record was read? */
static bool has_time(const struct choice *choice)
{
	int64_t from, until, last = kb_barman_ns(kb_trace_barman(choice->trace),
						 kb_trace_header(choice->trace)->last_timestamp);

	kb_wanted_ends(&choice->by[BY_TIME], &from, &until);
	return until >= kb_trace_first(choice->trace) && from <= (last > choice->last ? last : choice->last);
}

static bool is_open(const struct choice *choice)
{
	for (int by = 0; by < NR_BY; by++)
		if (choice->open[by])
			return true;
	return false;
}

static void look_at(struct choice *choice, const struct kb_walk *walk)
{
	if (walk->event.core / 64 < KB_CPU_WORDS)
		choice->seen[walk->event.core / 64] |= UINT64_C(1) << walk->event.core % 64;
	choice->last = walk->ns > choice->last ? walk->ns : choice->last;
	for (int by = 0; by < NR_BY; by++)
		choice->open[by] &= by == BY_TIME ? !has_time(choice) :
						    !kb_wanted_record(&choice->by[by], walk);
}

static int begin(struct choice *choice, struct kb_error *err)
{
	const struct kb_filter *all = &choice->filters->how;
	struct kb_filter alone[NR_BY] = {
		[BY_CPU] = { .cpus = all->cpus, .nr_cpu_words = all->nr_cpu_words },
		[BY_TASK] = { .task = all->task },
		[BY_TID] = { .has_tid = all->has_tid, .tid = all->tid },
		[BY_TIME] = { .has_time = all->has_time, .from = all->from, .until = all->until,
			      .from_clock = all->from_clock, .until_clock = all->until_clock },
	};
	int ret = 0;

	for (int by = 0; by < NR_BY && !ret; by++) {
		alone[by].size = sizeof(alone[by]);
		ret = kb_wanted_init(&choice->by[by], choice->trace, &alone[by], err);
	}
	choice->last = INT64_MIN;
	choice->open[BY_CPU] = all->cpus;
	choice->open[BY_TASK] = all->task && !has_task(choice, BY_TASK);
	choice->open[BY_TID] = all->has_tid && !has_task(choice, BY_TID);
	choice->open[BY_TIME] = all->has_time;
	return ret;
}

/* ---- what to say ---- */

/* "0-2,5" */
static void list_cpus(const struct choice *choice, char *text, size_t size)
{
	size_t at = 0;

	*text = '\0';
	for (unsigned int cpu = 0, end; cpu < KB_CPUS_MAX && at < size; cpu = end + 1) {
		for (end = cpu; end < KB_CPUS_MAX && kb_cpus_have(choice->seen, KB_CPU_WORDS, end); end++)
			;
		if (end > cpu + 1)
			at += (size_t)snprintf(text + at, size - at, "%s%u-%u", at ? "," : "", cpu, end - 1);
		else if (end > cpu)
			at += (size_t)snprintf(text + at, size - at, "%s%u", at ? "," : "", cpu);
	}
}

/* A name like the one that was asked for, or the first ones. */
static void list_tasks(const struct choice *choice, char *text, size_t size)
{
	const struct kb_header *header = kb_trace_header(choice->trace);
	struct cli_nearest nearest = { .word = choice->filters->how.task };
	unsigned int shown = 0;
	size_t at = 0;

	for (uint32_t i = 0; i < header->nr_tasks; i++)
		if (header->tasks[i].name)
			cli_nearest_try(&nearest, header->tasks[i].name);
	if (nearest.name) {
		snprintf(text, size, "did you mean '%s'?", nearest.name);
		return;
	}
	snprintf(text, size, "it has names of none");
	for (uint32_t i = 0; i < header->nr_tasks && shown < NAMES_SHOWN && at < size; i++) {
		const char *name = header->tasks[i].name;

		for (uint32_t other = 0; other < i && name; other++)
			if (header->tasks[other].name && !strcmp(name, header->tasks[other].name))
				name = NULL;
		if (!name || !*name)
			continue;
		at += (size_t)snprintf(text + at, size - at, "%s'%s'", shown ? ", " : "it has ", name);
		shown++;
	}
	if (shown == NAMES_SHOWN && at < size)
		snprintf(text + at, size - at, " and others");
}

static void tell_time(const struct choice *choice, char *text, size_t size)
{
	uint64_t base = kb_trace_header(choice->trace)->unix_base_ns;
	int64_t first = kb_trace_first(choice->trace);
	time_t seconds = (time_t)(((int64_t)base + first) / (int64_t)KB_NS_PER_S);
	char date[64] = "";
	struct tm tm;

	if (choice->last == INT64_MIN) {
		snprintf(text, size, "it has no records");
		return;
	}
	if (base && base < INT64_MAX / 4 && localtime_r(&seconds, &tm))
		strftime(date, sizeof(date), ", from %Y-%m-%d %H:%M:%S (local time) on", &tm);
	snprintf(text, size, "it is %.9f s long%s",
		 (double)((uint64_t)choice->last - (uint64_t)first) / 1e9, date);
}

static void tell(const struct choice *choice, const char *path, char *why, size_t size)
{
	const struct filters *filters = choice->filters;
	char there[256];

	if (choice->open[BY_TASK]) {
		list_tasks(choice, there, sizeof(there));
		snprintf(why, size, "%s: no task is named '%s': %s", path, filters->how.task, there);
	} else if (choice->open[BY_TID]) {
		snprintf(why, size, "%s: no task and no process has the number %" PRIu32
			 ": 'kbarman report --sort pid,tid' shows those that were sampled", path,
			 filters->how.tid);
	} else if (choice->open[BY_CPU]) {
		list_cpus(choice, there, sizeof(there));
		snprintf(why, size, "%s: there are no records of the CPUs of --cpu: it has %s%s", path,
			 *there ? "some of " : "none", there);
	} else {
		tell_time(choice, there, sizeof(there));
		snprintf(why, size, "%s: nothing is in the time of --time: %s", path, there);
	}
}

/* A pipe can't be read twice. */
static bool can_be_read_again(const char *path)
{
	struct stat st;

	return (strcmp(path, "-") ? stat(path, &st) : fstat(STDIN_FILENO, &st)) == 0 && S_ISREG(st.st_mode);
}

int filters_choose(const struct filters *filters, struct kb_trace *trace, const char *path,
		   char why[FILTERS_WHY])
{
	struct choice choice = { .filters = filters, .trace = trace };
	struct kb_error err = { 0 };
	const struct kb_walk *walk;
	int ret;

	if (!filters->text)
		return 1;
	ret = begin(&choice, &err);
	if (ret || !is_open(&choice) || !can_be_read_again(path))
		goto out;
	while (is_open(&choice) && (ret = kb_trace_next(trace, &walk, &err)) > 0)
		look_at(&choice, walk);
	if (!ret && is_open(&choice)) {
		tell(&choice, path, why, FILTERS_WHY);
		return 0;
	}
	ret = kb_trace_rewind(trace, &err);
out:
	if (ret)
		snprintf(why, FILTERS_WHY, "%s", kb_error_text(&err));
	return ret ? ret : 1;
}

int filters_check(const struct filters *filters, struct kb_trace *trace, const char *path)
{
	char why[FILTERS_WHY];

	return filters_choose(filters, trace, path, why) > 0 ? CLI_OK : cli_fail("%s", why);
}
