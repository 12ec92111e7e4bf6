// SPDX-License-Identifier: MIT
/*
 * Event names to type and config of perf_event_open().
 *
 * The generic names are those of perf. All other events of a PMU come from sysfs: `type` is the
 * number of the PMU, `format/FIELD` says which bits of config a field has, `events/NAME` is a
 * list of such fields. This file knows no particular PMU.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kbarman/perf_events.h>

#include "base/array.h"
#include "record/perf_counter.h"

#define LINE_BYTES	1024	/* of a sysfs file that describes an event or a field */

struct parser {
	const char *sysfs;
	const char *element;		/* element of the list, for error texts */
	struct kb_error *err;
};

static int fail(const struct parser *p, int code, const char *why)
{
	return kb_error_set(p->err, code, KB_NO_OFFSET, "event '%s': %s", p->element, why);
}

struct generic_event {
	const char *name;
	uint32_t type;
	uint32_t config;
	const char *description;
};

static const struct generic_event generic_events[] = {
	{ "cycles",
	  PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES,
	  "CPU cycles" },
	{ "cpu-cycles",
	  PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES,
	  "the same as cycles" },
	{ "instructions",
	  PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS,
	  "instructions retired" },
	{ "cache-references",
	  PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES,
	  "accesses of the last-level cache, as the PMU counts them" },
	{ "cache-misses",
	  PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES,
	  "misses of the last-level cache, as the PMU counts them" },
	{ "branches",
	  PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS,
	  "branches retired" },
	{ "branch-instructions",
	  PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS,
	  "the same as branches" },
	{ "branch-misses",
	  PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES,
	  "branches that were predicted wrongly" },
	{ "bus-cycles",
	  PERF_TYPE_HARDWARE, PERF_COUNT_HW_BUS_CYCLES,
	  "cycles of the bus" },
	{ "stalled-cycles-frontend",
	  PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND,
	  "cycles without an instruction to issue" },
	{ "idle-cycles-frontend",
	  PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND,
	  "the same as stalled-cycles-frontend" },
	{ "stalled-cycles-backend",
	  PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND,
	  "cycles in which nothing could be issued" },
	{ "idle-cycles-backend",
	  PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND,
	  "the same as stalled-cycles-backend" },
	{ "ref-cycles",
	  PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES,
	  "cycles at the reference clock's rate" },
	{ "cpu-clock",
	  PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK,
	  "time, by a timer of each CPU; needs no PMU" },
	{ "task-clock",
	  PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK,
	  "time that tasks ran" },
	{ "page-faults",
	  PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS,
	  "page faults" },
	{ "faults",
	  PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS,
	  "the same as page-faults" },
	{ "minor-faults",
	  PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN,
	  "page faults without input or output" },
	{ "major-faults",
	  PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ,
	  "page faults that waited for input or output" },
	{ "context-switches",
	  PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES,
	  "switches to another task" },
	{ "cs",
	  PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES,
	  "the same as context-switches" },
	{ "cpu-migrations",
	  PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS,
	  "tasks that came from another CPU" },
	{ "migrations",
	  PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS,
	  "the same as cpu-migrations" },
	{ "alignment-faults",
	  PERF_TYPE_SOFTWARE, PERF_COUNT_SW_ALIGNMENT_FAULTS,
	  "accesses that the kernel had to align" },
	{ "emulation-faults",
	  PERF_TYPE_SOFTWARE, PERF_COUNT_SW_EMULATION_FAULTS,
	  "instructions that the kernel had to emulate" },
};

