// SPDX-License-Identifier: GPL-2.0-only
/* Init and exit of the module. */
#include <linux/module.h>

#include "chardev.h"
#include "clock.h"
#include "session.h"
#include "source_marker.h"
#include "suspend.h"

static int __init kbarman_init(void)
{
	int error;

	kbarman_clock_init();

	error = kbarman_marker_init();
	if (error)
		goto err_marker;
	error = kbarman_session_init();
	if (error)
		goto err_session;
	error = kbarman_suspend_init();
	if (error)
		goto err_suspend;
	error = kbarman_chardev_init();
	if (error)
		goto err_chardev;
	return 0;

err_chardev:
	kbarman_suspend_exit();
err_suspend:
	kbarman_session_exit();
err_session:
	kbarman_marker_exit();
err_marker:
	return error;
}

static void __exit kbarman_exit(void)
{
	kbarman_chardev_exit();
	kbarman_suspend_exit();
	kbarman_session_exit();
	kbarman_marker_exit();
}

module_init(kbarman_init);
module_exit(kbarman_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Records scheduling, PMU samples and idling as Arm Barman v2 captures");
MODULE_VERSION(KBARMAN_VERSION);
