// SPDX-License-Identifier: MIT
/*
 * A machine that is stopped while it records: for blackbox.py, which makes $BLACKBOX. One session has been stopped, and
 * its maps are in files there: map.CPU. Another one runs. When all is so, there is a file `ready`.
 */
#include <sys/prctl.h>

#include "lib.h"

static void save(const char *name, const void *bytes, size_t length)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", getenv("BLACKBOX"), name);
	file = fopen(path, "w");
	if (!file || fwrite(bytes, 1, length, file) != length || fclose(file))
		lost("%s", path);
}

int main(void)
{
	const struct kbarman_configure all = {
		.sources = KBARMAN_SOURCE_SCHED | KBARMAN_SOURCE_IDLE | KBARMAN_SOURCE_MAPS,
		.ring_bytes = 1 << 20,
	};
	int stopped = device_open_free(), running;
	struct kbarman_query q;
	uint32_t cpu;

	if (configure(stopped, all) || start(stopped))
		lost("no session");
	ping_pong(0, 1000);
	stop(stopped);
	q = query(stopped);
	for (cpu = 0; cpu < q.nr_cpus; cpu++) {
		const void *map = try_map(stopped, &q, cpu);
		char name[32];

		snprintf(name, sizeof(name), "map.%u", cpu);
		if (map != MAP_FAILED)
			save(name, map, q.map_bytes);
	}
	running = device_open();
	if (configure(running, all) || start(running))
		lost("no second session");
	if (!fork()) {
		prctl(PR_SET_NAME, "last_work");
		for (;;)
			ping_pong(0, 1000);
	}
	/* Its last records are not those of the start. */
	while (stats(running, 0).written < 100000)
		usleep(10000);
	save("ready", "", 0);
	for (;;)
		pause();
}
