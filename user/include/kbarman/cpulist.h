/* SPDX-License-Identifier: MIT */
/* Sets of CPUs in the notation of sysfs, such as "0-3,8". */
#ifndef KBARMAN_CPULIST_H
#define KBARMAN_CPULIST_H

#include <stdint.h>

#include <kbarman/error.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KB_CPUS_MAX	65536U
#define KB_CPU_WORDS	(KB_CPUS_MAX / 64)

/*
 * Turn "0-3,8" into a bit map: CPU c is bit c % 64 of words[c / 64]. Returns the number of
 * words that can have bits. -EINVAL: @list is malformed, or names a CPU that is not below
 * @nr_cpus.
 */
int kb_cpulist_parse(uint64_t words[KB_CPU_WORDS], const char *list, unsigned int nr_cpus,
		     struct kb_error *err);

#ifdef __cplusplus
}
#endif

#endif
