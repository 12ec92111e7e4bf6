/* SPDX-License-Identifier: MIT */
#ifndef KB_LIB_FORMAT_BARMAN_READER_H
#define KB_LIB_FORMAT_BARMAN_READER_H

#include <kbarman/barman.h>

struct kb_source;

/* As kb_barman_open(). @source is the reader's from now on, also if it can't be opened. */
int kb_barman_open_source(struct kb_barman **out, struct kb_source *source, struct kb_error *err);

#endif
