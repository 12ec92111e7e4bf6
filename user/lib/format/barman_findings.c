// SPDX-License-Identifier: MIT
/* Damage: all findings are counted, some are kept. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "format/barman_inside.h"

void barman_finding(struct kb_barman *b, uint64_t offset, const char *format, ...)
{
	struct kb_error *err;
	va_list args;
	char *text;

	if (b->probe_end)
		return;
	if (b->nr_findings >= BARMAN_FINDINGS_MAX && b->failure.code) {
		b->nr_findings += b->nr_findings != UINT_MAX;
		return;
	}
	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	va_end(args);
	err = b->nr_findings < BARMAN_FINDINGS_MAX ? &b->findings[b->nr_findings] : NULL;
	b->nr_findings++;
	if (!err)
		err = &b->failure;
	if (offset == KB_NO_OFFSET)
		kb_error_set(err, -EBADMSG, offset, "%s: damaged: %s", b->source.name,
			     text ? text : "out of memory");
	else
		kb_error_set(err, -EBADMSG, offset, "%s: damaged at byte %llu: %s", b->source.name,
			     (unsigned long long)offset, text ? text : "out of memory");
	free(text);
	/* Damage in the header is not an error of the records. */
	if (b->window_offset && !b->failure.code)
		b->failure = *err;
}

void barman_bad_record(struct kb_barman *b, const uint8_t *record, uint64_t length,
		       uint64_t offset, bool swap)
{
	uint32_t type, core;

	if (length < sizeof(struct bm_protocol_record_header)) {
		barman_finding(b, offset, "a record of %" PRIu64 " bytes is too short for any type",
			       length);
		return;
	}
	type = kb_load32(record, swap);
	core = kb_load32(record + 4, swap);
	if (core >= b->header.max_cores)
		barman_finding(b, offset, "a record of core %" PRIu32 ", but there are %" PRIu32
					  " cores",
			       core, b->header.max_cores);
	else
		barman_finding(b, offset, "a record of type %" PRIu32 " that does not fit into "
					  "its %" PRIu64 " bytes, or names a custom series that "
					  "does not exist",
			       type, length);
}

/* The end: return the first damage of the records once. */
int barman_tell_end(struct kb_barman *b, struct kb_error *err)
{
	b->ended = true;
	if (!b->failure.code || b->told)
		return 0;
	b->told = true;
	if (err)
		*err = b->failure;
	return b->failure.code;
}

unsigned int kb_barman_damage(const struct kb_barman *b, const struct kb_error **first)
{
	if (first)
		*first = b->nr_findings ? &b->findings[0] : NULL;
	return b->nr_findings;
}

const struct kb_error *kb_barman_finding(const struct kb_barman *b, unsigned int index)
{
	return index < b->nr_findings && index < BARMAN_FINDINGS_MAX ? &b->findings[index] : NULL;
}

int barman_end_early(struct kb_barman *b, const struct kb_error *why, struct kb_error *err)
{
	b->ended = true;
	barman_finding(b, KB_NO_OFFSET, "%s", kb_error_text(why));
	if (err)
		*err = *why;
	return why->code;
}
