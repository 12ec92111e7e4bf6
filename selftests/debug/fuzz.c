// SPDX-License-Identifier: MIT
/*
 * fuzz [CALLS]: a fuzzer of the device that knows what its calls take: 100,000
 * calls. A program is some calls on a few descriptors and maps; each word of it decides how
 * a valid argument is made wrong: a field, a size, a pointer, or the order. Where the
 * kernel tells what code a program reached (KCOV), programs that reached new code are kept,
 * and others are made from them.
 *
 * Tables are often as small as can be, and filled: with names of falling length, until the
 * last byte is taken, or with names that a hash without a salt puts into one place. Meanwhile
 * other processes, of other users, write marks and make series on descriptors that they can
 * only write to, take other names and leave children behind.
 *
 * What is checked is that a call ends, that what is told of itself afterwards fits together,
 * and that of many thousand calls each kind is accepted; the kernel's detectors check the rest.
 * SEED repeats a run. MEMORY is the parameter `memory` of the module, of memory that Linux does not use: ADDRESS,SIZE; before
 * the module is loaded, its halves get stamps of former recordings. CORPUS is a file: the programs in it are run first and kept, and those
 * that are kept in the end are left in it.
 */
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "lib/random.h"
#include "told.h"
#include "uapi/stamp.h"

#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))
#define FILES		4
#define MAPS		4
#define MAX_CALLS	24	/* of a program */
#define MAX_CORPUS	4096
#define FAMILY		96	/* names in one place of a hash: more than are looked at */
#define FAMILY_BITS	12	/* of that place: as many as the hash of small tables has, or more */
#define FILLS		200	/* names at most with which a step fills a table */
#define WRITERS		3
#define FORMER		0xf0		/* with the address: the number of a former recording */
#define ENOUGH		50000UL	/* calls, of which some of each kind are accepted */

struct step {
	uint64_t what, how;
};

struct program {
	unsigned int nr;
	struct step steps[MAX_CALLS];
};

static struct program *corpus[MAX_CORPUS];
static unsigned int nr_corpus;
static unsigned long nr_calls, nr_programs;	/* that were run */
static const char *fault;
static size_t page;

/* ---- what was accepted: ioctls by their numbers, marks by their types ---- */

#define CALL(command)	(_IOC_NR(command) - _IOC_NR(KBARMAN_QUERY))
#define MARK(type)	(CALL(KBARMAN_ADD_SYMBOLS) + 1 + (type))
#define MAP		MARK(KBARMAN_MARK_COUNTER + 1)

static const char *const kinds[] = {
	[CALL(KBARMAN_QUERY)] = "query",
	[CALL(KBARMAN_CONFIGURE)] = "configure",
	[CALL(KBARMAN_START)] = "start",
	[CALL(KBARMAN_STOP)] = "stop",
	[CALL(KBARMAN_CONSUME)] = "consume",
	[CALL(KBARMAN_STATS)] = "stats",
	[CALL(KBARMAN_CLOCK)] = "clock",
	[CALL(KBARMAN_ADD_MAPS)] = "add maps",
	[CALL(KBARMAN_MARK_STATE)] = "mark state",
	[CALL(KBARMAN_MARK_SERIES)] = "mark series",
	[CALL(KBARMAN_SESSIONS)] = "sessions",
	[CALL(KBARMAN_CHOOSE)] = "choose",
	[CALL(KBARMAN_ADOPT)] = "adopt",
	[CALL(KBARMAN_TURN)] = "turn",
	[CALL(KBARMAN_FORMER)] = "former",
	[CALL(KBARMAN_ADD_SYMBOLS)] = "add symbols",
	[MARK(KBARMAN_MARK_STRING)] = "string",
	[MARK(KBARMAN_MARK_BOOKMARK)] = "bookmark",
	[MARK(KBARMAN_MARK_CHANNEL)] = "channel",
	[MARK(KBARMAN_MARK_GROUP)] = "group",
	[MARK(KBARMAN_MARK_COUNTER)] = "counter",
	[MAP] = "map",
};
static unsigned long accepted[ARRAY_SIZE(kinds)];
static const struct kbarman_mark_state *marks;
static bool adoptable;		/* a session began with the module */
static bool formers;		/* there were recordings of a former boot */

/* As call(), and counted. */
static int counted(int fd, unsigned long command, void *argument)
{
	int error = call(fd, command, argument);

	accepted[CALL(command)] += !error;
	return error;
}

/* The number of the recording, or 0: whoever does not record accepts any mark. */
static uint32_t recording(void)
{
	return __atomic_load_n(&marks->recording, __ATOMIC_RELAXED);
}

/* What a former boot recorded, as far as the module believes it, in @bytes at @address, a half of the reserved memory. */
static void leave_former(int memory, off_t address, size_t bytes)
{
	struct kbarman_stamp stamp = { .magic = KBARMAN_STAMP_MAGIC, .capture = FORMER + address, .address = address,
				       .bytes = bytes, .end = KBARMAN_END_PANIC, .comm = "former", .text = "a panic" };

	stamp.sum = kbarman_stamp_sum(&stamp);
	stamp.end_sum = kbarman_stamp_end_sum(&stamp);
	if (pwrite(memory, &stamp, sizeof(stamp), address) != sizeof(stamp))
		lost("/dev/mem at %llx: errno %d", (unsigned long long)address, errno);
}

