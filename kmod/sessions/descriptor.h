/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which session a descriptor of the device uses: its own, which its first configure makes; else the
 * one that was chosen; else the newest one.
 */
#ifndef KBARMAN_DESCRIPTOR_H
#define KBARMAN_DESCRIPTOR_H

#include <linux/poll.h>
#include <linux/types.h>

struct file;
struct kbarman_capture;
struct kbarman_consume;
struct kbarman_descriptor;
struct kbarman_session;
struct kbarman_wanted;

/* NULL if there is no memory. Waits for no session. Context: task. */
struct kbarman_descriptor *kbarman_descriptor_open(void);

/* @file, which has the descriptor, is closed. Its own session stops. Context: task. */
void kbarman_descriptor_close(struct kbarman_descriptor *descriptor, struct file *file);

/*
 * The descriptor's own session, which stays until the descriptor is closed; NULL: it has none.
 * Context: a call on the descriptor.
 */
struct kbarman_session *kbarman_descriptor_own(struct kbarman_descriptor *descriptor);

/*
 * The session that the descriptor uses, with a reference: see kbarman_sessions_newest(). Context:
 * task, no session's lock held until kbarman_session_put().
 */
struct kbarman_session *kbarman_descriptor_session(struct kbarman_descriptor *descriptor);
/* Its capture with a reference, NULL, or -ESTALE. Context: task, with or without mmap_lock. */
struct kbarman_capture *kbarman_descriptor_capture(struct kbarman_descriptor *descriptor);

/* As KBARMAN_CONFIGURE. The caller has checked what does not depend on the session's state. */
int kbarman_descriptor_configure(struct kbarman_descriptor *descriptor, struct file *file,
				 struct kbarman_wanted *wanted);

/* As KBARMAN_CHOOSE. Context: task. */
int kbarman_descriptor_choose(struct kbarman_descriptor *descriptor, u64 id, bool only);

/* @session, which a call used, is not the configuration that was chosen. Context: task. */
bool kbarman_descriptor_is_stale(struct kbarman_descriptor *descriptor,
				 const struct kbarman_session *session);

/* As KBARMAN_CONSUME without an array, on @session, which the descriptor uses. Context: task. */
int kbarman_descriptor_consume(struct kbarman_descriptor *descriptor, struct file *file,
			       struct kbarman_session *session, const struct kbarman_consume *consume);

/* As KBARMAN_ADOPT. Context: task. */
int kbarman_descriptor_adopt(struct kbarman_descriptor *descriptor, struct file *file, u64 id);

/* EPOLL* as the UAPI header says. */
__poll_t kbarman_descriptor_poll(struct kbarman_descriptor *descriptor, struct file *file,
				 struct poll_table_struct *wait);

#endif /* KBARMAN_DESCRIPTOR_H */
