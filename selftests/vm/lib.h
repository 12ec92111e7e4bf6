/* SPDX-License-Identifier: MIT */
/*
 * Shared code of the module's tests: the device's calls, a walk over the records of a mapped CPU, a
 * check of the mapped bytes, and workloads whose switches are known.
 *
 * This file uses only what the two UAPI headers say, and nothing of the library in user/. So each
 * fault that it finds is one that any program could find.
 *
 * A helper aborts the test, with a message, if something that the test needs is missing. The test
 * itself asserts what it promises.
 */
#ifndef KBARMAN_VM_LIB_H
#define KBARMAN_VM_LIB_H

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Kernels of these tests have the word size of the programs. selftests/vm/word32.c is the exception. */
#define BM_WORD_BITS	__BITS_PER_LONG
#include "uapi/barman_v2.h"
#include "uapi/kbarman.h"

/* Emulated CPUs on a busy host are slow, so only a long wait counts as a hang. */
#ifndef SLOWNESS
#define SLOWNESS		1	/* larger on debug kernels */
#endif
/* Rounds on slow kernels, for tests that show a fault in fewer rounds as well. */
#define SLOWED(rounds)		((rounds) / SLOWNESS)
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT	(600 * SLOWNESS)

#define MODULE_FILE	"kbarman.ko"
#define KIB		1024ULL
#define MIB		(1024 * KIB)

/* A pipe has each result when it is there: so it is seen which test is slow, or hangs. */
static void __attribute__((constructor)) print_lines(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
}

#define LOST_SERIES	0	/* of the module: records that were lost */
#define STOPPED_SERIES	1	/* of the module: why the first counter of a CPU stopped */
#define FIRST_DETAILS	2	/* the first of the module's series whose values have details */
#define SYSCALLS_SERIES	8	/* of the module: system calls, faults, block requests */
#define FAULTS_SERIES	9
#define BLOCK_SERIES	10
#define FIRST_SERIES	11	/* the first series that a program creates; the module's own come
				 * before it */

static inline void __attribute__((noreturn, format(printf, 1, 2))) lost(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("# cannot go on: ", stderr);
	vfprintf(stderr, format, args);
	fprintf(stderr, " (errno %d: %s)\n", errno, strerror(errno));
	va_end(args);
	abort();
}

/* Replaces SKIP() in a fixture's setup, after which the harness would run the test all the same. */
static inline void __attribute__((noreturn)) skip_test(void)
{
	_exit(255);
}

/* ---- the module ---- */

static inline int module_load_with(const char *parameters)
{
	int fd = open(MODULE_FILE, O_RDONLY | O_CLOEXEC);
	int error = 0;

	if (fd < 0)
		lost("%s is not in the current directory", MODULE_FILE);
	if (syscall(SYS_finit_module, fd, parameters, 0) < 0)
		error = -errno;
	close(fd);
	return error;
}

static inline int module_load(void)
{
	return module_load_with("");
}

static inline int module_unload(void)
{
	return syscall(SYS_delete_module, "kbarman", O_NONBLOCK) < 0 ? -errno : 0;
}

/* Load the module unless another test program has loaded it. */
static inline void module_want(void)
{
	if (access(KBARMAN_DEVICE, F_OK) && module_load())
		lost("the module does not load");
}

/* ---- the device's calls: 0 or -errno ---- */

static const struct kbarman_event cpu_clock = {
	.attr = { .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK }, .name = "cpu-clock" };
static const struct kbarman_event cycles = {
	.attr = { .type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_CPU_CYCLES }, .name = "cycles" };

