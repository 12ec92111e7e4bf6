// SPDX-License-Identifier: MIT
/*
 * Lists of events to type and config of perf_event_open(): what perf(1) takes behind -e. The
 * generic names are those of perf. All other events of a PMU come from sysfs, tracepoints from
 * tracefs.
 *
 *	LIST	ITEM[,ITEM]...
 *	ITEM	EVENT, or {EVENT[,EVENT]...}[:MODIFIERS]
 *	EVENT	NAME[:MODIFIERS], or PMU/TERM[,TERM].../[MODIFIERS]
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kbarman/perf_events.h>

#include "record/perf/modifiers.h"
#include "record/perf/names.h"
#include "record/perf/parse.h"
#include "record/perf/pmus.h"
#include "record/perf/probe.h"
#include "record/perf/terms.h"

#define NAME_BYTES	sizeof(((struct kb_perf_event *)0)->name)

struct parser {
	struct kb_term_parser terms;
	const struct kb_events_how *how;
	struct kb_cpu_pmus pmus;
	struct kb_perf_event *events;
	unsigned int max, nr;
};

/* An event as it was typed. */
struct member {
	struct kb_perf_event event;
	char bare[NAME_BYTES];		/* the name of an event that any CPU PMU may have; "": it is
					 * of one PMU or of none */
	size_t stem;			/* bytes of the name in front of modifiers */
	bool of_sysfs;			/* such an event is in sysfs */
	bool settled;			/* a kind of cores counts it as its own event */
	int kind;			/* the kind of cores that has it: index of the PMU; -1: none */
};

static int fail(const struct parser *p, int code, const char *why)
{
	return kb_terms_fail(&p->terms, code, why);
}

static int out_of_memory(const struct parser *p)
{
	return kb_error_set(p->terms.err, -ENOMEM, KB_NO_OFFSET, "out of memory");
}

static bool find_raw(struct kb_perf_event *event, const char *name)
{
	uint64_t config;

	/* strtoull() itself would take the x of r0x12 */
	if (name[0] != 'r' || name[1 + strspn(name + 1, "0123456789abcdefABCDEF")] ||
	    !kb_pmu_number(name + 1, 16, &config))
		return false;
	event->type = PERF_TYPE_RAW;
	event->config = config;
	return true;
}

static int set_name(const struct parser *p, struct kb_perf_event *event, const char *name)
{
	size_t length = strlen(name);

	if (!length || length >= NAME_BYTES)
		return fail(p, -EINVAL, "the name must have 1 to 63 bytes; give another by name=");
	memset(event->name, 0, NAME_BYTES);
	memcpy(event->name, name, length);
	return 0;
}

static int set_modifiers(const struct parser *p, const char *text, __u32 *flags)
{
	char why[160];

	if (kb_modifiers_apply(text, flags))
		return 0;
	if (strchr(text, 'G'))
		return fail(p, -EINVAL, "what guests do can't be counted from outside: record in "
			    "the virtual machine, without 'G'");
	snprintf(why, sizeof(why),
		 "'%.20s' are no modifiers: u counts in user space, k in the kernel, h in the "
		 "hypervisor, p, pp and ppp sample precisely", text);
	return fail(p, -EINVAL, why);
}

/* ---- PMU/TERMS/ ---- */

