// SPDX-License-Identifier: GPL-2.0-only
/* Between 5.10 and 6.1 Linux got the tracepoint cpu_idle_miss. */
#include <trace/events/power.h>

static void probe(void *data, unsigned int cpu, unsigned int state, bool below)
{
}

static __maybe_unused void compat(void)
{
	check_trace_callback_type_cpu_idle_miss(probe);
}
