/* SPDX-License-Identifier: MIT */
/*
 * An output that compresses with gzip what is written to it, on all CPUs of the process, and writes
 * the result to another output, on the caller's thread.
 */
#ifndef KB_LIB_FORMAT_GZIP_H
#define KB_LIB_FORMAT_GZIP_H

#include <kbarman/out.h>

struct kb_gzip;

/*
 * What is written to *@in is compressed and goes to @to. *@in lives as long as @gzip. Returns 0
 * or -ENOMEM.
 */
int kb_gzip_create(struct kb_gzip **out, struct kb_out *to, struct kb_out **in);
void kb_gzip_destroy(struct kb_gzip *gzip);

/* Write what is left and the end of the file. Returns 0 or the first error. */
int kb_gzip_finish(struct kb_gzip *gzip);

#endif
