// SPDX-License-Identifier: MIT
/*
 * Both sides in one profile of pprof, as its option -diff_base makes one of two: the samples of A
 * have the label pprof::base and negative values. So pprof shows B minus A, and percents of A.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/io/out_packet.h"
#include "base/table.h"
#include "export/diff/write.h"
#include "export/label.h"
#include "export/viewers/pprof_fields.h"
#include "format/gzip.h"
#include "format/protobuf.h"

#define SMALL	256	/* bytes: room for the numbers of a message */

/* The first strings. String 0 is "". */
enum { STRING_NONE, STRING_TYPE, STRING_UNIT, STRING_BASE, STRING_TRUE, STRING_THREAD, STRINGS };

struct profile {
	const struct kb_diff *diff;
	const struct kb_diff_write_options *options;
	struct kb_out *out;
	struct kb_table functions;	/* key: name, image; numbers + 1 are ids */
	uint64_t *ids;			/* by node: of its function */
	uint32_t nr_strings;
};

static uint32_t put_string(struct profile *x, const char *text)
{
	char label[KB_DIFF_LABEL];
	size_t length = kb_label(label, sizeof(label), text, strlen(text), false);
	uint8_t *at = kb_out_reserve(x->out, length + SMALL);

	if (at)
		kb_out_commit(x->out, kb_proto_put_bytes(at, PROFILE_STRING, label, length));
	return x->nr_strings++;
}

/* A message of some numbers: fields from 1 on; 0 is left out. */
static void put_message(struct profile *x, uint32_t field, const uint64_t *values, uint32_t nr)
{
	uint8_t *at = kb_out_reserve(x->out, SMALL), *message;

	if (!at)
		return;
	at = message = kb_proto_begin(at, field, KB_PROTO_EVENT);
	for (uint32_t i = 0; i < nr; i++)
		if (values[i])
			at = kb_proto_put_uint(at, i + 1, values[i]);
	kb_out_commit(x->out, kb_proto_end(message, at, KB_PROTO_EVENT));
}

static void put_head(struct profile *x)
{
	static const uint64_t type[] = { STRING_TYPE, STRING_UNIT };
	const char *const strings[STRINGS] = {
		[STRING_NONE] = "",
		[STRING_TYPE] = x->options->waits ? "off-cpu" : "cpu",
		[STRING_UNIT] = "nanoseconds",
		[STRING_BASE] = "pprof::base",
		[STRING_TRUE] = "true",
		[STRING_THREAD] = "thread",
	};

	for (int i = 0; i < STRINGS; i++)
		put_string(x, strings[i]);
	put_message(x, PROFILE_SAMPLE_TYPE, type, 2);
	put_message(x, PROFILE_PERIOD_TYPE, type, 2);
}

/* A function and a location of the same number. */
static void put_function(struct profile *x, uint64_t id, const struct kb_diff_node *node)
{
	uint8_t *at, *message, *line;
	char label[KB_DIFF_LABEL];
	uint32_t name;

	kb_diff_label(label, node->name, node->image);
	name = put_string(x, label);
	put_message(x, PROFILE_FUNCTION,
		    (const uint64_t[]){ id, name, name, node->image[0] ? put_string(x, node->image) : 0 },
		    4);
	at = kb_out_reserve(x->out, SMALL);
	if (!at)
		return;
	message = kb_proto_begin(at, PROFILE_LOCATION, KB_PROTO_EVENT);
	at = kb_proto_put_uint(message, LOCATION_ID, id);
	line = kb_proto_begin(at, LOCATION_LINE, KB_PROTO_EVENT);
	at = kb_proto_put_uint(line, LINE_FUNCTION, id);
	at = kb_proto_end(line, at, KB_PROTO_EVENT);
	kb_out_commit(x->out, kb_proto_end(message, at, KB_PROTO_EVENT));
}

/* Of a task the id is that of its name as a string. */
static int put_nodes(struct profile *x)
{
	for (uint32_t i = 1; i < x->diff->nr_nodes; i++) {
		const struct kb_diff_node *node = &x->diff->nodes[i];
		const uint64_t key[2] = { (uintptr_t)node->name, (uintptr_t)node->image };
		uint32_t before = x->functions.nr;
		char *row;

		if (node->depth == 1) {
			x->ids[i] = put_string(x, node->name);
			continue;
		}
		row = kb_table_get(&x->functions, key);
		if (!row)
			return -ENOMEM;
		x->ids[i] = (uint64_t)(row - x->functions.rows) / x->functions.row_size + 1;
		if (x->functions.nr != before)
			put_function(x, x->ids[i], node);
	}
	return 0;
}

static uint8_t *put_label(uint8_t *at, uint32_t key, uint64_t value)
{
	uint8_t *label = kb_proto_begin(at, SAMPLE_LABEL, KB_PROTO_EVENT);

	at = kb_proto_put_uint(label, LABEL_KEY, key);
	return kb_proto_end(label, kb_proto_put_uint(at, LABEL_STR, value), KB_PROTO_EVENT);
}

static void put_sample(struct profile *x, uint32_t node, int64_t value)
{
	const struct kb_diff_node *nodes = x->diff->nodes;
	uint8_t *at = kb_out_reserve(x->out, (size_t)nodes[node].depth * KB_PROTO_UINT + SMALL);
	uint8_t *message;

	if (!at || !value)
		return;
	at = message = kb_proto_begin(at, PROFILE_SAMPLE, KB_PROTO_PACKET);
	for (; nodes[node].depth > 1; node = nodes[node].parent)
		at = kb_proto_put_uint(at, SAMPLE_LOCATION, x->ids[node]);
	at = kb_proto_put_uint(at, SAMPLE_VALUE, (uint64_t)value);
	at = put_label(at, STRING_THREAD, x->ids[node]);
	if (value < 0)
		at = put_label(at, STRING_BASE, STRING_TRUE);
	kb_out_commit(x->out, kb_proto_end(message, at, KB_PROTO_PACKET));
}

static int put_all(struct profile *x)
{
	int ret;

	put_head(x);
	ret = put_nodes(x);
	for (uint32_t i = 1; i < x->diff->nr_nodes && !ret; i++) {
		const double *self = kb_diff_self(&x->diff->nodes[i], x->options);

		put_sample(x, i, -(int64_t)kb_diff_ns(self[0]));
		put_sample(x, i, (int64_t)kb_diff_ns(self[1]));
	}
	return ret;
}

int kb_diff_write_pprof(const struct kb_diff *diff, const struct kb_diff_write_options *options,
			struct kb_out *out)
{
	struct profile x = { .diff = diff, .options = options };
	struct kb_gzip *gzip = NULL;
	int ret;

	kb_table_init(&x.functions, 2 * sizeof(uint64_t), 2);
	x.ids = calloc(diff->nr_nodes, sizeof(*x.ids));
	ret = x.ids ? kb_gzip_create(&gzip, out, &x.out) : -ENOMEM;
	if (!ret)
		ret = put_all(&x) ?: kb_gzip_finish(gzip);
	kb_gzip_destroy(gzip);
	kb_table_release(&x.functions);
	free(x.ids);
	return ret;
}
