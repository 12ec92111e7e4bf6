// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "record/recorder/waiting.h"

struct head {
	uint64_t timestamp;
	uint32_t length;	/* of the record: less than 128 MiB, an eighth of the largest ring */
	uint32_t room;		/* what it had when it came */
};

/* What has left makes room, if it is half of the array; else the array grows. */
static bool make_room(struct kb_waiting *waiting, size_t need)
{
	if (waiting->max - waiting->end >= need)
		return true;
	if (waiting->first >= waiting->max / 2 && waiting->first >= need) {
		memmove(waiting->bytes, waiting->bytes + waiting->first, kb_waiting_bytes(waiting));
		waiting->end -= waiting->first;
		waiting->first = 0;
		return true;
	}
	return KB_ARRAY_ROOM(waiting->bytes, waiting->max, waiting->end + need);
}

int kb_waiting_add(struct kb_waiting *waiting, const struct kb_raw_record *record)
{
	struct head head = {
		record->timestamp, (uint32_t)record->length, (uint32_t)record->length,
	};

	if (!make_room(waiting, sizeof(head) + record->length))
		return -ENOMEM;
	memcpy(waiting->bytes + waiting->end, &head, sizeof(head));
	memcpy(waiting->bytes + waiting->end + sizeof(head), record->data, record->length);
	waiting->end += sizeof(head) + record->length;
	return 0;
}

bool kb_waiting_next(const struct kb_waiting *waiting, size_t *at, struct kb_raw_record *record)
{
	const uint8_t *bytes = waiting->bytes + waiting->first + *at;
	struct head head;

	if (*at == kb_waiting_bytes(waiting))
		return false;
	memcpy(&head, bytes, sizeof(head));
	*record = (struct kb_raw_record) {
		.data = bytes + sizeof(head), .length = head.length, .timestamp = head.timestamp,
	};
	*at += sizeof(head) + head.room;
	return true;
}

struct kb_raw_record kb_waiting_first(const struct kb_waiting *waiting)
{
	struct kb_raw_record record = { 0 };
	size_t at = 0;

	kb_waiting_next(waiting, &at, &record);
	return record;
}

void kb_waiting_remove_first(struct kb_waiting *waiting)
{
	struct head head;
	size_t bytes;

	memcpy(&head, waiting->bytes + waiting->first, sizeof(head));
	bytes = sizeof(head) + head.room;
	waiting->first += bytes;
	waiting->removed += bytes;
	if (kb_waiting_is_empty(waiting))
		waiting->first = waiting->end = 0;
}

uint8_t *kb_waiting_at(struct kb_waiting *waiting, uint64_t place, size_t *length)
{
	struct head head;
	uint8_t *at;

	if (place < waiting->removed)
		return NULL;
	at = waiting->bytes + waiting->first + (size_t)(place - waiting->removed);
	memcpy(&head, at, sizeof(head));
	*length = head.length;
	return at + sizeof(head);
}

void kb_waiting_cut(struct kb_waiting *waiting, uint64_t place, size_t length)
{
	struct head head;
	uint8_t *at;

	if (place < waiting->removed)
		return;
	at = waiting->bytes + waiting->first + (size_t)(place - waiting->removed);
	memcpy(&head, at, sizeof(head));
	head.length = (uint32_t)length;
	memcpy(at, &head, sizeof(head));
}

void kb_waiting_release(struct kb_waiting *waiting)
{
	free(waiting->bytes);
	*waiting = (struct kb_waiting) { 0 };
}
