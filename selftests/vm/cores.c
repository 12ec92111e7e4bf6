// SPDX-License-Identifier: MIT
/*
 * CPUs of several kinds: CPU 0 has the PMU kb_big, and CPU 1 has kb_little (module/core_pmus.c).
 * What these count is known, so that sums can be told to the last one.
 */
#include <linux/perf_event.h>
#include <sys/mman.h>

#include "burn.h"
#include "kselftest_harness.h"
#include "sums.h"

#define PMUS_FILE	"core_pmus.ko"
#define PARAMETERS	"/sys/module/core_pmus/parameters/"
#define DEVICES		"/sys/bus/event_source/devices/"
#define SAMPLE_RATE	"/proc/sys/kernel/perf_event_max_sample_rate"
#define CPU_PERCENT	"/proc/sys/kernel/perf_cpu_time_max_percent"
#define TICK_NS		1000000

/* Numbers of events. */
enum { CYCLES_OF = 0x11, INSTRUCTIONS_OF = 0x08, STEPS = 0x01, FLAGS = 0x02, WIDE = 0x21,
       NARROW = 0x22 };

static const struct kbarman_event page_faults = {
	.attr = { .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_PAGE_FAULTS }, .name = "page-faults",
};

static void pmus_unload(void)
{
	unsigned int tries = 0;

	while (syscall(SYS_delete_module, "core_pmus", O_NONBLOCK) < 0 && errno != ENOENT)
		if (tries++ == 1000 || usleep(10000))
			lost("core_pmus does not go");
}

static void pmus_load(const char *parameters)
{
	int fd = open(PMUS_FILE, O_RDONLY | O_CLOEXEC);

	if (fd < 0) {
		printf("# SKIP this VM has no %s\n", PMUS_FILE);
		skip_test();
	}
	pmus_unload();
	if (syscall(SYS_finit_module, fd, parameters, 0) < 0)
		lost("%s does not load", PMUS_FILE);
	close(fd);
}

static uint32_t pmu_type(const char *name)
{
	char path[64], text[16];

	snprintf(path, sizeof(path), DEVICES "%s/type", name);
	read_file(path, text, sizeof(text));
	return strtoul(text, NULL, 10);
}

static struct kbarman_event event_of(const char *pmu, uint64_t config, const char *name)
{
	struct kbarman_event event = {
		.attr = { .type = pmu_type(pmu), .config = config, .exclude_guest = 1 } };

	snprintf(event.name, sizeof(event.name), "%s", name);
	return event;
}

/* Count so many steps on this CPU. */
static void step(unsigned int steps)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", steps);
	write_file(PARAMETERS "step", text);
}

static bool names_are(int fd, uint32_t cpu, const char *const *names, unsigned int nr)
{
	const void *map = map_cpu(fd, cpu);
	bool same = capture_pmu(map, cpu)->num_counters == nr;
	unsigned int i;

	for (i = 0; i < nr; i++) {
		const char *name;
		char key[32];

		snprintf(key, sizeof(key), "counter.%u.%u", cpu, i);
		name = capture_fact(map, key);
		same = same && name && !strcmp(name, names[i]);
	}
	munmap((void *)map, query(fd).map_bytes);
	return same;
}

/* The capture says this of event @i of @cpu, whose name is @name; NULL: it does not say this. */
static bool told_is(int fd, const char *what, uint32_t cpu, unsigned int i, const char *name)
{
	const void *map = map_cpu(fd, cpu);
	const char *fact;
	char key[32];
	bool same;

	snprintf(key, sizeof(key), "%s.%u.%u", what, cpu, i);
	fact = capture_fact(map, key);
	same = name ? fact && !strcmp(fact, name) : !fact;
	munmap((void *)map, query(fd).map_bytes);
	return same;
}

static bool uncounted_is(int fd, uint32_t cpu, unsigned int i, const char *name)
{
	return told_is(fd, "uncounted", cpu, i, name);
}

/* @cpu takes no samples, because it can't count the first event, @name. */
static bool unsampled_is(int fd, uint32_t cpu, const char *name)
{
	return told_is(fd, "unsampled", cpu, 0, name);
}

#define NAMES(...) (const char *const []){ __VA_ARGS__ }, \
	sizeof((const char *const []){ __VA_ARGS__ }) / sizeof(char *)

FIXTURE(cores)
{
	int fd;
	struct kbarman_configure config;
	struct kbarman_event events[32];
	unsigned int counters;
};

