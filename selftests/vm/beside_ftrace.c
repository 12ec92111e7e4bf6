// SPDX-License-Identifier: MIT
/*
 * Every wakeup, migration, interrupt and softirq that Linux's own tracer has is in the capture, in
 * the same order, with the same tasks, and no other. Both record the same boot at the same time. On
 * each CPU the comparison begins and ends with a child that is born there.
 *
 * EVENTS= is how many events there are at least (10,000).
 */
#include <signal.h>

#include "kselftest_harness.h"
#include "details.h"
#include "ftrace.h"

#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT	(1800 * SLOWNESS)

#define CPUS	2

/* What both say of an event. */
struct event {
	uint32_t what, id, cpu, task, context;
	size_t place;		/* in its sequence */
};

struct events {
	struct event *all;
	size_t nr, room;
};

static void events_add(struct events *events, struct event event)
{
	if (events->nr == events->room) {
		events->room = events->room ? 2 * events->room : 4096;
		events->all = realloc(events->all, events->room * sizeof(event));
		if (!events->all)
			lost("no memory");
	}
	event.place = events->nr;
	events->all[events->nr++] = event;
}

/* ---- what ftrace has ---- */

#define KIND(name_, id_field_, cpu_field_, what_, id_)				\
	{ .name = name_, .id_field = id_field_, .cpu_field = cpu_field_, .what = what_, .id = id_ }

/* An event of ftrace, and its fields. An id of -1: the field has it. */
static struct kind {
	const char *name, *id_field, *cpu_field;
	unsigned int what;
	int id;
	unsigned int number;	/* of the event; 0 = this kernel has none */
	struct ftrace_field id_at, cpu_at;
} kinds[] = {
	KIND("sched/sched_waking", "pid", "target_cpu", BM_KBARMAN_WAKING, -1),
	KIND("sched/sched_wakeup_new", "pid", "target_cpu", BM_KBARMAN_WAKING_NEW, -1),
	KIND("sched/sched_migrate_task", "pid", "dest_cpu", BM_KBARMAN_MIGRATE, -1),
	KIND("irq/irq_handler_entry", "irq", NULL, BM_KBARMAN_IRQ_ENTRY, -1),
	KIND("irq/irq_handler_exit", "irq", NULL, BM_KBARMAN_IRQ_EXIT, -1),
	KIND("irq/softirq_raise", "vec", NULL, BM_KBARMAN_SOFTIRQ_RAISE, -1),
	KIND("irq/softirq_entry", "vec", NULL, BM_KBARMAN_SOFTIRQ_ENTRY, -1),
	KIND("irq/softirq_exit", "vec", NULL, BM_KBARMAN_SOFTIRQ_EXIT, -1),
#if defined(__x86_64__) || defined(__i386__)
#define IPI(name, id)	\
	KIND("irq_vectors/" name "_entry", NULL, NULL, BM_KBARMAN_IPI_ENTRY, id),	\
	KIND("irq_vectors/" name "_exit", NULL, NULL, BM_KBARMAN_IPI_EXIT, id)

	IPI("local_timer", BM_KBARMAN_IPI_TIMER),
	IPI("reschedule", BM_KBARMAN_IPI_RESCHEDULE),
	IPI("call_function", BM_KBARMAN_IPI_CALL),
	IPI("call_function_single", BM_KBARMAN_IPI_CALL_ONE),
	IPI("irq_work", BM_KBARMAN_IPI_WORK),
#else
	KIND("ipi/ipi_entry", "reason", NULL, BM_KBARMAN_IPI_ENTRY, -1),
	KIND("ipi/ipi_exit", "reason", NULL, BM_KBARMAN_IPI_EXIT, -1),
#endif
};

#define KINDS	(sizeof(kinds) / sizeof(*kinds))

static struct ftrace_field common_pid, common_flags;

static void kinds_enable(void)
{
	char file[128];
	size_t i;

	for (i = 0; i < KINDS; i++) {
		struct kind *kind = &kinds[i];

		if (!ftrace_has(kind->name))
			continue;
		kind->number = ftrace_id(kind->name);
		if (kind->id_field)
			kind->id_at = ftrace_field(kind->name, kind->id_field);
		if (kind->cpu_field)
			kind->cpu_at = ftrace_field(kind->name, kind->cpu_field);
		snprintf(file, sizeof(file), "events/%s/enable", kind->name);
		ftrace_set(file, "1");
	}
	common_pid = ftrace_field("sched/sched_waking", "common_pid");
	common_flags = ftrace_field("sched/sched_waking", "common_flags");
}

