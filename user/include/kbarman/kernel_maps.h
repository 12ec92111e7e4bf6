/* SPDX-License-Identifier: MIT */
/* Address ranges of the kernel's code, and its symbols, from /proc. */
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
	bool hidden;			/* the kernel hides addresses from this user; nr is 0 */
};

/*
 * Read @proc/kallsyms and @proc/modules (@proc: NULL = "/proc"). The content of kallsyms is
 * also written to @copy, if @copy is not NULL and addresses are not hidden. Write errors are
 * not returned: check ferror(@copy). Returns 0 or a negative errno and @err. The caller owns
 * @maps; kb_kernel_maps_free() frees what it points to.
 */
int kb_kernel_maps_read(struct kb_kernel_maps *maps, const char *proc, FILE *copy,
			struct kb_error *err);
void kb_kernel_maps_free(struct kb_kernel_maps *maps);

/*
 * Write to @copy the lines of kallsyms of modules that are loaded now and are not in @known.
 * Returns the number of such modules, or a negative errno.
 */
int kb_kernel_maps_append_new(const struct kb_kernel_maps *known, const char *proc, FILE *copy,
			      struct kb_error *err);

/*
 * Add all of @maps to the session with KBARMAN_ADD_MAPS. @added is the number of rows added,
 * also on error. Returns 0 or a negative errno and @err.
 */
int kb_kernel_maps_add(const struct kb_kernel_maps *maps, struct kb_device *device,
		       uint32_t *added, struct kb_error *err);

/*
 * Keep the symbols of code in @proc/kallsyms, compressed, beside the rings of the session that @device
 * has configured: `kbarman recover` finds them in the memory of a machine that crashed. Returns 0 or a
 * negative errno and @err: -EACCES: the kernel hides addresses from this user; or as
 * kb_device_add_symbols().
 */
int kb_kernel_symbols_keep(struct kb_device *device, const char *proc, struct kb_error *err);

#ifdef __cplusplus
}
#endif

#endif
