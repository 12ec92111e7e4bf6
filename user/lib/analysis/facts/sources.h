/* SPDX-License-Identifier: MIT */
/* What a capture has, as its facts say: "sources=NAME,NAME", "objects=1". */
#ifndef KB_LIB_ANALYSIS_FACTS_SOURCES_H
#define KB_LIB_ANALYSIS_FACTS_SOURCES_H

#include <kbarman/barman.h>

/* Whether source @name was recorded, though it may have told nothing. */
bool kb_has_source(const struct kb_barman *barman, const char *name);

/* Whether switches of programs say what is waited for. */
bool kb_has_objects(const struct kb_barman *barman);

#endif
