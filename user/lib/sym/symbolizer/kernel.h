/* SPDX-License-Identifier: MIT */
/*
 * The source of kernel symbols for a capture: a file that the user names; else
 * CAPTURE.kallsyms, which `kbarman record` writes beside the capture; else the running kernel,
 * if this very boot was recorded.
 */
#ifndef KB_LIB_SYM_SYMBOLIZER_KERNEL_H
#define KB_LIB_SYM_SYMBOLIZER_KERNEL_H

#include <stdbool.h>

#include <kbarman/barman.h>

/* Whether the running kernel made the capture since it booted. */
bool kb_kernel_is_running(const struct kb_barman *barman);

/* Whether the capture says that it was made on another host. */
bool kb_kernel_is_elsewhere(const struct kb_barman *barman);

/*
 * The path to read; the caller frees it. NULL: there is none, or no memory. @option and
 * @capture may be NULL.
 */
char *kb_kernel_symbols_path(const struct kb_barman *barman, const char *capture,
			     const char *option);

/*
 * The path of the kernel's file with DWARF, if it is in the usual places of distributions below
 * @symfs; the caller frees it. NULL: there is none, or no memory. If @option is not NULL, it is
 * the answer.
 */
char *kb_kernel_image_path(const struct kb_barman *barman, const char *symfs, const char *option);

#endif
