// SPDX-License-Identifier: MIT
/*
 * loads [TIMES]: the module comes and goes, 200 times, on a machine that has a lot to do:
 * hackbench with four groups, of twenty processes each, and one process that makes others without
 * end. Every other time it has recorded in between, and is asked to go while it still does.
 */
#include "lib/tap.h"
#include "noise.h"

/* NULL, or what went wrong. */
static const char *once(bool record)
{
	int fd;

	if (module_load())
		return "a load that failed";
	if (!record)
		return module_unload() ? "an unload that failed" : NULL;
	fd = device_open();
	if (configure(fd, (struct kbarman_configure) {
			.ring_bytes = 64 * KIB, .sources = KBARMAN_SOURCE_SCHED |
			KBARMAN_SOURCE_IDLE | KBARMAN_SOURCE_MAPS }) || start(fd))
		return "a session that does not start";
	usleep(20000);
	if (module_unload() != -EAGAIN)
		return "an unload in the middle of a session that was not refused";
	close(fd);
	return module_unload() ? "an unload after a session that failed" : NULL;
}

int main(int argc, char **argv)
{
	unsigned int i, times = argc > 1 ? atoi(argv[1]) : 200;
	const char *fault = NULL;
	struct noise noise = { .nr = 0 };

	module_unload();
	/* The noise has all that this leaves: the other CPU, and whenever this waits. */
	setpriority(PRIO_PROCESS, 0, -20);
	noise_hackbench(&noise, 4);
	noise_forks(&noise);
	for (i = 0; i < times && !fault; i++)
		fault = once(i % 2);
	noise_end(&noise);
	tap_note("%u times", i);
	if (!tap_ok(!fault, "module_comes_and_goes_under_load"))
		tap_note("%s, at the %uth time: errno %d", fault, i, errno);
	tap_ok(access(KBARMAN_DEVICE, F_OK) && access("/sys/module/kbarman", F_OK),
	       "nothing_is_left_of_it");
	module_unload();
	return tap_done();
}
