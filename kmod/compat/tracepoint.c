// SPDX-License-Identifier: GPL-2.0-only
#include <linux/rcupdate.h>
#include <linux/string.h>

#include "tracepoint.h"

static void probe_compare(struct tracepoint *tracepoint, void *context)
{
	struct kbarman_probe *probe = context;

	if (!strcmp(tracepoint->name, probe->name))
		probe->tracepoint = tracepoint;
}

bool kbarman_probes_find(struct kbarman_probe *probes, unsigned int count)
{
	bool all = true;
	unsigned int i;

	for (i = 0; i < count; i++) {
		for_each_kernel_tracepoint(probe_compare, &probes[i]);
		all = all && (probes[i].tracepoint || probes[i].optional);
	}
	return all;
}

static int probe_attach(const struct kbarman_probe *probe, void *data)
{
	if (!probe->tracepoint)
		return probe->optional ? 0 : -ENOENT;
	return tracepoint_probe_register_prio(probe->tracepoint, probe->function, data,
					      TRACEPOINT_DEFAULT_PRIO + probe->early);
}

int kbarman_probes_attach(const struct kbarman_probe *probes, unsigned int count, void *data)
{
	unsigned int i;
	int error;

	for (i = 0; i < count; i++) {
		error = probe_attach(&probes[i], data);
		if (error) {
			kbarman_probes_detach(probes, i, data);
			return error;
		}
	}
	return 0;
}

void kbarman_probes_detach(const struct kbarman_probe *probes, unsigned int count, void *data)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		if (probes[i].tracepoint)
			tracepoint_probe_unregister(probes[i].tracepoint, probes[i].function, data);
}

void kbarman_probes_wait(void)
{
	tracepoint_synchronize_unregister();
	synchronize_rcu();
}
