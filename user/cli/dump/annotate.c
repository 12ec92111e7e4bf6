// SPDX-License-Identifier: MIT
/* kbarman dump and check of an Annotate stream: the messages as they are in the stream. */
#include <string.h>

#include <kbarman/annotate.h>

#include "cli/base/cli.h"
#include "cli/dump/formats.h"

bool probe_annotate(const uint8_t *start, size_t length)
{
	return length >= 9 && memcmp(start, "ANNOTATE ", 9) == 0;
}

static void put_text(struct kb_json *json, const char *key, struct kb_text text)
{
	kb_json_text(json, key, text.data, text.length);
}

static void put_color(struct kb_json *json, const char *key, uint32_t color)
{
	char text[9];

	snprintf(text, sizeof(text), "%08x", color);
	kb_json_string(json, key, text);
}

static void put_setup(struct kb_json *json, const struct kb_annotate_setup *setup)
{
	kb_json_begin(json, "setup");
	kb_json_i64(json, "version", setup->version);
	kb_json_i64(json, "tid", setup->tid);
	kb_json_i64(json, "pid", setup->pid);
	kb_json_u64(json, "dont_mangle", setup->dont_mangle);
	kb_json_end(json);
}

static bool same_setup(const struct kb_annotate_setup *a, const struct kb_annotate_setup *b)
{
	return a->version == b->version && a->tid == b->tid && a->pid == b->pid &&
	       a->dont_mangle == b->dont_mangle;
}

static void put_note(struct kb_json *json, const struct kb_annotate_message *m)
{
	kb_json_i64(json, "timestamp", m->timestamp);
	if (m->type <= KB_ANNOTATE_CHANNEL)
		kb_json_i64(json, "channel", m->note.channel);
	if (m->type == KB_ANNOTATE_CHANNEL || m->type == KB_ANNOTATE_GROUP)
		kb_json_i64(json, "group", m->note.group);
	if (m->type == KB_ANNOTATE_COLOR_STRING || m->type == KB_ANNOTATE_COLOR_MARKER)
		put_color(json, "color", m->note.color);
	put_text(json, "text", m->note.text);
}

static void put_counter(struct kb_json *json, const struct kb_annotate_counter *c)
{
	uint32_t i;

	kb_json_i64(json, "key", c->key);
	kb_json_i64(json, "per_cpu", c->per_cpu);
	kb_json_i64(json, "class", c->series_class);
	kb_json_i64(json, "display", c->display);
	kb_json_i64(json, "modifier", c->modifier);
	kb_json_i64(json, "series_composition", c->series_composition);
	kb_json_i64(json, "rendering_type", c->rendering_type);
	kb_json_i64(json, "average_selection", c->average_selection);
	kb_json_i64(json, "average_cores", c->average_cores);
	kb_json_i64(json, "percentage", c->percentage);
	kb_json_i64(json, "cores", c->cores);
	put_color(json, "color", c->color);
	kb_json_array(json, "activities");
	for (i = 0; i < c->nr_activities; i++) {
		kb_json_array(json, NULL);
		put_text(json, NULL, c->activities[i].name);
		put_color(json, NULL, c->activities[i].color);
		kb_json_array_end(json);
	}
	kb_json_array_end(json);
	put_text(json, "title", c->title);
	put_text(json, "name", c->name);
	put_text(json, "units", c->units);
	put_text(json, "description", c->description);
}

static void put_deps(struct kb_json *json, const struct kb_annotate_job *job)
{
	uint32_t i;

	kb_json_i64(json, "primary", job->primary);
	kb_json_array(json, "deps");
	for (i = 0; i < job->nr_deps; i++)
		kb_json_i64(json, NULL, job->deps[i]);
	kb_json_array_end(json);
}

static void put_job(struct kb_json *json, const struct kb_annotate_job *job)
{
	kb_json_i64(json, "view", job->view);
	kb_json_i64(json, "job", job->job);
	kb_json_i64(json, "track", job->track);
	kb_json_i64(json, "start", job->start);
	kb_json_i64(json, "duration", job->duration);
	put_color(json, "color", job->color);
	put_deps(json, job);
	put_text(json, "name", job->name);
}

/* A job whose parts come in separate messages. */
static void put_step(struct kb_json *json, const struct kb_annotate_message *m)
{
	kb_json_i64(json, "timestamp", m->timestamp);
	kb_json_i64(json, "view", m->job.view);
	kb_json_i64(json, "job", m->job.job);
	if (m->type == KB_ANNOTATE_CAM_DEPS)
		put_deps(json, &m->job);
	if (m->type != KB_ANNOTATE_CAM_START)
		return;
	kb_json_i64(json, "track", m->job.track);
	put_color(json, "color", m->job.color);
	put_text(json, "name", m->job.name);
}

