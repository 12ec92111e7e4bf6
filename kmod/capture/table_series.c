// SPDX-License-Identifier: GPL-2.0-only
/*
 * Custom charts and their series. The header says once how many rows there are, so all of them are
 * there from the start, and a row gets its name when a program asks for a series. There are as
 * many rows of charts as of series.
 */
#include <linux/spinlock.h>
#include <linux/string.h>

#include "capture/capture.h"
#include "capture/rows.h"
#include "capture/tables.h"
#include "ring/record.h"

#define ONE	0x3ff0000000000000ULL	/* the double 1.0 */

static u32 *chart_count(struct kbarman_capture *capture)
{
	return capture->header + capture->layout.charts;
}

static struct bm_protocol_header_custom_chart *chart_row(struct kbarman_capture *capture, u32 row)
{
	return (struct bm_protocol_header_custom_chart *)(chart_count(capture) + 1) + row;
}

static struct bm_protocol_header_custom_chart_series *series_row(struct kbarman_capture *capture,
								 u32 row)
{
	return (struct bm_protocol_header_custom_chart_series *)
		       chart_row(capture, capture->layout.max_series) + row;
}

/* What is asked for, with its four texts. */
enum { CHART, NAME, UNITS, DESCRIPTION, TEXTS };

struct wanted {
	const struct kbarman_mark_series *series;
	struct kbarman_text texts[TEXTS];
};

static s64 chart_find(struct kbarman_capture *capture, s64 name)
{
	u32 next = *kbarman_rows_bucket(&capture->charts, name, 0);

	while (next && chart_row(capture, next - 1)->name_ptr != name)
		next = capture->charts.next[next - 1];
	return (s64)next - 1;
}

static s64 series_find(struct kbarman_capture *capture, s64 chart, s64 name)
{
	u32 next = *kbarman_rows_bucket(&capture->series, chart, name);

	for (; next; next = capture->series.next[next - 1])
		if (series_row(capture, next - 1)->chart_index == chart &&
		    series_row(capture, next - 1)->name_ptr == name)
			break;
	return (s64)next - 1;
}

/* The row of that series, or -ENOENT. */
static s64 series_look_up(struct kbarman_capture *capture, const struct wanted *wanted)
{
	s64 chart = kbarman_strings_find(&capture->strings, &wanted->texts[CHART]);
	s64 name = kbarman_strings_find(&capture->strings, &wanted->texts[NAME]);
	s64 row = -1;

	if (chart >= 0 && name >= 0)
		chart = chart_find(capture, chart);
	if (chart >= 0 && name >= 0)
		row = series_find(capture, chart, name);
	return row >= 0 ? row : -ENOENT;
}

/* Intern all texts or none. @offsets: where each of them is. */
static int series_intern_texts(struct kbarman_capture *capture, u8 payer,
			       const struct wanted *wanted, s64 offsets[TEXTS])
{
	u32 units = 0;
	int i;

	/* If one text does not fit, a table that only grows would keep those before it. */
	for (i = 0; i < TEXTS; i++)
		if (kbarman_strings_find(&capture->strings, &wanted->texts[i]) < 0)
			units += kbarman_strings_units(&capture->strings,
						       wanted->texts[i].length);
	if (!kbarman_strings_has_room(&capture->strings, units + KBARMAN_END_UNITS)) {
		capture->missed[KBARMAN_MISSED_STRING]++;
		return -ENOSPC;
	}
	for (i = 0; i < TEXTS; i++) {
		offsets[i] = kbarman_intern(capture, &wanted->texts[i], payer);
		if (offsets[i] < 0)
			goto err_strings;
	}
	return 0;

err_strings:
	while (i--)
		kbarman_forget(capture, offsets[i]);
	return -ENOSPC;
}

/* The chart's row. If no chart has that name, it gets a new row; the caller knows of one. */
static u32 chart_add(struct kbarman_capture *capture, u32 name,
		     const struct kbarman_mark_series *wanted)
{
	s64 row = chart_find(capture, name);
	struct bm_protocol_header_custom_chart *chart;

	if (row >= 0)
		return row;
	row = capture->nr_charts++;
	chart = chart_row(capture, row);
	chart->series_composition = wanted->series_composition;
	chart->rendering_type = wanted->rendering_type;
	chart->boolean_flags = wanted->chart_flags;
	smp_wmb();	/* what has a name is complete */
	chart->name_ptr = name;
	kbarman_rows_link(&capture->charts, kbarman_rows_bucket(&capture->charts, name, 0), row);
	return row;
}

