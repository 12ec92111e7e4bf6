// SPDX-License-Identifier: MIT
/* The summary after a recording: what was recorded, and what is missing. */
#include <inttypes.h>
#include <stdio.h>

#include <kbarman/device.h>
#include <kbarman/recorder.h>

#include "base/percent.h"
#include "cli/base/cli.h"
#include "cli/record/output.h"

#define LISTED_CPUS		8	/* CPUs that a line of the summary names */


static const char *human_size(uint64_t bytes, char text[32])
{
	static const char *const units[] = { "bytes", "KiB", "MiB", "GiB", "TiB" };
	double value = (double)bytes;
	unsigned int unit = 0;

	while (value >= 1024 && unit < 4) {
		value /= 1024;
		unit++;
	}
	snprintf(text, 32, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
	return text;
}

static uint64_t get_lost(const struct kbarman_stats *stats, unsigned int reason)
{
	return stats->lost[reason];
}

static uint64_t get_stops(const struct kbarman_stats *stats, unsigned int reason)
{
	return stats->stopped[reason];
}

/* Prints "@verb N @unit (n on CPU c, ...): @why" if there were any. Returns N. */
static uint64_t say_by_cpu(struct kb_device *device,
			   uint64_t (*get)(const struct kbarman_stats *stats, unsigned int reason),
			   unsigned int reason, const char *verb, const char *unit, const char *why)
{
	struct kbarman_query query;
	struct kbarman_stats stats;
	unsigned int cpus = 0;
	uint64_t total = 0;
	char list[512] = "";
	size_t used = 0;

	if (kb_device_query(device, &query, NULL))
		return 0;
	for (unsigned int cpu = 0; cpu < query.nr_cpus; cpu++) {
		if (kb_device_stats(device, cpu, &stats, NULL) || !get(&stats, reason))
			continue;
		total += get(&stats, reason);
		if (++cpus > LISTED_CPUS)
			continue;
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%" PRIu64 " on CPU %u",
					 used ? ", " : "", get(&stats, reason), cpu);
	}
	if (total)
		cli_warn("%s %" PRIu64 " %s (%s%s): %s", verb, total, unit, list,
			 cpus > LISTED_CPUS ? ", …" : "", why);
	return total;
}

/* The records lost for one reason: how many, on which CPUs, what to do. */
static uint64_t say_loss(struct kb_device *device, unsigned int reason)
{
	static const char *const why[KBARMAN_LOST_REASONS] = {
		[KBARMAN_LOST_FULL] = "the buffer was full; raise -m or lower -F",
		[KBARMAN_LOST_NESTED] = "nested interrupts filled the buffer; raise -m",
		[KBARMAN_LOST_RATE] = "programs wrote more than 20000 marks per second",
		[KBARMAN_LOST_TOO_BIG] = "they were longer than an eighth of the buffer; raise -m",
	};

	return say_by_cpu(device, get_lost, reason, "lost", "records", why[reason]);
}

/* The counters that stood still for one reason: how often, on which CPUs. */
static uint64_t say_stops(struct kb_device *device, unsigned int reason)
{
	static const char *const why[KBARMAN_STOP_REASONS] = {
		[KBARMAN_STOPPED_THROTTLED] = ("Linux throttled them; sample less (-F, -c) or raise "
					       "kernel.perf_event_max_sample_rate"),
		[KBARMAN_STOPPED_ERROR] = "another user of the PMU took their place",
		[KBARMAN_STOPPED_OFFLINE] = "the CPU went offline",
	};

	return say_by_cpu(device, get_stops, reason, "counters stood still", "times", why[reason]);
}