static void leave_formers(const char *where)
{
	char *end;
	const off_t address = strtoull(where, &end, 0);
	const size_t half = *end == ',' ? strtoull(end + 1, &end, 0) * (*end == 'M' ? KIB * KIB : 1) / 2 : 0;
	const int memory = open("/dev/mem", O_RDWR | O_CLOEXEC);

	if (memory < 0 || !half)
		lost("MEMORY=%s: /dev/mem is %d", where, memory);
	leave_former(memory, address, half);
	leave_former(memory, address + half, page);
	close(memory);
}

/* Unless others have loaded the module, it begins with a session for KBARMAN_ADOPT. */
static void module_begin(void)
{
	const char *memory = getenv("MEMORY");
	char parameters[256];

	if (!access(KBARMAN_DEVICE, F_OK))
		return;
	if (memory)
		leave_formers(memory);
	snprintf(parameters, sizeof(parameters), "boot=sched,marks%s%s", memory ? " memory=" : "", memory ?: "");
	if (module_load_with(parameters))
		lost("the module does not load");
	adoptable = true;
	formers = memory;
}

static void marks_begin(void)
{
	int fd = device_open(), word = ioctl(fd, KBARMAN_MARK_STATE, 0);

	marks = mmap(NULL, page, PROT_READ, MAP_SHARED, word, 0);
	if (marks == MAP_FAILED)
		lost("nobody says whether marks are recorded");
	close(word);
	close(fd);
}

static void each_was_accepted(void)
{
	bool all = true;
	unsigned int i;

	fputs("# accepted:", stdout);
	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (!kinds[i])
			continue;	/* a number that no ioctl has */
		if ((i == CALL(KBARMAN_ADOPT) && !adoptable) || (i == CALL(KBARMAN_FORMER) && !formers))
			continue;
		printf(" %lu %s%s", accepted[i], kinds[i], i < ARRAY_SIZE(kinds) - 1 ? "," : "\n");
		all &= accepted[i] > 0;
	}
	tap_ok(all, "no_kind_of_call_is_always_refused");
}

/* ---- the state that a program works on ---- */

static int files[FILES];		/* -1: none */
static struct {
	char *at;
	size_t length;
} maps[MAPS];
static char *edge;	/* a page that is there, and behind it one that is not */

static uint64_t more;	/* makes bits for a step that takes more than it has, the same each time */

/* Bits of a step, used up from below. */
static unsigned int take(uint64_t *bits, unsigned int n)
{
	unsigned int value;

	if (*bits < n)
		*bits = random_next(&more);
	value = *bits % n;
	*bits /= n;
	return value;
}

static uint64_t interesting(uint64_t *bits)
{
	static const uint64_t values[] = {
		0, 1, 2, 3, 7, 8, 31, 32, 33, 63, 64, 255, 4095, 4096, 4097, 65535, 65536,
		1 << 20, INT32_MAX, 0x80000000, UINT32_MAX, 1ULL << 32, INT64_MAX, 1ULL << 63,
		UINT64_MAX - 4095, UINT64_MAX };

	return values[take(bits, ARRAY_SIZE(values))];
}

/* ---- arguments ---- */

/*
 * @size bytes of a struct as the kernel is to get them: at a place where they end at the
 * edge of what is there, or one byte beyond, or nowhere.
 */
static void *placed(const void *bytes, size_t size, uint64_t *bits)
{
	char *at = edge + page - size;

	switch (take(bits, 32)) {
	case 0:
		return NULL;
	case 1:
		return (void *)(uintptr_t)interesting(bits);
	case 2:
		at += 1 + take(bits, size);
		memcpy(at, bytes, edge + page - at);
		return at;
	}
	memcpy(at, bytes, size);
	return at;
}

/* Make a word of the struct wrong, or its size, sometimes. */
static void spoil(void *bytes, size_t size, uint64_t *bits)
{
	uint32_t *words = bytes;
	uint64_t value;

	if (take(bits, 6))
		return;
	value = interesting(bits);
	if (take(bits, 4) == 0)
		words[0] = value;
	else
		words[take(bits, size / 4)] = value;
}

/* One of the format's numbers, which begin with 1. */
static unsigned int one_of(unsigned int last, uint64_t *bits)
{
	return take(bits, 32) ? 1 + take(bits, last) : take(bits, 256);
}

/* ---- names ---- */

static char family[FAMILY][8];

/*
 * Linux's full_name_hash() of less than eight bytes without a salt, where a word has 64 bits
 * and its low byte comes first: anybody can work out beforehand which names meet.
 */
static uint32_t unsalted_hash(const char *name)
{
	const uint64_t golden = UINT64_C(0x61c8864680b583eb);
	uint64_t word = 0;

	memcpy(&word, name, strlen(name));
	return word * golden * golden >> 32;
}

static void family_begin(void)
{
	unsigned int n = 0;
	uint32_t first = 0;
	uint64_t i;

	for (i = 0; n < FAMILY; i++) {
		char name[sizeof(family[0])];

		snprintf(name, sizeof(name), "%07" PRIx64, i & 0xfffffff);
		if (!n)
			first = unsalted_hash(name);
		if ((unsalted_hash(name) ^ first) & ((1 << FAMILY_BITS) - 1))
			continue;
		memcpy(family[n++], name, sizeof(name));
	}
}