static inline int device_open(void)
{
	int fd;

	module_want();
	fd = open(KBARMAN_DEVICE, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		lost("%s does not open", KBARMAN_DEVICE);
	return fd;
}

static inline int call(int fd, unsigned long command, void *argument)
{
	return ioctl(fd, command, argument) < 0 ? -errno : 0;
}

/* The number of the same call of a program whose struct has @size bytes. */
static inline unsigned long sized(unsigned long command, size_t size)
{
	return _IOC(_IOC_DIR(command), _IOC_TYPE(command), _IOC_NR(command), size);
}

static inline struct kbarman_query query(int fd)
{
	struct kbarman_query q = { .size = sizeof(q) };

	if (call(fd, KBARMAN_QUERY, &q))
		lost("no query");
	return q;
}

/*
 * @nr @events of which the first one takes a sample every @period: for events_ptr. The result is good
 * until the eighth such call.
 */
static inline uint64_t sampled(const struct kbarman_event *events, unsigned int nr, uint64_t period)
{
	static struct kbarman_event copies[8][32];
	static unsigned int last;
	struct kbarman_event *copy = copies[last++ % 8];

	memcpy(copy, events, nr * sizeof(*events));
	copy->attr.sample_period = period;
	return (uintptr_t)copy;
}

/* The same, @hz times a second. */
static inline uint64_t sampled_hz(const struct kbarman_event *events, unsigned int nr, uint64_t hz)
{
	uint64_t copy = sampled(events, nr, hz);

	((struct kbarman_event *)(uintptr_t)copy)->attr.freq = 1;
	return copy;
}

/* @event every @period, or cpu-clock where no PMU counts it: two events. */
static inline uint64_t sampled_or_clock(const struct kbarman_event *event, uint64_t period)
{
	struct kbarman_event events[2] = { *event, cpu_clock };

	events[1].flags = KBARMAN_EVENT_ELSE | KBARMAN_EVENT_FALLBACK;
	events[1].attr.sample_period = period;
	return sampled(events, 2, period);
}

static inline int configure(int fd, struct kbarman_configure config)
{
	config.size = sizeof(config);
	config.event_bytes = sizeof(struct kbarman_event);
	return call(fd, KBARMAN_CONFIGURE, &config);
}

static inline int start(int fd)
{
	struct kbarman_start s = { .size = sizeof(s) };

	return call(fd, KBARMAN_START, &s);
}

static inline int stop(int fd)
{
	return call(fd, KBARMAN_STOP, NULL);
}

/*
 * For the start of a test: opens the device and waits until no session has an owner. A process of
 * an earlier test may still hold its descriptor for a moment. With KBARMAN_BESIDE=1 in the
 * environment, the test runs beside a recording that never ends, and does not wait.
 */
static inline int device_open_free(void)
{
	int fd = device_open();

	while (query(fd).state & KBARMAN_STATE_OWNED && !getenv("KBARMAN_BESIDE"))
		usleep(1000);
	return fd;
}

static inline struct kbarman_stats stats(int fd, uint32_t cpu)
{
	struct kbarman_stats s = { .size = sizeof(s), .cpu = cpu };

	if (call(fd, KBARMAN_STATS, &s))
		lost("no stats of CPU %u", cpu);
	return s;
}

static inline uint64_t lost_records(const struct kbarman_stats *s)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < 8; i++)
		sum += s->lost[i];
	return sum;
}

static inline const struct kbarman_map_tail *tail_of(const void *map, const struct kbarman_query *q)
{
	return map + q->header_bytes + sizeof(struct bm_datastore_header_data) + q->ring_bytes;
}

static inline int consume(int fd, uint32_t cpu, uint64_t position)
{
	struct kbarman_consume c = { .size = sizeof(c), .cpu = cpu, .position = position };

	return call(fd, KBARMAN_CONSUME, &c);
}

static inline struct kbarman_clock clocks(int fd)
{
	struct kbarman_clock c = { .size = sizeof(c) };

	if (call(fd, KBARMAN_CLOCK, &c))
		lost("no clock");
	return c;
}

/* What the calls say of a recording, without the time of now: two are equal if nothing has changed. */
struct recording {
	struct kbarman_query query;
	struct kbarman_stats stats;
	struct kbarman_clock clock;
};

static inline struct recording recording_of(int fd)
{
	struct recording r = { .query = query(fd), .stats = stats(fd, KBARMAN_CPU_ALL),
			       .clock = clocks(fd) };

	r.clock.now = r.clock.start;
	return r;
}

static inline const void *try_map(int fd, const struct kbarman_query *q, uint32_t cpu)
{
	return mmap(NULL, q->map_bytes, PROT_READ, MAP_SHARED, fd, cpu * q->map_stride);
}

static inline const void *map_cpu(int fd, uint32_t cpu)
{
	struct kbarman_query q = query(fd);
	const void *map = try_map(fd, &q, cpu);

	if (map == MAP_FAILED)
		lost("CPU %u does not map", cpu);
	return map;
}

/* ---- the machine ---- */

static inline void pin(uint32_t cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		lost("no way to CPU %u", cpu);
}

static inline pid_t thread_id(void)
{
	return syscall(SYS_gettid);
}

static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

/* Linux may still be busy with what was set before: of the scheduler's settings for a moment. */
static inline void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), tries = 0;
	ssize_t length;

	do {
		length = write(fd, text, strlen(text));
	} while (length < 0 && errno == EBUSY && ++tries < 500 && !usleep(10000));
	if (length != (ssize_t)strlen(text))
		lost("%s does not take '%s'", path, text);
	close(fd);
}

/* write_file() can restore the value. */
static inline void read_file(const char *path, char *value, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, value, size - 1);

	if (got <= 0)
		lost("%s can't be read", path);
	value[got] = 0;
	close(fd);
}

#define LAST_ID			"/proc/sys/kernel/ns_last_pid"	/* not on every kernel */

/* Make @id the id of the next thread, unless another program creates one first. */
static inline void choose_id(pid_t id)
{
	char before[16];

	snprintf(before, sizeof(before), "%d", id - 1);
	write_file(LAST_ID, before);
}

#define KPTR_RESTRICT		"/proc/sys/kernel/kptr_restrict"
#define PARANOID		"/proc/sys/kernel/perf_event_paranoid"

static inline bool cpu_online(uint32_t cpu)
{
	char path[64], state = '1';
	int fd;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/online", cpu);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		if (read(fd, &state, 1) != 1)
			lost("%s has no byte", path);
		close(fd);
		return state == '1';
	}
	/* CPUs that can't be unplugged have no such file. */
	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u", cpu);
	return !access(path, F_OK);
}

