/* SPDX-License-Identifier: MIT */
/*
 * Marks: a program tells the recording what it is doing. This one file is all it takes,
 * in C from C99 on and in C++; there is no library to link.
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
 * Nobody records, or there is no /dev/kbarman or no right to write to it: each of these
 * is a look at a word in memory (four instructions). The word is a page of the kernel's
 * that is mapped at the first call, so recordings may come and go as they like while
 * the program runs; one that runs from before the module was loaded calls
 * kb_mark_open() once more.
 *
 * All functions may be called from any thread, after fork() too, and from signal
 * handlers; they never fail, and leave errno as it is. A mark takes one system call, and is
 * recorded on the CPU and with the time and the thread id of that call; more than 20000
 * a second of one process, with those that it forks, are dropped, which the recording tells. Texts are UTF-8, of at
 * most 4095 bytes (longer ones are cut); what is shown for a colour is 0: whichever
 * comes next, 1 to 4: one of the viewer's own, KB_MARK_RGB(0xrrggbb): that one.
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

/* How values of a series are meant. */
#define KB_MARK_DELTA		1	/* so much since the last one */
#define KB_MARK_INCIDENT	2	/* so much right now */
#define KB_MARK_ABSOLUTE	3	/* it is so much from now on */

/*
 * One curve of a chart. Made of KB_MARK_SERIES() it is a line of absolute values; change
 * what is to be otherwise before it is first used.
 */
struct kb_mark_series {
	const char *chart, *name, *units, *description;
	uint8_t series_class;		/* KB_MARK_DELTA… */
	uint8_t display;		/* 1 accumulate, 2 average, 3 hertz, 4 maximum, 5 minimum */
	uint8_t series_composition;	/* 1 stacked, 2 overlay, 3 log10 */
	uint8_t rendering_type;		/* 1 filled, 2 line, 3 bar */
	double multiplier;		/* what is shown = value * multiplier */
	uint32_t series, recording;	/* the header's own */
};

#define KB_MARK_SERIES(chart, name, units) \
	{ chart, name, units, "", KB_MARK_ABSOLUTE, 2, 2, 2, 1.0, 0, 0 }

/*
 * A lane of annotations. Viewers keep channels apart by thread: a thread's own (static
 * __thread, thread_local) gets its name in each of them.
 */
struct kb_mark_channel {
	uint32_t channel;		/* its number */
	const char *name;
	uint32_t group;
	uint32_t colour;
	uint32_t recording;		/* the header's own */
};

#define KB_MARK_CHANNEL(number, name)	{ number, name, 0, 0, 0 }

/* ---- below: how it is done; what ends in _ is nobody else's ---- */

/* As struct kbarman_mark in the module's <kbarman/uapi/kbarman.h>. */
struct kb_mark_wire_ {
	uint32_t size, type, text_bytes, channel, group, colour, series, reserved;
	uint64_t value;
};

/* As struct kbarman_mark_series. */
struct kb_mark_wire_series_ {
	uint32_t size, series, recording, colour;
	uint64_t multiplier;
	uint8_t series_class, display, series_composition, rendering_type, chart_flags;
	uint8_t reserved0[7];
	char chart[64], name[64], units[32], description[128];
	uint32_t reserved1;
	uint64_t reserved[2];
};

enum { KB_MARK_STRING_, KB_MARK_BOOKMARK_, KB_MARK_CHANNEL_, KB_MARK_GROUP_, KB_MARK_COUNTER_ };

#define KB_MARK_STATE_		_IO('k', 0xb9)
#define KB_MARK_SERIES_		_IO('k', 0xba)
#define KB_MARK_UNKNOWN_	0xffffffffU

/* One for all of a program, wherever it includes this. */
__attribute__((weak)) uint32_t kb_mark_words_[2] = { 0, KB_MARK_UNKNOWN_ };
__attribute__((weak)) const uint32_t *kb_mark_word_ = &kb_mark_words_[1];
__attribute__((weak)) int kb_mark_fd_ = -1;

#ifndef O_CLOEXEC
#define O_CLOEXEC 02000000
#endif

/* Map the word that says who records; the one that says nobody, if there is none. */
__attribute__((cold, noinline, unused))
static uint32_t kb_mark_find_(void)
{
	int fd = -1, none = -1, word_fd, saved = errno;
	const uint32_t *word = &kb_mark_words_[0];
	void *map;

	if (__atomic_load_n(&kb_mark_fd_, __ATOMIC_ACQUIRE) < 0)
		fd = open(KB_MARK_DEVICE, O_WRONLY | O_CLOEXEC);
	if (fd >= 0) {
		word_fd = ioctl(fd, KB_MARK_STATE_, 0);
		map = word_fd < 0 ? MAP_FAILED :
		      mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED, word_fd, 0);
		if (word_fd >= 0)
			close(word_fd);
		if (map != MAP_FAILED)
			word = (const uint32_t *)map + 1;
		/* Of two threads one is first; the other one has mapped a page too many. */
		if (map == MAP_FAILED ||
		    !__atomic_compare_exchange_n(&kb_mark_fd_, &none, fd, 0, __ATOMIC_ACQ_REL,
						 __ATOMIC_ACQUIRE))
			close(fd);
	}
	if (fd >= 0 || __atomic_load_n(&kb_mark_fd_, __ATOMIC_ACQUIRE) < 0)
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

/* Look for the device (again), which is done by itself at the first mark. */
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

/* An annotation of this thread on @channel, up to the next one there. */
static inline void kb_mark_string(uint32_t channel, uint32_t colour, const char *text)
{
	if (kb_mark_recording())
		kb_mark_write_(KB_MARK_STRING_, channel, 0, colour, text);
}

/* The annotation on @channel is over. */
static inline void kb_mark_end(uint32_t channel)
{
	if (kb_mark_recording())
		kb_mark_write_(KB_MARK_STRING_, channel, 0, 0, "");
}

/* A moment worth coming back to. */
static inline void kb_mark_bookmark(uint32_t colour, const char *text)
{
	if (kb_mark_recording())
		kb_mark_write_(KB_MARK_BOOKMARK_, 0, 0, colour, text);
}

/* Names hold for the recording that runs: each new one has to be told again. */
static inline void kb_mark_name_channel(uint32_t channel, uint32_t group, const char *name)
{
	if (kb_mark_recording())
		kb_mark_write_(KB_MARK_CHANNEL_, channel, group, 0, name);
}

static inline void kb_mark_name_group(uint32_t group, const char *name)
{
	if (kb_mark_recording())
		kb_mark_write_(KB_MARK_GROUP_, 0, group, 0, name);
}

/* An annotation on a lane, which gets its name once a recording. */
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

/* Have the series made for this recording. */
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

/* A value of the series, as of now. */
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
