// SPDX-License-Identifier: MIT
/*
 * Tracepoints as counters: every hit counts, on the CPU it was on, and none twice. Probes made on
 * the spot are refused where they are named in the caller's memory.
 */
#include <linux/perf_event.h>
#include <sys/mman.h>

#include "kprobes.h"
#include "kselftest_harness.h"
#include "sums.h"

#define ROUNDS	3000

FIXTURE(tracepoints)
{
	struct kbarman_event events[2];
	int fd;
};

FIXTURE_SETUP(tracepoints)
{
	pin(0);
	self->fd = device_open_free();
	self->events[0] = (struct kbarman_event){ .attr = { .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK }, .name = "cpu-clock" };
	self->events[1] = (struct kbarman_event){ .attr = { .type = PERF_TYPE_TRACEPOINT, .config = tracepoint_id("sched/sched_switch") }, .name = "sched:sched_switch" };
}

FIXTURE_TEARDOWN(tracepoints)
{
	close(self->fd);
}

static struct kbarman_configure counting(const struct kbarman_event *events, uint32_t nr,
					 uint64_t period)
{
	return (struct kbarman_configure){
		.sources = KBARMAN_SOURCE_SCHED | KBARMAN_SOURCE_PMU, .ring_bytes = 4 * MIB,
		.nr_events = nr, .events_ptr = sampled(events, nr, period) };
}

/* Between two samples there are as many switches in the ring as the counter says. */
TEST_F(tracepoints, each_hit_is_counted_once)
{
	unsigned int samples = 0;
	uint64_t switches = 0;
	const union record *r;
	struct judgement j;
	struct walk walk;

	ASSERT_EQ(0, configure(self->fd, counting(self->events, 2, 1000000)));
	ASSERT_EQ(0, start(self->fd));
	/* What is halted for good has no clock that ticks: until there are enough. */
	do {
		ping_pong(0, ROUNDS);
	} while (samples_with_pc(self->fd, 0) < 5);
	ASSERT_EQ(0, stop(self->fd));
	j = judge_cpu(self->fd, 0);
	ASSERT_EQ(NULL, j.fault) TH_LOG("%s", j.fault);
	ASSERT_EQ(0, stats(self->fd, 0).overwritten);
	walk = walk_begin(map_cpu(self->fd, 0));
	while ((r = walk_next(&walk))) {
		switches += r->header.record_type == BM_RECORD_TASK_SWITCH;
		if (r->header.record_type != BM_RECORD_SAMPLE_WITH_PC)
			continue;
		/* The first one counts from when the event was made. */
		if (samples++)
			ASSERT_EQ(switches, delta_of(r, 1)) TH_LOG("sample %u", samples);
		switches = 0;
	}
	EXPECT_LE(5, samples);
}

TEST_F(tracepoints, header_has_their_numbers_and_names)
{
	const void *map;

	ASSERT_EQ(0, configure(self->fd, counting(self->events, 2, 1000000)));
	ASSERT_EQ(0, start(self->fd));
	map = map_cpu(self->fd, 0);
	EXPECT_EQ(0xc0000000 | self->events[1].attr.config, capture_pmu(map, 0)->counter_types[1]);
	EXPECT_STREQ("sched:sched_switch", capture_fact(map, "counter.0.1"));
}

/*
 * How many samples the first hit of a tracepoint makes on this kernel, whatever the period: perf
 * used to give such an event its first period only then, and counted it as one or two that were
 * over. Linux mended this in 6.12, and some stable kernels did. Looks at an event of perf itself,
 * whose period is too long for any other sample.
 */
static unsigned int samples_of_first_hit(const struct kbarman_event *event)
{
	struct perf_event_attr attr = {
		.type = event->attr.type, .size = sizeof(attr), .config = event->attr.config,
		.sample_period = 1ULL << 40, .sample_type = PERF_SAMPLE_IP,
		.read_format = COUNTER_READING };
	const struct perf_event_mmap_page *page;
	size_t length = 2 * getpagesize();
	int fd = syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	struct perf_event_header head;
	unsigned int samples = 0;
	uint64_t at;

	if (fd < 0)
		lost("perf can't sample %s", event->name);
	page = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		lost("no buffer of perf");
	do {
		ping_pong(0, 10);
	} while (!counter_now(fd));
	for (at = 0; at < page->data_head; at += head.size) {
		memcpy(&head, (const char *)page + page->data_offset + at, sizeof(head));
		samples += head.type == PERF_RECORD_SAMPLE;
	}
	munmap((void *)page, length);
	close(fd);
	return samples;
}

