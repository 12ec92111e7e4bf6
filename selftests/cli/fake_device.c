// SPDX-License-Identifier: MIT
/*
 * A /dev/kbarman without a kernel, to be preloaded: so that what `kbarman record`
 * does can be tested on any machine, and what goes wrong can be made to.
 *
 * One thread writes task switches into the rings of all CPUs, as fast as asked,
 * and counts what finds no room. It knows stream and overwrite mode, but for the
 * rest only what a recorder needs.
 *
 *	FAKE_ABI	the module's (that of the headers): it knows the calls of no other one
 *	FAKE_CPUS	how many (2)
 *	FAKE_RATE	records a millisecond and CPU (10)
 *	FAKE_IDLE	this CPU writes nothing
 *	FAKE_CHAINS	call chains that can be had: 1 the user's by frame pointers, 2 the kernel's,
 *			16 the user's by stacks (3)
 *			with --off-cpu task 1 leaves its CPU with a chain of one address
 *	FAKE_DETAILS	the module knows the sources of --latency (1); if some are asked for, there
 *			is a record of them each millisecond and CPU
 *	FAKE_OBJECTS	the module can say what tasks wait for (0): task 1 reads a pipe and a file and waits
 *			for a lock, one after the other
 *	FAKE_WAITS	TASK.CALL.KIND.FLAGS.ID.VALUE: this task leaves its CPU first of all, as it waits
 *			for that, and does not come back
 *	FAKE_TURNS	the module lets counters take turns (1)
 *	FAKE_REUSE	the module lets a stream use rows again (1)
 *	FAKE_INTERRUPTS	this file stands for /proc/interrupts
 *	FAKE_MAPS	new mappings that are seen: 0 none, 1 but for moved ones, 2 all (2)
 *	FAKE_ABSENT	query.absent: what this kernel can't give (0)
 *	FAKE_SLEEP	the machine slept for so many milliseconds, 200 ms after the start: its
 *			counter went on, its clocks did not
 *	FAKE_UNSTEADY	its kernel found the counter unstable
 *	FAKE_LIMIT	samples a second that Linux takes (100000)
 *	FAKE_KHZ	CPUs run at that most (not known)
 *	FAKE_STOPS	the counter of CPU 1 was throttled so many times
 *	FAKE_MISSED	so many mappings found no room
 *	FAKE_IMAGES	files, with ':' between them: the fake task has the first bytes of each
 *			mapped, and there is a sample in each of them each millisecond
 *	FAKE_STACKS	these samples have stacks, if the recorder wants any
 *	FAKE_RUNNING	somebody else records already, in overwrite mode
 *	FAKE_SOURCES	... these KBARMAN_SOURCE_*
 *	FAKE_BOOT	a session that began with the module can be taken over; 2: it overwrites
 *	FAKE_FORMER	these files, with ':' between them, are memory that survived a reset: a stamp begins each;
 *			a file that is released is removed
 *	FAKE_FORMER_BYTES ... of so many bytes
 *	FAKE_OTHERS	another user has begun a stream since
 *	FAKE_MOST	so many sessions there may be (8)
 *	FAKE_STALL	the disk stalls once, until so many milliseconds' records are written
 *	FAKE_KILL	the process is killed before write number N of what is recorded
 *	FAKE_PATIENT	records wait for room in the buffers: nothing is lost however slow the reader is
 *	FAKE_PC		every fourth record is a sample there, and the capture of this machine
 *	FAKE_TASK	of that task (1)
 *	FAKE_PROCESSES	these processes of the machine, with ',' between them, have rows
 *	FAKE_NAMESPACE	the tool is in a PID namespace, as in a container; 0: it is in none (as it is)
 *	FAKE_STOP	the process stops (SIGSTOP) before it closes this file
 *	FAKE_READS	appends to this file the path of each file that is opened for reading
 *	FAKE_MODULES	/proc/modules has one module: "same", whose use count is another one each
 *			time; "other", another module each time
 *	FAKE_FAIL	CALL:ERRNO, for configure, start, stop, consume, add_maps, add_symbols, former
 *	FAKE_BAD	... and the offset of the field that configure refuses (0)
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define BM_WORD_BITS	__BITS_PER_LONG
#include <uapi/barman_v2.h>
#include <uapi/kbarman.h>
#include <uapi/stamp.h>

#define MAX_CPUS	256
#define TASKS		64
#define PROCESS		7		/* that of task 1 */
#define MAPS		64
#define PAGE		65536		/* a page, whatever pages there are */
#define OWN_SERIES	11	/* of the module: "Lost records", one without a name, and the sources */
#define SERIES		(64 + OWN_SERIES)	/* and as many charts */

struct tail {
	struct bm_protocol_header_pmu_settings pmus[MAX_CPUS];
	__u32 nr_tasks;
	struct bm_protocol_header_task_info tasks[TASKS];
	__u32 nr_maps;
	struct bm_protocol_header_mmap_layout maps[MAPS];
	__u32 nr_charts;
	struct bm_protocol_header_custom_chart charts[SERIES];
	struct bm_protocol_header_custom_chart_series series[SERIES];
} __attribute__((packed, aligned(4)));

struct more_tasks {
	struct bm_kbarman_tasks all;
	struct bm_kbarman_task rows[TASKS];
};

/* The string table takes what makes the header end with a page, as the kernel's does. */
#define HEADER_BYTES	(2 * PAGE)
#define STRINGS		((HEADER_BYTES - sizeof(struct bm_protocol_header_start) - \
			  sizeof(struct more_tasks) - sizeof(struct tail)) / 8 * 8)

struct tables {
	struct bm_protocol_header_start start;
	char strings[STRINGS];
	struct more_tasks more;		/* in the room for strings */
	struct tail tail;
};

_Static_assert(sizeof(struct tables) + 8 > HEADER_BYTES, "no more than padding is left");

static struct {
	int fd;				/* what open() gave: an eventfd, for poll() */
	int second;			/* ... while that was open: only to look at sessions */
	int memory;			/* a memfd: header, then each CPU's own pages */
	struct kbarman_configure config;
	struct kbarman_event events[KBARMAN_EVENTS_MAX];
	unsigned int turned;		/* turns that were given since the start */
	unsigned int nr_cpus, rate, idle;
	unsigned int bursts;		/* what was written in a millisecond each */
	uint64_t own_bytes;		/* of a CPU: store header and ring, in pages */
	struct tables *tables;
	struct bm_datastore_header_data *stores[MAX_CPUS];
	uint64_t written[MAX_CPUS], overwritten[MAX_CPUS], lost[MAX_CPUS];
	struct kbarman_clock_pair started, stopped;
	uint64_t sleep;			/* ns */
	bm_uintptr pc;
	unsigned int nr_images;
	uint64_t block;			/* bytes of a record */
	pthread_t writer;
	pthread_mutex_t lock;
	unsigned int nr_series;		/* a chart each */
	unsigned int next_kind[MAX_CPUS];
	uint64_t chosen;		/* the session that is looked at; 0: the newest one */
	bool running, stop, awake, patient;
} fake = { .fd = -1, .second = -1, .memory = -1, .lock = PTHREAD_MUTEX_INITIALIZER };

