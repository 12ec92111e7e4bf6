// SPDX-License-Identifier: MIT
/* Marks: who may write them, that they can do nothing else, and what becomes of them. */
#include <stddef.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "kselftest_harness.h"
#include "lib.h"

#define MANY	2000

static const struct kbarman_configure only_marks = {
	.sources = KBARMAN_SOURCE_MARKS, .max_series = 8 };

struct text_mark {
	struct kbarman_mark mark;
	char text[KBARMAN_MARK_TEXT_MAX + 9];
};

static struct text_mark make(uint32_t type, const char *text)
{
	struct text_mark m = { .mark = { .size = sizeof(m.mark), .type = type } };

	m.mark.text_bytes = strlen(text);
	memcpy(m.text, text, m.mark.text_bytes);
	return m;
}

/* As write(), but -errno. */
static ssize_t put(int fd, const struct text_mark *m)
{
	ssize_t n = write(fd, m, m->mark.size + m->mark.text_bytes);

	return n < 0 ? -errno : n;
}

static ssize_t put_text(int fd, uint32_t type, const char *text)
{
	struct text_mark m = make(type, text);

	return put(fd, &m);
}

static struct kbarman_mark_series series_of(const char *chart, const char *name)
{
	struct kbarman_mark_series s = {
		.size = sizeof(s), .colour = BM_SERIES_COLOUR_AUTOMATIC,
		.multiplier = 0x3ff0000000000000ULL,
		.series_class = BM_SERIES_CLASS_ABSOLUTE, .display = BM_SERIES_DISPLAY_AVERAGE,
		.series_composition = BM_SERIES_OVERLAY, .rendering_type = BM_RENDERING_LINE,
		.chart_flags = BM_CHART_PERCENTAGE, .units = "frogs", .description = "in the pond" };

	strcpy(s.chart, chart);
	strcpy(s.name, name);
	return s;
}

static int define(int fd, const char *chart, const char *name)
{
	struct kbarman_mark_series s = series_of(chart, name);
	int error = call(fd, KBARMAN_MARK_SERIES, &s);

	return error ?: (int)s.series;
}

static int put_value(int fd, uint32_t series, uint64_t value)
{
	struct kbarman_mark m = { .size = sizeof(m), .type = KBARMAN_MARK_COUNTER,
				  .series = series, .value = value };

	return write(fd, &m, sizeof(m)) < 0 ? -errno : 0;
}

