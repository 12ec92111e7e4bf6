// SPDX-License-Identifier: MIT
/*
 * Events of a CPU are collected in a buffer, which becomes a packet at the end of the CPU's
 * file. No file stays open and the number of buffers is limited, so neither grows with the
 * number of CPUs.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/io/create.h"
#include "base/io/out_packet.h"
#include "base/table.h"
#include "format/ctf.h"

#define MAGIC		0xc1fc1fc1U
#define BUFFERS		64U
#define PACKET_BYTES	(128U << 10)
#define HEADER_BYTES	52U		/* of a packet, including its context */
#define EVENT_BYTES	10U		/* header of an event */
#define SECOND		1000000000LL

/* State of a CPU between its packets. */
struct stream {
	uint64_t key;			/* core */
	uint64_t last;			/* time */
	uint64_t discarded;		/* lost events since the beginning */
};

struct buffer {
	uint32_t core;
	uint32_t length;		/* of bytes; 0 = unused, not even a header */
	uint64_t first, last;		/* times */
	uint8_t bytes[PACKET_BYTES];
};

struct kb_ctf {
	char *path;
	int directory;
	struct kb_table streams;
	struct buffer *buffers[BUFFERS];
	struct buffer *buffer;		/* the buffer of the event that is being written */
	uint64_t moved;
	int error;
	char failed[32];		/* name of the file that could not be written */
	struct buffer spare;		/* takes what is written after an error */
};

static const char metadata[] =
	"/* CTF 1.8 */\n"
	"typealias integer { size = 8; align = 8; signed = false; } := uint8_t;\n"
	"typealias integer { size = 16; align = 8; signed = false; } := uint16_t;\n"
	"typealias integer { size = 32; align = 8; signed = false; } := uint32_t;\n"
	"typealias integer { size = 32; align = 8; signed = true; } := int32_t;\n"
	"typealias integer { size = 64; align = 8; signed = false; } := uint64_t;\n"
	"typealias integer { size = 64; align = 8; signed = true; } := int64_t;\n"
	"typealias integer { size = 64; align = 8; signed = false; base = 16; } := address_t;\n"
	"typealias integer { size = 8; align = 8; signed = false; encoding = UTF8; } := char_t;\n"
	"typealias floating_point { exp_dig = 11; mant_dig = 53; align = 8; } := double_t;\n"
	"trace {\n"
	"\tmajor = 1;\n"
	"\tminor = 8;\n"
	"\tbyte_order = le;\n"
	"\tpacket.header := struct { uint32_t magic; uint32_t stream_id; };\n"
	"};\n";

static const char streams[] =
	"typealias integer { size = 64; align = 8; signed = false; map = clock.monotonic.value; }"
	" := time_t;\n"
	"stream {\n"
	"\tid = 0;\n"
	"\tevent.header := struct { uint16_t id; time_t timestamp; };\n"
	"\tpacket.context := struct {\n"
	"\t\ttime_t timestamp_begin;\n"
	"\t\ttime_t timestamp_end;\n"
	"\t\tuint64_t content_size;\n"
	"\t\tuint64_t packet_size;\n"
	"\t\tuint64_t events_discarded;\n"
	"\t\tuint32_t cpu_id;\n"
	"\t};\n"
	"};\n";

int kb_ctf_create(struct kb_ctf **out, const char *path, struct kb_error *err)
{
	struct kb_ctf *ctf = calloc(1, sizeof(*ctf));
	int error;

	if (!ctf)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	kb_table_init(&ctf->streams, sizeof(struct stream), 1);
	ctf->path = strdup(path);
	ctf->directory = ctf->path ? open(path, O_DIRECTORY | O_RDONLY | O_CLOEXEC) : -1;
	if (ctf->directory >= 0) {
		*out = ctf;
		return 0;
	}
	error = ctf->path ? -errno : -ENOMEM;
	kb_ctf_destroy(ctf);
	return kb_error_set(err, error, KB_NO_OFFSET, "can't write to %s: %s", path,
			    strerror(-error));
}

void kb_ctf_destroy(struct kb_ctf *ctf)
{
	uint32_t i;

	if (!ctf)
		return;
	for (i = 0; i < BUFFERS; i++)
		free(ctf->buffers[i]);
	if (ctf->directory >= 0)
		close(ctf->directory);
	kb_table_release(&ctf->streams);
	free(ctf->path);
	free(ctf);
}

static void fail(struct kb_ctf *ctf, const char *name, int error)
{
	if (ctf->error)
		return;
	ctf->error = error;
	snprintf(ctf->failed, sizeof(ctf->failed), "%s", name);
}

/* Append to a file of the trace. */
static void write_file(struct kb_ctf *ctf, const char *name, const void *data, size_t size)
{
	int fd = kb_create(ctf->directory, name, KB_CREATE_APPEND, 0666);
	struct kb_out *out = NULL;
	int error = fd < 0 ? fd : kb_out_fd(&out, fd);

	if (!error) {
		kb_out_bytes(out, data, size);
		error = kb_out_flush(out);
	}
	kb_out_destroy(out);
	if (fd >= 0 && close(fd) && !error)
		error = -errno;
	if (error)
		fail(ctf, name, error);
}

