// SPDX-License-Identifier: MIT
#include "absent.h"
#include "cli.h"

int absent_leave_out(struct kbarman_configure *configure, uint32_t absent)
{
	if (absent & KBARMAN_ABSENT_TASKS)
		return cli_fail("the module does not find this kernel's tracepoints of tasks: nothing can "
				"be recorded; see 'kbarman doctor'");
	if (absent & KBARMAN_SOURCE_SCHED) {
		if (configure->flags & KBARMAN_CONFIGURE_COUNT_SWITCH)
			return cli_fail("--counters switch: the module does not find this kernel's "
					"tracepoint 'sched_switch': give --counters a frequency");
		configure->flags &= ~KBARMAN_CONFIGURE_CHAIN_SWITCH;
		cli_warn("the module does not find this kernel's tracepoint 'sched_switch': task "
			 "switches will be missing");
	}
	if (absent & KBARMAN_SOURCE_IDLE)
		cli_warn("the module does not find this kernel's tracepoint 'cpu_idle': idling will be "
			 "missing");
	configure->sources &= ~absent;
	return 0;
}