/* A descriptor for marks that @user opened. */
static int open_as(uid_t user)
{
	int fd;

	if (chmod(KBARMAN_DEVICE, 0622) || setresuid(user, user, 0))
		lost("user %u is not to be had", user);
	fd = open(KBARMAN_DEVICE, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		lost("user %u can't open the device", user);
	if (setresuid(0, 0, 0) || chmod(KBARMAN_DEVICE, 0600))
		lost("root is not to be had back");
	return fd;
}

/* A descriptor for marks that user 0 opened, without any capability: the root of a container. */
static int open_as_bare_root(void)
{
	int fd;

	set_capabilities(0, ALL_CAPABILITIES);
	fd = open(KBARMAN_DEVICE, O_WRONLY | O_CLOEXEC);
	set_capabilities(ALL_CAPABILITIES, ALL_CAPABILITIES);
	return fd;
}

static const struct kbarman_mark_state *map_state(int fd)
{
	int word = ioctl(fd, KBARMAN_MARK_STATE, 0);
	const void *map;

	if (word < 0)
		lost("no descriptor of the word");
	map = mmap(NULL, getpagesize(), PROT_READ, MAP_SHARED, word, 0);
	if (map == MAP_FAILED)
		lost("the word does not map");
	close(word);
	return map;
}

static uint32_t recording(const struct kbarman_mark_state *state)
{
	return __atomic_load_n(&state->recording, __ATOMIC_RELAXED);
}

static const struct bm_protocol_header_custom_chart *
capture_charts(const void *map, const struct bm_protocol_header_custom_chart_series **series)
{
	const char *at = (const char *)(capture_maps(map) +
					capture_header(map)->config_constants.max_mmap_layout);
	const struct bm_protocol_header_custom_chart *charts = (const void *)(at + 4);
	uint32_t nr;

	memcpy(&nr, at, sizeof(nr));
	*series = (const void *)(charts + nr);
	return charts;
}

FIXTURE(marks)
{
	int fd;		/* the session's */
	int writer;	/* O_WRONLY */
};

FIXTURE_SETUP(marks)
{
	pin(0);
	self->fd = device_open_free();
	self->writer = open(KBARMAN_DEVICE, O_WRONLY | O_CLOEXEC);
	ASSERT_LE(0, self->writer);
	ASSERT_EQ(0, configure(self->fd, only_marks));
	ASSERT_EQ(0, start(self->fd));
}

FIXTURE_TEARDOWN(marks)
{
	close(self->writer);
	close(self->fd);
}

/* The only record there is on CPU 0, the session being stopped. */
static const union record *only_record(struct __test_metadata *_metadata, int fd)
{
	const union record *r;
	struct judgement j;
	struct walk walk;

	ASSERT_EQ(0, stop(fd));
	j = judge_cpu(fd, 0);
	EXPECT_EQ(NULL, j.fault) TH_LOG("%s", j.fault);
	EXPECT_EQ(1, j.records);
	walk = walk_begin(map_cpu(fd, 0));
	r = walk_next(&walk);
	ASSERT_NE(NULL, r);
	return r;
}

/* ---- who may, and what ---- */

TEST_F(marks, files_mode_alone_lets_in)
{
	pid_t child;
	int status;

	ASSERT_EQ(0, chmod(KBARMAN_DEVICE, 0622));
	child = fork();
	if (!child) {
		if (setgid(65534) || setuid(65534))
			_exit(1);
		if (open(KBARMAN_DEVICE, O_RDONLY) >= 0 || open(KBARMAN_DEVICE, O_RDWR) >= 0)
			_exit(2);
		if (put_text(open(KBARMAN_DEVICE, O_WRONLY), KBARMAN_MARK_BOOKMARK, "hi") < 0)
			_exit(3);
		_exit(0);
	}
	ASSERT_EQ(child, waitpid(child, &status, 0));
	ASSERT_EQ(0, chmod(KBARMAN_DEVICE, 0600));
	EXPECT_EQ(0, status);
	EXPECT_EQ(child, only_record(_metadata, self->fd)->annotation.task_id);
}

TEST_F(marks, mode_for_writing_does_not_let_others_read)
{
	pid_t child;
	int status;

	ASSERT_EQ(0, chmod(KBARMAN_DEVICE, 0666));
	child = fork();
	if (!child) {
		if (setgid(65534) || setuid(65534))
			_exit(1);
		_exit(open(KBARMAN_DEVICE, O_RDWR) >= 0 || errno != EPERM ||
		      open(KBARMAN_DEVICE, O_RDONLY) >= 0 || errno != EPERM);
	}
	ASSERT_EQ(child, waitpid(child, &status, 0));
	ASSERT_EQ(0, chmod(KBARMAN_DEVICE, 0600));
	EXPECT_EQ(0, status);
}

TEST_F(marks, writer_can_do_nothing_else)
{
	static uint64_t bytes[512];
	struct kbarman_query q = query(self->fd);
	unsigned int nr;

	for (nr = 0; nr < 256; nr++) {
		if (_IO('k', nr) == KBARMAN_MARK_STATE || _IO('k', nr) == KBARMAN_MARK_SERIES)
			continue;
		ASSERT_EQ(-EBADF, call(self->writer, _IO('k', nr), bytes)) TH_LOG("%u", nr);
	}
	EXPECT_EQ(-1, read(self->writer, bytes, sizeof(bytes)));
	EXPECT_EQ(EBADF, errno);
	EXPECT_EQ(MAP_FAILED, mmap(NULL, q.map_bytes, PROT_READ, MAP_SHARED, self->writer, 0));
	EXPECT_EQ(EACCES, errno);
	EXPECT_EQ(-1, lseek(self->writer, 0, SEEK_SET));
	EXPECT_TRUE(query(self->fd).state & KBARMAN_STATE_RUNNING);
}

TEST_F(marks, writer_does_not_keep_the_capture)
{
	ASSERT_EQ(0, stop(self->fd));
	close(self->fd);
	self->fd = device_open();
	EXPECT_EQ(0, query(self->fd).state);
}

TEST_F(marks, word_is_one_page_to_read)
{
	int word = ioctl(self->writer, KBARMAN_MARK_STATE, 0), page = getpagesize();
	void *map;

	ASSERT_LE(0, word);
	EXPECT_EQ(FD_CLOEXEC, fcntl(word, F_GETFD));
	EXPECT_EQ(MAP_FAILED, mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, word, 0));
	EXPECT_EQ(MAP_FAILED, mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE, word, 0));
	EXPECT_EQ(MAP_FAILED, mmap(NULL, page, PROT_READ | PROT_EXEC, MAP_SHARED, word, 0));
	EXPECT_EQ(MAP_FAILED, mmap(NULL, 2 * page, PROT_READ, MAP_SHARED, word, 0));
	EXPECT_EQ(MAP_FAILED, mmap(NULL, page, PROT_READ, MAP_SHARED, word, page));
	map = mmap(NULL, page, PROT_READ, MAP_SHARED, word, 0);
	ASSERT_NE(MAP_FAILED, map);
	EXPECT_EQ(-1, mprotect(map, page, PROT_READ | PROT_WRITE));
	EXPECT_EQ(8, ((const struct kbarman_mark_state *)map)->size);
	EXPECT_EQ(-EINVAL, call(self->writer, KBARMAN_MARK_STATE, map));
}

/* ---- what is written ---- */