static struct stream *stream_of(struct kb_ctf *ctf, uint32_t core)
{
	static struct stream nothing;
	struct stream *stream = kb_table_get(&ctf->streams, &(uint64_t){ core });

	if (stream)
		return stream;
	fail(ctf, "metadata", -ENOMEM);
	return &nothing;
}

static void flush_buffer(struct kb_ctf *ctf, struct buffer *buffer)
{
	struct stream *stream;
	uint8_t *at = buffer->bytes;
	char name[24];

	if (!buffer->length)
		return;
	stream = stream_of(ctf, buffer->core);
	at = kb_ctf_put32(at, MAGIC);
	at = kb_ctf_put32(at, 0);		/* stream_id */
	at = kb_ctf_put64(at, buffer->first);
	at = kb_ctf_put64(at, buffer->last);
	at = kb_ctf_put64(at, (uint64_t)buffer->length * 8);
	at = kb_ctf_put64(at, (uint64_t)buffer->length * 8);
	at = kb_ctf_put64(at, stream->discarded);
	kb_ctf_put32(at, buffer->core);
	snprintf(name, sizeof(name), "cpu_%u", buffer->core);
	if (!ctf->error)
		write_file(ctf, name, buffer->bytes, buffer->length);
	buffer->length = 0;
}

/* The buffer of @core, with at least @room free bytes. */
static struct buffer *buffer_of(struct kb_ctf *ctf, uint32_t core, size_t room)
{
	struct buffer **buffer = &ctf->buffers[core % BUFFERS];

	if (!*buffer)
		*buffer = calloc(1, sizeof(**buffer));
	if (!*buffer) {
		fail(ctf, "metadata", -ENOMEM);
		ctf->spare.length = 0;
		return &ctf->spare;
	}
	if ((*buffer)->core != core || PACKET_BYTES - (*buffer)->length < room)
		flush_buffer(ctf, *buffer);
	(*buffer)->core = core;
	return *buffer;
}

uint8_t *kb_ctf_begin(struct kb_ctf *ctf, uint32_t core, uint16_t id, uint64_t time, size_t room)
{
	struct buffer *buffer = buffer_of(ctf, core, EVENT_BYTES + room);
	struct stream *stream = stream_of(ctf, core);
	uint8_t *at;

	ctf->moved += time < stream->last;
	if (time < stream->last)
		time = stream->last;
	stream->last = time;
	if (!buffer->length) {
		buffer->length = HEADER_BYTES;
		buffer->first = time;
	}
	buffer->last = time;
	ctf->buffer = buffer;
	at = buffer->bytes + buffer->length;
	id = htole16(id);
	memcpy(at, &id, 2);
	return kb_ctf_put64(at + 2, time);
}

void kb_ctf_end(struct kb_ctf *ctf, const uint8_t *at)
{
	ctf->buffer->length = (uint32_t)(at - ctf->buffer->bytes);
}

void kb_ctf_discard(struct kb_ctf *ctf, uint32_t core, uint64_t count)
{
	flush_buffer(ctf, buffer_of(ctf, core, 0));
	stream_of(ctf, core)->discarded += count;
}

uint64_t kb_ctf_moved(const struct kb_ctf *ctf)
{
	return ctf->moved;
}

/* Write the last packet of each CPU, which lasts until @end and tells of losses; it may have no events. */
static void end_streams(struct kb_ctf *ctf, uint64_t end)
{
	uint32_t i;

	for (i = 0; i < ctf->streams.nr; i++) {
		const struct stream *stream = kb_table_row(&ctf->streams, i);
		struct buffer *buffer = buffer_of(ctf, (uint32_t)stream->key, 0);

		if (!buffer->length) {
			buffer->length = HEADER_BYTES;
			buffer->first = stream->last;
		}
		buffer->last = end > stream->last ? end : stream->last;
		flush_buffer(ctf, buffer);
	}
}

int kb_ctf_finish(struct kb_ctf *ctf, uint64_t end, const char *environment, int64_t clock_offset,
		  const char *events, struct kb_error *err)
{
	int64_t behind = (clock_offset % SECOND + SECOND) % SECOND;
	char clock[256];

	end_streams(ctf, end);
	snprintf(clock, sizeof(clock),
		 "clock {\n"
		 "\tname = monotonic;\n"
		 "\tdescription = \"CLOCK_MONOTONIC_RAW\";\n"
		 "\tfreq = 1000000000;\n"
		 "\toffset_s = %lld;\n"	/* signed, unlike the others */
		 "\toffset = %lld;\n"
		 "};\n", (long long)(clock_offset / SECOND - (clock_offset % SECOND < 0)), (long long)behind);
	write_file(ctf, "metadata", metadata, sizeof(metadata) - 1);
	write_file(ctf, "metadata", environment, strlen(environment));
	write_file(ctf, "metadata", clock, strlen(clock));
	write_file(ctf, "metadata", streams, sizeof(streams) - 1);
	write_file(ctf, "metadata", events, strlen(events));
	if (ctf->error)
		kb_error_set(err, ctf->error, KB_NO_OFFSET, "can't write %s/%s: %s", ctf->path,
			     ctf->failed, strerror(-ctf->error));
	return ctf->error;
}