static unsigned int setting(const char *name, unsigned int otherwise)
{
	const char *text = getenv(name);

	return text ? (unsigned int)strtoul(text, NULL, 0) : otherwise;
}

static bool fails(const char *call)
{
	const char *text = getenv("FAKE_FAIL");
	size_t length = strlen(call);

	if (!text || strncmp(text, call, length) || text[length] != ':')
		return false;
	errno = atoi(text + length + 1);
	return true;
}

static uint64_t now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* The machine's counter, in ns. */
static uint64_t ticks(void)
{
	uint64_t t = now(CLOCK_MONOTONIC);

	return fake.sleep && fake.started.timestamp &&
	       t > fake.started.timestamp + 200000000 ? t + fake.sleep : t;
}

static void read_clock(struct kbarman_clock_pair *pair)
{
	pair->timestamp = ticks();
	pair->raw_ns = now(CLOCK_MONOTONIC_RAW);
	pair->monotonic_ns = now(CLOCK_MONOTONIC);
	pair->realtime_ns = now(CLOCK_REALTIME);
}

/* ---- tables ---- */

static uint32_t add_string(const char *string, size_t length)
{
	struct bm_protocol_header_start *start = &fake.tables->start;
	uint32_t at = start->string_table_length;

	if (at + length + 1 > sizeof(fake.tables->strings))
		return 0;
	memcpy(fake.tables->strings + at, string, length);
	__atomic_store_n(&start->string_table_length, at + (uint32_t)length + 1, __ATOMIC_RELEASE);
	return at;
}

__attribute__((format(printf, 1, 2)))
static void add_fact(const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	add_string(text, (size_t)vsnprintf(text, sizeof(text), format, args));
	va_end(args);
}

static void add_task(uint32_t id, uint32_t process, uint64_t exited, const char *name)
{
	uint32_t row = fake.tables->tail.nr_tasks;

	fake.tables->more.rows[row] = (struct bm_kbarman_task){ id, process, exited };
	fake.tables->tail.tasks[row] = (struct bm_protocol_header_task_info){
		fake.started.timestamp, id, add_string(name, strlen(name)) };
	__atomic_store_n(&fake.tables->tail.nr_tasks, row + 1, __ATOMIC_RELEASE);
}

/* Those of FAKE_PROCESSES. */
static void add_processes(void)
{
	const char *at = getenv("FAKE_PROCESSES");

	for (char *end; at && *at; at = *end ? end + 1 : end) {
		uint32_t id = (uint32_t)strtoul(at, &end, 10);

		add_task(id, id, 0, "process");
	}
}

static bool add_row(const struct kbarman_map_row *row)
{
	uint32_t at = fake.tables->tail.nr_maps;

	if (at == MAPS)
		return false;
	fake.tables->tail.maps[at] = (struct bm_protocol_header_mmap_layout){
		.timestamp = fake.started.timestamp,
		.task_id = row->task_id,
		.base_address = row->base_address,
		.length = row->length,
		.image_offset = row->image_offset,
		.image_ptr = add_string((const char *)(uintptr_t)row->image_ptr, row->image_length),
	};
	__atomic_store_n(&fake.tables->tail.nr_maps, at + 1, __ATOMIC_RELEASE);
	return true;
}

#define IMAGE_BYTES	0x4000
#define IMAGE_BASE	0x10000000ULL

/* The path as the kernel writes it: with what tells the file from others. */
static uint32_t add_file(const char *path, size_t length)
{
	char text[PATH_MAX + 128];
	struct stat st = { 0 };
	int before;

	snprintf(text, sizeof(text), "%.*s", (int)length, path);
	stat(text, &st);
	before = snprintf(text, sizeof(text), "kbarman.file=0:0:0:%llu:%llu:",
			  (unsigned long long)st.st_size,
			  st.st_mtim.tv_sec * 1000000000ULL + (unsigned long long)st.st_mtim.tv_nsec);
	snprintf(text + before, sizeof(text) - (size_t)before, "%.*s", (int)length, path);
	return add_string(text, strlen(text)) + (uint32_t)before;
}

/* A file of FAKE_IMAGES each, with as much room behind it. */
static void add_images(void)
{
	const char *path = getenv("FAKE_IMAGES"), *end;

	for (fake.nr_images = 0; path && *path; path = *end ? end + 1 : end) {
		struct kbarman_map_row row = {
			.task_id = PROCESS,
			.base_address = IMAGE_BASE + 2ULL * IMAGE_BYTES * fake.nr_images,
			.length = IMAGE_BYTES,
			.image_ptr = (uintptr_t)path,
		};

		end = strchrnul(path, ':');
		row.image_length = (uint32_t)(end - path);
		fake.nr_images += add_row(&row);
		if (setting("FAKE_STACKS", 0))
			fake.tables->tail.maps[fake.tables->tail.nr_maps - 1].image_ptr =
				add_file(path, row.image_length);
	}
}

/* The series of the sources; those that are not asked for have no names. */
static const struct {
	uint32_t source;
	const char *name;
} own_series[OWN_SERIES] = {
	[2] = { KBARMAN_SOURCE_WAKE, "Wakeups" },
	[3] = { KBARMAN_SOURCE_MIGRATE, "Migrations" },
	[4] = { KBARMAN_SOURCE_IRQ, "Interrupts" },
	[5] = { KBARMAN_SOURCE_SOFTIRQ, "Softirqs" },
	[6] = { KBARMAN_SOURCE_FREQ, "Frequency" },
	[7] = { KBARMAN_SOURCE_FREQ, "Idle misses" },
	[8] = { KBARMAN_SOURCE_SYSCALLS, "System calls" },
	[9] = { KBARMAN_SOURCE_FAULTS, "Page faults" },
	[10] = { KBARMAN_SOURCE_BLOCK, "Block requests" },
};

static void name_series(unsigned int i)
{
	struct bm_protocol_header_custom_chart_series *series = &fake.tables->tail.series[i];
	uint32_t name = add_string(own_series[i].name, strlen(own_series[i].name));
	bool is_kHz = i == 6;

	fake.tables->tail.charts[i] = (struct bm_protocol_header_custom_chart){ name, 1, 3, 4 };
	*series = (struct bm_protocol_header_custom_chart_series){
		i, name, 0, 0, BM_SERIES_COLOUR_AUTOMATIC, 0x3ff0000000000000, is_kHz ? 3 : 2,
		is_kHz ? 4 : 1, 0 };
}

