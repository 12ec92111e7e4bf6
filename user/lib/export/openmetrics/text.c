// SPDX-License-Identifier: MIT
/*
 * The metrics by name. Lines of one metric stand together, and those of one histogram in the order
 * of their bounds, as OpenMetrics wants it. Numbers in seconds have nine digits: nanoseconds.
 */
#include <stdio.h>
#include <string.h>

#include <kbarman/version.h>

#include "analysis/facts/stops.h"
#include "analysis/time/origin.h"
#include "export/openmetrics/put.h"
#include "export/openmetrics/sums.h"

#define NS	9	/* digits */
#define CPU_TEXT 16

static const char by_reason[] = "reason", by_what[] = "what";	/* labels of facts; the first has CPUs */

static const char *cpu_text(const struct kb_om_sums *sums, uint32_t number, char text[CPU_TEXT])
{
	if (number >= sums->nr_cpus)
		return "other";
	snprintf(text, CPU_TEXT, "%u", number);
	return text;
}

/* ---- CPUs ---- */

static void put_times(struct kb_om_put *put, const char *cpu, const char *cause,
		      const struct kb_om_times *times)
{
	const char *labels[] = { "cpu", cpu, "cause", cause, "le", NULL, NULL };
	uint64_t sum = 0;

	for (unsigned int i = 0; i <= KB_OM_BOUNDS; i++) {
		sum += times->buckets[i];
		labels[5] = i < KB_OM_BOUNDS ? kb_om_bound_texts[i] : "+Inf";
		kb_om_line(put, "_bucket", labels, sum, 0);
	}
	labels[4] = NULL;
	kb_om_line(put, "_count", labels, times->count, 0);
	kb_om_line(put, "_sum", labels, times->sum_ns, NS);
}

static void put_waits(struct kb_om_put *put, const struct kb_om_sums *sums)
{
	char text[CPU_TEXT];

	kb_om_head(put, "kbarman_run_queue_latency_seconds", KB_OM_HISTOGRAM, "seconds",
		   "Time from the moment a task could run until it ran, by the CPU it ran on.");
	for (uint32_t i = 0; i <= sums->nr_cpus; i++) {
		const char *cpu = cpu_text(sums, i, text);

		if (!sums->cpus[i].seen)
			continue;
		put_times(put, cpu, "woken", &sums->cpus[i].waits[0]);
		put_times(put, cpu, "preempted", &sums->cpus[i].waits[1]);
	}
}

static void put_modes(struct kb_om_put *put, const struct kb_om_sums *sums)
{
	char text[CPU_TEXT];

	kb_om_head(put, "kbarman_cpu_seconds", KB_OM_COUNTER, "seconds",
		   "Time of a CPU by what it did; halt is idling without interrupts.");
	for (uint32_t i = 0; i <= sums->nr_cpus; i++) {
		for (unsigned int kind = 0; kind < KB_TILE_KINDS && sums->cpus[i].seen; kind++) {
			const char *const labels[] = {
				"cpu", cpu_text(sums, i, text),
				"mode", kb_origin_kind((enum kb_tile_kind)kind), NULL,
			};

			kb_om_line(put, NULL, labels, sums->cpus[i].tile_ns[kind], NS);
		}
	}
}

static void put_switches(struct kb_om_put *put, const struct kb_om_sums *sums)
{
	char text[CPU_TEXT];

	kb_om_head(put, "kbarman_context_switches", KB_OM_COUNTER, NULL,
		   "Task switches by why the task left its CPU.");
	for (uint32_t i = 0; i <= sums->nr_cpus; i++) {
		for (unsigned int reason = 0; reason < 2 && sums->cpus[i].seen; reason++) {
			const char *const labels[] = {
				"cpu", cpu_text(sums, i, text),
				"reason", reason ? "blocked" : "preempted", NULL,
			};

			kb_om_line(put, NULL, labels, sums->cpus[i].switches[reason], 0);
		}
	}
}

/* One number of each CPU, at @offset of its struct. */
static void put_cpus(struct kb_om_put *put, const struct kb_om_sums *sums, size_t offset,
		     unsigned int digits)
{
	char text[CPU_TEXT];

	for (uint32_t i = 0; i <= sums->nr_cpus; i++) {
		const char *const labels[] = { "cpu", cpu_text(sums, i, text), NULL };

		if (sums->cpus[i].seen)
			kb_om_line(put, NULL, labels,
				   *(const uint64_t *)((const char *)&sums->cpus[i] + offset),
				   digits);
	}
}

/* ---- rows ---- */

