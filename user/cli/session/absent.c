// SPDX-License-Identifier: MIT
#include "cli/base/cli.h"
#include "cli/session/absent.h"
#include "cli/session/sources.h"

int absent_leave_out(struct kbarman_configure *configure, uint32_t absent)
{
	const struct kb_source_word *source;

	if (absent & KBARMAN_ABSENT_TASKS)
		return cli_fail("the module does not find this kernel's tracepoints of tasks: nothing can "
				"be recorded; see 'kbarman doctor'");
	if (absent & KBARMAN_SOURCE_SCHED) {
		if (configure->flags & KBARMAN_CONFIGURE_COUNT_SWITCH)
			return cli_fail("--read-counters switch: the module does not find this kernel's "
					"tracepoint 'sched_switch': give --read-counters a frequency");
		configure->flags &= ~(KBARMAN_CONFIGURE_CHAIN_SWITCH | KBARMAN_CONFIGURE_OBJECTS);
	}
	for (size_t i = 0; (source = kb_source_word(i)); i++)
		if (source->tracepoint && configure->sources & absent & source->bit)
			cli_warn("the module does not find this kernel's tracepoint '%s': %s will be "
				 "missing", source->tracepoint, source->what);
	configure->sources &= ~absent;
	return 0;
}
