// SPDX-License-Identifier: MIT
/* The client in one header, against the module: what it writes, and what it finds out. */
#include <dirent.h>
#include <pthread.h>
#include <stddef.h>

#include <kbarman/mark.h>

#include "kselftest_harness.h"
#include "lib.h"

/* The header has the module's structs once more, so that it needs no other. */
#define SAME(field) _Static_assert(offsetof(struct kb_mark_wire_, field) == \
				   offsetof(struct kbarman_mark, field), #field)
SAME(size);
SAME(type);
SAME(text_bytes);
SAME(channel);
SAME(group);
SAME(colour);
SAME(series);
SAME(reserved);
SAME(value);
_Static_assert(sizeof(struct kb_mark_wire_) == sizeof(struct kbarman_mark), "mark");
#undef SAME
#define SAME(field) _Static_assert(offsetof(struct kb_mark_wire_series_, field) == \
				   offsetof(struct kbarman_mark_series, field), #field)
SAME(series);
SAME(recording);
SAME(colour);
SAME(multiplier);
SAME(series_class);
SAME(display);
SAME(series_composition);
SAME(rendering_type);
SAME(chart_flags);
SAME(chart);
SAME(name);
SAME(units);
SAME(description);
SAME(reserved);
_Static_assert(sizeof(struct kb_mark_wire_series_) == sizeof(struct kbarman_mark_series), "series");
_Static_assert(KB_MARK_STATE_ == KBARMAN_MARK_STATE, "number");
_Static_assert(KB_MARK_SERIES_ == KBARMAN_MARK_SERIES, "number");
_Static_assert(KB_MARK_TEXT_MAX == KBARMAN_MARK_TEXT_MAX, "text");
_Static_assert(offsetof(struct kbarman_mark_state, recording) == 4, "word");

FIXTURE(client)
{
	int fd;
};

FIXTURE_SETUP(client)
{
	pin(0);
	self->fd = device_open_free();
	ASSERT_EQ(0, configure(self->fd, (struct kbarman_configure){
		.sources = KBARMAN_SOURCE_MARKS, .max_series = 8 }));
}

FIXTURE_TEARDOWN(client)
{
	close(self->fd);
}

static struct walk records_after_stop(struct __test_metadata *_metadata, int fd)
{
	struct judgement j;

	ASSERT_EQ(0, stop(fd));
	j = judge_cpu(fd, 0);
	EXPECT_EQ(NULL, j.fault) TH_LOG("%s", j.fault);
	return walk_begin(map_cpu(fd, 0));
}

#define EXPECT_NOTE(walk, type_, channel_, text_) do {			\
	const union record *r_ = walk_next(walk);			\
	ASSERT_NE(NULL, r_);						\
	EXPECT_EQ(BM_RECORD_ANNOTATION, r_->header.record_type);	\
	EXPECT_EQ(type_, r_->annotation.type);				\
	EXPECT_EQ(channel_, r_->annotation.channel);			\
	EXPECT_STREQ(text_, r_->annotation.data_length ?		\
		     (const char *)r_->annotation.data : "");		\
} while (0)

#define EXPECT_VALUE(walk, series_, value_) do {			\
	const union record *r_ = walk_next(walk);			\
	ASSERT_NE(NULL, r_);						\
	EXPECT_EQ(BM_RECORD_CUSTOM_COUNTER, r_->header.record_type);	\
	EXPECT_EQ(series_, r_->counter.counter);			\
	EXPECT_EQ(value_, r_->counter.value);				\
} while (0)

TEST_F(client, marks_are_recorded_in_order)
{
	struct kb_mark_series frogs = KB_MARK_SERIES("pond", "frogs", "frogs");
	struct walk walk;

	ASSERT_EQ(0, start(self->fd));
	kb_mark_string(3, KB_MARK_RGB(0xff0000), "red");
	kb_mark_bookmark(0, "here");
	kb_mark_name_group(7, "group");
	kb_mark_name_channel(3, 7, "channel");
	kb_mark_value(&frogs, 1);
	kb_mark_value(&frogs, ~0ULL);
	kb_mark_end(3);
	walk = records_after_stop(_metadata, self->fd);
	EXPECT_NOTE(&walk, BM_ANNOTATION_STRING, 3, "red");
	EXPECT_NOTE(&walk, BM_ANNOTATION_BOOKMARK, 0, "here");
	EXPECT_NOTE(&walk, BM_ANNOTATION_GROUP, 0, "group");
	EXPECT_NOTE(&walk, BM_ANNOTATION_CHANNEL, 3, "channel");
	EXPECT_VALUE(&walk, FIRST_SERIES, 1);
	EXPECT_VALUE(&walk, FIRST_SERIES, ~0ULL);
	EXPECT_NOTE(&walk, BM_ANNOTATION_STRING, 3, "");
	EXPECT_EQ(NULL, walk_next(&walk));
}

