/* SPDX-License-Identifier: MIT */
/*
 * Progress of long operations: reading a capture, downloading debug information, saving
 * symbols.
 */
#ifndef KBARMAN_PROGRESS_H
#define KBARMAN_PROGRESS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * From now on the library calls @tell from time to time, in the thread that does the work.
 * @what is a word such as "reading". @done of @total bytes are done; @total 0: not known. The
 * same work may be reported from its beginning again. @tell NULL: no more calls. This holds for
 * the whole process: call it before other threads use the library.
 */
void kb_progress_listen(void (*tell)(void *context, const char *what, uint64_t done,
				     uint64_t total), void *context);

#ifdef __cplusplus
}
#endif

#endif