/* The error for an unknown PMU: lists the PMUs that exist. */
static int no_such_pmu(const struct parser *p)
{
	char path[PATH_MAX], why[192] = "no such PMU; there are";
	struct dirent **pmus;
	size_t used = strlen(why);
	int nr;

	snprintf(path, sizeof(path), "%s/bus/event_source/devices", p->terms.sysfs);
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

/*
 * Make @event the generic event @name of one PMU. KB_NO_SUCH_TERM: that name is no generic one, or
 * neither the kernel nor sysfs has a way to count it on this kind of cores only.
 */
static int set_generic(const struct parser *p, struct kb_perf_event *event,
		       const struct kb_cpu_pmu *pmu, const char *name)
{
	struct kb_perf_event generic = *event;
	int ret = KB_NO_SUCH_TERM;

	if (!kb_perf_name_find(&generic, name) || generic.type == PERF_TYPE_SOFTWARE)
		return KB_NO_SUCH_TERM;
	if (p->pmus.nr_kinds < 2) {
		*event = generic;
		return 0;
	}
	if (!p->how->takes_type || p->how->takes_type(pmu->type)) {
		*event = generic;
		event->config |= (uint64_t)pmu->type << PERF_PMU_TYPE_SHIFT;
		return 0;
	}
	generic = *event;
	generic.type = pmu->type;
	generic.config = 0;
	for (unsigned int i = 0; i < 2 && ret == KB_NO_SUCH_TERM; i++) {
		const char *in_sysfs = kb_perf_name_in_sysfs(name, i);

		if (in_sysfs)
			ret = kb_terms_alias(&p->terms, &generic, pmu->name, in_sysfs);
	}
	if (!ret)
		*event = generic;
	return ret;
}

/* A term without a value: an event of the PMU, a field, a raw number or a generic event. */
static int apply_word(const struct parser *p, struct kb_perf_event *event, const char *pmu,
		      char *term)
{
	const struct kb_cpu_pmu *cpu_pmu = kb_cpu_pmus_find(&p->pmus, event->type);
	struct kb_perf_event raw;
	int ret;

	ret = kb_terms_alias(&p->terms, event, pmu, term);
	if (ret == KB_NO_SUCH_TERM)
		ret = kb_terms_field(&p->terms, event, pmu, term);
	if (ret == KB_NO_SUCH_TERM && find_raw(&raw, term)) {
		event->config = raw.config;
		ret = 0;
	}
	if (ret == KB_NO_SUCH_TERM && cpu_pmu)
		ret = set_generic(p, event, cpu_pmu, term);
	return ret;
}

/* @slash is the first one */
static int parse_pmu(const struct parser *p, struct member *member, char *text, char *slash)
{
	struct kb_perf_event *event = &member->event;
	char *terms = slash + 1, *end = strchr(terms, '/');
	unsigned int nr = 0;
	const char *name = NULL, *pmu = text;
	const struct kb_cpu_pmu *kind;
	char *term, *rest;
	int ret = 0;

	*slash = '\0';
	if (!end)
		return fail(p, -EINVAL, "the closing '/' is missing: write it as "
					"armv8_pmuv3_0/event=0x11/");
	*end++ = '\0';
	kind = kb_cpu_pmus_kind(&p->pmus, text);
	if (!kb_pmu_type(p->terms.sysfs, pmu, &event->type)) {
		if (!kind)
			return no_such_pmu(p);
		pmu = kind->name;
		event->type = kind->type;
	}
	for (term = strtok_r(terms, ",", &rest); term && !ret; term = strtok_r(NULL, ",", &rest)) {
		char why[160];

		if (!strncmp(term, "name=", 5)) {
			name = term + 5;
			continue;
		}
		nr++;
		ret = strchr(term, '=') ? kb_terms_field(&p->terms, event, pmu, term) :
		      apply_word(p, event, pmu, term);
		if (ret == KB_NO_SUCH_TERM) {
			snprintf(why, sizeof(why),
				 "the PMU has no '%.40s': see its events and format folders in "
				 "/sys/bus/event_source/devices", term);
			ret = fail(p, -ENOENT, why);
		}
	}
	if (!ret && nr > 1 &&
	    (event->type == PERF_TYPE_HARDWARE || event->type == PERF_TYPE_HW_CACHE))
		ret = fail(p, -EINVAL, "nothing but name= may stand beside a generic event");
	if (!ret && *end)
		ret = set_modifiers(p, *end == ':' ? end + 1 : end, &event->flags);
	member->stem = name ? strlen(name) : (size_t)(end - text);
	return ret ?: set_name(p, event, name ?: p->terms.element);
}

/* ---- NAME ---- */

/* Find an event that a CPU PMU lists under this name; KB_NO_SUCH_TERM if there is none. */
static int find_alias(const struct parser *p, struct kb_perf_event *event, const char *name)
{
	int ret = KB_NO_SUCH_TERM;

	for (unsigned int i = 0; i < p->pmus.nr && ret == KB_NO_SUCH_TERM; i++) {
		ret = kb_terms_alias(&p->terms, event, p->pmus.pmus[i].name, name);
		event->type = p->pmus.pmus[i].type;
	}
	return ret;
}

/* An event that needs no other word. KB_NO_SUCH_TERM: there is none of this name. */
static int find_name(const struct parser *p, struct member *member, const char *name)
{
	int ret = 0;

	if (!kb_perf_name_find(&member->event, name) && !find_raw(&member->event, name)) {
		ret = find_alias(p, &member->event, name);
		member->of_sysfs = !ret;
	}
	if (!ret && member->event.type != PERF_TYPE_SOFTWARE &&
	    (!member->of_sysfs || kb_cpu_pmus_kind_of(&p->pmus, &member->event) >= 0))
		snprintf(member->bare, sizeof(member->bare), "%s", name);
	return ret;
}

/* The path of tracefs below sysfs; NULL if it is not there. */
static const char *find_tracefs(const struct parser *p)
{
	static const char *const places[] = { "kernel/tracing", "kernel/debug/tracing" };
	char path[PATH_MAX];

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s/events", p->terms.sysfs, places[i]);
		if (!access(path, F_OK))
			return places[i];
	}
	return NULL;
}