static inline void cpu_set_online(uint32_t cpu, bool online)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/online", cpu);
	write_file(path, online ? "1" : "0");
}

#define TRACE_EVENTS		"/sys/kernel/tracing/events"

static inline uint64_t tracepoint_id(const char *name)
{
	char path[256], text[32] = "";
	int fd;

	if (access(TRACE_EVENTS, F_OK) &&
	    mount("nodev", "/sys/kernel/tracing", "tracefs", 0, NULL))
		lost("no tracefs");
	snprintf(path, sizeof(path), TRACE_EVENTS "/%s/id", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		lost("no %s", path);
	close(fd);
	return strtoull(text, NULL, 10);
}

/* ---- capabilities ---- */

#ifndef CAP_PERFMON
#define CAP_PERFMON	38
#endif
#define CAPABILITY(n)		(1ULL << (n))
#define ALL_CAPABILITIES	(2 * CAPABILITY(last_capability()) - 1)

/* The last capability that this kernel has. capset() refuses higher ones. */
static inline unsigned int last_capability(void)
{
	char number[16];

	read_file("/proc/sys/kernel/cap_last_cap", number, sizeof(number));
	return atoi(number);
}

/* @effective: in force now. @permitted: can be put in force again. */
static inline void set_capabilities(uint64_t effective, uint64_t permitted)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = {
		{ .effective = effective, .permitted = permitted },
		{ .effective = effective >> 32, .permitted = permitted >> 32 } };

	if (syscall(SYS_capset, &header, data))
		lost("capabilities can't be given up");
}

/* Stay root, with these capabilities only. */
static inline void keep_only(uint64_t capabilities)
{
	set_capabilities(capabilities, capabilities);
}

/* ---- workloads with known switches ---- */

/*
 * Two pipes, and a process that returns every byte. `echo` is the id of the process. The process
 * ends when the pipes are closed.
 */
struct echo {
	int there, back;
	pid_t echo;
};

static inline struct echo echo_create(uint32_t cpu)
{
	int there[2], back[2];
	struct echo e;
	char byte;

	if (pipe2(there, O_CLOEXEC) || pipe2(back, O_CLOEXEC))
		lost("no pipe");
	e.echo = fork();
	if (e.echo < 0)
		lost("no process");
	if (!e.echo) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pin(cpu);
		close(there[1]);
		close(back[0]);
		while (read(there[0], &byte, 1) == 1 && write(back[1], &byte, 1) == 1)
			;
		_exit(0);
	}
	close(there[0]);
	close(back[1]);
	e.there = there[1];
	e.back = back[0];
	return e;
}

static inline void echo_rounds(const struct echo *e, unsigned int rounds)
{
	char byte = 0;

	while (rounds--)
		if (write(e->there, &byte, 1) != 1 || read(e->back, &byte, 1) != 1)
			lost("the echo does not answer");
}

static inline void echo_destroy(const struct echo *e)
{
	close(e->there);
	close(e->back);
	waitpid(e->echo, NULL, 0);
}

/*
 * Do @rounds ping-pongs between this thread and a new process, both on @cpu: each round has at
 * least one switch to each of them. Returns the id of the process.
 */
static inline pid_t ping_pong(uint32_t cpu, unsigned int rounds)
{
	struct echo e;

	pin(cpu);
	e = echo_create(cpu);
	echo_rounds(&e, rounds);
	echo_destroy(&e);
	return e.echo;
}

/* 100 ping-pongs on @cpu, by a process of its own, so that the caller stays where it is. */
static inline pid_t work_on(uint32_t cpu)
{
	pid_t worker = fork();

	if (!worker) {
		ping_pong(cpu, 100);
		_exit(0);
	}
	waitpid(worker, NULL, 0);
	return worker;
}

/* Go to a new directory below this one whose path has nearly 4 KiB. */
static inline void enter_long_directory(mode_t mode)
{
	char name[256];

	memset(name, 'd', 255);
	name[255] = 0;
	for (int i = 0; i < 15; i++)
		if (mkdir(name, mode) || chdir(name))
			lost("no directory");
}

#define CYCLES	(1000000 * SLOWNESS)	/* from one overflow to the next */

/* What counter_now() needs to read. */
#define COUNTER_READING	(PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING)

/*
 * The kernel's own count of @event, independent of the module: in @task on any CPU, or in all tasks
 * on @cpu; the other one is -1. Returns a descriptor, whose value counter_now() reads. A PMU's counter
 * gets the period of the tests' own: on a busy host QEMU's counters count too much, the more the
 * rarer they overflow, up to ten times the time that passes.
 */