static void reset_tables(void)
{
	struct tables *t = fake.tables;

	memset(t, 0, sizeof(*t));
	t->start = (struct bm_protocol_header_start){
		.magic_bytes = BM_PROTOCOL_MAGIC_BYTES,
		.protocol_version = BM_PROTOCOL_VERSION,
		.header_length = HEADER_BYTES + sizeof(struct bm_datastore_header_data),
		.data_store_type = BM_DATA_STORE_CIRCULAR,
		.config_constants = { MAX_CPUS, TASKS, MAPS, BM_MAX_PMU_COUNTERS,
				      sizeof(t->strings) + sizeof(t->more), SERIES },
		.clock_info = { fake.started.timestamp, 1, 1, fake.started.realtime_ns },
	};
	t->more.all = (struct bm_kbarman_tasks){
		sizeof(t->more.all), sizeof(t->more.rows[0]), TASKS, 0 };
	add_string("fake", 4);
	add_fact("kbarman.tasks=%zu", offsetof(struct tables, more));
	t->tail.nr_charts = SERIES;
	fake.nr_series = OWN_SERIES;
	for (unsigned int i = 0; i < SERIES; i++) {
		t->tail.charts[i] = (struct bm_protocol_header_custom_chart){ 4, 1, 2, 0 };
		t->tail.series[i] = (struct bm_protocol_header_custom_chart_series){
			0, 4, 4, 4, BM_SERIES_COLOUR_AUTOMATIC, 0x3ff0000000000000, 3, 2, 0 };
	}
	t->tail.charts[0] = (struct bm_protocol_header_custom_chart){ add_string("Losses", 6), 1, 3, 0 };
	t->tail.series[0] = (struct bm_protocol_header_custom_chart_series){
		0, add_string("Lost records", 12), 0, 0, BM_SERIES_COLOUR_AUTOMATIC,
		0x3ff0000000000000, 2, 1, 0 };
	for (unsigned int i = 0; i < OWN_SERIES; i++)
		if (fake.config.sources & own_series[i].source)
			name_series(i);
}

/* ---- records ---- */

static bm_uintptr *word_at(unsigned int cpu, uint64_t position)
{
	struct bm_datastore_header_data *store = fake.stores[cpu];

	return (bm_uintptr *)((char *)(store + 1) + (position & (store->buffer_length - 1)));
}

static void wake(void)
{
	uint64_t one = 1;

	if (!__atomic_exchange_n(&fake.awake, true, __ATOMIC_ACQ_REL) &&
	    write(fake.fd, &one, sizeof(one)) < 0)
		return;
}

struct sample {
	struct bm_protocol_sample fields;
	bm_uintptr pc;
	__u64 counter;
} __attribute__((packed, aligned(4)));

/* The number of the stack pointer in DWARF. */
#if defined(__x86_64__)
#define SP	7
#elif defined(__aarch64__)
#define SP	31
#elif defined(__arm__)
#define SP	13
#elif defined(__riscv)
#define SP	2
#elif defined(__s390x__)
#define SP	15
#else
#define SP	4	/* i386 */
#endif

/* A sample with a stack of no words: its two registers end with the block. */
struct sample_with_chain {
	struct sample sample;
	struct bm_kbarman_callchain chain;
	bm_uintptr addresses[];
} __attribute__((packed, aligned(4)));

struct stack {
	struct bm_kbarman_stack head;
	__u64 sp, pc;
} __attribute__((packed, aligned(4)));

static void add_stack(struct sample_with_chain *record, uint64_t length)
{
	struct stack *stack = (void *)((char *)record + length - sizeof(*stack));
	uint32_t nr = (uint32_t)((bm_uintptr *)stack - record->addresses);

	record->chain = (struct bm_kbarman_callchain){ nr, (nr - 1) | BM_KBARMAN_CHAIN_STACK };
	for (uint32_t i = 0; i < nr; i++)
		record->addresses[i] = i == nr - 1 ? record->sample.pc : (bm_uintptr)-PAGE;
	stack->head = (struct bm_kbarman_stack){
		.registers = 1ULL << SP | 1ULL << BM_KBARMAN_REGISTER_PC,
		.word = sizeof(bm_uintptr),
	};
	stack->sp = 0x7fff0000;
	stack->pc = record->sample.pc;
}

struct switch_with_chain {
	struct bm_protocol_task_switch fields;
	struct bm_kbarman_callchain chain;
	bm_uintptr address;
} __attribute__((packed, aligned(4)));

_Static_assert(offsetof(struct switch_with_chain, chain) == BM_TASK_SWITCH_CHAIN_OFFSET, "chain");

/* Blocks are of one size that divides the ring: no padding, no straddling. */
static uint64_t record_bytes(void)
{
	return fake.block - sizeof(bm_uintptr);
}

/* A record of zeros; NULL: it is lost. */
static void *begin_record(unsigned int cpu)
{
	struct bm_datastore_header_data *store = fake.stores[cpu];
	uint64_t w = store->write_offset, r = __atomic_load_n(&store->read_offset, __ATOMIC_ACQUIRE);
	const uint64_t block = fake.block;

	if (w + block - r > store->buffer_length) {
		if (fake.config.mode == KBARMAN_MODE_STREAM) {
			fake.lost[cpu]++;
			wake();
			return NULL;
		}
		__atomic_store_n(&store->read_offset, r + block, __ATOMIC_RELAXED);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		fake.overwritten[cpu]++;
	}
	*word_at(cpu, w) = (bm_uintptr)record_bytes();
	/* What was there is not a part of it. */
	return memset(word_at(cpu, w) + 1, 0, record_bytes());
}

static void end_record(unsigned int cpu)
{
	struct bm_datastore_header_data *store = fake.stores[cpu];
	uint64_t r = __atomic_load_n(&store->read_offset, __ATOMIC_ACQUIRE);

	store->total_written += fake.block;
	__atomic_store_n(&store->write_offset, store->write_offset + fake.block, __ATOMIC_RELEASE);
	fake.written[cpu]++;
	if (store->write_offset - r >= fake.config.watermark)
		wake();
}

static bool has_objects(void)
{
	return fake.config.flags & KBARMAN_CONFIGURE_OBJECTS;
}

/* Tasks wait only where records tell who wakes them, or what the tasks wait for. */
static bool sleeps(void)
{
	return fake.config.sources & KBARMAN_SOURCE_WAKE || has_objects();
}

/* What task 1 waits for, one after the other. The calls have the numbers of amd64. */
static const struct bm_kbarman_object objects[] = {
	{ 0, BM_KBARMAN_OBJECT_PIPE, 0, 5, 4711 },
	{ 74, BM_KBARMAN_OBJECT_FILE, BM_KBARMAN_OBJECT_IOWAIT, 8 << 20 | 1, 12 },
	{ 202, BM_KBARMAN_OBJECT_FUTEX, 0, 7, 0x1000 },
	{ 230, BM_KBARMAN_OBJECT_CALL, 0, 1, 0 },
	{ 0, BM_KBARMAN_OBJECT_NO_CALL, BM_KBARMAN_OBJECT_IOWAIT, 0, 0x1000 },
};

/* That of FAKE_WAITS. Returns the task; 0: there is none. */
static uint32_t read_waits(struct bm_kbarman_object *object)
{
	uint32_t task = 0;

	return sscanf(getenv("FAKE_WAITS") ?: "", "%" SCNu32 ".%hu.%hhu.%hhu.%" SCNu32 ".%" SCNu64, &task, &object->call,
		      &object->kind, &object->flags, &object->id, &object->value) == 6 ? task : 0;
}

