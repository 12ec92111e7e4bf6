// SPDX-License-Identifier: GPL-2.0-only
#include <linux/string.h>

#include "tracepoint.h"

struct search {
	const char *name;
	struct tracepoint *found;
};

static void compare(struct tracepoint *tracepoint, void *context)
{
	struct search *search = context;

	if (!strcmp(tracepoint->name, search->name))
		search->found = tracepoint;
}

static int attach(struct kbarman_probe *probe)
{
	struct search search = { .name = probe->name };
	int error;

	for_each_kernel_tracepoint(compare, &search);
	if (!search.found)
		return -ENOENT;
	probe->iterator = search.found->iterator;
	error = tracepoint_probe_register_prio(search.found, probe->function, NULL,
					       TRACEPOINT_DEFAULT_PRIO + probe->early);
	if (!error)
		probe->tracepoint = search.found;
	return error;
}

int kbarman_probes_attach(struct kbarman_probe *probes, unsigned int count)
{
	unsigned int i;
	int error;

	for (i = 0; i < count; i++) {
		error = attach(&probes[i]);
		if (error) {
			kbarman_probes_detach(probes, count);
			return error;
		}
	}
	return 0;
}

void kbarman_probes_detach(struct kbarman_probe *probes, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++) {
		if (!probes[i].tracepoint)
			continue;
		tracepoint_probe_unregister(probes[i].tracepoint, probes[i].function, NULL);
		probes[i].tracepoint = NULL;
	}
	tracepoint_synchronize_unregister();
}