static void put_idle_rows(struct kb_om_put *put, const struct kb_om_sums *sums, unsigned int which,
			  unsigned int digits, const char *was)
{
	char cpu[CPU_TEXT], state[16];

	for (uint32_t i = 0; i < sums->idle.nr; i++) {
		const struct kb_om_row *row = &sums->idle.rows[i];
		const char *const labels[] = {
			"cpu", row->other ? "other" : cpu_text(sums, row->a, cpu),
			"state", row->other ? "other" : row->b ? state : "unknown",
			"name", *row->text ? row->text : NULL, "was", was, NULL,
		};

		snprintf(state, sizeof(state), "%u", row->b - 1);
		kb_om_line(put, NULL, labels, row->values[which], digits);
	}
}

static void put_idle(struct kb_om_put *put, const struct kb_om_sums *sums)
{
	kb_om_head(put, "kbarman_idle_residency_seconds", KB_OM_COUNTER, "seconds",
		   "Time that a CPU halted in an idle state, without interrupts.");
	put_idle_rows(put, sums, KB_OM_NS, NS, NULL);
	kb_om_head(put, "kbarman_idle_entries", KB_OM_COUNTER, NULL,
		   "Halts of a CPU in an idle state.");
	put_idle_rows(put, sums, KB_OM_COUNT, 0, NULL);
	kb_om_head(put, "kbarman_idle_misses", KB_OM_COUNTER, NULL,
		   "Halts of which the kernel says that a less deep state (above) or a deeper one "
		   "(below) would have paid.");
	put_idle_rows(put, sums, KB_OM_DEEP, 0, "above");
	put_idle_rows(put, sums, KB_OM_SHALLOW, 0, "below");
}

static void put_handler_rows(struct kb_om_put *put, const struct kb_om_sums *sums,
			     unsigned int which, unsigned int digits)
{
	for (uint32_t i = 0; i < sums->handlers.nr; i++) {
		const struct kb_om_row *row = &sums->handlers.rows[i];
		const char *const labels[] = {
			"kind", row->other ? "other" : kb_origin_kind((enum kb_tile_kind)row->a),
			"handler", row->other ? "other" : row->text, NULL,
		};

		kb_om_line(put, NULL, labels, row->values[which], digits);
	}
}

static void put_handlers(struct kb_om_put *put, const struct kb_om_sums *sums)
{
	kb_om_head(put, "kbarman_interrupts", KB_OM_COUNTER, NULL,
		   "Interrupts and softirqs that began, by handler.");
	put_handler_rows(put, sums, KB_OM_COUNT, 0);
	kb_om_head(put, "kbarman_interrupt_seconds", KB_OM_COUNTER, "seconds",
		   "Time in handlers of interrupts and softirqs, without interrupts inside of it.");
	put_handler_rows(put, sums, KB_OM_NS, NS);
}

static bool has_row(const struct kb_om_rows *rows, uint32_t cpu, const char *text)
{
	for (uint32_t i = 0; i < rows->nr; i++)
		if (!rows->rows[i].other && rows->rows[i].a == cpu && !strcmp(rows->rows[i].text, text))
			return true;
	return false;
}

/* A series that begins with its first event shows no rate of it: so those that may come are 0. */
static void put_zeros(struct kb_om_put *put, const struct kb_om_sums *sums,
		      const struct kb_om_rows *rows, uint32_t cpu, const char *label,
		      const char *(*name)(unsigned int number))
{
	char text[CPU_TEXT];

	for (unsigned int i = 0; name(i); i++) {
		const char *const labels[] = {
			label, name(i), label == by_what ? NULL : "cpu", cpu_text(sums, cpu, text), NULL,
		};

		if (!has_row(rows, cpu, name(i)))
			kb_om_line(put, NULL, labels, 0, 0);
	}
}

/* Of CPUs by reason, or what found no room. @name has what is known. */
static void put_facts(struct kb_om_put *put, const struct kb_om_sums *sums,
		      const struct kb_om_rows *rows, const char *label,
		      const char *(*name)(unsigned int number))
{
	char cpu[CPU_TEXT];

	for (uint32_t i = 0; i < rows->nr; i++) {
		const struct kb_om_row *row = &rows->rows[i];
		const char *const labels[] = {
			label, row->other ? "other" : row->text,
			label == by_what ? NULL : "cpu",
			row->other ? "other" : cpu_text(sums, row->a, cpu), NULL,
		};

		kb_om_line(put, NULL, labels, row->values[KB_OM_COUNT], 0);
	}
	for (uint32_t i = 0; label != by_what && i <= sums->nr_cpus; i++)
		if (sums->cpus[i].seen)
			put_zeros(put, sums, rows, i, label, name);
	if (label == by_what)
		put_zeros(put, sums, rows, 0, label, name);
}

/* ---- what is missing, and what it cost ---- */

static void put_counter(struct kb_om_put *put, const char *name, const char *help, uint64_t value)
{
	kb_om_head(put, name, KB_OM_COUNTER, NULL, help);
	kb_om_line(put, NULL, NULL, value, 0);
}

