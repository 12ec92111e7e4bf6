/* SPDX-License-Identifier: MIT */
/* What texts of critical paths share. */
#ifndef KB_LIB_EXPORT_TEXT_PATH_PUT_H
#define KB_LIB_EXPORT_TEXT_PATH_PUT_H

#include "export/text/latency_put.h"

#define PATH_SUMS_HEAD	"#        Time        %%     Links  What\n#\n"

/*
 * What the task of @link, the longest one of @links, waited for, or what ran meanwhile: behind its
 * name.
 */
void path_put_what(const struct latency_text *text, const struct kb_link *link, uint64_t links);

/*
 * "# TASK (TID), from A ms to B ms: C ms, N links" and the end of the line; what was left out is a
 * line of its own.
 */
void path_put_name(const struct latency_text *text, const struct kb_path *path);

/* What @path consists of, at most @most rows. Returns 0 or -ENOMEM. */
int path_put_sums(const struct latency_text *text, const struct kb_path *path, uint32_t most);

#endif
