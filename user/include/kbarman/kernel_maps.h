/* SPDX-License-Identifier: MIT */
/* Where the kernel's own code is, and what its symbols are, from /proc. */
#ifndef KBARMAN_KERNEL_MAPS_H
#define KBARMAN_KERNEL_MAPS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <kbarman/device.h>
#include <kbarman/error.h>

#ifdef __cplusplus
extern "C" {
#endif

struct kb_kernel_map {
	uint64_t base_address;
	uint64_t length;		/* > 0 */
	char image[64];			/* "[kernel.kallsyms]", "[MODULE]" */
};

/* Ordered by address; ranges don't overlap. */
struct kb_kernel_maps {
	struct kb_kernel_map *maps;
	uint32_t nr;
	bool hidden;			/* the kernel shows us no addresses: nr is 0 */
};

/*
 * Read @proc/kallsyms and @proc/modules (@proc: NULL = "/proc"). What kallsyms
 * says also goes to @copy, if that is not NULL and the addresses are not hidden;
 * its errors are left to the caller's ferror().
 */
int kb_kernel_maps_read(struct kb_kernel_maps *maps, const char *proc, FILE *copy,
			struct kb_error *err);
void kb_kernel_maps_free(struct kb_kernel_maps *maps);

/*
 * Write to @copy what kallsyms says of modules that are there now and are not in
 * @known: they were loaded since. Returns how many modules, or a negative errno.
 */
int kb_kernel_maps_append_new(const struct kb_kernel_maps *known, const char *proc, FILE *copy,
			      struct kb_error *err);

/* KBARMAN_ADD_MAPS of all of them; @added says how many went in, also on error. */
int kb_kernel_maps_add(const struct kb_kernel_maps *maps, struct kb_device *device,
		       uint32_t *added, struct kb_error *err);

#ifdef __cplusplus
}
#endif

#endif
