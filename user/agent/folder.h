/* SPDX-License-Identifier: MIT */
/*
 * The folder of captures. A file is SESSION-NUMBER-TIME.cap. The numbers of all files of the folder
 * grow, whatever the clock does and whatever is taken away, so that the order of the names of a session is that in which it was
 * recorded. While a file is written it is called .part. It gets its name when the disk has it, so each
 * file is whole or not there. A thread waits for the disk. It also removes the oldest files when all
 * take more than they may, or leave too little to others.
 */
#ifndef KB_AGENT_FOLDER_H
#define KB_AGENT_FOLDER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kbarman/error.h>

#include "agent/config.h"

struct agent_file {
	char name[NAME_MAX + 1];
	char session[AGENT_NAME_MAX];
	uint64_t number;
	uint64_t bytes;			/* on the disk */
	int64_t changed_ns;		/* CLOCK_REALTIME */
	bool part;
};

struct agent_folder_counts {
	uint64_t written, written_bytes;	/* files that got their names */
	uint64_t removed, removed_bytes;	/* to keep the bound */
	uint64_t files, bytes;			/* there are now */
	uint64_t failed;			/* files that the disk did not take */
	char trouble[256];			/* why the last file did not get its name; "": it has it */
	int64_t waits_ms;			/* how long a file has waited for the disk now */
};

struct agent_folder;

/*
 * Opens the folder, which is made if it is not there, and locks it: -EBUSY: another agent has it.
 * agent_folder_close() waits for the disk. It takes NULL, too.
 */
int agent_folder_open(struct agent_folder **out, const char *path, struct kb_error *err);
void agent_folder_close(struct agent_folder *folder);

/*
 * The bytes that all files may take, from now on; @growing: those that are being written; @keep_free:
 * what the disk has to keep for others.
 */
void agent_folder_bound(struct agent_folder *folder, uint64_t bytes, uint64_t growing,
			uint64_t keep_free);

/* The disk took no more: lets the oldest files go, if others have taken what is to be kept free. */
void agent_folder_make_room(struct agent_folder *folder);

/* All files in the order of their numbers, malloc()ed. Returns how many, or a negative errno. */
int agent_folder_list(struct agent_folder *folder, struct agent_file **files);

/* The newest file of @session in @files that got its name; NULL: there is none. */
const struct agent_file *agent_folder_newest(const struct agent_file *files, int nr,
					     const char *session);

/*
 * A name of the last file of @session that got its own, which is another link to it: it stays when who
 * ships the captures takes that away, until there is a later one.
 */
char *agent_folder_last(const struct agent_folder *folder, const char *session, char *path);

/* Makes the next file of @session. Its descriptor, and its name; or a negative errno. */
int agent_folder_create(struct agent_folder *folder, const char *session,
			char name[NAME_MAX + 1]);

/* The path of @name, in a buffer of PATH_MAX bytes. Returns @path. */
char *agent_folder_path(const struct agent_folder *folder, const char *name, char *path);

/* Lets the file, which owns @fd, get its name when the disk has it. */
void agent_folder_finish(struct agent_folder *folder, int fd, const char *name);

/* Counts a file that could not be made or written. */
void agent_folder_fail(struct agent_folder *folder);

void agent_folder_remove(struct agent_folder *folder, const char *name);

/* Waits until all files have their names. */
void agent_folder_drain(struct agent_folder *folder);

void agent_folder_counts(struct agent_folder *folder, struct agent_folder_counts *counts);

#endif
