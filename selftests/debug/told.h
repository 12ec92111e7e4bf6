/* SPDX-License-Identifier: MIT */
/*
 * For programs that go on until they are told to end, beside others (soak.sh): SIGUSR1 says
 * that half of the time is over, SIGTERM all of it. What a program counts has to grow in both
 * halves: one that hangs or starves is not one that went on.
 */
#ifndef KBARMAN_TOLD_H
#define KBARMAN_TOLD_H

#include <signal.h>

#include "lib.h"
#include "lib/tap.h"

static volatile sig_atomic_t told_to_end;
static const unsigned long *told_count;
static unsigned long told_at_half;

static inline void told(int number)
{
	if (number == SIGUSR1)
		told_at_half = *told_count;
	else
		told_to_end = 1;
}

static inline void told_begin(const unsigned long *count)
{
	told_count = count;
	signal(SIGUSR1, told);
	signal(SIGTERM, told);
}

/* As configure(), when it is our turn: -EBUSY only if the end comes first. */
static inline int told_configure(int fd, struct kbarman_configure config)
{
	int error;

	while ((error = configure(fd, config)) == -EBUSY && !told_to_end)
		usleep(2000);
	return error;
}

/* The last promise: the module is free then, where there are no others. */
static inline int told_done(void)
{
	if (!told_to_end) {
		tap_is(module_unload(), 0, "nothing_holds_the_module_afterwards");
		return tap_done();
	}
	tap_note("%lu counted at half time, %lu at the end", told_at_half, *told_count);
	tap_ok(told_at_half && *told_count > told_at_half, "it_went_on_to_the_end");
	return tap_done();
}

#endif