/* The strings that ftrace has by their addresses: "0x... : "Rescheduling interrupts"". */
static uint32_t ipi_of(uint64_t address)
{
	static const struct {
		const char *name;
		uint32_t ipi;
	} names[] = {
		{ "Rescheduling", BM_KBARMAN_IPI_RESCHEDULE },
		{ "Function call", BM_KBARMAN_IPI_CALL },
		{ "Single function", BM_KBARMAN_IPI_CALL_ONE },
		{ "CPU stop", BM_KBARMAN_IPI_STOP },
		{ "Timer broadcast", BM_KBARMAN_IPI_TICK },
		{ "IRQ work", BM_KBARMAN_IPI_WORK },
	};
	static struct {
		uint64_t address;
		uint32_t ipi;
	} known[16];
	static size_t nr;
	char line[512], *name;
	uint32_t ipi = BM_KBARMAN_IPI_OTHER;
	size_t i;
	FILE *file;

	for (i = 0; i < nr; i++)
		if (known[i].address == address)
			return known[i].ipi;
	file = fopen(FTRACE "/printk_formats", "re");
	if (!file)
		lost("no names of IPIs");
	while (fgets(line, sizeof(line), file)) {
		name = strchr(line, '"');
		if (!name || strtoull(line, NULL, 16) != address)
			continue;
		for (i = 0; i < sizeof(names) / sizeof(*names); i++)
			if (!strncmp(name + 1, names[i].name, strlen(names[i].name)))
				ipi = names[i].ipi;
	}
	fclose(file);
	if (nr < 16) {
		known[nr].address = address;
		known[nr++].ipi = ipi;
	}
	return ipi;
}

static uint32_t kind_id(const struct kind *kind, const uint8_t *bytes)
{
	if (kind->id >= 0)
		return kind->id;
	if (kind->what == BM_KBARMAN_IPI_ENTRY || kind->what == BM_KBARMAN_IPI_EXIT)
		return ipi_of(ftrace_value(bytes, kind->id_at));
	return ftrace_value(bytes, kind->id_at);
}

/* TRACE_FLAG_* of Linux's trace_events.h. */
static uint32_t flags_context(unsigned int flags, uint32_t task)
{
	if (flags & (0x08 | 0x40))
		return BM_KBARMAN_IN_IRQ;
	if (flags & 0x10)
		return BM_KBARMAN_IN_SOFTIRQ;
	return task ? BM_KBARMAN_IN_TASK : BM_KBARMAN_IN_IDLE;
}

static void take_event(void *to, const uint8_t *bytes)
{
	uint32_t task = ftrace_value(bytes, common_pid);
	unsigned int flags = ftrace_value(bytes, common_flags);
	uint16_t number;
	size_t i;

	memcpy(&number, bytes, sizeof(number));
	for (i = 0; i < KINDS; i++)
		if (number && kinds[i].number == number)
			events_add(to, (struct event) {
				.what = kinds[i].what, .id = kind_id(&kinds[i], bytes),
				.cpu = ftrace_value(bytes, kinds[i].cpu_at), .task = task,
				.context = flags_context(flags, task) });
}

/* ---- what kbarman has ---- */

static struct events recorded_on(int fd, uint32_t cpu)
{
	const struct bm_kbarman_detail *detail;
	const void *map = map_cpu(fd, cpu);
	struct walk walk = walk_begin(map);
	struct events events = { 0 };
	const union record *r;

	while ((r = walk_next(&walk))) {
		detail = walk_detail(&walk, r);
		if (!detail || detail->what > BM_KBARMAN_SOFTIRQ_EXIT)
			continue;
		events_add(&events, (struct event) {
			.what = detail->what, .id = detail->id,
			.cpu = detail->what <= BM_KBARMAN_MIGRATE ? detail->cpu : 0,
			.task = r->counter.task_id, .context = detail->context });
	}
	munmap((void *)map, query(fd).map_bytes);
	return events;
}

/* ---- the comparison ---- */

/*
 * Between the probes of the two an interrupt may come, if interrupts are on there: then each has
 * the interrupt on another side of the event. So these events are compared by themselves.
 */
static bool is_interruptible(const struct event *e)
{
	return e->what == BM_KBARMAN_SOFTIRQ_ENTRY || e->what == BM_KBARMAN_SOFTIRQ_EXIT ||
	       (e->what == BM_KBARMAN_WAKING && e->id == e->task);
}

/* Where @child was born; the number of events if it was not. */
static size_t birth_of(const struct events *events, pid_t child)
{
	size_t i;

	for (i = 0; i < events->nr; i++)
		if (events->all[i].what == BM_KBARMAN_WAKING_NEW &&
		    events->all[i].id == (uint32_t)child)
			break;
	return i;
}

static bool event_is(const struct event *a, const struct event *b)
{
	return a->what == b->what && a->id == b->id && a->cpu == b->cpu && a->task == b->task &&
	       (is_rt() || a->context == b->context);
}

static void log_event(struct __test_metadata *_metadata, const char *whose, const struct event *e)
{
	if (e)
		TH_LOG("%s: what %u, id %u, cpu %u, task %u, context %u", whose, e->what, e->id,
		       e->cpu, e->task, e->context);
	else
		TH_LOG("%s: nothing more", whose);
}

static int by_task(const void *a, const void *b)
{
	const struct event *x = a, *y = b;

	if (x->task != y->task)
		return x->task < y->task ? -1 : 1;
	return (x->place > y->place) - (x->place < y->place);
}

