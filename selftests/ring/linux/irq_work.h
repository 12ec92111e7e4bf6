/* SPDX-License-Identifier: MIT */
/* For kmod/ring/wake.h in user space: work is done where it is queued. */
struct irq_work {
	void (*func)(struct irq_work *work);
};

static inline void init_irq_work(struct irq_work *work, void (*func)(struct irq_work *work))
{
	work->func = func;
}

static inline void irq_work_queue(struct irq_work *work)
{
	work->func(work);
}

static inline void irq_work_sync(struct irq_work *work)
{
	(void)work;
}
