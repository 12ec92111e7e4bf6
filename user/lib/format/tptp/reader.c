// SPDX-License-Identifier: MIT
/* The part of the reader that does not depend on the form of the trace. */
#include <errno.h>
#include <stdlib.h>

#include "format/tptp/codec.h"

/* A reader without an input. */
static struct kb_tptp *create(struct kb_error *err)
{
	struct kb_tptp *tptp = calloc(1, sizeof(*tptp));

	if (!tptp) {
		kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory for a TPTP reader");
		return NULL;
	}
	tptp_plans_init(tptp->plans);
	tptp->info.frequency = KB_TPTP_FREQUENCY_NS;
	kb_in_memory(&tptp->in, "", 0);
	return tptp;
}

static int open_form(struct kb_tptp **out, struct kb_tptp *tptp, struct kb_error *err)
{
	int ret = tptp_binary_open(tptp, err);

	if (ret == -ENODATA)
		ret = tptp_xml_open(tptp, err);
	if (ret) {
		kb_tptp_close(tptp);
		return ret;
	}
	*out = tptp;
	return 0;
}

int kb_tptp_open(struct kb_tptp **out, const char *path, struct kb_error *err)
{
	struct kb_tptp *tptp = create(err);
	int ret;

	*out = NULL;
	if (!tptp)
		return -ENOMEM;
	ret = kb_in_open(&tptp->in, path, err);
	if (ret) {
		kb_tptp_close(tptp);
		return ret;
	}
	return open_form(out, tptp, err);
}

int kb_tptp_open_memory(struct kb_tptp **out, const void *data, size_t size, struct kb_error *err)
{
	struct kb_tptp *tptp = create(err);

	*out = NULL;
	if (!tptp)
		return -ENOMEM;
	kb_in_memory(&tptp->in, data, size);
	return open_form(out, tptp, err);
}

void kb_tptp_close(struct kb_tptp *tptp)
{
	if (!tptp)
		return;
	kb_in_close(&tptp->in);
	free(tptp->strings);
	free(tptp->longs);
	if (tptp->xml)
		free(tptp->xml->scratch);
	free(tptp->xml);
	free(tptp);
}

const struct kb_tptp_info *kb_tptp_info(const struct kb_tptp *tptp)
{
	return &tptp->info;
}

int kb_tptp_next(struct kb_tptp *tptp, struct kb_tptp_message *message, struct kb_error *err)
{
	int ret;

	if (tptp->pending.code) {
		ret = tptp->pending.code;
		if (err)
			*err = tptp->pending;
		tptp->pending.code = 0;
		return ret;
	}
	if (tptp->finished)
		return 0;
	ret = tptp->xml ? tptp_xml_next(tptp, message, err) : tptp_binary_next(tptp, message, err);
	if (ret > 0)
		tptp->info.messages++;
	return ret;
}

int64_t kb_tptp_ns(const struct kb_tptp *tptp, int64_t ticks)
{
	int64_t seconds, ns;
	uint32_t rest;

	seconds = tptp_split_ticks(ticks, tptp->info.frequency, &rest);
	/* -1 s + 0.5 s must not overflow if -0.5 s does not. */
	if (seconds < 0) {
		seconds++;
		if (__builtin_mul_overflow(seconds, INT64_C(1000000000), &ns) ||
		    __builtin_sub_overflow(ns, INT64_C(1000000000) - rest, &ns))
			return INT64_MIN;
		return ns;
	}
	if (__builtin_mul_overflow(seconds, INT64_C(1000000000), &ns) ||
	    __builtin_add_overflow(ns, rest, &ns))
		return INT64_MAX;
	return ns;
}
