// SPDX-License-Identifier: GPL-2.0-only
/*
 * An idle driver with three states that take a known time to leave: after the CPU was woken, and
 * before Linux traces that it has left the state, it is busy for the state's delay. So what a
 * report says of leaving idle is known, on emulated machines as well, which have no idle states.
 *
 * The driver keeps a log of what truly happened, by the clock that kbarman uses. Of a traced event
 * it has two times: a probe of its own reads the clock before all other probes of the event,
 * another one behind them. What a tracer has of the event lies between the two. /proc/kbarman_idle
 * has these lines, of one CPU after the other:
 *
 *	enter CPU STATE BEFORE BEHIND			the CPU goes idle
 *	leave CPU STATE WOKEN DONE BEFORE BEHIND	from WOKEN to DONE it was busy
 *	wake CPU TASK BEFORE BEHIND			this CPU wakes that task
 *	full						there was no room for more
 *
 * Parameters: `delays` and `residencies` in us; `counter`: times are those of the machine's
 * counter, not of CLOCK_MONOTONIC_RAW; `task`: whose wakeups are logged, -1: there is no log; `swap`: a
 * CPU that is asked for the deepest state takes the first one, and the other way round, as drivers
 * may; `now`: the state in which each CPU waits for an interrupt, -1 for none; `caught`: how many
 * wakeups found the CPU of their task waiting, from before all probes until behind them.
 */
#include <linux/cpuidle.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/proc_fs.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <linux/tracepoint.h>
#include <linux/vmalloc.h>
#include <trace/events/power.h>

#include "ring/clock_env.h"

#define STATES		3
#define LOG_LINES	16384	/* of each CPU */
#define BEFORE_ALL	1000	/* priorities of probes; the usual one is 10 */
#define BEHIND_ALL	(-1000)

static unsigned int delays[STATES] = { 50, 700, 4000 };
static unsigned int residencies[STATES] = { 1, 3000, 20000 };
static bool counter, swap;
static int task = -1;
static unsigned int caught;

module_param_array(delays, uint, NULL, 0644);
module_param_array(residencies, uint, NULL, 0444);
module_param(counter, bool, 0644);
module_param(swap, bool, 0644);
module_param(task, int, 0644);
module_param(caught, uint, 0444);

struct line {
	enum { LINE_ENTER, LINE_LEAVE, LINE_WAKE } what;
	int number;			/* state or task */
	u64 woken, done, before, behind;
};

/* Its CPU alone writes it, with interrupts off. */
struct cpu_log {
	struct line *lines;
	unsigned int nr;
	bool full;
	int now, state;
	unsigned int waits;		/* so often did it begin to wait for an interrupt */
	u64 woken, done;
	u64 idle_before, wake_before;
	unsigned int found;		/* `waits` of the CPU of the task that it wakes; 0: awake */
};

static DEFINE_PER_CPU(struct cpu_log, logs);

static u64 stamp(void)
{
	return READ_ONCE(counter) ? KBARMAN_COUNTER() : KBARMAN_CLOCK_OF_LINUX();
}

static void log_line(struct cpu_log *cpu, const struct line *line)
{
	if (cpu->nr == LOG_LINES) {
		cpu->full = true;
		return;
	}
	cpu->lines[cpu->nr] = *line;
	smp_store_release(&cpu->nr, cpu->nr + 1);	/* for show_log() */
}

/* ---- the driver ---- */

/* Interrupts are off before and behind it. */
static void wait_for_interrupt(void)
{
#if defined(CONFIG_X86)
	raw_safe_halt();
	raw_local_irq_disable();
#elif defined(CONFIG_ARM64)
	dsb(sy);
	wfi();
#else
#error "no way to halt is known"
#endif
}

static int enter(struct cpuidle_device *device, struct cpuidle_driver *driver, int state)
{
	struct cpu_log *cpu = this_cpu_ptr(&logs);
	u64 until;

	if (READ_ONCE(swap))
		state = STATES - 1 - state;
	WRITE_ONCE(cpu->waits, cpu->waits + 1);
	smp_wmb();	/* of find_waiting() */
	WRITE_ONCE(cpu->now, state);
	wait_for_interrupt();
	WRITE_ONCE(cpu->now, -1);
	cpu->state = state;
	cpu->woken = stamp();
	until = ktime_get_mono_fast_ns() + 1000ULL * READ_ONCE(delays[state]);
	while (ktime_get_mono_fast_ns() < until)
		cpu_relax();
	cpu->done = stamp();
	return state;
}

/* Without an owner: a driver with one is never unloaded. */
static struct cpuidle_driver driver = {
	.name = "kbarman_test",
	.state_count = STATES,
};

static void fill_states(void)
{
	int i;

	for (i = 0; i < STATES; i++) {
		struct cpuidle_state *state = &driver.states[i];

		snprintf(state->name, sizeof(state->name), "T%d", i);
		snprintf(state->desc, sizeof(state->desc), "test state %d", i);
		state->enter = enter;
		state->exit_latency = delays[i];
		state->target_residency = residencies[i];
	}
}

/* ---- the log ---- */

static void before_idle(void *data, unsigned int state, unsigned int cpu)
{
	this_cpu_write(logs.idle_before, stamp());
}

static void behind_idle(void *data, unsigned int state, unsigned int number)
{
	struct cpu_log *cpu = this_cpu_ptr(&logs);
	struct line line = { .before = cpu->idle_before, .behind = stamp() };

	if (READ_ONCE(task) < 0)
		return;
	if (state == (unsigned int)PWR_EVENT_EXIT) {
		line.what = LINE_LEAVE;
		line.number = cpu->state;
		line.woken = cpu->woken;
		line.done = cpu->done;
	} else {
		line.what = LINE_ENTER;
		line.number = state;
	}
	log_line(cpu, &line);
}

