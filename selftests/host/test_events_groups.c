// SPDX-License-Identifier: MIT
/* Modifiers and groups of events, and the text that is parsed to the same events again. */
#include <errno.h>
#include <linux/perf_event.h>

#include <kbarman/perf_events.h>

#include "../lib/sysfs.h"
#include "../lib/tap.h"

#define USER	(KB_PERF_NO_KERNEL | KB_PERF_NO_HV)
#define KERNEL	(KB_PERF_NO_USER | KB_PERF_NO_HV)
#define HV	(KB_PERF_NO_USER | KB_PERF_NO_KERNEL)
#define PRECISE(n)	((unsigned int)(n) << KB_PERF_PRECISE_SHIFT)
#define GROUP	KB_PERF_GROUP

static struct kb_perf_event events[KB_EVENTS_MAX];
static struct kb_error error;

static int parse(const char *list)
{
	memset(events, 0xaa, sizeof(events));
	memset(&error, 0, sizeof(error));
	return kb_events_parse(events, KB_EVENTS_MAX, list, sysfs, &error);
}

static bool is(unsigned int i, const char *name, unsigned int flags)
{
	bool good = !strcmp(events[i].name, name) && events[i].flags == flags;

	if (!good)
		tap_note("event %u: '%.64s' flags 0x%x, not '%s' 0x%x; %s", i, events[i].name,
			 events[i].flags, name, flags, error.text);
	return good;
}

static bool refused(const char *list, const char *says)
{
	int ret = parse(list);
	bool good = ret < 0 && strstr(error.text, says);

	if (!good)
		tap_note("'%s': %d: '%s' lacks '%s'", list, ret, error.text, says);
	return good;
}

static void modifiers(void)
{
	tap_ok(parse("cycles:u,cycles:k,cycles:h,cycles:uk,cycles:ukh") == 5 &&
	       is(0, "cycles:u", USER) && is(1, "cycles:k", KERNEL) && is(2, "cycles:h", HV) &&
	       is(3, "cycles:uk", KB_PERF_NO_HV) && is(4, "cycles:ukh", 0),
	       "u_k_and_h_count_there_and_not_elsewhere");
	tap_ok(parse("cycles:p,cycles:upp") == 2 && is(0, "cycles:p", PRECISE(1)) &&
	       is(1, "cycles:upp", USER | PRECISE(2)), "each_p_is_more_precise");
	tap_ok(parse("cpu/event=0x3c/u,cpu/slots/:k,cpu/cycles/") == 3 &&
	       is(0, "cpu/event=0x3c/u", USER) && is(1, "cpu/slots/:k", KERNEL) &&
	       is(2, "cpu/cycles/", 0) && events[2].type == PERF_TYPE_HARDWARE,
	       "terms_take_modifiers_as_well");
	tap_ok(parse("r1a:u,LLC-loads:k,sched:sched_wakeup:k,slots:u") == 4 &&
	       is(0, "r1a:u", USER) && is(1, "LLC-loads:k", KERNEL) &&
	       is(2, "sched:sched_wakeup:k", KERNEL) && events[2].config == 314 &&
	       is(3, "slots:u", USER), "every_kind_of_event_takes_modifiers");
	tap_ok(refused("cycles:x", "'x' are no modifiers") && refused("cycles:", "no modifiers") &&
	       refused("cycles:pppp", "no modifiers") && refused("cpu/slots/z", "no modifiers") &&
	       refused("sched:sched_wakeup:q", "no modifiers"), "other_letters_are_refused");
	tap_ok(parse("cycles:H,cycles:uH") == 2 && is(0, "cycles:H", 0) &&
	       is(1, "cycles:uH", USER),
	       "guests_are_left_out_with_h_and_without");
	tap_ok(refused("cycles:G", "record in the virtual machine") &&
	       refused("cycles:GH", "record in the virtual machine"), "guests_are_refused");
	tap_ok(refused("cycles:ppp", "at most 'pp'"), "a_pmu_says_how_precise_it_is");
}