FIXTURE_SETUP(cores)
{
	self->fd = device_open_free();
	if (query(self->fd).nr_cpus < 2 || !cpu_online(1))
		lost("these tests need two CPUs");
	pin(0);
	pmus_load("big=0 little=1");
	self->config = sampling(self->events, 0);
	self->config.events_ptr = (uintptr_t)self->events;
	self->config.sources |= KBARMAN_SOURCE_SCHED;
	self->config.flags |= KBARMAN_CONFIGURE_COUNT_SWITCH;
	self->config.ring_bytes = 16 << 20;
}

FIXTURE_TEARDOWN(cores)
{
	close(self->fd);
	pmus_unload();
}

/* A counter that a CPU may lack, or an alternative for the last one. The first one samples. */
static void add(FIXTURE_DATA(cores) *self, struct kbarman_event event, uint32_t flags)
{
	self->counters += !(flags & KBARMAN_EVENT_ELSE);
	event.flags |= flags;
	event.attr.sample_period = self->counters == 1 ? PERIOD_NS : 0;
	self->events[self->config.nr_events++] = event;
}

/* The first counter samples with this period; 0: not at all. */
static void set_period(FIXTURE_DATA(cores) *self, uint64_t period)
{
	unsigned int i;

	for (i = 0; i < self->config.nr_events; i++)
		if (self->events[i].attr.sample_period)
			self->events[i].attr.sample_period = period;
}

#define ADD(...) add(self, (__VA_ARGS__), KBARMAN_EVENT_OPTIONAL)
#define ELSE(...) add(self, (__VA_ARGS__), KBARMAN_EVENT_ELSE)
#define ADD_OF(pmu, number, name) ADD(event_of(pmu, number, name))
#define ELSE_OF(pmu, number, name) ELSE(event_of(pmu, number, name))

static void expect_good(struct __test_metadata *_metadata, int fd)
{
	uint32_t cpu, nr = query(fd).nr_cpus;

	for (cpu = 0; cpu < nr; cpu++) {
		struct kbarman_stats s = stats(fd, cpu);
		struct judgement j = judge_cpu(fd, cpu);

		EXPECT_EQ(0, s.overwritten);
		EXPECT_EQ(0, lost_records(&s));
		EXPECT_EQ(NULL, j.fault) TH_LOG("at %llu: %s", (unsigned long long)j.at, j.fault);
	}
}

/* Something to count on both CPUs. */
static void work(void)
{
	work_on(0);
	work_on(1);
}

static void work_until_sampled(int fd)
{
	while (samples_with_pc(fd, 0) < 3 || samples_with_pc(fd, 1) < 3)
		work();
}

/* ---- lists ---- */

TEST_F(cores, each_cpu_counts_what_its_pmu_has)
{
	ADD_OF("kb_big", CYCLES_OF, "big/cycles/");
	ELSE_OF("kb_little", CYCLES_OF, "little/cycles/");
	ADD_OF("kb_little", CYCLES_OF, "little/cycles/");
	ADD_OF("kb_big", WIDE, "big/wide/");
	ADD_OF("kb_little", INSTRUCTIONS_OF, "little/instructions/");
	ADD_OF("kb_big", INSTRUCTIONS_OF, "big/instructions/");
	ASSERT_EQ(0, configure(self->fd, self->config));
	ASSERT_EQ(0, start(self->fd));
	work_until_sampled(self->fd);
	ASSERT_EQ(0, stop(self->fd));
	expect_good(_metadata, self->fd);
	EXPECT_TRUE(names_are(self->fd, 0, NAMES("big/cycles/", "big/wide/", "big/instructions/")));
	EXPECT_TRUE(names_are(self->fd, 1, NAMES("little/cycles/", "little/instructions/")));
	EXPECT_TRUE(uncounted_is(self->fd, 0, 0, NULL));
	EXPECT_TRUE(uncounted_is(self->fd, 0, 2, "little/cycles/"));
	EXPECT_TRUE(uncounted_is(self->fd, 0, 4, "little/instructions/"));
	EXPECT_TRUE(uncounted_is(self->fd, 1, 0, "big/cycles/"));
	EXPECT_TRUE(uncounted_is(self->fd, 1, 2, NULL));
	EXPECT_TRUE(uncounted_is(self->fd, 1, 3, "big/wide/"));
	EXPECT_TRUE(sums_are_equal(self->fd));
	EXPECT_EQ(0, unrecorded(self->fd));
	/* ns, and a quarter of these, of about the same time. */
	EXPECT_LT(0, counted_of(self->fd, 1, 1).all);
	EXPECT_GT(counted_of(self->fd, 1, 0).all, counted_of(self->fd, 1, 1).all);
}

