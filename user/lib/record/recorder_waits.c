// SPDX-License-Identifier: MIT
/*
 * Switches lose their call chains where the wait was short (short_waits.h), before the stacks of the
 * others are unwound.
 */
#include <errno.h>

#include "record/recorder_inside.h"
#include "record/short_waits.h"

#define WAITING_MAX	((size_t)64 << 20)	/* bytes of records */

int kb_recorder_off_cpu_min(struct kb_recorder *r, uint64_t min_ns, struct kb_error *err)
{
	uint64_t ticks = (uint64_t)((double)min_ns * (double)r->clock_hz / 1e9);
	int ret;

	ret = kb_short_waits_create(&r->short_waits, ticks, r->nr_cpus, WAITING_MAX);
	if (ret)
		return kb_error_set(err, ret, KB_NO_OFFSET, "out of memory");
	ret = recorder_number_fact(r, min_ns, "off_cpu_min");
	return ret ? recorder_write_failed(err, ret) : 0;
}

/* Pass on what need not wait any more. */
static int go_on(struct kb_recorder *r, uint64_t now)
{
	struct kb_raw_record record;
	int ret = 0;

	while (!ret && kb_short_waits_first(r->short_waits, now, &record)) {
		ret = recorder_stacks_write(r, &record);
		if (!ret)
			kb_short_waits_remove_first(r->short_waits);
	}
	return ret;
}

int recorder_waits_write(struct kb_recorder *r, const struct kb_raw_record *record)
{
	if (!r->short_waits)
		return recorder_stacks_write(r, record);
	return kb_short_waits_add(r->short_waits, record) ?: go_on(r, record->timestamp);
}

int recorder_waits_go_on(struct kb_recorder *r, uint64_t now, struct kb_error *err)
{
	int ret = r->short_waits ? go_on(r, now) : 0;

	return ret ? recorder_write_failed(err, ret) : 0;
}

int recorder_waits_facts(struct kb_recorder *r, struct kb_error *err)
{
	int ret;

	if (!r->short_waits)
		return 0;
	r->totals.short_waits = kb_short_waits_count(r->short_waits);
	ret = recorder_number_fact(r, r->totals.short_waits, "off_cpu_short");
	return ret ? recorder_write_failed(err, ret) : 0;
}

void recorder_waits_destroy(struct kb_recorder *r)
{
	kb_short_waits_destroy(r->short_waits);
}