/* The events of @events between the births of the children that are interruptible, or not. */
static struct events chosen_events(struct __test_metadata *_metadata, const struct events *events,
				   const pid_t children[2], bool interruptible)
{
	size_t at = birth_of(events, children[0]), end = birth_of(events, children[1]);
	struct events chosen = { 0 };

	EXPECT_LT(at, end);
	EXPECT_LT(end, events->nr);
	for (; at < end && end < events->nr; at++)
		if (is_interruptible(&events->all[at]) == interruptible)
			events_add(&chosen, events->all[at]);
	/* On PREEMPT_RT another task may come between the probes, too. */
	if (interruptible && is_rt())
		qsort(chosen.all, chosen.nr, sizeof(*chosen.all), by_task);
	return chosen;
}

/* Returns how many events are the same in both. */
static size_t expect_same(struct __test_metadata *_metadata, const struct events *ours,
			  const struct events *its, const pid_t children[2], bool interruptible)
{
	struct events our = chosen_events(_metadata, ours, children, interruptible);
	struct events their = chosen_events(_metadata, its, children, interruptible);
	size_t same = 0;

	while (same < our.nr && same < their.nr && event_is(&our.all[same], &their.all[same]))
		same++;
	EXPECT_EQ(our.nr, their.nr);
	EXPECT_EQ(our.nr, same) {
		TH_LOG("after %zu that are the same", same);
		log_event(_metadata, "kbarman", same < our.nr ? &our.all[same] : NULL);
		log_event(_metadata, "ftrace", same < their.nr ? &their.all[same] : NULL);
	}
	free(our.all);
	free(their.all);
	return same;
}

/* ---- what is recorded ---- */

static pid_t bear_child(uint32_t cpu)
{
	pid_t child;

	pin(cpu);
	child = fork();
	if (!child)
		_exit(0);
	waitpid(child, NULL, 0);
	return child;
}

static uint64_t written(int fd)
{
	return stats(fd, KBARMAN_CPU_ALL).written;
}

/* Wakeups of tasks on the same CPU and on another one, timers, softirqs, migrations. */
static void work(int fd, uint64_t events)
{
	struct echo here, there;
	unsigned int round = 0;

	pin(0);
	here = echo_create(0);
	there = echo_create(1);
	while (written(fd) < events) {
		echo_rounds(&here, 50);
		echo_rounds(&there, 50);
		usleep(1000);
		if (round++ % 4)
			continue;
		pin(1);
		usleep(1000);
		pin(0);
	}
	/* It has the ends of the other's pipes, too. */
	echo_destroy(&there);
	echo_destroy(&here);
}

FIXTURE(beside_ftrace)
{
	uint64_t events;
	int fd;
};

FIXTURE_SETUP(beside_ftrace)
{
	const char *asked = getenv("EVENTS");

	self->events = asked ? strtoull(asked, NULL, 10) : SLOWED(10000);
	self->fd = device_open_free();
	if (query(self->fd).nr_cpus < CPUS || query(self->fd).absent & KBARMAN_SOURCE_LATENCY)
		skip_test();
	/* An event takes up to 48 bytes in both, and one CPU may have all of them. */
	if (!ftrace_begin(self->events / 20 + 4096))
		skip_test();
}

FIXTURE_TEARDOWN(beside_ftrace)
{
	close(self->fd);
	ftrace_end();
}

TEST_F(beside_ftrace, both_have_the_same_events)
{
	struct kbarman_configure c = {
		.sources = KBARMAN_SOURCE_LATENCY, .mode = KBARMAN_MODE_STREAM,
		.ring_bytes = self->events * 48 + 4 * MIB };
	pid_t children[CPUS][2];
	size_t same = 0;
	uint32_t cpu;

	kinds_enable();
	ASSERT_EQ(0, configure(self->fd, c));
	ftrace_set("tracing_on", "1");
	ASSERT_EQ(0, start(self->fd));
	for (cpu = 0; cpu < CPUS; cpu++)
		children[cpu][0] = bear_child(cpu);
	work(self->fd, self->events);
	for (cpu = 0; cpu < CPUS; cpu++)
		children[cpu][1] = bear_child(cpu);
	ASSERT_EQ(0, stop(self->fd));
	ftrace_set("tracing_on", "0");
	ftrace_set("events/enable", "0");
	for (cpu = 0; cpu < CPUS; cpu++) {
		struct kbarman_stats s = stats(self->fd, cpu);
		struct events ours = recorded_on(self->fd, cpu), its = { 0 };

		EXPECT_EQ(0, lost_records(&s));
		ASSERT_EQ(0, ftrace_lost(cpu));
		ftrace_read(cpu, take_event, &its);
		same += expect_same(_metadata, &ours, &its, children[cpu], false);
		same += expect_same(_metadata, &ours, &its, children[cpu], true);
		free(ours.all);
		free(its.all);
	}
	TH_LOG("%zu events are the same", same);
	/* The rest is in front of the first child and behind the last one. */
	EXPECT_LE(self->events * 9 / 10, same);
}

TEST_HARNESS_MAIN
