/* SPDX-License-Identifier: MIT */
/*
 * Names of what tasks wait for, from /proc while the task that waits is there. A name is believed only if
 * the inode there is the one for which the task waits.
 *
 * No process is attached to or stopped, no file is opened or held, and no file system is asked, as a
 * server that does not answer would hold up the recording: links of /proc have paths, fdinfo has the
 * inode (since Linux 5.14) and the mount, mountinfo has the mount's device.
 */
#ifndef KB_LIB_RECORD_RECORDER_PROC_OBJECTS_H
#define KB_LIB_RECORD_RECORDER_PROC_OBJECTS_H

#include <stdbool.h>
#include <stdint.h>

#define KB_OBJECT_NAME	512	/* bytes; what is longer has no name */

struct kb_proc_object {
	uint64_t value;			/* as in struct bm_kbarman_object */
	uint32_t id;
	uint32_t task;			/* which waits for it */
	uint8_t kind;			/* enum kb_object_kind: KB_OBJECT_FILE to KB_OBJECT_ANON */
	char name[KB_OBJECT_NAME];	/* any bytes; empty: none was found */
};

/*
 * Find the names of @objects, whose names are empty, until this thread has had @ns of CPU time. False: that was
 * before everything was looked at.
 *
 *	file, device	its path; behind that of a removed file is " (deleted)"
 *	pipe		"sh 12, make 13 -> cat 14": who writes and who reads, of the @processes; "?" is nobody
 *	socket		"tcp 127.0.0.1:80 -> 127.0.0.1:40112", its own end first; "unix /run/x"
 *	anon		"eventpoll", "timerfd"
 *
 * Pipes that have a path, and sockets of other families, have no names.
 */
bool kb_proc_objects_name(struct kb_proc_object *objects, unsigned int nr, const uint32_t *processes,
			  unsigned int nr_processes, int64_t ns);

#endif
