/* SPDX-License-Identifier: MIT */
#ifndef KB_LIB_BASE_PROGRESS_TELL_H
#define KB_LIB_BASE_PROGRESS_TELL_H

#include <kbarman/progress.h>

/* Tell the listener, if there is one. Cheap, but too expensive for each record. */
void kb_progress_tell(const char *what, uint64_t done, uint64_t total);

#endif