TEST_F(marks, string_is_recorded_as_it_was_written)
{
	struct text_mark m = make(KBARMAN_MARK_STRING, "level 3: the swamp");
	const union record *r;
	uint64_t before, after;

	m.mark.channel = 7;
	m.mark.colour = 0x1bff8000;
	before = clocks(self->fd).now.timestamp;
	ASSERT_EQ(sizeof(m.mark) + 18, put(self->writer, &m));
	after = clocks(self->fd).now.timestamp;
	r = only_record(_metadata, self->fd);
	EXPECT_EQ(BM_RECORD_ANNOTATION, r->header.record_type);
	EXPECT_EQ(0, r->header.core);
	EXPECT_LE(before, r->header.timestamp);
	EXPECT_GE(after, r->header.timestamp);
	EXPECT_EQ(thread_id(), r->annotation.task_id);
	EXPECT_EQ(BM_ANNOTATION_STRING, r->annotation.type);
	EXPECT_EQ(7, r->annotation.channel);
	EXPECT_EQ(0, r->annotation.group);
	EXPECT_EQ(0x1bff8000, r->annotation.colour);
	EXPECT_EQ(19, r->annotation.data_length);
	EXPECT_EQ(0, memcmp("level 3: the swamp", r->annotation.data, 19));
	EXPECT_NE(NULL, capture_task(map_cpu(self->fd, 0), getpid(), NULL));
}

TEST_F(marks, bookmarks_channels_and_groups_are_recorded)
{
	struct text_mark channel = make(KBARMAN_MARK_CHANNEL, "I/O");
	struct text_mark group = make(KBARMAN_MARK_GROUP, "engine");
	const union record *r;
	struct walk walk;

	channel.mark.channel = 3;
	channel.mark.group = 2;
	group.mark.group = 2;
	EXPECT_LT(0, put_text(self->writer, KBARMAN_MARK_BOOKMARK, "here"));
	EXPECT_LT(0, put(self->writer, &channel));
	EXPECT_LT(0, put(self->writer, &group));
	ASSERT_EQ(0, stop(self->fd));
	walk = walk_begin(map_cpu(self->fd, 0));
	r = walk_next(&walk);
	ASSERT_NE(NULL, r);
	EXPECT_EQ(BM_ANNOTATION_BOOKMARK, r->annotation.type);
	EXPECT_STREQ("here", (const char *)r->annotation.data);
	r = walk_next(&walk);
	ASSERT_NE(NULL, r);
	EXPECT_EQ(BM_ANNOTATION_CHANNEL, r->annotation.type);
	EXPECT_EQ(3, r->annotation.channel);
	EXPECT_EQ(2, r->annotation.group);
	EXPECT_STREQ("I/O", (const char *)r->annotation.data);
	r = walk_next(&walk);
	ASSERT_NE(NULL, r);
	EXPECT_EQ(BM_ANNOTATION_GROUP, r->annotation.type);
	EXPECT_EQ(2, r->annotation.group);
	EXPECT_STREQ("engine", (const char *)r->annotation.data);
}

TEST_F(marks, empty_string_ends_an_annotation)
{
	EXPECT_EQ(sizeof(struct kbarman_mark), put_text(self->writer, KBARMAN_MARK_STRING, ""));
	EXPECT_EQ(0, only_record(_metadata, self->fd)->annotation.data_length);
}

TEST_F(marks, longest_text_is_whole_and_a_longer_one_refused)
{
	static char text[KBARMAN_MARK_TEXT_MAX + 2];
	const union record *r;

	memset(text, 'x', KBARMAN_MARK_TEXT_MAX + 1);
	EXPECT_EQ(-EMSGSIZE, put_text(self->writer, KBARMAN_MARK_STRING, text));
	text[KBARMAN_MARK_TEXT_MAX] = '\0';
	EXPECT_LT(0, put_text(self->writer, KBARMAN_MARK_STRING, text));
	r = only_record(_metadata, self->fd);
	EXPECT_EQ(KBARMAN_MARK_TEXT_MAX + 1, r->annotation.data_length);
	EXPECT_STREQ(text, (const char *)r->annotation.data);
}

TEST_F(marks, several_go_into_one_write)
{
	struct text_mark a = make(KBARMAN_MARK_STRING, "a"), b = make(KBARMAN_MARK_STRING, "bb");
	struct iovec pieces[] = { { &a.mark, sizeof(a.mark) }, { a.text, 8 },
				  { &b.mark, sizeof(b.mark) }, { b.text, 1 }, { b.text + 1, 1 } };
	struct walk walk;

	EXPECT_EQ(90, writev(self->writer, pieces, 5));
	ASSERT_EQ(0, stop(self->fd));
	walk = walk_begin(map_cpu(self->fd, 0));
	EXPECT_STREQ("a", (const char *)walk_next(&walk)->annotation.data);
	EXPECT_STREQ("bb", (const char *)walk_next(&walk)->annotation.data);
	EXPECT_EQ(NULL, walk_next(&walk));
}

TEST_F(marks, bad_mark_ends_a_write_at_those_before_it)
{
	struct text_mark a = make(KBARMAN_MARK_STRING, "a"), b = make(99, "bb");
	struct iovec pieces[] = { { &a, 48 }, { &b, 42 } };

	EXPECT_EQ(48, writev(self->writer, pieces, 2));
	EXPECT_EQ(-1, writev(self->writer, pieces + 1, 1));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_STREQ("a", (const char *)only_record(_metadata, self->fd)->annotation.data);
}

#define EXPECT_BAD(error, field, wrong) do {					\
	struct text_mark m = make(KBARMAN_MARK_STRING, "text");			\
	m.mark.field = wrong;							\
	EXPECT_EQ(-error, write(self->writer, &m, sizeof(m.mark) + 4) < 0 ? -errno : 0); \
} while (0)

