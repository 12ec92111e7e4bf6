// SPDX-License-Identifier: MIT
/*
 * Facts are of rows, and a row is a process from a time on. So a number that two processes had, one
 * after the other, has the notes of each: a row without a note is one of which nothing is known.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/facts/process_notes.h"
#include "base/array.h"
#include "base/bisect.h"

#define SERVICE		".service"
#define ID_DIGITS	64

/* A process from a time on. */
struct row {
	uint32_t process, number;	/* of the row */
	uint64_t from;
};

struct kb_process_notes {
	const char **paths;		/* of cgroups, by number; NULL: the capture does not say */
	uint32_t nr_paths;
	bool any;			/* a process has a note */
	struct kb_process_note *notes;	/* by number of the row */
	struct row *rows;		/* of processes, by process and time */
	uint32_t nr_rows;
};

static const char of_path[] = "cgroup.", of_cgroup[] = "cgroup_of.", of_command[] = "command.";

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

/* What is behind @prefix; NULL: @fact is another one. */
static const char *behind(const char *fact, const char *prefix)
{
	size_t length = strlen(prefix);

	return strncmp(fact, prefix, length) ? NULL : fact + length;
}

bool kb_process_notes_are(const char *fact)
{
	return behind(fact, of_path) || behind(fact, of_cgroup) || behind(fact, of_command);
}

/* The next fact from @at on, behind "kbarman."; NULL: there is no more. */
static const char *next_fact(const struct kb_header *header, uint32_t *at)
{
	const char *fact = NULL;

	while (!fact && *at < header->string_table_length) {
		fact = behind(header->strings + *at, "kbarman.");
		*at += (uint32_t)strlen(header->strings + *at) + 1;
	}
	return fact;
}

static void take_fact(struct kb_process_notes *notes, uint32_t nr_tasks, const char *fact)
{
	uint32_t number, row;
	const char *at;

	/* Each path stands in front of those that are in it: there are no more than strings. */
	if ((at = behind(fact, of_path)) && take_number(&at, '=', notes->nr_paths, &number))
		notes->paths[number] = at;
	if ((at = behind(fact, of_cgroup)) && take_number(&at, '=', nr_tasks, &row) &&
	    take_number(&at, '\0', notes->nr_paths, &number))
		notes->notes[row].cgroup = notes->paths[number];
	if ((at = behind(fact, of_command)) && take_number(&at, '=', nr_tasks, &row) && *at)
		notes->notes[row].command = at;
}

static int by_text(const void *left, const void *right)
{
	return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* Gives cgroups of one path, which a merged capture may have several times, one pointer. */
static int unite_paths(struct kb_process_notes *notes, uint32_t nr_tasks)
{
	const char **sorted = calloc((size_t)notes->nr_paths + 1, sizeof(*sorted));
	uint32_t nr = 0;

	if (!sorted)
		return -ENOMEM;
	for (uint32_t i = 0; i < notes->nr_paths; i++)
		if (notes->paths[i])
			sorted[nr++] = notes->paths[i];
	qsort(sorted, nr, sizeof(*sorted), by_text);
	for (uint32_t i = 1; i < nr; i++)
		if (!strcmp(sorted[i - 1], sorted[i]))
			sorted[i] = sorted[i - 1];
	for (uint32_t i = 0; i < nr_tasks; i++) {
		const char **cgroup = &notes->notes[i].cgroup;
		const char *const *first = *cgroup ? bsearch(cgroup, sorted, nr, sizeof(*sorted), by_text) : NULL;

		if (first)
			*cgroup = *first;
	}
	free(sorted);
	return 0;
}

static int by_process(const void *left, const void *right)
{
	const struct row *a = left, *b = right;

	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	if (a->from != b->from)
		return a->from < b->from ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

/* A process stays in its cgroup when it gets another name, with which it may have ended soon. */
static void keep_cgroups(struct kb_process_notes *notes, const struct kb_header *header)
{
	for (uint32_t i = 1; i < notes->nr_rows; i++) {
		const struct row *before = &notes->rows[i - 1], *row = &notes->rows[i];

		if (before->process == row->process && !header->tasks[before->number].exited &&
		    !notes->notes[row->number].cgroup)
			notes->notes[row->number].cgroup = notes->notes[before->number].cgroup;
	}
}

static int read_notes(struct kb_process_notes *notes, const struct kb_header *header)
{
	uint32_t at = 0, nr = header->nr_tasks;
	const char *fact;

	while ((fact = next_fact(header, &at))) {
		notes->nr_paths += behind(fact, of_path) != NULL;
		notes->any |= behind(fact, of_cgroup) || behind(fact, of_command);
	}
	if (!notes->any)
		return 0;
	notes->paths = calloc((size_t)notes->nr_paths + 1, sizeof(*notes->paths));
	notes->notes = calloc((size_t)nr + 1, sizeof(*notes->notes));
	notes->rows = calloc((size_t)nr + 1, sizeof(*notes->rows));
	if (!notes->paths || !notes->notes || !notes->rows)
		return -ENOMEM;
	for (at = 0; (fact = next_fact(header, &at)); )
		take_fact(notes, nr, fact);
	for (uint32_t i = 0; i < nr; i++)
		if (header->tasks[i].tgid == header->tasks[i].task_id)
			notes->rows[notes->nr_rows++] = (struct row){
				header->tasks[i].task_id, i, header->tasks[i].timestamp };
	qsort(notes->rows, notes->nr_rows, sizeof(*notes->rows), by_process);
	keep_cgroups(notes, header);
	return unite_paths(notes, nr);
}

int kb_process_notes_create(struct kb_process_notes **out, const struct kb_barman *barman)
{
	*out = calloc(1, sizeof(**out));
	if (*out && !read_notes(*out, kb_barman_header(barman)))
		return 0;
	kb_process_notes_destroy(*out);
	*out = NULL;
	return -ENOMEM;
}

void kb_process_notes_destroy(struct kb_process_notes *notes)
{
	if (!notes)
		return;
	free(notes->paths);
	free(notes->notes);
	free(notes->rows);
	free(notes);
}

struct kb_process_note kb_process_notes_row(const struct kb_process_notes *notes, uint32_t row)
{
	return notes->any ? notes->notes[row] : (struct kb_process_note){ 0 };
}

struct kb_process_note kb_process_notes_find(const struct kb_process_notes *notes, uint32_t process,
					     uint64_t timestamp)
{
	const struct row *rows = notes->rows;
	/* The first row that is behind this moment. */
	uint32_t i = KB_BISECT(k, 0, notes->nr_rows, rows[k].process < process ||
			       (rows[k].process == process && rows[k].from <= timestamp));

	/* A record may be a little older than the row of its task. */
	if (i && rows[i - 1].process == process)
		i--;
	else if (i == notes->nr_rows || rows[i].process != process)
		return (struct kb_process_note){ 0 };
	return notes->notes[rows[i].number];
}

bool kb_process_notes_have_cgroups(const struct kb_process_notes *notes)
{
	return notes->any && notes->nr_paths;
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