TEST_F(client, long_text_is_cut)
{
	static char text[2 * KB_MARK_TEXT_MAX];
	const union record *r;
	struct walk walk;

	memset(text, 'x', sizeof(text) - 1);
	ASSERT_EQ(0, start(self->fd));
	kb_mark_bookmark(0, text);
	walk = records_after_stop(_metadata, self->fd);
	r = walk_next(&walk);
	ASSERT_NE(NULL, r);
	EXPECT_EQ(KB_MARK_TEXT_MAX + 1, r->annotation.data_length);
}

TEST_F(client, nobody_records_and_nothing_is_written)
{
	struct kb_mark_series frogs = KB_MARK_SERIES("pond", "frogs", "frogs");

	errno = 4711;
	EXPECT_EQ(0, kb_mark_recording());
	kb_mark_bookmark(0, "lost");
	kb_mark_value(&frogs, 1);
	EXPECT_EQ(4711, errno);
	EXPECT_EQ(0, stats(self->fd, KBARMAN_CPU_ALL).written);
}

/* It opened the device when nobody recorded, and names what it has named before. */
TEST_F(client, each_recording_gets_names_and_series)
{
	struct kb_mark_channel io = KB_MARK_CHANNEL(1, "I/O");
	struct kb_mark_series frogs = KB_MARK_SERIES("pond", "frogs", "frogs");
	struct walk walk;
	int i;

	kb_mark_on(&io, "too early");
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, start(self->fd));
		EXPECT_NE(0, kb_mark_recording());
		kb_mark_on(&io, "read");
		kb_mark_on(&io, "write");
		kb_mark_off(&io);
		kb_mark_value(&frogs, 5);
		walk = records_after_stop(_metadata, self->fd);
		EXPECT_NOTE(&walk, BM_ANNOTATION_CHANNEL, 1, "I/O");
		EXPECT_NOTE(&walk, BM_ANNOTATION_STRING, 1, "read");
		EXPECT_NOTE(&walk, BM_ANNOTATION_STRING, 1, "write");
		EXPECT_NOTE(&walk, BM_ANNOTATION_STRING, 1, "");
		EXPECT_VALUE(&walk, FIRST_SERIES, 5);
		EXPECT_EQ(NULL, walk_next(&walk));
	}
}

TEST_F(client, forked_child_marks_as_itself)
{
	const union record *r;
	struct walk walk;
	pid_t child;

	ASSERT_EQ(0, start(self->fd));
	kb_mark_bookmark(0, "parent");
	child = fork();
	if (!child) {
		kb_mark_bookmark(0, "child");
		_exit(0);
	}
	waitpid(child, NULL, 0);
	walk = records_after_stop(_metadata, self->fd);
	EXPECT_EQ(getpid(), walk_next(&walk)->annotation.task_id);
	r = walk_next(&walk);
	ASSERT_NE(NULL, r);
	EXPECT_EQ(child, r->annotation.task_id);
}

static unsigned int open_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int count = 0;

	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

static void *mark_once(void *barrier)
{
	pthread_barrier_wait(barrier);
	kb_mark_bookmark(0, "thread");
	return NULL;
}

TEST_F(client, threads_that_are_first_open_one_descriptor)
{
	unsigned int before = open_files(), i;
	pthread_barrier_t barrier;
	pthread_t threads[8];

	ASSERT_EQ(0, start(self->fd));
	pthread_barrier_init(&barrier, NULL, 8);
	for (i = 0; i < 8; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, mark_once, &barrier));
	for (i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	EXPECT_EQ(before + 1, open_files());
	ASSERT_EQ(0, stop(self->fd));
	EXPECT_EQ(8, stats(self->fd, KBARMAN_CPU_ALL).written);
}

/* The other thread has opened the device, and has not yet said where the word is. */
TEST_F(client, a_mark_beside_a_thread_that_opens_is_not_lost)
{
	unsigned int before = open_files();

	ASSERT_EQ(0, start(self->fd));
	kb_mark_fd_ = open(KB_MARK_DEVICE, O_WRONLY | O_CLOEXEC);
	kb_mark_bookmark(0, "early");
	EXPECT_EQ(before + 1, open_files());
	ASSERT_EQ(0, stop(self->fd));
	EXPECT_EQ(1, stats(self->fd, KBARMAN_CPU_ALL).written);
}

TEST_HARNESS_MAIN