/* The @i-th name of a row of them, of at most @room - 1 bytes: @row 0 is the family. */
static void make_name(char *to, size_t room, unsigned int row, unsigned int i)
{
	size_t length = 1 + (row + FILLS - i % FILLS) % (room - 1);

	if (!row) {
		snprintf(to, room, "%s", family[i % FAMILY]);
		return;
	}
	memset(to, 'a' + row % 26, length);
	to[length] = '\0';
	/* as many as can be told apart in that length */
	for (; i && length--; i /= 26)
		to[length] = 'A' + i % 26;
}

/* ---- calls ---- */

static const struct kbarman_event events[] = {
	{ .attr = { .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK }, .name = "cpu-clock" },
	{ .attr = { .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_PAGE_FAULTS }, .name = "faults" },
	{ .attr = { .type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_CPU_CYCLES }, .name = "cycles" },
	{ .attr = { .type = 77, .config = ~0ULL }, .name = "nothing" },
};

/* A quarter of them: many need others, or go without others. Now and then one that is not there. */
static uint32_t any_flags(uint64_t *bits)
{
	uint32_t flags = take(bits, 1 << 12) & take(bits, 1 << 12);

	return take(bits, 16) ? flags & KBARMAN_CONFIGURE_ALL : flags;
}

static int call_configure(int fd, uint64_t bits)
{
	static uint32_t pids[4];
	static uint64_t cpus[2] = { 3, 0 };
	/* Longer than any kernel knows. */
	static struct { struct kbarman_event event; uint64_t more[4]; } some[ARRAY_SIZE(events)];
	unsigned int i;
	struct kbarman_configure c = {
		.size = sizeof(c), .mode = take(&bits, 2),
		.sources = take(&bits, KBARMAN_SOURCE_ALL + 1) |
			(take(&bits, 2) ? KBARMAN_SOURCE_MARKS : 0),
		.flags = take(&bits, 2) ? 0 : any_flags(&bits),
		.ring_bytes = 64 * KIB << take(&bits, 3), .max_tasks = 1 << take(&bits, 10),
		.max_maps = 1 << take(&bits, 10), .max_strings = 1024 << take(&bits, 6),
		.watermark = take(&bits, 4) ? 0 : 1 << take(&bits, 20),
		.events_ptr = (uintptr_t)some, .cpus_ptr = (uintptr_t)cpus,
		.pids_ptr = (uintptr_t)pids };

	c.max_series = take(&bits, 8) ? 1 << take(&bits, 13) : 0;
	if (!take(&bits, 3)) {
		/* so small that they are full soon */
		c.max_tasks = KBARMAN_TASKS_MIN << take(&bits, 2);
		c.max_maps = 1 << take(&bits, 4);
		c.max_strings = 1024;
		c.max_series = 1 << take(&bits, 9);
	}
	/* which is nothing without marks */
	if (!(c.sources & KBARMAN_SOURCE_MARKS) && take(&bits, 16))
		c.max_series = 0;
	if (c.flags & (KBARMAN_CONFIGURE_CHAIN_USER | KBARMAN_CONFIGURE_CHAIN_KERNEL))
		c.max_stack = take(&bits, 4) ? 1 << take(&bits, 11) : 0;
	memset(some, 0, sizeof(some));
	for (i = 0; i < ARRAY_SIZE(events); i++) {
		some[i].event = events[i];
		some[i].event.flags = take(&bits, 4) ? 0 : take(&bits, 8);
		some[i].event.turn = take(&bits, 4) ? 0 : take(&bits, 3);
	}
	/* the first one is special: it samples */
	some[0].event = events[take(&bits, 8) ? 0 : take(&bits, ARRAY_SIZE(events))];
	some[0].event.attr.sample_period = 100000 << take(&bits, 8);
	c.event_bytes = sizeof(some[0]);
	pids[0] = getpid();
	pids[1] = take(&bits, 3) ? 1 : 0;
	if (c.sources & KBARMAN_SOURCE_PMU) {
		c.nr_events = 1 + (take(&bits, 4) ? take(&bits, 2) : take(&bits, 4));
		c.count_ns = take(&bits, 4) ? 0 : KBARMAN_COUNT_NS_MIN << take(&bits, 8);
	}
	/* turns, which need all of this */
	if (c.sources & KBARMAN_SOURCE_PMU && take(&bits, 2)) {
		c.sources |= KBARMAN_SOURCE_SCHED;
		c.flags |= KBARMAN_CONFIGURE_COUNT_SWITCH;
		c.nr_events = 2;
		some[0].event.turn = 0;
		some[1].event.turn = 1 + take(&bits, 2);
	}
	c.nr_cpu_words = take(&bits, 4) ? 0 : take(&bits, 3);
	c.nr_pids = take(&bits, 4) ? 0 : take(&bits, 4);
	if (take(&bits, 8) == 0)
		spoil(some, sizeof(some), &bits);
	spoil(&c, sizeof(c), &bits);
	return counted(fd, KBARMAN_CONFIGURE, placed(&c, sizeof(c), &bits));
}

