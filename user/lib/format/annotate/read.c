// SPDX-License-Identifier: MIT
/*
 * The Annotate reader. It is strict: every byte of a message must have a meaning. It tests the
 * encoder, because the daemon that the protocol is made for checks nothing. Memory use: one
 * message (KB_ANNOTATE_MAX_BODY) and its lists. Images are not kept.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>

#include "base/io/in.h"
#include "base/text/utf8.h"
#include "format/annotate/put.h"

struct kb_annotate_reader {
	struct kb_in in;
	struct kb_annotate_setup setup;
	size_t taken;		/* bytes of the last delivered message, without its image */
	uint64_t image;		/* unread bytes of its image */
	void *list;		/* activities or dependencies of a message */
	size_t list_bytes;
	unsigned int findings;
	struct kb_error first;	/* the first finding */
	bool over;
};

/*
 * The body of a message in the window. `why` keeps the first damage. After it all fields read
 * as 0, so the code that reads fields needs no checks.
 */
struct cursor {
	struct kb_annotate_reader *reader;
	const uint8_t *at, *end;
	const uint8_t *start;
	uint64_t offset;	/* offset of start in the input */
	const char *why;
};

static uint64_t here(const struct cursor *c)
{
	return c->offset + (uint64_t)(c->at - c->start);
}

static void find(struct cursor *c, const char *what)
{
	struct kb_annotate_reader *reader = c->reader;

	if (!reader->findings++)
		kb_error_set(&reader->first, -EBADMSG, here(c), "%s: wrong at byte %llu: %s",
			     kb_in_name(&reader->in), (unsigned long long)here(c), what);
}

static void damaged(struct cursor *c, const char *why)
{
	if (!c->why)
		c->why = why;
}

static int64_t get_packed(struct cursor *c, unsigned int bits)
{
	int64_t value = 0;

	if (c->why)
		return 0;
	switch (kb_leb_get(&c->at, c->end, bits, &value)) {
	case KB_LEB_OK:
		break;
	case KB_LEB_LONGER:
		find(c, "a packed number has more bytes than it needs");
		break;
	case KB_LEB_TRUNCATED:
		damaged(c, "a packed number goes beyond its message");
		break;
	case KB_LEB_TOO_BIG:
		damaged(c, "a packed number is too big");
		break;
	}
	return value;
}

static int32_t get32(struct cursor *c)
{
	return (int32_t)get_packed(c, 32);
}

static int64_t get64(struct cursor *c)
{
	return get_packed(c, 64);
}

static int32_t get_between(struct cursor *c, int32_t low, int32_t high)
{
	int32_t value = get32(c);

	if (!c->why && (value < low || value > high))
		find(c, "a field has a value that is not allowed");
	return value;
}

static uint32_t get_count(struct cursor *c)
{
	int32_t count = get32(c);

	if (count < 0)
		damaged(c, "a count is negative");
	return count < 0 ? 0 : (uint32_t)count;
}

static uint32_t get_color(struct cursor *c)
{
	uint32_t color;

	if (c->why)
		return 0;
	if (c->end - c->at < 4) {
		damaged(c, "a colour goes beyond its message");
		return 0;
	}
	memcpy(&color, c->at, 4);
	c->at += 4;
	return be32toh(color);
}

static struct kb_text take(struct cursor *c, size_t length)
{
	struct kb_text text = { (const char *)c->at, length };

	if (kb_utf8_valid(text.data, length) != length)
		find(c, "a text is not UTF-8");
	c->at += length;
	return text;
}

/* The rest of the message is a text. */
static struct kb_text get_text(struct cursor *c)
{
	if (c->why)
		return kb_text("");
	if (memchr(c->at, 0, (size_t)(c->end - c->at)))
		find(c, "a text has a NUL in it");
	return take(c, (size_t)(c->end - c->at));
}

