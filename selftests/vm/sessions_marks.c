// SPDX-License-Identifier: MIT
/* Marks go to every session that wants them, and each session tells what it has lost. */
#include "kselftest_harness.h"

#include "sessions.h"

static struct kbarman_configure marks(uint32_t max_series)
{
	struct kbarman_configure c = small(KBARMAN_MODE_OVERWRITE);

	c.sources = KBARMAN_SOURCE_MARKS;
	c.max_series = max_series;
	return c;
}

static int define(int fd, const char *name)
{
	struct kbarman_mark_series s = {
		.size = sizeof(s), .colour = BM_SERIES_COLOUR_AUTOMATIC,
		.multiplier = 0x3ff0000000000000ULL, .chart = "pond",
		.series_class = BM_SERIES_CLASS_ABSOLUTE, .display = BM_SERIES_DISPLAY_AVERAGE,
		.series_composition = BM_SERIES_OVERLAY, .rendering_type = BM_RENDERING_LINE };
	int error;

	strcpy(s.name, name);
	error = call(fd, KBARMAN_MARK_SERIES, &s);
	return error ?: (int)s.series;
}

static int put_value(int fd, uint32_t series, uint64_t value)
{
	struct kbarman_mark m = { .size = sizeof(m), .type = KBARMAN_MARK_COUNTER,
				  .series = series, .value = value };

	return write(fd, &m, sizeof(m)) < 0 ? -errno : 0;
}

static void put_bookmark(int fd, const char *text)
{
	struct {
		struct kbarman_mark mark;
		char text[64];
	} m = { .mark = { .size = sizeof(m.mark), .type = KBARMAN_MARK_BOOKMARK,
			  .text_bytes = strlen(text) } };

	strcpy(m.text, text);
	if (write(fd, &m, sizeof(m.mark) + m.mark.text_bytes) < 0)
		lost("no mark");
}

