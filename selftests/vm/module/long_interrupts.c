// SPDX-License-Identifier: GPL-2.0-only
/*
 * Interrupts of a known length: a number that is written to the parameter `softirq_us` keeps a tasklet
 * busy for so long, one that is written to `irq_us` an interrupt that this CPU sends to itself. Each
 * write is one interrupt. `done` counts those that are over and took LONG_US or more.
 */
#include <linux/delay.h>
#include <linux/interrupt.h>
#include <linux/irq_work.h>
#include <linux/module.h>

#define LONGEST_US	50000
#define LONG_US		10000

static unsigned int softirq_us, irq_us, done;

static void burn(unsigned int us)
{
	bool is_long = us >= LONG_US;

	for (; us >= 1000; us -= 1000)
		udelay(1000);
	udelay(us);
	if (is_long)
		WRITE_ONCE(done, done + 1);
}

static void burn_softirq(struct tasklet_struct *unused)
{
	burn(READ_ONCE(softirq_us));
}

static void burn_irq(struct irq_work *unused)
{
	burn(READ_ONCE(irq_us));
}

static struct tasklet_struct tasklet;
static struct irq_work work;

static int set_softirq(const char *value, const struct kernel_param *param)
{
	int ret = param_set_uint_minmax(value, param, 0, LONGEST_US);

	if (!ret && softirq_us && tasklet.use_callback)
		tasklet_schedule(&tasklet);
	return ret;
}

static int set_irq(const char *value, const struct kernel_param *param)
{
	int ret = param_set_uint_minmax(value, param, 0, LONGEST_US);

	if (!ret && irq_us && tasklet.use_callback)
		irq_work_queue(&work);
	return ret;
}

static const struct kernel_param_ops softirq_ops = { .set = set_softirq, .get = param_get_uint };
static const struct kernel_param_ops irq_ops = { .set = set_irq, .get = param_get_uint };

module_param_cb(softirq_us, &softirq_ops, &softirq_us, 0600);
module_param_cb(irq_us, &irq_ops, &irq_us, 0600);
module_param(done, uint, 0400);

static int __init long_interrupts_init(void)
{
	init_irq_work(&work, burn_irq);
	tasklet_setup(&tasklet, burn_softirq);
	return 0;
}

static void __exit long_interrupts_exit(void)
{
	irq_work_sync(&work);
	tasklet_kill(&tasklet);
}

module_init(long_interrupts_init);
module_exit(long_interrupts_exit);
MODULE_DESCRIPTION("interrupts of a known length");
MODULE_LICENSE("GPL");