static void put_body(struct kb_json *json, const struct kb_annotate_message *m)
{
	switch (m->type) {
	case KB_ANNOTATE_STRING:
	case KB_ANNOTATE_COLOR_STRING:
	case KB_ANNOTATE_CHANNEL:
	case KB_ANNOTATE_GROUP:
	case KB_ANNOTATE_MARKER:
	case KB_ANNOTATE_COLOR_MARKER:
		put_note(json, m);
		break;
	case KB_ANNOTATE_VISUAL:
		kb_json_i64(json, "timestamp", m->timestamp);
		put_text(json, "text", m->visual.text);
		kb_json_u64(json, "image_bytes", m->visual.image_bytes);
		break;
	case KB_ANNOTATE_COUNTER:
		put_counter(json, &m->counter);
		break;
	case KB_ANNOTATE_VALUE:
		kb_json_i64(json, "timestamp", m->timestamp);
		kb_json_i64(json, "core", m->value.core);
		kb_json_i64(json, "key", m->value.key);
		kb_json_i64(json, "value", m->value.value);
		break;
	case KB_ANNOTATE_ACTIVITY:
		kb_json_i64(json, "timestamp", m->timestamp);
		kb_json_i64(json, "core", m->activity.core);
		kb_json_i64(json, "key", m->activity.key);
		kb_json_i64(json, "activity", m->activity.activity);
		kb_json_i64(json, "tid", m->activity.tid);
		break;
	case KB_ANNOTATE_CAM_TRACK:
		kb_json_i64(json, "view", m->track.view);
		kb_json_i64(json, "track", m->track.track);
		kb_json_i64(json, "parent", m->track.parent);
		put_text(json, "name", m->track.name);
		break;
	case KB_ANNOTATE_CAM_JOB:
		put_job(json, &m->job);
		break;
	case KB_ANNOTATE_CAM_VIEW:
		kb_json_i64(json, "view", m->view.view);
		put_text(json, "name", m->view.name);
		break;
	case KB_ANNOTATE_CAM_START:
	case KB_ANNOTATE_CAM_DEPS:
	case KB_ANNOTATE_CAM_STOP:
		put_step(json, m);
		break;
	}
}

int dump_annotate(const char *path, struct kb_json *json)
{
	struct kb_annotate_reader *reader;
	struct kb_annotate_message m;
	const struct kb_error *first;
	struct kb_error err = { 0 };
	unsigned int findings;
	struct kb_annotate_setup setup;
	uint64_t index = 0;

	if (kb_annotate_open(&reader, path, &err))
		return cli_fail_error(&err);
	setup = *kb_annotate_setup(reader);
	put_setup(json, &setup);
	while (!kb_out_error(json->out) && kb_annotate_next(reader, &m, &err) > 0) {
		if (!same_setup(&setup, kb_annotate_setup(reader))) {
			setup = *kb_annotate_setup(reader);
			put_setup(json, &setup);
		}
		kb_json_begin(json, "message");
		kb_json_u64(json, "index", index++);
		kb_json_u64(json, "type", m.type);
		put_body(json, &m);
		kb_json_end(json);
	}
	kb_out_flush(json->out);
	findings = kb_annotate_damage(reader, &first);
	if (findings)
		cli_warn("%s (and %u more findings)", kb_error_text(first), findings - 1);
	if (err.code)
		cli_warn("%s", kb_error_text(&err));
	kb_annotate_close(reader);
	return findings || err.code ? CLI_DAMAGED : CLI_OK;
}

int check_annotate(const char *path, void (*say)(const char *sentence))
{
	struct kb_annotate_reader *reader;
	struct kb_annotate_message m;
	const struct kb_error *first;
	struct kb_error err = { 0 };
	unsigned int findings;

	if (kb_annotate_open(&reader, path, &err)) {
		say(kb_error_text(&err));
		return CLI_IMPOSSIBLE;
	}
	while (kb_annotate_next(reader, &m, &err) > 0)
		;
	findings = kb_annotate_damage(reader, &first);
	if (findings)
		say(kb_error_text(first));
	if (err.code)
		say(kb_error_text(&err));
	kb_annotate_close(reader);
	return findings || err.code ? CLI_DAMAGED : CLI_OK;
}
