/* SPDX-License-Identifier: MIT */
/*
 * TPTP traces, the profiler traces of Eclipse: read and write, as XML (.trcxml) and in the
 * binary form (.trcbin). The source of the binary form is the text of TPTP feature 196713.
 * tptp_tables.h has all of its message tables; kbarman-formats(5) describes what the text
 * leaves open.
 *
 * A message is a pointer to its table and one value for each row of the table. Both forms carry
 * the same messages, so a trace that was read in one form can be written in the other.
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

/* KB_TPTP_NODE = 1001, …: one for each table. */
enum kb_tptp_id {
#define KB_TPTP_MESSAGE(message, id, element)	KB_TPTP_##message = id,
#define KB_TPTP_FIELD(message, field, type, name, attribute, place)
#define KB_TPTP_END(message)
#include <kbarman/tptp_tables.h>
	KB_TPTP_FIRST_DATA = 1001,		/* lower ids are system messages */
};

/* KB_TPTP_NODE_HOSTNAME, …: indices into kb_tptp_message.values. */
#define KB_TPTP_MESSAGE(message, id, element)	enum kb_tptp_##element##_field {
#define KB_TPTP_FIELD(message, field, type, name, attribute, place) KB_TPTP_##message##_##field,
#define KB_TPTP_END(message)			KB_TPTP_##message##_FIELDS };
#include <kbarman/tptp_tables.h>

#define KB_TPTP_MAX_FIELDS	KB_TPTP_CLASS_DEF_FIELDS	/* the longest table */

enum kb_tptp_type {
	KB_TPTP_TYPE_BYTE,	/* 1 byte, 0 to 255 */
	KB_TPTP_TYPE_INTEGER,	/* 4 bytes, signed */
	KB_TPTP_TYPE_LONG,	/* 8 bytes, signed */
	KB_TPTP_TYPE_TIME,	/* a Long, in ticks of KB_TPTP_FREQUENCY; XML has
				 * SECONDS.nnnnnnnnn. Timestamps count from the Unix epoch */
	KB_TPTP_TYPE_STRING,
	KB_TPTP_TYPE_STRINGS,	/* String[] and Long[]: the field stackDepth, which */
	KB_TPTP_TYPE_LONGS,	/* stands before them, is their number of elements */
};

struct kb_tptp_field {
	const char *name;		/* "threadId" */
	const char *attribute;		/* name in XML: "threadIdRef" */
	uint8_t type;			/* enum kb_tptp_type */
	uint8_t place;			/* position in XML; 0 = at the end, left out if empty */
};

struct kb_tptp_table {
	uint16_t id;			/* enum kb_tptp_id */
	uint16_t nr_fields;
	const char *name;		/* "threadStart"; also the XML element */
	const struct kb_tptp_field *fields;
};

/* The table with that id or XML element; NULL if there is none. */
const struct kb_tptp_table *kb_tptp_table(uint32_t id);
const struct kb_tptp_table *kb_tptp_table_by_name(const char *name, size_t length);

/* The tables, ordered by id; NULL for an index behind the last one. */
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

/* Make @message empty: numbers and stackDepth are 0, strings are "", arrays have no elements. */
void kb_tptp_message_init(struct kb_tptp_message *message, enum kb_tptp_id id);

/* The number of elements of @message's arrays: its stackDepth; 0 if it has no stackDepth. */
uint32_t kb_tptp_message_depth(const struct kb_tptp_message *message);

/* ---- write ---- */

#define KB_TPTP_FREQUENCY_NS	1000000000	/* default: ticks are nanoseconds */

/* Limits of one message: bytes of all its strings together, elements of an array. */
#define KB_TPTP_MAX_TEXT	(512u << 10)
#define KB_TPTP_MAX_DEPTH	16384u

/* The form of a trace. All zero behind `size` is the default. */
struct kb_tptp_layout {
	size_t size;			/* of this struct, as the caller knows it: sizeof() */
	bool binary;			/* false: XML */
	bool big_endian;		/* binary only */
	bool platform_32;		/* binary only; for readers, no size depends on it */
	int64_t frequency;		/* ticks a second; 0 = KB_TPTP_FREQUENCY_NS */
};

