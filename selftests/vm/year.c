// SPDX-License-Identifier: MIT
/*
 * A recorder for a year: TASKS tasks, each of a name of its own, and MAPPINGS mappings of code
 * (from the environment; few in the suite, 10^7 and 10^6 in `make soak`) pass through a recorder
 * with default tables and rings of 64 KiB, while one CPU idles and another one is offline (with two CPUs: the one is
 * offline). In the end every record in every ring has its right name, and nothing grew.
 */
#include <linux/perf_event.h>
#include <pthread.h>
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
	self->tasks = from_environment("TASKS", 60000);
	self->mappings = from_environment("MAPPINGS", 70000);
	self->number = calloc(ID_MAX, sizeof(*self->number));
	self->offline = nr - 1;
	self->idle = nr > 2 ? nr - 2 : 0;
	c.mode = KBARMAN_MODE_OVERWRITE;
	/* Each task has two records here, and two names: a ring of 1 MiB alone needs 32,768 rows. */
	c.ring_bytes = 64 * KIB;
	c.sources |= KBARMAN_SOURCE_SCHED;
	c.sample *= 20;
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
	FIXTURE_DATA(year) *year;
	unsigned int number;
};

static void *be_named(void *argument)
{
	struct many *many = argument;
	char name[16];

	snprintf(name, sizeof(name), "n%u", many->number);
	prctl(PR_SET_NAME, name);
	many->year->number[thread_id()] = many->number + 1;
	return NULL;
}

static void run_tasks(FIXTURE_DATA(year) *year)
{
	struct many many = { .year = year };
	pthread_t thread;

	for (; many.number < year->tasks; many.number++)
		if (pthread_create(&thread, NULL, be_named, &many) || pthread_join(thread, NULL))
			lost("no thread");
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

/* Of @name, and of the task that a record of this very task means. */
static bool is_called(const void *map, uint32_t task, const char *name)
{
	return capture_task(map, task, name);
}

static void expect_names(struct __test_metadata *_metadata, FIXTURE_DATA(year) *self, uint32_t cpu,
			 unsigned int *numbered)
{
	const void *map = map_cpu(self->fd, cpu);
	struct walk walk = walk_begin(map);
	const union record *r;
	char name[16];

	struct judgement j = judge_cpu(self->fd, cpu);

	EXPECT_EQ(NULL, j.fault) TH_LOG("cpu %u: %s", cpu, j.fault);
	while ((r = walk_next(&walk))) {
		uint32_t id = r->task_switch.task_id;

		if (r->header.record_type != BM_RECORD_TASK_SWITCH)
			continue;
		ASSERT_NE(NULL, capture_task(map, id, NULL)) TH_LOG("cpu %u task %u", cpu, id);
		/* On other CPUs the id may have been somebody else's before. */
		if (cpu || !self->number[id])
			continue;
		snprintf(name, sizeof(name), "n%u", self->number[id] - 1);
		ASSERT_TRUE(is_called(map, id, name)) TH_LOG("cpu %u task %u %s", cpu, id, name);
		++*numbered;
	}
}

TEST_F_TIMEOUT(year, every_record_has_its_name_and_nothing_grows, 14400 * SLOWNESS)
{
	struct kbarman_stats half, s;
	unsigned int numbered = 0;
	uint32_t cpu, nr = query(self->fd).nr_cpus;

	run_tasks(self);
	half = stats(self->fd, KBARMAN_CPU_ALL);
	run_mappings(self);
	run_tasks(self);
	ASSERT_EQ(0, stop(self->fd));
	s = stats(self->fd, KBARMAN_CPU_ALL);
	EXPECT_EQ(0, s.missed[KBARMAN_MISSED_TASK]);
	EXPECT_EQ(0, s.missed[KBARMAN_MISSED_MAP]);
	EXPECT_EQ(0, s.missed[KBARMAN_MISSED_STRING]);
	EXPECT_EQ(0, s.missed[KBARMAN_MISSED_QUEUE]);
	EXPECT_GE(16384, s.tasks);
	/* Names of living tasks, of what the rings hold, and of the files they run. */
	EXPECT_GE(half.strings + 512 * KIB, s.strings);
	for (cpu = 0; cpu < nr; cpu++)
		expect_names(_metadata, self, cpu, &numbered);
	EXPECT_LE(500, numbered);
	EXPECT_NE(NULL, capture_task(map_cpu(self->fd, 0), self->on_offline, "on-offline"));
	if (self->idle)
		EXPECT_NE(NULL, capture_task(map_cpu(self->fd, 0), self->on_idle, "on-idle"));
}

TEST_HARNESS_MAIN
