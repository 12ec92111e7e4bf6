// SPDX-License-Identifier: MIT
/*
 * What /proc says of a process when it gets its row, as facts:
 *
 *	kbarman.cgroup.K=PATH		a cgroup, K counts from 0
 *	kbarman.cgroup_of.ROW=K		the process of that row of the task table is in it
 *	kbarman.command.ROW=TEXT	the arguments of that process
 *
 * A process that has ended by then has none of them: that is no error. Anybody may choose these
 * texts, so they have a room of their own in the file, and take none from other facts.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/text/utf8.h"
#include "record/recorder/inside.h"

#define CGROUP_BYTES	4096
#define COMMAND_BYTES	256		/* of the text of a command line, */
#define CUT		"..."		/* with this behind one that is cut */

/* Finds the cgroup: that of version 2, or else that of systemd, or the first one. NULL: none. */
static char *cgroup_of(char *text)
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

/*
 * Makes the text of a command line of its @length bytes, in place, which have room for a NUL: blanks
 * between the arguments, nothing that controls a terminal.
 */
static void make_command(char *text, size_t length)
{
	bool cut = length > COMMAND_BYTES;

	while (length && !text[length - 1])
		length--;
	for (size_t i = 0; i < length; i++)
		text[i] = text[i] ?: ' ';
	if (cut)
		length = COMMAND_BYTES - strlen(CUT);
	/* No half of a character at the end. */
	while (cut && length && (text[length] & 0xc0) == 0x80)
		length--;
	length = kb_utf8_shown(text, text, length);
	memcpy(text + length, cut ? CUT : "", cut ? sizeof(CUT) : 1);
}

/* Reads the beginning of a file of @process. Returns its bytes; -errno: it has ended. */
static ssize_t read_of(uint32_t process, const char *name, char *text, size_t size)
{
	char path[48];
	ssize_t length;
	int fd;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/%s", process, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	length = read(fd, text, size);
	if (length < 0)
		length = -errno;
	close(fd);
	return length;
}

/* Writes a fact. -ENOSPC: there is no room for it. */
static int put(struct kb_recorder *recorder, const char *key, uint32_t number, const char *value)
{
	char text[32];
	uint64_t bytes = (uint64_t)snprintf(text, sizeof(text), "%s.%" PRIu32, key, number) +
			 strlen(value) + sizeof("kbarman.=");

	if (bytes > recorder->notes.room)
		return -ENOSPC;
	recorder->notes.room -= bytes;
	return kb_barman_writer_fact(recorder->writer, text, value);
}

/* Finds the number of the cgroup in the capture, which gets it now if it does not have it. */
static int number_of(struct kb_recorder *recorder, const char *path, uint32_t *number)
{
	struct recorder_notes *notes = &recorder->notes;
	int ret;

	/* Most processes are in one of the last. */
	for (*number = notes->nr_cgroups; *number > 0; --*number)
		if (!strcmp(notes->cgroups[*number - 1], path)) {
			--*number;
			return 0;
		}
	*number = notes->nr_cgroups;
	if (!KB_ARRAY_ROOM(notes->cgroups, notes->max_cgroups, (size_t)*number + 1))
		return -ENOMEM;
	ret = put(recorder, "cgroup", *number, path);
	if (ret)
		return ret;
	notes->cgroups[*number] = strdup(path);
	if (!notes->cgroups[*number])
		return -ENOMEM;
	notes->nr_cgroups++;
	return 0;
}

static int note_cgroup(struct kb_recorder *recorder, uint32_t row, uint32_t process)
{
	char text[CGROUP_BYTES], value[16];
	ssize_t length = read_of(process, "cgroup", text, sizeof(text) - 1);
	uint32_t number;
	const char *path;
	int ret;

	if (length <= 0)
		return length ? -ESRCH : 0;
	text[length] = '\0';
	path = cgroup_of(text);
	if (!path)
		return 0;
	ret = number_of(recorder, path, &number);
	if (ret)
		return ret;
	snprintf(value, sizeof(value), "%" PRIu32, number);
	return put(recorder, "cgroup_of", row, value);
}

static int note_command(struct kb_recorder *recorder, uint32_t row, uint32_t process)
{
	char text[COMMAND_BYTES + 2];
	ssize_t length = read_of(process, "cmdline", text, COMMAND_BYTES + 1);

	if (length <= 0)
		return 0;	/* threads of the kernel have none */
	make_command(text, (size_t)length);
	return *text ? put(recorder, "command", row, text) : 0;
}

int recorder_note(struct kb_recorder *recorder, uint32_t row, uint32_t process)
{
	int ret = 0;

	if (!process)
		return 0;	/* idle */
	if (recorder->notes.what & KB_NOTE_CGROUP)
		ret = note_cgroup(recorder, row, process);
	if (recorder->notes.what & KB_NOTE_COMMAND && ret != -ESRCH && ret != -ENOMEM)
		ret = note_command(recorder, row, process);
	return ret == -ESRCH || ret == -ENOSPC ? 0 : ret;
}

void recorder_notes_release(struct kb_recorder *recorder)
{
	for (uint32_t i = 0; i < recorder->notes.nr_cgroups; i++)
		free(recorder->notes.cgroups[i]);
	free(recorder->notes.cgroups);
}