TEST_F(cores, what_is_not_optional_does_not_start)
{
	struct kbarman_start s = { .size = sizeof(s) };

	ADD_OF("kb_big", CYCLES_OF, "big/cycles/");
	ADD_OF("kb_little", CYCLES_OF, "little/cycles/");
	self->events[1].flags = 0;
	ASSERT_EQ(0, configure(self->fd, self->config));
	EXPECT_EQ(-ENOENT, call(self->fd, KBARMAN_START, &s));
	EXPECT_EQ(1, s.event);
	EXPECT_EQ(0, s.cpu);
}

/* However many events are created before one is refused, on whichever CPU. */
TEST_F(cores, a_start_that_fails_on_a_later_cpu_leaves_the_former_recording)
{
	struct recording before, after;
	unsigned int accepted = 0;
	char text[16];
	int error;

	ADD_OF("kb_big", CYCLES_OF, "cycles");
	ELSE_OF("kb_little", CYCLES_OF, "cycles");
	ASSERT_EQ(0, configure(self->fd, self->config));
	ASSERT_EQ(0, start(self->fd));
	work_until_sampled(self->fd);
	ASSERT_EQ(0, stop(self->fd));
	before = recording_of(self->fd);
	for (;; accepted++) {
		snprintf(text, sizeof(text), "%u", accepted);
		write_file(PARAMETERS "accepted", text);
		error = start(self->fd);
		if (!error)
			break;
		ASSERT_EQ(-EBUSY, error);
		after = recording_of(self->fd);
		ASSERT_EQ(0, memcmp(&before, &after, sizeof(before)));
		expect_good(_metadata, self->fd);
		EXPECT_TRUE(names_are(self->fd, 1, NAMES("cycles")));
		EXPECT_TRUE(sums_are_equal(self->fd));
	}
	/* One for each CPU: on the second one a start failed, too. */
	EXPECT_EQ(2, accepted);
	EXPECT_LT(before.query.recording, query(self->fd).recording);
	ASSERT_EQ(0, stop(self->fd));
}

TEST_F(cores, a_name_stands_for_the_events_of_several_pmus)
{
	ADD_OF("kb_big", CYCLES_OF, "cycles");
	ELSE_OF("kb_little", CYCLES_OF, "cycles");
	ADD_OF("kb_big", INSTRUCTIONS_OF, "instructions");
	ELSE_OF("kb_big", WIDE, "instructions");
	ELSE_OF("kb_little", INSTRUCTIONS_OF, "instructions");
	ASSERT_EQ(0, configure(self->fd, self->config));
	ASSERT_EQ(0, start(self->fd));
	work_until_sampled(self->fd);
	ASSERT_EQ(0, stop(self->fd));
	expect_good(_metadata, self->fd);
	EXPECT_TRUE(names_are(self->fd, 0, NAMES("cycles", "instructions")));
	EXPECT_TRUE(names_are(self->fd, 1, NAMES("cycles", "instructions")));
	for (unsigned int i = 0; i < 5; i++) {
		EXPECT_TRUE(uncounted_is(self->fd, 0, i, NULL));
		EXPECT_TRUE(uncounted_is(self->fd, 1, i, NULL));
	}
	EXPECT_TRUE(sums_are_equal(self->fd));
}

TEST_F(cores, a_generic_event_counts_on_each_pmu_as_on_arm)
{
	pmus_load("big=0 little=1 generic=1");
	ADD(cycles);
	ASSERT_EQ(0, configure(self->fd, self->config));
	ASSERT_EQ(0, start(self->fd));
	work_until_sampled(self->fd);
	ASSERT_EQ(0, stop(self->fd));
	expect_good(_metadata, self->fd);
	EXPECT_TRUE(names_are(self->fd, 0, NAMES("cycles")));
	EXPECT_TRUE(names_are(self->fd, 1, NAMES("cycles")));
	EXPECT_TRUE(sums_are_equal(self->fd));
}