/* A generic cache event is CACHE-OPERATION, its config cache | op << 8 | result << 16. */
static const struct generic_event caches[] = {
	{ "L1-dcache", PERF_TYPE_HW_CACHE, PERF_COUNT_HW_CACHE_L1D, "level 1 data cache" },
	{ "L1-icache", PERF_TYPE_HW_CACHE, PERF_COUNT_HW_CACHE_L1I, "level 1 instruction cache" },
	{ "LLC", PERF_TYPE_HW_CACHE, PERF_COUNT_HW_CACHE_LL, "last-level cache" },
	{ "dTLB", PERF_TYPE_HW_CACHE, PERF_COUNT_HW_CACHE_DTLB, "data TLB" },
	{ "iTLB", PERF_TYPE_HW_CACHE, PERF_COUNT_HW_CACHE_ITLB, "instruction TLB" },
	{ "branch", PERF_TYPE_HW_CACHE, PERF_COUNT_HW_CACHE_BPU, "branch predictor" },
	{ "node", PERF_TYPE_HW_CACHE, PERF_COUNT_HW_CACHE_NODE, "local memory" },
};

#define CACHE_OP(op, result) \
	(PERF_COUNT_HW_CACHE_OP_##op << 8 | PERF_COUNT_HW_CACHE_RESULT_##result << 16)

static const struct generic_event cache_operations[] = {
	{ "loads", PERF_TYPE_HW_CACHE, CACHE_OP(READ, ACCESS), "loads" },
	{ "load-misses", PERF_TYPE_HW_CACHE, CACHE_OP(READ, MISS), "load misses" },
	{ "stores", PERF_TYPE_HW_CACHE, CACHE_OP(WRITE, ACCESS), "stores" },
	{ "store-misses", PERF_TYPE_HW_CACHE, CACHE_OP(WRITE, MISS), "store misses" },
	{ "prefetches", PERF_TYPE_HW_CACHE, CACHE_OP(PREFETCH, ACCESS), "prefetches" },
	{ "prefetch-misses", PERF_TYPE_HW_CACHE, CACHE_OP(PREFETCH, MISS), "prefetch misses" },
};

static bool find_generic(struct kbarman_event *event, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(generic_events); i++) {
		if (strcmp(name, generic_events[i].name))
			continue;
		event->type = generic_events[i].type;
		event->config = generic_events[i].config;
		return true;
	}
	return false;
}

static bool find_cache(struct kbarman_event *event, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(caches); i++) {
		size_t length = strlen(caches[i].name);

		if (strncmp(name, caches[i].name, length) || name[length] != '-')
			continue;
		for (size_t j = 0; j < ARRAY_SIZE(cache_operations); j++) {
			if (strcmp(name + length + 1, cache_operations[j].name))
				continue;
			event->type = PERF_TYPE_HW_CACHE;
			event->config = caches[i].config | cache_operations[j].config;
			return true;
		}
	}
	return false;
}

/* Parse all of @text as a number; base 0 or 16. */
static bool parse_number(const char *text, int base, uint64_t *value)
{
	char *end;

	if (!isxdigit((unsigned char)*text))
		return false;
	errno = 0;
	*value = strtoull(text, &end, base);
	return !errno && !*end;
}

static bool find_raw(struct kbarman_event *event, const char *name)
{
	uint64_t config;

	/* strtoull() itself would take the x of r0x12 */
	if (name[0] != 'r' || name[1 + strspn(name + 1, "0123456789abcdefABCDEF")] ||
	    !parse_number(name + 1, 16, &config))
		return false;
	event->type = PERF_TYPE_RAW;
	event->config = config;
	return true;
}

/* Whether @name can be the last component of a path. Names come from the command line. */
static bool is_file_name(const char *name)
{
	return *name && *name != '.' && !strchr(name, '/') && strlen(name) <= NAME_MAX;
}