/* It is at the end of the block. */
static void add_object(void *record, size_t bytes)
{
	static unsigned int next;
	struct bm_kbarman_object object = objects[next++ % (sizeof(objects) / sizeof(objects[0]))];

	if (next == 1)
		read_waits(&object);
	((struct bm_protocol_task_switch *)record)->flags |= BM_TASK_SWITCH_OBJECT;
	memcpy((char *)record + bytes - sizeof(object), &object, sizeof(object));
}

/* @pc: of a sample of @task; 0: a switch to it. */
static void write_record(unsigned int cpu, uint64_t timestamp, uint32_t task, bm_uintptr pc,
			 uint64_t counter)
{
	void *record = begin_record(cpu);

	if (!record)
		return;
	if (pc)
		*(struct sample *)record = (struct sample){
			.fields = { { BM_RECORD_SAMPLE_WITH_PC, cpu, timestamp }, task, 0 },
			.pc = pc, .counter = counter };
	else
		*(struct bm_protocol_task_switch *)record = (struct bm_protocol_task_switch){
			.header = { BM_RECORD_TASK_SWITCH, cpu, timestamp }, .task_id = task,
			.reason = sleeps() };
	if (!pc && !task && fake.config.flags & KBARMAN_CONFIGURE_CHAIN_SWITCH) {
		((struct switch_with_chain *)record)->chain = (struct bm_kbarman_callchain){ 1, 0 };
		((struct switch_with_chain *)record)->address = 0x1000;
	}
	if (!pc && !task && has_objects())
		add_object(record, record_bytes());
	if (pc && fake.config.flags & KBARMAN_CONFIGURE_CHAIN_STACK && setting("FAKE_STACKS", 0))
		add_stack(record, record_bytes());
	end_record(cpu);
}

struct detailed {
	struct bm_protocol_custom_counter value;
	union {
		struct bm_kbarman_detail detail;
		struct bm_kbarman_syscall call;
		struct bm_kbarman_fault fault;
		struct bm_kbarman_block block;
	};
} __attribute__((packed, aligned(4)));

#define FAKE_CALL	0	/* read() on x86; it takes 700 ns, and returns what it is asked for */

/* A record of each kind, one after the other, as far as its source is on. */
static const struct {
	uint8_t series, what, context;
	uint16_t cpu;
	uint32_t id;
	uint64_t value;
} kinds[] = {
	{ 2, BM_KBARMAN_WAKING, BM_KBARMAN_IN_IRQ, 1, 1, 1 },
	{ 2, BM_KBARMAN_WAKING_NEW, BM_KBARMAN_IN_TASK, 0, 1, 1 },
	{ 3, BM_KBARMAN_MIGRATE, BM_KBARMAN_IN_TASK, 0, 1, 1 },
	{ 4, BM_KBARMAN_IRQ_ENTRY, BM_KBARMAN_IN_IRQ, 0, 33, 1 },
	{ 4, BM_KBARMAN_IRQ_EXIT, BM_KBARMAN_IN_IRQ, 0, 33, 0 },
	{ 4, BM_KBARMAN_IPI_ENTRY, BM_KBARMAN_IN_IRQ, 0, BM_KBARMAN_IPI_RESCHEDULE, 1 },
	{ 4, BM_KBARMAN_IPI_EXIT, BM_KBARMAN_IN_IRQ, 0, BM_KBARMAN_IPI_RESCHEDULE, 0 },
	{ 5, BM_KBARMAN_SOFTIRQ_RAISE, BM_KBARMAN_IN_IRQ, 0, 1, 0 },
	{ 5, BM_KBARMAN_SOFTIRQ_ENTRY, BM_KBARMAN_IN_SOFTIRQ, 0, 1, 1 },
	{ 5, BM_KBARMAN_SOFTIRQ_EXIT, BM_KBARMAN_IN_SOFTIRQ, 0, 1, 0 },
	{ 6, BM_KBARMAN_FREQUENCY, BM_KBARMAN_IN_TASK, 1, 0, 1200000 },
	{ 7, BM_KBARMAN_IDLE_MISS, 1, 1, 2, 1 },
	{ 8, BM_KBARMAN_SYSCALL, BM_KBARMAN_IN_TASK, 0, FAKE_CALL, 1 },
	{ 9, BM_KBARMAN_FAULT, BM_KBARMAN_IN_TASK, BM_KBARMAN_FAULT_KERNEL, 0, 1 },
	{ 10, BM_KBARMAN_BLOCK, BM_KBARMAN_IN_IRQ, 1 | BM_KBARMAN_BLOCK_SYNC, 1, 1 },
};

#define KINDS	(sizeof(kinds) / sizeof(kinds[0]))

static void write_detailed(unsigned int cpu, unsigned int kind)
{
	struct detailed *record = begin_record(cpu);

	if (!record)
		return;
	record->value = (struct bm_protocol_custom_counter){
		.header = { BM_RECORD_CUSTOM_COUNTER, cpu, ticks() },
		.task_id = 1, .counter = kinds[kind].series, .value = kinds[kind].value };
	record->detail = (struct bm_kbarman_detail){
		kinds[kind].id, kinds[kind].cpu, kinds[kind].what, kinds[kind].context };
	if (kinds[kind].what == BM_KBARMAN_SYSCALL) {
		record->call.begin = record->value.header.timestamp - 700;
		record->call.result = 4096;
		record->call.arguments[0] = 3;
		record->call.arguments[1] = 0x7ffffffff000;
		record->call.arguments[2] = 4096;
	}
	if (kinds[kind].what == BM_KBARMAN_FAULT)
		record->fault = (struct bm_kbarman_fault){
			.detail = record->detail, .begin = record->value.header.timestamp - 500, .result = 1,
			.address = 0x7ffff0000000, .pc = 0xffffffff81000010 };
	if (kinds[kind].what == BM_KBARMAN_BLOCK)
		record->block = (struct bm_kbarman_block){
			.detail = record->detail, .begin = record->value.header.timestamp - 600, .result = -5,
			.sector = 1ULL << 33, .device = 8 << 20 | 1, .bytes = 4096 };
	end_record(cpu);
}

static void write_next_kind(unsigned int cpu)
{
	for (unsigned int i = 0; i < KINDS; i++) {
		unsigned int kind = fake.next_kind[cpu]++ % KINDS;

		if (fake.config.sources & own_series[kinds[kind].series].source) {
			write_detailed(cpu, kind);
			return;
		}
	}
}

/* The @number-th of a burst. */
static void write_fake(unsigned int cpu, unsigned int number)
{
	if (fake.pc && number % 4 == 3)
		write_record(cpu, ticks(), setting("FAKE_TASK", 1), fake.pc, 1000);
	else
		write_record(cpu, ticks(), number % 2, 0, 0);
}

/* It goes through the image, and through each of its symbols. */
static bm_uintptr image_pc(unsigned int cpu, unsigned int image)
{
	return IMAGE_BASE + 2ULL * IMAGE_BYTES * image + fake.written[cpu] * 16 % IMAGE_BYTES;
}

