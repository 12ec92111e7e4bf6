// SPDX-License-Identifier: MIT
/* Damage: all findings are counted, some are kept. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "format/barman/inside.h"

void barman_finding(struct kb_barman *barman, uint64_t offset, const char *format, ...)
{
	struct kb_error *err;
	va_list args;
	char *text;

	if (barman->probe_end)
		return;
	if (barman->nr_findings >= BARMAN_FINDINGS_MAX && barman->failure.code) {
		barman->nr_findings += barman->nr_findings != UINT_MAX;
		return;
	}
	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	va_end(args);
	err = barman->nr_findings < BARMAN_FINDINGS_MAX ? &barman->findings[barman->nr_findings]
							: NULL;
	barman->nr_findings++;
	if (!err)
		err = &barman->failure;
	if (offset == KB_NO_OFFSET)
		kb_error_set(err, -EBADMSG, offset, "%s: damaged: %s", barman->source.name,
			     text ? text : "out of memory");
	else
		kb_error_set(err, -EBADMSG, offset, "%s: damaged at byte %llu: %s",
			     barman->source.name, (unsigned long long)offset,
			     text ? text : "out of memory");
	free(text);
	/* Damage in the header is not an error of the records. */
	if (barman->window_offset && !barman->failure.code)
		barman->failure = *err;
}

void barman_bad_record(struct kb_barman *barman, const uint8_t *record, uint64_t length,
		       uint64_t offset, bool swap)
{
	uint32_t type, core;

	if (length < sizeof(struct bm_protocol_record_header)) {
		barman_finding(barman, offset,
			       "a record of %" PRIu64 " bytes is too short for any type", length);
		return;
	}
	type = kb_load32(record, swap);
	core = kb_load32(record + 4, swap);
	if (core >= barman->header.max_cores)
		barman_finding(barman, offset,
			       "a record of core %" PRIu32 ", but there are %" PRIu32 " cores",
			       core, barman->header.max_cores);
	else
		barman_finding(barman, offset,
			       "a record of type %" PRIu32 " that does not fit into "
			       "its %" PRIu64 " bytes, or names a custom series that "
			       "does not exist",
			       type, length);
}

/* The end: return the first damage of the records once. */
int barman_tell_end(struct kb_barman *barman, struct kb_error *err)
{
	barman->ended = true;
	if (!barman->failure.code || barman->told)
		return 0;
	barman->told = true;
	if (err)
		*err = barman->failure;
	return barman->failure.code;
}

unsigned int kb_barman_damage(const struct kb_barman *barman, const struct kb_error **first)
{
	if (first)
		*first = barman->nr_findings ? &barman->findings[0] : NULL;
	return barman->nr_findings;
}

const struct kb_error *kb_barman_finding(const struct kb_barman *barman, unsigned int index)
{
	return index < barman->nr_findings && index < BARMAN_FINDINGS_MAX ? &barman->findings[index]
									  : NULL;
}

int barman_end_early(struct kb_barman *barman, const struct kb_error *why, struct kb_error *err)
{
	barman->ended = true;
	barman_finding(barman, KB_NO_OFFSET, "%s", kb_error_text(why));
	if (err)
		*err = *why;
	return why->code;
}
