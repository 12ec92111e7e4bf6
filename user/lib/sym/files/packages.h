/* SPDX-License-Identifier: MIT */
/* Which packages of a Debian machine have files, by what dpkg(1) keeps. */
#ifndef KB_LIB_SYM_FILES_PACKAGES_H
#define KB_LIB_SYM_FILES_PACKAGES_H

#include <stddef.h>

/*
 * Call @found with the name of each package that installed one of @paths, once, in the order of
 * their names. @root is the root directory of the machine, without a slash at the end. Sorts @paths.
 * Other machines have no such packages.
 */
void kb_packages_of(const char *root, const char **paths, size_t nr,
		    void (*found)(void *context, const char *package), void *context);

#endif
