// SPDX-License-Identifier: MIT
/* Samples: that they come, whose they are, where they are, what they count. */
#include <linux/perf_event.h>
#include <sys/mman.h>

#include "burn.h"
#include "kselftest_harness.h"

static const struct kbarman_event faults = {
	.attr = { .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_PAGE_FAULTS }, .name = "page-faults" },
	instructions = {
	.attr = { .type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_INSTRUCTIONS },
	.name = "instructions" };

static int start_events(int fd, const struct kbarman_event *events, uint32_t count,
			struct kbarman_start *s)
{
	struct kbarman_configure c = sampling(events, count);

	*s = (struct kbarman_start) { .size = sizeof(*s) };
	if (configure(fd, c))
		lost("no configuration");
	return call(fd, KBARMAN_START, s);
}

static uint64_t sample_delta(const union record *r, unsigned int i)
{
	uint64_t value;

	memcpy(&value, (const uint8_t *)(&r->sample + 1) + sizeof(bm_uintptr) + 8 * i, 8);
	return value;
}

/* ---- samples, by the CPU's PMU and by cpu-clock ---- */

FIXTURE(samples)
{
	int fd;
	const struct kbarman_event *event;
	const void *map;
};

FIXTURE_VARIANT(samples)
{
	const struct kbarman_event *event;
};

FIXTURE_VARIANT_ADD(samples, cpu_clock) { .event = &cpu_clock };
FIXTURE_VARIANT_ADD(samples, cycles) { .event = &cycles };

FIXTURE_SETUP(samples)
{
	self->fd = device_open_free();
	if (variant->event == &cycles && !(query(self->fd).features & KBARMAN_FEATURE_PMU))
		SKIP(skip_test(), "no hardware PMU");
	pin(0);
	ASSERT_EQ(0, configure(self->fd, sampling(variant->event, 1)));
	self->map = map_cpu(self->fd, 0);
	ASSERT_EQ(0, start(self->fd));
}

FIXTURE_TEARDOWN(samples)
{
	close(self->fd);
}

TEST_F(samples, samples_are_of_the_task_and_place_that_burn)
{
	struct judgement j;

	burn_for(self->map, 20);
	ASSERT_EQ(0, stop(self->fd));
	j = judge_cpu(self->fd, 0);
	EXPECT_EQ(NULL, j.fault) TH_LOG("at %llu: %s", (unsigned long long)j.at, j.fault);
	EXPECT_LE(20, j.by_type[BM_RECORD_SAMPLE_WITH_PC]);
}

/*
 * One that came late makes the next interval short; but none comes before its time. That of
 * cpu-clock comes by one of the kernel's clocks and counts by another: where the TSC is not the
 * first, they were seen to be 1 % apart.
 */
TEST_F(samples, as_many_periods_have_passed_as_there_are_samples)
{
	uint64_t period = variant->event == &cycles ? PERIOD_NS : PERIOD_NS / 100 * 95;
	uint64_t counted = 0, count = 0;
	const union record *r;
	struct walk walk;

	burn_for(self->map, 20);
	ASSERT_EQ(0, stop(self->fd));
	walk = walk_begin(self->map);
	while ((r = next_sample(&walk))) {
		EXPECT_GT(1ULL << 40, sample_delta(r, 0));
		counted += sample_delta(r, 0);
		/*
		 * The counters begin before the recording does, which cuts the first period; and the
		 * first sample may be late, by less than a period.
		 */
		if (++count > 2)
			EXPECT_LE((count - 2) * period, counted);
	}
}

TEST_F(samples, the_pmu_entry_names_the_counter)
{
	const struct bm_protocol_header_pmu_settings *pmu;
	const char *name;

	ASSERT_EQ(0, stop(self->fd));
	pmu = capture_pmu(self->map, 0);
	EXPECT_EQ(1, pmu->num_counters);
	if (variant->event == &cpu_clock) {
		EXPECT_EQ(0x80000000U | PERF_COUNT_SW_CPU_CLOCK, pmu->counter_types[0]);
	}
#if defined(__aarch64__)
	if (variant->event == &cycles) {
		EXPECT_EQ(0x11, pmu->counter_types[0]);
	}
#endif
	EXPECT_NE(0, pmu->midr);
	name = capture_fact(self->map, "counter.0.0");
	ASSERT_NE(NULL, name);
	EXPECT_STREQ(variant->event->name, name);
}

static bool is_zero(const struct walk *walk, const union record *r)
{
	(void)walk;
	return !sample_pc(r);
}

/* Work in the kernel until there is a sample of it. */
static void burn_in_kernel(const void *map)
{
	static char bytes[1 << 16];
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	while (!samples_of(map, thread_id(), is_in_kernel))
		if (read(fd, bytes, sizeof(bytes)) != sizeof(bytes))
			lost("no zeroes");
	close(fd);
}

