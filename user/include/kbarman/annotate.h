/* SPDX-License-Identifier: MIT */
/*
 * Annotate, the protocol in which programs send annotations to gatord: read and write. A stream
 * is one setup message with the version number, followed by any number of messages. Sources:
 * the texts "Annotate v1 (DS-5 v5.20) Protocol", v2 (5.21) and v3 (5.22); for versions 4 and 5,
 * which have no text, Arm's client.
 *
 *   v1  messages 0x1 to 0x9, a setup of 19 bytes
 *   v2  adds messages 0xa to 0xd and the class "incident"
 *   v3  a setup of 20 bytes (adds dont_mangle), adds the composition "log10"
 *   v4  adds messages 0xe to 0x10 (gator 5.24)
 *   v5  the client sends counter values of 64 bits (gator 7.9), which all texts specify
 *
 * The protocol requires texts in UTF-8. The encoder does not check that. The encoder cuts texts
 * that the protocol terminates with a NUL at their first NUL.
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

#define KB_ANNOTATE_SOCKET	"streamline-annotate"	/* abstract name: a NUL stands before it */
#define KB_ANNOTATE_PORT	"8083"			/* TCP port, loopback only */
#define KB_ANNOTATE_VERSION_MAX	5		/* the reader takes versions 1 to 5 */
#define KB_ANNOTATE_SETUP_BYTES	20		/* 19 before version 3 */
#define KB_ANNOTATE_MAX_BODY	(1u << 20)	/* the reader's limit, without image bytes */