static void groups(void)
{
	tap_ok(parse("{cycles,instructions}") == 2 && is(0, "cycles", 0) &&
	       is(1, "instructions", GROUP), "the_first_of_a_group_leads_it");
	tap_ok(parse("task-clock,{cycles,instructions,cache-misses},{branches,branch-misses},faults") == 7 &&
	       !events[0].flags && !events[1].flags && events[2].flags == GROUP &&
	       events[3].flags == GROUP && !events[4].flags && events[5].flags == GROUP &&
	       !events[6].flags, "groups_stand_between_others");
	tap_ok(parse("{cycles,instructions:k,cpu/slots/}:u") == 3 && is(0, "cycles:u", USER) &&
	       is(1, "instructions:uk", KB_PERF_NO_HV | GROUP) &&
	       is(2, "cpu/slots/u", USER | GROUP), "the_modifiers_of_a_group_are_those_of_each");
	tap_ok(parse("{cpu/event=1,umask=2/,cycles}") == 2 && events[0].config == 0x201,
	       "commas_of_terms_do_not_part_a_group");
	tap_ok(parse("{cycles}:p") == 1 && is(0, "cycles:p", PRECISE(1)), "a_group_may_be_alone");
	tap_ok(refused("{cycles", "'{cycles': this group is not closed") && refused("{cycles,{faults}}", "not closed") &&
	       refused("{}", "no name") && refused("{cycles,}", "no name") &&
	       refused("cycles}", "brace") && refused("cycles{faults}", "brace") &&
	       refused("{cycles}u", "behind a group") && refused("{cycles}:x", "no modifiers") &&
	       refused("{cycles}{faults}", "brace"), "braces_pair");
}

/* Parse @list, make text of it and parse that. */
static bool survives(const char *list)
{
	struct kb_perf_event first[KB_EVENTS_MAX];
	int nr = parse(list), again;
	char *text;
	bool good;

	if (nr < 0) {
		tap_note("'%s': %s", list, error.text);
		return false;
	}
	memcpy(first, events, sizeof(first));
	text = kb_events_text(first, (unsigned int)nr, sysfs);
	again = parse(text ?: "");
	good = again == nr && !memcmp(first, events, (size_t)nr * sizeof(first[0]));
	if (!good)
		tap_note("'%s' became '%s': %d of %d", list, text, again, nr);
	free(text);
	return good;
}

static const char *const words[] = {
	"cycles", "instructions", "task-clock", "LLC-load-misses", "r1a", "r3c", "slots", "cpu/slots/",
	"cpu/event=0x3c,umask=0x1/", "cpu/event=3,offcore_rsp=0x77,name=mine/", "cpu/r12/",
	"uncore/event=9/", "uncore/event=9,name=}x{/", "cpu/cycles/", "cpu/cycles,name=c/",
	"sched:sched_wakeup", "cpu/LLC-loads,name=l/",
};
static const char *const letters[] = { "", "", "u", "k", "h", "uk", "ukh", "p", "kpp" };

static unsigned int chosen(unsigned int *state, unsigned int below)
{
	*state = *state * 1103515245 + 12345;
	return (*state >> 16) % below;
}

static void put_event(char *list, unsigned int *state)
{
	const char *word = words[chosen(state, sizeof(words) / sizeof(words[0]))];
	const char *behind = letters[chosen(state, sizeof(letters) / sizeof(letters[0]))];

	sprintf(list + strlen(list), "%s%s%s", word, *behind && !strchr(word, '/') ? ":" : "",
		behind);
}

static void random_list(char *list, unsigned int *state)
{
	*list = '\0';
	for (unsigned int items = 1 + chosen(state, 4); items; items--) {
		unsigned int group = chosen(state, 2) * (1 + chosen(state, 4));

		strcat(list, group ? "{" : "");
		for (unsigned int i = 0; i < (group ?: 1); i++) {
			strcat(list, i ? "," : "");
			put_event(list, state);
		}
		strcat(list, group ? "}" : "");
		if (group && chosen(state, 2))
			strcat(list, chosen(state, 2) ? ":u" : ":k");
		strcat(list, items > 1 ? "," : "");
	}
}

static void texts(void)
{
	char list[4096];
	bool good = true;

	for (unsigned int i = 0; i < 2000 && good; i++) {
		unsigned int state = i;

		random_list(list, &state);
		good = survives(list);
	}
	tap_ok(good, "the_text_of_events_is_parsed_to_the_same_events");
}

int main(void)
{
	int ret;

	sysfs_begin();
	sysfs_plain();
	modifiers();
	groups();
	texts();
	ret = tap_done();
	return sysfs_end() ? 1 : ret;
}