/* SYSTEM:NAME: a tracepoint of the kernel. Its number is read from tracefs. */
static int parse_tracepoint(const struct parser *p, struct kb_perf_event *event,
			    const char *system, const char *name)
{
	const char *tracefs = find_tracefs(p);
	char path[PATH_MAX], line[32] = "";
	uint64_t id;
	int fd = -1;

	if (!tracefs)
		return fail(p, -ENOENT,
			    "tracepoints can't be looked up: as root, 'mount -t tracefs nodev "
			    "/sys/kernel/tracing'");
	errno = ENOENT;
	if (kb_pmu_is_file_name(system) && kb_pmu_is_file_name(name) &&
	    snprintf(path, sizeof(path), "%s/%s/events/%s/%s/id", p->terms.sysfs, tracefs, system,
		     name) < (int)sizeof(path))
		fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && errno == EACCES)
		return fail(p, -EACCES, "only root may read tracefs: run as root");
	if (fd < 0)
		return fail(p, -ENOENT,
			    "no such event and no such tracepoint: 'kbarman list' shows events, "
			    "/sys/kernel/tracing/events has tracepoints");
	if (read(fd, line, sizeof(line) - 1) > 0)
		line[strcspn(line, "\n")] = '\0';
	close(fd);
	if (!kb_pmu_number(line, 0, &id))
		return fail(p, -EINVAL, "tracefs gives no number for it");
	event->type = PERF_TYPE_TRACEPOINT;
	event->config = id;
	return 0;
}

/* NAME[:MODIFIERS] or SYSTEM:NAME[:MODIFIERS] */
static int parse_name(const struct parser *p, struct member *member, char *text)
{
	char *colon = strchr(text, ':'), *modifiers = colon;
	int ret;

	if (colon)
		*colon++ = '\0';
	ret = find_name(p, member, text);
	if (ret == KB_NO_SUCH_TERM) {
		if (!colon)
			return fail(p, -ENOENT,
				    "no such event: generic names are perf's (cycles, cpu-clock, "
				    "cache-misses, …); see also the events of the CPU's PMU in "
				    "/sys/bus/event_source/devices/*/events");
		modifiers = strchr(colon, ':');
		if (modifiers)
			*modifiers = '\0';
		ret = parse_tracepoint(p, &member->event, text, colon);
	}
	if (!ret && modifiers)
		ret = set_modifiers(p, modifiers + 1, &member->event.flags);
	member->stem = modifiers ? (size_t)(modifiers - text) : strlen(p->terms.element);
	return ret ?: set_name(p, &member->event, p->terms.element);
}

static int parse_element(struct parser *p, struct member *member, char *text)
{
	char *slash = strchr(text, '/'), *element;
	int ret;

	memset(member, 0, sizeof(*member));
	if (!*text)
		return kb_error_set(p->terms.err, -EINVAL, KB_NO_OFFSET,
				    "an event has no name: write a list as cycles,instructions");
	element = strdup(text);
	if (!element)
		return out_of_memory(p);
	p->terms.element = element;
	ret = slash ? parse_pmu(p, member, text, slash) : parse_name(p, member, text);
	member->kind = *member->bare ? -1 : kb_cpu_pmus_kind_of(&p->pmus, &member->event);
	free(element);
	return ret;
}

/* ---- what the list becomes ---- */