TEST_F(marks, malformed_ones_are_refused)
{
	struct text_mark m = make(KBARMAN_MARK_STRING, "text");
	const void *nowhere = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	EXPECT_BAD(EINVAL, size, 0);
	EXPECT_BAD(EINVAL, size, sizeof(m.mark) - 1);
	EXPECT_BAD(EINVAL, size, sizeof(m.mark) + 5);
	EXPECT_BAD(E2BIG, size, sizeof(m.mark) + 4);
	EXPECT_BAD(EINVAL, size, ~0U);
	EXPECT_BAD(EINVAL, type, 5);
	EXPECT_BAD(EINVAL, type, ~0U);
	EXPECT_BAD(EINVAL, text_bytes, 5);
	EXPECT_BAD(EMSGSIZE, text_bytes, ~0U);
	EXPECT_BAD(EINVAL, group, 1);
	EXPECT_BAD(EINVAL, series, 1);
	EXPECT_BAD(EINVAL, reserved, 1);
	EXPECT_BAD(EINVAL, value, 1);
	m.text[2] = '\0';
	EXPECT_EQ(-EINVAL, put(self->writer, &m));
	EXPECT_EQ(-1, write(self->writer, &m, sizeof(m.mark) - 1));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, write(self->writer, nowhere, 100));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(0, write(self->writer, NULL, 0));
	EXPECT_EQ(0, stats(self->fd, KBARMAN_CPU_ALL).written);
}

TEST_F(marks, longer_struct_is_taken_if_the_rest_is_zero)
{
	struct text_mark m = { .mark = { .size = sizeof(m.mark) + 100, .text_bytes = 4 } };

	memcpy(m.text + 100, "text", 4);
	EXPECT_EQ(sizeof(m.mark) + 104, put(self->writer, &m));
	EXPECT_STREQ("text", (const char *)only_record(_metadata, self->fd)->annotation.data);
}

/* ---- series ---- */

TEST_F(marks, series_stands_in_the_header_and_takes_values)
{
	const struct bm_protocol_header_custom_chart_series *series;
	const struct bm_protocol_header_custom_chart *chart;
	const char *strings;
	const union record *r;
	const void *map;

	ASSERT_EQ(FIRST_SERIES, define(self->writer, "pond", "frogs"));
	EXPECT_EQ(0, put_value(self->writer, FIRST_SERIES, 0x123456789abcdefULL));
	r = only_record(_metadata, self->fd);
	EXPECT_EQ(BM_RECORD_CUSTOM_COUNTER, r->header.record_type);
	EXPECT_EQ(FIRST_SERIES, r->counter.counter);
	EXPECT_EQ(0x123456789abcdefULL, r->counter.value);
	EXPECT_EQ(thread_id(), r->counter.task_id);

	map = map_cpu(self->fd, 0);
	strings = capture_strings(map);
	chart = capture_charts(map, &series);
	EXPECT_STREQ("pond", strings + chart[FIRST_SERIES].name_ptr);
	EXPECT_EQ(BM_CHART_PERCENTAGE, chart[FIRST_SERIES].boolean_flags);
	EXPECT_EQ(BM_SERIES_OVERLAY, chart[FIRST_SERIES].series_composition);
	EXPECT_EQ(BM_RENDERING_LINE, chart[FIRST_SERIES].rendering_type);
	EXPECT_EQ(FIRST_SERIES, series[FIRST_SERIES].chart_index);
	EXPECT_STREQ("frogs", strings + series[FIRST_SERIES].name_ptr);
	EXPECT_STREQ("frogs", strings + series[FIRST_SERIES].units_ptr);
	EXPECT_STREQ("in the pond", strings + series[FIRST_SERIES].description_ptr);
	EXPECT_EQ(BM_SERIES_CLASS_ABSOLUTE, series[FIRST_SERIES].series_class);
	EXPECT_EQ(BM_SERIES_DISPLAY_AVERAGE, series[FIRST_SERIES].display);
}

TEST_F(marks, same_name_is_the_same_series)
{
	int other = open(KBARMAN_DEVICE, O_WRONLY | O_CLOEXEC);

	EXPECT_EQ(FIRST_SERIES, define(self->writer, "pond", "frogs"));
	EXPECT_EQ(FIRST_SERIES, define(other, "pond", "frogs"));
	EXPECT_EQ(FIRST_SERIES + 1, define(other, "pond", "newts"));
	EXPECT_EQ(FIRST_SERIES + 2, define(other, "lake", "frogs"));
	EXPECT_EQ(FIRST_SERIES, define(self->fd, "pond", "frogs"));
	close(other);
}

TEST_F(marks, series_end_where_the_table_does)
{
	struct kbarman_configure c = only_marks;
	char name[16];
	int i;

	ASSERT_EQ(0, stop(self->fd));
	c.max_series = 3;
	ASSERT_EQ(0, configure(self->fd, c));
	ASSERT_EQ(0, start(self->fd));
	for (i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "s%d", i);
		EXPECT_EQ(FIRST_SERIES + i, define(self->writer, name, name));
	}
	EXPECT_EQ(-ENOSPC, define(self->writer, "c", "s3"));
	EXPECT_EQ(FIRST_SERIES + 1, define(self->writer, "s1", "s1"));
	EXPECT_EQ(0, put_value(self->writer, FIRST_SERIES + 2, 5));
	only_record(_metadata, self->fd);
}