/* As a tool lists them that knows the PMUs: one for each. */
TEST_F(cores, a_generic_event_counts_on_each_pmu_as_on_x86)
{
	struct kbarman_event big = cycles, little = cycles;

	pmus_load("big=0 little=1 generic=2");
	big.attr.config |= (uint64_t)pmu_type("kb_big") << 32;
	little.attr.config |= (uint64_t)pmu_type("kb_little") << 32;
	ADD(big);
	ELSE(little);
	ADD(cpu_clock);
	ASSERT_EQ(0, configure(self->fd, self->config));
	/* Kernels before 5.13 don't know such events. */
	if (start(self->fd) || counters_of(self->fd, 0) == 1)
		SKIP(return, "generic events can't name a PMU here");
	work_until_sampled(self->fd);
	ASSERT_EQ(0, stop(self->fd));
	expect_good(_metadata, self->fd);
	EXPECT_TRUE(names_are(self->fd, 0, NAMES("cycles", "cpu-clock")));
	EXPECT_TRUE(names_are(self->fd, 1, NAMES("cycles", "cpu-clock")));
	EXPECT_TRUE(sums_are_equal(self->fd));
}

TEST_F(cores, a_cpu_that_can_count_nothing_falls_back)
{
	struct kbarman_event clock = cpu_clock;

	clock.flags = KBARMAN_EVENT_FALLBACK;
	ADD_OF("kb_big", CYCLES_OF, "big/cycles/");
	ELSE(clock);
	ADD_OF("kb_big", WIDE, "big/wide/");
	ASSERT_EQ(0, configure(self->fd, self->config));
	ASSERT_EQ(0, start(self->fd));
	work_until_sampled(self->fd);
	ASSERT_EQ(0, stop(self->fd));
	expect_good(_metadata, self->fd);
	EXPECT_TRUE(names_are(self->fd, 0, NAMES("big/cycles/", "big/wide/")));
	EXPECT_TRUE(names_are(self->fd, 1, NAMES("cpu-clock")));
	EXPECT_TRUE(uncounted_is(self->fd, 1, 0, "big/cycles/"));
	EXPECT_TRUE(uncounted_is(self->fd, 1, 2, "big/wide/"));
	EXPECT_STREQ("cpu-clock", capture_fact(map_cpu(self->fd, 0), "fallback"));
	EXPECT_EQ(KBARMAN_STATE_FALLBACK, query(self->fd).state & KBARMAN_STATE_FALLBACK);
	EXPECT_TRUE(sums_are_equal(self->fd));
}

TEST_F(cores, a_cpu_that_can_count_nothing_records_the_rest)
{
	pid_t worker;

	ADD_OF("kb_big", CYCLES_OF, "big/cycles/");
	ASSERT_EQ(0, configure(self->fd, self->config));
	ASSERT_EQ(0, start(self->fd));
	work_on(0);
	worker = work_on(1);
	ASSERT_EQ(0, stop(self->fd));
	expect_good(_metadata, self->fd);
	EXPECT_EQ(1, counters_of(self->fd, 0));
	EXPECT_EQ(0, counters_of(self->fd, 1));
	EXPECT_TRUE(uncounted_is(self->fd, 1, 0, "big/cycles/"));
	EXPECT_LT(50, switches_to(self->fd, 1, worker));
	EXPECT_EQ(0, judge_cpu(self->fd, 1).by_type[BM_RECORD_SAMPLE]);
	EXPECT_EQ(0, samples_with_pc(self->fd, 1));
	EXPECT_LT(0, judge_cpu(self->fd, 0).by_type[BM_RECORD_SAMPLE]);
	EXPECT_TRUE(sums_are_equal(self->fd));
}

/* ---- which event samples ---- */

/* Configured, started, run and stopped. */
static void record_work(struct __test_metadata *_metadata, int fd,
			struct kbarman_configure config)
{
	ASSERT_EQ(0, configure(fd, config));
	ASSERT_EQ(0, start(fd));
	while (samples_with_pc(fd, 1) < 3)
		work();
	ASSERT_EQ(0, stop(fd));
	expect_good(_metadata, fd);
	EXPECT_TRUE(sums_are_equal(fd));
}

/* Its period would be that of another event. */
TEST_F(cores, a_lost_first_event_lets_no_software_event_sample)
{
	ADD_OF("kb_little", CYCLES_OF, "little/cycles/");
	ADD(page_faults);
	record_work(_metadata, self->fd, self->config);
	EXPECT_TRUE(names_are(self->fd, 0, NAMES(page_faults.name)));
	EXPECT_TRUE(uncounted_is(self->fd, 0, 0, "little/cycles/"));
	EXPECT_TRUE(unsampled_is(self->fd, 0, "little/cycles/"));
	EXPECT_TRUE(unsampled_is(self->fd, 1, NULL));
	EXPECT_EQ(0, samples_with_pc(self->fd, 0));
	EXPECT_LT(0, judge_cpu(self->fd, 0).by_type[BM_RECORD_SAMPLE]);
}

