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

void kb_moments_init(struct kb_moments *m, uint64_t after_ns, uint64_t every_ns)
{
	*m = (struct kb_moments){ .after_ns = after_ns, .every_ns = every_ns };
}

void kb_moments_release(struct kb_moments *m)
{
	free(m->waiting);
	m->waiting = NULL;
	m->nr_waiting = 0;
}

/* @ns behind @from, without overflow. */
static int64_t behind(int64_t from, uint64_t ns)
{
	return ns > (uint64_t)(INT64_MAX - from) ? INT64_MAX : from + (int64_t)ns;
}

static void suppress(struct kb_moments *m, uint64_t nr)
{
	m->totals.suppressed += nr;
	m->suppressed_since += nr;
}

/* Begins a capture, if it is not too soon. */
static int begin(struct kb_moments *m, const struct kb_fired *fired)
{
	if (m->has_last && fired->ns < behind(m->last, m->every_ns)) {
		suppress(m, 1);
		return 0;
	}
	m->rows[0] = *fired;
	m->nr = 1;
	m->further = 0;
	return 1;
}

static int wait_for_end(struct kb_moments *m, const struct kb_fired *fired)
{
	/* It will come too soon whatever happens: no need to remember it. */
	if (fired->ns < behind(m->rows[0].ns, m->every_ns) || m->nr_waiting == WAITING_MAX) {
		suppress(m, 1);
		return 0;
	}
	if (!KB_ARRAY_ROOM(m->waiting, m->room, (size_t)m->nr_waiting + 1)) {
		m->totals.failed++;
		return -ENOMEM;
	}
	m->waiting[m->nr_waiting++] = *fired;
	return 0;
}

int kb_moments_add(struct kb_moments *m, const struct kb_fired *fired)
{
	m->totals.fired++;
	if (!m->nr)
		return begin(m, fired);
	if (fired->ns > behind(m->rows[0].ns, m->after_ns))
		return wait_for_end(m, fired);
	if (m->nr < KB_MOMENTS_MAX)
		m->rows[m->nr++] = *fired;
	else
		m->further++;
	return 0;
}

void kb_moments_add_unknown(struct kb_moments *m, uint64_t nr)
{
	m->totals.fired += nr;
	suppress(m, nr);
}

bool kb_moments_due(const struct kb_moments *m, int64_t *ns)
{
	if (!m->nr)
		return false;
	*ns = behind(m->rows[0].ns, m->after_ns);
	return true;
}

/* Those that waited go their ways. */
static int take_waiting(struct kb_moments *m)
{
	struct kb_fired *waiting = m->waiting;
	uint32_t nr = m->nr_waiting;
	int begun = 0;

	m->waiting = NULL;
	m->nr_waiting = m->room = 0;
	m->totals.fired -= nr;		/* they are counted again */
	for (uint32_t i = 0; i < nr; i++)
		begun |= kb_moments_add(m, &waiting[i]) > 0;
	free(waiting);
	return begun;
}

int kb_moments_done(struct kb_moments *m, bool written)
{
	uint64_t nr = m->nr + m->further;

	if (!m->nr)
		return 0;
	/* A disk that takes nothing is not tried more often than one that takes everything. */
	m->has_last = true;
	m->last = m->rows[0].ns;
	if (written) {
		m->totals.kept += nr;
		m->totals.captures++;
		m->suppressed_since = 0;
	} else {
		m->totals.failed += nr;
	}
	m->nr = 0;
	m->further = 0;
	return take_waiting(m);
}
