// SPDX-License-Identifier: MIT
/* Rows of the mmap table: that every place a sample may be at has one, of its file and time. */
#include <dirent.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "burn.h"
#include "kprobes.h"
#include "kselftest_harness.h"

#define RT_RUNTIME	"/proc/sys/kernel/sched_rt_runtime_us"
#define DEBUGFS		"/sys/kernel/debug"
#define RCU_PRIORITY	10		/* above any program of these tests */
#define URGENT_SECONDS	(100 * SLOWNESS)	/* who is urgent for longer waits for what won't come */

/*
 * Who is urgent leaves the others no CPU, however slow the machine is. Older kernels otherwise give
 * them 50 ms of each second, and those from 6.12 on the same by a server on each CPU.
 */
struct urgency {
	char realtime[32], server[32];
};

static void set_servers(char *had, const char *runtime)
{
	unsigned int i, all = sysconf(_SC_NPROCESSORS_CONF);
	char path[96];

	mount("debugfs", DEBUGFS, "debugfs", 0, NULL);	/* unless it is there */
	for (i = 0; i < all; i++) {
		snprintf(path, sizeof(path), DEBUGFS "/sched/fair_server/cpu%u/runtime", i);
		if (access(path, W_OK))
			continue;
		if (had)
			read_file(path, had, 32);
		write_file(path, runtime);
	}
}

/*
 * RCU goes on: under PREEMPT_RT it needs threads, and their timers, which are as urgent as programs
 * here or less. Without it who waits for RCU, and so perhaps the test, would wait for ever.
 */
