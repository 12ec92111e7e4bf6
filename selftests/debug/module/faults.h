/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Registrations and allocations that fail when a test asks for it. The kernel's own fault injection
 * reaches the allocations of a system call. It does not reach all registrations, nor the
 * allocations of the module's worker, which is in no system call. A test build includes this file
 * in front of every file of the module (-include), so the module's own code is that of the shipped
 * module.
 */
#ifndef KBARMAN_TEST_FAULTS_H
#define KBARMAN_TEST_FAULTS_H

#include <linux/anon_inodes.h>
#include <linux/cpuhotplug.h>
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/gfp.h>
#include <linux/kprobes.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/perf_event.h>
#include <linux/ptrace.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/suspend.h>
#include <linux/tracepoint.h>
#include <linux/xarray.h>

/* True if this registration must fail. */
bool kbarman_test_fault(void);

/* True if this allocation must fail. */
bool kbarman_test_chance(void);

/* By how many places the arguments of the function at @address differ from what is expected. */
unsigned int kbarman_test_shift(unsigned long address);

#define kbarman_or(error, call)	(kbarman_test_fault() ? (error) : (call))

/*
 * Fault injection does not reach these. On some kernels they allocate nothing, and at module load
 * too many other allocations come before the module's own.
 */
#define alloc_cpumask_var(...)	kbarman_or(false, alloc_cpumask_var(__VA_ARGS__))
#define zalloc_cpumask_var(...)	kbarman_or(false, zalloc_cpumask_var(__VA_ARGS__))
#define get_zeroed_page(...)	kbarman_or(0, get_zeroed_page(__VA_ARGS__))
#define anon_inode_getfile(...) \
	kbarman_or(ERR_PTR(-ENFILE), anon_inode_getfile(__VA_ARGS__))
#define anon_inode_getfd(...)	kbarman_or(-EMFILE, anon_inode_getfd(__VA_ARGS__))
#define cpuhp_setup_state(...)	kbarman_or(-ENOSPC, cpuhp_setup_state(__VA_ARGS__))
#define register_pm_notifier(...)	kbarman_or(-EEXIST, register_pm_notifier(__VA_ARGS__))
#define misc_register(...)	kbarman_or(-EBUSY, misc_register(__VA_ARGS__))
#define perf_event_create_kernel_counter(...) \
	kbarman_or(ERR_PTR(-EACCES), perf_event_create_kernel_counter(__VA_ARGS__))
#define register_kprobe(...)	kbarman_or(-EILSEQ, register_kprobe(__VA_ARGS__))
#define register_module_notifier(...) \
	kbarman_or(-EEXIST, register_module_notifier(__VA_ARGS__))
#define smp_call_function_single(...) \
	kbarman_or(-ENXIO, smp_call_function_single(__VA_ARGS__))
#define tracepoint_probe_register_prio(...) \
	kbarman_or(-EEXIST, tracepoint_probe_register_prio(__VA_ARGS__))

/* A kernel without this tracepoint. */
#define for_each_kernel_tracepoint(...) \
	kbarman_or((void)0, for_each_kernel_tracepoint(__VA_ARGS__))

/* A kernel in which a function has other arguments: each is where the next one is expected. */
#define regs_get_kernel_argument(regs, n) \
	regs_get_kernel_argument(regs, (n) + kbarman_test_shift(instruction_pointer(regs)))

#undef kmalloc
#undef kzalloc
#define kmalloc(...)		(kbarman_test_chance() ? NULL : kmalloc(__VA_ARGS__))
#define kvmalloc_array(...)	(kbarman_test_chance() ? NULL : kvmalloc_array(__VA_ARGS__))
#define kzalloc(...)		(kbarman_test_chance() ? NULL : kzalloc(__VA_ARGS__))
#define kvzalloc(...)		(kbarman_test_chance() ? NULL : kvzalloc(__VA_ARGS__))
/* flags of 0 say that the store replaces an entry and needs no memory. */
#define xa_store(array, index, entry, flags) \
	((flags) && kbarman_test_chance() ? XA_ERROR(-ENOMEM) : \
					    xa_store(array, index, entry, flags))

#endif
