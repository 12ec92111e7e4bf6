// SPDX-License-Identifier: MIT
/*
 * See annotate_side.h. Messages are written as they were received, except for the keys of
 * counters: clients choose these for themselves, so each gets a new key that is unique in the
 * stream.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "export/arm/annotate_side.h"
#include "export/run.h"

#define COUNTERS_MAX	65536
#define IMAGE_MAX	((uint64_t)64 << 20)

struct key {
	int32_t pid, key;		/* pid 0: the key is of the whole system */
};

struct side {
	struct kb_annotate_reader *reader;
	struct kb_out *out;
	uint32_t first_key;
	int32_t own_view;
	struct key *keys;		/* the new key of each is first_key + index */
	unsigned int nr_keys, room;
	uint64_t left_out;
};

/* Replace a client's key by its new key; false: there are too many keys. */
static bool new_key(struct side *side, int32_t *key)
{
	const struct kb_annotate_setup *setup = kb_annotate_setup(side->reader);
	int32_t pid = setup->dont_mangle ? 0 : setup->pid;
	unsigned int i;

	for (i = 0; i < side->nr_keys; i++)
		if (side->keys[i].key == *key && side->keys[i].pid == pid)
			break;
	if (i == COUNTERS_MAX || !KB_ARRAY_ROOM(side->keys, side->room, i + 1))
		return false;
	if (i == side->nr_keys)
		side->keys[side->nr_keys++] = (struct key){ pid, *key };
	*key = (int32_t)(side->first_key + i);
	return true;
}

/* Give an activity map another number if it has the number of our own map. */
static void new_view(const struct side *side, int32_t *view)
{
	if (*view == side->own_view)
		*view ^= 0x40000000;
}

static bool write_visual(struct side *side, struct kb_annotate_message *m)
{
	size_t used = 0, n;
	uint8_t *image;
	bool good;

	if (m->visual.image_bytes > IMAGE_MAX)
		return false;
	/* The reader's pointers do not hold beyond its next call. */
	struct kb_text text = m->visual.text;
	char *copy = malloc(text.length + m->visual.image_bytes + 1);

	if (!copy)
		return false;
	memcpy(copy, text.data, text.length);
	image = (uint8_t *)copy + text.length;
	while ((n = kb_annotate_read_image(side->reader, image + used,
					   m->visual.image_bytes - used)))
		used += n;
	m->visual.text.data = copy;
	m->visual.image = image;
	good = used == m->visual.image_bytes && !kb_annotate_write(side->out, m);
	free(copy);
	return good;
}

static bool write_message(struct side *side, struct kb_annotate_message *m)
{
	switch (m->type) {
	case KB_ANNOTATE_VISUAL:
		return write_visual(side, m);
	case KB_ANNOTATE_COUNTER:
		if (!new_key(side, &m->counter.key))
			return false;
		break;
	case KB_ANNOTATE_VALUE:
		if (!new_key(side, &m->value.key))
			return false;
		break;
	case KB_ANNOTATE_ACTIVITY:
		if (!new_key(side, &m->activity.key))
			return false;
		break;
	case KB_ANNOTATE_CAM_TRACK:
		new_view(side, &m->track.view);
		break;
	case KB_ANNOTATE_CAM_JOB:
	case KB_ANNOTATE_CAM_START:
	case KB_ANNOTATE_CAM_DEPS:
	case KB_ANNOTATE_CAM_STOP:
		new_view(side, &m->job.view);
		break;
	case KB_ANNOTATE_CAM_VIEW:
		new_view(side, &m->view.view);
		break;
	default:
		break;
	}
	return !kb_annotate_write(side->out, m);
}

int32_t annotate_side_version(const char *path)
{
	struct kb_annotate_reader *reader;
	struct kb_annotate_message message;
	int32_t version = 3;

	/* Damage is reported when the messages are written. */
	if (kb_annotate_open(&reader, path, NULL))
		return version;
	while (version < 4 && kb_annotate_next(reader, &message, NULL) == 1)
		version = message.type >= KB_ANNOTATE_CAM_START ? 4 : 3;
	kb_annotate_close(reader);
	return version;
}

void annotate_side_write(const char *path, const struct kb_export_options *options,
			 struct kb_out *out, uint32_t first_key, int32_t own_view)
{
	struct side side = { .out = out, .first_key = first_key, .own_view = own_view };
	struct kb_annotate_message message;
	struct kb_error damage;
	int ret;

	if (kb_annotate_open(&side.reader, path, &damage)) {
		kb_export_say(options, "%s; it is left out", kb_error_text(&damage));
		return;
	}
	while ((ret = kb_annotate_next(side.reader, &message, &damage)) == 1)
		side.left_out += !write_message(&side, &message);
	if (ret < 0)
		kb_export_say(options, "%s; what comes behind that is left out",
			      kb_error_text(&damage));
	if (side.left_out)
		kb_export_say(options, "%llu messages of %s are left out: they are too long, or have "
			      "too many counters", (unsigned long long)side.left_out, path);
	kb_annotate_close(side.reader);
	free(side.keys);
}