static int call_add_maps(int fd, uint64_t bits)
{
	static char image[4096];
	static struct kbarman_map_row rows[4];
	struct kbarman_add_maps add = {
		.size = sizeof(add), .count = 1 + take(&bits, 4),
		.row_bytes = sizeof(rows[0]), .rows_ptr = (uintptr_t)rows };
	unsigned int i;

	memset(image, 'a' + take(&bits, 26), sizeof(image));
	for (i = 0; i < ARRAY_SIZE(rows); i++)
		rows[i] = (struct kbarman_map_row) {
			.task_id = take(&bits, 3), .image_length = 1 + take(&bits, 40),
			.base_address = (uint64_t)take(&bits, 1000) << 12, .length = 4096,
			.image_ptr = (uintptr_t)image };
	if (take(&bits, 4) == 0)
		spoil(rows, sizeof(rows), &bits);
	spoil(&add, sizeof(add), &bits);
	return counted(fd, KBARMAN_ADD_MAPS, placed(&add, sizeof(add), &bits));
}

static int call_series(int fd, uint64_t bits)
{
	struct kbarman_mark_series s = {
		.size = sizeof(s), .multiplier = 0x3ff0000000000000ULL, .chart = "chart",
		.name = "series", .units = "things" };

	s.name[0] = 'a' + take(&bits, 26);
	s.chart[0] = 'a' + take(&bits, 3);
	s.series_class = one_of(BM_SERIES_CLASS_ABSOLUTE, &bits);
	s.display = one_of(BM_SERIES_DISPLAY_MINIMUM, &bits);
	s.series_composition = one_of(BM_SERIES_LOG10, &bits);
	s.rendering_type = one_of(BM_RENDERING_BAR, &bits);
	s.chart_flags = take(&bits, 17);
	spoil(&s, sizeof(s), &bits);
	return counted(fd, KBARMAN_MARK_SERIES, placed(&s, sizeof(s), &bits));
}

/* ---- full tables ---- */

static int make_series(int fd, const char *chart, const char *name)
{
	struct kbarman_mark_series s = {
		.size = sizeof(s), .multiplier = 0x3ff0000000000000ULL, .series_class = 1,
		.display = 1, .series_composition = 1, .rendering_type = 1 };

	snprintf(s.chart, sizeof(s.chart), "%s", chart);
	snprintf(s.name, sizeof(s.name), "%s", name);
	return call(fd, KBARMAN_MARK_SERIES, &s);
}

/* Series of one chart or of one each, until a name of one byte does not fit any more. */
static void fill_series(int fd, uint64_t bits)
{
	unsigned int row = take(&bits, 8), own_chart = take(&bits, 2), n = 1 + take(&bits, FILLS), i;
	unsigned int refused = 0;
	char chart[64], name[64];

	for (i = 0; i < n && refused < 70; i++) {
		make_name(name, sizeof(name), row, i);
		make_name(chart, own_chart ? sizeof(chart) - 30 : 2, row + 1, own_chart ? i : 0);
		refused += make_series(fd, chart, name) == -ENOSPC;
	}
}

static void fill_maps(int fd, uint64_t bits)
{
	unsigned int row = take(&bits, 8), n = 1 + take(&bits, FILLS), i;
	char name[256];

	for (i = 0; i < n; i++) {
		struct kbarman_map_row map = {
			.task_id = take(&bits, 3) ? (uint32_t)getpid() : i,
			.base_address = (uint64_t)i << 12, .length = 4096, .image_ptr = (uintptr_t)name };
		struct kbarman_add_maps add = { .size = sizeof(add), .count = 1,
						.row_bytes = sizeof(map),
						.rows_ptr = (uintptr_t)&map };

		make_name(name, sizeof(name), row, i);
		map.image_length = strlen(name);
		if (call(fd, KBARMAN_ADD_MAPS, &add) && i > 20)
			break;
	}
}

/* Other names for this task, of which each needs a row and a string. */
static void fill_tasks(uint64_t bits)
{
	unsigned int row = take(&bits, 8), n = 1 + take(&bits, FILLS), i;
	char name[16];

	for (i = 0; i < n; i++) {
		make_name(name, sizeof(name), row, i);
		prctl(PR_SET_NAME, name);
	}
	prctl(PR_SET_NAME, "fuzz");
}

static void fill(int fd, uint64_t bits)
{
	switch (take(&bits, 4)) {
	case 0:
		fill_maps(fd, bits);
		break;
	case 1:
		fill_tasks(bits);
		break;
	default:
		fill_series(fd, bits);
	}
}

/* Up to where to consume: often to the end of what was written. */
static uint64_t position(int fd, uint32_t cpu, uint64_t *bits)
{
	struct kbarman_stats s = { .size = sizeof(s), .cpu = cpu };

	switch (take(bits, 4)) {
	case 0:
		return interesting(bits);
	case 1:
		return take(bits, 65536);
	}
	return call(fd, KBARMAN_STATS, &s) ? 0 : s.bytes;
}

/* The number of the session that @fd sees. */
static uint64_t session(int fd)
{
	struct kbarman_query q = { .size = sizeof(q) };

	return call(fd, KBARMAN_QUERY, &q) ? 0 : q.session;
}

static uint64_t recording_seen(int fd)
{
	struct kbarman_query q = { .size = sizeof(q) };

	return call(fd, KBARMAN_QUERY, &q) ? 0 : q.recording;
}

