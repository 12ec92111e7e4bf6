// SPDX-License-Identifier: MIT
/*
 * A recorder for a year, with default sizes: TASKS tasks, each with a name of its own, and
 * MAPPINGS mappings of code pass through a recorder, while one CPU idles and another one is
 * offline. (With two CPUs one is offline, and none idles.) In the end every record in every ring
 * has its right name, the two CPUs have their records, and nothing grew. The environment says how
 * many TASKS and MAPPINGS: few in the suite, 10^7 and 10^6 in `make soak`.
 */
#include <linux/perf_event.h>
#include <sched.h>
#include <sys/mman.h>

#include "burn.h"
#include "kselftest_harness.h"

#define ID_MAX	(1 << 22)	/* PID_MAX_LIMIT */

static unsigned int from_environment(const char *name, unsigned int otherwise)
{
	const char *value = getenv(name);

	return value ? strtoul(value, NULL, 0) : otherwise;
}

FIXTURE(year)
{
	int fd;
	unsigned int tasks, mappings;
	uint32_t idle, offline;	/* CPUs; 0 = none */
	pid_t on_idle, on_offline;
	uint32_t *number;	/* [ID_MAX]: of the task that had that id last, + 1 */
};

/* A child that runs on @cpu alone, as @name, and is gone. */
static pid_t witness(uint32_t cpu, const char *name)
{
	pid_t child = fork();
	int status;

	if (!child) {
		pin(cpu);
		prctl(PR_SET_NAME, name);
		sched_yield();
		usleep(1000);
		_exit(0);
	}
	if (waitpid(child, &status, 0) != child || status)
		lost("%s did not run", name);
	return child;
}

FIXTURE_SETUP(year)
{
	struct kbarman_configure c = sampling(&cpu_clock, 1);
	uint32_t nr;

	self->fd = device_open_free();
	nr = query(self->fd).nr_cpus;
	if (nr < 2)
		SKIP(skip_test(), "one CPU only");
	self->tasks = from_environment("TASKS", 80000);
	self->mappings = from_environment("MAPPINGS", 70000);
	self->number = calloc(ID_MAX, sizeof(*self->number));
	self->offline = nr - 1;
	self->idle = nr > 2 ? nr - 2 : 0;
	c.mode = KBARMAN_MODE_OVERWRITE;
	c.sources |= KBARMAN_SOURCE_SCHED;
	c.events_ptr = sampled(&cpu_clock, 1, 20 * PERIOD_NS);
	ASSERT_EQ(0, configure(self->fd, c));
	pin(0);
	ASSERT_EQ(0, start(self->fd));
	self->on_offline = witness(self->offline, "on-offline");
	cpu_set_online(self->offline, false);
	if (self->idle)
		self->on_idle = witness(self->idle, "on-idle");
}

FIXTURE_TEARDOWN(year)
{
	cpu_set_online(self->offline, true);
	free(self->number);
	close(self->fd);
}

struct many {
	uint32_t *number;	/* by id: as in the fixture */
	unsigned int at;
};

static int be_named(void *argument)
{
	struct many *many = argument;
	char name[16];

	snprintf(name, sizeof(name), "n%u", many->at);
	syscall(SYS_prctl, PR_SET_NAME, name);
	many->number[syscall(SYS_gettid)] = many->at + 1;
	return 0;
}

/*
 * Threads of the numbers from @first to @end, one after the other, on the caller's CPU. The stack
 * is the next one's as soon as CLONE_VFORK lets the caller go on: a thread then no longer runs in
 * user space. A thread of pthread_create() costs several times as much.
 */
static void run_tasks(uint32_t *number, unsigned int first, unsigned int end)
{
	static uint8_t stack[64 * KIB] __attribute__((aligned(16)));
	struct many many = { .number = number, .at = first };

	for (; many.at < end; many.at++) {
		if (clone(be_named, stack + sizeof(stack),
			  CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
			  CLONE_SYSVSEM | CLONE_VFORK, &many) < 0)
			lost("no thread");
		/* KCSAN stalls who looks for rows to use again more than who makes tasks. */
		if (SLOWNESS > 1 && many.at % 256 == 255)
			usleep(50000 * SLOWNESS);
	}
}