static inline int event_counter(const struct kbarman_event *event, pid_t task, int cpu)
{
	struct perf_event_attr attr = {
		.type = event->attr.type, .size = sizeof(attr), .config = event->attr.config,
		.sample_period = event->attr.type == PERF_TYPE_HARDWARE ? CYCLES : 0,
		.read_format = COUNTER_READING };
	int fd = syscall(SYS_perf_event_open, &attr, task, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		lost("no counter of %s", event->name);
	return fd;
}

struct counter_reading {
	uint64_t value, enabled, running;
};

static inline struct counter_reading read_counter(int counter)
{
	struct counter_reading reading;

	if (read(counter, &reading, sizeof(reading)) != sizeof(reading))
		lost("the counter can't be read");
	return reading;
}

static inline uint64_t counter_now(int counter)
{
	return read_counter(counter).value;
}

/* The PMU had no room for it part of the time. */
static inline bool counter_had_to_wait(int counter)
{
	struct counter_reading reading = read_counter(counter);

	return reading.running < reading.enabled / 16 * 15;
}

static inline int switch_counter(uint32_t cpu)
{
	static const struct kbarman_event switches = {
		.attr = { .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CONTEXT_SWITCHES },
		.name = "context switches" };

	return event_counter(&switches, -1, cpu);
}

/* ---- the mapped capture ---- */

static inline const struct bm_protocol_header_start *capture_header(const void *map)
{
	return map;
}

static inline const char *capture_strings(const void *map)
{
	return (const char *)(capture_header(map) + 1);
}

/* Bytes that Linux could give to programs now. */
static inline uint64_t memory_available(void)
{
	unsigned long long kib = 0;
	char line[128];
	FILE *f = fopen("/proc/meminfo", "r");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "MemAvailable: %llu", &kib) == 1)
			break;
	if (!kib)
		lost("no MemAvailable");
	fclose(f);
	return kib * KIB;
}

/* The value of the string kbarman.KEY=, or NULL. */
static inline const char *capture_fact(const void *map, const char *key)
{
	const char *at = capture_strings(map);
	const char *end = at + capture_header(map)->string_table_length;
	size_t length = strlen(key);

	for (; at < end; at += strlen(at) + 1)
		if (!strncmp(at, "kbarman.", 8) && !strncmp(at + 8, key, length) &&
		    at[8 + length] == '=')
			return at + 8 + length + 1;
	return NULL;
}

static inline const struct bm_protocol_header_pmu_settings *capture_pmu(const void *map,
									uint32_t cpu)
{
	return (const void *)(capture_strings(map) +
			      capture_header(map)->config_constants.max_string_table_length +
			      cpu * sizeof(struct bm_protocol_header_pmu_settings));
}

/* What the task table has no field for. */
static inline const struct bm_kbarman_tasks *capture_task_pages(const void *map)
{
	const char *offset = capture_fact(map, "tasks");

	if (!offset)
		lost("no kbarman.tasks");
	return (const void *)((const char *)map + strtoull(offset, NULL, 10));
}

static inline const struct bm_kbarman_task *capture_task_facts(const void *map, uint32_t row)
{
	const struct bm_kbarman_tasks *pages = capture_task_pages(map);

	return (const void *)((const char *)pages + pages->size + row * pages->element_size);
}

static inline const uint32_t *capture_task_count(const void *map)
{
	return (const void *)capture_pmu(map, capture_header(map)->config_constants.max_cores);
}

static inline const struct bm_protocol_header_task_info *capture_tasks(const void *map)
{
	return (const void *)(capture_task_count(map) + 1);
}

static inline const uint32_t *capture_map_count(const void *map)
{
	return (const void *)(capture_tasks(map) +
			      capture_header(map)->config_constants.max_task_infos);
}

/*
 * Add a row of a mapping of @task, beside those that were added before it, with a name of @length
 * bytes that no other row has. False: there is no room.
 */
static inline bool add_map(int fd, uint32_t task, unsigned int length)
{
	static unsigned int nr;
	char name[4096];
	struct kbarman_map_row row = {
		.task_id = task, .base_address = 4096 * (nr + 1), .length = 1,
		.image_ptr = (uintptr_t)name, .image_length = length };
	struct kbarman_add_maps rows = { .size = sizeof(rows), .count = 1, .row_bytes = sizeof(row),
					 .rows_ptr = (uintptr_t)&row };

	memset(name, 'x', sizeof(name));
	snprintf(name, sizeof(name), "%08u", nr++);
	name[8] = 'x';
	return !call(fd, KBARMAN_ADD_MAPS, &rows);
}

static inline const struct bm_protocol_header_mmap_layout *capture_maps(const void *map)
{
	return (const void *)(capture_map_count(map) + 1);
}

/* The last row of @task named @name, or NULL. */
static inline const struct bm_protocol_header_task_info *capture_task(const void *map,
								      uint32_t task,
								      const char *name)
{
	const struct bm_protocol_header_task_info *row =
		capture_tasks(map) + *capture_task_count(map);

	while (row-- > capture_tasks(map))
		if (row->task_id == task &&
		    (!name || !strcmp(capture_strings(map) + row->task_name_ptr, name)))
			return row;
	return NULL;
}

