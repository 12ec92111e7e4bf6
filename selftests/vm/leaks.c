// SPDX-License-Identifier: MIT
/*
 * What nobody may see: addresses of the kernel, without CAP_SYSLOG; memory that was others'
 * before; the session before this one. All that the module shows of a session of everything
 * is searched, byte by byte, whatever the format says is there.
 */
#include <dirent.h>
#include <stddef.h>
#include <sys/sysinfo.h>

#include "kselftest_harness.h"
#include "lib.h"

#define POISON		0x736563726574215aULL
#define MAX_RANGES	256

/* ---- what the kernel's addresses are ---- */

static struct range {
	uint64_t first, last;
} ranges[MAX_RANGES];
static unsigned int nr_ranges;

static void add_range(uint64_t first, uint64_t last)
{
	if (first >> 63 && last > first && nr_ranges < MAX_RANGES)
		ranges[nr_ranges++] = (struct range) { first, last };
}

/* The kernel's image, its modules, and its vmalloc memory, where captures are too. */
static void find_ranges(void)
{
	unsigned long long first = 0, at, to, size;
	char line[512], name[128], restricted[16];
	FILE *file;

	read_file(KPTR_RESTRICT, restricted, sizeof(restricted));
	write_file(KPTR_RESTRICT, "0");
	file = fopen("/proc/kallsyms", "r");
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%llx %*c %127s", &at, name) != 2)
			continue;
		if (!strcmp(name, "_stext"))
			first = at;
		if (!strcmp(name, "_end"))
			add_range(first, at);
	}
	if (file)
		fclose(file);
	file = fopen("/proc/modules", "r");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "%*s %llu %*s %*s %*s %llx", &size, &at) == 2)
			add_range(at, at + size);
	if (file)
		fclose(file);
	file = fopen("/proc/vmallocinfo", "r");
	while (file && fgets(line, sizeof(line), file))
		if (strstr(line, "kbarman") && sscanf(line, "0x%llx-0x%llx", &at, &to) == 2)
			add_range(at, to);
	if (file)
		fclose(file);
	write_file(KPTR_RESTRICT, restricted);
	if (!first)
		lost("no _stext in /proc/kallsyms");
}

static bool is_address(uint64_t value)
{
	unsigned int i;

	if (!(value >> 63))
		return false;
	for (i = 0; i < nr_ranges; i++)
		if (value >= ranges[i].first && value < ranges[i].last)
			return true;
	return false;
}

/*
 * How many addresses of the kernel are in it: those in known ranges at any byte; and at
 * every fourth all that may be one, of the linear map for instance. Small negative numbers
 * are none.
 */
static unsigned int count_addresses(const void *bytes, size_t length)
{
	const char *at = bytes;
	unsigned int count = 0;
	uint64_t value;
	size_t i;

	for (i = 0; i + sizeof(value) <= length; i++) {
		memcpy(&value, at + i, sizeof(value));
		if (value >> 63 &&
		    (is_address(value) || (i % 4 == 0 && value >= 0xffff000000000000ULL &&
					   value < 0xffffff0000000000ULL)))
			count++;
	}
	return count;
}

/* ---- a session of everything ---- */

static void busy_in_the_kernel(void)
{
	static char bytes[1 << 16];
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + 300 * 1000000ULL;
	int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	while (clock_ns(CLOCK_MONOTONIC) < end)
		if (read(zero, bytes, sizeof(bytes)) < 0)
			lost("no bytes of zero");
	close(zero);
}

static void load_other_module(void)
{
	int other = open("minix.ko", O_RDONLY | O_CLOEXEC);

	if (other < 0)
		return;
	if (syscall(SYS_finit_module, other, "", 0))
		lost("the other module does not load");
	close(other);
	syscall(SYS_delete_module, "minix", O_NONBLOCK);
}

