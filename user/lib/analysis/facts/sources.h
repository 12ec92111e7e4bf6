/* SPDX-License-Identifier: MIT */
/* Which sources a capture has, as its fact "sources=NAME,NAME" says. */
#ifndef KB_LIB_ANALYSIS_FACTS_SOURCES_H
#define KB_LIB_ANALYSIS_FACTS_SOURCES_H

#include <kbarman/barman.h>

/* Whether source @name was recorded, though it may have told nothing. */
bool kb_has_source(const struct kb_barman *barman, const char *name);

#endif
