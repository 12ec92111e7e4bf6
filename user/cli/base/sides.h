/* SPDX-License-Identifier: MIT */
/*
 * The files beside a capture: the capture's name with .kallsyms, .symbols or .annotate-side. They
 * are found only by name. So if a capture replaces another one of the same name, the other's files
 * must be removed.
 */
#ifndef KB_CLI_BASE_SIDES_H
#define KB_CLI_BASE_SIDES_H

#include <stdint.h>

#define SIDE_KALLSYMS	".kallsyms"

/* Removes the file with @suffix beside @capture, if there is one. */
void side_remove(const char *capture, const char *suffix);

/* Removes all files beside @capture. */
void sides_remove(const char *capture);

/* The bytes of @capture and of the files beside it on the disk, without those of files with more names. */
uint64_t sides_bytes(const char *capture);

/* Copies the files of @from to @to, and removes other ones of @to. Prints errors. */
void sides_copy(const char *from, const char *to);

#endif