/* Of the structs that need no more than their fields. */
static int call_simple(int fd, unsigned int which, uint64_t bits)
{
	union {
		struct kbarman_query query;
		struct kbarman_start start;
		struct kbarman_consume consume;
		struct kbarman_stats stats;
		struct kbarman_clock clock;
		struct kbarman_sessions sessions;
		struct kbarman_choose choose;
		struct kbarman_adopt adopt;
		struct kbarman_turn turn;
		struct kbarman_add_symbols symbols;
		uint8_t more[256];
	} u = { .more = "" };
	size_t size = 0;
	unsigned long command = 0;

	switch (which) {
	case 0:
		command = KBARMAN_QUERY, size = sizeof(u.query);
		break;
	case 1:
		command = KBARMAN_START, size = sizeof(u.start);
		break;
	case 2:
		command = KBARMAN_CONSUME, size = sizeof(u.consume);
		u.consume.cpu = take(&bits, 4);
		u.consume.position = position(fd, u.consume.cpu, &bits);
		u.consume.recording = take(&bits, 2) ? recording_seen(fd) : 0;
		if (u.consume.cpu == 3)		/* done with the recording */
			u.consume.cpu = KBARMAN_CPU_ALL;
		break;
	case 3:
		command = KBARMAN_STATS, size = sizeof(u.stats);
		u.stats.cpu = take(&bits, 2) ? KBARMAN_CPU_ALL : take(&bits, 3);
		break;
	case 4:
		command = KBARMAN_CLOCK, size = sizeof(u.clock);
		break;
	case 5:
		command = KBARMAN_SESSIONS, size = sizeof(u.sessions);
		u.sessions.count = take(&bits, 8);
		u.sessions.info_bytes = sizeof(struct kbarman_session_info);
		u.sessions.sessions_ptr =
			(uintptr_t)(edge + page - 4 * sizeof(struct kbarman_session_info));
		break;
	case 6:
		command = KBARMAN_CHOOSE, size = sizeof(u.choose);
		u.choose.session = session(fd) - take(&bits, 3);
		break;
	case 7:		/* that of module_begin(), until it is adopted */
		command = KBARMAN_ADOPT, size = sizeof(u.adopt);
		u.adopt.session = take(&bits, 3);
		break;
	case 8:
		command = KBARMAN_TURN, size = sizeof(u.turn);
		u.turn.turn = take(&bits, 8) ? 1 + take(&bits, 2) : take(&bits, 64);
		break;
	case 9:
		command = KBARMAN_ADD_SYMBOLS, size = sizeof(u.symbols);
		u.symbols.bytes_ptr = (uintptr_t)edge;
		u.symbols.bytes = take(&bits, 4) ? 1 + take(&bits, page) : interesting(&bits);
		break;
	}
	/* a program with more fields, or less */
	if (!take(&bits, 4)) {
		size = 4 + take(&bits, sizeof(u));
		command = sized(command, size);
	}
	u.query.size = size;
	spoil(&u, size, &bits);
	return counted(fd, command, placed(&u, size, &bits));
}

static int call_write(int fd, uint64_t bits)
{
	char bytes[1024] = "";
	struct kbarman_mark mark;
	uint32_t before = recording();
	size_t at = 0, size;
	ssize_t done;

	do {
		mark = (struct kbarman_mark) { .size = sizeof(mark), .type = KBARMAN_MARK_COUNTER };
		if (take(&bits, 2)) {
			mark.type = take(&bits, KBARMAN_MARK_COUNTER);
			mark.text_bytes = take(&bits, 300);
		} else {
			mark.series = take(&bits, 2) ? 2 : take(&bits, 8);
		}
		spoil(&mark, sizeof(mark), &bits);
		size = sizeof(mark) + (mark.text_bytes % 300 + 7) / 8 * 8;
		memcpy(bytes + at, &mark, sizeof(mark));
		memset(bytes + at + sizeof(mark), 'x', size - sizeof(mark));
		at += size;
	} while (at + 400 < sizeof(bytes) && take(&bits, 2));
	at -= take(&bits, 4) ? 0 : take(&bits, at);
	done = write(fd, at ? placed(bytes, at, &bits) : bytes, at);
	/* the first one at least */
	if (done > 0 && before && before == recording())
		accepted[MARK(((struct kbarman_mark *)bytes)->type)]++;
	return done < 0 ? -errno : 0;
}

/* ---- maps ---- */

static void drop_map(unsigned int i)
{
	if (maps[i].at)
		munmap(maps[i].at, maps[i].length);
	maps[i].at = NULL;
}

static void make_map(int fd, unsigned int i, uint64_t bits)
{
	struct kbarman_query q = { .size = sizeof(q) };
	int protection = PROT_READ, flags = MAP_SHARED;
	uint64_t offset;
	void *at;

	if (call(fd, KBARMAN_QUERY, &q))
		return;
	offset = take(&bits, q.nr_cpus ?: 1) * q.map_stride;
	if (!take(&bits, 4))
		protection = take(&bits, 8);
	if (!take(&bits, 6))
		flags = MAP_PRIVATE;
	if (!take(&bits, 8))
		offset = interesting(&bits) & ~(page - 1);
	if (!take(&bits, 8))
		q.map_bytes = (interesting(&bits) + page) & 0xffffff000;
	drop_map(i);
	at = mmap(NULL, q.map_bytes, protection, flags, fd, offset);
	if (at == MAP_FAILED)
		return;
	if (protection & (PROT_WRITE | PROT_EXEC))
		fault = "a map that can be written or executed";
	accepted[MAP]++;
	maps[i].at = at;
	maps[i].length = q.map_bytes;
}

