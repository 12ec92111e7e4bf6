// SPDX-License-Identifier: GPL-2.0-only
#include <linux/smp.h>

#include "gates.h"
#include "here.h"

struct gate_change {
	void *data;
	u32 source;
};

static void gate_open(void *data)
{
	const struct gate_change *change = data;

	kbarman_here(change->data)->gates |= change->source;
}

static void gate_close(void *data)
{
	const struct gate_change *change = data;

	kbarman_here(change->data)->gates &= ~change->source;
}

int kbarman_gates_open(struct kbarman_session *session, int cpu, u32 source)
{
	struct gate_change change = { .data = kbarman_probe_data(session), .source = source };

	return smp_call_function_single(cpu, gate_open, &change, true);
}

void kbarman_gates_close(struct kbarman_session *session, int cpu, u32 source)
{
	struct gate_change change = { .data = kbarman_probe_data(session), .source = source };

	/* On a CPU that is offline nothing is under way. */
	if (smp_call_function_single(cpu, gate_close, &change, true))
		per_cpu_ptr(session->each, cpu)->gates &= ~source;
}