/* Who wakes itself may be interrupted, and has not slept. */
static bool is_logged(const struct task_struct *woken)
{
	return woken->pid == READ_ONCE(task) && woken != current;
}

/* The number of the wait of the task's CPU, 0 if it does not wait. */
static unsigned int find_waiting(const struct task_struct *woken)
{
	const struct cpu_log *cpu = per_cpu_ptr(&logs, task_cpu(woken));
	unsigned int waits = READ_ONCE(cpu->waits);
	bool found;

	smp_rmb();	/* of enter() */
	found = READ_ONCE(cpu->now) >= 0;
	smp_rmb();	/* it may be another wait by now: then the CPU was awake in between */
	return found && READ_ONCE(cpu->waits) == waits ? waits : 0;
}

static void before_wake(void *data, struct task_struct *woken)
{
	if (!is_logged(woken))
		return;
	this_cpu_write(logs.found, find_waiting(woken));
	this_cpu_write(logs.wake_before, stamp());
}

static void behind_wake(void *data, struct task_struct *woken)
{
	struct cpu_log *cpu = this_cpu_ptr(&logs);
	struct line line = { LINE_WAKE, woken->pid, .before = cpu->wake_before };

	if (!is_logged(woken))
		return;
	line.behind = stamp();
	if (cpu->found && find_waiting(woken) == cpu->found)
		WRITE_ONCE(caught, caught + 1);
	log_line(cpu, &line);
}

static struct probe {
	const char *name;
	void *function;
	int priority;
	struct tracepoint *tracepoint;
	bool attached;
} probes[] = {
	{ "cpu_idle", before_idle, BEFORE_ALL },
	{ "cpu_idle", behind_idle, BEHIND_ALL },
	{ "sched_waking", before_wake, BEFORE_ALL },
	{ "sched_waking", behind_wake, BEHIND_ALL },
};

static void find(struct tracepoint *tracepoint, void *data)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(probes); i++)
		if (!strcmp(tracepoint->name, probes[i].name))
			probes[i].tracepoint = tracepoint;
}

static void detach(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(probes); i++)
		if (probes[i].attached)
			tracepoint_probe_unregister(probes[i].tracepoint, probes[i].function, NULL);
	tracepoint_synchronize_unregister();
}

static int attach(void)
{
	unsigned int i;
	int ret;

	for_each_kernel_tracepoint(find, NULL);
	for (i = 0; i < ARRAY_SIZE(probes); i++) {
		struct probe *probe = &probes[i];

		ret = probe->tracepoint ?
			tracepoint_probe_register_prio(probe->tracepoint, probe->function, NULL,
						       probe->priority) : -ENOENT;
		if (ret) {
			detach();
			return ret;
		}
		probe->attached = true;
	}
	return 0;
}

static void show_line(struct seq_file *file, int cpu, const struct line *line)
{
	if (line->what == LINE_LEAVE)
		seq_printf(file, "leave %d %d %llu %llu %llu %llu\n", cpu, line->number,
			   line->woken, line->done, line->before, line->behind);
	else
		seq_printf(file, "%s %d %d %llu %llu\n", line->what == LINE_WAKE ? "wake" : "enter",
			   cpu, line->number, line->before, line->behind);
}

static int show_log(struct seq_file *file, void *data)
{
	int number;

	for_each_possible_cpu(number) {
		const struct cpu_log *cpu = per_cpu_ptr(&logs, number);
		unsigned int i, nr = smp_load_acquire(&cpu->nr);	/* of log_line() */

		for (i = 0; i < nr; i++)
			show_line(file, number, &cpu->lines[i]);
		if (cpu->full)
			seq_puts(file, "full\n");
	}
	return 0;
}

static int get_now(char *buffer, const struct kernel_param *parameter)
{
	int cpu, length = 0;

	for_each_online_cpu(cpu)
		length += sysfs_emit_at(buffer, length, "%d ",
					READ_ONCE(per_cpu_ptr(&logs, cpu)->now));
	return length + sysfs_emit_at(buffer, length, "\n");
}

static const struct kernel_param_ops now_ops = { .get = get_now };

module_param_cb(now, &now_ops, NULL, 0400);

/* ---- the module ---- */

static void free_log(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		vfree(per_cpu_ptr(&logs, cpu)->lines);
}

static int allocate_log(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		struct line *lines = vzalloc(LOG_LINES * sizeof(*lines));

		per_cpu_ptr(&logs, cpu)->lines = lines;
		per_cpu_ptr(&logs, cpu)->now = -1;
		if (!lines) {
			free_log();
			return -ENOMEM;
		}
	}
	return 0;
}

static int __init idle_states_init(void)
{
	int ret = allocate_log();

	if (ret)
		return ret;
	fill_states();
	ret = attach();
	if (ret)
		goto no_probes;
	ret = -ENOMEM;
	if (!proc_create_single("kbarman_idle", 0400, NULL, show_log))
		goto no_file;
	ret = cpuidle_register(&driver, NULL);
	if (!ret)
		return 0;
	remove_proc_entry("kbarman_idle", NULL);
no_file:
	detach();
no_probes:
	free_log();
	return ret;
}

static void __exit idle_states_exit(void)
{
	cpuidle_unregister(&driver);
	remove_proc_entry("kbarman_idle", NULL);
	detach();
	free_log();
}

module_init(idle_states_init);
module_exit(idle_states_exit);
MODULE_DESCRIPTION("idle states that take a known time to leave");
MODULE_LICENSE("GPL");
