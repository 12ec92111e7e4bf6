// SPDX-License-Identifier: GPL-2.0-only
/* Init and exit of the module. */
#include <linux/module.h>

#include "capture/ends.h"
#include "capture/reserved.h"
#include "chardev.h"
#include "marks/marks.h"
#include "pmu/cpu.h"
#include "ring/clock.h"
#include "sessions/boot.h"
#include "sessions/cpus.h"
#include "sessions/sessions.h"
#include "sessions/attach.h"
#include "sessions/suspend.h"

static int __init kbarman_init(void)
{
	int error;

	kbarman_clock_init();
	kbarman_cpu_pmu_find();

	error = kbarman_reserved_init();
	if (error)
		goto err_reserved;
	error = kbarman_ends_init();
	if (error)
		goto err_ends;
	error = kbarman_marks_init();
	if (error)
		goto err_marker;
	error = kbarman_sources_init();
	if (error)
		goto err_sources;
	error = kbarman_cpus_init();
	if (error)
		goto err_cpus;
	error = kbarman_suspend_init();
	if (error)
		goto err_suspend;
	kbarman_sessions_init();
	error = kbarman_boot_init();
	if (error)
		goto err_boot;
	error = kbarman_chardev_init();
	if (error)
		goto err_chardev;
	return 0;

err_chardev:
	kbarman_boot_exit();
err_boot:
	kbarman_suspend_exit();
err_suspend:
	kbarman_cpus_exit();
err_cpus:
	kbarman_sources_exit();
err_sources:
	kbarman_marks_exit();
err_marker:
	kbarman_ends_exit();
err_ends:
	kbarman_reserved_exit();
err_reserved:
	return error;
}

static void __exit kbarman_exit(void)
{
	kbarman_chardev_exit();
	kbarman_boot_exit();
	kbarman_suspend_exit();
	kbarman_cpus_exit();
	kbarman_sources_exit();
	kbarman_marks_exit();
	kbarman_ends_exit();
	kbarman_reserved_exit();
}

module_init(kbarman_init);
module_exit(kbarman_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Records scheduling, PMU samples and idling as Arm Barman v2 captures");
MODULE_VERSION(KBARMAN_VERSION);
