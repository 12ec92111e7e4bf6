// SPDX-License-Identifier: MIT
/*
 * A capture begins with a moment and lasts until `after` behind it. Moments up to there are part of it.
 * Those that come behind that wait until it is written, and then begin the next one, if they are not
 * too soon. Moments come nearly in order: one that is older than the first of its capture, which holds
 * the time before it as well, is part of it, too.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "trigger/moments.h"

#define WAITING_MAX	4096U

void kb_moments_init(struct kb_moments *moments, uint64_t after_ns, uint64_t every_ns)
{
	*moments = (struct kb_moments){ .after_ns = after_ns, .every_ns = every_ns };
}

void kb_moments_release(struct kb_moments *moments)
{
	free(moments->waiting);
	moments->waiting = NULL;
	moments->nr_waiting = 0;
}

/* @ns behind @from, without overflow. */
static int64_t behind(int64_t from, uint64_t ns)
{
	return ns > (uint64_t)(INT64_MAX - from) ? INT64_MAX : from + (int64_t)ns;
}

static void suppress(struct kb_moments *moments, uint64_t nr)
{
	moments->totals.suppressed += nr;
	moments->suppressed_since += nr;
}

/* Begins a capture, if it is not too soon. */
static int begin(struct kb_moments *moments, const struct kb_fired *fired)
{
	if (moments->has_last && fired->ns < behind(moments->last, moments->every_ns)) {
		suppress(moments, 1);
		return 0;
	}
	moments->rows[0] = *fired;
	moments->nr = 1;
	moments->further = 0;
	return 1;
}

static int wait_for_end(struct kb_moments *moments, const struct kb_fired *fired)
{
	/* It will come too soon whatever happens: no need to remember it. */
	if (fired->ns < behind(moments->rows[0].ns, moments->every_ns) ||
	    moments->nr_waiting == WAITING_MAX) {
		suppress(moments, 1);
		return 0;
	}
	if (!KB_ARRAY_ROOM(moments->waiting, moments->room, (size_t)moments->nr_waiting + 1)) {
		moments->totals.failed++;
		return -ENOMEM;
	}
	moments->waiting[moments->nr_waiting++] = *fired;
	return 0;
}

int kb_moments_add(struct kb_moments *moments, const struct kb_fired *fired)
{
	moments->totals.fired++;
	if (!moments->nr)
		return begin(moments, fired);
	if (fired->ns > behind(moments->rows[0].ns, moments->after_ns))
		return wait_for_end(moments, fired);
	if (moments->nr < KB_MOMENTS_MAX)
		moments->rows[moments->nr++] = *fired;
	else
		moments->further++;
	return 0;
}

void kb_moments_add_unknown(struct kb_moments *moments, uint64_t nr)
{
	moments->totals.fired += nr;
	suppress(moments, nr);
}

bool kb_moments_due(const struct kb_moments *moments, int64_t *ns)
{
	if (!moments->nr)
		return false;
	*ns = behind(moments->rows[0].ns, moments->after_ns);
	return true;
}

/* Those that waited go their ways. */
static int take_waiting(struct kb_moments *moments)
{
	struct kb_fired *waiting = moments->waiting;
	uint32_t nr = moments->nr_waiting;
	int begun = 0;

	moments->waiting = NULL;
	moments->nr_waiting = moments->room = 0;
	moments->totals.fired -= nr;		/* they are counted again */
	for (uint32_t i = 0; i < nr; i++)
		begun |= kb_moments_add(moments, &waiting[i]) > 0;
	free(waiting);
	return begun;
}

int kb_moments_done(struct kb_moments *moments, bool written)
{
	uint64_t nr = moments->nr + moments->further;

	if (!moments->nr)
		return 0;
	/* A disk that takes nothing is not tried more often than one that takes everything. */
	moments->has_last = true;
	moments->last = moments->rows[0].ns;
	if (written) {
		moments->totals.kept += nr;
		moments->totals.captures++;
		moments->suppressed_since = 0;
	} else {
		moments->totals.failed += nr;
	}
	moments->nr = 0;
	moments->further = 0;
	return take_waiting(moments);
}