/* The calling process maps code at places in turn, some of them new, some used before. */
static void map_code(FIXTURE_DATA(year) *year)
{
	int exe = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	size_t page = getpagesize();
	unsigned int i;

	burn_for(map_cpu(year->fd, 0), 2);	/* or nobody asks what is mapped */
	for (i = 0; i < year->mappings; i++) {
		void *at = (void *)(0x70000000UL + i % 2048 * 4 * page);
		void *code = mmap(at, (1 + i % 3) * page, PROT_READ | PROT_EXEC,
				  MAP_PRIVATE | MAP_FIXED, exe, 0);

		if (code == MAP_FAILED)
			lost("no mapping");
		munmap(code, (1 + i % 3) * page);
		/* The worker has a queue: it is another test's what comes too fast. */
		if (i % 256 == 255)
			usleep(10000);
	}
	close(exe);
}

/* Processes of their own: every thread that is sampled has all that its process has mapped. */
static void run_mappings(FIXTURE_DATA(year) *year)
{
	pid_t child = fork();
	int status;

	if (!child) {
		map_code(year);
		_exit(0);
	}
	if (waitpid(child, &status, 0) != child || status)
		lost("the child did not map all");
}

/* Has somebody else had the id @task? A thread of run_tasks() has this program's name or its number. */
static bool is_anothers(const void *map, uint32_t task)
{
	char own[16], name[16];
	unsigned int at;

	prctl(PR_GET_NAME, own);
	for (uint32_t i = 0; i < *capture_task_count(map); i++) {
		const struct bm_protocol_header_task_info *row = &capture_tasks(map)[i];
		const char *said = capture_strings(map) + row->task_name_ptr;

		if (row->task_id != task || !strcmp(said, own))
			continue;
		if (sscanf(said, "n%u", &at) != 1)
			return true;
		snprintf(name, sizeof(name), "n%u", at);
		if (strcmp(said, name))
			return true;
	}
	return false;
}

/*
 * Every task that runs in @cpu's ring has a name; the right one, if @number knows it. (A worker of
 * the kernel may have the id of a thread that has ended.) Returns how many records @number knew the
 * name of.
 */
static unsigned int expect_names(struct __test_metadata *_metadata, int fd, uint32_t cpu,
				 const uint32_t *number)
{
	struct judgement j = judge_cpu(fd, cpu);
	const void *map = map_cpu(fd, cpu);
	struct walk walk = walk_begin(map);
	unsigned int numbered = 0;
	const union record *r;
	char name[16];

	EXPECT_EQ(NULL, j.fault) TH_LOG("cpu %u: %s", cpu, j.fault);
	while ((r = walk_next(&walk))) {
		uint32_t id = r->task_switch.task_id;

		if (r->header.record_type != BM_RECORD_TASK_SWITCH)
			continue;
		EXPECT_NE(NULL, capture_task(map, id, NULL)) TH_LOG("cpu %u task %u", cpu, id);
		if (!number || !number[id])
			continue;
		snprintf(name, sizeof(name), "n%u", number[id] - 1);
		if (!capture_task(map, id, name) && is_anothers(map, id))
			continue;
		EXPECT_NE(NULL, capture_task(map, id, name))
			TH_LOG("cpu %u task %u %s", cpu, id, name);
		numbered++;
	}
	return numbered;
}

static bool has_switch_to(const void *map, uint32_t task)
{
	struct walk walk = walk_begin(map);
	const union record *r;

	while ((r = walk_next(&walk)))
		if (r->header.record_type == BM_RECORD_TASK_SWITCH &&
		    r->task_switch.task_id == task)
			return true;
	return false;
}

/* If @cpu has not filled its ring, it has all its records, and the name of @task, which ran there. */
static void expect_witness(struct __test_metadata *_metadata, FIXTURE_DATA(year) *self,
			   uint32_t cpu, pid_t task, const char *name)
{
	struct kbarman_stats s = stats(self->fd, cpu);
	const void *map = map_cpu(self->fd, cpu);

	/* A CPU that idles is sampled, too: it fills its ring in the end. */
	if (s.bytes > query(self->fd).ring_bytes)
		return;
	EXPECT_NE(NULL, capture_task(map, task, name)) TH_LOG("%s", name);
	EXPECT_EQ(0, s.overwritten) TH_LOG("cpu %u", cpu);
	EXPECT_TRUE(has_switch_to(map, task)) TH_LOG("cpu %u", cpu);
}

