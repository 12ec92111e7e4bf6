// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ends of a machine, for panics.py. Who writes a word to the parameter `how` ends so: by a `bug`, by one of an
 * `interrupt` that comes at once, or by a wait that nothing ends, as `hang`.
 */
#include <linux/bug.h>
#include <linux/irq_work.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/string.h>

static struct irq_work work;

static void commit_bug(struct irq_work *unused)
{
	BUG();
}

static int set_how(const char *value, const struct kernel_param *param)
{
	if (sysfs_streq(value, "bug"))
		commit_bug(NULL);
	if (sysfs_streq(value, "interrupt"))
		irq_work_queue(&work);
	while (sysfs_streq(value, "hang")) {
		set_current_state(TASK_UNINTERRUPTIBLE);
		schedule();
	}
	return -EINVAL;
}

static const struct kernel_param_ops how_ops = { .set = set_how };

module_param_cb(how, &how_ops, NULL, 0200);

static int __init panics_init(void)
{
	init_irq_work(&work, commit_bug);
	return 0;
}

module_init(panics_init);
MODULE_DESCRIPTION("ends of a machine");
MODULE_LICENSE("GPL");