/* It may sample itself, from where it is hit: with locks of the scheduler held. */
TEST_F(tracepoints, the_first_event_may_be_one)
{
	/* The period that begins with samples at the first hit has that hit, too. */
	unsigned int early = samples_of_first_hit(self->events + 1), samples = 0;
	uint64_t first = early ? 9 : 10;
	const union record *r;
	struct judgement j;
	struct walk walk;

	ASSERT_EQ(0, configure(self->fd, counting(self->events + 1, 1, 10)));
	ASSERT_EQ(0, start(self->fd));
	ping_pong(0, ROUNDS);
	ASSERT_EQ(0, stop(self->fd));
	j = judge_cpu(self->fd, 0);
	ASSERT_EQ(NULL, j.fault) TH_LOG("%s", j.fault);
	walk = walk_begin(map_cpu(self->fd, 0));
	while ((r = walk_next(&walk)))
		if (r->header.record_type == BM_RECORD_SAMPLE_WITH_PC && samples++)
			ASSERT_EQ(samples <= early ? 0 : samples == early + 1 ? first : 10,
				  delta_of(r, 0)) TH_LOG("sample %u of %u early", samples, early);
	EXPECT_LE(2 * ROUNDS / 10, samples);
}

TEST_F(tracepoints, those_that_are_not_there_are_refused)
{
	struct kbarman_start s = { .size = sizeof(s) };

	self->events[1].attr.config = 0xfffffff;
	ASSERT_EQ(0, configure(self->fd, counting(self->events, 2, 1000000)));
	EXPECT_NE(0, call(self->fd, KBARMAN_START, &s));
	EXPECT_EQ(1, s.event);
}

/* By the number that sysfs has for it, 0: it has none. */
static uint32_t pmu_type(const char *name)
{
	char path[256], text[32];

	snprintf(path, sizeof(path), "/sys/bus/event_source/devices/%s/type", name);
	if (access(path, F_OK))
		return 0;
	read_file(path, text, sizeof(text));
	return strtoul(text, NULL, 10);
}

/*
 * Such memory is read while others wait, and it may be a page that somebody has to send for
 * (FUSE, userfaultfd), and never does.
 */
TEST_F(tracepoints, probes_that_the_callers_memory_names_are_refused)
{
	static const char *const probes[][2] = {
		{ "kprobe", "kernel_clone" },
		{ "uprobe", "/proc/self/exe" },
	};
	unsigned int i, tried = 0;

	for (i = 0; i < 2; i++) {
		struct kbarman_start s = { .size = sizeof(s) };

		self->events[1] = (struct kbarman_event){
			.attr = { .type = pmu_type(probes[i][0]), .config1 = (uintptr_t)probes[i][1] } };
		if (!self->events[1].attr.type)
			continue;
		tried++;
		strcpy(self->events[1].name, probes[i][0]);
		ASSERT_EQ(0, configure(self->fd, counting(self->events, 2, 1000000)));
		EXPECT_EQ(-EFAULT, call(self->fd, KBARMAN_START, &s)) TH_LOG("%s", probes[i][0]);
		EXPECT_EQ(1, s.event);
		stop(self->fd);
	}
	if (!tried)
		SKIP(return, "this kernel makes no probes for perf");
}

/* ---- what a query costs ---- */

#ifdef __riscv
/* The kernel may refuse a probe where ftrace is called from: in the first 8 bytes of a function. */
#define MAKER		"perf_event_create_kernel_counter+8"
#else
#define MAKER		"perf_event_create_kernel_counter"
#endif
#define PROBE_SWITCH	TRACE_EVENTS "/kbarman_test/made/enable"

/* False: this kernel has no such probes, or none of what its tracers leave out (5.10's perf). */
static bool probe_maker(void)
{
	int error = kprobe_command("p:kbarman_test/made " MAKER);

	if (error && error != -EINVAL && error != -ENOSYS)
		lost("no probe of %s", MAKER);
	return !error;
}

/* Anybody who may open the device may ask as often as they like. */
TEST_F(tracepoints, a_query_makes_no_event)
{
	unsigned int i;

	if (!probe_maker())
		SKIP(return, "this kernel makes no probe of " MAKER);
	write_file(PROBE_SWITCH, "1");
	for (i = 0; i < 10; i++)
		query(self->fd);
	EXPECT_EQ(0, kprobe_hits("made"));
	/* The probe sees those that are made. */
	ASSERT_EQ(0, configure(self->fd, counting(self->events, 2, 1000000)));
	EXPECT_EQ(0, start(self->fd));
	EXPECT_LE(2, kprobe_hits("made"));
	EXPECT_EQ(0, stop(self->fd));
	write_file(PROBE_SWITCH, "0");
	EXPECT_EQ(0, kprobe_command("-:kbarman_test/made"));
}

TEST_HARNESS_MAIN
