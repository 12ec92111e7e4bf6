// SPDX-License-Identifier: MIT
/*
 * Switches lose their call chains where the wait was short (short_waits.h), before the stacks of the
 * others are unwound.
 */
#include <errno.h>

#include "record/recorder/inside.h"
#include "record/recorder/short_waits.h"

#define WAITING_MAX	((size_t)64 << 20)	/* bytes of records */

int kb_recorder_off_cpu_min(struct kb_recorder *recorder, uint64_t min_ns, struct kb_error *err)
{
	uint64_t ticks = (uint64_t)((double)min_ns * (double)recorder->clock_hz / 1e9);
	int ret;

	ret = kb_short_waits_create(&recorder->short_waits, ticks, recorder->nr_cpus, WAITING_MAX);
	if (ret)
		return kb_error_set(err, ret, KB_NO_OFFSET, "out of memory");
	ret = recorder_number_fact(recorder, min_ns, "off_cpu_min");
	return ret ? recorder_write_failed(err, ret) : 0;
}

/* Pass on what need not wait any more. */
static int go_on(struct kb_recorder *recorder, uint64_t now)
{
	struct kb_raw_record record;
	int ret = 0;

	while (!ret && kb_short_waits_first(recorder->short_waits, now, &record)) {
		ret = recorder_stacks_write(recorder, &record);
		if (!ret)
			kb_short_waits_remove_first(recorder->short_waits);
	}
	return ret;
}

int recorder_waits_write(struct kb_recorder *recorder, const struct kb_raw_record *record)
{
	if (!recorder->short_waits)
		return recorder_stacks_write(recorder, record);
	return kb_short_waits_add(recorder->short_waits, record)
		       ?: go_on(recorder, record->timestamp);
}

int recorder_waits_go_on(struct kb_recorder *recorder, uint64_t now, struct kb_error *err)
{
	int ret = recorder->short_waits ? go_on(recorder, now) : 0;

	return ret ? recorder_write_failed(err, ret) : 0;
}

const struct kb_waiting *recorder_waits_waiting(const struct kb_recorder *recorder)
{
	return recorder->short_waits ? kb_short_waits_records(recorder->short_waits) : NULL;
}

int recorder_waits_facts(struct kb_recorder *recorder, struct kb_error *err)
{
	int ret;

	if (!recorder->short_waits)
		return 0;
	recorder->totals.short_waits = kb_short_waits_count(recorder->short_waits);
	ret = recorder_number_fact(recorder, recorder->totals.short_waits, "off_cpu_short");
	return ret ? recorder_write_failed(err, ret) : 0;
}

void recorder_waits_destroy(struct kb_recorder *recorder)
{
	kb_short_waits_destroy(recorder->short_waits);
}
