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

static struct tracepoint *find(const struct kbarman_probe *probe)
{
	struct search search = { .name = probe->name };

	for_each_kernel_tracepoint(compare, &search);
	return search.found;
}

bool kbarman_probes_exist(const struct kbarman_probe *probes, unsigned int count)
{
	while (count-- > 0)
		if (!find(&probes[count]))
			return false;
	return true;
}

static int attach(struct kbarman_probe *probe)
{
	struct tracepoint *found = find(probe);
	int error;

	if (!found)
		return -ENOENT;
	probe->iterator = found->iterator;
	error = tracepoint_probe_register_prio(found, probe->function, NULL,
					       TRACEPOINT_DEFAULT_PRIO + probe->early);
	if (!error)
		probe->tracepoint = found;
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