/* Names that nobody had before, as any task can have them, until @left bytes are free. */
static void fill_string_table(int fd, uint32_t left)
{
	const void *map = map_cpu(fd, 0);
	/* The tasks' pages have the end of the room. */
	uint32_t size = (const char *)capture_task_pages(map) - capture_strings(map);
	char name[16];
	unsigned int i;

	for (i = 0; stats(fd, KBARMAN_CPU_ALL).strings + left <= size; i++) {
		snprintf(name, sizeof(name), "n%014u", i);
		prctl(PR_SET_NAME, name);
	}
}

/*
 * A chart's name fits yet, and the description of its series does not. Such charts were
 * counted in, and written behind the table's end.
 */
TEST_F(marks, series_that_find_no_room_leave_nothing_behind)
{
	const struct bm_protocol_header_custom_chart_series *series;
	const struct bm_protocol_header_custom_chart *charts;
	struct kbarman_configure c = only_marks;
	uint32_t used;
	const void *map;
	char chart;

	ASSERT_EQ(0, stop(self->fd));
	c.mode = KBARMAN_MODE_STREAM;
	c.max_tasks = 65536;	/* more than names */
	c.max_strings = 20 * KIB;
	c.max_series = 1;
	ASSERT_EQ(0, configure(self->fd, c));
	ASSERT_EQ(0, start(self->fd));
	fill_string_table(self->fd, 128);
	used = stats(self->fd, KBARMAN_CPU_ALL).strings;
	for (chart = 'A'; chart <= 'z'; chart++) {
		struct kbarman_mark_series s = series_of((char[]){ chart, 0 }, "n");

		s.units[0] = '\0';
		memset(s.description, 'd', sizeof(s.description) - 1);
		EXPECT_EQ(-ENOSPC, call(self->writer, KBARMAN_MARK_SERIES, &s));
	}
	EXPECT_EQ(used, stats(self->fd, KBARMAN_CPU_ALL).strings);
	EXPECT_LT(0, stats(self->fd, KBARMAN_CPU_ALL).missed[KBARMAN_MISSED_STRING]);
	ASSERT_EQ(0, stop(self->fd));
	EXPECT_EQ(NULL, judge_cpu(self->fd, 0).fault);
	map = map_cpu(self->fd, 0);
	charts = capture_charts(map, &series);
	EXPECT_STREQ("kbarman", capture_strings(map) + charts[0].name_ptr);
	EXPECT_STREQ("Lost records", capture_strings(map) + series[0].name_ptr);
	EXPECT_STREQ("", capture_strings(map) + charts[FIRST_SERIES].name_ptr);
	EXPECT_STREQ("", capture_strings(map) + series[FIRST_SERIES].name_ptr);
}

TEST_F(marks, series_that_nobody_made_are_refused)
{
	uint32_t series;

	/* Those before it are the module's. */
	for (series = 0; series <= FIRST_SERIES; series++)
		EXPECT_EQ(-EINVAL, put_value(self->writer, series, 1));
	EXPECT_EQ(-EINVAL, put_value(self->writer, ~0U, 1));
}

#define EXPECT_BAD_SERIES(field, wrong) do {				\
	struct kbarman_mark_series s = series_of("pond", "frogs");	\
	s.field = wrong;						\
	EXPECT_EQ(-EINVAL, call(self->writer, KBARMAN_MARK_SERIES, &s)); \
} while (0)

TEST_F(marks, malformed_series_are_refused)
{
	struct kbarman_mark_series s = series_of("pond", "frogs");

	EXPECT_BAD_SERIES(size, sizeof(s) - 1);
	EXPECT_BAD_SERIES(series_class, 0);
	EXPECT_BAD_SERIES(series_class, 4);
	EXPECT_BAD_SERIES(display, 0);
	EXPECT_BAD_SERIES(display, 6);
	EXPECT_BAD_SERIES(series_composition, 0);
	EXPECT_BAD_SERIES(series_composition, 4);
	EXPECT_BAD_SERIES(rendering_type, 0);
	EXPECT_BAD_SERIES(rendering_type, 4);
	EXPECT_BAD_SERIES(chart_flags, 0x10);
	EXPECT_BAD_SERIES(reserved[2], 1);
	EXPECT_BAD_SERIES(chart[0], '\0');
	EXPECT_BAD_SERIES(name[0], '\0');
	memset(s.description, 'x', sizeof(s.description));
	EXPECT_EQ(-EINVAL, call(self->writer, KBARMAN_MARK_SERIES, &s));
	EXPECT_EQ(FIRST_SERIES, define(self->writer, "pond", "frogs"));
}

/* ---- when ---- */

TEST_F(marks, nobody_records_then_nothing_happens)
{
	ASSERT_EQ(0, stop(self->fd));
	EXPECT_EQ(sizeof(struct kbarman_mark) + 4,
		  put_text(self->writer, KBARMAN_MARK_STRING, "lost"));
	EXPECT_EQ(-EAGAIN, define(self->writer, "pond", "frogs"));
	EXPECT_EQ(0, stats(self->fd, KBARMAN_CPU_ALL).written);
	EXPECT_EQ(0, lost_records((struct kbarman_stats[]){ stats(self->fd, KBARMAN_CPU_ALL) }));
}