static void use_map(unsigned int i, uint64_t bits)
{
	char *at;
	int to;

	if (!maps[i].at)
		return;
	at = maps[i].at + take(&bits, maps[i].length / page) * page;
	switch (take(&bits, 8)) {
	case 0:
		if (!mprotect(maps[i].at, maps[i].length, PROT_READ | PROT_WRITE))
			fault = "a map that became writable";
		break;
	case 1:
		munmap(at, page);
		break;
	case 2:
		if (mremap(maps[i].at, maps[i].length, maps[i].length + page, MREMAP_MAYMOVE) !=
		    MAP_FAILED)
			fault = "a map that grew";
		break;
	case 3:
		madvise(at, page, take(&bits, 25));
		break;
	case 4:
		/* writing to it by way of the kernel */
		to = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
		if (pwrite(to, "x", 1, (off_t)(uintptr_t)at) == 1)
			fault = "a map that was written to";
		close(to);
		break;
	default:
		to = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
		(void)!pread(to, edge, page, (off_t)(uintptr_t)at);
		close(to);
	}
}

/* ---- coverage ---- */

#define KCOV_INIT_TRACE	_IOR('c', 1, unsigned long)
#define KCOV_ENABLE	_IO('c', 100)
#define KCOV_TRACE_PC	0
#define KCOV_WORDS	(64 << 10)
#define SEEN_BITS	20

static unsigned long *trace;	/* NULL: the kernel has no KCOV */
static uint8_t seen[1 << SEEN_BITS];
static unsigned long places;

static void coverage_begin(void)
{
	int fd = open("/sys/kernel/debug/kcov", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return;
	if (ioctl(fd, KCOV_INIT_TRACE, KCOV_WORDS))
		lost("KCOV gives no trace");
	trace = mmap(NULL, KCOV_WORDS * sizeof(*trace), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (trace == MAP_FAILED || ioctl(fd, KCOV_ENABLE, KCOV_TRACE_PC))
		lost("KCOV does not trace");
}

/* True: the program came to a place where none was before. */
static bool covered_more(void)
{
	unsigned long before = places, i, n;

	if (!trace)
		return false;
	n = __atomic_load_n(&trace[0], __ATOMIC_RELAXED);
	for (i = 0; i < n && i < KCOV_WORDS - 1; i++) {
		uint32_t slot = trace[i + 1] * UINT64_C(0x9e3779b97f4a7c15) >> (64 - SEEN_BITS);

		places += !seen[slot];
		seen[slot] = 1;
	}
	__atomic_store_n(&trace[0], 0, __ATOMIC_RELAXED);
	return places != before;
}

/* ---- calls and programs ---- */

static void reopen(unsigned int i, uint64_t bits)
{
	static const int modes[] = { O_RDONLY, O_RDWR, O_RDWR, O_RDWR, O_WRONLY };
	int mode = modes[take(&bits, ARRAY_SIZE(modes))];

	if (files[i] >= 0)
		close(files[i]);
	files[i] = open(KBARMAN_DEVICE, mode | O_CLOEXEC | (take(&bits, 2) ? O_NONBLOCK : 0));
}

/* The first ones of their kinds, of 64. */
enum { CONFIGURES = 3, STARTS = 11, MAKES_SERIES = 23, WRITES = 27, FILLS_TABLE = 53,
       TURNS = 55, CONSUMES = 57 };

/* Two have the right number only seldom: what is released is gone. */
static void call_former(int fd, uint64_t bits)
{
	struct kbarman_former known = { .size = sizeof(known), .number = take(&bits, 4) }, former = known;
	char some[64];

	if (!call(fd, KBARMAN_FORMER, &known) && !take(&bits, 4096))
		former.capture = known.capture;
	former.flags = take(&bits, 8) ? KBARMAN_FORMER_OPEN : take(&bits, 8);
	former.fd = -1;
	spoil(&former, sizeof(former), &bits);
	if (counted(fd, KBARMAN_FORMER, placed(&former, sizeof(former), &bits)))
		return;
	memcpy(&former, edge + page - sizeof(former), sizeof(former));
	if (former.fd < 0)
		return;
	(void)!pread(former.fd, some, take(&bits, sizeof(some)), interesting(&bits));
	lseek(former.fd, interesting(&bits), take(&bits, 5));
	(void)!read(former.fd, take(&bits, 8) ? some : NULL, sizeof(some));
	close(former.fd);
}

/* With the first descriptor a program gets furthest. */
#define FIRST_FILE	64

static void any_call(struct step s)
{
	unsigned int kind, i, m;
	struct pollfd p = { .events = POLLIN | POLLOUT };
	char byte;
	int fd;

	more = s.what;
	kind = take(&s.what, 64);
	i = take(&s.what, 2) ? 0 : take(&s.what, FILES);
	m = take(&s.what, MAPS);
	if (files[i] < 0)
		reopen(i, s.what);
	switch (kind) {
	case 0 ... 2:
		reopen(i, s.how);
		break;
	case CONFIGURES ... 10:
		call_configure(files[i], s.how);
		break;
	case STARTS ... 14:
		call_simple(files[i], 1, s.how);
		break;
	case 15 ... 17:
		counted(files[i], KBARMAN_STOP, take(&s.how, 8) ? NULL : &byte);
		break;
	case 18 ... 22:
		call_add_maps(files[i], s.how);
		break;
	case MAKES_SERIES ... 26:
		call_series(files[i], s.how);
		break;
	case WRITES ... 33:
		call_write(files[i], s.how);
		break;
	case 34 ... 38:
		make_map(files[i], m, s.how);
		break;
	case 39 ... 44:
		use_map(m, s.how);
		break;
	case 45:
		drop_map(m);
		break;
	case 46:
		call_former(files[i], s.how);
		break;
	case 47 ... 48:
		p.fd = files[i];
		poll(&p, 1, 0);
		break;
	case 49:
		(void)!read(files[i], &byte, 1);
		lseek(files[i], s.how, take(&s.how, 3));
		break;
	case 50:
		call(files[i], s.how, edge);
		break;
	case 51:
		fd = ioctl(files[i], KBARMAN_MARK_STATE, take(&s.how, 8) ? NULL : &byte);
		if (fd < 0)
			break;
		accepted[CALL(KBARMAN_MARK_STATE)]++;
		close(fd);
		break;
	case FILLS_TABLE:
		fill(files[i], s.how);
		break;
	case 52:
		/* work, for what records */
		usleep(take(&s.how, 3000));
		break;
	case TURNS:
		call_simple(files[i], 8, s.how);
		break;
	case 56:
		call_simple(files[i], 9, s.how);
		break;
	default:
		call_simple(files[i], kind % 7 ? 1 + kind % 7 : 0, s.how);
	}
}

/* ---- many writers ---- */

static pid_t writers[WRITERS];

/* Some marks in one write(), to series that there may be. */
static void write_some(int fd, uint64_t *state)
{
	uint64_t bits = random_next(state), bytes[128] = { 0 };
	unsigned int n = 1 + take(&bits, 4), i;
	size_t at = 0;

	for (i = 0; i < n; i++) {
		struct kbarman_mark mark = { .size = sizeof(mark), .type = take(&bits, 5) };

		if (mark.type == KBARMAN_MARK_COUNTER)
			mark.series = take(&bits, 64);
		else
			mark.text_bytes = take(&bits, 200);
		memcpy((char *)bytes + at, &mark, sizeof(mark));
		memset((char *)bytes + at + sizeof(mark), 'w', mark.text_bytes);
		at += sizeof(mark) + (mark.text_bytes + 7) / 8 * 8;
	}
	(void)!write(fd, bytes, at);
}

/* Another user, whom the mode of the device does not stop. */
static bool become(uid_t user)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2] = { { .effective = 1 << CAP_DAC_OVERRIDE,
						    .permitted = 1 << CAP_DAC_OVERRIDE } };

	return !prctl(PR_SET_KEEPCAPS, 1) && !setresuid(user, user, user) &&
	       !syscall(SYS_capset, &header, data);
}

