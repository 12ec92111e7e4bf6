/* SPDX-License-Identifier: MIT */
/*
 * Annotate, what gatord is told by those it profiles: read and write. A stream is one
 * setup, which says the version, and then messages. Sources: the texts "Annotate v1 (DS-5
 * v5.20) Protocol", v2 (5.21) and v3 (5.22); Arm's client for the versions that have no text.
 *
 *   v1  messages 0x1 to 0x9, a setup of 19 bytes
 *   v2  0xa to 0xd, the class "incident"
 *   v3  a setup of 20 bytes (dont_mangle), the composition "log10"
 *   v4  0xe to 0x10 (gator 5.24)
 *   v5  the client's counter values have 64 bits (gator 7.9); in all the texts they have
 *
 * Texts are UTF-8 by the protocol. The encoder writes them as they are given, those
 * that the protocol ends with a NUL up to their first NUL.
 */
#ifndef KBARMAN_ANNOTATE_H
#define KBARMAN_ANNOTATE_H

#include <stdbool.h>
#include <stdint.h>

#include <kbarman/error.h>
#include <kbarman/out.h>
#include <kbarman/text.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KB_ANNOTATE_SOCKET	"streamline-annotate"	/* abstract, behind a NUL */
#define KB_ANNOTATE_PORT	"8083"			/* the same by TCP, loopback */
#define KB_ANNOTATE_VERSION_MAX	5		/* 1 to this are read */
#define KB_ANNOTATE_SETUP_BYTES	20		/* 19 before version 3 */
#define KB_ANNOTATE_MAX_BODY	(1u << 20)	/* the reader's limit, image bytes apart */

enum kb_annotate_type {
	KB_ANNOTATE_STRING	= 0x1,
	KB_ANNOTATE_COLOR_STRING = 0x2,
	KB_ANNOTATE_CHANNEL	= 0x3,	/* name a channel */
	KB_ANNOTATE_GROUP	= 0x4,	/* name a group */
	KB_ANNOTATE_VISUAL	= 0x5,	/* a text and an image */
	KB_ANNOTATE_MARKER	= 0x6,
	KB_ANNOTATE_COLOR_MARKER = 0x7,
	KB_ANNOTATE_COUNTER	= 0x8,	/* create a counter */
	KB_ANNOTATE_VALUE	= 0x9,	/* of a counter */
	KB_ANNOTATE_ACTIVITY	= 0xa,	/* activity switch */
	KB_ANNOTATE_CAM_TRACK	= 0xb,
	KB_ANNOTATE_CAM_JOB	= 0xc,
	KB_ANNOTATE_CAM_VIEW	= 0xd,
	KB_ANNOTATE_CAM_START	= 0xe,	/* from here on: version 4 */
	KB_ANNOTATE_CAM_DEPS	= 0xf,
	KB_ANNOTATE_CAM_STOP	= 0x10,
};

enum kb_annotate_class {
	KB_ANNOTATE_DELTA = 1, KB_ANNOTATE_ABSOLUTE, KB_ANNOTATE_ACTIVITIES, KB_ANNOTATE_INCIDENT,
};

enum kb_annotate_display {
	KB_ANNOTATE_AVERAGE = 1, KB_ANNOTATE_ACCUMULATE, KB_ANNOTATE_HERTZ, KB_ANNOTATE_MAXIMUM,
	KB_ANNOTATE_MINIMUM,
};

enum kb_annotate_composition {
	KB_ANNOTATE_STACKED = 1, KB_ANNOTATE_OVERLAY, KB_ANNOTATE_LOG10,
};

enum kb_annotate_rendering {
	KB_ANNOTATE_FILLED = 1, KB_ANNOTATE_LINE, KB_ANNOTATE_BAR,
};

/*
 * A colour is 0xRRGGBBTT, the order of its bytes on the wire. TT 1 to 4 are template
 * colours, 0 cycles through them, from 5 on RRGGBB counts.
 */
#define KB_ANNOTATE_RGB(rgb)	((uint32_t)(rgb) << 8 | 0x1b)

struct kb_annotate_setup {
	int32_t version;	/* 1 to 5; encoder: 4 and 5 are written, others as 3 */
	int32_t tid, pid;
	uint8_t dont_mangle;	/* keys are unique in the whole system; 0 before version 3 */
};

struct kb_annotate_activity {
	struct kb_text name;
	uint32_t color;
};