TEST_F(marks, session_without_marks_gets_none)
{
	const struct kbarman_mark_state *state = map_state(self->writer);

	ASSERT_EQ(0, stop(self->fd));
	ASSERT_EQ(0, configure(self->fd, (struct kbarman_configure){
		.sources = KBARMAN_SOURCE_MAPS }));
	ASSERT_EQ(0, start(self->fd));
	EXPECT_EQ(0, recording(state));
	EXPECT_LT(0, put_text(self->writer, KBARMAN_MARK_STRING, "lost"));
	EXPECT_EQ(0, stats(self->fd, KBARMAN_CPU_ALL).written);
}

TEST_F(marks, cpu_that_is_not_recorded_gets_none)
{
	struct kbarman_configure c = only_marks;
	uint64_t cpus = 1;

	ASSERT_EQ(0, stop(self->fd));
	c.cpus_ptr = (uintptr_t)&cpus;
	c.nr_cpu_words = 1;
	ASSERT_EQ(0, configure(self->fd, c));
	ASSERT_EQ(0, start(self->fd));
	pin(1);
	EXPECT_LT(0, put_text(self->writer, KBARMAN_MARK_STRING, "nowhere"));
	pin(0);
	EXPECT_LT(0, put_text(self->writer, KBARMAN_MARK_STRING, "here"));
	EXPECT_EQ(0, lost_records((struct kbarman_stats[]){ stats(self->fd, KBARMAN_CPU_ALL) }));
	EXPECT_STREQ("here", (const char *)only_record(_metadata, self->fd)->annotation.data);
}

/* The descriptor, the map and the one who has them stay. */
TEST_F(marks, word_tells_one_recording_from_the_next)
{
	const struct kbarman_mark_state *state = map_state(self->writer);
	uint32_t first = recording(state), second;

	EXPECT_NE(0, first);
	ASSERT_EQ(0, stop(self->fd));
	EXPECT_EQ(0, recording(state));
	ASSERT_EQ(0, start(self->fd));
	second = recording(state);
	EXPECT_NE(0, second);
	EXPECT_NE(first, second);
	EXPECT_LT(0, put_text(self->writer, KBARMAN_MARK_STRING, "second"));
	only_record(_metadata, self->fd);
	close(self->fd);
	EXPECT_EQ(0, recording(state));
	self->fd = device_open();
}

static void put_forever(int fd)
{
	struct text_mark m = make(KBARMAN_MARK_STRING, "on and on");

	for (;;) {
		put(fd, &m);
		define(fd, "pond", "frogs");
		put_value(fd, 1, 1);
	}
}

/* When a stop returns, the ring and the tables are still. */
TEST_F(marks, stop_ends_them_under_fire)
{
	pid_t children[2];
	int i, rw;

	rw = open(KBARMAN_DEVICE, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, rw);
	for (i = 0; i < 2; i++) {
		children[i] = fork();
		if (!children[i]) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			pin(i);
			put_forever(rw);
		}
	}
	for (i = 0; i < 20; i++) {
		struct kbarman_stats then, now;

		while (!stats(self->fd, KBARMAN_CPU_ALL).written)
			usleep(100);
		ASSERT_EQ(0, stop(self->fd));
		then = stats(self->fd, KBARMAN_CPU_ALL);
		usleep(2000);
		now = stats(self->fd, KBARMAN_CPU_ALL);
		EXPECT_EQ(then.written, now.written);
		EXPECT_EQ(then.bytes, now.bytes);
		EXPECT_EQ(then.strings, now.strings);
		EXPECT_EQ(NULL, judge_cpu(self->fd, 0).fault);
		EXPECT_EQ(NULL, judge_cpu(self->fd, 1).fault);
		ASSERT_EQ(0, start(self->fd));
	}
	for (i = 0; i < 2; i++) {
		kill(children[i], SIGKILL);
		waitpid(children[i], NULL, 0);
	}
}

/* ---- how many ---- */

static void put_numbers(int fd, uint32_t cpu)
{
	char text[16];
	int i;

	pin(cpu);
	for (i = 0; i < MANY; i++) {
		snprintf(text, sizeof(text), "%d", i);
		if (put_text(fd, KBARMAN_MARK_STRING, text) < 0)
			_exit(1);
	}
	_exit(0);
}

TEST_F(marks, each_cpus_are_all_there_in_order)
{
	uint32_t nr = query(self->fd).nr_cpus, cpu;
	pid_t children[16];
	int status;

	for (cpu = 0; cpu < nr && cpu < 16; cpu++) {
		int writer = open_as(1000 + cpu);	/* a user each, so a rate each */

		children[cpu] = fork();
		if (!children[cpu]) {
			put_numbers(writer, cpu);
		}
	}
	for (cpu = 0; cpu < nr && cpu < 16; cpu++) {
		ASSERT_EQ(children[cpu], waitpid(children[cpu], &status, 0));
		EXPECT_EQ(0, status);
	}
	ASSERT_EQ(0, stop(self->fd));
	for (cpu = 0; cpu < nr && cpu < 16; cpu++) {
		struct walk walk = walk_begin(map_cpu(self->fd, cpu));
		const union record *r;
		int next = 0;

		EXPECT_EQ(NULL, judge_cpu(self->fd, cpu).fault);
		while ((r = walk_next(&walk))) {
			ASSERT_EQ(children[cpu], r->annotation.task_id);
			ASSERT_EQ(next++, atoi((const char *)r->annotation.data));
		}
		EXPECT_EQ(MANY, next);
	}
}

