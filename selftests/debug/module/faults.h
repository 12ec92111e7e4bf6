/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Registrations that fail when a test says so. Fault injection of the kernel reaches
 * what they allocate, but not all of them allocate. Put in front of every file of the
 * module (-include) in a test build: the module's own code is as it is shipped.
 */
#ifndef KBARMAN_TEST_FAULTS_H
#define KBARMAN_TEST_FAULTS_H

#include <linux/anon_inodes.h>
#include <linux/cpuhotplug.h>
#include <linux/err.h>
#include <linux/kprobes.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/perf_event.h>
#include <linux/smp.h>
#include <linux/tracepoint.h>

/* The registration is the one that is to fail. */
bool kbarman_test_fault(void);

#define kbarman_or(error, call)	(kbarman_test_fault() ? (error) : (call))

#define anon_inode_getfile(...) \
	kbarman_or(ERR_PTR(-ENFILE), anon_inode_getfile(__VA_ARGS__))
#define cpuhp_setup_state_nocalls(...) \
	kbarman_or(-ENOSPC, cpuhp_setup_state_nocalls(__VA_ARGS__))
#define misc_register(...)	kbarman_or(-EBUSY, misc_register(__VA_ARGS__))
#define perf_event_create_kernel_counter(...) \
	kbarman_or(ERR_PTR(-EACCES), perf_event_create_kernel_counter(__VA_ARGS__))
#define register_kprobe(...)	kbarman_or(-EILSEQ, register_kprobe(__VA_ARGS__))
#define register_module_notifier(...) \
	kbarman_or(-EEXIST, register_module_notifier(__VA_ARGS__))
#define smp_call_function_single(...) \
	kbarman_or(-ENXIO, smp_call_function_single(__VA_ARGS__))
#define tracepoint_probe_register(...) \
	kbarman_or(-EEXIST, tracepoint_probe_register(__VA_ARGS__))

#endif