/* A PMU may tell how precisely it samples. */
static int check_precise(const struct parser *p, const struct kb_perf_event *event)
{
	uint64_t most, precise = event->flags >> KB_PERF_PRECISE_SHIFT & 3;
	const struct kb_cpu_pmu *pmu = kb_cpu_pmus_find(&p->pmus, event->type);
	char line[KB_SYSFS_LINE], why[128];
	int kind = kb_cpu_pmus_kind_of(&p->pmus, event);

	if (kind >= 0)
		pmu = &p->pmus.pmus[kind];
	else if (!pmu && event->type <= PERF_TYPE_RAW && event->type != PERF_TYPE_SOFTWARE && p->pmus.nr)
		pmu = &p->pmus.pmus[0];
	if (!precise || !pmu ||
	    kb_pmu_read(p->terms.sysfs, pmu->name, "caps", "max_precise", line) ||
	    !kb_pmu_number(line, 10, &most) || precise <= most)
		return 0;
	if (most)
		snprintf(why, sizeof(why), "this PMU samples less precisely: at most '%.*s'",
			 (int)most, "ppp");
	else
		snprintf(why, sizeof(why), "this PMU can't sample precisely: leave out the 'p'");
	return fail(p, -EINVAL, why);
}

static int add_event(struct parser *p, const struct kb_perf_event *event, bool beside)
{
	if (p->nr == p->max)
		return kb_error_set(p->terms.err, -E2BIG, KB_NO_OFFSET,
				    "too many events: at most %u can be counted at once", p->max);
	p->events[p->nr] = *event;
	if (beside)
		p->events[p->nr].flags |= KB_PERF_GROUP;
	p->terms.element = event->name;
	return check_precise(p, &p->events[p->nr++]);
}

/* Make @event what @member is on one kind of cores. KB_NO_SUCH_TERM: these don't have it. */
static int settle(struct parser *p, const struct member *member, const struct kb_cpu_pmu *pmu,
		  struct kb_perf_event *event)
{
	char name[2 * NAME_BYTES + KB_MODIFIERS_MAX], modifiers[KB_MODIFIERS_MAX];
	int ret = 0;

	*event = member->event;
	p->terms.element = member->event.name;
	if (member->of_sysfs) {
		event->config = event->config1 = event->config2 = 0;
		event->type = pmu->type;
		ret = kb_terms_alias(&p->terms, event, pmu->name, member->bare);
	} else if (event->type == PERF_TYPE_RAW) {
		event->type = pmu->type;
	} else {
		ret = set_generic(p, event, pmu, member->bare);
	}
	if (ret)
		return ret;
	snprintf(name, sizeof(name), "%s/%s/%s", pmu->name, member->bare,
		 kb_modifiers_text(event->flags, modifiers));
	return set_name(p, event, name);
}

/* Add what each kind of cores has of a group, as a group of its own. */
static int add_by_kind(struct parser *p, struct member *members, unsigned int nr)
{
	for (unsigned int kind = 0; kind < p->pmus.nr_kinds; kind++) {
		bool beside = false;

		for (unsigned int i = 0; i < nr; i++) {
			struct kb_perf_event event = members[i].event;
			int ret = members[i].kind == (int)kind ? 0 : KB_NO_SUCH_TERM;

			if (*members[i].bare && p->how->each_pmu)
				ret = settle(p, &members[i], &p->pmus.pmus[kind], &event);
			members[i].settled |= *members[i].bare && p->how->each_pmu && !ret;
			/* what is of no kind, and what no kind of cores can count alone */
			if (ret == KB_NO_SUCH_TERM && members[i].kind < 0 &&
			    (!*members[i].bare || !p->how->each_pmu ||
			     (kind + 1 == p->pmus.nr_kinds && !members[i].of_sysfs &&
			      !members[i].settled)))
				ret = 0;
			if (ret == KB_NO_SUCH_TERM)
				continue;
			if (!ret)
				ret = add_event(p, &event, beside);
			if (ret)
				return ret;
			beside = true;
			/* once */
			if (members[i].kind < 0 && !memcmp(&event, &members[i].event, sizeof(event)))
				members[i].kind = INT_MAX;
		}
	}
	return 0;
}

static int add_members(struct parser *p, struct member *members, unsigned int nr)
{
	bool by_kind = false;

	for (unsigned int i = 0; i < nr; i++)
		by_kind |= (*members[i].bare && p->how->each_pmu) ||
			   members[i].kind != members[0].kind;
	if (p->pmus.nr_kinds > 1 && by_kind)
		return add_by_kind(p, members, nr);
	for (unsigned int i = 0; i < nr; i++) {
		int ret = add_event(p, &members[i].event, i > 0);

		if (ret)
			return ret;
	}
	return 0;
}

/* ---- the list ---- */

/* Where the element at @at ends: at a comma, a brace or the end. Terms may have both. */
static char *element_end(char *at)
{
	bool in_terms = false;

	for (; *at && (in_terms || !strchr(",{}", *at)); at++)
		if (*at == '/')
			in_terms = !in_terms;
	return at;
}

