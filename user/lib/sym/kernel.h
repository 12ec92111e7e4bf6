/* SPDX-License-Identifier: MIT */
/*
 * Where the symbols of the kernel that a capture was made on come from: a file the
 * user names, else CAPTURE.kallsyms that `kbarman record` leaves beside the capture,
 * else this kernel's own, if it is the very boot that was recorded.
 */
#ifndef KBARMAN_SYM_KERNEL_H
#define KBARMAN_SYM_KERNEL_H

#include <stdbool.h>

#include <kbarman/barman.h>

/* Was the capture made by the kernel that runs here, since it booted? */
bool kb_kernel_is_running(const struct kb_barman *barman);

/* Does the capture say that it was made on another host than this one? */
bool kb_kernel_is_elsewhere(const struct kb_barman *barman);

/*
 * The path to read, to be freed; NULL if there is none or no memory. @option and
 * @capture may be NULL.
 */
char *kb_kernel_symbols_path(const struct kb_barman *barman, const char *capture,
			     const char *option);

/*
 * The kernel's own file with DWARF, if it is where distributions put it below @symfs, to
 * be freed; NULL if there is none or no memory. @option, if not NULL, is the answer.
 */
char *kb_kernel_image_path(const struct kb_barman *barman, const char *symfs, const char *option);

#endif
