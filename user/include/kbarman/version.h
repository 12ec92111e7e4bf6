/* SPDX-License-Identifier: MIT */
/* The version of the library that runs, which may be newer than these headers. */
#ifndef KBARMAN_VERSION_H
#define KBARMAN_VERSION_H

#ifdef __cplusplus
extern "C" {
#endif

/* "MAJOR.MINOR.PATCH", as in `kbarman version` and `pkg-config --modversion kbarman`. */
const char *kb_version(void);

#ifdef __cplusplus
}
#endif

#endif
