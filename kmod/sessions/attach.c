// SPDX-License-Identifier: GPL-2.0-only
#include <linux/kernel.h>

#include "capture/header.h"
#include "capture/work.h"
#include "compat/tracepoint.h"
#include "here.h"
#include "maps/maps.h"
#include "maps/probes.h"
#include "marks/marks.h"
#include "pmu/pmu.h"
#include "sessions/attach.h"
#include "sources/sources.h"

/* Started from first to last, stopped from last to first. */
static const struct kbarman_source *const sources[] = {
	&kbarman_source_tasks,
	&kbarman_source_maps,
	&kbarman_source_sched,
	&kbarman_source_idle,
	&kbarman_source_wake,
	&kbarman_source_migrate,
	&kbarman_source_irq,
	&kbarman_source_softirq,
	&kbarman_source_freq,
	&kbarman_source_syscalls,
	&kbarman_source_faults,
	&kbarman_source_block,
	&kbarman_source_pmu,
	&kbarman_source_counts,
	&kbarman_source_marker,
};

static bool source_is_enabled(const struct kbarman_source *source,
			      const struct kbarman_session *session)
{
	return !source->bit || session->config.sources & source->bit;
}

/* ---- what this kernel lacks ---- */

/* Written at module init only. */
static u32 sources_absent;

u32 kbarman_sources_absent(void)
{
	return sources_absent;
}

int __init kbarman_sources_init(void)
{
	int i, error = kbarman_work_init();

	if (error)
		return error;
	for (i = 0; i < ARRAY_SIZE(sources); i++)
		if (sources[i]->probes &&
		    !kbarman_probes_find(sources[i]->probes, sources[i]->nr_probes))
			sources_absent |= sources[i]->absent;
	error = kbarman_maps_probes_init();
	if (error)
		kbarman_work_exit();
	return error;
}

void kbarman_sources_exit(void)
{
	kbarman_maps_probes_exit();
	kbarman_work_exit();
}

void kbarman_sources_tell(const struct kbarman_session *session)
{
	u32 chosen = session->config.sources & KBARMAN_SOURCE_DETAILS;
	char names[64] = "";
	size_t length = 0;
	int i;

	for (i = 0; i < ARRAY_SIZE(sources); i++)
		if (sources[i]->bit & chosen)
			length += scnprintf(names + length, sizeof(names) - length, "%s%s",
					    length ? "," : "", sources[i]->name);
	if (chosen)
		kbarman_header_fact(session->capture, "sources", "%s", names);
}

/* ---- all CPUs ---- */

static bool source_runs(const struct kbarman_source *source, const struct kbarman_session *session,
			bool begun)
{
	return source_is_enabled(source, session) && (begun || source->start || source->probes);
}

/* The probes that @session attaches, and how many. */
static const struct kbarman_probe *source_probes(const struct kbarman_source *source,
						 const struct kbarman_session *session,
						 unsigned int *count)
{
	*count = source->group ? source->nr_probes / source->nr_groups : source->nr_probes;
	return source->probes + (source->group ? source->group(session) * *count : 0);
}

static int source_start(const struct kbarman_source *source, struct kbarman_session *session)
{
	const struct kbarman_probe *probes;
	unsigned int count;

	if (source->start)
		return source->start(session);
	probes = source_probes(source, session, &count);
	return kbarman_probes_attach(probes, count, kbarman_probe_data(session));
}

static void source_stop(const struct kbarman_source *source, struct kbarman_session *session)
{
	const struct kbarman_probe *probes;
	unsigned int count;

	if (source->stop)
		source->stop(session);
	if (source->start)
		return;
	probes = source_probes(source, session, &count);
	kbarman_probes_detach(probes, count, kbarman_probe_data(session));
}

/*
 * Stop the sources sources[0 .. count), last one first. A grace period takes some 10 ms, so they
 * share one.
 */
static void sources_detach(struct kbarman_session *session, int count, bool begun)
{
	int i;

	for (i = count - 1; i >= 0; i--)
		if (source_runs(sources[i], session, begun))
			source_stop(sources[i], session);
	kbarman_probes_wait();
	for (i = count - 1; i >= 0; i--)
		if (source_runs(sources[i], session, begun) && sources[i]->end)
			sources[i]->end(session);
}

int kbarman_sources_attach(struct kbarman_session *session)
{
	int i, error;

	for (i = 0; i < ARRAY_SIZE(sources); i++) {
		if (!source_is_enabled(sources[i], session))
			continue;
		error = source_start(sources[i], session);
		if (error) {
			sources_detach(session, i, false);
			return error;
		}
	}
	return 0;
}

void kbarman_sources_begin(struct kbarman_session *session)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(sources); i++)
		if (source_is_enabled(sources[i], session) && sources[i]->begin)
			sources[i]->begin(session);
}

void kbarman_sources_detach(struct kbarman_session *session)
{
	sources_detach(session, ARRAY_SIZE(sources), true);
}

void kbarman_sources_tell_ends(struct kbarman_session *session)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(sources); i++)
		if (source_is_enabled(sources[i], session) && sources[i]->tell)
			sources[i]->tell(session);
}

/* ---- one CPU ---- */

void kbarman_sources_stop_cpu(struct kbarman_session *session, int cpu)
{
	int i;

	for (i = ARRAY_SIZE(sources) - 1; i >= 0; i--)
		if (source_is_enabled(sources[i], session) && sources[i]->cpu_stop)
			sources[i]->cpu_stop(session, cpu);
}

int kbarman_sources_prepare_cpu(struct kbarman_session *session, int cpu,
				struct kbarman_start *report)
{
	int i, error;

	for (i = 0; i < ARRAY_SIZE(sources); i++) {
		if (!source_is_enabled(sources[i], session) || !sources[i]->cpu_prepare)
			continue;
		error = sources[i]->cpu_prepare(session, cpu, report);
		if (error) {
			kbarman_sources_stop_cpu(session, cpu);
			return error;
		}
	}
	return 0;
}

void kbarman_sources_start_cpu(struct kbarman_session *session, int cpu)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(sources); i++)
		if (source_is_enabled(sources[i], session) && sources[i]->cpu_start)
			sources[i]->cpu_start(session, cpu);
}

void kbarman_sources_begin_here(struct kbarman_cpu *here)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(sources); i++)
		if (source_is_enabled(sources[i], here->session) && sources[i]->here_begin)
			sources[i]->here_begin(here);
}

void kbarman_sources_last_cpu(struct kbarman_session *session, int cpu)
{
	int i;

	for (i = ARRAY_SIZE(sources) - 1; i >= 0; i--)
		if (source_is_enabled(sources[i], session) && sources[i]->cpu_last)
			sources[i]->cpu_last(session, cpu);
}

void kbarman_sources_cpu_goes(struct kbarman_session *session)
{
	int i;

	for (i = ARRAY_SIZE(sources) - 1; i >= 0; i--)
		if (sources[i]->cpu_goes)
			sources[i]->cpu_goes(session);
}