/* The first line of SYSFS/bus/event_source/devices/PMU/DIR/NAME; 0 or -errno. */
static int read_pmu_file(const struct parser *p, const char *pmu, const char *dir,
			 const char *name, char line[LINE_BYTES])
{
	char path[PATH_MAX];
	ssize_t length;
	int fd;

	if (snprintf(path, sizeof(path), "%s/bus/event_source/devices/%s/%s%s%s", p->sysfs, pmu,
		     dir, *dir ? "/" : "", name) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	length = read(fd, line, LINE_BYTES - 1);
	if (length < 0)
		length = -errno;
	close(fd);
	if (length < 0)
		return (int)length;
	line[length] = '\0';
	line[strcspn(line, "\n")] = '\0';
	return 0;
}

static __u64 *config_word(struct kbarman_event *event, const char *name)
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
static int set_field(const struct parser *p, struct kbarman_event *event, char *format,
		     const char *field, uint64_t value)
{
	char *bits = strchr(format, ':'), *rest, *range;
	__u64 *word;
	char why[128];

	snprintf(why, sizeof(why), "this tool does not understand the PMU's field '%.40s'", field);
	if (!bits)
		return fail(p, -EINVAL, why);
	*bits++ = '\0';
	word = config_word(event, format);
	if (!word)
		return fail(p, -EINVAL, why);

	for (range = strtok_r(bits, ",", &rest); range; range = strtok_r(NULL, ",", &rest)) {
		unsigned int low, high;
		int n = 0;
		uint64_t mask;

		if (sscanf(range, "%u%n-%u%n", &low, &n, &high, &n) < 2)
			high = low;
		if (!n || range[n] || low > high || high > 63)
			return fail(p, -EINVAL, why);
		mask = UINT64_MAX >> (63 - (high - low));
		*word = (*word & ~(mask << low)) | (value & mask) << low;
		value = high - low == 63 ? 0 : value >> (high - low + 1);
	}
	if (value) {
		snprintf(why, sizeof(why), "the value of '%.40s' has too many bits for the PMU's field",
			 field);
		return fail(p, -EINVAL, why);
	}
	return 0;
}

/* The result for a term that is neither a field of the PMU nor one of the generic terms. */
#define NO_SUCH_TERM	1

/* One FIELD or FIELD=VALUE. */
static int apply_field(const struct parser *p, struct kbarman_event *event, const char *pmu,
		       char *term)
{
	char format[LINE_BYTES], why[128], *text = strchr(term, '=');
	uint64_t value = 1;
	__u64 *word;

	if (text) {
		*text++ = '\0';
		if (!parse_number(text, 0, &value)) {
			snprintf(why, sizeof(why), "'%.40s=%.40s' is not a number", term, text);
			return fail(p, -EINVAL, why);
		}
	}
	if (!is_file_name(term))
		return NO_SUCH_TERM;
	if (!read_pmu_file(p, pmu, "format", term, format))
		return set_field(p, event, format, term, value);
	word = config_word(event, term);
	if (!word)
		return NO_SUCH_TERM;
	*word = value;
	return 0;
}

/* Apply the fields that the PMU's events/NAME lists. NO_SUCH_TERM: the PMU has no such event. */
static int apply_alias(const struct parser *p, struct kbarman_event *event, const char *pmu,
		       const char *name)
{
	char line[LINE_BYTES], *term, *rest;

	if (!is_file_name(name) || read_pmu_file(p, pmu, "events", name, line))
		return NO_SUCH_TERM;
	for (term = strtok_r(line, ",", &rest); term; term = strtok_r(NULL, ",", &rest)) {
		int ret = apply_field(p, event, pmu, term);

		if (ret == NO_SUCH_TERM)
			return fail(p, -EINVAL, "sysfs describes it with a field that the PMU "
						"does not have");
		if (ret)
			return ret;
	}
	return 0;
}

/* The error for an unknown PMU: lists the PMUs that exist. */
static int no_such_pmu(const struct parser *p)
{
	char path[PATH_MAX], why[192] = "no such PMU; there are";
	struct dirent **pmus;
	size_t used = strlen(why);
	int nr;

	snprintf(path, sizeof(path), "%s/bus/event_source/devices", p->sysfs);
	nr = scandir(path, &pmus, NULL, alphasort);
	for (int i = 0; i < nr; i++) {
		const char *name = pmus[i]->d_name;
		size_t left = sizeof(why) - used;

		if (*name != '.' && strlen(name) + 2 < left)
			used += (size_t)snprintf(why + used, left, " %s", name);
		free(pmus[i]);
	}
	if (nr >= 0)
		free(pmus);
	return fail(p, -ENOENT, why);
}

static int read_pmu_type(const struct parser *p, struct kbarman_event *event, const char *pmu)
{
	char line[LINE_BYTES];
	uint64_t type;

	if (!is_file_name(pmu) || read_pmu_file(p, pmu, "", "type", line) ||
	    !parse_number(line, 0, &type) || type > UINT32_MAX)
		return no_such_pmu(p);
	event->type = (uint32_t)type;
	return 0;
}

static int set_name(const struct parser *p, struct kbarman_event *event, const char *name)
{
	size_t length = strlen(name);

	if (!length || length >= sizeof(event->name))
		return fail(p, -EINVAL, "the name must have 1 to 63 bytes; give another by name=");
	memset(event->name, 0, sizeof(event->name));
	memcpy(event->name, name, length);
	return 0;
}

/* PMU/TERM,TERM=VALUE,…/; @slash is the first one */
static int parse_pmu(const struct parser *p, struct kbarman_event *event, char *text, char *slash)
{
	char *terms = slash + 1, *end = strchr(terms, '/');
	const char *name = NULL;
	char *term, *rest;
	int ret;

	*slash = '\0';
	if (!end)
		return fail(p, -EINVAL, "the closing '/' is missing: write it as "
					"armv8_pmuv3_0/event=0x11/");
	*end = '\0';
	if (end[1])
		return fail(p, -EINVAL, "modifiers are not supported: user and kernel are both counted");
	ret = read_pmu_type(p, event, text);
	for (term = strtok_r(terms, ",", &rest); term && !ret; term = strtok_r(NULL, ",", &rest)) {
		char why[160];

		if (!strncmp(term, "name=", 5)) {
			name = term + 5;
			continue;
		}
		ret = strchr(term, '=') ? NO_SUCH_TERM : apply_alias(p, event, text, term);
		if (ret == NO_SUCH_TERM)
			ret = apply_field(p, event, text, term);
		if (ret == NO_SUCH_TERM) {
			snprintf(why, sizeof(why),
				 "the PMU has no '%.40s': see its events and format folders in "
				 "/sys/bus/event_source/devices", term);
			ret = fail(p, -ENOENT, why);
		}
	}
	return ret ?: set_name(p, event, name ?: p->element);
}

/*
 * Whether @pmu is a PMU of CPU cores. Arm's core PMUs have a file `cpus` (uncore PMUs have
 * `cpumask`); those of x86 and s390 are called cpu, cpu_core and cpum_cf.
 */
static bool is_cpu_pmu(const struct parser *p, const char *pmu)
{
	char line[LINE_BYTES];

	return !strncmp(pmu, "cpu", 3) || !read_pmu_file(p, pmu, "", "cpus", line);
}

/* Find an event that a CPU PMU lists under this name; NO_SUCH_TERM if there is none. */
static int find_alias(const struct parser *p, struct kbarman_event *event, const char *name)
{
	struct dirent **pmus;
	char path[PATH_MAX];
	int nr, ret = NO_SUCH_TERM;

	snprintf(path, sizeof(path), "%s/bus/event_source/devices", p->sysfs);
	nr = scandir(path, &pmus, NULL, alphasort);
	if (nr < 0)
		return NO_SUCH_TERM;
	for (int i = 0; i < nr; i++) {
		const char *pmu = pmus[i]->d_name;

		if (ret == NO_SUCH_TERM && *pmu != '.' && is_cpu_pmu(p, pmu)) {
			ret = apply_alias(p, event, pmu, name);
			if (!ret)
				ret = read_pmu_type(p, event, pmu);
		}
		free(pmus[i]);
	}
	free(pmus);
	return ret;
}

/* The path of tracefs below sysfs; NULL if it is not there. */
static const char *find_tracefs(const struct parser *p)
{
	static const char *const places[] = { "kernel/tracing", "kernel/debug/tracing" };
	char path[PATH_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		snprintf(path, sizeof(path), "%s/%s/events", p->sysfs, places[i]);
		if (!access(path, F_OK))
			return places[i];
	}
	return NULL;
}

/* SYSTEM:NAME: a tracepoint of the kernel. Its number is read from tracefs. */
static int parse_tracepoint(const struct parser *p, struct kbarman_event *event, const char *text)
{
	const char *tracefs = find_tracefs(p), *name = strchr(text, ':') + 1;
	char path[PATH_MAX], system[64], line[32] = "";
	size_t length = (size_t)(name - 1 - text);
	uint64_t id;
	int fd;

	if (!tracefs)
		return fail(p, -ENOENT,
			    "tracepoints can't be looked up: as root, 'mount -t tracefs nodev "
			    "/sys/kernel/tracing'");
	if (length >= sizeof(system))
		return fail(p, -ENOENT, "no such tracepoint");
	memcpy(system, text, length);
	system[length] = '\0';
	fd = -1;
	if (is_file_name(system) && is_file_name(name) &&
	    snprintf(path, sizeof(path), "%s/%s/events/%s/%s/id", p->sysfs, tracefs, system,
		     name) < (int)sizeof(path))
		fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && errno == EACCES)
		return fail(p, -EACCES, "only root may read tracefs: run as root");
	if (fd < 0)
		return fail(p, -ENOENT,
			    "no such tracepoint: see /sys/kernel/tracing/events; modifiers "
			    "(cycles:u) are not supported, user and kernel are both counted");
	if (read(fd, line, sizeof(line) - 1) > 0)
		line[strcspn(line, "\n")] = '\0';
	close(fd);
	if (!parse_number(line, 0, &id))
		return fail(p, -EINVAL, "tracefs gives no number for it");
	event->type = PERF_TYPE_TRACEPOINT;
	event->config = id;
	return set_name(p, event, text);
}