/* config_constants.num_custom_counters rows, which follow the charts. */
static inline const struct bm_protocol_header_custom_chart_series *capture_series(const void *map)
{
	const uint8_t *at = (const uint8_t *)(capture_maps(map) +
		capture_header(map)->config_constants.max_mmap_layout);
	uint32_t charts;

	memcpy(&charts, at, sizeof(charts));
	return (const void *)(at + sizeof(charts) +
			      charts * sizeof(struct bm_protocol_header_custom_chart));
}

static inline const struct bm_datastore_header_data *capture_store(const void *map)
{
	return (const void *)((const char *)map + capture_header(map)->header_length -
			      sizeof(struct bm_datastore_header_data));
}

/* A timestamp in ns of CLOCK_MONOTONIC_RAW, converted as the capture's header says. */
static inline uint64_t capture_ns(const void *map, uint64_t timestamp)
{
	const struct bm_protocol_clock_info *clock = &capture_header(map)->clock_info;
	const char *base = capture_fact(map, "raw_base");

	if (!base)
		lost("no kbarman.raw_base");
	return strtoull(base, NULL, 10) + (timestamp - clock->timestamp_base) *
		clock->timestamp_multiplier / clock->timestamp_divisor;
}

/* ---- a walk over the records of a ring that is stopped, or only grows ---- */

union record {
	struct bm_protocol_record_header header;
	struct bm_protocol_task_switch task_switch;
	struct bm_protocol_halting_event halt;
	struct bm_protocol_sample sample;
	struct bm_protocol_custom_counter counter;
	struct bm_protocol_annotation annotation;
};

/* How many losses @r tells of. */
static inline uint64_t losses_told(const union record *r)
{
	return r->header.record_type == BM_RECORD_CUSTOM_COUNTER &&
	       r->counter.counter == LOST_SERIES ? r->counter.value : 0;
}

/* What stands behind the number of lost records. */
static inline const struct bm_kbarman_loss *loss_of(const union record *r)
{
	return (const struct bm_kbarman_loss *)(&r->counter + 1);
}

struct walk {
	const void *map;
	const uint8_t *data;
	uint64_t mask, at, end;		/* at: the end of the last record returned */
	size_t length;			/* of that record */
	const char *damage;		/* why the walk ended early, or NULL */
};

static inline struct walk walk_from(const void *map, uint64_t from)
{
	const struct bm_datastore_header_data *store = capture_store(map);

	return (struct walk) {
		.map = map,
		.data = (const uint8_t *)(store + 1),
		.mask = store->buffer_length - 1,
		.at = from,
		.end = __atomic_load_n(&store->write_offset, __ATOMIC_ACQUIRE),
	};
}

static inline struct walk walk_begin(const void *map)
{
	return walk_from(map, capture_store(map)->read_offset);
}

/* The next record, or NULL at the end. */
static inline const union record *walk_next(struct walk *walk)
{
	while (walk->at < walk->end) {
		const uint8_t *block = walk->data + (walk->at & walk->mask);
		bm_uintptr word = *(const bm_uintptr *)block;
		bm_uintptr length = word & ~BM_BLOCK_PADDING;

		walk->damage = "a block that goes beyond write_offset";
		if (length > walk->end - walk->at - sizeof(word))
			return NULL;
		walk->damage = "a block that goes beyond the buffer's end";
		if ((walk->at & walk->mask) + sizeof(word) + length > walk->mask + 1)
			return NULL;
		walk->damage = "a length that is no multiple of a word";
		if (length % sizeof(word))
			return NULL;
		walk->damage = NULL;
		walk->at += sizeof(word) + length;
		walk->length = length;
		if (!(word & BM_BLOCK_PADDING))
			return (const union record *)(block + sizeof(word));
	}
	return NULL;
}

/* Offset of the call chain in a task switch or a sample with PC, if the record is that long. */
static inline size_t chain_offset(const struct walk *walk, const union record *r)
{
	if (r->header.record_type == BM_RECORD_TASK_SWITCH)
		return BM_TASK_SWITCH_CHAIN_OFFSET;
	return sizeof(r->sample) + sizeof(bm_uintptr) +
	       8 * capture_pmu(walk->map, r->header.core)->num_counters;
}

/* The call chain of the record that @walk returned last, or NULL. */
static inline const struct bm_kbarman_callchain *walk_chain(const struct walk *walk,
							    const union record *r)
{
	size_t offset = chain_offset(walk, r);

	return walk->length < offset + sizeof(struct bm_kbarman_callchain) ? NULL :
		(const void *)((const char *)r + offset);
}

/* What the task waits for from whom the switch @r is, which @walk returned last, or NULL. */
static inline const struct bm_kbarman_object *walk_object(const struct walk *walk,
							  const union record *r)
{
	return r->header.record_type != BM_RECORD_TASK_SWITCH ||
	       !(r->task_switch.flags & BM_TASK_SWITCH_OBJECT) ? NULL :
		(const void *)((const char *)r + walk->length - sizeof(struct bm_kbarman_object));
}