TEST_F(samples, kernel_places_are_seen_by_those_who_may)
{
	burn_in_kernel(self->map);
	ASSERT_EQ(0, stop(self->fd));
	EXPECT_EQ(0, samples_of(self->map, thread_id(), is_zero));
}

/* ---- what is counted ---- */

FIXTURE(counters)
{
	int fd;
	struct kbarman_query q;
};

FIXTURE_SETUP(counters)
{
	self->fd = device_open_free();
	self->q = query(self->fd);
	pin(0);
}

FIXTURE_TEARDOWN(counters)
{
	close(self->fd);
}

TEST_F(counters, the_second_counter_counts_what_happened)
{
	const struct kbarman_event events[] = { cpu_clock, faults };
	const size_t pages = 300, page = self->q.page_size;
	struct kbarman_start s;
	const union record *r;
	uint64_t sum = 0, i;
	struct walk walk;
	const void *map;
	char *memory;

	ASSERT_EQ(0, start_events(self->fd, events, 2, &s));
	map = map_cpu(self->fd, 0);
	memory = mmap(NULL, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		      -1, 0);
	ASSERT_NE(MAP_FAILED, memory);
	/* EINVAL: this kernel has no huge pages anyway. */
	ASSERT_TRUE(!madvise(memory, pages * page, MADV_NOHUGEPAGE) || errno == EINVAL);
	for (i = 0; i < pages; i++)
		memory[i * page] = 1;
	/* The next sample takes them up. */
	burn_for(map, samples_of(map, thread_id(), is_in_burn) + 2);
	ASSERT_EQ(0, stop(self->fd));
	walk = walk_begin(map);
	while ((r = next_sample(&walk)))
		sum += sample_delta(r, 1);
	EXPECT_LE(pages, sum);
	EXPECT_GT(pages + 10000, sum);
	EXPECT_EQ(2, capture_pmu(map, 0)->num_counters);
	EXPECT_STREQ("page-faults", capture_fact(map, "counter.0.1"));
	EXPECT_EQ(0, stats(self->fd, KBARMAN_CPU_ALL).missed[KBARMAN_MISSED_COUNTER]);
}

/* What perf counts of @event in a burn. */
static uint64_t perf_count(const struct kbarman_event *event)
{
	struct perf_event_attr attr = {
		.type = event->attr.type, .size = sizeof(attr), .config = event->attr.config };
	int fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	uint64_t value = 0;

	burn();
	if (fd < 0 || read(fd, &value, sizeof(value)) != sizeof(value))
		lost("perf can't count '%s'", event->name);
	close(fd);
	return value;
}

TEST_F(counters, instructions_are_counted_beside_cycles)
{
	const struct kbarman_event events[] = { cycles, instructions };
	struct kbarman_start s;
	const union record *r;
	uint64_t sum = 0;
	struct walk walk;
	const void *map;
	int error;

	if (!(self->q.features & KBARMAN_FEATURE_PMU))
		SKIP(return, "no hardware PMU");
	error = start_events(self->fd, events, 2, &s);
	if (error == -ENOENT || error == -EOPNOTSUPP)
		SKIP(return, "this PMU has no event for instructions");
	ASSERT_EQ(0, error);
	/* QEMU counts none without -icount, and only arm64 lets the kernel know. */
	if (!perf_count(&instructions))
		SKIP(return, "instructions are not counted here, by perf neither");
	map = map_cpu(self->fd, 0);
	burn_for(map, 10);
	ASSERT_EQ(0, stop(self->fd));
	walk = walk_begin(map);
	while ((r = next_sample(&walk)))
		sum += sample_delta(r, 1);
	EXPECT_LE(10000, sum);
}

/* Pinned: refused by number, never multiplexed. */
TEST_F(counters, what_does_not_fit_is_refused_by_its_number)
{
	struct kbarman_event events[32];
	struct kbarman_start s;
	uint32_t i, fits;
	int error = 0;

	if (!(self->q.features & KBARMAN_FEATURE_PMU))
		SKIP(return, "no hardware PMU");
	for (i = 0; i < 32; i++)
		events[i] = cycles;
	for (fits = 0; fits < 32 && !error; fits += !error) {
		error = start_events(self->fd, events, fits + 1, &s);
		if (!error) {
			EXPECT_EQ(~0U, s.event);
			ASSERT_EQ(0, stop(self->fd));
		}
	}
	if (!error)
		SKIP(return, "this PMU has 32 counters");
	TH_LOG("%u counters fit", fits);
	EXPECT_EQ(-ENOSPC, error);
	EXPECT_EQ(fits, s.event);
	EXPECT_GT(self->q.nr_cpus, s.cpu);
	EXPECT_LE(1, fits);
	EXPECT_EQ(0, query(self->fd).state & KBARMAN_STATE_RUNNING);
#if defined(__aarch64__)
	if (strstr(self->q.pmu_name, "cortex_a72")) {
		EXPECT_EQ(7, fits);
	}
#endif
	/* And all that were made before it are gone again. */
	EXPECT_EQ(0, start_events(self->fd, events, fits, &s));
}