static int writer_open(void)
{
	int fd = open(KBARMAN_DEVICE, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		lost("no writer");
	return fd;
}

/* "name=value name=value …" and "text …", in the order of the records on CPU 0. */
static const char *story(int fd)
{
	static char told[4][512];
	static unsigned int turn;
	char *text = told[turn++ % 4];
	const void *map = map_cpu(fd, 0);
	struct walk walk = walk_begin(map);
	const union record *r;
	size_t n = 0;

	*text = 0;
	while ((r = walk_next(&walk)) && n < sizeof(told[0]) - 80)
		if (r->header.record_type == BM_RECORD_CUSTOM_COUNTER)
			n += sprintf(text + n, "%s=%llu ", capture_strings(map) +
				     capture_series(map)[r->counter.counter].name_ptr,
				     (unsigned long long)r->counter.value);
		else if (r->header.record_type == BM_RECORD_ANNOTATION)
			n += sprintf(text + n, "%.40s ", (const char *)r->annotation.data);
	munmap((void *)map, query(fd).map_bytes);
	return text;
}

TEST_F(sessions, a_mark_goes_to_every_one_that_wants_it)
{
	int writer = writer_open();

	self->fd[0] = begin(marks(0));
	self->fd[1] = begin(small(KBARMAN_MODE_OVERWRITE));
	self->fd[2] = begin(marks(0));
	ASSERT_EQ(0, start(self->fd[0]));
	put_bookmark(writer, "one");
	ASSERT_EQ(0, start(self->fd[1]));
	ASSERT_EQ(0, start(self->fd[2]));
	put_bookmark(writer, "two");
	ASSERT_EQ(0, stop(self->fd[0]));
	put_bookmark(writer, "three");
	ASSERT_EQ(0, stop(self->fd[1]));
	ASSERT_EQ(0, stop(self->fd[2]));
	put_bookmark(writer, "four");
	EXPECT_STREQ("one two ", story(self->fd[0]));
	EXPECT_STREQ("", story(self->fd[1]));
	EXPECT_STREQ("two three ", story(self->fd[2]));
	close(writer);
}

TEST_F(sessions, a_series_has_a_row_in_each)
{
	int writer = writer_open(), frogs, newts;

	self->fd[0] = begin(marks(8));
	self->fd[1] = begin(marks(8));
	ASSERT_EQ(0, start(self->fd[0]));
	frogs = define(writer, "frogs");
	EXPECT_EQ(FIRST_SERIES, frogs);
	EXPECT_EQ(0, put_value(writer, frogs, 1));
	ASSERT_EQ(0, start(self->fd[1]));
	newts = define(writer, "newts");
	EXPECT_EQ(FIRST_SERIES + 1, newts);
	EXPECT_EQ(0, put_value(writer, newts, 2));
	/* One that has not been asked for again. */
	EXPECT_EQ(0, put_value(writer, frogs, 3));
	EXPECT_EQ(frogs, define(writer, "frogs"));
	EXPECT_EQ(-EINVAL, put_value(writer, newts + 1, 3));
	ASSERT_EQ(0, stop(self->fd[0]));
	EXPECT_EQ(0, put_value(writer, frogs, 4));
	EXPECT_EQ(newts, define(writer, "newts"));
	ASSERT_EQ(0, stop(self->fd[1]));
	EXPECT_STREQ("frogs=1 newts=2 frogs=3 ", story(self->fd[0]));
	EXPECT_STREQ("newts=2 frogs=3 frogs=4 ", story(self->fd[1]));
	EXPECT_GOOD(self->fd[0]);
	EXPECT_GOOD(self->fd[1]);
	/* And from the beginning again. */
	ASSERT_EQ(0, start(self->fd[0]));
	EXPECT_EQ(FIRST_SERIES, define(writer, "toads"));
	close(writer);
}

TEST_F(sessions, a_series_that_has_no_room_in_one_is_told_there)
{
	int writer = writer_open(), frogs, newts;
	struct kbarman_stats s;

	self->fd[0] = begin(marks(8));
	self->fd[1] = begin(marks(1));
	ASSERT_EQ(0, start(self->fd[0]));
	ASSERT_EQ(0, start(self->fd[1]));
	frogs = define(writer, "frogs");
	newts = define(writer, "newts");
	EXPECT_LT(0, frogs);
	EXPECT_LT(frogs, newts);
	EXPECT_EQ(1, stats(self->fd[1], KBARMAN_CPU_ALL).missed[KBARMAN_MISSED_SERIES]);
	EXPECT_EQ(0, put_value(writer, newts, 1));
	EXPECT_EQ(0, put_value(writer, frogs, 2));
	EXPECT_EQ(2, stats(self->fd[1], KBARMAN_CPU_ALL).missed[KBARMAN_MISSED_SERIES]);
	s = stats(self->fd[0], KBARMAN_CPU_ALL);
	EXPECT_EQ(0, s.missed[KBARMAN_MISSED_SERIES]);
	/* Where nobody has room, it is refused. */
	ASSERT_EQ(0, stop(self->fd[0]));
	EXPECT_EQ(-ENOSPC, define(writer, "toads"));
	EXPECT_EQ(-ENOSPC, define(writer, "newts"));
	EXPECT_EQ(frogs, define(writer, "frogs"));
	ASSERT_EQ(0, stop(self->fd[1]));
	EXPECT_STREQ("newts=1 frogs=2 ", story(self->fd[0]));
	EXPECT_STREQ("frogs=2 ", story(self->fd[1]));
	EXPECT_EQ(-EAGAIN, define(writer, "frogs"));
	close(writer);
}

TEST_F(sessions, an_owners_marks_are_its_own)
{
	int writer = writer_open(), observer = open(KBARMAN_DEVICE, O_RDWR | O_CLOEXEC), frogs, i;

	for (i = 0; i < 2; i++) {
		self->fd[i] = open(KBARMAN_DEVICE, O_RDWR | O_CLOEXEC);
		ASSERT_LE(0, self->fd[i]);
		ASSERT_EQ(0, configure(self->fd[i], marks(8)));
	}
	ASSERT_EQ(0, start(self->fd[0]));
	EXPECT_EQ(-EAGAIN, define(self->fd[1], "frogs"));
	ASSERT_EQ(0, start(self->fd[1]));
	EXPECT_LT(0, define(writer, "newts"));
	frogs = define(self->fd[1], "frogs");
	EXPECT_EQ(FIRST_SERIES + 1, frogs);
	EXPECT_EQ(FIRST_SERIES, define(self->fd[1], "newts"));
	EXPECT_EQ(0, put_value(self->fd[1], frogs, 1));
	put_bookmark(self->fd[1], "mine");
	EXPECT_EQ(-EINVAL, put_value(self->fd[0], frogs, 1));
	put_bookmark(observer, "all");
	ASSERT_EQ(0, stop(self->fd[0]));
	ASSERT_EQ(0, stop(self->fd[1]));
	EXPECT_STREQ("all ", story(self->fd[0]));
	EXPECT_STREQ("frogs=1 mine all ", story(self->fd[1]));
	close(observer);
	close(writer);
}

#define LONG_TEXT	960	/* bytes, so that a slow machine earns less than it writes */

/* What is beyond the rate is lost for every session, and each one tells of all it lost. */
TEST_F(sessions, marks_beyond_the_rate_are_told_in_each)
{
	static struct {
		struct kbarman_mark mark;
		char text[LONG_TEXT];
	} many[250];
	struct kbarman_configure c = marks(0);
	int writer = writer_open(), i, round;
	uint64_t told[2] = { 0 }, before;
	struct kbarman_stats s[2];
	const union record *r;
	struct walk walk;

	for (i = 0; i < 250; i++) {
		many[i].mark = (struct kbarman_mark) { .size = sizeof(many[i].mark),
			.type = KBARMAN_MARK_BOOKMARK, .text_bytes = LONG_TEXT };
		memset(many[i].text, 'm', LONG_TEXT);
	}
	c.ring_bytes = 16 * MIB;
	for (i = 0; i < 2; i++) {
		self->fd[i] = begin(c);
		ASSERT_EQ(0, start(self->fd[i]));
	}
	for (round = 0; round < 40; round++)
		ASSERT_EQ(sizeof(many), write(writer, many, sizeof(many)));
	if (!stats(self->fd[0], 0).lost[KBARMAN_LOST_RATE])
		SKIP(return, "this machine earns marks as fast as it writes them");
	do {
		before = stats(self->fd[0], 0).lost[KBARMAN_LOST_RATE];
		usleep(200000);
		put_bookmark(writer, "again");
	} while (stats(self->fd[0], 0).lost[KBARMAN_LOST_RATE] != before);
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, stop(self->fd[i]));
		s[i] = stats(self->fd[i], 0);
		walk = walk_begin(map_cpu(self->fd[i], 0));
		while ((r = walk_next(&walk)))
			told[i] += losses_told(r);
		EXPECT_EQ(s[i].lost[KBARMAN_LOST_RATE], told[i]);
	}
	EXPECT_EQ(s[0].lost[KBARMAN_LOST_RATE], s[1].lost[KBARMAN_LOST_RATE]);
	EXPECT_EQ(s[0].written, s[1].written);
	close(writer);
}

TEST_HARNESS_MAIN