TEST_F(cores, an_alternative_samples_where_it_is_and_not_where_another_counter_has_its_pmu)
{
	ADD_OF("kb_big", NARROW, "big/narrow/");
	ELSE_OF("kb_little", CYCLES_OF, "little/cycles/");
	ADD_OF("kb_big", CYCLES_OF, "big/cycles/");
	ADD_OF("kb_little", CYCLES_OF, "little/cycles/");
	record_work(_metadata, self->fd, self->config);
	EXPECT_TRUE(names_are(self->fd, 0, NAMES("big/cycles/")));
	EXPECT_TRUE(unsampled_is(self->fd, 0, "big/narrow/"));
	EXPECT_TRUE(unsampled_is(self->fd, 1, NULL));
	EXPECT_EQ(0, samples_with_pc(self->fd, 0));
}

/* A generic event may be one of any PMU: those that come after it are other events. */
TEST_F(cores, a_lost_generic_event_lets_no_other_sample)
{
	const struct kbarman_event lost = {
		.attr = { .type = PERF_TYPE_HW_CACHE, .config = PERF_COUNT_HW_CACHE_NODE | PERF_COUNT_HW_CACHE_OP_PREFETCH << 8 |
			  PERF_COUNT_HW_CACHE_RESULT_MISS << 16 },
		.name = "node-prefetch-misses",
	};
	uint32_t cpu;

	ADD(lost);
	ADD_OF("kb_big", CYCLES_OF, "big/cycles/");
	ADD_OF("kb_little", CYCLES_OF, "little/cycles/");
	ASSERT_EQ(0, configure(self->fd, self->config));
	ASSERT_EQ(0, start(self->fd));
	work();
	ASSERT_EQ(0, stop(self->fd));
	if (counters_of(self->fd, 0) == 2)
		SKIP(return, "this PMU has the event that is to be lost");
	for (cpu = 0; cpu < 2; cpu++) {
		EXPECT_TRUE(unsampled_is(self->fd, cpu, lost.name));
		EXPECT_EQ(0, samples_with_pc(self->fd, cpu));
		EXPECT_LT(0, judge_cpu(self->fd, cpu).by_type[BM_RECORD_SAMPLE]);
	}
	EXPECT_TRUE(sums_are_equal(self->fd));
}

/* This may be so on one CPU only, and is an error all the same. */
TEST_F(cores, too_many_events_at_once_are_refused)
{
	struct kbarman_start s = { .size = sizeof(s) };

	pmus_load("big=0 little=1 places=2");
	ADD_OF("kb_big", CYCLES_OF, "big/cycles/");
	ELSE_OF("kb_little", CYCLES_OF, "little/cycles/");
	ADD_OF("kb_little", INSTRUCTIONS_OF, "little/instructions/");
	ADD_OF("kb_little", STEPS, "little/steps/");
	ASSERT_EQ(0, configure(self->fd, self->config));
	EXPECT_EQ(-ENOSPC, call(self->fd, KBARMAN_START, &s));
	EXPECT_EQ(3, s.event);
	EXPECT_EQ(1, s.cpu);
}

/* ---- CPUs that come and go ---- */

TEST_F(cores, a_cpu_that_comes_again_keeps_its_list)
{
	unsigned int round;

	ADD_OF("kb_big", STEPS, "big/steps/");
	ADD_OF("kb_little", CYCLES_OF, "little/cycles/");
	ADD_OF("kb_little", STEPS, "little/steps/");
	set_period(self, 0);
	ASSERT_EQ(0, configure(self->fd, self->config));
	ASSERT_EQ(0, start(self->fd));
	for (round = 0; round < 3; round++) {
		work();
		pin(1);
		step(1000);
		pin(0);
		cpu_set_online(1, false);
		cpu_set_online(1, true);
		while (stats(self->fd, KBARMAN_CPU_ALL).online != query(self->fd).nr_cpus)
			usleep(1000);
	}
	pin(1);
	step(5);
	pin(0);
	ASSERT_EQ(0, stop(self->fd));
	expect_good(_metadata, self->fd);
	EXPECT_TRUE(names_are(self->fd, 0, NAMES("big/steps/")));
	EXPECT_TRUE(names_are(self->fd, 1, NAMES("little/cycles/", "little/steps/")));
	EXPECT_EQ(3, stats(self->fd, 1).stopped[KBARMAN_STOPPED_OFFLINE]);
	EXPECT_TRUE(sums_are_equal(self->fd));
	EXPECT_EQ(3005, counted_of(self->fd, 1, 1).all);
	/* Nobody steps while the CPU goes. */
	EXPECT_EQ(0, counted_of(self->fd, 1, 1).unrecorded);
}