/* The modifiers behind a group are those of each event, and become part of its name. */
static int modify_group(struct parser *p, struct member *members, unsigned int nr,
			const char *modifiers)
{
	for (unsigned int i = 0; i < nr; i++) {
		struct kb_perf_event *event = &members[i].event;
		char name[NAME_BYTES + KB_MODIFIERS_MAX], text[KB_MODIFIERS_MAX];
		size_t stem = members[i].stem;
		int ret;

		p->terms.element = event->name;
		ret = set_modifiers(p, modifiers, &event->flags);
		if (ret)
			return ret;
		kb_modifiers_text(event->flags, text);
		snprintf(name, sizeof(name), "%.*s%s%s", (int)stem, event->name,
			 *text && event->name[stem - 1] != '/' ? ":" : "", text);
		ret = set_name(p, event, name);
		if (ret)
			return ret;
	}
	return 0;
}

/* {EVENT,…}[:MODIFIERS]; moves @at behind it. */
static int parse_group(struct parser *p, char **at)
{
	struct member members[KB_EVENTS_MAX];
	unsigned int nr = 0;
	char *text = *at + 1, *end, last;
	int ret = 0;

	do {
		end = element_end(text);
		last = *end;
		*end = '\0';
		if (last == '{' || !last)
			return kb_error_set(p->terms.err, -EINVAL, KB_NO_OFFSET,
					    "'%.40s': this group is not closed: write it as "
					    "'{cycles,instructions}:u'", *at);
		if (nr == KB_EVENTS_MAX)
			return kb_error_set(p->terms.err, -E2BIG, KB_NO_OFFSET,
					    "too many events in a group: at most %u", KB_EVENTS_MAX);
		ret = parse_element(p, &members[nr], text);
		if (ret)
			return ret;
		nr++;
		text = end + 1;
	} while (last != '}');
	end = element_end(text);
	last = *end;
	*end = '\0';
	p->terms.element = text;
	if (*text && *text != ':')
		ret = fail(p, -EINVAL, "this stands behind a group: write {cycles,instructions}:u");
	else if (*text)
		ret = modify_group(p, members, nr, text + 1);
	*end = last;
	*at = end;
	if (!ret)
		ret = add_members(p, members, nr);
	p->terms.element = "";		/* it stood in a member */
	return ret;
}

static int parse_item(struct parser *p, char **at)
{
	struct member member;
	char *end, last;
	int ret;

	if (**at == '{')
		return parse_group(p, at);
	end = element_end(*at);
	last = *end;
	*end = '\0';
	ret = parse_element(p, &member, *at);
	*end = last;
	*at = end;
	if (!ret)
		ret = add_members(p, &member, 1);
	p->terms.element = "";
	return ret;
}

int kb_events_parse_how(struct kb_perf_event *events, unsigned int max, const char *list,
			const struct kb_events_how *how, struct kb_error *err)
{
	struct parser p = {
		.terms = { .sysfs = how->sysfs, .err = err },
		.how = how, .events = events, .max = max,
	};
	char *copy = strdup(list), *at = copy;
	int ret;

	if (!copy)
		return out_of_memory(&p);
	kb_cpu_pmus_read(how->sysfs, &p.pmus);
	do {
		ret = parse_item(&p, &at);
		if (!ret && *at && *at != ',')
			ret = kb_error_set(err, -EINVAL, KB_NO_OFFSET,
					   "'%.40s': a brace is in the wrong place: write a group as "
					   "'{cycles,instructions}:u'", at);
	} while (!ret && *at++);
	free(copy);
	return ret ?: (int)p.nr;
}

int kb_events_parse(struct kb_perf_event *events, unsigned int max, const char *list,
		    const char *sysfs, struct kb_error *err)
{
	const struct kb_events_how how = {
		.sysfs = sysfs ?: "/sys",
		.takes_type = sysfs ? NULL : kb_perf_takes_type,
	};

	return kb_events_parse_how(events, max, list, &how, err);
}

int kb_events_parse_each_pmu(struct kb_perf_event *events, unsigned int max, const char *list,
			     const char *sysfs, struct kb_error *err)
{
	const struct kb_events_how how = {
		.sysfs = sysfs ?: "/sys",
		.each_pmu = true,
		.takes_type = sysfs ? NULL : kb_perf_takes_type,
	};

	return kb_events_parse_how(events, max, list, &how, err);
}
