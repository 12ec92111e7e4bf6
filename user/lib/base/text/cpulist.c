// SPDX-License-Identifier: MIT
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <kbarman/cpulist.h>

/* Parse one number and move @text after it. strtoul() alone would accept signs and spaces. */
static bool parse_cpu(const char **text, unsigned long *cpu)
{
	char *end;

	if (!isdigit((unsigned char)**text))
		return false;
	*cpu = strtoul(*text, &end, 10);
	*text = end;
	return true;
}

int kb_cpulist_parse(uint64_t words[KB_CPU_WORDS], const char *list, unsigned int nr_cpus,
		     struct kb_error *err)
{
	const char *at = list;
	unsigned long first, last, highest = 0;

	if (nr_cpus > KB_CPUS_MAX)
		nr_cpus = KB_CPUS_MAX;
	memset(words, 0, KB_CPU_WORDS * sizeof(*words));
	for (;;) {
		if (!parse_cpu(&at, &first))
			goto malformed;
		last = first;
		if (*at == '-') {
			at++;
			if (!parse_cpu(&at, &last) || last < first)
				goto malformed;
		}
		if (last >= nr_cpus)
			return kb_error_set(err, -EINVAL, (uint64_t)(at - list),
					    "'%.100s': there is no CPU %lu, CPU numbers are below %u",
					    list, last, nr_cpus);
		for (unsigned long cpu = first; cpu <= last; cpu++)
			words[cpu / 64] |= UINT64_C(1) << cpu % 64;
		if (last > highest)
			highest = last;
		if (!*at)
			return (int)(highest / 64 + 1);
		if (*at++ != ',')
			goto malformed;
	}

malformed:
	return kb_error_set(err, -EINVAL, (uint64_t)(at - list),
			    "'%.100s' is not a list of CPUs: write it as 0-3,8", list);
}
