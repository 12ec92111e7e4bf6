/* SPDX-License-Identifier: MIT */
/*
 * Marks: a program tells the recording what it is doing. This file is all that a program needs,
 * in C (from C99 on) and C++. There is no library to link.
 *
 *	static struct kb_mark_series fps = KB_MARK_SERIES("Game", "fps", "frames/s");
 *	static struct kb_mark_channel io = KB_MARK_CHANNEL(1, "I/O");
 *
 *	kb_mark_on(&io, "reading the level");
 *	…
 *	kb_mark_off(&io);
 *	kb_mark_value(&fps, 60);
 *	kb_mark_bookmark(0, "level loaded");
 *
 * While nobody records, or if there is no /dev/kbarman or no permission to write to it, each
 * call only reads a word in memory (four instructions). The first call maps this word, which
 * the kernel updates, so recordings may start and stop while the program runs. A program that
 * started before the module was loaded calls kb_mark_open() once more.
 *
 * All functions may be called from any thread, after fork(), and from signal handlers. They
 * never fail and do not change errno. A mark takes one system call. The kernel records the CPU,
 * the time and the thread id of that call. Each user may write 20000 marks a second; a mark
 * counts once, and once more for every 64 bytes of its text. Marks above this rate are dropped,
 * and the recording counts them. Texts are UTF-8 of at most 4095 bytes; longer ones are cut. A
 * colour is 0 (the viewer takes the next one), 1 to 4 (a colour of the viewer's own), or
 * KB_MARK_RGB(0xrrggbb).
 */
#ifndef KBARMAN_MARK_H
#define KBARMAN_MARK_H

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KB_MARK_DEVICE		"/dev/kbarman"
#define KB_MARK_TEXT_MAX	4095
#define KB_MARK_RGB(rgb)	(0x1b000000U | (uint32_t)(rgb))

/* What the values of a series are: */
#define KB_MARK_DELTA		1	/* the change since the last value */
#define KB_MARK_INCIDENT	2	/* an amount at this moment */
#define KB_MARK_ABSOLUTE	3	/* the level from now on */

/* How a viewer shows the values of a moment, or of a core, together: */
#define KB_MARK_ACCUMULATE	1
#define KB_MARK_AVERAGE		2
#define KB_MARK_HERTZ		3
#define KB_MARK_MAXIMUM		4
#define KB_MARK_MINIMUM		5

/* How it shows the series of a chart together: */
#define KB_MARK_STACKED		1
#define KB_MARK_OVERLAY		2
#define KB_MARK_LOG10		3

/* How it draws a series: */
#define KB_MARK_FILLED		1
#define KB_MARK_LINE		2
#define KB_MARK_BAR		3

/*
 * One curve of a chart. KB_MARK_SERIES() makes a line of absolute values. Change other members
 * before the first use.
 */
struct kb_mark_series {
	const char *chart, *name, *units, *description;
	uint8_t series_class;		/* KB_MARK_DELTA… */
	uint8_t display;		/* KB_MARK_ACCUMULATE… */
	uint8_t series_composition;	/* KB_MARK_STACKED… */
	uint8_t rendering_type;		/* KB_MARK_FILLED… */
	double multiplier;		/* displayed value = value * multiplier */
	uint32_t series, recording;	/* internal */
};

#define KB_MARK_SERIES(chart, name, units) \
	{ chart, name, units, "", KB_MARK_ABSOLUTE, KB_MARK_AVERAGE, KB_MARK_OVERLAY, \
	  KB_MARK_LINE, 1.0, 0, 0 }

/*
 * A lane of annotations. Viewers show the channels of each thread separately. A channel that is
 * local to a thread (static __thread, thread_local) gets its name in each thread.
 */
struct kb_mark_channel {
	uint32_t channel;		/* its number */
	const char *name;
	uint32_t group;
	uint32_t colour;
	uint32_t recording;		/* internal */
};

#define KB_MARK_CHANNEL(number, name)	{ number, name, 0, 0, 0 }

/* ---- internal: names that end in _ are not for users of this file ---- */

/* The same layout as struct kbarman_mark in the module's <kbarman/uapi/kbarman.h>. */
struct kb_mark_wire_ {
	uint32_t size, type, text_bytes, channel, group, colour, series, reserved;
	uint64_t value;
};