static int parse_element(const struct parser *p, struct kbarman_event *event, char *text)
{
	char *slash;
	int ret;

	memset(event, 0, sizeof(*event));
	if (!*text)
		return kb_error_set(p->err, -EINVAL, KB_NO_OFFSET,
				    "an event has no name: write a list as cycles,instructions");
	slash = strchr(text, '/');
	if (slash)
		return parse_pmu(p, event, text, slash);
	if (!find_generic(event, text) && !find_cache(event, text) && !find_raw(event, text)) {
		ret = find_alias(p, event, text);
		if (ret == NO_SUCH_TERM && strchr(text, ':'))
			return parse_tracepoint(p, event, text);
		if (ret == NO_SUCH_TERM)
			return fail(p, -ENOENT,
				    "no such event: generic names are perf's (cycles, cpu-clock, "
				    "cache-misses, …); see also the events of the CPU's PMU in "
				    "/sys/bus/event_source/devices/*/events");
		if (ret)
			return ret;
	}
	return set_name(p, event, text);
}

/* Terminate the first element of @list and return the rest; NULL if there is no rest. */
static char *split_element(char *list)
{
	bool in_terms = false;

	for (; *list; list++) {
		if (*list == '/')
			in_terms = !in_terms;
		if (*list == ',' && !in_terms) {
			*list = '\0';
			return list + 1;
		}
	}
	return NULL;
}

