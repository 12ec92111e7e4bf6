// SPDX-License-Identifier: MIT
/*
 * seldom [PART]: what hardly ever happens is made to happen, while everything is recorded: the module's worker
 * finds no memory, a process maps without end or never lets go of its address space, marks come
 * too fast, a CPU comes online and can't be recorded, an event has no PMU, the kernel lacks a
 * tracepoint or has functions with other arguments. Each time what is missing is counted or said,
 * and what is recorded is a capture.
 *
 * Needs the test build (module/faults.c).
 */
#include <sys/mman.h>

#include "lib/tap.h"
#include "noise.h"
#include "parameters.h"

#define CPU		1	/* comes and goes */
#define MANY		8192	/* twice what the module keeps of an address space */

static struct kbarman_configure config(const struct kbarman_event *event)
{
	return (struct kbarman_configure) {
		.sources = KBARMAN_SOURCE_ALL, .ring_bytes = 256 * KIB,
		.events_ptr = sampled(event, 1, 200000), .nr_events = 1 };
}

static int configured(void)
{
	int fd = device_open_free();

	if (configure(fd, config(&cpu_clock)))
		lost("no configure");
	return fd;
}

static int running(void)
{
	int fd = configured();

	if (start(fd))
		lost("no start");
	return fd;
}

/* Of a session that @fd runs, which ends here. */
static void promise_capture(int fd, const char *name)
{
	const char *fault = stop(fd) ? "a stop that failed" : NULL;
	uint32_t cpu, nr = query(fd).nr_cpus;
	struct kbarman_stats s;

	for (cpu = 0; cpu < nr && !fault; cpu++) {
		s = (struct kbarman_stats) { .size = sizeof(s), .cpu = cpu };
		if (!call(fd, KBARMAN_STATS, &s))
			fault = judge_cpu(fd, cpu).fault;
	}
	if (!tap_ok(!fault, name))
		tap_note("CPU %u: %s", cpu - 1, fault);
	close(fd);
}

static uint64_t missed(int fd, unsigned int what)
{
	return stats(fd, KBARMAN_CPU_ALL).missed[what];
}

static void wait_for_missed(int fd, unsigned int what, uint64_t count)
{
	while (missed(fd, what) < count)
		usleep(100000);
}

/* ---- no memory ---- */

/* Every third allocation of the module's fails while programs come and go. */
static void worker_without_memory(void)
{
	struct noise noise = { .nr = 0 };
	int fd = running();

	noise_forks(&noise);
	noise_forks(&noise);
	write_parameter("test_chance", "3");
	wait_for_missed(fd, KBARMAN_MISSED_MEMORY, 100);
	write_parameter("test_chance", "0");
	noise_end(&noise);
	promise_capture(fd, "a_worker_that_finds_no_memory_counts_what_it_leaves_out");
}

/* All of them fail; or few, so that often only what follows a good start does. */
static void start_without_memory(void)
{
	unsigned int refused = 0, odd = 0, i;

	for (i = 0; i < 20; i++) {
		int fd = configured(), error;

		write_parameter("test_chance", i % 2 ? "32" : "1");
		error = start(fd);
		if (!error)
			wait_for_missed(fd, KBARMAN_MISSED_MEMORY, 1);
		write_parameter("test_chance", "0");
		refused += !!error;
		odd += error && error != -ENOMEM;
		close(fd);
	}
	tap_note("%u starts of %u were refused", refused, i);
	tap_is(odd, 0, "a_start_without_memory_fails_for_that_or_works");
	tap_ok(refused && refused < i, "and_both_were_seen");
}

/* ---- processes that are hard to follow ---- */

/*
 * Code in ever more places, no two of them side by side: memory that is made executable, which
 * takes the least. The module does not hear that it is so no more, which it is at once: the
 * kernel's own checks look at all that is mapped. In batches that the worker's queue holds,
 * with time to work them off.
 */