static void write_burst(void)
{
	pthread_mutex_lock(&fake.lock);
	for (unsigned int i = 0; i < fake.rate; i++)
		for (unsigned int cpu = 0; cpu < fake.nr_cpus; cpu++)
			if (cpu != fake.idle)
				write_fake(cpu, i);
	for (unsigned int cpu = 0; cpu < fake.nr_cpus; cpu++)
		if (cpu != fake.idle)
			write_next_kind(cpu);
	for (unsigned int i = 0; i < fake.nr_images; i++)
		for (unsigned int cpu = 0; cpu < fake.nr_cpus; cpu++)
			if (cpu != fake.idle)
				write_record(cpu, ticks(), 1, image_pc(cpu, i), 1);
	pthread_mutex_unlock(&fake.lock);
	__atomic_add_fetch(&fake.bursts, 1, __ATOMIC_RELEASE);
}

static bool has_room(void)
{
	uint64_t most = (fake.rate + 1 + fake.nr_images) * fake.block;

	for (unsigned int cpu = 0; cpu < fake.nr_cpus; cpu++) {
		struct bm_datastore_header_data *store = fake.stores[cpu];

		if (store->write_offset + most - __atomic_load_n(&store->read_offset, __ATOMIC_ACQUIRE) >
		    store->buffer_length)
			return false;
	}
	return true;
}

static void *write_records(void *unused)
{
	struct timespec pause = { 0, 1000000 };
	uint64_t next = now(CLOCK_MONOTONIC);

	while (!__atomic_load_n(&fake.stop, __ATOMIC_ACQUIRE)) {
		if (next > now(CLOCK_MONOTONIC) || (fake.patient && !has_room())) {
			nanosleep(&pause, NULL);
			continue;
		}
		write_burst();
		next += 1000000;
	}
	return unused;
}

/* ---- calls ---- */

static int query(struct kbarman_query *q)
{
	*q = (struct kbarman_query){
		.size = q->size,
		.abi = KBARMAN_ABI,
		.features = KBARMAN_FEATURE_PMU |
			    (setting("FAKE_MAPS", 2) > 1 ? KBARMAN_FEATURE_MAPS : 0) |
			    (setting("FAKE_MAPS", 2) ? KBARMAN_FEATURE_MAPS_MADE : 0) |
			    (setting("FAKE_COUNTS", 1) ? KBARMAN_FEATURE_COUNTS : 0) |
			    (setting("FAKE_TURNS", 1) ? KBARMAN_FEATURE_TURNS : 0) |
			    (setting("FAKE_REUSE", 1) ? KBARMAN_FEATURE_REUSE : 0) |
			    (setting("FAKE_DETAILS", 1) ? KBARMAN_FEATURE_DETAILS : 0) |
			    (setting("FAKE_EACH", 1) ? KBARMAN_FEATURE_EACH : 0) |
			    (getenv("FAKE_FORMER") ? KBARMAN_FEATURE_RESERVED : 0) |
			    (setting("FAKE_OBJECTS", 0) ? KBARMAN_FEATURE_OBJECTS : 0) |
			    (uint32_t)setting("FAKE_CHAINS", 3) * KBARMAN_FEATURE_CHAIN_USER,
		.page_size = PAGE,
		.nr_cpus = fake.nr_cpus,
		.clock_hz = 1000000000,
		.min_ring_bytes = 65536,
		.max_ring_bytes = 1 << 30,
		.mode = fake.config.mode,
		.sources = fake.config.sources,
		.state = (setting("FAKE_UNSTEADY", 0) ? KBARMAN_STATE_UNSTEADY : 0) |
			 (fake.tables ? KBARMAN_STATE_CONFIGURED : 0) |
			 (fake.running ? KBARMAN_STATE_RUNNING : 0),
		.session = fake.tables != NULL,
		.ring_bytes = fake.config.ring_bytes,
		.header_bytes = HEADER_BYTES,
		.map_bytes = HEADER_BYTES + fake.own_bytes,
		.map_stride = HEADER_BYTES + fake.own_bytes,
		.absent = (uint32_t)setting("FAKE_ABSENT", 0),
		.word_bytes = sizeof(long),
		.nr_cpu_words = 1,
	};
	/* Who has not chosen sees the newest session. */
	if (setting("FAKE_OTHERS", 0) && fake.chosen != 1)
		q->mode = KBARMAN_MODE_STREAM;
	return 0;
}

/* The path of former recording @number of FAKE_FORMER. False: there is none. */
static bool former_path(unsigned int number, char path[PATH_MAX])
{
	const char *at = getenv("FAKE_FORMER"), *end;

	for (; at && *at; at = *end ? end + 1 : end) {
		end = strchrnul(at, ':');
		snprintf(path, PATH_MAX, "%.*s", (int)(end - at), at);
		if (!access(path, F_OK) && !number--)
			return true;
	}
	return false;
}

/* A session takes a half. Of two former recordings, one goes. */
static void take_half(void)
{
	char path[PATH_MAX];

	if (former_path(1, path))
		unlink(path);
}

static int configure(struct kbarman_configure *config)
{
	if (fails("configure")) {
		config->bad_offset = setting("FAKE_BAD", 0);
		return -1;
	}
	if (setting("FAKE_ABSENT", 0) & (config->sources | KBARMAN_ABSENT_TASKS)) {
		errno = EOPNOTSUPP;
		return -1;
	}
	fake.config = *config;
	if (config->flags & KBARMAN_CONFIGURE_RESERVED)
		take_half();
	if (config->flags & KBARMAN_CONFIGURE_RESERVED && !config->ring_bytes)
		config->ring_bytes = fake.config.ring_bytes = 1 << 20;
	if (config->sources & KBARMAN_SOURCE_DETAILS)
		fake.block = 64;
	if (config->flags & (KBARMAN_CONFIGURE_CHAIN_SWITCH | KBARMAN_CONFIGURE_OBJECTS))
		fake.block = 64;
	if (setting("FAKE_STACKS", 0) ||
	    config->sources & (KBARMAN_SOURCE_SYSCALLS | KBARMAN_SOURCE_FAULTS | KBARMAN_SOURCE_BLOCK))
		fake.block = 128;
	if (!fake.config.watermark)
		fake.config.watermark = config->ring_bytes / 4;
	memcpy(fake.events, (void *)(uintptr_t)config->events_ptr,
	       config->nr_events * sizeof(*fake.events));
	fake.own_bytes = (sizeof(struct bm_datastore_header_data) + config->ring_bytes + PAGE - 1) /
			 PAGE * PAGE;
	fake.memory = memfd_create("fake", MFD_CLOEXEC);
	if (fake.memory < 0 ||
	    ftruncate(fake.memory, (off_t)(HEADER_BYTES + fake.nr_cpus * fake.own_bytes)))
		return -1;
	fake.tables = mmap(NULL, HEADER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fake.memory, 0);
	for (unsigned int cpu = 0; cpu < fake.nr_cpus; cpu++) {
		fake.stores[cpu] = mmap(NULL, fake.own_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
					fake.memory, (off_t)(HEADER_BYTES + cpu * fake.own_bytes));
		fake.stores[cpu]->buffer_length = config->ring_bytes;
	}
	reset_tables();
	return 0;
}

