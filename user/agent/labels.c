// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/labels.h"
#include "base/array.h"

#define TEXT_BYTES	4096

char *agent_cgroup_of(char *text)
{
	char *best = NULL;
	int best_rank = 0;

	/* Lines are "ID:CONTROLLERS:PATH". */
	for (char *line = text, *next; line && *line; line = next) {
		char *controllers, *path;
		int rank = 1;

		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		controllers = strchr(line, ':');
		path = controllers ? strchr(controllers + 1, ':') : NULL;
		if (!path)
			continue;
		*path++ = '\0';
		if (!controllers[1])
			rank = 2;
		/* With both versions mounted, version 2 has nothing but the root, or has what systemd has. */
		if (!strcmp(controllers + 1, "name=systemd"))
			rank = 3;
		if (*path != '/' || (!strcmp(path, "/") && best) || rank < best_rank)
			continue;
		best = path;
		best_rank = strcmp(path, "/") ? rank : 0;
	}
	return best;
}

/* The number of the cgroup in the capture, which gets it now if it does not have it. */
static int64_t number_of(struct agent_labels *labels, struct kb_recorder *recorder, const char *path)
{
	char key[32];

	/* Most processes are in one of the last. */
	for (uint32_t i = labels->nr; i > 0; i--)
		if (!strcmp(labels->paths[i - 1], path))
			return i - 1;
	if (!KB_ARRAY_ROOM(labels->paths, labels->max, labels->nr + 1))
		return -1;
	labels->paths[labels->nr] = strdup(path);
	snprintf(key, sizeof(key), "cgroup.%" PRIu32, labels->nr);
	if (!labels->paths[labels->nr])
		return -1;
	labels->nr++;
	return kb_recorder_fact(recorder, key, path, NULL) ? -1 : (int64_t)labels->nr - 1;
}

void agent_labels_note(struct agent_labels *labels, struct kb_recorder *recorder, uint32_t row,
		       uint32_t process)
{
	char text[TEXT_BYTES], key[32], value[24];
	const char *path;
	int64_t number;
	ssize_t length;
	int fd;

	if (!process)
		return;		/* idle */
	snprintf(text, sizeof(text), "/proc/%" PRIu32 "/cgroup", process);
	fd = open(text, O_RDONLY | O_CLOEXEC);
	length = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	if (length <= 0) {
		labels->unread++;
		return;
	}
	text[length] = '\0';
	path = agent_cgroup_of(text);
	number = path ? number_of(labels, recorder, path) : -1;
	if (number < 0)
		return;
	snprintf(key, sizeof(key), "cgroup_of.%" PRIu32, row);
	snprintf(value, sizeof(value), "%" PRId64, number);
	kb_recorder_fact(recorder, key, value, NULL);
}

void agent_labels_release(struct agent_labels *labels)
{
	for (uint32_t i = 0; i < labels->nr; i++)
		free(labels->paths[i]);
	free(labels->paths);
	*labels = (struct agent_labels){ 0 };
}
