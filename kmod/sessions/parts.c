// SPDX-License-Identifier: GPL-2.0-only
/* What a session owns from its configure on: the capture, the rings, and what else it takes. */
#include <linux/lockdep.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "capture/capture.h"
#include "capture/storage.h"
#include "session.h"
#include "sessions/calls.h"
#include "sessions/chosen.h"
#include "sessions/rings.h"
#include "stacks/callchain.h"

struct kbarman_capture *kbarman_session_capture(struct kbarman_session *session)
{
	struct kbarman_capture *capture;

	spin_lock(&session->capture_lock);
	capture = session->capture;
	if (capture)
		kbarman_capture_get(capture);
	spin_unlock(&session->capture_lock);
	return capture;
}

void kbarman_session_set_capture(struct kbarman_session *session, struct kbarman_capture *capture)
{
	struct kbarman_capture *former;

	spin_lock(&session->capture_lock);
	former = session->capture;
	session->capture = capture;
	spin_unlock(&session->capture_lock);
	kbarman_capture_put(former);
}

void kbarman_session_discard(struct kbarman_session *session)
{
	lockdep_assert_held(&session->lock);
	kbarman_rings_forget(session);
	kbarman_callchain_free(session);
	kbarman_session_set_capture(session, NULL);
	kbarman_chosen_forget(session);
	kvfree(session->events);
	session->events = NULL;
}
