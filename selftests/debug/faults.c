// SPDX-License-Identifier: MIT
/*
 * Everything that can fail does, in turn: for each call of the device the first allocation
 * fails, then the second, and so on until none is left to fail (/proc/thread-self/fail-nth);
 * and the same for each registration (module/faults.c), of loading the module as well. The
 * call must end in one of its documented errors or well, and the next one must work.
 *
 * Needs fault injection (failslab, fail_page_alloc, fail_usercopy) and the test build.
 */
#include <linux/perf_event.h>
#include <sys/rseq.h>

#include "lib/tap.h"
#include "parameters.h"

#define DEBUGFS		"/sys/kernel/debug/"
#define MAX_FAULTS	20000

static const struct kbarman_event events[] = {
	{ .attr = { .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK }, .name = "cpu-clock" },
	{ .attr = { .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_PAGE_FAULTS }, .name = "faults" },
};

static uint32_t own_pid;
static uint64_t all_cpus = 1;

static struct kbarman_configure whole_config(void)
{
	return (struct kbarman_configure) {
		.sources = KBARMAN_SOURCE_ALL,
		.flags = KBARMAN_CONFIGURE_INHERIT | KBARMAN_CONFIGURE_CHAIN_USER |
			 KBARMAN_CONFIGURE_CHAIN_KERNEL | KBARMAN_CONFIGURE_CHAIN_SWITCH |
			 KBARMAN_CONFIGURE_COUNT_SWITCH,
		.count_ns = 10000000,
		.max_series = 4,
		.ring_bytes = 64 * KIB, .max_tasks = 1024, .max_maps = 1024,
		.max_strings = 64 * KIB, .nr_cpu_words = 1, .cpus_ptr = (uintptr_t)&all_cpus,
		.pids_ptr = (uintptr_t)&own_pid, .nr_pids = 1,
		.events_ptr = sampled(events, 2, 10000000), .nr_events = 2 };
}

/* ---- where the next fault comes from ---- */

static int fail_nth = -1;	/* open before: opening it allocates, and is this thread's */

/* The nth allocation, or copy from or to user space, of this thread from now on fails. */
static void fail_allocation(unsigned int n)
{
	char text[16];
	int length = snprintf(text, sizeof(text), "%u", n);

	if (fail_nth < 0)
		fail_nth = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	/* What is left of an earlier one may fail this very call, once. */
	if (pwrite(fail_nth, text, length, 0) != length &&
	    pwrite(fail_nth, text, length, 0) != length)
		lost("fail-nth does not take %u", n);
}

/* True: it has failed. False as well if it is this read that fails: then there was none. */
static bool allocation_failed(void)
{
	char text[16] = "";
	bool read = pread(fail_nth, text, sizeof(text) - 1, 0) > 0;

	fail_allocation(0);
	return read && atoi(text) == 0;
}

static char load_arguments[64];

static void fail_registration(unsigned int n)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", n);
	if (!access(PARAMETERS "test_fault", W_OK))
		write_parameter("test_fault", text);
	/* for a module that is about to be loaded */
	snprintf(load_arguments, sizeof(load_arguments), "test_fault=%u", n);
}

/* One that is not loaded any more has failed. */
static bool registration_failed(void)
{
	bool failed;

	load_arguments[0] = '\0';
	if (access("/sys/module/kbarman", F_OK))
		return true;
	failed = parameter("test_fault") == 0;
	write_parameter("test_fault", "0");
	return failed;
}

/* ---- the calls ---- */

/*
 * `prepare` and `undo` are not under fault. `call` returns 0 or -errno, and what it did is
 * undone whether it failed or not.
 */
struct step {
	const char *name;
	bool allocates, registers;	/* at least once: a fault must come */
	void (*prepare)(void);
	int (*call)(void);
	void (*undo)(void);
};

static int fd = -1;
static const char *map;
static struct kbarman_query q;

static void nothing(void)
{
}

static void open_device(void)
{
	fd = device_open_free();
}

static void close_device(void)
{
	if (fd >= 0)
		close(fd);
	fd = -1;
}

static void configured(void)
{
	open_device();
	if (configure(fd, whole_config()))
		lost("a configure without a fault failed");
	q = query(fd);
}

static void running(void)
{
	configured();
	if (start(fd))
		lost("a start without a fault failed");
}

static void mapped(void)
{
	configured();
	map = map_cpu(fd, 0);
}

static void unmap(void)
{
	if (map)
		munmap((void *)map, q.map_bytes);
	map = NULL;
	close_device();
}

/* Opened before: to look for it would be another file system's allocations. */
static int module_file = -1;