#define CHAIN	(KBARMAN_CONFIGURE_CHAIN_USER | KBARMAN_CONFIGURE_CHAIN_KERNEL)

static const char *chain_parts(void)
{
	uint32_t parts = fake.config.flags & CHAIN;

	return parts == CHAIN ? "both" : parts == KBARMAN_CONFIGURE_CHAIN_USER ? "user" : "kernel";
}

static void add_sources(void)
{
	static const char *const words[] = { "wake", "migrate", "irq", "softirq", "freq", "syscalls",
					     "faults", "block" };
	char text[64] = "";

	for (unsigned int i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (fake.config.sources & KBARMAN_SOURCE_WAKE << i)
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s",
				 *text ? "," : "", words[i]);
	if (*text)
		add_fact("kbarman.sources=%s", text);
}

/* The turn of each event, "-": it counts all the time. */
static void add_turns(void)
{
	char text[33] = "";
	bool any = false;

	fake.turned = 0;
	for (uint32_t i = 0; i < fake.config.nr_events && i < sizeof(text) - 1; i++) {
		text[i] = fake.events[i].turn ? (char)('0' + fake.events[i].turn) : '-';
		any |= fake.events[i].turn;
	}
	if (any)
		add_fact("kbarman.fake_turns=%s", text);
}

static int turn(const struct kbarman_turn *given)
{
	for (uint32_t i = 0; given->turn && i < fake.config.nr_events; i++) {
		if (fake.events[i].turn == given->turn) {
			fake.turned++;
			return 0;
		}
	}
	errno = EINVAL;
	return -1;
}

static int start(struct kbarman_start *s)
{
	struct bm_kbarman_object object;
	char sample[64];
	struct utsname name;
	uint32_t first = 0;

	if (fails("start")) {
		s->event = 0;
		s->cpu = 1;
		return -1;
	}
	read_clock(&fake.started);
	reset_tables();
	add_task(0, 0, 0, "swapper");
	add_task(1, PROCESS, 12345, "fake task");
	add_processes();
	add_images();
	add_fact("kbarman.ext=1");
	add_fact("kbarman.raw_base=%" PRIu64, (uint64_t)fake.started.raw_ns);
	add_string(sample, (size_t)snprintf(sample, sizeof(sample), "kbarman.sample=%llu%s",
					    (unsigned long long)fake.events[0].attr.sample_period,
					    fake.events[0].attr.freq ? "Hz" : ""));
	if (fake.config.flags & CHAIN)
		add_fact("kbarman.callchain=%s%s", chain_parts(),
			 fake.config.flags & KBARMAN_CONFIGURE_CHAIN_STACK ? ",stack" : "");
	if (setting("FAKE_STACKS", 0))
		add_fact("kbarman.max_stack=127");
	add_sources();
	add_turns();
	if (fake.pc && !uname(&name)) {
		add_fact("kbarman.host=%s", name.nodename);
		add_fact("kbarman.release=%s", name.release);
		add_fact("kbarman.machine=%s", name.machine);
	}
	for (unsigned int cpu = 0; cpu < fake.nr_cpus; cpu++)
		fake.tables->tail.pmus[cpu] = (struct bm_protocol_header_pmu_settings){
			.midr = 7, .num_counters = 1, .counter_types = { 0x11 } };
	fake.running = true;
	if (has_objects()) {
		add_fact("kbarman.objects=1");
		first = read_waits(&object);
	}
	if (first)
		write_record(0, ticks(), first, 0, 0);
	/* As in a kernel, every CPU says at once who runs, however short the session is. */
	write_burst();
	return pthread_create(&fake.writer, NULL, write_records, NULL);
}

/* It has been running for a while. */
static int adopt(void)
{
	struct kbarman_configure began = {
		.mode = setting("FAKE_BOOT", 0) > 1 ? KBARMAN_MODE_OVERWRITE : KBARMAN_MODE_STREAM,
		.sources = KBARMAN_SOURCE_SCHED,
		.ring_bytes = 1 << 20,
		.events_ptr = (uintptr_t)fake.events,
	};
	struct kbarman_start s;

	if (!setting("FAKE_BOOT", 0)) {
		errno = ENOENT;
		return -1;
	}
	return configure(&began) ?: start(&s) ?: usleep(200000);
}

static int stop(void)
{
	if (fails("stop"))
		return -1;
	if (fake.running) {
		__atomic_store_n(&fake.stop, true, __ATOMIC_RELEASE);
		pthread_join(fake.writer, NULL);
		/* However starved this machine is, there is a record of each kind, and one of the end. */
		do {
			if (fake.patient && !has_room())
				break;
			write_burst();
		} while (fake.bursts < 2 * KINDS);
		fake.running = false;
		read_clock(&fake.stopped);
		fake.tables->start.last_timestamp = fake.stopped.timestamp;
		/* As if the clock had gone on while the machine slept. */
		add_fact("kbarman.raw_end=%" PRIu64 ",%" PRIu64, (uint64_t)fake.stopped.timestamp,
			 fake.started.raw_ns + fake.stopped.timestamp - fake.started.timestamp);
		if (fake.turned)
			add_fact("kbarman.turned=%u,%" PRIu64, fake.turned, (uint64_t)fake.stopped.timestamp);
	}
	return 0;
}

static int consume(const struct kbarman_consume *c)
{
	const uint64_t *positions = (const uint64_t *)(uintptr_t)c->positions_ptr;
	struct bm_datastore_header_data *store;
	uint64_t ignored;
	int ret = 0;

	if (c->cpu == KBARMAN_CPU_ALL && setting("FAKE_EACH", 1)) {
		if (fails("consume_each"))
			return -1;
		for (unsigned int cpu = 0; cpu < c->nr_positions && !ret; cpu++)
			if (positions[cpu] != KBARMAN_NO_POSITION)
				ret = consume(&(struct kbarman_consume){ .cpu = cpu, .position = positions[cpu] });
		return ret;
	}
	if (c->cpu >= fake.nr_cpus) {
		errno = c->nr_positions ? E2BIG : EINVAL;
		return -1;
	}
	store = fake.stores[c->cpu];
	if (fails("consume"))
		return -1;
	if (c->position < store->read_offset || c->position > store->write_offset ||
	    c->position % fake.block) {
		errno = EINVAL;
		return -1;
	}
	__atomic_store_n(&store->read_offset, c->position, __ATOMIC_RELEASE);
	/* Too early a silence is ended by the next record that finds a ring full. */
	if (__atomic_load_n(&fake.awake, __ATOMIC_ACQUIRE) &&
	    read(fake.fd, &ignored, sizeof(ignored)) > 0)
		__atomic_store_n(&fake.awake, false, __ATOMIC_RELEASE);
	return 0;
}