/* Texts make marks dear: a slow machine, too, writes more of them than it earns meanwhile. */
#define FLOOD_TEXT	960
#define FLOOD_COST	(1 + FLOOD_TEXT / 64)
#define FLOOD_BEYOND	(3 * KBARMAN_MARK_BURST / FLOOD_COST)
#define NS_A_MARK	(1000000000ULL / KBARMAN_MARK_RATE)

/* Marks that cost @cost, written since @begun, were more than anybody is given. */
static bool beyond_the_rate(uint64_t cost, uint64_t begun)
{
	uint64_t passed = clock_ns(CLOCK_MONOTONIC) - begun;

	return cost * NS_A_MARK > KBARMAN_MARK_BURST * NS_A_MARK + passed;
}

#define TOO_SLOW	"this machine earns marks as fast as it writes them"

/* @count bookmarks, 250 at a time. Returns whether they were beyond the rate. */
static bool flood(struct __test_metadata *_metadata, int fd, unsigned int count)
{
	static struct {
		struct kbarman_mark mark;
		char text[FLOOD_TEXT];
	} marks[250];
	uint64_t begun;
	unsigned int i;

	for (i = 0; i < 250; i++) {
		marks[i].mark = (struct kbarman_mark){ .size = sizeof(marks[i].mark),
			.type = KBARMAN_MARK_BOOKMARK, .text_bytes = FLOOD_TEXT };
		memset(marks[i].text, 'f', FLOOD_TEXT);
	}
	begun = clock_ns(CLOCK_MONOTONIC);
	for (i = 0; i < count; i += 250)
		EXPECT_EQ(sizeof(marks), write(fd, marks, sizeof(marks)));
	return beyond_the_rate((uint64_t)i * FLOOD_COST, begun);
}

TEST_F(marks, what_is_beyond_the_rate_is_counted_as_lost)
{
	struct kbarman_configure c = only_marks;
	unsigned int told = 0, count = FLOOD_BEYOND;
	struct kbarman_stats s;
	const union record *r;
	struct judgement j;
	struct walk walk;

	ASSERT_EQ(0, stop(self->fd));
	c.ring_bytes = 16 * MIB;
	ASSERT_EQ(0, configure(self->fd, c));
	ASSERT_EQ(0, start(self->fd));
	if (!flood(_metadata, self->writer, count))
		SKIP(return, TOO_SLOW);
	/* It earns more in a while; and then the ring says what it did not get. */
	for (;;) {
		s = stats(self->fd, 0);
		usleep(200000);
		EXPECT_LT(0, put_text(self->writer, KBARMAN_MARK_BOOKMARK, "again"));
		count++;
		if (stats(self->fd, 0).lost[KBARMAN_LOST_RATE] == s.lost[KBARMAN_LOST_RATE])
			break;
	}
	ASSERT_EQ(0, stop(self->fd));
	s = stats(self->fd, 0);
	EXPECT_LE(KBARMAN_MARK_BURST / FLOOD_COST, s.written);
	EXPECT_LT(0, s.lost[KBARMAN_LOST_RATE]);
	EXPECT_EQ(s.lost[KBARMAN_LOST_RATE], lost_records(&s));
	j = judge_cpu(self->fd, 0);
	EXPECT_EQ(NULL, j.fault) TH_LOG("%s", j.fault);
	walk = walk_begin(map_cpu(self->fd, 0));
	while ((r = walk_next(&walk)))
		told += losses_told(r);
	EXPECT_EQ(s.lost[KBARMAN_LOST_RATE], told);
	/* A counter and a bookmark tell of each loss; the rest is ours. */
	EXPECT_EQ(count, s.written + told - 2 * j.by_type[BM_RECORD_CUSTOM_COUNTER]);
}

TEST_F(marks, descriptors_of_a_user_have_one_rate)
{
	int other = open(KBARMAN_DEVICE, O_WRONLY | O_CLOEXEC);
	uint64_t lost;

	if (!flood(_metadata, self->writer, FLOOD_BEYOND))
		SKIP(return, TOO_SLOW);
	lost = stats(self->fd, 0).lost[KBARMAN_LOST_RATE];
	EXPECT_LT(0, lost);
	/* At once, and so little that it was no loss by a rate of its own. */
	flood(_metadata, other, 250);
	EXPECT_LT(lost, stats(self->fd, 0).lost[KBARMAN_LOST_RATE]);
	close(other);
}