static void record_everything(int fd)
{
	uint32_t features = query(fd).features, flags = 0;
	struct kbarman_configure c = {
		.sources = KBARMAN_SOURCE_ALL, .nr_events = 1,
		.events_ptr = sampled(&cpu_clock, 1, 1000000), .ring_bytes = MIB, .max_tasks = 1024,
		.max_maps = 4096, .max_strings = 256 * KIB };

	if (features & KBARMAN_FEATURE_CHAIN_USER)
		flags |= KBARMAN_CONFIGURE_CHAIN_USER;
	if (features & KBARMAN_FEATURE_CHAIN_KERNEL)
		flags |= KBARMAN_CONFIGURE_CHAIN_KERNEL;
	if (features & KBARMAN_FEATURE_CHAIN_STACK)
		flags |= KBARMAN_CONFIGURE_CHAIN_STACK;
	c.flags = KBARMAN_CONFIGURE_COUNT_SWITCH | (flags ? flags | KBARMAN_CONFIGURE_CHAIN_SWITCH : 0);
	if (configure(fd, c) || start(fd))
		lost("no session of everything");
	ping_pong(0, 100);
	busy_in_the_kernel();
	load_other_module();
	if (stop(fd))
		lost("no stop");
}

/*
 * A copy of @map in which all rows and records are of the time 0: for 65 us of every 4 s the
 * lower half of a time in nanoseconds looks like the upper one of an address. And so do two bytes of
 * a series' colour, which is all ones.
 */
static void *without_lookalikes(const void *map, size_t length)
{
	char *copy = malloc(length);
	struct bm_protocol_header_task_info *tasks;
	struct bm_protocol_header_mmap_layout *maps;
	struct bm_protocol_header_custom_chart_series *series;
	struct walk walk;
	const union record *r;
	uint32_t i;

	if (!copy)
		lost("no memory");
	memcpy(copy, map, length);
	tasks = (void *)capture_tasks(copy);
	for (i = 0; i < *capture_task_count(copy); i++)
		tasks[i].timestamp = 0;
	maps = (void *)capture_maps(copy);
	for (i = 0; i < *capture_map_count(copy); i++)
		maps[i].timestamp = 0;
	series = (void *)capture_series(copy);
	for (i = 0; i < capture_header(copy)->config_constants.num_custom_counters; i++)
		series[i].colour = 0;
	walk = walk_begin(copy);
	while ((r = walk_next(&walk)))
		((union record *)r)->header.timestamp = 0;
	return copy;
}

static unsigned int addresses_in_maps(int fd)
{
	struct kbarman_query q = query(fd);
	unsigned int count = 0;
	uint32_t cpu;

	for (cpu = 0; cpu < q.nr_cpus; cpu++) {
		const void *map = try_map(fd, &q, cpu);

		if (map != MAP_FAILED) {
			void *copy = without_lookalikes(map, q.map_bytes);

			count += count_addresses(copy, q.map_bytes);
			free(copy);
		}
	}
	return count;
}

FIXTURE(addresses)
{
	int fd;
	char restricted[16], paranoid[16];
};

FIXTURE_VARIANT(addresses)
{
	bool may;
};

FIXTURE_VARIANT_ADD(addresses, with_syslog) { .may = true };
FIXTURE_VARIANT_ADD(addresses, without_syslog) { .may = false };

FIXTURE_SETUP(addresses)
{
	module_want();
	if (sizeof(long) < 8)
		SKIP(skip_test(), "32 bits are too few to tell an address from a number");
	find_ranges();
	if (!nr_ranges)
		SKIP(skip_test(), "this kernel's addresses are small numbers");
	/* What others are allowed to show is another matter. */
	read_file(KPTR_RESTRICT, self->restricted, sizeof(self->restricted));
	read_file(PARANOID, self->paranoid, sizeof(self->paranoid));
	write_file(KPTR_RESTRICT, "0");
	write_file(PARANOID, "-1");
	set_capabilities(ALL_CAPABILITIES & ~(variant->may ? 0 : CAPABILITY(CAP_SYSLOG)),
			 ALL_CAPABILITIES);
	self->fd = device_open_free();
	record_everything(self->fd);
}

FIXTURE_TEARDOWN(addresses)
{
	set_capabilities(ALL_CAPABILITIES, ALL_CAPABILITIES);
	write_file(KPTR_RESTRICT, self->restricted);
	write_file(PARANOID, self->paranoid);
	close(self->fd);
}

/* With the right they are there: so the search finds what there is. */
TEST_F(addresses, captures_have_them_only_with_syslog)
{
	set_capabilities(ALL_CAPABILITIES, ALL_CAPABILITIES);
	/* by now the capture itself has an address too */
	nr_ranges = 0;
	find_ranges();
	EXPECT_EQ(variant->may, addresses_in_maps(self->fd) > 0)
		TH_LOG("%u addresses", addresses_in_maps(self->fd));
}

