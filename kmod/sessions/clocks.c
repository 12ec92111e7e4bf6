// SPDX-License-Identifier: GPL-2.0-only
#include "compat/mutex.h"
#include "ring/clock.h"
#include "sessions/clocks.h"

static DEFINE_MUTEX(clocks_lock);
static unsigned int clocks_held;	/* how often. Protected by clocks_lock */

void kbarman_clocks_hold(void)
{
	mutex_lock(&clocks_lock);
	if (!clocks_held++)
		kbarman_clock_choose();
	mutex_unlock(&clocks_lock);
}

void kbarman_clocks_release(void)
{
	mutex_lock(&clocks_lock);
	clocks_held--;
	mutex_unlock(&clocks_lock);
}