static void map_without_end(void)
{
	size_t page = sysconf(_SC_PAGESIZE), i;
	char *places = mmap(NULL, 2 * MANY * page, PROT_NONE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (places == MAP_FAILED)
		lost("no room");
	for (i = 0; i < MANY; i++) {
		char *place = places + 2 * i * page;

		if (mprotect(place, page, PROT_READ | PROT_EXEC) ||
		    mprotect(place, page, PROT_NONE))
			lost("the program can't make memory executable");
		if (i % 256 == 0)
			usleep(500000);
	}
	for (;;)
		pause();
}

static void mappings_without_end(void)
{
	struct noise noise = { .nr = 0 };
	int fd = running();

	if (!noise_process(&noise))
		map_without_end();
	wait_for_missed(fd, KBARMAN_MISSED_MEMORY, 100);
	tap_note("%llu found no place in the queue",
		 (unsigned long long)missed(fd, KBARMAN_MISSED_QUEUE));
	noise_end(&noise);
	promise_capture(fd, "of_mappings_without_end_the_oldest_ones_go_and_are_counted");
}

/* Holds its mmap_lock most of the time, and runs in between. */
static void change_memory(void)
{
	size_t bytes = 32 * MIB;
	char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	volatile unsigned int i;

	if (memory == MAP_FAILED)
		lost("no memory");
	for (;;) {
		if (mprotect(memory, bytes, PROT_READ) ||
		    mprotect(memory, bytes, PROT_READ | PROT_WRITE))
			lost("no protection");
		for (i = 0; i < 10000; i++)
			;
	}
}

static bool has_row(const void *map, uint32_t task_id)
{
	const struct bm_protocol_header_mmap_layout *row = capture_maps(map);
	uint32_t i;

	for (i = 0; i < *capture_map_count(map); i++)
		if (row[i].task_id == task_id)
			return true;
	return false;
}

static void busy_address_space(void)
{
	struct noise noise = { .nr = 0 };
	pid_t pid = noise_process(&noise);
	struct kbarman_query q;
	unsigned int i;
	int fd;

	if (!pid)
		change_memory();
	for (i = 0; i < 10; i++) {
		const void *map;

		fd = running();
		q = query(fd);
		map = map_cpu(fd, 0);
		while (!has_row(map, pid))
			usleep(10000);
		munmap((void *)map, q.map_bytes);
		if (i < 9)
			close(fd);
	}
	noise_end(&noise);
	promise_capture(fd, "an_address_space_that_is_never_free_is_told_in_the_end");
}

/* Marks as long as they may be are paid for like 64 short ones. */
static void marks_beyond_the_rate(void)
{
	static struct {
		struct kbarman_mark mark;
		char text[KBARMAN_MARK_TEXT_MAX + 1];	/* with what is in front of the next one */
	} marks[16];
	int fd = running(), to = open(KBARMAN_DEVICE, O_WRONLY | O_CLOEXEC);
	unsigned int i, rounds;

	for (i = 0; i < 16; i++) {
		marks[i].mark = (struct kbarman_mark) {
			.size = sizeof(marks[i].mark), .type = KBARMAN_MARK_STRING,
			.text_bytes = KBARMAN_MARK_TEXT_MAX };
		memset(marks[i].text, 'x', KBARMAN_MARK_TEXT_MAX);
	}
	for (rounds = 0; rounds < 10; rounds++)
		for (i = 0; i < 20; i++)
			if (write(to, marks, sizeof(marks)) != sizeof(marks))
				lost("marks are not taken");
	close(to);
	if (!stats(fd, KBARMAN_CPU_ALL).lost[KBARMAN_LOST_RATE])
		printf("ok %d - marks_beyond_their_rate # SKIP this machine earns them as fast\n",
		       ++tap_count);
	promise_capture(fd, "marks_of_any_length_and_number_leave_a_capture");
}

/*
 * The kernel does not take one of the two probes. Which registration that is depends on what comes
 * before it: so each fails in turn, and those that the start can do without are told.
 */
static void probe_that_is_refused(void)
{
	unsigned int nth, made = 0, none = 0, wrong = 0;
	const uint32_t both = KBARMAN_FEATURE_MAPS | KBARMAN_FEATURE_MAPS_MADE;

	for (nth = 1; nth < 64; nth++) {
		int fd = configured(), error;
		char text[16];

		snprintf(text, sizeof(text), "%u", nth);
		write_parameter("test_fault", text);
		error = start(fd);
		if (parameter("test_fault")) {
			/* There are not so many. */
			write_parameter("test_fault", "0");
			close(fd);
			break;
		}
		if (!error) {
			uint32_t seen = query(fd).features & both;
			const void *map = map_cpu(fd, 0);
			const char *fact = capture_fact(map, "maps_seen");

			made += seen == KBARMAN_FEATURE_MAPS_MADE;
			none += !seen;
			if (seen != both)
				wrong += !fact || strcmp(fact, seen ? "made" : "start");
			munmap((void *)map, query(fd).map_bytes);
		}
		close(fd);
	}
	tap_is(made, 1, "without_the_probe_of_moves_only_new_mappings_are_claimed");
	tap_is(none, 1, "without_the_probe_of_mappings_nothing_is_claimed");
	tap_is(wrong, 0, "and_the_capture_says_so_too");
}

/* The test build, loaded anew with these parameters. */
static void load_with(const char *parameters)
{
	int error = module_unload();

	if (error && error != -ENOENT)
		lost("a module that does not go: %d", error);
	if (module_load_with(parameters))
		lost("a module that does not load with %s", parameters);
}

/* Whether a session with these sources begins if, and only if, what is @absent is none of what it needs. */
static bool is_accepted_rightly(uint32_t absent, uint32_t sources, uint32_t flags, uint32_t needs)
{
	struct kbarman_configure c = config(&cpu_clock);
	const int wanted = absent & (needs | KBARMAN_ABSENT_TASKS) ? -EOPNOTSUPP : 0;
	int fd = device_open_free(), error;

	c.sources = sources | KBARMAN_SOURCE_PMU;
	c.flags = flags;
	error = configure(fd, c) ?: start(fd);
	close(fd);
	if (error != wanted)
		tap_note("without %#x, of sources %#x with flags %#x: %d, not %d", absent, sources, flags, error,
			 wanted);
	return error == wanted;
}

/*
 * A kernel without one of the tracepoints. Each search fails in turn; other registrations at load
 * fail the load.
 */
static void tracepoint_that_is_missing(void)
{
	const uint32_t sched = KBARMAN_SOURCE_SCHED, idle = KBARMAN_SOURCE_IDLE;
	unsigned int nth, switches = 0, idling = 0, tasks = 0, wrong = 0;

	for (nth = 1;; nth++) {
		int error, fd;
		uint32_t absent;
		char text[32];

		snprintf(text, sizeof(text), "test_fault=%u", nth);
		error = module_unload();
		if (error && error != -ENOENT)
			lost("a module that does not go: %d", error);
		if (module_load_with(text))
			continue;
		if (parameter("test_fault"))
			break;
		fd = device_open_free();
		absent = query(fd).absent;
		close(fd);
		switches += absent == sched;
		idling += absent == idle;
		tasks += absent == KBARMAN_ABSENT_TASKS;
		wrong += !is_accepted_rightly(absent, sched, 0, sched);
		wrong += !is_accepted_rightly(absent, idle, 0, idle);
		wrong += !is_accepted_rightly(absent, 0, KBARMAN_CONFIGURE_COUNT_SWITCH, sched);
	}
	tap_ok(switches, "without_sched_switch_the_query_says_so");
	tap_is(idling, 1, "without_cpu_idle_the_query_says_so");
	tap_is(tasks, 5, "without_one_of_five_tracepoints_of_tasks_the_query_says_so");
	tap_is(wrong, 0, "and_what_is_absent_is_refused_and_all_else_is_not");
	load_with("");
}

/* Does mremap(2), of code. */
static void move_code(void)
{
	void *from = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *to = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (from == MAP_FAILED || to == MAP_FAILED ||
	    mremap(from, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, to) != to)
		lost("no mapping to move");
	munmap(to, 4096);
}

/* A kernel in which the probed functions have other arguments than the module expects. */
static void arguments_that_differ(void)
{
	const uint32_t both = KBARMAN_FEATURE_MAPS | KBARMAN_FEATURE_MAPS_MADE;
	const char *fact;
	const void *map;
	int fd;

	load_with("test_shift=perf_event_mmap");
	fd = running();
	tap_is(query(fd).features & both, 0, "new_mappings_are_not_claimed_if_the_argument_differs");
	close(fd);

	load_with("");
	fd = running();
	move_code();
	tap_is(query(fd).features & both, both, "moves_are_claimed_if_the_arguments_are_as_expected");
	write_parameter("test_shift", "copy_vma");
	move_code();
	tap_is(query(fd).features & both, KBARMAN_FEATURE_MAPS_MADE,
	       "moves_are_not_claimed_after_one_whose_arguments_differ");
	write_parameter("test_shift", "none");
	map = map_cpu(fd, 0);
	while (!(fact = capture_fact(map, "maps_seen")))
		usleep(10000);
	tap_ok(!strcmp(fact, "made"), "and_the_capture_of_that_session_says_so");
	munmap((void *)map, query(fd).map_bytes);
	promise_capture(fd, "and_is_a_capture");
	load_with("");
}

/* ---- CPUs and events ---- */

/* Nothing here may register anything but what the CPU that comes needs. */
static void cpu_that_is_refused(void)
{
	int fd = running();

	cpu_set_online(CPU, false);
	while (stats(fd, CPU).online)
		usleep(10000);
	/* what is to be done about the CPU that went is done */
	usleep(200000);
	write_parameter("test_fault", "1");
	cpu_set_online(CPU, true);
	do
		usleep(10000);
	while (parameter("test_fault"));
	tap_ok(cpu_online(CPU), "a_cpu_that_can_t_be_recorded_is_online_all_the_same");
	cpu_set_online(CPU, false);
	cpu_set_online(CPU, true);
	while (!stats(fd, CPU).online)
		usleep(10000);
	promise_capture(fd, "and_what_is_recorded_is_whole");
}

static void event_without_pmu(void)
{
	static const struct kbarman_event nowhere = {
		.attr = { .type = 77, .config = 1 }, .name = "nowhere" };
	struct kbarman_configure c = config(&nowhere);
	int fd = device_open_free();

	if (configure(fd, c))
		lost("no configure");
	tap_is(start(fd), -ENOENT, "an_event_that_no_pmu_has_is_refused");
	c.events_ptr = sampled_or_clock(&nowhere, 200000);
	c.nr_events = 2;
	if (configure(fd, c))
		lost("no configure");
	tap_is(start(fd), 0, "or_another_one_takes_its_place_if_that_was_asked_for");
	tap_ok(query(fd).state & KBARMAN_STATE_FALLBACK, "and_the_session_says_so");
	promise_capture(fd, "and_what_it_samples_is_a_capture");
}

/* Where there are NMIs, user code is interrupted by them, and its stack looked at from there. */
static void chains_from_overflows(void)
{
	struct kbarman_configure c = config(&cycles);
	struct noise noise = { .nr = 0 };
	int fd = device_open_free();

	c.flags = KBARMAN_CONFIGURE_CHAIN_USER | KBARMAN_CONFIGURE_CHAIN_KERNEL;
	c.sources = KBARMAN_SOURCE_PMU;
	c.events_ptr = sampled_or_clock(&cycles, 400000);
	c.nr_events = 2;
	if (configure(fd, c) || start(fd))
		lost("no session");
	noise_forks(&noise);
	while (stats(fd, KBARMAN_CPU_ALL).written < 1000)
		usleep(100000);
	noise_end(&noise);
	promise_capture(fd, "chains_that_overflows_find_are_a_capture");
}

static void period_without_end(void)
{
	struct kbarman_configure c = config(&cpu_clock);
	int fd = device_open_free();

	c.events_ptr = sampled(&cpu_clock, 1, 1ULL << 63);
	tap_is(configure(fd, c), -EINVAL, "a_period_that_is_negative_to_perf_is_refused");
	close(fd);
}

static const struct {
	const char *name;
	void (*run)(void);
} parts[] = {
	{ "worker", worker_without_memory },
	{ "start", start_without_memory },
	{ "mappings", mappings_without_end },
	{ "busy", busy_address_space },
	{ "marks", marks_beyond_the_rate },
	{ "probe", probe_that_is_refused },
	{ "tracepoint", tracepoint_that_is_missing },
	{ "arguments", arguments_that_differ },
	{ "cpu", cpu_that_is_refused },
	{ "event", event_without_pmu },
	{ "chains", chains_from_overflows },
	{ "period", period_without_end },
};

int main(int argc, char **argv)
{
	unsigned int i;

	test_build_want();
	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (argc < 2 || !strcmp(argv[1], parts[i].name))
			parts[i].run();
	tap_is(module_unload(), 0, "nothing_holds_the_module_afterwards");
	return tap_done();
}
