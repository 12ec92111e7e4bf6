// SPDX-License-Identifier: GPL-2.0-only
/* 6.1 says which fields of a sample have a value. Before, an address of 0 was one, too. */
#include <linux/perf_event.h>

static __maybe_unused bool compat(const struct perf_sample_data *data)
{
	return data->sample_flags & PERF_SAMPLE_ADDR;
}