static int stats(struct kbarman_stats *s)
{
	unsigned int first = s->cpu == KBARMAN_CPU_ALL ? 0 : s->cpu;
	unsigned int end = s->cpu == KBARMAN_CPU_ALL ? fake.nr_cpus : s->cpu + 1;

	if (end > fake.nr_cpus) {
		errno = EINVAL;
		return -1;
	}
	pthread_mutex_lock(&fake.lock);
	for (unsigned int cpu = first; cpu < end; cpu++) {
		s->written += fake.written[cpu];
		s->bytes += fake.written[cpu] * fake.block;
		s->overwritten += fake.overwritten[cpu];
		s->lost[KBARMAN_LOST_FULL] += fake.lost[cpu];
		if (cpu == 1)
			s->stopped[KBARMAN_STOPPED_THROTTLED] += setting("FAKE_STOPS", 0);
	}
	s->missed[KBARMAN_MISSED_MAP] = setting("FAKE_MISSED", 0);
	pthread_mutex_unlock(&fake.lock);
	return 0;
}

static int add_maps(struct kbarman_add_maps *a)
{
	const struct kbarman_map_row *rows = (void *)(uintptr_t)a->rows_ptr;

	if (fails("add_maps"))
		return -1;
	for (uint32_t i = 0; i < a->count; i++) {
		if (!add_row(&rows[i])) {
			a->count = i;
			errno = ENOSPC;
			return -1;
		}
	}
	return 0;
}

static const char *string_at(uint32_t offset)
{
	return fake.tables->strings + offset;
}

static int mark_series(struct kbarman_mark_series *s)
{
	struct tail *t = &fake.tables->tail;
	unsigned int i;

	if (!fake.running) {
		errno = EAGAIN;
		return -1;
	}
	for (i = 0; i < fake.nr_series; i++)
		if (!strcmp(string_at(t->series[i].name_ptr), s->name) &&
		    !strcmp(string_at(t->charts[i].name_ptr), s->chart))
			break;
	if (i == SERIES) {
		errno = ENOSPC;
		return -1;
	}
	s->series = i;
	if (i < fake.nr_series)
		return 0;
	t->charts[i] = (struct bm_protocol_header_custom_chart){ add_string(s->chart, strlen(s->chart)),
		s->series_composition, s->rendering_type, s->chart_flags };
	t->series[i] = (struct bm_protocol_header_custom_chart_series){ i,
		add_string(s->name, strlen(s->name)), add_string(s->units, strlen(s->units)),
		add_string(s->description, strlen(s->description)), s->colour, s->multiplier,
		s->series_class, s->display, 0 };
	fake.nr_series++;
	return 0;
}

static int sessions(struct kbarman_sessions *s)
{
	const struct kbarman_session_info list[] = {
		{ .session = 2, .mode = KBARMAN_MODE_STREAM, .uid = ~0U,
		  .sources = KBARMAN_SOURCE_SCHED,
		  .state = KBARMAN_STATE_CONFIGURED | KBARMAN_STATE_RUNNING | KBARMAN_STATE_OWNED |
			   KBARMAN_STATE_HIDDEN },
		{ .session = 1, .mode = fake.config.mode, .pid = (uint32_t)getppid(),
		  .sources = fake.config.sources,
		  .uid = getuid(), .comm = "some\033thing", .started_ns = 1700000000000000000ULL,
		  .state = KBARMAN_STATE_CONFIGURED | KBARMAN_STATE_RUNNING | KBARMAN_STATE_OWNED,
		  .bytes = 3 << 20, .ring_bytes = fake.config.ring_bytes, .written = 17 },
	};
	uint32_t first = setting("FAKE_OTHERS", 0) ? 0 : 1, count = fake.tables ? 2 - first : 0;

	memcpy((void *)(uintptr_t)s->sessions_ptr, list + first,
	       (s->count < count ? s->count : count) * sizeof(list[0]));
	s->count = count;
	s->most = setting("FAKE_MOST", 8);
	s->memory = 700 << 20;
	s->memory_limit = 1000 << 20;
	return 0;
}

static int add_symbols(const struct kbarman_add_symbols *a)
{
	const char *path = getenv("FAKE_SYMBOLS");
	FILE *file = path ? fopen(path, "w") : NULL;

	if (fails("add_symbols"))
		return -1;
	if (file) {
		fwrite((const void *)(uintptr_t)a->bytes_ptr, 1, a->bytes, file);
		fclose(file);
	}
	return 0;
}

static int former(struct kbarman_former *f)
{
	struct kbarman_stamp stamp = { 0 };
	char path[PATH_MAX];
	struct stat st;
	int fd;

	if (fails("former"))
		return -1;
	errno = ENOENT;
	if (!former_path(f->number, path))
		return -1;
	fd = openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) || pread(fd, &stamp, sizeof(stamp), 0) < 0)
		return -1;
	if (f->flags & KBARMAN_FORMER_RELEASE) {
		close(fd);
		errno = ESTALE;
		return f->capture == stamp.capture ? unlink(path) : -1;
	}
	f->address = stamp.address;
	f->bytes = setting("FAKE_FORMER_BYTES", (unsigned int)st.st_size);
	f->capture = stamp.capture;
	f->began_ns = stamp.began_ns;
	f->uid = (__u32)stamp.uid;
	f->end = kbarman_stamp_end(&stamp);
	if (f->flags & KBARMAN_FORMER_OPEN)
		f->fd = fd;
	else
		close(fd);
	return 0;
}

static int fake_ioctl(unsigned long request, void *argument)
{
	struct kbarman_clock *clock = argument;
	unsigned int abi = setting("FAKE_ABI", KBARMAN_ABI);

	if (request == KBARMAN_GET_ABI) {
		((struct kbarman_get_abi *)argument)->abi = abi;
		return 0;
	}
	switch (abi == KBARMAN_ABI ? request : 0) {
	case KBARMAN_QUERY:
		return query(argument);
	case KBARMAN_CONFIGURE:
		return configure(argument);
	case KBARMAN_START:
		return start(argument);
	case KBARMAN_STOP:
		return stop();
	case KBARMAN_CONSUME:
		return consume(argument);
	case KBARMAN_STATS:
		return stats(argument);
	case KBARMAN_CLOCK:
		clock->start = fake.started;
		clock->stop = fake.stopped;
		read_clock(&clock->now);
		return 0;
	case KBARMAN_ADD_MAPS:
		return add_maps(argument);
	case KBARMAN_ADD_SYMBOLS:
		return add_symbols(argument);
	case KBARMAN_MARK_SERIES:
		return mark_series(argument);
	case KBARMAN_SESSIONS:
		return sessions(argument);
	case KBARMAN_TURN:
		return turn(argument);
	case KBARMAN_ADOPT:
		return adopt();
	case KBARMAN_FORMER:
		return former(argument);
	case KBARMAN_CHOOSE:
		fake.chosen = ((const struct kbarman_choose *)argument)->session;
		return 0;
	}
	errno = ENOTTY;
	return -1;
}