/* Facts that are in no table. Returns how many, with the records that were overwritten. */
static uint64_t say_misses(const struct kbarman_stats *stats)
{
	static const char *const what[KBARMAN_MISS_REASONS] = {
		[KBARMAN_MISSED_TASK] = "tasks have no name: the task table is full; raise "
					"--max-tasks",
		[KBARMAN_MISSED_MAP] = "mappings are missing: the table of mappings is full, or a "
				       "process used up its share of it; raise --max-tasks",
		[KBARMAN_MISSED_STRING] = "names are missing: the string table is full; raise "
					  "--max-tasks",
		[KBARMAN_MISSED_QUEUE] = "facts about tasks are missing: the module's queue was "
					 "full, or the recording ended before it was empty",
		[KBARMAN_MISSED_MEMORY] = "mappings are missing: the module had no memory for them",
		[KBARMAN_MISSED_COUNTER] = "counter values could not be read",
		[KBARMAN_MISSED_SERIES] = "counters of programs are missing: all series are in use",
	};
	uint64_t missed = 0;

	for (unsigned int i = 0; i < KBARMAN_MISS_REASONS; i++) {
		missed += stats->missed[i];
		if (stats->missed[i])
			cli_warn("%llu %s", (unsigned long long)stats->missed[i], what[i]);
	}
	if (stats->overwritten)
		cli_warn("%llu older records were overwritten by newer ones",
			 (unsigned long long)stats->overwritten);
	return missed + stats->overwritten;
}

/* With -v: prints how many records of each CPU were written, overwritten and lost. */
static void say_cpus(struct kb_device *device)
{
	struct kbarman_query query;
	struct kbarman_stats stats;
	char size[32];

	if (cli_verbosity() < 1 || kb_device_query(device, &query, NULL))
		return;
	for (unsigned int cpu = 0; cpu < query.nr_cpus; cpu++) {
		if (kb_device_stats(device, cpu, &stats, NULL))
			continue;
		cli_note("CPU %u: %llu records, %s, %llu overwritten, %" PRIu64 " lost", cpu,
			 (unsigned long long)stats.written, human_size(stats.bytes, size),
			 (unsigned long long)stats.overwritten, kb_stats_lost(&stats));
	}
}

void record_summary(struct kb_device *device, struct kb_recorder *recorder, const char *name,
		    uint64_t bytes)
{
	struct kb_recorder_totals totals;
	struct kbarman_query query;
	struct kbarman_stats stats;
	uint64_t lost;	/* records, facts, stops of counters; where nobody can say, something */
	char size[32];

	kb_recorder_totals(recorder, &totals);
	lost = totals.missed_rows + totals.dropped + totals.damaged;
	for (unsigned int i = 0; i < KBARMAN_LOST_REASONS; i++)
		lost += say_loss(device, i);
	for (unsigned int i = 0; i < KBARMAN_STOP_REASONS; i++)
		lost += say_stops(device, i);
	if (kb_device_stats(device, KBARMAN_CPU_ALL, &stats, NULL)) {
		cli_warn("the device does not say what was lost");
		lost++;
	} else {
		lost += say_misses(&stats);
	}
	say_cpus(device);
	if (totals.missed_rows)
		cli_warn("%" PRIu64 " rows of tables did not fit into the file", totals.missed_rows);
	if (totals.dropped)
		cli_warn("%" PRIu64 " annotations and counter values were dropped: too many waited "
			 "to be written", totals.dropped);
	if (totals.unordered)
		cli_warn("%" PRIu64 " records came late and are out of order in the file",
			 totals.unordered);
	if (totals.damaged)
		cli_warn("buffers were damaged in %" PRIu64 " places, records there were skipped: "
			 "please report this bug", totals.damaged);
	if (!kb_device_query(device, &query, NULL) && query.state & KBARMAN_STATE_UNSTEADY)
		cli_warn("during the recording the kernel found the CPU's counter (TSC) unstable: "
			 "times in this capture may be wrong; record again, the next capture uses "
			 "another clock");
	if (totals.stacks)
		cli_note("%" PRIu64 " stacks of user code were unwound; %.1f %% of the chains reach the "
			 "start of their program or thread", totals.stacks,
			 kb_percent(totals.stacks_whole, totals.stacks));
	if (totals.short_waits)
		cli_note("%" PRIu64 " call chains of waits shorter than --off-cpu-min were left out",
			 totals.short_waits);
	cli_note("%s: %" PRIu64 " records of %u CPU%s in %.3f s, %s%s", name,
		 totals.records, totals.nr_cpus, totals.nr_cpus == 1 ? "" : "s",
		 (double)totals.duration_ns / 1e9, human_size(bytes, size),
		 lost ? "" : ", nothing lost");
}
