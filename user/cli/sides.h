/* SPDX-License-Identifier: MIT */
/*
 * The files beside a capture: its name with .kallsyms, .symbols or .annotate-side behind it.
 * They are found by name alone, so a capture that takes the name of another one must not
 * find the files of that.
 */
#ifndef KBARMAN_CLI_SIDES_H
#define KBARMAN_CLI_SIDES_H

/* Remove the file with @suffix that stands beside @capture, if there is one. */
void side_remove(const char *capture, const char *suffix);

/* Remove all of them. */
void sides_remove(const char *capture);

/* Those of @from get copies beside @to, where no others stay. What fails is said. */
void sides_copy(const char *from, const char *to);

#endif