TEST_F(addresses, answers_never_have_them)
{
	struct kbarman_query q = query(self->fd);
	struct kbarman_stats s = stats(self->fd, KBARMAN_CPU_ALL);
	struct kbarman_clock c = clocks(self->fd);
	int word = ioctl(self->fd, KBARMAN_MARK_STATE, 0);
	const void *map = mmap(NULL, q.page_size, PROT_READ, MAP_SHARED, word, 0);

	ASSERT_NE(MAP_FAILED, map);
	EXPECT_EQ(0, count_addresses(&q, sizeof(q)));
	EXPECT_EQ(0, count_addresses(&s, sizeof(s)));
	EXPECT_EQ(0, count_addresses(&c, sizeof(c)));
	EXPECT_EQ(0, count_addresses(map, q.page_size));
}

/* Words of hexadecimal digits in a text that are addresses of the kernel. */
static unsigned int addresses_in_text(const char *text)
{
	unsigned int count = 0;
	size_t digits;

	for (; *text; text += digits ? digits : 1) {
		digits = strspn(text, "0123456789abcdefABCDEF");
		count += digits == 16 && strtoull(text, NULL, 16) >= 0xffff000000000000ULL;
	}
	return count;
}

static unsigned int addresses_in_file(const char *path)
{
	static char text[1 << 16];
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	unsigned int count = 0;
	ssize_t got;

	while (fd >= 0 && (got = read(fd, text, sizeof(text) - 1)) > 0) {
		text[got] = 0;
		count += addresses_in_text(text);
	}
	if (fd >= 0)
		close(fd);
	return count;
}

/* Not in its directories, of which sections/ is the kernel's own and for its debuggers. */
static unsigned int addresses_in_directory(const char *path, unsigned int *files)
{
	char name[512];
	struct dirent *entry;
	DIR *dir = opendir(path);
	unsigned int count = 0;

	while (dir && (entry = readdir(dir))) {
		if (entry->d_type != DT_REG)
			continue;
		snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
		count += addresses_in_file(name);
		++*files;
	}
	if (dir)
		closedir(dir);
	return count;
}