/* A session takes in a CPU a moment after the CPU came online. */
static inline void wait_until_recorded(int fd, uint32_t cpu)
{
	while (!stats(fd, cpu).online)
		usleep(1000);
}

/* How many switches to @task the ring of @cpu has. */
static inline unsigned int switches_to(int fd, uint32_t cpu, pid_t task)
{
	const void *map = map_cpu(fd, cpu);
	struct walk walk = walk_begin(map);
	unsigned int count = 0;
	const union record *r;

	while ((r = walk_next(&walk)))
		count += r->header.record_type == BM_RECORD_TASK_SWITCH &&
			 r->task_switch.task_id == (uint32_t)task;
	munmap((void *)map, query(fd).map_bytes);
	return count;
}

/*
 * True if @address is a kernel address. On 32-bit machines the kernel has the upper quarter, and
 * its modules on arm the 16 MiB below it. On s390x the kernel and each process have an address
 * space of their own, so an address does not tell.
 */
static inline bool is_kernel_address(uint64_t address)
{
#if defined(__s390x__)
	return false;
#elif UINTPTR_MAX == UINT32_MAX
	return address >= 0xbf000000;
#else
	return address >> 63;
#endif
}

/* ---- is this a correct Barman v2 capture? ---- */

struct judgement {
	const char *fault;		/* the first fault, or NULL */
	uint64_t at;			/* ring position of the fault, if it is in the ring */
	uint64_t records;
	uint64_t by_type[8];
};

static inline bool string_good(const void *map, uint32_t string)
{
	return string < capture_header(map)->string_table_length;
}

static inline const char *judge_header(const void *map, size_t length)
{
	const struct bm_protocol_header_start *h = map;
	const struct bm_protocol_config_values *c = &h->config_constants;
	uint64_t base = h->clock_info.timestamp_base;
	uint32_t i;

	if (h->magic_bytes != BM_PROTOCOL_MAGIC_BYTES)
		return "magic";
	if (h->protocol_version != BM_PROTOCOL_VERSION)
		return "version";
	if (h->header_length > length || h->header_length % 8)
		return "header_length";
	if (h->data_store_type != BM_DATA_STORE_CIRCULAR)
		return "data_store_type";
	if (!c->max_cores || !c->max_task_infos || !c->max_mmap_layout ||
	    c->max_pmu_counters != BM_MAX_PMU_COUNTERS)
		return "config_constants";
	if (!h->clock_info.timestamp_multiplier || !h->clock_info.timestamp_divisor)
		return "clock_info";
	if (!h->string_table_length || h->string_table_length > c->max_string_table_length)
		return "string_table_length";
	if (capture_strings(map)[h->string_table_length - 1])
		return "string table without a final NUL";
	if (!string_good(map, h->target_name_ptr))
		return "target_name_ptr";
	for (i = 0; i < c->max_cores; i++)
		if (capture_pmu(map, i)->num_counters > BM_MAX_PMU_COUNTERS)
			return "num_counters";
		else if (capture_pmu(map, i)->num_counters &&
			 capture_pmu(map, i)->configuration_timestamp < base)
			return "pmu row in front of the base";
	if (*capture_task_count(map) > c->max_task_infos)
		return "num_task_entries";
	for (i = 0; i < *capture_task_count(map); i++)
		if (!string_good(map, capture_tasks(map)[i].task_name_ptr))
			return "task_name_ptr";
	for (i = 0; i < *capture_task_count(map); i++)
		if (capture_tasks(map)[i].timestamp < base)
			return "task row in front of the base";
	if (*capture_map_count(map) > c->max_mmap_layout)
		return "num_mmap_layout_entries";
	for (i = 0; i < *capture_map_count(map); i++)
		if (!string_good(map, capture_maps(map)[i].image_ptr) ||
		    !capture_maps(map)[i].length !=
		    (capture_maps(map)[i].task_id == KBARMAN_NO_TASK))
			return "mmap row";
	for (i = 0; i < *capture_map_count(map); i++)
		if (capture_maps(map)[i].timestamp < base)
			return "mmap row in front of the base";
	return NULL;
}

/* The charts end at most 7 bytes before struct bm_datastore_header_data. */
static inline const char *judge_charts(const void *map)
{
	const struct bm_protocol_header_start *h = map;
	const uint8_t *at = (const uint8_t *)(capture_maps(map) +
					      h->config_constants.max_mmap_layout);
	const struct bm_protocol_header_custom_chart_series *series;
	const struct bm_protocol_header_custom_chart *chart;
	uint32_t charts, i;

	if (h->config_constants.num_custom_counters) {
		memcpy(&charts, at, sizeof(charts));
		chart = (const void *)(at + sizeof(charts));
		series = (const void *)(chart + charts);
		for (i = 0; i < charts; i++)
			if (!string_good(map, chart[i].name_ptr))
				return "chart's name_ptr";
		for (i = 0; i < h->config_constants.num_custom_counters; i++)
			if (series[i].chart_index >= charts ||
			    !string_good(map, series[i].name_ptr) ||
			    !string_good(map, series[i].units_ptr) ||
			    !string_good(map, series[i].description_ptr))
				return "custom series";
		at = (const uint8_t *)(series + h->config_constants.num_custom_counters);
	}
	if ((const uint8_t *)capture_store(map) < at || (const uint8_t *)capture_store(map) - at > 7)
		return "header_length is not that of the parts";
	return NULL;
}