enum kb_annotate_type {
	KB_ANNOTATE_STRING	= 0x1,
	KB_ANNOTATE_COLOR_STRING = 0x2,
	KB_ANNOTATE_CHANNEL	= 0x3,	/* name a channel */
	KB_ANNOTATE_GROUP	= 0x4,	/* name a group */
	KB_ANNOTATE_VISUAL	= 0x5,	/* a text and an image */
	KB_ANNOTATE_MARKER	= 0x6,
	KB_ANNOTATE_COLOR_MARKER = 0x7,
	KB_ANNOTATE_COUNTER	= 0x8,	/* create a counter */
	KB_ANNOTATE_VALUE	= 0x9,	/* a value of a counter */
	KB_ANNOTATE_ACTIVITY	= 0xa,	/* activity switch */
	KB_ANNOTATE_CAM_TRACK	= 0xb,
	KB_ANNOTATE_CAM_JOB	= 0xc,
	KB_ANNOTATE_CAM_VIEW	= 0xd,
	KB_ANNOTATE_CAM_START	= 0xe,	/* version 4 from here on */
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
 * A colour is 0xRRGGBBTT; the bytes are sent in that order. TT 0 cycles through the template
 * colours, TT 1 to 4 selects one of them, TT >= 5 uses RRGGBB.
 */
#define KB_ANNOTATE_RGB(rgb)	((uint32_t)(rgb) << 8 | 0x1b)

struct kb_annotate_setup {
	int32_t version;	/* 1 to 5; the encoder writes 4, 5, and 3 for all others */
	int32_t tid, pid;
	uint8_t dont_mangle;	/* keys are unique in the whole system; 0 before version 3 */
};

struct kb_annotate_activity {
	struct kb_text name;
	uint32_t color;
};

struct kb_annotate_counter {
	int32_t key;
	int32_t per_cpu;		/* 0 or 1, as all booleans of this struct */
	int32_t series_class;		/* enum kb_annotate_class */
	int32_t display;		/* enum kb_annotate_display */
	int32_t modifier;		/* displayed value = value / modifier */
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
 * A job comes whole (0xc), or in parts: its start (0xe: view, track, job, color, name), its
 * dependencies (0xf: view, job, primary, deps) and its stop (0x10: view, job).
 */
struct kb_annotate_job {
	int32_t view, track;		/* track 0: none */
	int32_t job;
	int64_t start, duration;	/* ns; only in 0xc, the others have a timestamp */
	uint32_t color;
	int32_t primary;		/* a job; -1: none */
	uint32_t nr_deps;
	const int32_t *deps;		/* job numbers, nr_deps */
	struct kb_text name;
};

/* `type` selects the member of the union. The comment of each member lists its types. */
struct kb_annotate_message {
	enum kb_annotate_type type;
	uint64_t offset;		/* reader: offset of the message in the input, bytes */
	int64_t timestamp;		/* CLOCK_MONOTONIC_RAW, ns; 0x8 and 0xb to 0xd have none */
	union {
		struct {		/* 0x1 to 0x4, 0x6, 0x7 */
			int32_t channel;	/* 0x1 to 0x3 */
			int32_t group;		/* 0x3, 0x4 */
			uint32_t color;		/* 0x2, 0x7 */
			struct kb_text text;	/* empty: the annotation of the channel ends */
		} note;
		struct {		/* 0x5 */
			struct kb_text text;
			const void *image;	/* reader: NULL; use kb_annotate_read_image() */
			uint64_t image_bytes;
		} visual;
		struct kb_annotate_counter counter;	/* 0x8 */
		struct {		/* 0x9 */
			int32_t core, key;
			int64_t value;
		} value;
		struct {		/* 0xa */
			int32_t core, key;
			int32_t activity;	/* 1 = the counter's first activity, 0 = idle */
			int32_t tid;		/* -1: none */
		} activity;
		struct {		/* 0xb */
			int32_t view, track;	/* track > 0 */
			int32_t parent;		/* a track; -1: none */
			struct kb_text name;
		} track;
		struct kb_annotate_job job;	/* 0xc, 0xe to 0x10 */
		struct {		/* 0xd */
			int32_t view;
			struct kb_text name;
		} view;
	};
};

/* Write the setup, with which a stream begins. Returns 0 or the output's error. */
int kb_annotate_write_setup(struct kb_out *out, const struct kb_annotate_setup *setup);

/*
 * Write a message. Returns 0 or a negative errno. -EINVAL: the type does not exist; -EMSGSIZE:
 * the message has more than 2^31 - 1 bytes. In both cases nothing is written and the output
 * stays usable.
 */
int kb_annotate_write(struct kb_out *out, const struct kb_annotate_message *message);

struct kb_annotate_reader;

/*
 * Open the stream at @path ("-" is standard input) or in memory, and read its setup. @data
 * stays the caller's and must live until kb_annotate_close(), which frees the reader. Returns 0
 * or a negative errno and @err. -ENODATA: not an Annotate stream; -EPROTONOSUPPORT: a stream of
 * an unknown version. Memory use does not depend on the size of the stream. A file may hold
 * several streams, one behind the other, each with its own setup, as CAPTURE.annotate-side does.
 */
int kb_annotate_open(struct kb_annotate_reader **reader, const char *path, struct kb_error *err);
int kb_annotate_open_memory(struct kb_annotate_reader **reader, const void *data, size_t size,
			    struct kb_error *err);
void kb_annotate_close(struct kb_annotate_reader *reader);

/* The setup of the stream that the last delivered message belongs to. The reader owns it. */
const struct kb_annotate_setup *kb_annotate_setup(const struct kb_annotate_reader *reader);

/*
 * Read the next message. Returns 1 and fills @message, whose pointers hold until the next call;
 * 0 at the end; a negative errno and @err where the stream is damaged. Calls after an error
 * return 0.
 */
int kb_annotate_next(struct kb_annotate_reader *reader, struct kb_annotate_message *message,
		     struct kb_error *err);

/*
 * Read the next bytes, at most @size, of the image of the message that kb_annotate_next()
 * delivered last. Returns their number; 0 at the end of the image. kb_annotate_next() skips
 * unread bytes, and reports an error if the stream ends inside the image.
 */
size_t kb_annotate_read_image(struct kb_annotate_reader *reader, void *to, size_t size);

/*
 * What the protocol forbids and the reader accepted: numbers with more bytes than they need,
 * values outside their enumeration, invalid UTF-8, a NUL in a text. Returns the number of
 * findings and sets @first to the first of them (NULL if none).
 */
unsigned int kb_annotate_damage(const struct kb_annotate_reader *reader,
				const struct kb_error **first);

#ifdef __cplusplus
}
#endif

#endif
