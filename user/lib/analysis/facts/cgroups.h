/* SPDX-License-Identifier: MIT */
/*
 * In which cgroup a process was, from the facts "cgroup" and "cgroup_of" of a capture that kbarmand
 * recorded, and which unit and which container that is.
 */
#ifndef KB_LIB_ANALYSIS_FACTS_CGROUPS_H
#define KB_LIB_ANALYSIS_FACTS_CGROUPS_H

#include <stdint.h>

#include <kbarman/barman.h>
#include <kbarman/text.h>

struct kb_cgroups;

/* @barman must live as long. Returns 0 or -ENOMEM. kb_cgroups_destroy() takes NULL, too. */
int kb_cgroups_create(struct kb_cgroups **out, const struct kb_barman *barman);
void kb_cgroups_destroy(struct kb_cgroups *cgroups);

/* The path of the cgroup of @process at @timestamp, ticks; NULL: it is not known. */
const char *kb_cgroups_find(const struct kb_cgroups *cgroups, uint32_t process, uint64_t timestamp);

/*
 * The unit of systemd that the innermost folder of the path with such a name is, without ".service":
 * "shop" of /system.slice/shop.service/worker. Empty: it is in no service.
 */
struct kb_text kb_cgroup_service(const char *path);

/* The id of the container, 64 hexadecimal digits, as Docker, containerd, CRI-O and Podman name cgroups. */
struct kb_text kb_cgroup_container(const char *path);

#endif