static struct kb_text get_string(struct cursor *c)
{
	const uint8_t *nul = c->why ? NULL : memchr(c->at, 0, (size_t)(c->end - c->at));
	struct kb_text text;

	if (!nul) {
		damaged(c, "a string has no NUL at its end");
		return kb_text("");
	}
	text = take(c, (size_t)(nul - c->at));
	c->at++;
	return text;
}

/* Room for @count elements of @size bytes each; NULL after damage. */
static void *get_list(struct cursor *c, uint32_t count, size_t size, size_t least)
{
	struct kb_annotate_reader *reader = c->reader;
	void *list;

	if (count > (size_t)(c->end - c->at) / least)
		damaged(c, "a list goes beyond its message");
	if (c->why)
		return NULL;
	if (count * size > reader->list_bytes) {
		list = realloc(reader->list, count * size);
		if (!list) {
			damaged(c, "out of memory");
			return NULL;
		}
		reader->list = list;
		reader->list_bytes = count * size;
	}
	return reader->list;
}

/* In the text of v1 an activity's colour is three bytes. */
static uint32_t get_activity_color(struct cursor *c)
{
	uint8_t rgb[3];

	if (c->reader->setup.version > 1 || c->why)
		return get_color(c);
	if (c->end - c->at < 3) {
		damaged(c, "a colour goes beyond its message");
		return 0;
	}
	memcpy(rgb, c->at, 3);
	c->at += 3;
	return KB_ANNOTATE_RGB(rgb[0] << 16 | rgb[1] << 8 | rgb[2]);
}

static void get_counter(struct cursor *c, struct kb_annotate_counter *counter)
{
	int32_t version = c->reader->setup.version;
	struct kb_annotate_activity *activities;
	uint32_t i;

	counter->key = get32(c);
	counter->per_cpu = get_between(c, 0, 1);
	counter->series_class = get_between(c, KB_ANNOTATE_DELTA, version < 2 ?
					    KB_ANNOTATE_ACTIVITIES : KB_ANNOTATE_INCIDENT);
	counter->display = get_between(c, KB_ANNOTATE_AVERAGE, KB_ANNOTATE_MINIMUM);
	counter->modifier = get32(c);
	counter->series_composition = get_between(c, KB_ANNOTATE_STACKED, version < 3 ?
						  KB_ANNOTATE_OVERLAY : KB_ANNOTATE_LOG10);
	counter->rendering_type = get_between(c, KB_ANNOTATE_FILLED, KB_ANNOTATE_BAR);
	counter->average_selection = get_between(c, 0, 1);
	counter->average_cores = get_between(c, 0, 1);
	counter->percentage = get_between(c, 0, 1);
	counter->nr_activities = get_count(c);
	counter->cores = get32(c);
	counter->color = get_color(c);
	activities = get_list(c, counter->nr_activities, sizeof(*activities), version > 1 ? 5 : 4);
	counter->activities = activities;
	for (i = 0; activities && i < counter->nr_activities && !c->why; i++) {
		activities[i].name = get_string(c);
		activities[i].color = get_activity_color(c);
	}
	counter->title = get_string(c);
	counter->name = get_string(c);
	counter->units = get_string(c);
	counter->description = get_text(c);
}

static void get_deps(struct cursor *c, struct kb_annotate_job *job)
{
	int32_t *deps;
	uint32_t i;

	job->primary = get32(c);
	job->nr_deps = get_count(c);
	deps = get_list(c, job->nr_deps, sizeof(*deps), 1);
	job->deps = deps;
	for (i = 0; deps && i < job->nr_deps && !c->why; i++)
		deps[i] = get32(c);
}

static void get_job(struct cursor *c, struct kb_annotate_job *job)
{
	job->view = get32(c);
	job->job = get32(c);
	job->track = get_between(c, 0, INT32_MAX);
	job->start = get64(c);
	job->duration = get64(c);
	job->color = get_color(c);
	get_deps(c, job);
	job->name = get_text(c);
}

