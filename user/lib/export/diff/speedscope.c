// SPDX-License-Identifier: MIT
/*
 * Speedscope's format has no differences, so there are four profiles: A, B, and what each chain has
 * more in B and less in B. All have the chains in one order, for its view "left heavy".
 */
#include <errno.h>
#include <stdlib.h>

#include "base/text/json.h"
#include "export/diff/write.h"

struct file {
	const struct kb_diff *diff;
	const struct kb_diff_write_options *options;
	struct kb_json json;
	uint32_t *path;		/* nodes from the task on */
};

enum { PROFILE_A, PROFILE_B, PROFILE_MORE, PROFILE_LESS, PROFILES };

static uint64_t weight_of(const struct file *file, const struct kb_diff_node *node, int profile)
{
	const double *self = kb_diff_self(node, file->options);
	double weights[PROFILES] = { self[0], self[1], self[1] - self[0], self[0] - self[1] };

	return kb_diff_ns(weights[profile]);
}

/* Frame i is node i + 1. */
static void put_frames(struct file *file)
{
	char label[KB_DIFF_LABEL];

	kb_json_object(&file->json, "shared");
	kb_json_array(&file->json, "frames");
	for (uint32_t i = 1; i < file->diff->nr_nodes; i++) {
		const struct kb_diff_node *node = &file->diff->nodes[i];

		kb_json_object(&file->json, NULL);
		kb_json_text(&file->json, "name", label,
			     kb_diff_label(label, node->name, node->image));
		kb_json_string(&file->json, "file", node->image);
		kb_json_object_end(&file->json);
	}
	kb_json_array_end(&file->json);
	kb_json_object_end(&file->json);
}

static void put_stack(struct file *file, uint32_t node)
{
	uint32_t depth = file->diff->nodes[node].depth;

	for (uint32_t i = depth; i--; node = file->diff->nodes[node].parent)
		file->path[i] = node;
	kb_json_array(&file->json, NULL);
	for (uint32_t i = 0; i < depth; i++)
		kb_json_u64(&file->json, NULL, file->path[i] - 1);
	kb_json_array_end(&file->json);
}

static void put_profile(struct file *file, int profile)
{
	static const char *const names[PROFILES] = { "A", "B", "more in B", "less in B" };
	const struct kb_diff *diff = file->diff;
	uint64_t all = 0;

	for (uint32_t i = 1; i < diff->nr_nodes; i++)
		all += weight_of(file, &diff->nodes[i], profile);
	kb_json_object(&file->json, NULL);
	kb_json_string(&file->json, "type", "sampled");
	kb_json_string(&file->json, "name", names[profile]);
	kb_json_string(&file->json, "unit", "nanoseconds");
	kb_json_u64(&file->json, "startValue", 0);
	kb_json_u64(&file->json, "endValue", all);
	kb_json_array(&file->json, "samples");
	for (uint32_t i = 1; i < diff->nr_nodes; i++)
		if (weight_of(file, &diff->nodes[diff->order[i]], profile))
			put_stack(file, diff->order[i]);
	kb_json_array_end(&file->json);
	kb_json_array(&file->json, "weights");
	for (uint32_t i = 1; i < diff->nr_nodes; i++)
		if (weight_of(file, &diff->nodes[diff->order[i]], profile))
			kb_json_u64(&file->json, NULL,
				    weight_of(file, &diff->nodes[diff->order[i]], profile));
	kb_json_array_end(&file->json);
	kb_json_object_end(&file->json);
}

int kb_diff_write_speedscope(const struct kb_diff *diff,
			     const struct kb_diff_write_options *options, struct kb_out *out)
{
	struct file file = { .diff = diff, .options = options, .json.out = out };

	file.path = calloc((size_t)kb_diff_depth(diff) + 1, sizeof(*file.path));
	if (!file.path)
		return -ENOMEM;
	kb_json_object(&file.json, NULL);
	kb_json_string(&file.json, "$schema", "https://www.speedscope.app/file-format-schema.json");
	kb_json_string(&file.json, "exporter", "kbarman");
	kb_json_string(&file.json, "name", options->title ? options->title : "A, then B");
	kb_json_u64(&file.json, "activeProfileIndex", PROFILE_MORE);
	put_frames(&file);
	kb_json_array(&file.json, "profiles");
	for (int profile = 0; profile < PROFILES; profile++)
		put_profile(&file, profile);
	kb_json_array_end(&file.json);
	kb_json_object_end(&file.json);
	kb_out_bytes(out, "\n", 1);
	free(file.path);
	return 0;
}
