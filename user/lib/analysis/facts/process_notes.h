/* SPDX-License-Identifier: MIT */
/*
 * What a recorder noted of processes: in which cgroup one was, with which command line it ran, from
 * the facts "cgroup", "cgroup_of" and "command" of rows; and which unit and container a cgroup is.
 */
#ifndef KB_LIB_ANALYSIS_FACTS_PROCESS_NOTES_H
#define KB_LIB_ANALYSIS_FACTS_PROCESS_NOTES_H

#include <stdbool.h>
#include <stdint.h>

#include <kbarman/barman.h>
#include <kbarman/text.h>

struct kb_process_note {		/* NULL: it is not known */
	const char *cgroup;		/* the path; processes of one cgroup have the same pointer */
	const char *command;
};

struct kb_process_notes;

/*
 * @barman must live as long. Returns 0 or -ENOMEM. kb_process_notes_destroy() takes NULL, too.
 */
int kb_process_notes_create(struct kb_process_notes **out, const struct kb_barman *barman);
void kb_process_notes_destroy(struct kb_process_notes *notes);

/* The note of @process at @timestamp, ticks. */
struct kb_process_note kb_process_notes_find(const struct kb_process_notes *notes, uint32_t process,
					     uint64_t timestamp);

/* The note of row @row of the task table alone. */
struct kb_process_note kb_process_notes_row(const struct kb_process_notes *notes, uint32_t row);

/* Whether there is any cgroup. */
bool kb_process_notes_have_cgroups(const struct kb_process_notes *notes);

/* Whether @fact, behind "kbarman.", is part of a note. */
bool kb_process_notes_are(const char *fact);

/*
 * The unit of systemd that the innermost folder of the path with such a name is, without ".service":
 * "shop" of /system.slice/shop.service/worker. Empty: it is in no service.
 */
struct kb_text kb_cgroup_service(const char *path);

/* The id of the container, 64 hexadecimal digits, as Docker, containerd, CRI-O and Podman name cgroups. */
struct kb_text kb_cgroup_container(const char *path);

#endif