static void get_note(struct cursor *c, struct kb_annotate_message *m)
{
	bool has_channel = m->type <= KB_ANNOTATE_CHANNEL;
	bool has_group = m->type == KB_ANNOTATE_CHANNEL || m->type == KB_ANNOTATE_GROUP;
	bool has_color = m->type == KB_ANNOTATE_COLOR_STRING ||
			 m->type == KB_ANNOTATE_COLOR_MARKER;

	m->timestamp = get64(c);
	m->note.channel = has_channel ? get32(c) : 0;
	m->note.group = has_group ? get32(c) : 0;
	m->note.color = has_color ? get_color(c) : 0;
	m->note.text = get_text(c);
}

static void get_body(struct cursor *c, struct kb_annotate_message *m)
{
	switch (m->type) {
	case KB_ANNOTATE_STRING:
	case KB_ANNOTATE_COLOR_STRING:
	case KB_ANNOTATE_CHANNEL:
	case KB_ANNOTATE_GROUP:
	case KB_ANNOTATE_MARKER:
	case KB_ANNOTATE_COLOR_MARKER:
		get_note(c, m);
		break;
	case KB_ANNOTATE_VISUAL:	/* without the image, which get_message() handles */
		m->timestamp = get64(c);
		m->visual.text = get_string(c);
		return;
	case KB_ANNOTATE_COUNTER:
		get_counter(c, &m->counter);
		break;
	case KB_ANNOTATE_VALUE:
		m->timestamp = get64(c);
		m->value.core = get32(c);
		m->value.key = get32(c);
		m->value.value = get64(c);
		break;
	case KB_ANNOTATE_ACTIVITY:
		m->timestamp = get64(c);
		m->activity.core = get32(c);
		m->activity.key = get32(c);
		m->activity.activity = get_between(c, 0, INT32_MAX);
		m->activity.tid = get32(c);
		break;
	case KB_ANNOTATE_CAM_TRACK:
		m->track.view = get32(c);
		m->track.track = get_between(c, 1, INT32_MAX);
		m->track.parent = get_between(c, -1, INT32_MAX);
		m->track.name = get_text(c);
		break;
	case KB_ANNOTATE_CAM_JOB:
		get_job(c, &m->job);
		break;
	case KB_ANNOTATE_CAM_VIEW:
		m->view.view = get32(c);
		m->view.name = get_text(c);
		break;
	case KB_ANNOTATE_CAM_START:
		m->job.view = get32(c);
		m->job.job = get32(c);
		m->job.track = get_between(c, 0, INT32_MAX);
		m->timestamp = get64(c);
		m->job.color = get_color(c);
		m->job.name = get_text(c);
		break;
	case KB_ANNOTATE_CAM_DEPS:
		m->job.view = get32(c);
		m->job.job = get32(c);
		m->timestamp = get64(c);
		get_deps(c, &m->job);
		break;
	case KB_ANNOTATE_CAM_STOP:
		m->job.view = get32(c);
		m->job.job = get32(c);
		m->timestamp = get64(c);
		break;
	}
	if (c->at != c->end)
		damaged(c, "a message has more bytes than its fields");
}

static int report(struct cursor *c, struct kb_error *err)
{
	const struct kb_in *in = &c->reader->in;

	if (in->error)
		return kb_in_error(in, err);
	return kb_error_set(err, -EBADMSG, here(c),
			    "%s: damaged at byte %llu: %s (the message is at %llu)",
			    kb_in_name(in), (unsigned long long)here(c), c->why,
			    (unsigned long long)c->offset);
}

/* The highest type of a message in a stream of @version. */
static uint8_t last_type(int32_t version)
{
	if (version < 2)
		return KB_ANNOTATE_VALUE;
	return version < 4 ? KB_ANNOTATE_CAM_VIEW : KB_ANNOTATE_CAM_STOP;
}