static void put_missing(struct kb_om_put *put, const struct kb_om_sums *sums)
{
	kb_om_head(put, "kbarman_records_lost", KB_OM_COUNTER, NULL,
		   "Records that found no room in a buffer.");
	put_facts(put, sums, &sums->lost, by_reason, kb_loss_name);
	put_counter(put, "kbarman_records_overwritten",
		    "Records that younger ones replaced in a buffer, read before or not.",
		    sums->overwritten);
	kb_om_head(put, "kbarman_unread_seconds", KB_OM_COUNTER, "seconds",
		   "Time of a CPU whose records were replaced before they were read.");
	put_cpus(put, sums, offsetof(struct kb_om_cpu, unread_ns), NS);
	kb_om_head(put, "kbarman_rows_missed", KB_OM_COUNTER, NULL,
		   "Tasks, mappings and other facts that found no room in a table.");
	put_facts(put, sums, &sums->missed, by_what, kb_miss_name);
	kb_om_head(put, "kbarman_pmu_stops", KB_OM_COUNTER, NULL,
		   "How often the first counter of a CPU stopped.");
	put_facts(put, sums, &sums->stopped, by_reason, kb_stop_name);
	put_counter(put, "kbarman_gaps", "Times in which records are missing.", sums->gaps);
	kb_om_head(put, "kbarman_waits_left_out", KB_OM_COUNTER, NULL,
		   "Waits that are in no histogram: they overlap a gap (cut), no wakeup ended them "
		   "(unexplained), or their task may be recorded in part (unsure).");
	kb_om_line(put, NULL, (const char *const[]){ "why", "cut", NULL }, sums->cut, 0);
	kb_om_line(put, NULL, (const char *const[]){ "why", "unexplained", NULL },
		   sums->unexplained, 0);
	kb_om_line(put, NULL, (const char *const[]){ "why", "unsure", NULL }, sums->unsure, 0);
}

static void put_reading(struct kb_om_put *put, const struct kb_om_sums *sums)
{
	put_counter(put, "kbarman_captures", "Captures that were read, or pieces of a session.",
		    sums->captures);
	put_counter(put, "kbarman_captures_damaged", "Those of them that are damaged.",
		    sums->damaged);
	kb_om_head(put, "kbarman_reader_cpu_seconds", KB_OM_COUNTER, "seconds",
		   "CPU time of the process that reads.");
	kb_om_line(put, NULL, NULL, sums->cost.cpu_ns, NS);
	kb_om_head(put, "kbarman_reader_bytes", KB_OM_COUNTER, "bytes", "Bytes that it has read.");
	kb_om_line(put, NULL, NULL, sums->cost.bytes, 0);
	put_counter(put, "kbarman_reader_wakeups", "How often it woke up to read.",
		    sums->cost.wakeups);
	kb_om_head(put, "kbarman_reader_resident_bytes", KB_OM_GAUGE, "bytes",
		   "Memory that it has.");
	kb_om_line(put, NULL, NULL, sums->cost.resident, 0);
}

int kb_openmetrics_metrics(const struct kb_openmetrics *metrics, enum kb_openmetrics_form form,
			   struct kb_out *out)
{
	const struct kb_om_sums *sums = kb_openmetrics_sums(metrics);
	struct kb_om_put put = { .out = out, .form = form };

	kb_om_head(&put, "kbarman_build", KB_OM_INFO, NULL, "The version of kbarman.");
	kb_om_line(&put, NULL, (const char *const[]){ "version", kb_version(), NULL }, 1, 0);
	put_waits(&put, sums);
	put_modes(&put, sums);
	put_switches(&put, sums);
	kb_om_head(&put, "kbarman_wakeups", KB_OM_COUNTER, NULL,
		   "Tasks that were woken, by the CPU that woke them.");
	put_cpus(&put, sums, offsetof(struct kb_om_cpu, wakeups), 0);
	kb_om_head(&put, "kbarman_migrations", KB_OM_COUNTER, NULL,
		   "Tasks that went to another CPU, by the CPU that moved them.");
	put_cpus(&put, sums, offsetof(struct kb_om_cpu, migrations), 0);
	put_idle(&put, sums);
	put_handlers(&put, sums);
	kb_om_head(&put, "kbarman_records", KB_OM_COUNTER, NULL, "Records that were read.");
	put_cpus(&put, sums, offsetof(struct kb_om_cpu, records), 0);
	put_counter(&put, "kbarman_records_written", "Records that the recorder wrote.",
		    sums->written);
	put_missing(&put, sums);
	put_reading(&put, sums);
	return kb_out_error(out);
}

int kb_openmetrics_write(const struct kb_openmetrics *metrics, enum kb_openmetrics_form form,
			 struct kb_out *out)
{
	kb_openmetrics_metrics(metrics, form, out);
	return kb_openmetrics_eof(form, out);
}
