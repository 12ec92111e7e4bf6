// SPDX-License-Identifier: MIT
/* See idle.h. The names are those of all architectures and all versions of Linux. */
#include <stdlib.h>
#include <string.h>

#include "analysis/time/idle.h"
#include "base/array.h"

#define NAME_MAX_BYTES	48	/* longest name below, with its NUL */

static const char *const names[] = {	/* sorted as by strcmp() */
	"acpi_idle_do_entry", "acpi_idle_enter",
	"acpi_processor_ffh_cstate_enter", "acpi_safe_halt", "arch_cpu_idle",
	"arch_safe_halt", "arm_cpuidle_simple_enter", "call_cpuidle",
	"cpu_do_idle", "cpu_idle", "cpu_idle_poll", "cpu_startup_entry", "cpuidle_enter",
	"cpuidle_enter_state", "cpuidle_idle_call", "default_enter_idle", "default_idle",
	"default_idle_call", "do_idle", "enabled_wait", "intel_idle", "intel_idle_ibrs",
	"intel_idle_irq", "intel_idle_xstate", "mwait_idle", "mwait_idle_with_hints",
	"native_safe_halt", "poll_idle", "psci_enter_idle_state", "pseries_dedicated_idle_sleep",
	"pseries_shared_idle_sleep", "psw_idle", "pv_native_safe_halt", "r4k_wait",
	"r4k_wait_irqoff", "raw_safe_halt", "safe_halt", "snooze_loop", "tdx_safe_halt",
	"xen_safe_halt",
};

static int compare(const void *name, const void *row)
{
	return strcmp(name, *(const char *const *)row);
}

/* cpu_v7_do_idle and similar names of 32-bit Arm. */
static bool is_arm(const char *name)
{
	size_t length = strlen(name);

	return strncmp(name, "cpu_", 4) == 0 && length > 12 &&
	       strcmp(name + length - 8, "_do_idle") == 0;
}

bool kb_idle_name(const char *symbol)
{
	size_t length = strcspn(symbol, ".");	/* do_idle.isra.0 counts as do_idle */
	char name[NAME_MAX_BYTES];

	if (length >= sizeof(name))
		return false;
	memcpy(name, symbol, length);
	name[length] = '\0';
	return bsearch(name, names, ARRAY_SIZE(names), sizeof(names[0]), compare) ||
	       is_arm(name);
}

bool kb_idle_symbol(const struct kb_symbol *symbol)
{
	return symbol->kernel && kb_idle_name(symbol->name);
}