TEST_F(cores, a_cpu_that_comes_late_counts_what_its_pmu_has)
{
	ADD_OF("kb_big", CYCLES_OF, "big/cycles/");
	ELSE_OF("kb_little", CYCLES_OF, "little/cycles/");
	ADD_OF("kb_little", NARROW, "little/narrow/");
	cpu_set_online(1, false);
	ASSERT_EQ(0, configure(self->fd, self->config));
	ASSERT_EQ(0, start(self->fd));
	cpu_set_online(1, true);
	while (stats(self->fd, KBARMAN_CPU_ALL).online != query(self->fd).nr_cpus)
		usleep(1000);
	pin(1);
	step(42);
	pin(0);
	work_until_sampled(self->fd);
	ASSERT_EQ(0, stop(self->fd));
	expect_good(_metadata, self->fd);
	EXPECT_TRUE(names_are(self->fd, 1, NAMES("little/cycles/", "little/narrow/")));
	EXPECT_TRUE(uncounted_is(self->fd, 1, 0, "big/cycles/"));
	EXPECT_EQ(42, sum_of(self->fd, 1, ~0U, 1));
	EXPECT_TRUE(sums_are_equal(self->fd));
	EXPECT_EQ(0, unrecorded(self->fd));
}

/* ---- modifiers ---- */

/* As FLAGS counts them. */
enum { NO_USER = 1 << 0, NO_KERNEL = 1 << 1, NO_HV = 1 << 2, PRECISE_2 = 2 << 3, WAKES = 1 << 5,
       NO_GUEST = 1 << 6 };

TEST_F(cores, flags_of_an_event_arrive)
{
	static const uint32_t flags[] = { NO_USER, NO_KERNEL, NO_HV };
	unsigned int i;

	ADD_OF("kb_big", STEPS, "big/steps/");
	for (i = 0; i < 3; i++) {
		struct kbarman_event event = event_of("kb_big", FLAGS, "0");

		event.attr.exclude_user = flags[i] == NO_USER;
		event.attr.exclude_kernel = flags[i] == NO_KERNEL;
		event.attr.exclude_hv = flags[i] == NO_HV;
		event.name[0] += i;
		ADD(event);
	}
	set_period(self, 0);
	ASSERT_EQ(0, configure(self->fd, self->config));
	ASSERT_EQ(0, start(self->fd));
	step(1);
	ASSERT_EQ(0, stop(self->fd));
	for (i = 0; i < 3; i++)
		EXPECT_EQ(flags[i] | NO_GUEST, counted_of(self->fd, 0, 1 + i).all);
	EXPECT_TRUE(sums_are_equal(self->fd));
}

/* What PMUs of this kind count is counted all the same. */
TEST_F(cores, guests_are_left_out_where_the_pmu_can)
{
	struct kbarman_event event;
	int guests;

	for (guests = 1; guests >= 0; guests--) {
		pmus_load(guests ? "big=0 little=1 guests=1" : "big=0 little=1 guests=0");
		event = event_of("kb_big", FLAGS, "flags");
		self->config.nr_events = self->counters = 0;
		ADD(event);
		set_period(self, 0);
		ASSERT_EQ(0, configure(self->fd, self->config));
		ASSERT_EQ(0, start(self->fd));
		step(1);
		ASSERT_EQ(0, stop(self->fd));
		EXPECT_EQ(guests ? NO_GUEST : 0, counted_of(self->fd, 0, 0).all);
		EXPECT_TRUE(sums_are_equal(self->fd));
	}
}

/*
 * x86 lets several precise samples wait in a buffer, without a handler that reads the counters,
 * unless each of them has to wake somebody.
 */
TEST_F(cores, samples_are_precise_one_by_one)
{
	struct kbarman_event samples = event_of("kb_big", FLAGS, "samples");

	samples.attr.precise_ip = 2;
	ADD(samples);
	ASSERT_EQ(0, configure(self->fd, self->config));
	ASSERT_EQ(0, start(self->fd));
	step(1);
	ASSERT_EQ(0, stop(self->fd));
	EXPECT_EQ(PRECISE_2 | WAKES | NO_GUEST, counted_of(self->fd, 0, 0).all);
	EXPECT_TRUE(sums_are_equal(self->fd));
	set_period(self, 0);
	EXPECT_EQ(-EINVAL, configure(self->fd, self->config));
}