/* Make a series. The caller knows that there is a row for it, and one for its chart. */
static u32 series_fill(struct kbarman_capture *capture, const s64 offsets[TEXTS],
		       const struct kbarman_mark_series *wanted)
{
	u32 chart = chart_add(capture, offsets[CHART], wanted), row = capture->nr_series;
	struct bm_protocol_header_custom_chart_series *series = series_row(capture, row);

	series->chart_index = chart;
	series->units_ptr = offsets[UNITS];
	series->description_ptr = offsets[DESCRIPTION];
	series->colour = wanted->colour;
	series->multiplier = wanted->multiplier;
	series->series_class = wanted->series_class;
	series->display = wanted->display;
	smp_wmb();	/* what has a name is complete */
	series->name_ptr = offsets[NAME];
	kbarman_rows_link(&capture->series,
			  kbarman_rows_bucket(&capture->series, chart, offsets[NAME]), row);
	WRITE_ONCE(capture->nr_series, row + 1);
	return row;
}

static s64 series_add(struct kbarman_capture *capture, u32 user, const struct wanted *wanted)
{
	s64 row = series_look_up(capture, wanted), offsets[TEXTS];
	bool low;
	u8 payer;

	if (row >= 0)
		return row;
	payer = kbarman_shares_payer(&capture->shares, user);
	if (capture->nr_series >= capture->layout.max_series ||
	    capture->nr_charts >= capture->layout.max_series ||
	    !kbarman_shares_take(&capture->shares, payer, KBARMAN_SHARE_SERIES, 1, &low)) {
		capture->missed[KBARMAN_MISSED_SERIES]++;
		return -ENOSPC;
	}
	if (series_intern_texts(capture, payer, wanted, offsets)) {
		kbarman_shares_give(&capture->shares, payer, KBARMAN_SHARE_SERIES, 1);
		return -ENOSPC;
	}
	return series_fill(capture, offsets, wanted->series);
}

int kbarman_tables_add_series(struct kbarman_capture *capture, u32 user,
			      const struct kbarman_mark_series *series)
{
	const char *texts[TEXTS] = {
		[CHART] = series->chart,
		[NAME] = series->name,
		[UNITS] = series->units,
		[DESCRIPTION] = series->description,
	};
	struct wanted wanted = { .series = series };
	unsigned long flags;
	int i, row;

	for (i = 0; i < TEXTS; i++)
		wanted.texts[i] = kbarman_strings_text(&capture->strings, texts[i],
						       strlen(texts[i]));
	raw_spin_lock_irqsave(&capture->lock, flags);
	row = series_add(capture, user, &wanted);
	raw_spin_unlock_irqrestore(&capture->lock, flags);
	return row;
}

/* A series of the module's own, and the source whose records it has; 0: any. */
struct own_series {
	u32 source;
	struct kbarman_mark_series series;
};

/* A chart with the name of its series. */
#define TITLE(title, unit, text)				\
	.chart = title,						\
	.name = title,						\
	.units = unit,						\
	.description = text

#define BAR							\
	.colour = BM_SERIES_COLOUR_AUTOMATIC,			\
	.multiplier = ONE,					\
	.series_composition = BM_SERIES_STACKED,		\
	.rendering_type = BM_RENDERING_BAR,			\
	.chart_flags = BM_CHART_PER_CPU

#define INCIDENTS						\
	BAR,							\
	.series_class = BM_SERIES_CLASS_INCIDENT,		\
	.display = BM_SERIES_DISPLAY_ACCUMULATE

