// SPDX-License-Identifier: MIT
#include "analysis/facts/counted.h"
#include "base/text/json.h"
#include "cli/base/cli.h"
#include "cli/session/per_core.h"

static unsigned int cpus_that_count(const struct kb_mapped *mapped)
{
	unsigned int nr = 0;

	for (uint32_t i = 0; i < mapped->header->config_constants.max_cores; i++)
		nr += kb_mapped_count(&mapped->pmus[i].num_counters) > 0;
	return nr;
}

static int say(const struct kb_mapped *mapped)
{
	/* What kb_uncounted_read() and kb_unsampled_read() look at. */
	const struct kb_header header = {
		.strings = mapped->strings,
		.string_table_length = kb_mapped_count(&mapped->header->string_table_length),
		.max_cores = mapped->header->config_constants.max_cores,
	};
	struct kb_uncounted *rows;
	uint32_t nr;

	if (kb_uncounted_read(&header, &rows, &nr))
		return cli_fail("out of memory");
	for (uint32_t i = 0; i < nr; i++)
		cli_warn("CPU %s can't count event '%s'", rows[i].cpus, rows[i].name);
	kb_uncounted_free(rows, nr);
	if (kb_unsampled_read(&header, &rows, &nr))
		return cli_fail("out of memory");
	for (uint32_t i = 0; i < nr; i++)
		cli_warn("CPU %s takes no samples: put an event of its PMU beside '%s'",
			 rows[i].cpus, rows[i].name);
	kb_uncounted_free(rows, nr);
	return cpus_that_count(mapped) ? 0 :
		cli_fail("no CPU can count any of the events: 'kbarman list' shows which there are");
}

int per_core_say(struct kb_device *device)
{
	struct kb_mapped mapped;
	struct kbarman_query query;
	struct kb_error err;
	unsigned int cpu;
	int ret;

	if (kb_device_query(device, &query, &err))
		return cli_fail_error(&err);
	/* All maps have the header. A CPU that is not recorded has no map. */
	for (cpu = 0; cpu < query.nr_cpus; cpu++) {
		if (kb_device_map(device, cpu, &mapped, &err))
			continue;
		ret = say(&mapped);
		kb_mapped_unmap(&mapped);
		return ret;
	}
	return 0;
}

void per_core_json(struct kb_json *json, const char *kind, const struct kb_uncounted *rows,
		   uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		kb_json_begin(json, kind);
		kb_json_string(json, "event", rows[i].name);
		kb_json_string(json, "cpus", rows[i].cpus);
		kb_json_end(json);
	}
}