static void keep_rcu_going(void)
{
	const struct sched_param most = { .sched_priority = RCU_PRIORITY };
	char path[sizeof("/proc//comm") + NAME_MAX], name[32];
	DIR *processes = opendir("/proc");
	struct dirent *process;
	int fd;

	while (processes && (process = readdir(processes))) {
		snprintf(path, sizeof(path), "/proc/%s/comm", process->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		memset(name, 0, sizeof(name));
		if (fd < 0)
			continue;
		if (read(fd, name, sizeof(name) - 1) > 0 &&
		    (!strncmp(name, "rcu", 3) || !strncmp(name, "ktimers/", 8)))
			sched_setscheduler(atoi(process->d_name), SCHED_FIFO, &most);
		close(fd);
	}
	closedir(processes);
}

static struct urgency begin_urgency(void)
{
	struct urgency had = { .server = "" };

	keep_rcu_going();
	read_file(RT_RUNTIME, had.realtime, sizeof(had.realtime));
	write_file(RT_RUNTIME, "-1");
	set_servers(had.server, "0");
	return had;
}

static void end_urgency(const struct urgency *had)
{
	write_file(RT_RUNTIME, had->realtime);
	if (had->server[0])
		set_servers(NULL, had->server);
}

/* Who never lets go of the CPU is killed in the end: nobody else could do so. */
static void be_urgent(uint32_t cpu, int priority)
{
	const struct rlimit time = { URGENT_SECONDS * 1000000ULL, URGENT_SECONDS * 1000000ULL };
	const struct sched_param urgent = { .sched_priority = priority };

	pin(cpu);
	if (setrlimit(RLIMIT_RTTIME, &time) || sched_setscheduler(0, SCHED_FIFO, &urgent))
		lost("the program can't be made urgent");
}

/* The process of @task, by the newest row of its name. */
static uint32_t process_of(const void *map, uint32_t task)
{
	uint32_t row = *capture_task_count(map);

	while (row--)
		if (capture_task_facts(map, row)->task_id == task)
			return capture_task_facts(map, row)->tgid;
	return task;
}

/* Process @task has a row for @pc. */
static const struct bm_protocol_header_mmap_layout *row_of(const void *map, uint32_t task,
							   uint64_t pc)
{
	const struct bm_protocol_header_mmap_layout *row =
		capture_maps(map) + *capture_map_count(map);

	while (row-- > capture_maps(map))
		if (row->task_id == task && pc - row->base_address < row->length)
			return row;
	return NULL;
}

/* Wait for it: the worker tells mappings a moment after they were made. */
static const struct bm_protocol_header_mmap_layout *own_row_in_time(const void *map,
								    const void *code)
{
	const struct bm_protocol_header_mmap_layout *row;

	while (!(row = row_of(map, getpid(), (uintptr_t)code)))
		usleep(1000);
	return row;
}

/* By time: where rows are used again, their order says nothing. */
static const struct bm_protocol_header_mmap_layout *newest_row(const void *map, uint32_t task,
							       uint64_t pc)
{
	const struct bm_protocol_header_mmap_layout *rows = capture_maps(map), *newest = NULL;
	uint32_t i;

	for (i = 0; i < *capture_map_count(map); i++)
		if (rows[i].task_id == task && pc - rows[i].base_address < rows[i].length &&
		    (!newest || rows[i].timestamp >= newest->timestamp))
			newest = &rows[i];
	return newest;
}

static bool ends_in(const char *path, const char *name)
{
	size_t length = strlen(name);

	return strlen(path) >= length && !strcmp(path + strlen(path) - length, name);
}

FIXTURE(rows)
{
	int fd;
	const void *map;
};

FIXTURE_SETUP(rows)
{
	self->fd = device_open_free();
	ASSERT_EQ(0, configure(self->fd, sampling(&cpu_clock, 1)));
	self->map = map_cpu(self->fd, 0);
	pin(0);
}

/* Switch all kprobes of the machine. False: this kernel has no such switch. */
static bool switch_kprobes(const char *on)
{
	int fd = open("/sys/kernel/debug/kprobes/enabled", O_WRONLY | O_CLOEXEC);
	bool done = fd >= 0 && write(fd, on, 1) == 1;

	close(fd);
	return done;
}

FIXTURE_TEARDOWN(rows)
{
	switch_kprobes("1");
	close(self->fd);
}

TEST_F(rows, a_program_there_at_start_has_rows)
{
	const struct bm_protocol_header_mmap_layout *row;

	ASSERT_EQ(0, start(self->fd));
	burn_for(self->map, 2);
	ASSERT_EQ(0, stop(self->fd));
	row = row_of(self->map, getpid(), (uintptr_t)burn);
	ASSERT_NE(NULL, row);
	EXPECT_TRUE(ends_in(capture_strings(self->map) + row->image_ptr, "/rows"));
}

TEST_F(rows, a_row_says_where_in_the_file)
{
	const struct bm_protocol_header_mmap_layout *row;
	uint8_t bytes[32];
	uint64_t offset;
	int exe;

	ASSERT_EQ(0, start(self->fd));
	burn_for(self->map, 2);
	ASSERT_EQ(0, stop(self->fd));
	row = row_of(self->map, getpid(), (uintptr_t)burn);
	ASSERT_NE(NULL, row);
	/* The bytes of burn() stand there. */
	offset = (uintptr_t)burn - row->base_address + row->image_offset;
	exe = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	ASSERT_LE(0, exe);
	ASSERT_EQ(sizeof(bytes), pread(exe, bytes, sizeof(bytes), offset));
	EXPECT_EQ(0, memcmp(bytes, burn, sizeof(bytes)));
	close(exe);
}

static void *burn_in_thread(void *argument)
{
	FIXTURE_DATA(rows) *self = argument;

	pin(0);
	burn_for(self->map, 2);
	return (void *)(long)thread_id();
}

TEST_F(rows, a_thread_that_is_sampled_has_the_rows_of_its_process)
{
	pthread_t thread;
	void *id;

	ASSERT_EQ(0, start(self->fd));
	ASSERT_EQ(0, pthread_create(&thread, NULL, burn_in_thread, self));
	ASSERT_EQ(0, pthread_join(thread, &id));
	ASSERT_EQ(0, stop(self->fd));
	EXPECT_STREQ("process", capture_fact(self->map, "maps"));
	EXPECT_EQ(getpid(), process_of(self->map, (long)id));
	EXPECT_NE(NULL, row_of(self->map, getpid(), (uintptr_t)burn));
	EXPECT_EQ(NULL, row_of(self->map, (long)id, (uintptr_t)burn));
}

/* A child that has the memory of its parent and runs @run there, with a stack of its own. */
static pid_t child_in_own_memory(int (*run)(void *argument), void *argument)
{
	size_t bytes = 64 * KIB;
	char *stack = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pid_t child = stack == MAP_FAILED ? -1 :
		      clone(run, stack + bytes, CLONE_VM | SIGCHLD, argument);

	if (child < 0)
		lost("no child");
	return child;
}

static int burn_in_child(void *argument)
{
	FIXTURE_DATA(rows) *self = argument;

	pin(0);
	burn_for(self->map, 2);
	_exit(0);
}

#define SHORT_CHILDREN	20
#define BUSY_BYTES	(32U << 20)

struct busy {
	bool end;
	unsigned int rounds;
};

/* Changes what a large piece of memory may be used for, which takes mmap_lock for long. */
static void *keep_mmap_lock_busy(void *argument)
{
	struct busy *busy = argument;
	char *memory = mmap(NULL, BUSY_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	pin(1);
	while (memory != MAP_FAILED && !__atomic_load_n(&busy->end, __ATOMIC_RELAXED)) {
		if (mprotect(memory, BUSY_BYTES, PROT_READ) ||
		    mprotect(memory, BUSY_BYTES, PROT_READ | PROT_WRITE))
			break;
		__atomic_fetch_add(&busy->rounds, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* A process has ended when its mappings can be looked at. */
TEST_F(rows, a_short_child_in_its_parents_memory_has_rows_although_mmap_lock_is_busy)
{
	struct busy busy = { .end = false };
	pid_t ids[SHORT_CHILDREN];
	pthread_t keeper;
	unsigned int i;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "one CPU: nobody else can hold mmap_lock");
	ASSERT_EQ(0, pthread_create(&keeper, NULL, keep_mmap_lock_busy, &busy));
	while (!__atomic_load_n(&busy.rounds, __ATOMIC_RELAXED))
		usleep(1000);
	/* From here on somebody looks for the mappings of this process. */
	ASSERT_EQ(0, start(self->fd));
	for (i = 0; i < SHORT_CHILDREN; i++) {
		ids[i] = child_in_own_memory(burn_in_child, self);
		ASSERT_EQ(ids[i], waitpid(ids[i], NULL, 0));
	}
	__atomic_store_n(&busy.end, true, __ATOMIC_RELAXED);
	ASSERT_EQ(0, pthread_join(keeper, NULL));
	ASSERT_EQ(0, stop(self->fd));
	for (i = 0; i < SHORT_CHILDREN; i++)
		EXPECT_NE(NULL, row_of(self->map, ids[i], (uintptr_t)burn))
			TH_LOG("child %u of %u", i, SHORT_CHILDREN);
}

TEST_F(rows, a_forked_child_that_is_sampled_has_rows)
{
	pid_t child;

	ASSERT_EQ(0, start(self->fd));
	child = fork();
	if (!child) {
		burn_for(self->map, 2);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	ASSERT_EQ(0, stop(self->fd));
	EXPECT_NE(NULL, row_of(self->map, child, (uintptr_t)burn));
}

/* For the tests of exec: be a program that burns 200 ms of its CPU's time, and ends. */
static void __attribute__((constructor)) burn_if_told(void)
{
	/* To become it may have taken as long. */
	uint64_t begun = clock_ns(CLOCK_PROCESS_CPUTIME_ID);

	if (!getenv("KBARMAN_TEST_BURN"))
		return;
	while (clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begun < 200 * PERIOD_NS)
		burn();
	_exit(0);
}

/* A child that becomes that program. */
static pid_t exec_burner(void)
{
	pid_t child = fork();

	if (!child) {
		setenv("KBARMAN_TEST_BURN", "1", 1);
		execl("/proc/self/exe", "whatever", NULL);
		_exit(1);
	}
	return child;
}

static void *exec_from_thread(void __attribute__((unused)) *unused)
{
	setenv("KBARMAN_TEST_BURN", "1", 1);
	execl("/proc/self/exe", "whatever", NULL);
	_exit(1);
}

/* The thread takes over the number of its process, whose rows are those of another program. */
TEST_F(rows, a_program_that_a_thread_executes_has_rows)
{
	unsigned int found = 0;
	const union record *r;
	struct walk walk;
	pthread_t thread;
	pid_t child;

	ASSERT_EQ(0, start(self->fd));
	child = fork();
	if (!child) {
		burn_for(self->map, 2);
		pthread_create(&thread, NULL, exec_from_thread, NULL);
		for (;;)
			pause();
	}
	ASSERT_EQ(child, waitpid(child, NULL, 0));
	ASSERT_EQ(0, stop(self->fd));
	walk = walk_begin(self->map);
	while ((r = next_sample(&walk))) {
		if (process_of(self->map, r->sample.task_id) != (uint32_t)child ||
		    is_in_kernel(&walk, r) || !sample_pc(r))
			continue;
		found++;
		EXPECT_NE(NULL, row_of(self->map, child, sample_pc(r)))
			TH_LOG("0x%llx", (unsigned long long)sample_pc(r));
	}
	EXPECT_LE(3, found);
}

/* The program is gone when anybody looks; its row is there all the same. */
TEST_F(rows, a_program_that_has_ended_has_rows)
{
	struct walk walk;
	const union record *r;
	unsigned int found = 0;
	pid_t child;

	ASSERT_EQ(0, start(self->fd));
	child = exec_burner();
	waitpid(child, NULL, 0);
	ASSERT_EQ(0, stop(self->fd));
	walk = walk_begin(self->map);
	while ((r = next_sample(&walk))) {
		uint64_t pc = sample_pc(r);

		if (r->sample.task_id != (uint32_t)child || !pc || is_in_kernel(&walk, r))
			continue;
		found++;
		EXPECT_NE(NULL, row_of(self->map, child, pc))
			TH_LOG("0x%llx", (unsigned long long)pc);
	}
	EXPECT_LE(1, found);
}

/* @length bytes of this program from @offset on, as code; where the kernel likes or at @at. */
static char *map_own_code(void *at, size_t length, off_t offset)
{
	int exe = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	char *code = mmap(at, length, PROT_READ | PROT_EXEC, MAP_PRIVATE | (at ? MAP_FIXED : 0),
			  exe, offset);

	if (code == MAP_FAILED)
		lost("the program can't be mapped");
	close(exe);
	return code;
}

TEST_F(rows, a_mapping_made_later_has_a_row)
{
	const struct bm_protocol_header_mmap_layout *row;
	char *code;

	if (!(query(self->fd).features & KBARMAN_FEATURE_MAPS))
		SKIP(return, "new mappings are not seen without kprobes");
	ASSERT_EQ(0, start(self->fd));
	burn_for(self->map, 2);
	code = map_own_code(NULL, 8192, 4096);
	ASSERT_EQ(0, stop(self->fd));
	row = row_of(self->map, getpid(), (uintptr_t)code);
	ASSERT_NE(NULL, row);
	EXPECT_EQ(4096, row->image_offset + ((uintptr_t)code - row->base_address));
	EXPECT_TRUE(ends_in(capture_strings(self->map) + row->image_ptr, "/rows"));
}

#define MAPS_SEEN	(KBARMAN_FEATURE_MAPS | KBARMAN_FEATURE_MAPS_MADE)

TEST_F(rows, kprobes_that_are_switched_off_are_told)
{
	if (!(query(self->fd).features & KBARMAN_FEATURE_MAPS))
		SKIP(return, "new mappings are not seen without kprobes");
	if (!switch_kprobes("0"))
		SKIP(return, "this kernel's kprobes can't be switched off");

	/* before the start */
	ASSERT_EQ(0, start(self->fd));
	EXPECT_EQ(0, query(self->fd).features & MAPS_SEEN);
	EXPECT_STREQ("start", capture_fact(self->map, "maps_seen"));
	ASSERT_EQ(0, stop(self->fd));

	/* and while a session records */
	ASSERT_TRUE(switch_kprobes("1"));
	ASSERT_EQ(0, start(self->fd));
	EXPECT_EQ(MAPS_SEEN, query(self->fd).features & MAPS_SEEN);
	EXPECT_EQ(NULL, capture_fact(self->map, "maps_seen"));
	ASSERT_TRUE(switch_kprobes("0"));
	ASSERT_EQ(0, stop(self->fd));
	EXPECT_EQ(0, query(self->fd).features & MAPS_SEEN);
	EXPECT_STREQ("start", capture_fact(self->map, "maps_seen"));
	EXPECT_LT(0, stats(self->fd, KBARMAN_CPU_ALL).missed[KBARMAN_MISSED_QUEUE]);

	ASSERT_TRUE(switch_kprobes("1"));
	ASSERT_EQ(0, start(self->fd));
	EXPECT_EQ(MAPS_SEEN, query(self->fd).features & MAPS_SEEN);
	ASSERT_EQ(0, stop(self->fd));
}

TEST_F(rows, a_mapping_in_the_place_of_another_is_the_newer_row)
{
	const struct bm_protocol_header_mmap_layout *row;
	uint64_t page = query(self->fd).page_size, first;
	char *code;

	if (!(query(self->fd).features & KBARMAN_FEATURE_MAPS))
		SKIP(return, "new mappings are not seen without kprobes");
	ASSERT_EQ(0, start(self->fd));
	burn_for(self->map, 2);
	code = map_own_code(NULL, 4096, page);
	row = own_row_in_time(self->map, code);
	EXPECT_EQ(page, row->image_offset + ((uintptr_t)code - row->base_address));
	first = row->timestamp;
	/* Over it, and once more where it was given back. */
	map_own_code(code, 4096, 2 * page);
	ASSERT_EQ(0, munmap(code, 4096));
	map_own_code(code, 4096, 3 * page);
	ASSERT_EQ(0, stop(self->fd));
	row = row_of(self->map, getpid(), (uintptr_t)code);
	EXPECT_EQ(3 * page, row->image_offset + ((uintptr_t)code - row->base_address));
	EXPECT_LT(first, row->timestamp);
}

TEST_F(rows, memory_that_is_made_executable_has_a_row)
{
	const struct bm_protocol_header_mmap_layout *row;
	char *code;

	if (!(query(self->fd).features & KBARMAN_FEATURE_MAPS))
		SKIP(return, "new mappings are not seen without kprobes");
	ASSERT_EQ(0, start(self->fd));
	burn_for(self->map, 2);
	code = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, code);
	ASSERT_EQ(0, mprotect(code, 1 << 16, PROT_READ | PROT_EXEC));
	ASSERT_EQ(0, stop(self->fd));
	row = row_of(self->map, getpid(), (uintptr_t)code);
	ASSERT_NE(NULL, row);
	EXPECT_STREQ("//anon", capture_strings(self->map) + row->image_ptr);
}

TEST_F(rows, code_that_is_moved_has_a_row_where_it_is)
{
	const struct bm_protocol_header_mmap_layout *row;
	size_t page = query(self->fd).page_size;
	char *code, *place;

	if (!(query(self->fd).features & KBARMAN_FEATURE_MAPS))
		SKIP(return, "new mappings are not seen without kprobes");
	ASSERT_EQ(0, start(self->fd));
	burn_for(self->map, 2);
	code = map_own_code(NULL, 4 * page, page);
	place = mmap(NULL, 4 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, place);
	/* The two pages in the middle. */
	ASSERT_EQ(place, mremap(code + page, 2 * page, 2 * page, MREMAP_MAYMOVE | MREMAP_FIXED,
				place));
	ASSERT_EQ(0, stop(self->fd));
	row = row_of(self->map, getpid(), (uintptr_t)place);
	ASSERT_NE(NULL, row);
	EXPECT_EQ(place, (char *)(uintptr_t)row->base_address);
	EXPECT_EQ(2 * page, row->length);
	EXPECT_EQ(2 * page, row->image_offset);
	EXPECT_TRUE(ends_in(capture_strings(self->map) + row->image_ptr, "/rows"));
}

/* It sleeps at start, then maps code, and is sampled after that. */
TEST_F(rows, a_chosen_process_that_maps_code_before_its_first_sample_has_rows_of_all)
{
	struct kbarman_configure c = sampling(&cpu_clock, 1);
	const struct bm_protocol_header_mmap_layout *row;
	struct {
		char *code;
		void *program;
	} places;
	int go[2], done[2];
	uint32_t child;
	char byte;

	ASSERT_EQ(0, pipe(go));
	ASSERT_EQ(0, pipe(done));
	child = fork();
	if (!child) {
		pin(0);
		if (read(go[0], &byte, 1) != 1)
			_exit(1);
		places.code = map_own_code(NULL, 4096, 4096);
		places.program = burn;
		/* The parent looks at the same ring, and says when it has seen enough. */
		if (write(done[1], &places, sizeof(places)) != sizeof(places))
			_exit(1);
		for (;;)
			burn();
	}
	c.events_ptr = sampled(&cpu_clock, 1, 20 * PERIOD_NS);
	c.pids_ptr = (uintptr_t)&child;
	c.nr_pids = 1;
	/* All of them, so that the start takes a while. */
	c.sources = KBARMAN_SOURCE_ALL;
	ASSERT_EQ(0, configure(self->fd, c));
	self->map = map_cpu(self->fd, 0);
	ASSERT_EQ(0, start(self->fd));
	/* Time for the module to look at who is there, and to see that it need not look again. */
	usleep(500000);
	ASSERT_EQ(1, write(go[1], "", 1));
	ASSERT_EQ(sizeof(places), read(done[0], &places, sizeof(places)));
	while (samples_of(self->map, child, is_in_burn) < 3)
		usleep(10000);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	ASSERT_EQ(0, stop(self->fd));
	row = row_of(self->map, child, (uintptr_t)places.program);
	ASSERT_NE(NULL, row);
	EXPECT_TRUE(ends_in(capture_strings(self->map) + row->image_ptr, "/rows"));
	if (query(self->fd).features & KBARMAN_FEATURE_MAPS)
		EXPECT_NE(NULL, row_of(self->map, child, (uintptr_t)places.code));
	close(go[0]);
	close(go[1]);
	close(done[0]);
	close(done[1]);
}

struct burst {
	unsigned int ready, made;
};

/*
 * Make memory executable, together with others, one on each CPU, more often than the queue
 * holds, before who reads it has a turn. Of all mapping this is what takes the least, and
 * waits for nobody. It begins when nobody can write to the pipe @go any more: for all at once.
 */
static void map_in_a_burst(struct burst *burst, uint32_t cpu, const int go[2])
{
	const int other[] = { PROT_READ | PROT_EXEC, PROT_READ | PROT_WRITE | PROT_EXEC };
	size_t page = sysconf(_SC_PAGESIZE);
	char *place = mmap(NULL, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned int i;
	char byte;

	close(go[1]);
	if (place == MAP_FAILED)
		lost("no memory");
	be_urgent(cpu, 1);
	__atomic_fetch_add(&burst->ready, 1, __ATOMIC_RELEASE);
	if (read(go[0], &byte, 1) != 0)
		lost("no end of a pipe");
	for (i = 0; __atomic_fetch_add(&burst->made, 1, __ATOMIC_RELAXED) < 4096 + 500; i++)
		if (mprotect(place, page, other[i % 2]))
			lost("the program can't make memory executable");
	_exit(0);
}

TEST_F_TIMEOUT(rows, mappings_that_come_too_fast_are_counted, 120 * SLOWNESS)
{
	struct burst *burst = mmap(NULL, sizeof(*burst), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned int i, all = sysconf(_SC_NPROCESSORS_ONLN);
	struct urgency had;
	int go[2], status;
	pid_t child;

	if (!(query(self->fd).features & KBARMAN_FEATURE_MAPS))
		SKIP(return, "new mappings are not seen without kprobes");
	ASSERT_NE(MAP_FAILED, burst);
	ASSERT_EQ(0, pipe(go));
	ASSERT_EQ(0, start(self->fd));
	had = begin_urgency();
	for (i = 0; i < all; i++) {
		child = fork();
		ASSERT_LE(0, child);
		if (!child)
			map_in_a_burst(burst, i, go);
	}
	while (__atomic_load_n(&burst->ready, __ATOMIC_ACQUIRE) < all)
		usleep(1000);
	close(go[1]);
	for (i = 0; i < all; i++) {
		ASSERT_LT(0, wait(&status));
		EXPECT_EQ(0, status);
	}
	end_urgency(&had);
	ASSERT_EQ(0, stop(self->fd));
	EXPECT_LT(0, stats(self->fd, KBARMAN_CPU_ALL).missed[KBARMAN_MISSED_QUEUE]);
}

/* ---- storms ---- */

struct storm {
	unsigned int ready, made;
	bool over;
	char *code;		/* what another process maps in it */
};

/* Make a page executable, as often as can be, until it is over. */
static void make_storm(struct storm *storm)
{
	const int other[] = { PROT_READ | PROT_EXEC, PROT_READ | PROT_WRITE | PROT_EXEC };
	size_t page = sysconf(_SC_PAGESIZE);
	char *place = mmap(NULL, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned int i;

	if (place == MAP_FAILED)
		lost("no storm");
	for (i = 0; !__atomic_load_n(&storm->over, __ATOMIC_RELAXED); i++) {
		if (mprotect(place, page, other[i % 2]))
			lost("the program can't make memory executable");
		__atomic_fetch_add(&storm->made, 1, __ATOMIC_RELAXED);
	}
}

static void *shared_memory(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		lost("no shared memory");
	return memory;
}

/* It is there at start, maps code while the queue is full of another's, runs and ends. */
static void map_in_a_storm(const void *map, struct storm *storm)
{
	be_urgent(0, 2);
	while (__atomic_load_n(&storm->made, __ATOMIC_RELAXED) < 2 * 4096)
		usleep(10000);
	storm->code = map_own_code(NULL, 4096, 4096);
	burn_for(map, 2);
	/* Nobody who looks later finds any of it. */
	_exit(0);
}

TEST_F_TIMEOUT(rows, a_storm_of_one_process_leaves_others_their_rows, 300 * SLOWNESS)
{
	unsigned int i, all = sysconf(_SC_NPROCESSORS_ONLN);
	struct storm *storm = shared_memory(sizeof(*storm));
	struct urgency had;
	pid_t quiet;
	int status;

	if (!(query(self->fd).features & KBARMAN_FEATURE_MAPS))
		SKIP(return, "new mappings are not seen without kprobes");
	quiet = fork();
	if (!quiet)
		map_in_a_storm(self->map, storm);
	ASSERT_EQ(0, start(self->fd));
	/* Time to look at who is there. */
	usleep(500000);
	had = begin_urgency();
	/* More urgent than those that leave no CPU to who reads the queue. */
	be_urgent(0, 3);
	for (i = 0; i < all; i++)
		if (!fork()) {
			be_urgent(i, 1);
			__atomic_fetch_add(&storm->ready, 1, __ATOMIC_RELAXED);
			while (!i && __atomic_load_n(&storm->ready, __ATOMIC_RELAXED) < all)
				;
			if (!i)
				make_storm(storm);
			while (!__atomic_load_n(&storm->over, __ATOMIC_RELAXED))
				;
			_exit(0);
		}
	ASSERT_EQ(quiet, waitpid(quiet, &status, 0));
	EXPECT_EQ(0, status);
	storm->over = true;
	while (wait(NULL) > 0)
		;
	end_urgency(&had);
	ASSERT_EQ(0, stop(self->fd));
	EXPECT_LT(0, stats(self->fd, KBARMAN_CPU_ALL).missed[KBARMAN_MISSED_QUEUE]);
	EXPECT_NE(NULL, row_of(self->map, quiet, (uintptr_t)storm->code));
	EXPECT_NE(NULL, row_of(self->map, quiet, (uintptr_t)burn));
}

/* @count pages of this program as code, no two of them to be one mapping. */
static void map_many(unsigned int count)
{
	size_t page = sysconf(_SC_PAGESIZE);
	char *place = mmap(NULL, 2 * count * page, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (place == MAP_FAILED)
		lost("no room");
	while (count--)
		map_own_code(place + 2 * count * page, page, page);
}

/* One that has so many mappings and is sampled for ever. */
static pid_t process_with_mappings(unsigned int count)
{
	int done[2];
	pid_t child;
	char byte;

	if (pipe(done))
		lost("no pipe");
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pin(0);
		map_many(count);
		if (write(done[1], "", 1) != 1)
			_exit(1);
		for (;;) {
			burn();
			usleep(20000);
		}
	}
	if (child < 0 || read(done[0], &byte, 1) != 1)
		lost("no process with mappings");
	close(done[0]);
	close(done[1]);
	return child;
}

#define CROWD		4
#define CROWD_MAPS	3500

/*
 * While facts are left out all the time, others' come to their rows: the processes with many
 * mappings lose nothing by it, and are not looked at again and again.
 */
TEST_F_TIMEOUT(rows, a_storm_without_end_does_not_keep_others_waiting, 400 * SLOWNESS)
{
	struct storm *storm = shared_memory(sizeof(*storm));
	unsigned int i, rounds;
	pid_t crowd[CROWD], noise;

	if (!(query(self->fd).features & KBARMAN_FEATURE_MAPS))
		SKIP(return, "new mappings are not seen without kprobes");
	if (query(self->fd).nr_cpus < 2)
		SKIP(return, "one CPU only");
	for (i = 0; i < CROWD; i++)
		crowd[i] = process_with_mappings(CROWD_MAPS);
	ASSERT_EQ(0, start(self->fd));
	burn_for(self->map, 2);
	for (i = 0; i < CROWD; i++)
		while (!row_of(self->map, crowd[i], (uintptr_t)burn))
			usleep(10000);
	noise = fork();
	if (!noise) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pin(1);
		make_storm(storm);
		_exit(0);
	}
	/* Who reads the queue may be fast enough for all of it. */
	while (!stats(self->fd, KBARMAN_CPU_ALL).missed[KBARMAN_MISSED_QUEUE] &&
	       __atomic_load_n(&storm->made, __ATOMIC_RELAXED) < 50000 / SLOWNESS)
		usleep(10000);
	for (rounds = 0; rounds < 5; rounds++)
		own_row_in_time(self->map, map_own_code(NULL, 4096, 4096));
	ASSERT_EQ(0, stop(self->fd));
	kill(noise, SIGKILL);
	waitpid(noise, NULL, 0);
	for (i = 0; i < CROWD; i++) {
		kill(crowd[i], SIGKILL);
		waitpid(crowd[i], NULL, 0);
	}
}

static int start_with(FIXTURE_DATA(rows) *self, struct kbarman_configure c)
{
	if (configure(self->fd, c))
		lost("no session");
	self->map = map_cpu(self->fd, 0);
	return start(self->fd);
}

/* Where no row comes back: it gets what it leaves to others, and the rest is counted. */
TEST_F_TIMEOUT(rows, one_process_does_not_take_all_rows, 300 * SLOWNESS)
{
	struct kbarman_configure c = sampling(&cpu_clock, 1);
	const struct bm_protocol_header_mmap_layout *row;
	unsigned int i, own = 0;
	pid_t other;

	if (!(query(self->fd).features & KBARMAN_FEATURE_MAPS))
		SKIP(return, "new mappings are not seen without kprobes");
	c.mode = KBARMAN_MODE_STREAM;
	c.max_maps = 1024;
	ASSERT_EQ(0, start_with(self, c));
	burn_for(self->map, 2);
	for (i = 0; i < 10; i++) {
		map_many(200);
		usleep(100000);
	}
	while (!stats(self->fd, KBARMAN_CPU_ALL).missed[KBARMAN_MISSED_MAP])
		usleep(10000);
	other = exec_burner();
	waitpid(other, NULL, 0);
	ASSERT_EQ(0, stop(self->fd));
	for (row = capture_maps(self->map);
	     row < capture_maps(self->map) + *capture_map_count(self->map); row++)
		own += row->task_id == (uint32_t)getpid();
	EXPECT_LT(100, own);
	EXPECT_GE(512, own);
	EXPECT_NE(NULL, row_of(self->map, other, (uintptr_t)burn));
}

/* Until none of the records that there are now is there any more. */
static void turn_ring(const void *map)
{
	const struct bm_datastore_header_data *store = capture_store(map);
	uint64_t end = __atomic_load_n(&store->write_offset, __ATOMIC_ACQUIRE);

	while (__atomic_load_n(&store->read_offset, __ATOMIC_ACQUIRE) < end)
		usleep(1);
}

/* The table has place for few of the rows that it ever makes. */
TEST_F_TIMEOUT(rows, a_program_that_maps_for_ever_has_rows_for_ever, 400 * SLOWNESS)
{
	struct kbarman_configure c = sampling(&cpu_clock, 1);
	uint64_t first = 1, page = query(self->fd).page_size;
	const struct bm_protocol_header_mmap_layout *row;
	unsigned int i;
	char *code;

	if (!(query(self->fd).features & KBARMAN_FEATURE_MAPS))
		SKIP(return, "new mappings are not seen without kprobes");
	c.sources |= KBARMAN_SOURCE_SCHED | KBARMAN_SOURCE_IDLE;
	c.max_maps = 512;
	c.ring_bytes = 64 * KIB;
	c.cpus_ptr = (uintptr_t)&first;
	c.nr_cpu_words = 1;
	ASSERT_EQ(0, start_with(self, c));
	burn_for(self->map, 2);
	code = map_own_code(NULL, page, page);
	for (i = 0; i < 2000; i++) {
		map_own_code(code, page, (1 + i % 3) * page);
		if (i % 40 == 39)
			turn_ring(self->map);
	}
	burn_for(self->map, 2);
	ASSERT_EQ(0, stop(self->fd));
	EXPECT_EQ(0, stats(self->fd, KBARMAN_CPU_ALL).missed[KBARMAN_MISSED_MAP]);
	EXPECT_EQ(0, stats(self->fd, KBARMAN_CPU_ALL).missed[KBARMAN_MISSED_QUEUE]);
	row = newest_row(self->map, getpid(), (uintptr_t)code);
	ASSERT_NE(NULL, row);
	EXPECT_EQ((1 + (i - 1) % 3) * page, row->image_offset);
	EXPECT_NE(NULL, row_of(self->map, getpid(), (uintptr_t)burn));
}

/* A file system that nobody but this process sees, at /cover. */
static void mount_own(void)
{
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    (mkdir("/cover", 0700) && errno != EEXIST) ||
	    mount("cover", "/cover", "tmpfs", 0, NULL))
		lost("no file system of its own");
}

/* "ADDRESS kbarman.file=...:PATH" of the file that @fd is, as code at @code. */
static void tell_file(char *text, size_t room, const void *code, int fd, const char *path)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned int major, minor;
	unsigned long inode;
	char line[512];
	struct stat st;
	void *at;

	if (!maps || fstat(fd, &st))
		lost("the program can't be looked at");
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%p-%*s %*s %*s %x:%x %lu", &at, &major, &minor, &inode) == 4 &&
		    at == code)
			snprintf(text, room, "%p kbarman.file=%u:%u:%lu:%llu:%llu:%s", code, major,
				 minor, inode, (unsigned long long)st.st_size,
				 st.st_mtim.tv_sec * 1000000000ULL + st.st_mtim.tv_nsec, path);
	fclose(maps);
}

TEST_F(rows, files_of_one_path_are_told_apart)
{
	const struct bm_protocol_header_mmap_layout *row[2];
	const char path[] = "/code";	/* inside its mount */
	char expected[2][512];
	pid_t pid[2], i;
	void *code;
	int fd;

	if (!(query(self->fd).features & KBARMAN_FEATURE_MAPS))
		SKIP(return, "new mappings are not seen without kprobes");
	ASSERT_EQ(0, start(self->fd));
	for (i = 0; i < 2; i++) {
		int tell[2];

		ASSERT_EQ(0, pipe(tell));
		pid[i] = fork();
		if (!pid[i]) {
			mount_own();
			fd = open("/cover/code", O_RDWR | O_CREAT | O_CLOEXEC, 0700);
			if (ftruncate(fd, 4096))
				lost("no file of its own");
			code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
			if (code == MAP_FAILED)
				lost("the program can't be mapped");
			burn_for(self->map, 2);
			tell_file(expected[i], sizeof(expected[i]), code, fd, path);
			if (write(tell[1], expected[i], sizeof(expected[i])) < 0)
				_exit(1);
			_exit(0);
		}
		close(tell[1]);
		ASSERT_EQ(sizeof(expected[i]), read(tell[0], expected[i], sizeof(expected[i])));
		waitpid(pid[i], NULL, 0);
		close(tell[0]);
	}
	ASSERT_EQ(0, stop(self->fd));
	for (i = 0; i < 2; i++) {
		const char *fact = strchr(expected[i], ' ') + 1, *name;

		row[i] = row_of(self->map, pid[i], strtoull(expected[i], NULL, 16));
		ASSERT_NE(NULL, row[i]);
		name = capture_strings(self->map) + row[i]->image_ptr;
		EXPECT_STREQ(path, name);
		EXPECT_STREQ(fact, name - (strlen(fact) - strlen(path)));
	}
	EXPECT_NE(row[0]->image_ptr, row[1]->image_ptr);
	rmdir("/cover");
}

/* ---- memory ---- */

/* Map @count files as code whose paths are about as long as there can be: 4047 bytes. */
static void map_long_paths(unsigned int count)
{
	char name[256];
	int fd;

	mount_own();
	if (chdir("/cover"))
		lost("no way to /cover");
	enter_long_directory(0700);
	while (count--) {
		snprintf(name, sizeof(name), "%0200u", count);
		fd = open(name, O_RDONLY | O_CREAT | O_CLOEXEC, 0700);
		if (fd < 0 ||
		    mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
			lost("%u files can't be mapped", count);
		close(fd);
	}
}

/* With fewer samples than the others have: thousands of mappings take a while as it is. */
static int start_with_few_samples(FIXTURE_DATA(rows) *self)
{
	struct kbarman_configure c = sampling(&cpu_clock, 1);

	c.events_ptr = sampled(&cpu_clock, 1, 10 * PERIOD_NS);
	if (configure(self->fd, c))
		lost("no session");
	self->map = map_cpu(self->fd, 0);
	return start(self->fd);
}

/* A process that has done so, and is known to the module with all of it. */
static pid_t long_paths(FIXTURE_DATA(rows) *self, unsigned int count)
{
	pid_t child;
	int done[2];
	char *code, byte;

	if (pipe(done))
		lost("no pipe");
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		map_long_paths(count);
		while (write(done[1], "", 1) == 1)
			pause();
	}
	close(done[1]);
	if (child < 0 || read(done[0], &byte, 1) != 1)
		lost("no process that maps");
	close(done[0]);
	/* What is told later has a row later. */
	code = map_own_code(NULL, 4096, 0);
	own_row_in_time(self->map, code);
	return child;
}

/*
 * In the kernel's objects of 8 KiB, each of which holds one such path. Kernels that watch have
 * larger ones, and keep what is freed, or don't tell: 0.
 */
static uint64_t path_memory(void)
{
	FILE *f = fopen("/proc/slabinfo", "re");
	unsigned long active, size;
	char line[512], name[64];
	uint64_t sum = 0;

	if (!f && errno == ENOENT)
		return 0;
	if (!f)
		lost("no slabinfo");
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%63s %lu %*u %lu", name, &active, &size) == 3 &&
		    ends_in(name, "-8k") && size == 8 * KIB)
			sum += active * size;
	fclose(f);
	return sum;
}

#define PATHS		3600		/* the queue holds more, so no fact is left out */
#define PATHS_MEMORY	(64 * MIB)	/* what there is for them: kmod/maps/space.h */
#define OTHERS_MEMORY	(8 * MIB)	/* more than others take meanwhile */

TEST_F_TIMEOUT(rows, memory_for_long_paths_is_bounded_and_others_keep_their_rows, 300 * SLOWNESS)
{
	const struct bm_protocol_header_mmap_layout *row;
	uint64_t before = path_memory();
	pid_t children[3], other;
	unsigned int i;

	if (!(query(self->fd).features & KBARMAN_FEATURE_MAPS))
		SKIP(return, "new mappings are not seen without kprobes");
	ASSERT_EQ(0, start_with_few_samples(self));
	burn_for(self->map, 2);
	for (i = 0; i < 3; i++) {
		children[i] = long_paths(self, PATHS);
		EXPECT_GT(before + PATHS_MEMORY + OTHERS_MEMORY, path_memory());
	}
	other = exec_burner();
	waitpid(other, NULL, 0);
	/* The worker may still have all those paths in front of it. */
	while (!(row = row_of(self->map, other, (uintptr_t)burn)))
		usleep(1000);
	for (i = 0; i < 3; i++) {
		kill(children[i], SIGKILL);
		waitpid(children[i], NULL, 0);
	}
	ASSERT_EQ(0, stop(self->fd));
	EXPECT_LT(0, stats(self->fd, KBARMAN_CPU_ALL).missed[KBARMAN_MISSED_MEMORY]);
	EXPECT_TRUE(ends_in(capture_strings(self->map) + row->image_ptr, "/rows"));
	rmdir("/cover");
}

TEST_F_TIMEOUT(rows, dead_programs_make_room_for_long_paths, 300 * SLOWNESS)
{
	unsigned int i;
	pid_t child;

	if (!(query(self->fd).features & KBARMAN_FEATURE_MAPS))
		SKIP(return, "new mappings are not seen without kprobes");
	ASSERT_EQ(0, start_with_few_samples(self));
	burn_for(self->map, 2);
	for (i = 0; i < 9; i++) {
		child = long_paths(self, 1000);
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	ASSERT_EQ(0, stop(self->fd));
	EXPECT_EQ(0, stats(self->fd, KBARMAN_CPU_ALL).missed[KBARMAN_MISSED_MEMORY]);
	rmdir("/cover");
}

/* ---- tables without the task ---- */

/* What has no room makes the collector look for rows that nothing needs. */
TEST_F(rows, mappings_stay_while_their_process_lives_though_it_has_no_row)
{
	struct kbarman_configure c = { .sources = KBARMAN_SOURCE_IDLE, .max_strings = 64 * KIB };
	pid_t child = fork();
	unsigned int i;

	if (!child)
		for (;;)
			pause();
	ASSERT_EQ(0, configure(self->fd, c));
	ASSERT_EQ(0, start(self->fd));
	ASSERT_TRUE(add_map(self->fd, child, 4000));
	while (add_map(self->fd, child, 4000))
		;
	for (i = 0; i < 20; i++) {
		usleep(20000);
		EXPECT_FALSE(add_map(self->fd, child, 4000));
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	while (!add_map(self->fd, getpid(), 4000))
		usleep(20000);
	ASSERT_EQ(0, stop(self->fd));
}

/* ---- the stop ---- */

#define STOP_STEPS	65536	/* that it takes, at most: SECURITY.md */
#define LATE_CHILDREN	300
#define LATE_MAPS	(sizeof(long) < 8 ? 600U : 3000U)	/* 32-bit kernels have little room for rows */

#define RCU_EXPEDITED	"/sys/kernel/rcu_expedited"
#define RCU_NORMAL	"/sys/kernel/rcu_normal"	/* 1 with PREEMPT_RT: nothing is expedited */

struct late {
	unsigned int mapped, go, done;
	uint32_t ids[LATE_CHILDREN];	/* of those that are done */
};

/* So long that it is sampled, then no more. */
static int __attribute__((noreturn)) be_sampled(void *argument)
{
	struct late *late = argument;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < 3 * PERIOD_NS)
		burn();
	late->ids[__atomic_fetch_add(&late->done, 1, __ATOMIC_RELAXED)] = thread_id();
	for (;;)
		pause();
}

static void __attribute__((noreturn)) run_late_children(struct late *late)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	map_many(LATE_MAPS);
	__atomic_store_n(&late->mapped, 1, __ATOMIC_RELAXED);
	while (!__atomic_load_n(&late->go, __ATOMIC_RELAXED))
		usleep(1000);
	be_urgent(0, 1);
	for (unsigned int i = 0; i < LATE_CHILDREN; i++)
		child_in_own_memory(be_sampled, late);
	for (;;)
		pause();
}

/* How many of these children were sampled in user space. */
static unsigned int children_sampled(const void *map, const struct late *late)
{
	bool seen[LATE_CHILDREN] = { false };
	struct walk walk = walk_begin(map);
	const union record *r;
	unsigned int i, nr = 0;

	while ((r = walk_next(&walk))) {
		if (r->header.record_type != BM_RECORD_SAMPLE_WITH_PC || is_in_kernel(&walk, r))
			continue;
		for (i = 0; i < LATE_CHILDREN && late->ids[i] != r->sample.task_id; i++)
			;
		if (i == LATE_CHILDREN || seen[i])
			continue;
		seen[i] = true;
		nr++;
	}
	return nr;
}

#define TRACING		"/sys/kernel/tracing/"
#define PROBE_LIMIT	"kbarman_spaces_hurry"		/* at its return the steps are limited */
#define PROBE_ROW	"kbarman_tables_add_map"
#define OWN_TRACE	TRACING "instances/kbarman_test/"	/* with nobody else's events */
#define LIMIT_TRIGGER	OWN_TRACE "events/kbarman_test/limit/trigger"

/* Lets the kernel trace each row that is made after the limit is set; false if it can't. */
static bool begin_limit(void)
{
	if (access(TRACE_EVENTS, F_OK))
		mount("nodev", TRACING, "tracefs", 0, NULL);
	if (kprobe_command("r:kbarman_test/limit " PROBE_LIMIT) ||
	    kprobe_command("p:kbarman_test/row " PROBE_ROW))
		return false;
	if (mkdir(OWN_TRACE, 0700))
		lost("no trace of its own");
	write_file(LIMIT_TRIGGER, "enable_event:kbarman_test:row");
	return true;
}

static void end_limit(void)
{
	write_file(LIMIT_TRIGGER, "!enable_event:kbarman_test:row");
	rmdir(OWN_TRACE);
	kprobe_command("-:kbarman_test/limit");
	kprobe_command("-:kbarman_test/row");
}

/* Events in the trace, and those that had no room there any more. */
static unsigned long events_traced(void)
{
	unsigned int cpu, all = sysconf(_SC_NPROCESSORS_CONF);
	unsigned long number, sum = 0;
	char path[96], line[128];
	FILE *file;

	for (cpu = 0; cpu < all; cpu++) {
		snprintf(path, sizeof(path), OWN_TRACE "per_cpu/cpu%u/stats", cpu);
		file = fopen(path, "re");
		while (file && fgets(line, sizeof(line), file)) {
			if (sscanf(line, "entries: %lu", &number) == 1 ||
			    sscanf(line, "overrun: %lu", &number) == 1)
				sum += number;
		}
		if (file)
			fclose(file);
	}
	return sum;
}

/*
 * Children that share the memory of a process with many mappings are sampled just before it, which
 * makes nearly a million rows, and the worker that makes them gets no CPU meanwhile.
 */
TEST_F_TIMEOUT(rows, a_stop_leaves_out_what_would_take_long, 300 * SLOWNESS)
{
	struct late *late = shared_memory(sizeof(*late));
	struct kbarman_configure c = sampling(&cpu_clock, 1);
	struct kbarman_stats before, after;
	char expedited[16], normal[16];
	unsigned long limits, late_rows;
	struct urgency had;
	unsigned int sampled;
	uint64_t begun, took;
	bool traced;
	pid_t child;

	if (query(self->fd).nr_cpus != 2)
		SKIP(return, "it is for two CPUs");
	read_file(RCU_EXPEDITED, expedited, sizeof(expedited));
	read_file(RCU_NORMAL, normal, sizeof(normal));
	c.max_maps = 3 * LATE_CHILDREN * LATE_MAPS;	/* not what bounds it */
	child = fork();
	if (!child)
		run_late_children(late);
	while (!__atomic_load_n(&late->mapped, __ATOMIC_RELAXED))
		usleep(1000);
	ASSERT_EQ(0, start_with(self, c));
	burn_for(self->map, 2);
	traced = begin_limit();
	had = begin_urgency();
	write_file(RCU_EXPEDITED, "1");
	__atomic_store_n(&late->go, 1, __ATOMIC_RELAXED);
	be_urgent(1, 2);
	while (__atomic_load_n(&late->done, __ATOMIC_RELAXED) < LATE_CHILDREN)
		;
	before = stats(self->fd, KBARMAN_CPU_ALL);
	begun = clock_ns(CLOCK_MONOTONIC);
	EXPECT_EQ(0, stop(self->fd));
	took = clock_ns(CLOCK_MONOTONIC) - begun;
	after = stats(self->fd, KBARMAN_CPU_ALL);
	end_urgency(&had);
	write_file(RCU_EXPEDITED, expedited);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	sampled = children_sampled(self->map, late);
	TH_LOG("%u rows, then %u in %llu ms; %u children sampled", before.maps, after.maps,
	       (unsigned long long)took / 1000000, sampled);
	/* The worker makes rows freely until then: while the stop waits for the kernel. */
	if (traced) {
		limits = kprobe_hits("limit");
		late_rows = events_traced();
		end_limit();
		TH_LOG("%lu rows after the stop has set its limit", late_rows);
		EXPECT_LE(1, limits);
		EXPECT_GE(STOP_STEPS, late_rows);
	}
	/* Where nothing is expedited, the worker hears late of the stop: 900 ms were seen. */
	if (normal[0] == '1')
		EXPECT_GT(3000000000ULL, took);
	/* On a slow kernel most of a child's time is the kernel's. */
	EXPECT_LT(LATE_CHILDREN / 10, sampled);
	EXPECT_LE(sampled * LATE_MAPS,
		  after.maps + after.missed[KBARMAN_MISSED_MAP] +
		  LATE_MAPS * after.missed[KBARMAN_MISSED_QUEUE]);
}

/* ---- ids and modules ---- */

/* A child with the thread id @wanted that burns for a moment; 0 if another one was faster. */
static pid_t burn_as(pid_t wanted, const void *map)
{
	pid_t child;

	choose_id(wanted);
	child = fork();
	if (!child) {
		map_own_code(NULL, 4096, 0);
		burn_for(map, samples_of(map, thread_id(), is_in_burn) + 3);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	return child == wanted ? child : 0;
}

TEST_F(rows, a_process_id_that_comes_again_has_rows_of_its_own)
{
	uint64_t first = 0, between, sampled = 0;
	const union record *r;
	struct walk walk;
	pid_t id;

	if (access(LAST_ID, W_OK))
		SKIP(return, "thread ids can't be chosen on this kernel");
	ASSERT_EQ(0, start(self->fd));
	do {
		id = getpid() + 1000;
		while (!burn_as(id, self->map))
			id += 10;
		between = clocks(self->fd).now.timestamp;
	} while (!burn_as(id, self->map));
	ASSERT_EQ(0, stop(self->fd));
	/* The first sample of the second one has a row already, of its own time. */
	walk = walk_begin(self->map);
	while ((r = next_sample(&walk)) && !sampled)
		if (r->sample.task_id == (uint32_t)id && in_burn(sample_pc(r)) &&
		    r->header.timestamp > between)
			sampled = r->header.timestamp;
	ASSERT_NE(0, sampled);
	for (uint32_t i = 0; i < *capture_map_count(self->map); i++) {
		const struct bm_protocol_header_mmap_layout *row = capture_maps(self->map) + i;

		if (row->task_id == (uint32_t)id && row->timestamp > between && !first &&
		    (uintptr_t)burn - row->base_address < row->length)
			first = row->timestamp;
	}
	EXPECT_LT(between, first);
	EXPECT_GE(sampled, first);
}

TEST_F(rows, a_module_loaded_meanwhile_has_a_row)
{
	const struct bm_protocol_header_mmap_layout *row;
	bool found = false;
	int other = open("minix.ko", O_RDONLY | O_CLOEXEC);

	if (other < 0)
		SKIP(return, "there is no other module to load");
	ASSERT_EQ(0, start(self->fd));
	ASSERT_EQ(0, syscall(SYS_finit_module, other, "", 0));
	close(other);
	ASSERT_EQ(0, stop(self->fd));
	EXPECT_EQ(0, syscall(SYS_delete_module, "minix", O_NONBLOCK));
	for (row = capture_maps(self->map);
	     row < capture_maps(self->map) + *capture_map_count(self->map); row++)
		found |= !row->task_id && row->length &&
			 !strcmp("[minix]", capture_strings(self->map) + row->image_ptr);
	EXPECT_TRUE(found);
}

TEST_F(rows, every_place_of_a_sample_has_a_row)
{
	struct walk walk;
	const union record *r;
	unsigned int places = 0;
	pid_t child;

	ASSERT_EQ(0, start(self->fd));
	child = exec_burner();
	burn_for(self->map, 10);
	waitpid(child, NULL, 0);
	ASSERT_EQ(0, stop(self->fd));
	walk = walk_begin(self->map);
	while ((r = next_sample(&walk))) {
		uint64_t pc = sample_pc(r);

		if (!pc || is_in_kernel(&walk, r))
			continue;
		places++;
		EXPECT_NE(NULL, row_of(self->map, process_of(self->map, r->sample.task_id), pc))
			TH_LOG("task %u at 0x%llx", r->sample.task_id, (unsigned long long)pc);
	}
	EXPECT_LE(10, places);
}

/* ---- many threads with many mappings ---- */

#define MANY_MAPS	1000U
#define MANY_THREADS	200U	/* or as many as the variable THREADS says: 1000 takes minutes in a VM */
#define MANY_CODE	"many.code"

/* What is copied: it uses registers alone, and calls nobody. */
static uint64_t __attribute__((used, noinline, noclone, aligned(64), section("many_code")))
many_burn(uint64_t sum)
{
	for (uint64_t i = 0; i < 20000; i++) {
		sum += i * i ^ sum;
		__asm__ volatile("" : "+r" (sum));
	}
	return sum;
}

extern const char __start_many_code[], __stop_many_code[];

struct many {
	char *code[MANY_MAPS];
	unsigned int next, ready;
	int go[2];		/* a pipe: they begin when nobody can write to it any more */
};

/* A file with a page of code for each mapping, mapped with gaps, so that Linux merges nothing. */
static void many_map(struct many *many)
{
	size_t page = sysconf(_SC_PAGESIZE), bytes = __stop_many_code - __start_many_code;
	int file = open(MANY_CODE, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	char *place = mmap(NULL, 2 * MANY_MAPS * page, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (file < 0 || place == MAP_FAILED || ftruncate(file, MANY_MAPS * page))
		lost("no code");
	for (unsigned int i = 0; i < MANY_MAPS; i++, place += 2 * page) {
		if (pwrite(file, __start_many_code, bytes, i * page) != (ssize_t)bytes)
			lost("no code");
		many->code[i] = mmap(place, page, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED,
				     file, i * page);
		if (many->code[i] == MAP_FAILED)
			lost("no mapping");
	}
	close(file);
	unlink(MANY_CODE);
}

/* Each of them is in a mapping of its own, for as long as two samples take. */
static void *many_run(void *argument)
{
	struct many *many = argument;
	unsigned int number = __atomic_fetch_add(&many->next, 1, __ATOMIC_RELAXED);
	uint64_t (*run)(uint64_t sum) = (void *)many->code[number % MANY_MAPS];

	char byte;

	__atomic_fetch_add(&many->ready, 1, __ATOMIC_RELEASE);
	if (read(many->go[0], &byte, 1) != 0)
		lost("no end of a pipe");
	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < 3 * PERIOD_NS)
		run(number);
	return NULL;
}

/* Samples in the mappings; each has a row of its time, with the name of the file. */
static unsigned int many_check(struct __test_metadata *_metadata, const void *map,
			       const struct many *many, bool *seen)
{
	size_t page = sysconf(_SC_PAGESIZE);
	uint64_t first = (uintptr_t)many->code[0];
	struct walk walk = walk_begin(map);
	unsigned int found = 0, at;
	const union record *r;

	while ((r = next_sample(&walk))) {
		const struct bm_protocol_header_mmap_layout *row;
		uint64_t pc = sample_pc(r);

		if (!pc || is_in_kernel(&walk, r) ||
		    process_of(map, r->sample.task_id) != (uint32_t)getpid())
			continue;
		row = newest_row(map, getpid(), pc);
		ASSERT_NE(NULL, row);
		EXPECT_GE(r->header.timestamp, row->timestamp);
		at = (pc - first) / (2 * page);
		if (pc < first || at >= MANY_MAPS)
			continue;
		EXPECT_EQ(at * page, row->image_offset);
		EXPECT_NE(NULL, strstr(capture_strings(map) + row->image_ptr, MANY_CODE));
		seen[at] = true;
		found++;
	}
	return found;
}

static void expect_images_of_many(struct __test_metadata *_metadata, FIXTURE_DATA(rows) *self,
				  enum kbarman_mode mode)
{
	struct kbarman_configure c = sampling(&cpu_clock, 1);
	unsigned int i, cpu, found = 0, places = 0;
	const char *wanted = getenv("THREADS");
	unsigned int count = wanted ? atoi(wanted) : MANY_THREADS;
	pthread_t *threads = calloc(count, sizeof(*threads));
	struct many many = { .next = 0 };
	bool seen[MANY_MAPS] = { false };
	struct kbarman_query q;
	pthread_attr_t small;

	if (!(query(self->fd).features & KBARMAN_FEATURE_MAPS))
		SKIP(return, "new mappings are not seen without kprobes");
	c.mode = mode;
	ASSERT_EQ(0, start_with(self, c));
	many_map(&many);
	ASSERT_EQ(0, pipe(many.go));
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 * KIB);
	ASSERT_NE(NULL, threads);
	for (i = 0; i < count; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], &small, many_run, &many));
	while (__atomic_load_n(&many.ready, __ATOMIC_ACQUIRE) < count)
		usleep(10000);
	close(many.go[1]);
	for (i = 0; i < count; i++)
		ASSERT_EQ(0, pthread_join(threads[i], NULL));
	ASSERT_EQ(0, stop(self->fd));
	for (i = 0; i < KBARMAN_MISS_REASONS; i++)
		EXPECT_EQ(0, stats(self->fd, KBARMAN_CPU_ALL).missed[i]) TH_LOG("reason %u", i);
	q = query(self->fd);
	for (cpu = 0; cpu < q.nr_cpus; cpu++)
		found += many_check(_metadata, map_cpu(self->fd, cpu), &many, seen);
	for (i = 0; i < MANY_MAPS; i++)
		places += seen[i];
	TH_LOG("%u samples in %u mappings", found, places);
	EXPECT_LT(count / 2, found);
	free(threads);
}

TEST_F_TIMEOUT(rows, many_threads_with_many_mappings_have_an_image_each_in_a_stream, 300 * SLOWNESS)
{
	expect_images_of_many(_metadata, self, KBARMAN_MODE_STREAM);
}

TEST_F_TIMEOUT(rows, many_threads_with_many_mappings_have_an_image_each_in_overwrite_mode, 300 * SLOWNESS)
{
	expect_images_of_many(_metadata, self, KBARMAN_MODE_OVERWRITE);
}

TEST_HARNESS_MAIN