TEST_F(marks, opening_again_gives_no_new_rate)
{
	uint64_t lost;

	if (!flood(_metadata, self->writer, FLOOD_BEYOND))
		SKIP(return, TOO_SLOW);
	close(self->writer);
	self->writer = open(KBARMAN_DEVICE, O_WRONLY | O_CLOEXEC);
	lost = stats(self->fd, 0).lost[KBARMAN_LOST_RATE];
	flood(_metadata, self->writer, 250);
	EXPECT_LT(lost, stats(self->fd, 0).lost[KBARMAN_LOST_RATE]);
}

/* A flood by who opened @one takes nothing from who opened @other. */
static void expect_rates_apart(struct __test_metadata *_metadata, int fd, int one, int other)
{
	uint64_t lost;

	/* Whatever @other's user wrote before, in another test, all of the rate is there again. */
	sleep(1 + KBARMAN_MARK_BURST / KBARMAN_MARK_RATE);
	lost = stats(fd, 0).lost[KBARMAN_LOST_RATE];
	if (!flood(_metadata, one, FLOOD_BEYOND))
		SKIP(return, TOO_SLOW);
	EXPECT_LT(lost, stats(fd, 0).lost[KBARMAN_LOST_RATE]);
	lost = stats(fd, 0).lost[KBARMAN_LOST_RATE];
	flood(_metadata, other, 1000);
	EXPECT_EQ(lost, stats(fd, 0).lost[KBARMAN_LOST_RATE]);
	close(other);
	close(one);
}

TEST_F(marks, each_user_has_a_rate_of_its_own)
{
	expect_rates_apart(_metadata, self->fd, open_as(1000), open_as(1001));
}

TEST_F(marks, root_without_capabilities_has_a_rate_of_its_own)
{
	expect_rates_apart(_metadata, self->fd, open_as_bare_root(), open_as(0));
}

TEST_F(marks, what_is_lost_costs_others_nothing)
{
	int rw = open(KBARMAN_DEVICE, O_RDWR | O_CLOEXEC);
	struct kbarman_configure c = only_marks;
	uint64_t written;
	unsigned int i;

	ASSERT_EQ(0, stop(self->fd));
	c.ring_bytes = 16 * MIB;
	ASSERT_EQ(0, configure(self->fd, c));
	ASSERT_EQ(0, start(self->fd));
	if (!flood(_metadata, self->writer, FLOOD_BEYOND))
		SKIP(return, TOO_SLOW);
	EXPECT_LT(0, stats(self->fd, 0).lost[KBARMAN_LOST_RATE]);
	written = stats(self->fd, 0).written;
	for (i = 1; i <= 100; i++) {
		EXPECT_LT(0, put_text(rw, KBARMAN_MARK_BOOKMARK, "another's"));
		EXPECT_EQ(written + i, stats(self->fd, 0).written);
	}
	close(rw);
}

static void expect_series_left(struct __test_metadata *_metadata, int fd, int one)
{
	struct kbarman_configure c = only_marks;
	int other = open_as(1001), made;
	char name[16];

	ASSERT_EQ(0, stop(fd));
	c.max_series = 63;	/* and the module's own */
	ASSERT_EQ(0, configure(fd, c));
	ASSERT_EQ(0, start(fd));
	for (made = 0;; made++) {
		snprintf(name, sizeof(name), "s%d", made);
		if (define(one, "mine", name) < 0)
			break;
	}
	EXPECT_EQ(-ENOSPC, define(one, "mine", "another"));
	EXPECT_LE(32, made);
	EXPECT_GE(48, made);
	EXPECT_LT(0, stats(fd, KBARMAN_CPU_ALL).missed[KBARMAN_MISSED_SERIES]);
	EXPECT_LT(0, define(other, "theirs", "first"));
	/* What there is, everybody has. */
	EXPECT_LT(0, define(other, "mine", "s0"));
	EXPECT_LT(0, define(one, "theirs", "first"));
	close(other);
	close(one);
}

TEST_F(marks, one_user_does_not_get_all_series)
{
	expect_series_left(_metadata, self->fd, open_as(1000));
}

TEST_F(marks, root_without_capabilities_does_not_get_all_series)
{
	expect_series_left(_metadata, self->fd, open_as_bare_root());
}

TEST_F(marks, long_texts_count_more)
{
	static char text[KBARMAN_MARK_TEXT_MAX + 1];
	uint64_t begun = clock_ns(CLOCK_MONOTONIC);
	unsigned int i;

	memset(text, 'x', KBARMAN_MARK_TEXT_MAX);
	for (i = 0; i < KBARMAN_MARK_BURST / 4; i++)
		put_text(self->writer, KBARMAN_MARK_STRING, text);
	if (!beyond_the_rate((uint64_t)i * (1 + KBARMAN_MARK_TEXT_MAX / 64), begun))
		SKIP(return, TOO_SLOW);
	EXPECT_LT(0, stats(self->fd, 0).lost[KBARMAN_LOST_RATE]);
}

TEST_F(marks, who_may_record_has_no_rate)
{
	int rw = open(KBARMAN_DEVICE, O_RDWR | O_CLOEXEC);

	ASSERT_LE(0, rw);
	flood(_metadata, rw, FLOOD_BEYOND);
	EXPECT_EQ(FLOOD_BEYOND, stats(self->fd, 0).written);
	EXPECT_EQ(0, stats(self->fd, 0).lost[KBARMAN_LOST_RATE]);
}

TEST_HARNESS_MAIN
