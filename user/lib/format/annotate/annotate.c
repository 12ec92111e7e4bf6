// SPDX-License-Identifier: MIT
/*
 * The Annotate encoder. It writes each message after five bytes that are reserved for marker
 * and length. It reserves room for the longest form of a message first, so a message is in the
 * output completely or not at all.
 */
#include <errno.h>
#include <limits.h>

#include "format/annotate/put.h"

static uint8_t *put_text(uint8_t *at, struct kb_text text)
{
	memcpy(at, text.data, text.length);
	return at + text.length;
}

static uint8_t *put_string(uint8_t *at, struct kb_text text)
{
	const char *nul = memchr(text.data, 0, text.length);

	if (nul)
		text.length = (size_t)(nul - text.data);
	at = put_text(at, text);
	*at = 0;
	return at + 1;
}

int kb_annotate_write_setup(struct kb_out *out, const struct kb_annotate_setup *setup)
{
	uint8_t *at = kb_out_reserve(out, KB_ANNOTATE_SETUP_BYTES);
	struct kb_annotate_setup known = *setup;

	if (!at)
		return out->error;
	if (known.version < 3 || known.version > KB_ANNOTATE_VERSION_MAX)
		known.version = 3;
	return kb_out_commit(out, kb_annotate_put_setup(at, &known));
}

/*
 * Size of a message's texts and lists: all that KB_ANNOTATE_FIXED does not cover, except the
 * image.
 */
static uint64_t variable_bytes(const struct kb_annotate_message *m)
{
	uint64_t bytes;
	uint32_t i;

	switch (m->type) {
	case KB_ANNOTATE_STRING:
	case KB_ANNOTATE_COLOR_STRING:
	case KB_ANNOTATE_CHANNEL:
	case KB_ANNOTATE_GROUP:
	case KB_ANNOTATE_MARKER:
	case KB_ANNOTATE_COLOR_MARKER:
		return m->note.text.length;
	case KB_ANNOTATE_VISUAL:
		return (uint64_t)m->visual.text.length + 1;
	case KB_ANNOTATE_COUNTER:
		bytes = (uint64_t)m->counter.title.length + m->counter.name.length +
			m->counter.units.length + m->counter.description.length + 3;
		for (i = 0; i < m->counter.nr_activities; i++)
			bytes += (uint64_t)m->counter.activities[i].name.length + 1 + 4;
		return bytes;
	case KB_ANNOTATE_CAM_TRACK:
		return m->track.name.length;
	case KB_ANNOTATE_CAM_JOB:
		return m->job.name.length + (uint64_t)m->job.nr_deps * KB_LEB32_MAX;
	case KB_ANNOTATE_CAM_START:
		return m->job.name.length;
	case KB_ANNOTATE_CAM_DEPS:
		return (uint64_t)m->job.nr_deps * KB_LEB32_MAX;
	case KB_ANNOTATE_CAM_VIEW:
		return m->view.name.length;
	default:
		return 0;
	}
}

static uint8_t *put_counter(uint8_t *at, const struct kb_annotate_counter *c)
{
	uint32_t i;

	at = kb_leb_put(at, c->key);
	at = kb_leb_put(at, c->per_cpu);
	at = kb_leb_put(at, c->series_class);
	at = kb_leb_put(at, c->display);
	at = kb_leb_put(at, c->modifier);
	at = kb_leb_put(at, c->series_composition);
	at = kb_leb_put(at, c->rendering_type);
	at = kb_leb_put(at, c->average_selection);
	at = kb_leb_put(at, c->average_cores);
	at = kb_leb_put(at, c->percentage);
	at = kb_leb_put(at, c->nr_activities);
	at = kb_leb_put(at, c->cores);
	at = kb_annotate_put_color(at, c->color);
	for (i = 0; i < c->nr_activities; i++) {
		at = put_string(at, c->activities[i].name);
		at = kb_annotate_put_color(at, c->activities[i].color);
	}
	at = put_string(at, c->title);
	at = put_string(at, c->name);
	at = put_string(at, c->units);
	return put_text(at, c->description);
}

static uint8_t *put_deps(uint8_t *at, const struct kb_annotate_job *job)
{
	uint32_t i;

	for (i = 0; i < job->nr_deps; i++)
		at = kb_leb_put(at, job->deps[i]);
	return at;
}

