/* SPDX-License-Identifier: MIT */
/* Sets of CPUs as people and sysfs write them. */
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
 * "0-3,8" to a bit map: CPU c is bit c % 64 of words[c / 64]. Returns how many words
 * have to be looked at; -EINVAL: not a list, or a CPU that is not below @nr_cpus.
 */
int kb_cpulist_parse(uint64_t words[KB_CPU_WORDS], const char *list, unsigned int nr_cpus,
		     struct kb_error *err);

#ifdef __cplusplus
}
#endif

#endif