/* One that may do no more than write: never a recorder. It goes on until it is killed. */
static void write_on(unsigned int number, uint64_t state, pid_t parent)
{
	int fd = -1;

	signal(SIGUSR1, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	/* Two of them are one user. What root may write is left to the programs. */
	if (!become(1000 + number / 2))
		_exit(1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (getppid() == parent) {
		uint64_t bits = random_next(&state);
		char chart[64], name[64];
		pid_t child;

		more = state;
		if (fd < 0 || !take(&bits, 32)) {
			if (fd >= 0)
				close(fd);
			fd = open(KBARMAN_DEVICE, O_WRONLY | O_CLOEXEC);
		}
		switch (take(&bits, 8)) {
		case 0:
			make_name(chart, take(&bits, 2) ? 2 : sizeof(chart), take(&bits, 4), bits % 7);
			make_name(name, sizeof(name), take(&bits, 6), bits % FILLS);
			make_series(fd, chart, name);
			break;
		case 1:
			fill_series(fd, bits);
			break;
		case 2:
			make_name(name, 16, take(&bits, 4), bits % FILLS);
			prctl(PR_SET_NAME, name);
			break;
		case 3:
			child = fork();
			if (!child)
				_exit(0);
			if (child > 0)
				waitpid(child, NULL, 0);
			break;
		default:
			write_some(fd, &state);
		}
		usleep((200 + bits % 2000) * SLOWNESS);	/* the programs have the CPU, too */
	}
	_exit(0);
}

static void writers_begin(void)
{
	pid_t parent = getpid();
	unsigned int i;

	/* Whom a writer leaves behind is waited for, too: it has the device open. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	for (i = 0; i < WRITERS; i++) {
		uint64_t seed = random_u64();

		fflush(stdout);
		writers[i] = fork();
		if (!writers[i])
			write_on(i, seed, parent);
	}
}

static void writers_end(void)
{
	unsigned int i;
	int status;

	for (i = 0; i < WRITERS; i++) {
		if (writers[i] <= 0)
			continue;
		kill(writers[i], SIGKILL);
		waitpid(writers[i], &status, 0);
		if (!fault && WIFEXITED(status))
			fault = "a writer that ended before the others";
	}
	while (wait(&status) > 0)
		;
}

/* What the device says of itself fits together: asked now and then, as no call is dearer. */
static void look_back(void)
{
	struct kbarman_stats s = { .size = sizeof(s), .cpu = KBARMAN_CPU_ALL };
	struct kbarman_query q;
	int fd;

	if (nr_programs % 8)
		return;
	fd = device_open();
	q = query(fd);
	if (q.state & KBARMAN_STATE_RUNNING && !(q.state & KBARMAN_STATE_CONFIGURED))
		fault = "a session that runs and is not configured";
	if (q.state & KBARMAN_STATE_CONFIGURED) {
		/* Another's session may end meanwhile: nothing is written then. */
		if (!call(fd, KBARMAN_STATS, &s) && s.written < s.overwritten)
			fault = "more overwritten than written";
		if (q.map_bytes < q.header_bytes + q.ring_bytes)
			fault = "a map that is shorter than what is in it";
	}
	close(fd);
}

static void close_all(void)
{
	unsigned int i;

	for (i = 0; i < FILES; i++) {
		if (files[i] >= 0)
			close(files[i]);
		files[i] = -1;
	}
	for (i = 0; i < MAPS; i++)
		drop_map(i);
}

/*
 * Where the kernel tells what it reached, each program begins anew. Elsewhere most go on with
 * what those before them left: sessions take longer then, and to begin one is what takes time.
 */
static void run(const struct program *program)
{
	unsigned int i;

	nr_calls += program->nr;
	nr_programs++;
	for (i = 0; i < program->nr && !fault; i++)
		any_call(program->steps[i]);
	look_back();
	if (trace || !random_below(16))
		close_all();
}

/* Much is refused unless somebody records: so most programs begin like a recorder. */
static void begin_recording(struct program *program)
{
	unsigned int first[] = { CONFIGURES, STARTS, MAKES_SERIES, WRITES, CONSUMES };
	unsigned int i;

	if (!random_below(4))
		first[2] = FILLS_TABLE;
	if (random_below(2))
		first[4] = TURNS;
	for (i = 0; i < ARRAY_SIZE(first) && i < program->nr; i++)
		program->steps[i].what = (program->steps[i].what & -128ULL) | FIRST_FILE | first[i];
}

static void new_program(struct program *program)
{
	const struct program *from = nr_corpus ? corpus[random_below(nr_corpus)] : NULL;
	unsigned int i, changes;

	if (!from || random_below(4) == 0) {
		program->nr = 1 + random_below(MAX_CALLS);
		for (i = 0; i < program->nr; i++)
			program->steps[i] = (struct step) { random_u64(), random_u64() };
		if (random_below(4))
			begin_recording(program);
		return;
	}
	*program = *from;
	for (changes = 1 + random_below(4); changes; changes--) {
		i = random_below(program->nr);
		switch (random_below(4)) {
		case 0:
			program->steps[i].how = random_u64();
			break;
		case 1:
			program->steps[i] = (struct step) { random_u64(), random_u64() };
			break;
		case 2:
			if (program->nr < MAX_CALLS)
				program->steps[program->nr++] =
					(struct step) { random_u64(), random_u64() };
			break;
		case 3:
			program->steps[i].how ^= 1ULL << random_below(64);
		}
	}
}

/* ---- programs that are kept ---- */

static void keep(const struct program *program)
{
	if (nr_corpus == MAX_CORPUS)
		return;
	corpus[nr_corpus] = malloc(sizeof(*program));
	*corpus[nr_corpus++] = *program;
}

/* What an earlier run kept, on whatever kernel. */
static void corpus_read(const char *path)
{
	struct program program;
	FILE *f = fopen(path, "r");

	if (!f)
		return;
	while (!fault && fread(&program, sizeof(program), 1, f) == 1) {
		if (program.nr < 1 || program.nr > MAX_CALLS)
			lost("CORPUS is none");
		run(&program);
		covered_more();
		keep(&program);
	}
	fclose(f);
}

static void corpus_write(const char *path)
{
	FILE *f = fopen(path, "w");
	unsigned int i;

	for (i = 0; f && i < nr_corpus; i++)
		fwrite(corpus[i], sizeof(*corpus[i]), 1, f);
	if (!f || fclose(f))
		lost("CORPUS can't be written");
}

int main(int argc, char **argv)
{
	unsigned long wanted = argc > 1 ? strtoul(argv[1], NULL, 0) : 100000;
	const char *path = getenv("CORPUS");
	unsigned long told = 10000;	/* the number of calls at which it says how far it is */
	time_t begin = time(NULL);
	struct program program;
	unsigned int i;

	random_start();
	module_begin();
	page = sysconf(_SC_PAGESIZE);
	edge = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (edge == MAP_FAILED || munmap(edge + page, page))
		lost("no memory");
	for (i = 0; i < FILES; i++)
		files[i] = -1;
	family_begin();
	marks_begin();
	writers_begin();
	coverage_begin();
	if (path)
		corpus_read(path);
	told_begin(&nr_calls);
	while (nr_calls < wanted && !fault && !told_to_end) {
		if (nr_calls >= told) {
			tap_note("%lu calls after %ld s", nr_calls, (long)(time(NULL) - begin));
			told += 10000;
		}
		new_program(&program);
		run(&program);
		if (covered_more())
			keep(&program);
	}
	close_all();
	writers_end();
	if (path)
		corpus_write(path);
	tap_note("%lu calls in %lu programs; %lu places reached, %u programs kept%s",
		 nr_calls, nr_programs, places, nr_corpus, trace ? "" : " (no KCOV)");
	if (!tap_ok(!fault, "no_sequence_of_calls_breaks_the_device"))
		tap_note("%s", fault);
	/* In few calls, or with others' sessions in its way, it may not have come to all of them. */
	if (!told_to_end && nr_calls >= ENOUGH)
		each_was_accepted();
	munmap((void *)marks, page);
	return told_done();
}
