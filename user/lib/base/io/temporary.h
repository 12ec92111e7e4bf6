/* SPDX-License-Identifier: MIT */
#ifndef KB_LIB_BASE_IO_TEMPORARY_H
#define KB_LIB_BASE_IO_TEMPORARY_H

/* An empty file without a name, in TMPDIR. Returns its descriptor or a negative errno. */
int kb_temporary_file(void);

#endif
