// SPDX-License-Identifier: MIT
/*
 * See terms.h. In sysfs, `format/FIELD` of a PMU says which bits of config a field has, and
 * `events/NAME` is a list of such fields. This file knows no particular PMU.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "record/perf/pmus.h"
#include "record/perf/terms.h"

int kb_terms_fail(const struct kb_term_parser *p, int code, const char *why)
{
	return kb_error_set(p->err, code, KB_NO_OFFSET, "event '%s': %s", p->element, why);
}

static __u64 *config_word(struct kb_perf_event *event, const char *name)
{
	if (!strcmp(name, "config"))
		return &event->config;
	if (!strcmp(name, "config1"))
		return &event->config1;
	if (!strcmp(name, "config2"))
		return &event->config2;
	return NULL;
}

/* Put @value into the bits that @format names, "config1:0-7,32-35" for example. */
static int set_field(const struct kb_term_parser *p, struct kb_perf_event *event, char *format,
		     const char *field, uint64_t value)
{
	char *bits = strchr(format, ':'), *rest, *range;
	__u64 *word;
	char why[128];

	snprintf(why, sizeof(why), "this tool does not understand the PMU's field '%.40s'", field);
	if (!bits)
		return kb_terms_fail(p, -EINVAL, why);
	*bits++ = '\0';
	word = config_word(event, format);
	if (!word)
		return kb_terms_fail(p, -EINVAL, why);

	for (range = strtok_r(bits, ",", &rest); range; range = strtok_r(NULL, ",", &rest)) {
		unsigned int low, high;
		int n = 0;
		uint64_t mask;

		if (sscanf(range, "%u%n-%u%n", &low, &n, &high, &n) < 2)
			high = low;
		if (!n || range[n] || low > high || high > 63)
			return kb_terms_fail(p, -EINVAL, why);
		mask = UINT64_MAX >> (63 - (high - low));
		*word = (*word & ~(mask << low)) | (value & mask) << low;
		value = high - low == 63 ? 0 : value >> (high - low + 1);
	}
	if (value) {
		snprintf(why, sizeof(why), "the value of '%.40s' has too many bits for the PMU's field",
			 field);
		return kb_terms_fail(p, -EINVAL, why);
	}
	return 0;
}

int kb_terms_field(const struct kb_term_parser *p, struct kb_perf_event *event, const char *pmu,
		       char *term)
{
	char format[KB_SYSFS_LINE], why[128], *text = strchr(term, '=');
	uint64_t value = 1;
	__u64 *word;

	if (text) {
		*text++ = '\0';
		if (!kb_pmu_number(text, 0, &value)) {
			snprintf(why, sizeof(why), "'%.40s=%.40s' is not a number", term, text);
			return kb_terms_fail(p, -EINVAL, why);
		}
	}
	if (!kb_pmu_is_file_name(term))
		return KB_NO_SUCH_TERM;
	if (!kb_pmu_read(p->sysfs, pmu, "format", term, format))
		return set_field(p, event, format, term, value);
	word = config_word(event, term);
	if (!word)
		return KB_NO_SUCH_TERM;
	*word = value;
	return 0;
}

int kb_terms_alias(const struct kb_term_parser *p, struct kb_perf_event *event, const char *pmu,
		       const char *name)
{
	char line[KB_SYSFS_LINE], *term, *rest;

	if (!kb_pmu_is_file_name(name) || kb_pmu_read(p->sysfs, pmu, "events", name, line))
		return KB_NO_SUCH_TERM;
	for (term = strtok_r(line, ",", &rest); term; term = strtok_r(NULL, ",", &rest)) {
		int ret = kb_terms_field(p, event, pmu, term);

		if (ret == KB_NO_SUCH_TERM)
			return kb_terms_fail(p, -EINVAL, "sysfs describes it with a field that the PMU "
						"does not have");
		if (ret)
			return ret;
	}
	return 0;
}
