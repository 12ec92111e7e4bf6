/* SPDX-License-Identifier: MIT */
/*
 * TPTP traces, the profiler traces of Eclipse: read and write, as XML (.trcxml)
 * and in the binary form (.trcbin). The source of the binary form is the text of
 * TPTP feature 196713, all of whose message tables are here; what it leaves open
 * is in kbarman-formats(5).
 *
 * A message is a pointer to its table and one value per row of it. Both forms
 * carry the same messages, so that whatever was read can be written as the other.
 * Nothing here knows about captures.
 */
#ifndef KBARMAN_TPTP_H
#define KBARMAN_TPTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kbarman/error.h>
#include <kbarman/out.h>
#include <kbarman/text.h>

#ifdef __cplusplus
extern "C" {
#endif

/* KB_TPTP_NODE = 1001 and so on, one per table. */
enum kb_tptp_id {
#define KB_TPTP_MESSAGE(message, id, element)	KB_TPTP_##message = id,
#define KB_TPTP_FIELD(message, field, type, name, attribute, place)
#define KB_TPTP_END(message)
#include <kbarman/tptp_tables.h>
	KB_TPTP_FIRST_DATA = 1001,		/* lower ids are the system's */
};

/* KB_TPTP_NODE_HOSTNAME and so on: indices into kb_tptp_message.values. */
#define KB_TPTP_MESSAGE(message, id, element)	enum kb_tptp_##element##_field {
#define KB_TPTP_FIELD(message, field, type, name, attribute, place) KB_TPTP_##message##_##field,
#define KB_TPTP_END(message)			KB_TPTP_##message##_FIELDS };
#include <kbarman/tptp_tables.h>

#define KB_TPTP_MAX_FIELDS	KB_TPTP_CLASS_DEF_FIELDS	/* the longest table */

enum kb_tptp_type {
	KB_TPTP_TYPE_BYTE,	/* 1 byte, 0 to 255 */
	KB_TPTP_TYPE_INTEGER,	/* 4 bytes, signed */
	KB_TPTP_TYPE_LONG,	/* 8 bytes, signed */
	KB_TPTP_TYPE_TIME,	/* a Long that counts ticks of KB_TPTP_FREQUENCY; XML has
				 * SECONDS.nnnnnnnnn. Timestamps: since the Unix epoch */
	KB_TPTP_TYPE_STRING,
	KB_TPTP_TYPE_STRINGS,	/* String[] and Long[]: as many as the message's */
	KB_TPTP_TYPE_LONGS,	/* stackDepth says, which stands before them */
};

struct kb_tptp_field {
	const char *name;		/* "threadId" */
	const char *attribute;		/* in XML: "threadIdRef" */
	uint8_t type;			/* enum kb_tptp_type */
	uint8_t place;			/* in XML; 0 = at the end, and if not empty */
};

struct kb_tptp_table {
	uint16_t id;			/* enum kb_tptp_id */
	uint16_t nr_fields;
	const char *name;		/* "threadStart"; the XML element */
	const struct kb_tptp_field *fields;
};

/* The table of @id or of the element @name, NULL if there is none. */
const struct kb_tptp_table *kb_tptp_table(uint32_t id);
const struct kb_tptp_table *kb_tptp_table_by_name(const char *name, size_t length);

/* The tables by increasing id; NULL from the last one on. */
const struct kb_tptp_table *kb_tptp_table_at(unsigned int index);

union kb_tptp_value {
	int64_t number;			/* BYTE, INTEGER, LONG, TIME */
	struct kb_text string;
	const struct kb_text *strings;
	const int64_t *longs;
};

struct kb_tptp_message {
	const struct kb_tptp_table *table;
	union kb_tptp_value values[KB_TPTP_MAX_FIELDS];
};

/* An empty message: every value is 0, "" or, with stackDepth 0, no element. */
void kb_tptp_message_init(struct kb_tptp_message *message, enum kb_tptp_id id);

/* The number of elements of @message's arrays: its stackDepth, 0 if it has none. */
uint32_t kb_tptp_message_depth(const struct kb_tptp_message *message);

/* ---- write ---- */

#define KB_TPTP_FREQUENCY_NS	1000000000	/* ticks are nanoseconds */

/* Limits of one message: text of all its strings, elements of its arrays. */
#define KB_TPTP_MAX_TEXT	(512u << 10)
#define KB_TPTP_MAX_DEPTH	16384u

struct kb_tptp_layout {
	bool binary;			/* else XML */
	bool big_endian;		/* binary only */
	bool platform_32;		/* binary only; a label: sizes do not depend on it */
	int64_t frequency;		/* ticks a second; 0 = KB_TPTP_FREQUENCY_NS */
};

struct kb_tptp_writer;

/*
 * Start a trace in @out, which stays the caller's: the header and, in the binary
 * form, encoding "UTF-8" and the frequency.
 */
int kb_tptp_writer_create(struct kb_tptp_writer **writer, struct kb_out *out,
			  const struct kb_tptp_layout *layout);
void kb_tptp_writer_destroy(struct kb_tptp_writer *writer);

/*
 * Append a message. Strings end at an embedded NUL; what is not UTF-8 in them, and
 * in XML what XML forbids, becomes U+FFFD. KB_TPTP_FREQUENCY changes the meaning of
 * ticks from there on; system messages leave no trace of their own in XML.
 *
 *	-EINVAL		a number does not fit its type, stackDepth is negative, or
 *			a frequency is not positive
 *	-EMSGSIZE	above KB_TPTP_MAX_TEXT or KB_TPTP_MAX_DEPTH
 * leave the trace as it was. Others are those of the output.
 */
int kb_tptp_writer_message(struct kb_tptp_writer *writer, const struct kb_tptp_message *message);

/* End the trace and flush the output. */
int kb_tptp_writer_finish(struct kb_tptp_writer *writer);

/* ---- read ---- */

/* No message of a trace may be longer than this; XML: no tag. */
#define KB_TPTP_MAX_MESSAGE	(4u << 20)

struct kb_tptp_info {
	bool binary;
	bool big_endian;
	uint8_t platform;		/* 0 = 32 bits, 1 = 64 bits */
	uint8_t version_major, version_minor;
	int64_t frequency;		/* ticks a second, as known so far */
	uint64_t messages;		/* delivered so far */
	uint64_t skipped;		/* messages or elements of a kind not known */
};

struct kb_tptp;

/*
 * Open a trace in either form, told by its content: @path ("-" for standard
 * input), or @size bytes at @data, which must stay until kb_tptp_close(). Memory use
 * does not depend on the size of the trace.
 *
 *	-ENODATA	not a TPTP trace
 *	-EBADMSG	one, but its header is damaged or of an unknown version
 */
int kb_tptp_open(struct kb_tptp **out, const char *path, struct kb_error *err);
int kb_tptp_open_memory(struct kb_tptp **out, const void *data, size_t size,
			struct kb_error *err);
void kb_tptp_close(struct kb_tptp *tptp);

const struct kb_tptp_info *kb_tptp_info(const struct kb_tptp *tptp);

/*
 * The next message. Returns 1 and fills @message, whose pointers hold until the
 * next call; 0 at the end; a negative errno with @err filled for a place that is
 * damaged: the next call goes on behind it, or returns 0 if that is not possible.
 * Times of XML are delivered in nanoseconds.
 */
int kb_tptp_next(struct kb_tptp *tptp, struct kb_tptp_message *message, struct kb_error *err);

/* @ticks of the trace in nanoseconds, rounded down; saturates. */
int64_t kb_tptp_ns(const struct kb_tptp *tptp, int64_t ticks);

/* ---- serve ---- */

/* What a client sends, first of all, if it can read the binary form. */
#define KB_TPTP_ACCEPT_BINARY	"format=binary\n"

/*
 * Decide about the form of a live trace: wait at most @timeout_ms for the client's
 * line on the connected socket @fd. Returns 1 for binary, if it was wanted and the
 * client can read it, 0 for XML, or a negative errno if the client is gone.
 */
int kb_tptp_negotiate(int fd, bool want_binary, int timeout_ms);

#ifdef __cplusplus
}
#endif

#endif
