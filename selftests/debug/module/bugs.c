// SPDX-License-Identifier: GPL-2.0-only
/*
 * One bug for each kind of detector of the debug kernels. Writing a bug's name to the parameter
 * test_bug makes the module commit this bug. A test run whose detectors report nothing of it proves
 * nothing.
 */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/timer.h>
#include <linux/vmalloc.h>

#include "session.h"

/* volatile, so that the compiler does not find the bugs. */
static volatile unsigned int forty = 40;

/* ---- memory ---- */

static void out_of_bounds(void)
{
	volatile char *bytes = kmalloc(forty, GFP_KERNEL);

	if (bytes)
		bytes[forty] = 1;
	kfree((void *)bytes);
}

static void use_after_free(void)
{
	volatile char *bytes = kmalloc(forty, GFP_KERNEL);

	kfree((void *)bytes);
	if (bytes)
		bytes[0] = 1;
}

static void use_after_vfree(void)
{
	volatile char *bytes = vmalloc(64);

	/* Behind the 64 bytes, but within the page: otherwise there is a page fault, too. */
	if (bytes)
		bytes[64 + forty] = 1;
	vfree((void *)bytes);
}

static void leak(void)
{
	static void *volatile forgotten;
	int i;

	/* Several: registers and the stack may still hold the address of the last one. */
	for (i = 0; i < 16; i++)
		forgotten = kzalloc(forty * 8, GFP_KERNEL);
	forgotten = NULL;
}

/* ---- locks and contexts ---- */

static DEFINE_MUTEX(first);
static DEFINE_MUTEX(second);

static void inversion(void)
{
	mutex_lock(&first);
	mutex_lock(&second);
	mutex_unlock(&second);
	mutex_unlock(&first);

	mutex_lock(&second);
	mutex_lock(&first);
	mutex_unlock(&first);
	mutex_unlock(&second);
}

static DEFINE_SPINLOCK(spin);

static void sleep_in_atomic(void)
{
	spin_lock(&spin);
	mutex_lock(&first);
	mutex_unlock(&first);
	spin_unlock(&spin);
}

/* ---- arithmetic ---- */

static void shift(void)
{
	static volatile int sink;

	sink = 1 << forty;
}

static void index_bounds(void)
{
	static volatile char sink[8];

	sink[forty] = 0;
}

/* ---- lifetimes ---- */

static void on_timer(struct timer_list *unused)
{
}

static void free_active_timer(void)
{
	struct timer_list *timer = kzalloc(sizeof(*timer), GFP_KERNEL);

	if (!timer)
		return;
	timer_setup(timer, on_timer, 0);
	mod_timer(timer, jiffies + 100 * HZ);
	kfree(timer);
}

/* ---- races ---- */

static unsigned long shared;

static int racer(void *unused)
{
	while (!kthread_should_stop()) {
		shared++;
		cond_resched();
	}
	return 0;
}

static void race(void)
{
	struct task_struct *racers[2];
	int i;

	for (i = 0; i < 2; i++)
		racers[i] = kthread_run(racer, NULL, "kbarman-race");
	msleep(5000);
	for (i = 0; i < 2; i++)
		if (!IS_ERR(racers[i]))
			kthread_stop(racers[i]);
}

static const struct {
	const char *name;
	void (*commit)(void);
} bugs[] = {
	{ "inversion", inversion },
	{ "sleep", sleep_in_atomic },
	{ "bounds", out_of_bounds },
	{ "after-free", use_after_free },
	{ "vmalloc", use_after_vfree },
	{ "leak", leak },
	{ "shift", shift },
	{ "index", index_bounds },
	{ "timer", free_active_timer },
	{ "race", race },
};

static int set_bug(const char *value, const struct kernel_param *parameter)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(bugs); i++)
		if (sysfs_streq(value, bugs[i].name)) {
			bugs[i].commit();
			return 0;
		}
	return -EINVAL;
}

static const struct kernel_param_ops bug_ops = { .set = set_bug };

module_param_cb(test_bug, &bug_ops, NULL, 0200);