int kb_events_parse(struct kbarman_event *events, unsigned int max, const char *list,
		    const char *sysfs, struct kb_error *err)
{
	struct parser p = { .sysfs = sysfs ?: "/sys", .err = err };
	char *copy = strdup(list), *rest, *text;
	int ret = 0;
	unsigned int nr = 0;

	if (!copy)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	for (text = copy; text && !ret; text = rest) {
		char *element;

		rest = split_element(text);
		if (nr == max) {
			ret = kb_error_set(err, -E2BIG, KB_NO_OFFSET,
					   "too many events: at most %u can be counted at once", max);
			break;
		}
		element = strdup(text);
		if (!element) {
			ret = kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
			break;
		}
		p.element = element;
		ret = parse_element(&p, &events[nr], text);
		free(element);
		nr++;
	}
	free(copy);
	return ret ?: (int)nr;
}

/* ---- what there is ---- */

struct lister {
	struct parser parser;
	kb_events_visit visit;
	void *context;
};

static int visit_event(const struct lister *l, const char *group, const char *name,
		       const char *description)
{
	struct kb_event_listing listing = { .group = group, .description = description };

	if (kb_events_parse(&listing.event, 1, name, l->parser.sysfs, NULL) != 1)
		return 0;		/* sysfs lists more than can be counted */
	return l->visit(l->context, &listing);
}