static void unload(void)
{
	int error = module_unload();

	if (error && error != -ENOENT)
		lost("a module that does not go: %d", error);
	if (module_file < 0)
		module_file = open(MODULE_FILE, O_RDONLY | O_CLOEXEC);
}

static int load(void)
{
	return syscall(SYS_finit_module, module_file, load_arguments, 0) < 0 ? -errno : 0;
}

static int do_open(void)
{
	fd = open(KBARMAN_DEVICE, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : 0;
}

static int do_query(void)
{
	struct kbarman_query some = { .size = sizeof(some) };

	return call(fd, KBARMAN_QUERY, &some);
}

static int do_configure(void)
{
	return configure(fd, whole_config());
}

static int do_start(void)
{
	return start(fd);
}

static int do_stop(void)
{
	return stop(fd);
}

static int do_stats(void)
{
	struct kbarman_stats s = { .size = sizeof(s), .cpu = KBARMAN_CPU_ALL };

	return call(fd, KBARMAN_STATS, &s);
}

static int do_clock(void)
{
	struct kbarman_clock c = { .size = sizeof(c) };

	return call(fd, KBARMAN_CLOCK, &c);
}

static int do_add_maps(void)
{
	static const char image[] = "/a/file";
	struct kbarman_map_row rows[2] = {
		{ .task_id = 1, .base_address = 4096, .length = 4096,
		  .image_length = sizeof(image) - 1, .image_ptr = (uintptr_t)image },
		{ .task_id = 2, .base_address = 4096, .length = 4096,
		  .image_length = sizeof(image) - 1, .image_ptr = (uintptr_t)image } };
	struct kbarman_add_maps add = {
		.size = sizeof(add), .count = 2, .row_bytes = sizeof(rows[0]),
		.rows_ptr = (uintptr_t)rows };

	return call(fd, KBARMAN_ADD_MAPS, &add);
}

static int do_add_symbols(void)
{
	static char bytes[65536];
	struct kbarman_add_symbols add = {
		.size = sizeof(add), .bytes_ptr = (uintptr_t)bytes, .bytes = sizeof(bytes) };

	return call(fd, KBARMAN_ADD_SYMBOLS, &add);
}

static int do_map(void)
{
	const void *at = try_map(fd, &q, 0);

	if (at == MAP_FAILED)
		return -errno;
	map = at;
	return 0;
}

/* By the kernel's hand: page tables are allocated, and there is no signal. */
static int do_touch(void)
{
	int pipes[2], error = 0;

	if (pipe2(pipes, O_CLOEXEC))
		return -errno;
	if (write(pipes[1], map + q.header_bytes, 4096) < 0)
		error = -errno;
	close(pipes[0]);
	close(pipes[1]);
	return error;
}

static int do_open_for_marks(void)
{
	fd = open(KBARMAN_DEVICE, O_WRONLY | O_CLOEXEC);
	return fd < 0 ? -errno : 0;
}

static int do_mark_state(void)
{
	int state = ioctl(fd, KBARMAN_MARK_STATE, NULL);

	if (state < 0)
		return -errno;
	close(state);
	return 0;
}

static int do_mark_series(void)
{
	struct kbarman_mark_series s = {
		.size = sizeof(s), .multiplier = 0x3ff0000000000000ULL, .chart = "chart",
		.name = "series", .units = "things", .series_class = BM_SERIES_CLASS_DELTA,
		.display = BM_SERIES_DISPLAY_ACCUMULATE,
		.series_composition = BM_SERIES_STACKED,
		.rendering_type = BM_RENDERING_LINE };

	return call(fd, KBARMAN_MARK_SERIES, &s);
}

static int marks_fd = -1;

static void running_with_marks(void)
{
	running();
	marks_fd = open(KBARMAN_DEVICE, O_WRONLY | O_CLOEXEC);
	if (marks_fd < 0)
		lost("no descriptor for marks");
}

static void close_both(void)
{
	close(marks_fd);
	close_device();
}

/* Longer than what needs no memory. */
static int do_mark(void)
{
	struct {
		struct kbarman_mark mark;
		char text[512];
	} m = { .mark = { .size = sizeof(m.mark), .type = KBARMAN_MARK_STRING,
			  .text_bytes = sizeof(m.text) } };

	memset(m.text, 'x', sizeof(m.text));
	return write(marks_fd, &m, sizeof(m)) < 0 ? -errno : 0;
}

/* Other processes do what the session's probes and worker see. */
static int do_fork_and_map(void)
{
	pid_t child = fork();
	int status;

	if (!child) {
		execl("/bin/true", "true", NULL);
		_exit(0);
	}
	if (child < 0)
		return -errno;
	waitpid(child, &status, 0);
	return 0;
}

static const struct step steps[] = {
	{ "load", true, true, unload, load, unload },
	{ "open", true, false, nothing, do_open, close_device },
	{ "query", true, false, open_device, do_query, close_device },
	{ "configure", true, true, open_device, do_configure, close_device },
	{ "start", true, true, configured, do_start, close_device },
	{ "stop", false, false, running, do_stop, close_device },
	{ "stats", true, false, running, do_stats, close_device },
	{ "clock", true, false, running, do_clock, close_device },
	{ "add_maps", true, false, configured, do_add_maps, close_device },
	{ "add_symbols", true, false, configured, do_add_symbols, close_device },
	{ "mmap", true, true, configured, do_map, unmap },
	{ "touch", true, false, mapped, do_touch, unmap },
	{ "open_for_marks", true, false, nothing, do_open_for_marks, close_device },
	{ "mark_state", true, true, open_device, do_mark_state, close_device },
	{ "mark_series", true, false, running, do_mark_series, close_device },
	{ "mark", true, false, running_with_marks, do_mark, close_both },
	{ "fork_and_exec", true, false, running, do_fork_and_map, close_device },
};

/* ---- in turn ---- */

/* What a call may say of a fault of ours: see uapi/kbarman.h, and the kernel's own. */
static bool clean(int error)
{
	switch (-error) {
	case 0: case ENOMEM: case EFAULT: case ENOSPC: case ENFILE: case EMFILE: case EBUSY:
	case EEXIST: case ENOENT:
	case EACCES: case ENXIO: case EAGAIN: case EINTR:
		return true;
	}
	return false;
}

static void each_fault(const struct step *step, const char *what, bool expected,
		       void (*fail)(unsigned int n), bool (*failed)(void))
{
	unsigned int n, errors = 0;
	const char *fault = NULL;
	char name[64];
	int error = 0;

	for (n = 1; !fault; n++) {
		bool more;

		step->prepare();
		fail(n);
		error = step->call();
		more = failed();
		step->undo();
		if (!clean(error))
			fault = "an error that says nothing of a fault";
		if (!more && error)
			fault = "an error without a fault";
		errors += error != 0;
		if (!more)
			break;
		/* The next one works: the last round shows the same of the call itself. */
		step->prepare();
		error = step->call();
		if (error)
			fault = "an error after the fault";
		step->undo();
		if (n == MAX_FAULTS)
			fault = "faults without end";
	}
	if (!fault && expected && n == 1)
		fault = "no fault";
	snprintf(name, sizeof(name), "%s_survives_every_%s_that_fails", step->name, what);
	tap_note("%s: %u faults, %u errors", step->name, n - 1, errors);
	if (!tap_ok(!fault, name))
		tap_note("%s, at the %uth: %d (%s)", fault, n, error, strerror(-error));
}

/* Which allocations may fail: all. And nothing is to be printed of it. */
static void prepare_kernel(void)
{
	write_file(DEBUGFS "failslab/ignore-gfp-wait", "N");
	write_file(DEBUGFS "failslab/verbose", "0");
	write_file(DEBUGFS "fail_page_alloc/ignore-gfp-wait", "N");
	write_file(DEBUGFS "fail_page_alloc/ignore-gfp-highmem", "N");
	write_file(DEBUGFS "fail_page_alloc/min-order", "0");
	write_file(DEBUGFS "fail_page_alloc/verbose", "0");
	write_file(DEBUGFS "fail_usercopy/verbose", "0");
}

/*
 * The kernel writes to the memory of restartable sequences as a task goes on after a switch,
 * and kills the task where that takes a page that is not to be had.
 */
static void without_rseq(char **argv)
{
	if (!__rseq_size)
		return;
	if (getenv("GLIBC_TUNABLES"))
		lost("restartable sequences can't be switched off");
	setenv("GLIBC_TUNABLES", "glibc.pthread.rseq=0", 1);
	execv("/proc/self/exe", argv);
	lost("the program does not begin anew");
}

int main(int argc, char **argv)
{
	unsigned int i;

	without_rseq(argv);
	prepare_kernel();
	test_build_want();
	own_pid = getpid();
	pin(0);
	for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		if (argc > 1 && strcmp(argv[1], steps[i].name))
			continue;
		module_want();
		each_fault(&steps[i], "registration", steps[i].registers, fail_registration,
			   registration_failed);
		module_want();
		each_fault(&steps[i], "allocation", steps[i].allocates, fail_allocation,
			   allocation_failed);
	}
	module_want();
	tap_is(module_unload(), 0, "nothing_holds_the_module_afterwards");
	return tap_done();
}
