// SPDX-License-Identifier: MIT
/* See sums.h. */
#include "export/html/sums.h"
#include "format/protobuf.h"

#define ROW_BYTES	64U	/* more than a row has */

struct task_sum {
	uint64_t key;		/* number of the task */
	uint64_t ns, runs, left[2];	/* preempted, blocked */
};

struct sample_sum {
	uint64_t key;		/* number of the task << 32 | node */
	uint64_t samples, unweighed, weight;
};

void kb_html_sums_init(struct kb_html_sums *sums)
{
	*sums = (struct kb_html_sums) { 0 };
	kb_table_init(&sums->tasks, sizeof(struct task_sum), 1);
	kb_table_init(&sums->samples, sizeof(struct sample_sum), 1);
}

void kb_html_sums_release(struct kb_html_sums *sums)
{
	kb_table_release(&sums->tasks);
	kb_table_release(&sums->samples);
}

bool kb_html_sums_run(struct kb_html_sums *sums, uint32_t task, uint64_t ns, unsigned int how)
{
	uint64_t key = task;
	struct task_sum *row = kb_table_get(&sums->tasks, &key);

	if (!row)
		return false;
	row->ns += ns;
	row->runs++;
	if (how)
		row->left[how - 1]++;
	return true;
}

bool kb_html_sums_sample(struct kb_html_sums *sums, uint32_t task, uint32_t node, uint64_t weight)
{
	uint64_t key = (uint64_t)task << 32 | node;
	struct sample_sum *row = kb_table_get(&sums->samples, &key);

	if (!row)
		return false;
	row->samples++;
	if (weight)
		row->weight += weight - 1;
	else
		row->unweighed++;
	return true;
}

bool kb_html_sums_add(struct kb_html_sums *sums, const struct kb_html_sums *more)
{
	sums->idle += more->idle;
	sums->lost += more->lost;
	for (uint32_t i = 0; i < more->tasks.nr; i++) {
		const struct task_sum *from = kb_table_row(&more->tasks, i);
		struct task_sum *to = kb_table_get(&sums->tasks, &from->key);

		if (!to)
			return false;
		to->ns += from->ns;
		to->runs += from->runs;
		to->left[0] += from->left[0];
		to->left[1] += from->left[1];
	}
	for (uint32_t i = 0; i < more->samples.nr; i++) {
		const struct sample_sum *from = kb_table_row(&more->samples, i);
		struct sample_sum *to = kb_table_get(&sums->samples, &from->key);

		if (!to)
			return false;
		to->samples += from->samples;
		to->unweighed += from->unweighed;
		to->weight += from->weight;
	}
	return true;
}

static void put(struct kb_out *out, const uint64_t *values, unsigned int nr)
{
	uint8_t *at = kb_out_reserve(out, ROW_BYTES);

	for (unsigned int i = 0; at && i < nr; i++)
		at = kb_proto_put_varint(at, values[i]);
	if (at)
		kb_out_commit(out, at);
}

void kb_html_sums_put(const struct kb_html_sums *sums, struct kb_out *out)
{
	put(out, (uint64_t[]) { sums->idle, sums->lost, sums->tasks.nr }, 3);
	for (uint32_t i = 0; i < sums->tasks.nr; i++) {
		const struct task_sum *row = kb_table_row(&sums->tasks, i);

		put(out, (uint64_t[]) { row->key, row->ns, row->runs, row->left[0], row->left[1] }, 5);
	}
	for (uint32_t i = 0; i < sums->samples.nr; i++) {
		const struct sample_sum *row = kb_table_row(&sums->samples, i);

		put(out, (uint64_t[]) { row->key >> 32, (uint32_t)row->key, row->samples,
					row->unweighed, row->weight }, 5);
	}
}