static void *fake_mmap(size_t length, off_t offset)
{
	unsigned int cpu = (unsigned int)((uint64_t)offset / (HEADER_BYTES + fake.own_bytes));
	char *at = mmap(NULL, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	mmap(at, HEADER_BYTES, PROT_READ, MAP_SHARED | MAP_FIXED, fake.memory, 0);
	return (char *)mmap(at + HEADER_BYTES, fake.own_bytes, PROT_READ, MAP_SHARED | MAP_FIXED,
			    fake.memory, (off_t)(HEADER_BYTES + cpu * fake.own_bytes)) -
	       HEADER_BYTES;
}

/* ---- what the tool calls ---- */

static void *next(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

static void begin_elsewhere(void)
{
	struct kbarman_configure config = { .mode = KBARMAN_MODE_OVERWRITE, .ring_bytes = 1 << 20,
		.sources = setting("FAKE_SOURCES", KBARMAN_SOURCE_SCHED | KBARMAN_SOURCE_IDLE) };
	struct kbarman_start begin = { 0 };

	if (setting("FAKE_STACKS", 0))
		config.flags = KBARMAN_CONFIGURE_CHAIN_USER | KBARMAN_CONFIGURE_CHAIN_STACK;
	configure(&config);
	start(&begin);
}

static int fake_open(void)
{
	fake.nr_cpus = setting("FAKE_CPUS", 2);
	fake.rate = setting("FAKE_RATE", 10);
	fake.patient = setting("FAKE_PATIENT", 0);
	fake.idle = setting("FAKE_IDLE", MAX_CPUS);
	fake.sleep = setting("FAKE_SLEEP", 0) * 1000000ULL;
	fake.pc = getenv("FAKE_PC") ? (bm_uintptr)strtoull(getenv("FAKE_PC"), NULL, 0) : 0;
	fake.block = getenv("FAKE_IMAGES") || fake.pc ? 64 : 32;
	if (fake.fd >= 0 && fcntl(fake.fd, F_GETFD) >= 0) {
		fake.second = fcntl(fake.fd, F_DUPFD_CLOEXEC, 0);
		return fake.second;
	}
	fake.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (setting("FAKE_RUNNING", 0))
		begin_elsewhere();
	return fake.fd;
}

/* A file with a number. */
static int open_number(unsigned int number)
{
	int fd = memfd_create("number", MFD_CLOEXEC);

	if (fd >= 0) {
		dprintf(fd, "%u\n", number);
		lseek(fd, 0, SEEK_SET);
	}
	return fd;
}

static bool ends_with(const char *path, const char *end)
{
	return strlen(path) >= strlen(end) && !strcmp(path + strlen(path) - strlen(end), end);
}

static void note_read(const char *path)
{
	int (*real)(const char *, int, ...) = next("open64");
	const char *log = getenv("FAKE_READS");
	int fd = log ? real(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
	char line[PATH_MAX + 1];
	int length = snprintf(line, sizeof(line), "%s\n", path);

	if (fd < 0)
		return;
	if (write(fd, line, (size_t)length) != length)
		abort();
	close(fd);
}

static FILE *fake_modules(bool same)
{
	static char text[128];
	static unsigned int times;
	int length = snprintf(text, sizeof(text), "fake%u 4096 %u - Live 0xffffffffc0000000\n",
			      same ? 0 : times, times);

	times++;
	return fmemopen(text, (size_t)length, "r");
}

/* Linux hides its addresses from who is not root. */
static FILE *fake_kallsyms(void)
{
	static char text[] = "ffffffff81000000 T _stext\nffffffff81000040 T schedule\n"
			     "ffffffff81c00000 T _etext\n";

	return fmemopen(text, sizeof(text) - 1, "r");
}

FILE *fopen64(const char *path, const char *mode)
{
	FILE *(*real)(const char *, const char *) = next("fopen64");

	if (*mode == 'r')
		note_read(path);
	if (getenv("FAKE_MODULES") && !strcmp(path, "/proc/modules"))
		return fake_modules(!strcmp(getenv("FAKE_MODULES"), "same"));
	if (getenv("FAKE_INTERRUPTS") && !strcmp(path, "/proc/interrupts"))
		path = getenv("FAKE_INTERRUPTS");
	if (geteuid() && !strcmp(path, "/proc/kallsyms"))
		return fake_kallsyms();
	return real(path, mode);
}

ssize_t readlink(const char *path, char *text, size_t size)
{
	ssize_t (*real)(const char *, char *, size_t) = next("readlink");

	if (!getenv("FAKE_NAMESPACE") || strcmp(path, "/proc/self/ns/pid") != 0)
		return real(path, text, size);
	return snprintf(text, size, "pid:[%s]", setting("FAKE_NAMESPACE", 0) ? "4026532000" : "4026531836");
}

int close(int fd)
{
	int (*real)(int) = next("close");
	const char *stop = getenv("FAKE_STOP");
	char link[64], path[PATH_MAX] = "";

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (stop && readlink(link, path, sizeof(path) - 1) > 0 && !strcmp(path, stop))
		raise(SIGSTOP);
	return real(fd);
}

static int open_by(const char *function, const char *path, int flags, int mode)
{
	int (*real)(const char *, int, ...) = next(function);

	if (ends_with(path, "/perf_event_max_sample_rate"))
		return open_number(setting("FAKE_LIMIT", 100000));
	if (ends_with(path, "/cpuinfo_max_freq"))
		return open_number(setting("FAKE_KHZ", 0));
	if (!(flags & (O_WRONLY | O_RDWR)))
		note_read(path);
	return strcmp(path, KBARMAN_DEVICE) ? real(path, flags, mode) : fake_open();
}

#define OPEN(function) \
int function(const char *path, int flags, ...) \
{ \
	va_list args; \
	int mode; \
\
	va_start(args, flags); \
	mode = va_arg(args, int); \
	va_end(args); \
	return open_by(#function, path, flags, mode); \
}

OPEN(open)		/* libz's */
OPEN(open64)

int ioctl(int fd, unsigned long request, ...)
{
	int (*real)(int, unsigned long, ...) = next("ioctl");
	va_list args;
	void *argument;

	va_start(args, request);
	argument = va_arg(args, void *);
	va_end(args);
	return fd >= 0 && (fd == fake.fd || fd == fake.second) ? fake_ioctl(request, argument) : real(fd, request, argument);
}

/* The disk, which may stall: soon after the beginning, in the middle of records. */
ssize_t pwrite64(int fd, const void *data, size_t length, off_t offset)
{
	ssize_t (*real)(int, const void *, size_t, off_t) = next("pwrite64");
	static unsigned int calls;
	unsigned int ms = setting("FAKE_STALL", 0), call = __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);

	if (call == setting("FAKE_KILL", 0))
		raise(SIGKILL);
	/* the first sync has some; behind it is the recording */
	if (ms && call == 20) {
		unsigned int until = __atomic_load_n(&fake.bursts, __ATOMIC_ACQUIRE) + ms;

		while (__atomic_load_n(&fake.bursts, __ATOMIC_ACQUIRE) < until)
			usleep(1000);
	}
	return real(fd, data, length, offset);
}

void *mmap64(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
	void *(*real)(void *, size_t, int, int, int, off_t) = next("mmap64");

	if (fd >= 0 && fd == fake.fd)
		return fake_mmap(length, offset);
	return real(address, length, protection, flags, fd, offset);
}