TEST_F(cores, an_event_that_is_not_precise_enough_is_left_out)
{
	struct kbarman_event event = event_of("kb_big", CYCLES_OF, "big/cycles/ppp");

	event.attr.precise_ip = 3;
	ADD(event);
	ELSE_OF("kb_little", CYCLES_OF, "little/cycles/");
	ADD_OF("kb_big", STEPS, "big/steps/");
	record_work(_metadata, self->fd, self->config);
	EXPECT_TRUE(names_are(self->fd, 0, NAMES("big/steps/")));
	EXPECT_TRUE(uncounted_is(self->fd, 0, 0, "big/cycles/ppp"));
	EXPECT_TRUE(unsampled_is(self->fd, 0, "big/cycles/ppp"));
	EXPECT_EQ(0, samples_with_pc(self->fd, 0));
}

TEST_F(cores, precise_samples_of_a_pmu_that_can_not_be_read_are_refused)
{
	struct kbarman_start s = { .size = sizeof(s) };
	struct kbarman_event event = cycles;

	if (query(self->fd).features & KBARMAN_FEATURE_PMU)
		SKIP(return, "this machine's own PMU takes generic events");
	pmus_load("big=0 little=1 generic=1 forward=1");
	event.attr.precise_ip = 1;
	ADD(event);
	self->events[0].flags = 0;
	ASSERT_EQ(0, configure(self->fd, self->config));
	EXPECT_EQ(-EOPNOTSUPP, call(self->fd, KBARMAN_START, &s));
	EXPECT_EQ(0, s.event);
}

TEST_F(cores, samples_of_user_space_alone_have_no_kernel)
{
	struct kbarman_event event = cpu_clock;
	const union record *r;
	struct walk walk;

	event.attr.exclude_kernel = 1;
	ADD(event);
	ASSERT_EQ(0, configure(self->fd, self->config));
	ASSERT_EQ(0, start(self->fd));
	burn_for(map_cpu(self->fd, 0), 10);
	ASSERT_EQ(0, stop(self->fd));
	expect_good(_metadata, self->fd);
	walk = walk_begin(map_cpu(self->fd, 0));
	while ((r = next_sample(&walk)))
		EXPECT_FALSE(is_in_kernel(&walk, r));
	EXPECT_TRUE(sums_are_equal(self->fd));
}

/* ---- sums, to the last one ---- */

/* A child steps on CPU @cpu between switches. Returns its id. */
static pid_t step_in_child(uint32_t cpu, unsigned int rounds)
{
	pid_t child = fork();
	int status;

	if (!child) {
		pin(cpu);
		while (rounds--) {
			step(7);
			usleep(100);
			step(3);
			burn();
		}
		_exit(0);
	}
	if (waitpid(child, &status, 0) != child || status)
		lost("the child did not step");
	return child;
}

static unsigned int parameter(const char *path)
{
	char text[16];

	read_file(path, text, sizeof(text));
	return strtoul(text, NULL, 10);
}

TEST_F(cores, steps_of_a_task_are_in_its_records_to_the_last_one)
{
	pid_t child;

	ADD_OF("kb_big", STEPS, "steps");
	ELSE_OF("kb_little", STEPS, "steps");
	set_period(self, 0);
	ASSERT_EQ(0, configure(self->fd, self->config));
	ASSERT_EQ(0, start(self->fd));
	step(100000);
	child = step_in_child(1, 100);
	step(1);
	ASSERT_EQ(0, stop(self->fd));
	expect_good(_metadata, self->fd);
	EXPECT_EQ(1000, sum_of(self->fd, 1, child, 0));
	EXPECT_EQ(1000, sum_of(self->fd, 1, ~0U, 0));
	EXPECT_EQ(1000, counted_of(self->fd, 1, 0).all);
	EXPECT_EQ(100001, sum_of(self->fd, 0, getpid(), 0));
	EXPECT_TRUE(sums_are_equal(self->fd));
	EXPECT_EQ(0, unrecorded(self->fd));
}