static int list_caches(const struct lister *l)
{
	int ret = 0;

	for (size_t i = 0; i < ARRAY_SIZE(caches); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(cache_operations) && !ret; j++) {
			char name[64], description[96];

			snprintf(name, sizeof(name), "%s-%s", caches[i].name,
				 cache_operations[j].name);
			snprintf(description, sizeof(description), "%s: %s", caches[i].description,
				 cache_operations[j].description);
			ret = visit_event(l, "cache", name, description);
		}
	}
	return ret;
}

/* List the events that sysfs has for @pmu. Their terms serve as description. */
static int list_pmu(const struct lister *l, const char *pmu)
{
	char path[PATH_MAX], name[2 * NAME_MAX + 4], terms[LINE_BYTES];
	struct dirent **events;
	int nr, ret = 0;

	snprintf(path, sizeof(path), "%s/bus/event_source/devices/%s/events", l->parser.sysfs, pmu);
	nr = scandir(path, &events, NULL, alphasort);
	for (int i = 0; i < nr; i++) {
		const char *event = events[i]->d_name;

		/* NAME.unit and NAME.scale are about NAME */
		if (!ret && !strchr(event, '.') &&
		    !read_pmu_file(&l->parser, pmu, "events", event, terms)) {
			snprintf(name, sizeof(name), "%s/%s/", pmu, event);
			ret = visit_event(l, pmu, name, terms);
		}
		free(events[i]);
	}
	if (nr >= 0)
		free(events);
	return ret;
}

int kb_events_list(const char *sysfs, kb_events_visit visit, void *context)
{
	struct lister l = { { .sysfs = sysfs ?: "/sys" }, visit, context };
	char path[PATH_MAX];
	struct dirent **pmus;
	int nr, ret = 0;

	for (size_t i = 0; i < ARRAY_SIZE(generic_events) && !ret; i++)
		ret = visit_event(&l, generic_events[i].type == PERF_TYPE_HARDWARE ? "hardware" :
				  "software", generic_events[i].name, generic_events[i].description);
	if (!ret)
		ret = list_caches(&l);
	snprintf(path, sizeof(path), "%s/bus/event_source/devices", l.parser.sysfs);
	nr = scandir(path, &pmus, NULL, alphasort);
	for (int i = 0; i < nr; i++) {
		if (!ret && *pmus[i]->d_name != '.')
			ret = list_pmu(&l, pmus[i]->d_name);
		free(pmus[i]);
	}
	if (nr >= 0)
		free(pmus);
	return ret;
}

int kb_event_probe(const struct kbarman_event *event)
{
	/* An event that can't count a process may still count a CPU. */
	static const struct { pid_t pid; int cpu; } where[] = { { 0, -1 }, { -1, 0 } };
	int error = -ENODEV;

	for (size_t i = 0; i < ARRAY_SIZE(where); i++) {
		for (int user_only = 0; user_only < 2; user_only++) {
			int fd = kb_perf_counter_open(event, &(struct kb_perf_place) {
				.pid = where[i].pid, .cpu = where[i].cpu,
				.user_only = user_only });

			if (fd >= 0) {
				close(fd);
				return 0;
			}
			if (error == -ENODEV || fd == -EACCES || fd == -EPERM)
				error = fd;
		}
	}
	return error;
}
