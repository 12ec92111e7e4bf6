/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A session that begins when the module is loaded, as its parameters say, before there are programs
 * that could ask for one. It has no owner until a descriptor takes it over.
 */
#ifndef KBARMAN_BOOT_H
#define KBARMAN_BOOT_H

#include <linux/types.h>

struct kbarman_session;

/*
 * Returns 0, also if the session could not begin, which is only said; or -EINVAL if a parameter is
 * wrong. Context: init of the module, when sessions can begin.
 */
int kbarman_boot_init(void);

/* The session ends, if nobody has taken it over. */
void kbarman_boot_exit(void);

/*
 * The session, if nobody has taken it over and its number is @id (0: any), with the reference of its
 * owner; else NULL. The caller becomes its owner or puts it back. Context: task.
 */
struct kbarman_session *kbarman_boot_take(u64 id);
void kbarman_boot_put_back(struct kbarman_session *session);

#endif /* KBARMAN_BOOT_H */
