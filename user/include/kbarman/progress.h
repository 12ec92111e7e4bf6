/* SPDX-License-Identifier: MIT */
/*
 * How far a call is that takes long: reading a capture, fetching debug information, saving
 * symbols.
 */
#ifndef KBARMAN_PROGRESS_H
#define KBARMAN_PROGRESS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * From now on @tell (NULL: nobody) hears now and then, in the thread that is at it, what the
 * library does, a few words as "reading"; that @done of @total bytes are done, as far as
 * @total is not 0: unknown. It may be told the same work from its beginning again. For the
 * whole process: set it before other threads use the library.
 */
void kb_progress_listen(void (*tell)(void *context, const char *what, uint64_t done,
				     uint64_t total), void *context);

#ifdef __cplusplus
}
#endif

#endif
