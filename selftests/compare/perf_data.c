// SPDX-License-Identifier: MIT
/* The layout: tools/perf/Documentation/perf.data-file-format.txt of Linux, and perf_event_open(2). */
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "perf_data.h"

#define TIMED (PERF_SAMPLE_TID | PERF_SAMPLE_TIME)
#define KNOWN (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | TIMED | PERF_SAMPLE_ADDR | PERF_SAMPLE_ID | \
	       PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | \
	       PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER | \
	       PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_WEIGHT)
#define NEEDED (PERF_SAMPLE_IP | TIMED | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER)

struct file_header {
	char magic[8];
	uint64_t size, attr_size;
	struct {
		uint64_t offset, size;
	} attrs, data, types;
};

struct reader {
	struct perf_event_attr attr;
	const char *at, *end;
};

static uint64_t take(struct reader *reader)
{
	uint64_t value = 0;

	if (reader->end - reader->at >= (ptrdiff_t)sizeof(value))
		memcpy(&value, reader->at, sizeof(value));
	reader->at += sizeof(value);
	return value;
}

static void skip_if(struct reader *reader, uint64_t types)
{
	reader->at += 8 * __builtin_popcountll(reader->attr.sample_type & types);
}

static void take_ids(struct perf_event *event, uint64_t ids)
{
	event->pid = (uint32_t)ids;
	event->tid = ids >> 32;
}

static void take_sample(struct reader *reader, struct perf_event *event)
{
	uint64_t left = reader->attr.sample_regs_user, size;

	skip_if(reader, PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP);
	take_ids(event, take(reader));
	event->time = take(reader);
	skip_if(reader, PERF_SAMPLE_ADDR | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID |
			PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD);
	if (reader->attr.sample_type & PERF_SAMPLE_CALLCHAIN)
		reader->at += 8 * take(reader);
	if (take(reader) != PERF_SAMPLE_REGS_ABI_64)
		return;
	event->registers = left;
	for (; left; left &= left - 1)
		event->value[__builtin_ctzll(left)] = take(reader);
	size = take(reader);
	event->stack = reader->at;
	reader->at += size;
	event->stack_bytes = size ? take(reader) : 0;
	if (reader->at <= reader->end)
		event->what = PERF_SAMPLE;
}

/* The time of other events stands at their end. */
static uint64_t time_of(const struct reader *reader)
{
	unsigned int behind = __builtin_popcountll(reader->attr.sample_type &
		(PERF_SAMPLE_TIME | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU |
		 PERF_SAMPLE_IDENTIFIER));
	uint64_t time = 0;

	if (reader->end - reader->at >= 8 * (ptrdiff_t)behind)
		memcpy(&time, reader->end - 8 * behind, sizeof(time));
	return time;
}

static void take_map(struct reader *reader, struct perf_event *event)
{
	take_ids(event, take(reader));
	event->start = take(reader);
	event->length = take(reader);
	event->offset = take(reader);
	reader->at += 24;	/* which file it is */
	if (take(reader) & PROT_EXEC)
		event->what = PERF_MAP;
	event->image = reader->at;
}

static void take_fork(struct reader *reader, struct perf_event *event)
{
	uint64_t pids = take(reader);

	event->what = PERF_FORK;
	event->pid = (uint32_t)pids;
	event->parent = pids >> 32;
}

static void take_event(struct reader *reader, const struct perf_event_header *header,
		       struct perf_event *event)
{
	if (header->type < 64 && header->type != PERF_RECORD_SAMPLE)
		event->time = time_of(reader);
	switch (header->type) {
	case PERF_RECORD_SAMPLE:
		take_sample(reader, event);
		break;
	case PERF_RECORD_MMAP2:
		take_map(reader, event);
		break;
	case PERF_RECORD_FORK:
		take_fork(reader, event);
		break;
	case PERF_RECORD_COMM:
		take_ids(event, take(reader));
		if (header->misc & PERF_RECORD_MISC_COMM_EXEC)
			event->what = PERF_EXEC;
	}
}

/* Events of one time stay in the order of the file. */
static int compare(const void *left, const void *right)
{
	const struct perf_event *a = left, *b = right;

	if (a->time != b->time)
		return a->time < b->time ? -1 : 1;
	return 0;
}

static void sort(struct perf_event *events, size_t nr)
{
	struct perf_event *half = calloc(nr / 2 + 1, sizeof(*half));
	size_t left = nr / 2, i = 0, j = left, to = 0;

	if (nr > 1 && half) {
		sort(events, left);
		sort(events + left, nr - left);
		memcpy(half, events, left * sizeof(*half));
		while (i < left)
			events[to++] = j < nr && compare(&events[j], &half[i]) < 0 ? events[j++] :
										     half[i++];
	}
	free(half);
}

static const char *take_events(struct perf_data *data, struct reader *reader)
{
	const char *at = reader->at, *end = reader->end;
	struct perf_event_header header;
	size_t room = 0;

	for (; end - at >= (ptrdiff_t)sizeof(header); at += header.size) {
		memcpy(&header, at, sizeof(header));
		if (header.size < sizeof(header) || header.size > end - at)
			return "an event is cut off";
		if (data->nr == room) {
			room = 2 * room + 1024;
			data->events = reallocarray(data->events, room, sizeof(*data->events));
			if (!data->events)
				return "there is no memory";
		}
		data->events[data->nr] = (struct perf_event) { .what = PERF_OTHER };
		reader->at = at + sizeof(header);
		reader->end = at + header.size;
		take_event(reader, &header, &data->events[data->nr]);
		data->nr += data->events[data->nr].what != PERF_OTHER;
	}
	sort(data->events, data->nr);
	return NULL;
}

static const char *load(struct perf_data *data, const char *path)
{
	FILE *file = fopen(path, "re");
	long size = -1;

	if (file && fseek(file, 0, SEEK_END) == 0)
		size = ftell(file);
	data->file = size > 0 ? malloc(size) : NULL;
	if (data->file) {
		rewind(file);
		data->size = fread(data->file, 1, size, file);
	}
	if (file)
		fclose(file);
	return size > 0 && data->size == (size_t)size ? NULL : "it can't be read";
}

const char *perf_data_read(struct perf_data *data, const char *path)
{
	struct file_header header;
	struct reader reader = { 0 };
	const char *wrong;

	*data = (struct perf_data) { 0 };
	wrong = load(data, path);
	if (wrong)
		return wrong;
	if (data->size < sizeof(header))
		return "it is cut off";
	memcpy(&header, data->file, sizeof(header));
	if (memcmp(header.magic, "PERFILE2", 8) != 0 ||
	    header.data.offset + header.data.size > data->size ||
	    header.attrs.offset + sizeof(reader.attr) > data->size)
		return "it is not of perf";
	memcpy(&reader.attr, (char *)data->file + header.attrs.offset,
	       header.attr_size - 16 < sizeof(reader.attr) ? header.attr_size - 16 :
							     sizeof(reader.attr));
	if (header.attrs.size != header.attr_size || reader.attr.sample_type & ~(uint64_t)KNOWN ||
	    (reader.attr.sample_type & NEEDED) != NEEDED || !reader.attr.sample_id_all)
		return "it has samples of another form";
	reader.at = (char *)data->file + header.data.offset;
	reader.end = reader.at + header.data.size;
	return take_events(data, &reader);
}

void perf_data_release(struct perf_data *data)
{
	free(data->events);
	free(data->file);
}
