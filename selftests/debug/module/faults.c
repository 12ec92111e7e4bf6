// SPDX-License-Identifier: GPL-2.0-only
/*
 * Decides which calls fail. Writing N to the parameter test_fault, or setting it at load, makes the
 * Nth registration from then on fail. Reading test_fault returns how many registrations remain
 * until then; 0 if the registration has failed, or if none is to fail. To look for a tracepoint
 * counts as a registration. While the parameter test_chance is N, one allocation in N fails,
 * whichever code makes it. The function of Linux whose name is in test_shift has its arguments one
 * place off for the module's probe.
 */
#include <linux/atomic.h>
#include <linux/kallsyms.h>
#include <linux/moduleparam.h>
#include <linux/string.h>

#include "faults.h"

static atomic_t to_go;

bool kbarman_test_fault(void)
{
	return atomic_dec_if_positive(&to_go) == 0;
}

static unsigned int chance;
static atomic_t allocations;

bool kbarman_test_chance(void)
{
	unsigned int n = READ_ONCE(chance);

	return n && !(atomic_inc_return(&allocations) % n);
}

static char shifted[32];

unsigned int kbarman_test_shift(unsigned long address)
{
	char name[KSYM_SYMBOL_LEN];

	if (!shifted[0])
		return 0;
	sprint_symbol_no_offset(name, address);
	return !strcmp(name, shifted);
}

module_param_string(test_shift, shifted, sizeof(shifted), 0600);
module_param_named(test_chance, chance, uint, 0600);

static int set_fault(const char *value, const struct kernel_param *parameter)
{
	unsigned int n;
	int error = kstrtouint(value, 0, &n);

	if (!error)
		atomic_set(&to_go, n);
	return error;
}

static int get_fault(char *buffer, const struct kernel_param *parameter)
{
	return sysfs_emit(buffer, "%d\n", atomic_read(&to_go));
}

static const struct kernel_param_ops fault_ops = { .set = set_fault, .get = get_fault };

module_param_cb(test_fault, &fault_ops, NULL, 0600);