/* The same layout as struct kbarman_mark_series. */
struct kb_mark_wire_series_ {
	uint32_t size, series, recording, colour;
	uint64_t multiplier;
	uint8_t series_class, display, series_composition, rendering_type, chart_flags;
	uint8_t reserved[3];
	char chart[64], name[64], units[32], description[128];
};

enum { KB_MARK_STRING_, KB_MARK_BOOKMARK_, KB_MARK_CHANNEL_, KB_MARK_GROUP_, KB_MARK_COUNTER_ };

#define KB_MARK_STATE_		_IO('k', 0xb9)
#define KB_MARK_SERIES_		_IOWR('k', 0xba, struct kb_mark_wire_series_)
#define KB_MARK_UNKNOWN_	0xffffffffU

/* One instance for the whole program, although several files include this header. */
__attribute__((weak)) uint32_t kb_mark_words_[2] = { 0, KB_MARK_UNKNOWN_ };
__attribute__((weak)) const uint32_t *kb_mark_word_ = &kb_mark_words_[1];
__attribute__((weak)) int kb_mark_fd_ = -1;

#ifndef O_CLOEXEC
#define O_CLOEXEC 02000000
#endif

/*
 * Map the word that holds the recording's number. Without a device, use the word for "none". If
 * threads are here at once, each one maps the word, and the first one's descriptor stays open: no
 * thread waits for another one, and none takes the recording for none.
 */
__attribute__((cold, noinline, unused))
static uint32_t kb_mark_find_(void)
{
	int fd, none = -1, word_fd, saved = errno;
	const uint32_t *word = &kb_mark_words_[0];
	void *map;

	fd = open(KB_MARK_DEVICE, O_WRONLY | O_CLOEXEC);
	if (fd >= 0) {
		word_fd = ioctl(fd, KB_MARK_STATE_, 0);
		map = word_fd < 0 ? MAP_FAILED :
		      mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED, word_fd, 0);
		if (word_fd >= 0)
			close(word_fd);
		if (map != MAP_FAILED)
			word = (const uint32_t *)map + 1;
		if (map == MAP_FAILED ||
		    !__atomic_compare_exchange_n(&kb_mark_fd_, &none, fd, 0, __ATOMIC_ACQ_REL,
						 __ATOMIC_ACQUIRE))
			close(fd);
	}
	if (word != &kb_mark_words_[0] || __atomic_load_n(&kb_mark_fd_, __ATOMIC_ACQUIRE) < 0)
		__atomic_store_n(&kb_mark_word_, word, __ATOMIC_RELEASE);
	errno = saved;
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

/* The number of the recording that takes marks now, 0 if there is none. */
static inline uint32_t kb_mark_recording(void)
{
	uint32_t recording = __atomic_load_n(__atomic_load_n(&kb_mark_word_, __ATOMIC_ACQUIRE),
					     __ATOMIC_RELAXED);

	if (__builtin_expect(!recording, 1))
		return 0;
	return __builtin_expect(recording == KB_MARK_UNKNOWN_, 0) ? kb_mark_find_() : recording;
}

/* Look for the device again. The first mark looks for the device by itself. */
static inline void kb_mark_open(void)
{
	if (__atomic_load_n(&kb_mark_fd_, __ATOMIC_ACQUIRE) < 0)
		kb_mark_find_();
}

__attribute__((noinline, unused))
static void kb_mark_write_(uint32_t type, uint32_t channel, uint32_t group, uint32_t colour,
			   const char *text)
{
	struct kb_mark_wire_ mark;
	struct iovec pieces[2];
	int saved = errno;
	ssize_t n;

	memset(&mark, 0, sizeof(mark));
	mark.size = sizeof(mark);
	mark.type = type;
	mark.text_bytes = (uint32_t)strlen(text);
	if (mark.text_bytes > KB_MARK_TEXT_MAX)
		mark.text_bytes = KB_MARK_TEXT_MAX;
	mark.channel = channel;
	mark.group = group;
	mark.colour = colour;
	pieces[0].iov_base = &mark;
	pieces[0].iov_len = sizeof(mark);
	pieces[1].iov_base = (void *)(uintptr_t)text;
	pieces[1].iov_len = mark.text_bytes;
	n = writev(kb_mark_fd_, pieces, 2);
	(void)n;
	errno = saved;
}