TEST_F_TIMEOUT(year, every_record_has_its_name_and_nothing_grows, 14400 * SLOWNESS)
{
	struct kbarman_stats half, s;
	uint32_t cpu, nr = query(self->fd).nr_cpus;

	run_tasks(self->number, 0, self->tasks / 2);
	half = stats(self->fd, KBARMAN_CPU_ALL);
	run_mappings(self);
	run_tasks(self->number, self->tasks / 2, self->tasks);
	ASSERT_EQ(0, stop(self->fd));
	s = stats(self->fd, KBARMAN_CPU_ALL);
	EXPECT_EQ(0, s.missed[KBARMAN_MISSED_TASK]);
	EXPECT_EQ(0, s.missed[KBARMAN_MISSED_MAP]);
	EXPECT_EQ(0, s.missed[KBARMAN_MISSED_STRING]);
	EXPECT_EQ(0, s.missed[KBARMAN_MISSED_QUEUE]);
	EXPECT_GE(16384, s.tasks);
	/* Names of living tasks, of what the rings hold, and of the files they run. */
	EXPECT_GE(half.strings + 512 * KIB, s.strings);
	EXPECT_LE(500, expect_names(_metadata, self->fd, 0, self->number));
	/* On the other CPUs an id may have been somebody else's before. */
	for (cpu = 1; cpu < nr; cpu++)
		expect_names(_metadata, self->fd, cpu, NULL);
	expect_witness(_metadata, self, self->offline, self->on_offline, "on-offline");
	if (self->idle)
		expect_witness(_metadata, self, self->idle, self->on_idle, "on-idle");
}

/* ---- a storm on CPU 0 and few tasks on CPU 1; the rings have room for more than the table ---- */

FIXTURE(giving_way)
{
	int fd;
	uint32_t *number, *few;	/* [ID_MAX]: as above, of CPU 0 and of CPU 1 */
};

FIXTURE_VARIANT(giving_way)
{
	uint32_t mode;
};

FIXTURE_VARIANT_ADD(giving_way, overwrite)
{
	.mode = KBARMAN_MODE_OVERWRITE,
};

FIXTURE_VARIANT_ADD(giving_way, stream)
{
	.mode = KBARMAN_MODE_STREAM,
};

FIXTURE_SETUP(giving_way)
{
	struct kbarman_configure c = {
		.mode = variant->mode, .sources = KBARMAN_SOURCE_SCHED, .max_tasks = 4096,
	};

	self->fd = device_open_free();
	if (query(self->fd).nr_cpus < 2)
		SKIP(skip_test(), "one CPU only");
	self->number = calloc(ID_MAX, sizeof(*self->number));
	self->few = calloc(ID_MAX, sizeof(*self->few));
	ASSERT_EQ(0, configure(self->fd, c));
	ASSERT_EQ(0, start(self->fd));
	pin(1);
	run_tasks(self->few, 0, 100);
	pin(0);
	run_tasks(self->number, 100, 6000);
	ASSERT_EQ(0, stop(self->fd));
}

FIXTURE_TEARDOWN(giving_way)
{
	free(self->few);
	free(self->number);
	close(self->fd);
}

TEST_F_TIMEOUT(giving_way, only_the_ring_in_need_gives_way, 300 * SLOWNESS)
{
	struct kbarman_stats s = stats(self->fd, 0);
	bool overwrites = variant->mode == KBARMAN_MODE_OVERWRITE;

	/* Each of the tasks has two names. */
	EXPECT_GT(query(self->fd).ring_bytes, s.bytes);
	EXPECT_EQ(overwrites, s.overwritten > 0);
	EXPECT_EQ(s.written - s.overwritten, judge_cpu(self->fd, 0).records);
	EXPECT_EQ(0, stats(self->fd, 1).overwritten);
	s = stats(self->fd, KBARMAN_CPU_ALL);
	EXPECT_EQ(!overwrites, s.missed[KBARMAN_MISSED_TASK] > 0);
	if (!overwrites)
		return;
	EXPECT_LE(500, expect_names(_metadata, self->fd, 0, self->number));
	EXPECT_LE(50, expect_names(_metadata, self->fd, 1, self->few));
}

TEST_HARNESS_MAIN
