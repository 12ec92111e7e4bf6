// SPDX-License-Identifier: MIT
/*
 * What the parts of a session have, for the next part: how many lost records they told of, and the
 * last record of each CPU. A program that was killed may have written records that it had not given
 * back to their ring yet.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kbarman/barman.h>

#include "base/array.h"
#include "record/recorder/parts.h"

int kb_parts_create(struct kb_parts **out, struct kb_device *device, struct kb_error *err)
{
	struct kb_parts *parts = calloc(1, sizeof(*parts));
	struct kbarman_query query;
	struct kbarman_clock clock;
	int ret;

	*out = NULL;
	if (!parts)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	ret = kb_device_query(device, &query, err) ?: kb_device_clock(device, &clock, err);
	if (ret) {
		free(parts);
		return ret;
	}
	parts->session = query.session;
	parts->raw_base = clock.start.raw_ns;
	parts->next = 1;
	parts->nr_cpus = query.nr_cpus;
	parts->cpus = calloc(parts->nr_cpus, sizeof(*parts->cpus));
	if (!parts->cpus) {
		free(parts);
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	}
	*out = parts;
	return 0;
}

void kb_parts_destroy(struct kb_parts *parts)
{
	if (!parts)
		return;
	for (unsigned int i = 0; i < parts->nr_cpus; i++)
		free(parts->cpus[i].record);
	free(parts->cpus);
	free(parts);
}

uint64_t kb_parts_next(const struct kb_parts *parts)
{
	return parts->next;
}

/* ---- files of a former program ---- */

/* The number that the fact has: as the part ended, or as it began. */
static void note_number(const struct kb_barman *barman, uint64_t *number, const char *what)
{
	static const char *const when[] = { KB_PART_LOST, KB_PART_BEFORE };

	for (size_t i = 0; i < ARRAY_SIZE(when); i++) {
		const char *value;
		char key[64];

		snprintf(key, sizeof(key), "%s%s", when[i], what);
		value = kb_barman_fact(barman, key);
		if (!value)
			continue;
		*number = strtoull(value, NULL, 10);
		return;
	}
}

static void note_losses(struct kb_parts *parts, const struct kb_barman *barman)
{
	char what[48];

	for (unsigned int cpu = 0; cpu < parts->nr_cpus; cpu++) {
		for (unsigned int why = 0; kb_loss_name(why); why++) {
			snprintf(what, sizeof(what), "%u.%s", cpu, kb_loss_name(why));
			note_number(barman, &parts->cpus[cpu].lost[why], what);
		}
	}
	for (unsigned int why = 0; kb_miss_name(why); why++)
		note_number(barman, &parts->missed[why], kb_miss_name(why));
}

/* Reads the record at @offset of the file, which has a length word of this machine before it. */
static int read_record(struct kb_parts_cpu *cpu, int fd, uint64_t offset)
{
	bm_uintptr length;
	uint8_t *record;

	if (pread(fd, &length, sizeof(length), (off_t)(offset - sizeof(length))) !=
		    (ssize_t)sizeof(length) || !length || length > UINT32_MAX)
		return -EBADMSG;
	record = malloc(length);
	if (!record)
		return -ENOMEM;
	if (pread(fd, record, length, (off_t)offset) != (ssize_t)length) {
		free(record);
		return -EBADMSG;
	}
	free(cpu->record);
	cpu->record = record;
	cpu->length = length;
	return 0;
}

static int note_records(struct kb_parts *parts, struct kb_barman *barman, const char *path,
			struct kb_error *err)
{
	uint64_t *offsets = calloc(parts->nr_cpus, sizeof(*offsets));
	int fd = open(path, O_RDONLY | O_CLOEXEC), ret = 0;
	struct kb_event event;

	if (!offsets || fd < 0) {
		ret = kb_error_set(err, offsets ? -errno : -ENOMEM, KB_NO_OFFSET, "%s: %s", path,
				   strerror(offsets ? errno : ENOMEM));
		goto out;
	}
	while (kb_barman_next(barman, &event, NULL) == 1) {
		if (event.core >= parts->nr_cpus)
			continue;
		offsets[event.core] = event.offset;
		parts->cpus[event.core].timestamp = event.timestamp;
	}
	for (unsigned int i = 0; i < parts->nr_cpus && !ret; i++) {
		if (offsets[i])
			ret = read_record(&parts->cpus[i], fd, offsets[i]);
	}
	if (ret)
		kb_error_set(err, ret, KB_NO_OFFSET, "%s: its last records can't be read", path);
out:
	if (fd >= 0)
		close(fd);
	free(offsets);
	return ret;
}

int kb_parts_note(struct kb_parts *parts, const char *path, bool records, struct kb_error *err)
{
	uint64_t number, session, raw_base;
	struct kb_barman *barman;
	const char *fact;
	int ret = kb_barman_open(&barman, path, err);

	if (ret)
		return ret;
	fact = kb_barman_fact(barman, "part");
	if (!fact || sscanf(fact, "%" SCNu64 ",%" SCNu64 ",%" SCNu64, &number, &session, &raw_base) !=
			     3 || session != parts->session || raw_base != parts->raw_base)
		goto out;
	if (number >= parts->next) {	/* else a later part has told more */
		parts->next = number + 1;
		note_losses(parts, barman);
	}
	ret = records ? note_records(parts, barman, path, err) : 0;
	ret = ret ?: 1;
out:
	kb_barman_close(barman);
	return ret;
}
