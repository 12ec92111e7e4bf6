// SPDX-License-Identifier: MIT
/* See machines.h. The traces are written one after the other: readers put events in order. */
#include <errno.h>
#include <string.h>

#include "analysis/trace/inside.h"
#include "export/list.h"
#include "export/machines.h"
#include "format/barman/identity.h"

bool kb_machines_takes(const struct kb_export *format)
{
	return format == &kb_export_perfetto || format == &kb_export_chrome;
}

static const char *name_of(const struct kb_barman *barman, const char *file)
{
	const char *host = kb_barman_fact(barman, "host"), *slash = strrchr(file, '/');

	if (host && *host)
		return host;
	return slash && slash[1] ? slash + 1 : file;
}

/* A machine whose recording is in two captures would be two machines, which do the same. */
static int refuse_parts(const struct kb_machines *machines, const char *const *files, struct kb_error *err)
{
	struct barman_identity of_a, of_b;
	int ret;

	for (uint32_t i = 1; i < machines->nr; i++) {
		struct kb_barman *b = machines->traces[i]->barman;

		for (uint32_t of = 0; of < i; of++) {
			struct kb_barman *a = machines->traces[of]->barman;

			if (!barman_same_session(a, b))
				continue;
			ret = barman_identify(a, &of_a, err) ?: barman_identify(b, &of_b, err);
			if (ret)
				return ret;
			if (barman_is_same(&of_a, &of_b))
				return kb_error_set(err, -EINVAL, KB_NO_OFFSET,
						    "'%s' is the same capture as '%s': give one of them",
						    files[i], files[of]);
			return kb_error_set(err, -EINVAL, KB_NO_OFFSET,
					    "'%s' and '%s' are of one recording of %s: give one capture of "
					    "each machine", files[of], files[i], name_of(b, files[i]));
		}
	}
	return 0;
}

int kb_machines_read(struct kb_machines *machines, const char *const *files, struct kb_error *err)
{
	int64_t since = INT64_MAX;
	uint32_t i;
	int ret;

	if (machines->nr > KB_MACHINES_MAX)
		return kb_error_set(err, -EINVAL, KB_NO_OFFSET, "more than %u machines",
				    KB_MACHINES_MAX);
	ret = refuse_parts(machines, files, err);
	if (ret)
		return ret;
	for (i = 0; i < machines->nr; i++) {
		struct kb_machine *machine = &machines->machines[i];
		struct kb_barman *barman = machines->traces[i]->barman;

		*machine = (struct kb_machine){
			.number = i, .name = name_of(barman, files[i]),
			.first = i == 0, .last = i + 1 == machines->nr,
		};
		ret = kb_wall_read(&machine->wall, barman, err);
		if (ret)
			return ret;
		if (machine->wall.at < since)
			since = machine->wall.at;
	}
	for (i = 0; i < machines->nr; i++) {
		struct kb_machine *machine = &machines->machines[i];

		machine->since = since;
		if (machine->wall.has_end)
			barman_clock_set(machines->traces[i]->barman, machine->wall.ns,
					 machine->wall.ticks);
		machines->traces[i]->machine = machine;
	}
	return 0;
}

int kb_machines_run(const struct kb_machines *machines, const struct kb_export *format,
		    const struct kb_export_options *options, struct kb_out *out,
		    struct kb_error *err)
{
	struct kb_error now = { 0 };
	int ret, worst = 0;

	for (uint32_t i = 0; i < machines->nr; i++) {
		ret = kb_export_run(format, machines->traces[i], options, out, &now);
		if (ret && !worst && err)
			*err = now;
		if (ret < 0)
			return ret;
		worst |= ret;
	}
	return worst;
}

uint64_t kb_machines_error(const struct kb_machines *machines)
{
	uint64_t most = 0, second = 0;

	for (uint32_t i = 0; i < machines->nr; i++) {
		uint64_t error = machines->machines[i].wall.error;

		if (error == KB_WALL_UNKNOWN)
			return KB_WALL_UNKNOWN;
		if (error > most) {
			second = most;
			most = error;
		} else if (error > second) {
			second = error;
		}
	}
	return most + second;
}