/* The record has nothing behind @at, or one call chain, maybe with a stack, and nothing more. */
static inline const char *judge_chain(const void *map, const union record *r, size_t length,
				      size_t at)
{
	const struct bm_kbarman_callchain *chain = (const void *)((const char *)r + at);
	size_t addresses, stack;

	if (length == at)
		return NULL;
	if (!capture_fact(map, "callchain"))
		return "call chain that nobody asked for";
	if (length < at + sizeof(*chain))
		return "call chain shorter than its head";
	addresses = chain->nr * sizeof(bm_uintptr);
	if (!chain->nr || (chain->nr_kernel & ~BM_KBARMAN_CHAIN_STACK) > chain->nr ||
	    length - at - sizeof(*chain) < addresses)
		return "call chain not as long as it says";
	stack = length - at - sizeof(*chain) - addresses;
	if (chain->nr_kernel & BM_KBARMAN_CHAIN_STACK ?
		    stack < sizeof(struct bm_kbarman_stack) || stack % sizeof(bm_uintptr) : stack)
		return "call chain with the wrong end";
	return NULL;
}

/* @length without the object of the switch, and without an empty chain in front of it; 0: wrong. */
static inline size_t judge_object(const void *map, const union record *r, size_t length)
{
	const size_t chain = BM_TASK_SWITCH_CHAIN_OFFSET + sizeof(struct bm_kbarman_callchain);
	const struct bm_kbarman_object *object =
		(const void *)((const char *)r + length - sizeof(*object));

	if (!(r->task_switch.flags & BM_TASK_SWITCH_OBJECT))
		return length;
	if (!capture_fact(map, "objects") || length < chain + sizeof(*object) ||
	    r->task_switch.reason != BM_TASK_SWITCH_BLOCKED ||
	    object->kind < BM_KBARMAN_OBJECT_CALL || object->kind > BM_KBARMAN_OBJECT_FAULT ||
	    object->flags & ~(BM_KBARMAN_OBJECT_IOWAIT | BM_KBARMAN_OBJECT_COMPAT | BM_KBARMAN_OBJECT_OUTSIDE) ||
	    (object->flags & BM_KBARMAN_OBJECT_OUTSIDE && object->kind < BM_KBARMAN_OBJECT_MUTEX))
		return 0;
	length -= sizeof(*object);
	return length == chain && !((const struct bm_kbarman_callchain *)(&r->task_switch + 1))->nr ?
	       BM_TASK_SWITCH_CHAIN_OFFSET : length;
}

static inline const char *judge_sample(const void *map, uint32_t cpu, const union record *r,
				       size_t length)
{
	bool pc = r->header.record_type == BM_RECORD_SAMPLE_WITH_PC;
	size_t want = sizeof(r->sample) + (pc ? sizeof(bm_uintptr) : 0) +
		      capture_pmu(map, cpu)->num_counters * 8;

	if (length < want)
		return "sample shorter than its counters";
	want += r->sample.num_custom_counters * sizeof(struct bm_custom_counter_sample);
	if (length < want)
		return "sample shorter than its custom counters";
	return judge_chain(map, r, length, want);
}

/* Task switches and halting events are padded to this, also if a word has 4 bytes. */
#define SMALL_RECORD_UNIT	8

