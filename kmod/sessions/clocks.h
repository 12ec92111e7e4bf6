/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The clock that all sessions share. It is chosen again when a session begins, but not while the
 * clock is held: the timestamps of a session are all of one clock.
 */
#ifndef KBARMAN_CLOCKS_H
#define KBARMAN_CLOCKS_H

/* From before a session's first timestamp until after its last conversion. Context: task. */
void kbarman_clocks_hold(void);
void kbarman_clocks_release(void);

#endif /* KBARMAN_CLOCKS_H */