/* Each has a chart of its own, so charts and series have the same numbers. */
static const struct own_series own[KBARMAN_SERIES_COUNT] = {
	[KBARMAN_SERIES_LOST] = { 0, {
		INCIDENTS,
		.chart = "kbarman",
		.name = "Lost records",
		.units = "records",
		.description = "Records that found no room in the ring",
	} },
	[KBARMAN_SERIES_STOPPED] = { 0, {
		BAR,
		.series_class = BM_SERIES_CLASS_ABSOLUTE,
		.display = BM_SERIES_DISPLAY_MAXIMUM,
		.chart = "kbarman counters",
		.name = "Counters stopped",
		.units = "reason",
		.description = "0: they count; 1: throttled; 2: off the PMU; 3: CPU offline",
	} },
	[KBARMAN_SERIES_WAKEUPS] = { KBARMAN_SOURCE_WAKE, {
		INCIDENTS, TITLE("Wakeups", "wakeups",
				 "Tasks that were woken, by the CPU that woke them")
	} },
	[KBARMAN_SERIES_MIGRATIONS] = { KBARMAN_SOURCE_MIGRATE, {
		INCIDENTS, TITLE("Migrations", "migrations",
				 "Tasks that went to another CPU, by the CPU that moved them")
	} },
	[KBARMAN_SERIES_INTERRUPTS] = { KBARMAN_SOURCE_IRQ, {
		INCIDENTS, TITLE("Interrupts", "interrupts", "Handlers of interrupts that ran")
	} },
	[KBARMAN_SERIES_SOFTIRQS] = { KBARMAN_SOURCE_SOFTIRQ, {
		INCIDENTS, TITLE("Softirqs", "softirqs", "Softirqs that ran")
	} },
	[KBARMAN_SERIES_FREQUENCY] = { KBARMAN_SOURCE_FREQ, {
		.colour = BM_SERIES_COLOUR_AUTOMATIC,
		.multiplier = ONE,
		.series_class = BM_SERIES_CLASS_ABSOLUTE,
		.display = BM_SERIES_DISPLAY_AVERAGE,
		.series_composition = BM_SERIES_OVERLAY,
		.rendering_type = BM_RENDERING_LINE,
		.chart_flags = BM_CHART_PER_CPU,
		TITLE("CPU frequency", "kHz", "Frequency that was set")
	} },
	[KBARMAN_SERIES_IDLE_MISSES] = { KBARMAN_SOURCE_FREQ, {
		INCIDENTS, TITLE("Idle misses", "misses",
				 "Idle states that were too deep, or not deep enough")
	} },
	[KBARMAN_SERIES_SYSCALLS] = { KBARMAN_SOURCE_SYSCALLS, {
		INCIDENTS, TITLE("System calls", "calls", "System calls that ended")
	} },
	[KBARMAN_SERIES_FAULTS] = { KBARMAN_SOURCE_FAULTS, {
		INCIDENTS, TITLE("Page faults", "faults", "Page faults that ended")
	} },
	[KBARMAN_SERIES_BLOCK] = { KBARMAN_SOURCE_BLOCK, {
		INCIDENTS, TITLE("Block requests", "requests", "Requests to block devices that ended")
	} },
};

/* A row that stays without a name. */
static void series_skip(struct kbarman_capture *capture)
{
	unsigned long flags;
	bool low;

	raw_spin_lock_irqsave(&capture->lock, flags);
	kbarman_shares_take(&capture->shares,
			    kbarman_shares_payer(&capture->shares, KBARMAN_USER_ROOT),
			    KBARMAN_SHARE_SERIES, 1, &low);
	capture->nr_charts++;
	WRITE_ONCE(capture->nr_series, capture->nr_series + 1);
	raw_spin_unlock_irqrestore(&capture->lock, flags);
}

void kbarman_series_reset(struct kbarman_capture *capture)
{
	u32 row, none = capture->no_string;

	kbarman_rows_reset(&capture->charts);
	kbarman_rows_reset(&capture->series);
	capture->nr_charts = 0;
	capture->nr_series = 0;
	for (row = 0; row < capture->layout.max_series; row++) {
		*chart_row(capture, row) = (struct bm_protocol_header_custom_chart) {
			.name_ptr = none,
			.series_composition = BM_SERIES_STACKED,
			.rendering_type = BM_RENDERING_LINE,
		};
		*series_row(capture, row) = (struct bm_protocol_header_custom_chart_series) {
			.name_ptr = none,
			.units_ptr = none,
			.description_ptr = none,
			.colour = BM_SERIES_COLOUR_AUTOMATIC,
			.multiplier = ONE,
			.series_class = BM_SERIES_CLASS_ABSOLUTE,
			.display = BM_SERIES_DISPLAY_MAXIMUM,
		};
	}
	*chart_count(capture) = capture->layout.max_series;
	for (row = 0; row < KBARMAN_SERIES_COUNT; row++)
		if (!own[row].source || own[row].source & capture->sources)
			kbarman_tables_add_series(capture, KBARMAN_USER_ROOT, &own[row].series);
		else
			series_skip(capture);
}