static inline const char *judge_record(const void *map, uint32_t cpu, const union record *r,
				       size_t length)
{
	/* Behind the format's last byte are the announced extension and zeros. */
	size_t known, unit = sizeof(bm_uintptr);

	if (length < sizeof(r->header))
		return "record shorter than its head";
	if (r->header.core != cpu)
		return "record of another core";
	switch (r->header.record_type) {
	case BM_RECORD_TASK_SWITCH:
		if (length < sizeof(r->task_switch))
			return "task switch too short";
		if (r->task_switch.reason > BM_TASK_SWITCH_BLOCKED)
			return "task switch for no known reason";
		known = sizeof(r->task_switch);
		unit = SMALL_RECORD_UNIT;
		length = judge_object(map, r, length);
		if (!length)
			return "task switch with a wrong object";
		if (length > BM_TASK_SWITCH_CHAIN_OFFSET) {
			const char *fault = judge_chain(map, r, length,
							BM_TASK_SWITCH_CHAIN_OFFSET);

			if (fault)
				return fault;
			length = BM_TASK_SWITCH_CHAIN_OFFSET;
		}
		break;
	case BM_RECORD_HALTING_EVENT:
		if (length < sizeof(r->halt))
			return "halting event too short";
		if (r->halt.entered_halt > 1)
			return "halting event neither in nor out";
		known = sizeof(r->halt);
		unit = SMALL_RECORD_UNIT;
		break;
	case BM_RECORD_SAMPLE:
	case BM_RECORD_SAMPLE_WITH_PC:
		return judge_sample(map, cpu, r, length);
	case BM_RECORD_CUSTOM_COUNTER:
		if (length < sizeof(r->counter))
			return "custom counter too short";
		if (r->counter.counter >=
		    capture_header(map)->config_constants.num_custom_counters)
			return "custom counter of no series";
		known = sizeof(r->counter);
		if (r->counter.counter == LOST_SERIES) {
			known += sizeof(struct bm_kbarman_loss);
			if (length < known || loss_of(r)->detail.what != BM_KBARMAN_LOST ||
			    loss_of(r)->detail.id >= KBARMAN_LOST_REASONS ||
			    loss_of(r)->detail.cpu != cpu)
				return "loss without its reason";
			if (loss_of(r)->begin > r->header.timestamp ||
			    loss_of(r)->begin < capture_header(map)->clock_info.timestamp_base)
				return "loss without its begin";
		}
		if (r->counter.counter >= FIRST_DETAILS && r->counter.counter < FIRST_SERIES) {
			known += sizeof(struct bm_kbarman_detail);
			if (length < known)
				return "record without its detail";
			if (r->counter.counter >= SYSCALLS_SERIES) {
				known += (r->counter.counter == SYSCALLS_SERIES ? sizeof(struct bm_kbarman_syscall) :
					  r->counter.counter == FAULTS_SERIES	? sizeof(struct bm_kbarman_fault) :
										  sizeof(struct bm_kbarman_block)) -
					 sizeof(struct bm_kbarman_detail);
				if (length < known)
					return "what took time, without its result";
			}
			if (r->counter.counter == FIRST_DETAILS && length >= known + sizeof(struct bm_kbarman_object))
				known += sizeof(struct bm_kbarman_object);
		}
		break;
	case BM_RECORD_ANNOTATION:
		if (length < sizeof(r->annotation) ||
		    length - sizeof(r->annotation) < r->annotation.data_length)
			return "annotation too short";
		known = sizeof(r->annotation) + r->annotation.data_length;
		break;
	default:
		return "record of no known type";
	}
	if (length - known >= unit)
		return "more padding than there need be";
	for (; known < length; known++)
		if (((const uint8_t *)r)[known])
			return "padding that is not zero";
	return NULL;
}

/*
 * Check @length bytes at @map as a capture of @cpu. Uses these bytes only, so they may be a copy in
 * a file.
 */
static inline struct judgement judge(const void *map, size_t length, uint32_t cpu)
{
	struct judgement j = { .fault = judge_header(map, length) };
	const struct bm_datastore_header_data *store;
	const union record *r;
	uint64_t last = capture_header(map)->clock_info.timestamp_base;
	struct walk walk;

	if (!j.fault)
		j.fault = judge_charts(map);
	if (j.fault)
		return j;
	store = capture_store(map);
	j.fault = "data store";
	if (store->buffer_length & (store->buffer_length - 1) || !store->buffer_length ||
	    capture_header(map)->header_length + store->buffer_length > length ||
	    store->read_offset > store->write_offset ||
	    store->write_offset - store->read_offset > store->buffer_length ||
	    store->total_written != store->write_offset || store->base_pointer)
		return j;
	j.fault = NULL;
	walk = walk_begin(map);
	while (!j.fault && (r = walk_next(&walk))) {
		j.at = walk.at - walk.length;
		j.fault = judge_record(map, cpu, r, walk.length);
		if (r->header.timestamp < last)
			j.fault = "timestamp that goes back, or is in front of the base";
		if (capture_fact(map, "raw_end") &&
		    r->header.timestamp > capture_header(map)->last_timestamp)
			j.fault = "record that is later than the end";
		last = r->header.timestamp;
		if (r->header.record_type < 8)
			j.by_type[r->header.record_type]++;
		j.records++;
	}
	if (!j.fault && walk.damage) {
		j.fault = walk.damage;
		j.at = walk.at;
	}
	return j;
}

/* Check the map of @cpu. */
static inline struct judgement judge_cpu(int fd, uint32_t cpu)
{
	struct kbarman_query q = query(fd);
	const void *map = map_cpu(fd, cpu);
	struct judgement j = judge(map, q.map_bytes, cpu);

	munmap((void *)map, q.map_bytes);
	return j;
}

/*
 * Records of @type of a CPU, also while the session runs: then total_written is behind write_offset,
 * which judge() would not take.
 */
static inline unsigned int records_of(int fd, uint32_t cpu, uint32_t type)
{
	const void *map = map_cpu(fd, cpu);
	struct walk walk = walk_begin(map);
	const union record *r;
	unsigned int nr = 0;

	while ((r = walk_next(&walk)))
		nr += r->header.record_type == type;
	munmap((void *)map, query(fd).map_bytes);
	return nr;
}

static inline unsigned int samples_with_pc(int fd, uint32_t cpu)
{
	return records_of(fd, cpu, BM_RECORD_SAMPLE_WITH_PC);
}

#endif /* KBARMAN_VM_LIB_H */