struct kb_annotate_counter {
	int32_t key;
	int32_t per_cpu;		/* 0, 1; so are the booleans below */
	int32_t series_class;		/* enum kb_annotate_class */
	int32_t display;		/* enum kb_annotate_display */
	int32_t modifier;		/* what is shown = value / modifier */
	int32_t series_composition;	/* enum kb_annotate_composition */
	int32_t rendering_type;		/* enum kb_annotate_rendering */
	int32_t average_selection, average_cores, percentage;
	int32_t cores;
	uint32_t color;
	uint32_t nr_activities;
	const struct kb_annotate_activity *activities;
	struct kb_text title, name, units, description;
};

/*
 * A job that is told whole (0xc), or when it starts (0xe: view, track, job, color, name),
 * what it depends on (0xf: view, job, primary, deps) and when it stops (0x10: view, job).
 */
struct kb_annotate_job {
	int32_t view, track;		/* track 0: none */
	int32_t job;
	int64_t start, duration;	/* ns, 0xc only: the others have a timestamp */
	uint32_t color;
	int32_t primary;		/* job, -1: none */
	uint32_t nr_deps;
	const int32_t *deps;		/* jobs */
	struct kb_text name;
};

/* Which member counts follows from the type: see the names in the union. */
struct kb_annotate_message {
	enum kb_annotate_type type;
	uint64_t offset;		/* reader: of the message in the input */
	int64_t timestamp;		/* CLOCK_MONOTONIC_RAW ns; none in 0x8, 0xb to 0xd */
	union {
		struct {		/* 0x1 to 0x4, 0x6, 0x7 */
			int32_t channel;	/* 0x1 to 0x3 */
			int32_t group;		/* 0x3, 0x4 */
			uint32_t color;		/* 0x2, 0x7 */
			struct kb_text text;	/* empty: ends the channel's annotation */
		} note;
		struct {		/* 0x5 */
			struct kb_text text;
			const void *image;	/* reader: NULL, see
						 * kb_annotate_read_image() */
			uint64_t image_bytes;
		} visual;
		struct kb_annotate_counter counter;	/* 0x8 */
		struct {		/* 0x9 */
			int32_t core, key;
			int64_t value;
		} value;
		struct {		/* 0xa */
			int32_t core, key;
			int32_t activity;	/* 1 = the counter's first, 0 = idle */
			int32_t tid;		/* -1: none */
		} activity;
		struct {		/* 0xb */
			int32_t view, track;	/* track > 0 */
			int32_t parent;		/* track, -1: none */
			struct kb_text name;
		} track;
		struct kb_annotate_job job;	/* 0xc, 0xe to 0x10 */
		struct {		/* 0xd */
			int32_t view;
			struct kb_text name;
		} view;
	};
};

int kb_annotate_write_setup(struct kb_out *out, const struct kb_annotate_setup *setup);

/*
 * Write a message. -EINVAL: no such type; -EMSGSIZE: longer than 2^31 - 1 bytes.
 * Nothing is written then, and the output is as good as before.
 */
int kb_annotate_write(struct kb_out *out, const struct kb_annotate_message *message);

struct kb_annotate_reader;

/*
 * Open the stream at @path ("-" is standard input) or in memory, which must stay, and
 * read its setup. Memory use does not depend on the stream. -ENODATA: it is not an
 * Annotate stream; -EPROTONOSUPPORT: one of a version that is not known. A file may have
 * several streams, one behind the other, each with its setup (CAPTURE.annotate-side has).
 */
int kb_annotate_open(struct kb_annotate_reader **reader, const char *path, struct kb_error *err);
int kb_annotate_open_memory(struct kb_annotate_reader **reader, const void *data, size_t size,
			    struct kb_error *err);
void kb_annotate_close(struct kb_annotate_reader *reader);

/* That of the stream which the message given last is of. */
const struct kb_annotate_setup *kb_annotate_setup(const struct kb_annotate_reader *reader);

/*
 * The next message. Returns 1 and fills @message, whose pointers hold until the next
 * call; 0 at the end; or a negative errno with @err filled where the stream is
 * damaged: calls return 0 after that.
 */
int kb_annotate_next(struct kb_annotate_reader *reader, struct kb_annotate_message *message,
		     struct kb_error *err);

/*
 * The next bytes of the image of the message that kb_annotate_next() gave last, at
 * most @size. Returns how many; 0 at the end of the image. What is not read is passed
 * over by kb_annotate_next(), which says so if the stream ends before the image.
 */
size_t kb_annotate_read_image(struct kb_annotate_reader *reader, void *to, size_t size);

/*
 * What the protocol does not allow but did not stop the reader: numbers in more bytes
 * than they need, values outside their enumeration, broken UTF-8, a NUL in a text.
 * Their number, and the first of them.
 */
unsigned int kb_annotate_damage(const struct kb_annotate_reader *reader,
				const struct kb_error **first);

#ifdef __cplusplus
}
#endif

#endif