TEST_F(addresses, files_and_messages_never_have_them)
{
	unsigned int files = 0;
	char path[64], message[8192];
	ssize_t got;
	int log;

	EXPECT_EQ(0, addresses_in_directory("/sys/module/kbarman", &files));
	EXPECT_EQ(0, addresses_in_directory("/sys/module/kbarman/parameters", &files));
	EXPECT_EQ(0, addresses_in_directory("/sys/class/misc/kbarman", &files));
	EXPECT_LT(3, files);
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", self->fd);
	EXPECT_EQ(0, addresses_in_file(path));
	/* a message a read */
	log = open("/dev/kmsg", O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	while (log >= 0 && ((got = read(log, message, sizeof(message) - 1)) > 0 ||
			    (got < 0 && errno == EPIPE))) {
		message[got > 0 ? got : 0] = 0;
		if (strstr(message, "kbarman")) {
			EXPECT_EQ(0, addresses_in_text(message))
				TH_LOG("%s", message);
		}
	}
	close(log);
}

/* ---- memory that was others' ---- */

/* Fill a good part of the machine's free memory, and give it back. */
static void poison_memory(void)
{
	uint64_t *at, *end;
	struct sysinfo info;
	size_t bytes;
	pid_t child;
	int status;

	if (sysinfo(&info))
		lost("no sysinfo");
	bytes = (size_t)info.freeram * info.mem_unit / 4 * 3;
	if (bytes > 256 * MIB)
		bytes = 256 * MIB;
	child = fork();
	if (!child) {
		at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (at == MAP_FAILED)
			_exit(1);
		for (end = at + bytes / 8; at < end; at++)
			*at = POISON;
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child || status)
		lost("no memory to poison");
}

/* How many words of it are not zero, and of them poison. */
static void count_words(const void *bytes, size_t length, size_t *others, size_t *poison)
{
	const uint64_t *at = bytes, *end = at + length / 8;

	for (; at < end; at++) {
		*others += *at != 0;
		*poison += *at == POISON;
	}
}

FIXTURE(memory)
{
	int fd;
};

FIXTURE_SETUP(memory)
{
	self->fd = device_open_free();
}

FIXTURE_TEARDOWN(memory)
{
	close(self->fd);
}

/* Where nobody wrote yet. */
static size_t words_in_unused(const void *map, size_t *poison)
{
	const struct bm_protocol_header_start *h = map;
	const struct bm_protocol_config_values *max = &h->config_constants;
	const char *unused = capture_strings(map) + ((h->string_table_length + 7) & ~7UL);
	const struct bm_kbarman_tasks *pages = capture_task_pages(map);
	size_t others = 0;

	count_words(unused, (const char *)pages - unused, &others, poison);
	count_words((const char *)pages + pages->size, (size_t)pages->count * pages->element_size,
		    &others, poison);
	count_words(capture_tasks(map), max->max_task_infos * sizeof(*capture_tasks(map)),
		    &others, poison);
	count_words(capture_maps(map), max->max_mmap_layout * sizeof(*capture_maps(map)),
		    &others, poison);
	count_words(capture_store(map) + 1, capture_store(map)->buffer_length, &others, poison);
	return others;
}

/* What memory is free next held the pattern a moment ago. */
TEST_F(memory, a_new_capture_shows_zeros)
{
	struct kbarman_configure c = {
		.sources = KBARMAN_SOURCE_SCHED, .ring_bytes = sizeof(long) < 8 ? 8 * MIB : 32 * MIB };
	size_t poison = 0, others = 0;
	uint32_t cpu;

	poison_memory();
	ASSERT_EQ(0, configure(self->fd, c));
	for (cpu = 0; cpu < query(self->fd).nr_cpus; cpu++)
		others += words_in_unused(map_cpu(self->fd, cpu), &poison);
	EXPECT_EQ(0, poison);
	EXPECT_EQ(0, others);
}

/* In what records are made of, and between them. */
TEST_F(memory, a_recording_has_nothing_of_what_was_there)
{
	size_t poison = 0, others = 0;
	struct kbarman_query q;
	uint32_t cpu;

	poison_memory();
	record_everything(self->fd);
	q = query(self->fd);
	for (cpu = 0; cpu < q.nr_cpus; cpu++) {
		struct judgement j = judge_cpu(self->fd, cpu);

		EXPECT_EQ(NULL, j.fault) TH_LOG("CPU %u: %s", cpu, j.fault);
		count_words(map_cpu(self->fd, cpu), q.map_bytes, &others, &poison);
	}
	EXPECT_LT(0, others);
	EXPECT_EQ(0, poison);
}

TEST_F(memory, a_new_session_shows_nothing_of_the_one_before)
{
	struct kbarman_configure c = { .sources = KBARMAN_SOURCE_SCHED, .ring_bytes = MIB,
				       .target_name = "earlier-one" };
	struct kbarman_map_row row = {
		.task_id = 4711, .image_length = 11, .base_address = 0x400000, .length = 0x1000,
		.image_ptr = (uintptr_t)"earlier-one" };
	struct kbarman_add_maps m = { .size = sizeof(m), .count = 1,
				      .row_bytes = sizeof(row), .rows_ptr = (uintptr_t)&row };
	struct kbarman_query q;
	uint32_t cpu;

	prctl(PR_SET_NAME, "earlier-one");
	ASSERT_EQ(0, configure(self->fd, c));
	ASSERT_EQ(0, start(self->fd));
	ASSERT_EQ(0, call(self->fd, KBARMAN_ADD_MAPS, &m));
	ping_pong(0, 1000);
	ASSERT_EQ(0, stop(self->fd));
	q = query(self->fd);
	EXPECT_NE(NULL, memmem(map_cpu(self->fd, 0), q.map_bytes, "earlier-one", 11));
	prctl(PR_SET_NAME, "later-one");

	strcpy(c.target_name, "later-one");
	ASSERT_EQ(0, configure(self->fd, c));
	for (cpu = 0; cpu < q.nr_cpus; cpu++) {
		const void *map = map_cpu(self->fd, cpu);
		size_t poison = 0;

		EXPECT_EQ(NULL, memmem(map, q.map_bytes, "earlier-one", 11));
		EXPECT_EQ(0, words_in_unused(map, &poison));
	}
}

TEST_HARNESS_MAIN
