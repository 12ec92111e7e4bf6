// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/facts/cgroups.h"
#include "base/array.h"
#include "base/bisect.h"

#define SERVICE		".service"
#define ID_DIGITS	64
#define NONE		UINT32_MAX

/* A process from a time on. */
struct row {
	uint32_t process;
	uint32_t cgroup;
	uint64_t from;
};

struct kb_cgroups {
	const char **paths;		/* by number; NULL: the capture does not say */
	uint32_t nr_paths;
	struct row *rows;		/* by process and time */
	uint32_t nr_rows, max_rows;
};

/* Takes the number at @text, which ends in @end. False: there is none, or it is not below @limit. */
static bool take_number(const char **text, char end, uint32_t limit, uint32_t *number)
{
	unsigned long long value;
	char *rest;

	if (**text < '0' || **text > '9')
		return false;
	value = strtoull(*text, &rest, 10);
	if (*rest != end || value >= limit)
		return false;
	*number = (uint32_t)value;
	*text = rest + (end != '\0');
	return true;
}

static int take_fact(struct kb_cgroups *cgroups, const struct kb_header *header, const char *string)
{
	static const char path[] = "kbarman.cgroup.", of[] = "kbarman.cgroup_of.";
	uint32_t number, row;

	if (!strncmp(string, path, strlen(path))) {
		string += strlen(path);
		/* Each path stands in front of those that are in it: there are no more than strings. */
		if (take_number(&string, '=', cgroups->nr_paths, &number))
			cgroups->paths[number] = string;
		return 0;
	}
	if (strncmp(string, of, strlen(of)) != 0)
		return 0;
	string += strlen(of);
	if (!take_number(&string, '=', header->nr_tasks, &row) ||
	    !take_number(&string, '\0', cgroups->nr_paths, &number))
		return 0;
	if (!KB_ARRAY_ROOM(cgroups->rows, cgroups->max_rows, (size_t)cgroups->nr_rows + 1))
		return -ENOMEM;
	cgroups->rows[cgroups->nr_rows++] = (struct row){
		.process = header->tasks[row].task_id, .cgroup = number,
		.from = header->tasks[row].timestamp,
	};
	return 0;
}

static int by_process(const void *left, const void *right)
{
	const struct row *a = left, *b = right;

	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	return a->from < b->from ? -1 : a->from > b->from;
}

/* How many paths there may be: strings of this kind. */
static uint32_t count_paths(const struct kb_header *header)
{
	uint32_t nr = 0;

	for (uint32_t at = 0; at < header->string_table_length;
	     at += (uint32_t)strlen(header->strings + at) + 1)
		nr += !strncmp(header->strings + at, "kbarman.cgroup.", 15);
	return nr;
}

int kb_cgroups_create(struct kb_cgroups **out, const struct kb_barman *barman)
{
	const struct kb_header *header = kb_barman_header(barman);
	struct kb_cgroups *cgroups = calloc(1, sizeof(*cgroups));
	int ret = 0;

	*out = NULL;
	if (!cgroups)
		return -ENOMEM;
	cgroups->nr_paths = count_paths(header);
	cgroups->paths = calloc((size_t)cgroups->nr_paths + 1, sizeof(*cgroups->paths));
	if (!cgroups->paths)
		ret = -ENOMEM;
	for (uint32_t at = 0; cgroups->nr_paths && at < header->string_table_length && !ret;
	     at += (uint32_t)strlen(header->strings + at) + 1)
		ret = take_fact(cgroups, header, header->strings + at);
	if (ret) {
		kb_cgroups_destroy(cgroups);
		return ret;
	}
	if (cgroups->nr_rows)
		qsort(cgroups->rows, cgroups->nr_rows, sizeof(*cgroups->rows), by_process);
	*out = cgroups;
	return 0;
}

void kb_cgroups_destroy(struct kb_cgroups *cgroups)
{
	if (!cgroups)
		return;
	free(cgroups->paths);
	free(cgroups->rows);
	free(cgroups);
}

const char *kb_cgroups_find(const struct kb_cgroups *cgroups, uint32_t process, uint64_t timestamp)
{
	const struct row *rows = cgroups->rows, *row;
	/* The first row that is behind this moment. */
	uint32_t i = KB_BISECT(k, 0, cgroups->nr_rows, rows[k].process < process ||
			       (rows[k].process == process && rows[k].from <= timestamp));

	/* A record may be a little older than the row of its task. */
	if (i && rows[i - 1].process == process)
		row = &rows[i - 1];
	else if (i < cgroups->nr_rows && rows[i].process == process)
		row = &rows[i];
	else
		return NULL;
	return cgroups->paths[row->cgroup];
}

/* ---- what a path says ---- */

struct kb_text kb_cgroup_service(const char *path)
{
	struct kb_text found = { .data = "" };

	while (*path) {
		size_t length = strcspn(path, "/"), suffix = strlen(SERVICE);

		if (length > suffix && !memcmp(path + length - suffix, SERVICE, suffix))
			found = (struct kb_text){ .data = path, .length = length - suffix };
		path += length + (path[length] == '/');
	}
	return found;
}

struct kb_text kb_cgroup_container(const char *path)
{
	struct kb_text found = { .data = "" };

	while (*path) {
		size_t digits = strspn(path, "0123456789abcdef");

		if (digits == ID_DIGITS)
			found = (struct kb_text){ .data = path, .length = digits };
		/* To the next part of a name: docker-ID.scope, cri-containerd-ID.scope, /docker/ID */
		path += digits;
		path += strcspn(path, "/-:.");
		path += *path != '\0';
	}
	return found;
}