struct kb_tptp_writer;

/*
 * Start a trace in @out, which stays the caller's. This writes the header and, in the binary
 * form, the encoding "UTF-8" and the frequency. Returns 0 or a negative errno.
 * kb_tptp_writer_destroy() frees the writer, which may be NULL, and does not end the trace.
 */
int kb_tptp_writer_create(struct kb_tptp_writer **writer, struct kb_out *out,
			  const struct kb_tptp_layout *layout);
void kb_tptp_writer_destroy(struct kb_tptp_writer *writer);

/*
 * Append a message. Strings end at an embedded NUL. Invalid UTF-8, and in XML characters that
 * XML forbids, become U+FFFD. A KB_TPTP_FREQUENCY message changes the unit of all later ticks;
 * system messages do not appear in XML.
 *
 *	-EINVAL		a number does not fit its type, stackDepth is negative, or
 *			a frequency is not positive
 *	-EMSGSIZE	above KB_TPTP_MAX_TEXT or KB_TPTP_MAX_DEPTH
 * These two leave the trace unchanged. Other errors are those of the output.
 */
int kb_tptp_writer_message(struct kb_tptp_writer *writer, const struct kb_tptp_message *message);

/* End the trace and flush the output. Returns 0 or the output's first error. */
int kb_tptp_writer_finish(struct kb_tptp_writer *writer);

/* ---- read ---- */

/* The longest message of a trace that the reader takes, bytes; in XML the longest tag. */
#define KB_TPTP_MAX_MESSAGE	(4u << 20)

struct kb_tptp_info {
	bool binary;
	bool big_endian;
	uint8_t platform;		/* 0 = 32 bits, 1 = 64 bits */
	uint8_t version_major, version_minor;
	int64_t frequency;		/* ticks a second, as known so far */
	uint64_t messages;		/* delivered so far */
	uint64_t skipped;		/* messages or elements of an unknown kind */
};

struct kb_tptp;

/*
 * Open a trace in either form; the content decides which. @path ("-" for standard input) or
 * @size bytes at @data, which stay the caller's and must live until kb_tptp_close(), which frees
 * the reader. Memory use does not depend on the size of the trace. Returns 0 or a negative errno
 * and @err:
 *
 *	-ENODATA	not a TPTP trace
 *	-EBADMSG	a TPTP trace whose header is damaged or of an unknown version
 */
int kb_tptp_open(struct kb_tptp **out, const char *path, struct kb_error *err);
int kb_tptp_open_memory(struct kb_tptp **out, const void *data, size_t size,
			struct kb_error *err);
void kb_tptp_close(struct kb_tptp *tptp);

/* What is known of the trace so far. The reader owns it and updates it with each message. */
const struct kb_tptp_info *kb_tptp_info(const struct kb_tptp *tptp);

/*
 * Read the next message. Returns 1 and fills @message, whose pointers hold until the next call;
 * 0 at the end; a negative errno and @err for a damaged place. After an error the next call
 * goes on behind the damage, or returns 0 if that is not possible. Times from XML are in
 * nanoseconds.
 */
int kb_tptp_next(struct kb_tptp *tptp, struct kb_tptp_message *message, struct kb_error *err);

/* Convert @ticks of the trace to nanoseconds, rounded down. The result saturates. */
int64_t kb_tptp_ns(const struct kb_tptp *tptp, int64_t ticks);

/* ---- serve ---- */

/* The first line of a client that can read the binary form. */
#define KB_TPTP_ACCEPT_BINARY	"format=binary\n"

/*
 * Choose the form of a live trace: wait at most @timeout_ms for the client's line on the
 * connected socket @fd. Returns 1 for binary (wanted, and the client can read it), 0 for XML,
 * or a negative errno if the client is gone.
 */
int kb_tptp_negotiate(int fd, bool want_binary, int timeout_ms);

#ifdef __cplusplus
}
#endif

#endif
