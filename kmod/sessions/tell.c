// SPDX-License-Identifier: GPL-2.0-only
/* What the list of sessions tells of one of them, and to whom. */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/pid.h>
#include <linux/string.h>
#include <linux/uidgid.h>

#include "capture/capture.h"
#include "capture/users.h"
#include "session.h"
#include "sessions/calls.h"

/* True if @file may see who owns the session: its opener is the same user, or sees everybody. */
static bool session_shows_owner(const struct kbarman_session *session, struct file *file)
{
	return kbarman_user_of(file->f_cred) == session->who.user ||
	       file_ns_capable(file, &init_user_ns, CAP_SYS_PTRACE);
}

static void info_fill_owner(struct kbarman_session_info *info,
			    const struct kbarman_session *session)
{
	info->pid = session->owner ? pid_vnr(session->who.pid) : 0;
	info->uid = from_kuid_munged(current_user_ns(), session->who.uid);
	strscpy(info->comm, session->who.comm, sizeof(info->comm));
}

/* Context: session's lock held. */
static void info_fill_recording(struct kbarman_session_info *info, struct kbarman_session *session)
{
	struct kbarman_stats stats = { };
	int reason;

	info->nr_pids = session->config.nr_pids;
	info->started_ns = session->started.realtime_ns;
	info->stopped_ns = session->stopped.realtime_ns;
	info->bytes = session->capture->bytes;
	kbarman_session_fill_stats(&stats, session);
	info->written = stats.written;
	info->overwritten = stats.overwritten;
	for (reason = 0; reason < KBARMAN_LOST_REASONS; reason++)
		info->lost += stats.lost[reason];
}

int kbarman_session_tell(struct kbarman_session *session, struct file *file,
			 struct kbarman_session_info *info)
{
	struct kbarman_query query = { };
	int error;

	*info = (struct kbarman_session_info) { .uid = ~0U };
	error = mutex_lock_killable(&session->lock);
	if (error)
		return error;
	kbarman_session_fill_query(&query, session, file);
	info->session = query.session;
	info->state = query.state;
	info->mode = query.mode;
	info->sources = query.sources;
	info->ring_bytes = query.ring_bytes;
	if (session->capture)
		info_fill_recording(info, session);
	if (session_shows_owner(session, file))
		info_fill_owner(info, session);
	else
		info->state |= KBARMAN_STATE_HIDDEN;
	mutex_unlock(&session->lock);
	return 0;
}