/* Read the message at the window's start, from its marker to the last byte before an image. */
static int get_message(struct kb_annotate_reader *reader, struct kb_annotate_message *m,
		       struct kb_error *err)
{
	struct kb_in *in = &reader->in;
	struct cursor c = { .reader = reader, .offset = kb_in_offset(in) };
	size_t there = kb_in_want(in, KB_ANNOTATE_START), part;
	uint32_t length;

	c.start = c.at = in->at;
	c.end = in->end;
	if (c.at[0] < KB_ANNOTATE_STRING || c.at[0] > last_type(reader->setup.version)) {
		damaged(&c, "no message of the stream's version has this marker");
		return report(&c, err);
	}
	if (there < KB_ANNOTATE_START) {
		damaged(&c, "the stream ends inside a message");
		return report(&c, err);
	}
	m->type = (enum kb_annotate_type)c.at[0];
	m->offset = c.offset;
	memcpy(&length, c.at + 1, 4);
	length = le32toh(length);
	if (length > INT32_MAX || (length > KB_ANNOTATE_MAX_BODY && m->type != KB_ANNOTATE_VISUAL)) {
		damaged(&c, "the length is negative or more than 1 MiB");
		return report(&c, err);
	}
	part = length < KB_ANNOTATE_MAX_BODY ? length : KB_ANNOTATE_MAX_BODY;
	there = kb_in_want(in, KB_ANNOTATE_START + part);
	c.start = in->at;
	c.at = c.start + KB_ANNOTATE_START;
	c.end = c.at + part;
	if (there < KB_ANNOTATE_START + part) {
		if (m->type != KB_ANNOTATE_VISUAL) {
			damaged(&c, "the stream ends inside a message");
			return report(&c, err);
		}
		c.end = in->end;	/* its end is checked when the image is read */
	}
	get_body(&c, m);
	if (c.why || in->error)
		return report(&c, err);
	reader->taken = (size_t)(c.at - c.start);
	if (m->type == KB_ANNOTATE_VISUAL) {
		m->visual.image_bytes = length - (reader->taken - KB_ANNOTATE_START);
		reader->image = m->visual.image_bytes;
	}
	return 1;
}

/* Skip the rest of the last delivered message. */
static int leave(struct kb_annotate_reader *reader, struct kb_error *err)
{
	struct kb_in *in = &reader->in;
	uint64_t image = reader->image;

	in->at += reader->taken;
	reader->taken = 0;
	reader->image = 0;
	if (kb_in_skip(in, image) == image)
		return 0;
	if (in->error)
		return kb_in_error(in, err);
	return kb_error_set(err, -EBADMSG, kb_in_offset(in),
			    "%s: damaged at byte %llu: the stream ends inside an image",
			    kb_in_name(in), (unsigned long long)kb_in_offset(in));
}

static int32_t plain32(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, 4);
	return (int32_t)le32toh(value);
}

/* Read the setup: "ANNOTATE 3\n" and nine bytes, eight bytes before version 3. */
static int get_setup(struct kb_in *in, struct kb_annotate_setup *setup, struct kb_error *err)
{
	size_t there = kb_in_want(in, KB_ANNOTATE_SETUP_BYTES);
	const uint8_t *digit = in->at + 9;
	size_t bytes = KB_ANNOTATE_SETUP_BYTES;
	int version = 0;

	if (in->error)
		return kb_in_error(in, err);
	if (there < 11 || memcmp(in->at, "ANNOTATE ", 9) != 0)
		return kb_error_set(err, -ENODATA, 0, "%s is not an Annotate stream",
				    kb_in_name(in));
	while (digit < in->at + 13 && digit < in->end && *digit >= '0' && *digit <= '9')
		version = version * 10 + (*digit++ - '0');
	if (digit == in->at + 9 || in->at[9] == '0' || digit == in->end || *digit != '\n')
		return kb_error_set(err, -ENODATA, 0, "%s is not an Annotate stream",
				    kb_in_name(in));
	if (version > KB_ANNOTATE_VERSION_MAX)
		return kb_error_set(err, -EPROTONOSUPPORT, 9,
				    "%s is Annotate v%d: v1 to v%d can be read", kb_in_name(in),
				    version, KB_ANNOTATE_VERSION_MAX);
	bytes -= version < 3;
	if (there < bytes)
		return kb_error_set(err, -EBADMSG, there,
				    "%s: damaged at byte %zu: the stream ends inside its setup",
				    kb_in_name(in), there);
	setup->version = version;
	setup->tid = plain32(in->at + 11);
	setup->pid = plain32(in->at + 15);
	setup->dont_mangle = version < 3 ? 0 : in->at[19];
	in->at += bytes;
	return 0;
}