static uint8_t *put_job(uint8_t *at, const struct kb_annotate_job *job)
{
	struct kb_leb start;

	start = kb_leb_pack(job->start);
	return put_text(put_deps(kb_annotate_put_job(at, job, &start), job), job->name);
}

/* Write everything after the length, except the image; NULL: no such type. */
static uint8_t *put_body(uint8_t *at, const struct kb_annotate_message *m)
{
	struct kb_leb when;

	switch (m->type) {
	case KB_ANNOTATE_STRING:
		at = kb_leb_put(kb_leb_put(at, m->timestamp), m->note.channel);
		return put_text(at, m->note.text);
	case KB_ANNOTATE_COLOR_STRING:
		at = kb_leb_put(kb_leb_put(at, m->timestamp), m->note.channel);
		return put_text(kb_annotate_put_color(at, m->note.color), m->note.text);
	case KB_ANNOTATE_CHANNEL:
		at = kb_leb_put(kb_leb_put(at, m->timestamp), m->note.channel);
		return put_text(kb_leb_put(at, m->note.group), m->note.text);
	case KB_ANNOTATE_GROUP:
		at = kb_leb_put(kb_leb_put(at, m->timestamp), m->note.group);
		return put_text(at, m->note.text);
	case KB_ANNOTATE_VISUAL:
		return put_string(kb_leb_put(at, m->timestamp), m->visual.text);
	case KB_ANNOTATE_MARKER:
		return put_text(kb_leb_put(at, m->timestamp), m->note.text);
	case KB_ANNOTATE_COLOR_MARKER:
		at = kb_annotate_put_color(kb_leb_put(at, m->timestamp), m->note.color);
		return put_text(at, m->note.text);
	case KB_ANNOTATE_COUNTER:
		return put_counter(at, &m->counter);
	case KB_ANNOTATE_VALUE:
		when = kb_leb_pack(m->timestamp);
		return kb_annotate_put_value(at, &when, m->value.core, m->value.key,
					     m->value.value);
	case KB_ANNOTATE_ACTIVITY:
		when = kb_leb_pack(m->timestamp);
		return kb_annotate_put_activity(at, &when, m->activity.core, m->activity.key,
						m->activity.activity, m->activity.tid);
	case KB_ANNOTATE_CAM_TRACK:
		at = kb_leb_put(kb_leb_put(at, m->track.view), m->track.track);
		return put_text(kb_leb_put(at, m->track.parent), m->track.name);
	case KB_ANNOTATE_CAM_JOB:
		return put_job(at, &m->job);
	case KB_ANNOTATE_CAM_VIEW:
		return put_text(kb_leb_put(at, m->view.view), m->view.name);
	case KB_ANNOTATE_CAM_START:
		at = kb_leb_put(kb_leb_put(at, m->job.view), m->job.job);
		at = kb_leb_put(kb_leb_put(at, m->job.track), m->timestamp);
		return put_text(kb_annotate_put_color(at, m->job.color), m->job.name);
	case KB_ANNOTATE_CAM_DEPS:
		at = kb_leb_put(kb_leb_put(at, m->job.view), m->job.job);
		at = kb_leb_put(kb_leb_put(at, m->timestamp), m->job.primary);
		return put_deps(kb_leb_put(at, m->job.nr_deps), &m->job);
	case KB_ANNOTATE_CAM_STOP:
		at = kb_leb_put(kb_leb_put(at, m->job.view), m->job.job);
		return kb_leb_put(at, m->timestamp);
	}
	return NULL;
}

int kb_annotate_write(struct kb_out *out, const struct kb_annotate_message *message)
{
	uint64_t image = message->type == KB_ANNOTATE_VISUAL ? message->visual.image_bytes : 0;
	uint64_t most = KB_ANNOTATE_FIXED + variable_bytes(message);
	uint8_t *start, *at;

	if (most > INT32_MAX || image > INT32_MAX - most)
		return -EMSGSIZE;
	start = kb_out_reserve(out, (size_t)most);
	if (!start)
		return out->error;
	at = put_body(kb_annotate_begin(start, message->type), message);
	if (!at)
		return -EINVAL;
	kb_annotate_end(start, at, image);
	if (!image)
		return kb_out_commit(out, at);
	out->at = at;
	return kb_out_bytes(out, message->visual.image, (size_t)image);
}