TEST_F(counters, an_unknown_event_is_refused_by_its_number)
{
	struct kbarman_event events[] = { cpu_clock, cpu_clock };
	struct kbarman_start s;

	events[1].attr.type = 12345;
	EXPECT_EQ(-ENOENT, start_events(self->fd, events, 2, &s));
	EXPECT_EQ(1, s.event);
	EXPECT_GT(self->q.nr_cpus, s.cpu);
	EXPECT_EQ(-ENOENT, start_events(self->fd, events + 1, 1, &s));
	EXPECT_EQ(0, s.event);
}

TEST_F(counters, without_a_pmu_the_event_is_refused)
{
	struct kbarman_start s;
	int error;

	if (self->q.features & KBARMAN_FEATURE_PMU)
		SKIP(return, "there is a hardware PMU");
	error = start_events(self->fd, &cycles, 1, &s);
	EXPECT_TRUE(error == -ENOENT || error == -EOPNOTSUPP);
	EXPECT_EQ(0, s.event);
}

TEST_F(counters, without_a_pmu_the_fallback_is_named_as_one)
{
	struct kbarman_configure c = sampling(&cycles, 1);
	const void *map;

	if (self->q.features & KBARMAN_FEATURE_PMU)
		SKIP(return, "there is a hardware PMU");
	c.events_ptr = sampled_or_clock(&cycles, PERIOD_NS);
	c.nr_events = 2;
	ASSERT_EQ(0, configure(self->fd, c));
	ASSERT_EQ(0, start(self->fd));
	EXPECT_NE(0, query(self->fd).state & KBARMAN_STATE_FALLBACK);
	map = map_cpu(self->fd, 0);
	burn_for(map, 5);
	ASSERT_EQ(0, stop(self->fd));
	EXPECT_STREQ("cpu-clock", capture_fact(map, "counter.0.0"));
	EXPECT_NE(NULL, capture_fact(map, "fallback"));
	EXPECT_EQ(0x80000000U | PERF_COUNT_SW_CPU_CLOCK, capture_pmu(map, 0)->counter_types[0]);
}

TEST_F(counters, with_a_pmu_the_fallback_is_not_used)
{
	struct kbarman_configure c = sampling(&cycles, 1);

	if (!(self->q.features & KBARMAN_FEATURE_PMU))
		SKIP(return, "no hardware PMU");
	c.events_ptr = sampled_or_clock(&cycles, PERIOD_NS);
	c.nr_events = 2;
	ASSERT_EQ(0, configure(self->fd, c));
	ASSERT_EQ(0, start(self->fd));
	EXPECT_EQ(0, query(self->fd).state & KBARMAN_STATE_FALLBACK);
	EXPECT_EQ(NULL, capture_fact(map_cpu(self->fd, 0), "fallback"));
}

TEST_F(counters, a_frequency_is_taken_for_one)
{
	struct kbarman_configure c = sampling(&cpu_clock, 1);
	const void *map;

	c.events_ptr = sampled_hz(&cpu_clock, 1, 1000);
	ASSERT_EQ(0, configure(self->fd, c));
	ASSERT_EQ(0, start(self->fd));
	map = map_cpu(self->fd, 0);
	EXPECT_EQ(1000, capture_header(map)->timer_sample_rate);
	burn_for(map, 5);
}

TEST_F(counters, samples_of_others_are_filtered)
{
	uint32_t pid = getpid();
	struct kbarman_configure c = sampling(&cpu_clock, 1);
	unsigned int foreign = 0;
	const union record *r;
	struct walk walk;
	const void *map;
	pid_t other;

	other = fork();
	if (!other) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			burn();
	}
	c.pids_ptr = (uintptr_t)&pid;
	c.nr_pids = 1;
	ASSERT_EQ(0, configure(self->fd, c));
	ASSERT_EQ(0, start(self->fd));
	map = map_cpu(self->fd, 0);
	burn_for(map, 20);
	ASSERT_EQ(0, stop(self->fd));
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
	walk = walk_begin(map);
	while ((r = next_sample(&walk)))
		foreign += r->sample.task_id != pid;
	EXPECT_EQ(0, foreign);
}

TEST_HARNESS_MAIN