/* Every third reading, at a switch, a tick or an overflow, has an overflow in its middle. */
TEST_F(cores, overflows_in_the_middle_of_readings_count_nothing_twice)
{
	pid_t child;

	ADD_OF("kb_big", CYCLES_OF, "cycles");
	ELSE_OF("kb_little", CYCLES_OF, "cycles");
	ADD_OF("kb_big", STEPS, "steps");
	ELSE_OF("kb_little", STEPS, "steps");
	ADD_OF("kb_big", INSTRUCTIONS_OF, "big/instructions/");
	self->config.count_ns = TICK_NS;
	ASSERT_EQ(0, configure(self->fd, self->config));
	write_file(PARAMETERS "nest", "3");
	ASSERT_EQ(0, start(self->fd));
	child = step_in_child(0, 100);
	work_until_sampled(self->fd);
	ASSERT_EQ(0, stop(self->fd));
	expect_good(_metadata, self->fd);
	EXPECT_LT(200, parameter(PARAMETERS "nested"));
	EXPECT_LT(100, samples_with_pc(self->fd, 0));
	EXPECT_EQ(1000, sum_of(self->fd, 0, child, 1));
	EXPECT_EQ(1000, counted_of(self->fd, 0, 1).all);
	EXPECT_TRUE(sums_are_equal(self->fd));
	EXPECT_EQ(0, unrecorded(self->fd));
}

TEST_F(cores, throttling_loses_no_count_unsaid)
{
	char rate[16], percent[16];

	ADD_OF("kb_big", CYCLES_OF, "cycles");
	ELSE_OF("kb_little", CYCLES_OF, "cycles");
	ADD_OF("kb_big", STEPS, "steps");
	read_file(SAMPLE_RATE, rate, sizeof(rate));
	read_file(CPU_PERCENT, percent, sizeof(percent));
	write_file(CPU_PERCENT, "25");
	write_file(SAMPLE_RATE, "1000");
	set_period(self, PERIOD_NS / 20);
	ASSERT_EQ(0, configure(self->fd, self->config));
	ASSERT_EQ(0, start(self->fd));
	while (!stats(self->fd, 0).stopped[KBARMAN_STOPPED_THROTTLED])
		step_in_child(0, 10);
	ASSERT_EQ(0, stop(self->fd));
	write_file(SAMPLE_RATE, rate);
	write_file(CPU_PERCENT, percent);
	expect_good(_metadata, self->fd);
	EXPECT_TRUE(sums_are_equal(self->fd));
	EXPECT_EQ(0, unrecorded(self->fd));
}

TEST_F(cores, what_lost_records_counted_is_told)
{
	struct kbarman_stats s;

	ADD_OF("kb_big", STEPS, "steps");
	set_period(self, 0);
	self->config.mode = KBARMAN_MODE_STREAM;
	self->config.ring_bytes = 64 << 10;
	ASSERT_EQ(0, configure(self->fd, self->config));
	ASSERT_EQ(0, start(self->fd));
	do {
		step_in_child(0, 10);
		s = stats(self->fd, 0);
	} while (s.lost[KBARMAN_LOST_FULL] < 100);
	ASSERT_EQ(0, stop(self->fd));
	EXPECT_TRUE(sums_are_equal(self->fd));
	EXPECT_LT(0, counted_of(self->fd, 0, 0).unrecorded);
}

TEST_F(cores, what_others_than_the_chosen_tasks_counted_is_told)
{
	uint32_t me = getpid();

	ADD_OF("kb_big", STEPS, "steps");
	set_period(self, 0);
	self->config.pids_ptr = (uintptr_t)&me;
	self->config.nr_pids = 1;
	ASSERT_EQ(0, configure(self->fd, self->config));
	ASSERT_EQ(0, start(self->fd));
	step(11);
	step_in_child(0, 10);
	ASSERT_EQ(0, stop(self->fd));
	expect_good(_metadata, self->fd);
	EXPECT_EQ(111, counted_of(self->fd, 0, 0).all);
	EXPECT_EQ(11, sum_of(self->fd, 0, ~0U, 0));
	EXPECT_EQ(100, counted_of(self->fd, 0, 0).unrecorded);
}

/* Between the last overflow and the end nothing reads the counters. */
TEST_F(cores, what_came_behind_the_last_overflow_is_told)
{
	ADD_OF("kb_big", CYCLES_OF, "cycles");
	ELSE_OF("kb_little", CYCLES_OF, "cycles");
	ADD_OF("kb_big", STEPS, "steps");
	self->config.flags &= ~KBARMAN_CONFIGURE_COUNT_SWITCH;
	ASSERT_EQ(0, configure(self->fd, self->config));
	ASSERT_EQ(0, start(self->fd));
	step_in_child(0, 10);
	work_until_sampled(self->fd);
	ASSERT_EQ(0, stop(self->fd));
	expect_good(_metadata, self->fd);
	EXPECT_TRUE(sums_are_equal(self->fd));
	EXPECT_EQ(100, counted_of(self->fd, 0, 1).all);
	EXPECT_LT(0, counted_of(self->fd, 0, 0).unrecorded);
}

TEST_HARNESS_MAIN