/* No message has the type 'A', so this begins another stream. */
static int next_stream(struct kb_annotate_reader *reader, struct kb_error *err)
{
	uint64_t offset = kb_in_offset(&reader->in);
	int ret = get_setup(&reader->in, &reader->setup, err);

	if (ret != -ENODATA)
		return ret;
	return kb_error_set(err, -EBADMSG, offset,
			    "%s: damaged at byte %llu: neither a message of Annotate nor "
			    "another stream begins here", kb_in_name(&reader->in),
			    (unsigned long long)offset);
}

int kb_annotate_next(struct kb_annotate_reader *reader, struct kb_annotate_message *message,
		     struct kb_error *err)
{
	struct kb_in *in = &reader->in;
	int result;

	memset(message, 0, sizeof(*message));
	if (reader->over)
		return 0;
	result = leave(reader, err);
	while (!result && kb_in_want(in, 1) && *in->at == 'A')
		result = next_stream(reader, err);
	if (!result && kb_in_want(in, 1))
		result = get_message(reader, message, err);
	else if (!result && in->error)
		result = kb_in_error(in, err);
	reader->over = result <= 0;
	return result;
}

size_t kb_annotate_read_image(struct kb_annotate_reader *reader, void *to, size_t size)
{
	struct kb_in *in = &reader->in;
	size_t there;

	if (!reader->image)
		return 0;
	in->at += reader->taken;
	reader->taken = 0;
	there = kb_in_want(in, 1);
	if (size > there)
		size = there;
	if (size > reader->image)
		size = (size_t)reader->image;
	memcpy(to, in->at, size);
	in->at += size;
	reader->image -= size;
	return size;
}

const struct kb_annotate_setup *kb_annotate_setup(const struct kb_annotate_reader *reader)
{
	return &reader->setup;
}

unsigned int kb_annotate_damage(const struct kb_annotate_reader *reader,
				const struct kb_error **first)
{
	*first = reader->findings ? &reader->first : NULL;
	return reader->findings;
}

/* Takes ownership of @in. */
static int create(struct kb_annotate_reader **out, struct kb_in *in, struct kb_error *err)
{
	struct kb_annotate_reader *reader = calloc(1, sizeof(*reader));
	int error;

	if (!reader) {
		kb_in_close(in);
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	}
	reader->in = *in;
	error = get_setup(&reader->in, &reader->setup, err);
	if (error) {
		kb_annotate_close(reader);
		return error;
	}
	*out = reader;
	return 0;
}

int kb_annotate_open(struct kb_annotate_reader **reader, const char *path, struct kb_error *err)
{
	struct kb_in in;
	int error = kb_in_open(&in, path, err);

	return error ? error : create(reader, &in, err);
}

int kb_annotate_open_memory(struct kb_annotate_reader **reader, const void *data, size_t size,
			    struct kb_error *err)
{
	struct kb_in in;

	kb_in_memory(&in, data, size);
	return create(reader, &in, err);
}

void kb_annotate_close(struct kb_annotate_reader *reader)
{
	if (!reader)
		return;
	kb_in_close(&reader->in);
	free(reader->list);
	free(reader);
}
