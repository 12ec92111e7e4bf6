/* SPDX-License-Identifier: MIT */
/* A symbolizer that does not sort the tasks of a capture once more. */
#ifndef KB_LIB_SYM_SYMBOLIZER_SHARED_TASKS_H
#define KB_LIB_SYM_SYMBOLIZER_SHARED_TASKS_H

#include <kbarman/symbol.h>
#include <kbarman/tasks.h>

/* As kb_symbolizer_create(). @tasks, of the same capture, must live as long as the symbolizer. */
int kb_symbolizer_share(struct kb_symbolizer **out, const struct kb_barman *barman,
			const struct kb_tasks *tasks, const char *path,
			const struct kb_symbol_options *options, struct kb_error *err);

#endif