/* Annotate this thread on @channel from now until its next annotation there. */
static inline void kb_mark_string(uint32_t channel, uint32_t colour, const char *text)
{
	if (kb_mark_recording())
		kb_mark_write_(KB_MARK_STRING_, channel, 0, colour, text);
}

/* End the annotation on @channel. */
static inline void kb_mark_end(uint32_t channel)
{
	if (kb_mark_recording())
		kb_mark_write_(KB_MARK_STRING_, channel, 0, 0, "");
}

/* Mark this moment. */
static inline void kb_mark_bookmark(uint32_t colour, const char *text)
{
	if (kb_mark_recording())
		kb_mark_write_(KB_MARK_BOOKMARK_, 0, 0, colour, text);
}

/* Name @channel, which is in @group. The name is valid in the running recording only. */
static inline void kb_mark_name_channel(uint32_t channel, uint32_t group, const char *name)
{
	if (kb_mark_recording())
		kb_mark_write_(KB_MARK_CHANNEL_, channel, group, 0, name);
}

/* Name @group. The name is valid in the running recording only. */
static inline void kb_mark_name_group(uint32_t group, const char *name)
{
	if (kb_mark_recording())
		kb_mark_write_(KB_MARK_GROUP_, 0, group, 0, name);
}

/* Annotate a lane. The first call in a recording also names the lane. */
static inline void kb_mark_on(struct kb_mark_channel *channel, const char *text)
{
	uint32_t recording = kb_mark_recording();

	if (!recording)
		return;
	if (__atomic_exchange_n(&channel->recording, recording, __ATOMIC_RELAXED) != recording)
		kb_mark_write_(KB_MARK_CHANNEL_, channel->channel, channel->group, 0,
			       channel->name);
	kb_mark_write_(KB_MARK_STRING_, channel->channel, 0, channel->colour, text);
}

/* End the annotation of a lane. */
static inline void kb_mark_off(const struct kb_mark_channel *channel)
{
	kb_mark_end(channel->channel);
}

static inline void kb_mark_copy_(char *to, size_t room, const char *from)
{
	size_t length = strlen(from);

	if (length >= room)
		length = room - 1;
	memcpy(to, from, length);
}

/* Create the series in this recording. Returns 1 on success. */
__attribute__((cold, noinline, unused))
static int kb_mark_make_(struct kb_mark_series *series)
{
	struct kb_mark_wire_series_ wire;
	int saved = errno, error;

	memset(&wire, 0, sizeof(wire));
	wire.size = sizeof(wire);
	wire.colour = 0xffffffffU;
	memcpy(&wire.multiplier, &series->multiplier, sizeof(wire.multiplier));
	wire.series_class = series->series_class;
	wire.display = series->display;
	wire.series_composition = series->series_composition;
	wire.rendering_type = series->rendering_type;
	kb_mark_copy_(wire.chart, sizeof(wire.chart), series->chart);
	kb_mark_copy_(wire.name, sizeof(wire.name), series->name);
	kb_mark_copy_(wire.units, sizeof(wire.units), series->units);
	kb_mark_copy_(wire.description, sizeof(wire.description), series->description);
	error = ioctl(kb_mark_fd_, KB_MARK_SERIES_, &wire);
	errno = saved;
	if (error < 0)
		return 0;
	__atomic_store_n(&series->series, wire.series, __ATOMIC_RELAXED);
	__atomic_store_n(&series->recording, wire.recording, __ATOMIC_RELEASE);
	return 1;
}

/* Record a value of the series at this moment. */
static inline void kb_mark_value(struct kb_mark_series *series, uint64_t value)
{
	uint32_t recording = kb_mark_recording();
	struct kb_mark_wire_ mark;
	int saved = errno;
	ssize_t n;

	if (!recording)
		return;
	if (__atomic_load_n(&series->recording, __ATOMIC_ACQUIRE) != recording &&
	    !kb_mark_make_(series))
		return;
	memset(&mark, 0, sizeof(mark));
	mark.size = sizeof(mark);
	mark.type = KB_MARK_COUNTER_;
	mark.series = __atomic_load_n(&series->series, __ATOMIC_RELAXED);
	mark.value = value;
	n = write(kb_mark_fd_, &mark, sizeof(mark));
	(void)n;
	errno = saved;
}

#ifdef __cplusplus
}
#endif

#endif
