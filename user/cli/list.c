// SPDX-License-Identifier: MIT
/*
 * kbarman list: lists the events that -e of record and stat takes on this machine. The verb asks
 * the kernel about each event. It leaves out refused events, or prints them with the reason. With
 * --metrics it lists what -M of stat and report takes, with --sessions who records.
 */
#include <errno.h>
#include <fnmatch.h>
#include <string.h>

#include <kbarman/metrics.h>
#include <kbarman/perf_events.h>

#include "cli/base/cli.h"
#include "cli/base/fact_lines.h"
#include "cli/session/sessions.h"
#include "record/perf/probe.h"

enum { OPTION_ALL = 256, OPTION_SESSIONS, OPTION_METRICS };

static const struct cli_option options[] = {
	{ OPTION_ALL, "all", NULL, "show all events, and say which this machine can't count, and why" },
	{ OPTION_METRICS, "metrics", NULL, "show metrics, which -M takes, instead of events" },
	{ OPTION_SESSIONS, "sessions", NULL,
	  "show who records on this machine now, instead of events" },
	{ 'j', "json", NULL, "print JSON, one object per line" },
	{ 0 },
};

static const struct cli_usage usage = {
	.head =
	"usage: kbarman list [OPTIONS] [PATTERN...]\n"
	"       kbarman list --metrics [OPTIONS] [PATTERN...]\n"
	"       kbarman list --sessions [-j]\n"
	"\n"
	"List the events that this machine can count, by the names that -e takes. With PATTERNs,\n"
	"list only events whose name or group matches one of them, as in: list 'cache*' software\n"
	"\n",
	.options = options,
	.column = 15,
};

struct listing {
	struct kb_json json;
	char **patterns;
	bool all, people;
	char group[64];			/* the group of the last line */
	unsigned int nr, hidden;
};

static bool is_wanted(const struct listing *list, const char *name, const char *group)
{
	if (!*list->patterns)
		return true;
	for (char **pattern = list->patterns; *pattern; pattern++)
		if (!fnmatch(*pattern, name, 0) || !fnmatch(*pattern, group, 0))
			return true;
	return false;
}

static const char *refusal(int error)
{
	switch (error) {
	case 0:
		return NULL;
	case -EACCES:
	case -EPERM:
		return "not allowed: run as root";
	case -ENOENT:
	case -ENODEV:
	case -EOPNOTSUPP:
		return "this machine has no such event";
	default:
		return strerror(-error);
	}
}

static int show(void *context, const struct kb_event_listing *event)
{
	struct listing *list = context;
	const char *why;
	int error;

	if (!is_wanted(list, event->event.name, event->group))
		return 0;
	error = kb_event_probe(&event->event);
	why = error == -EINVAL && kb_event_needs_slots(&event->event) ?
	      "only beside slots, which lead the group: {slots,…}" : refusal(error);
	/* An event that only root may count can be counted. */
	if (why && error != -EACCES && error != -EPERM && !list->all) {
		list->hidden++;
		return 0;
	}
	list->nr++;
	if (!list->people) {
		kb_json_begin(&list->json, "event");
		kb_json_string(&list->json, "name", event->event.name);
		kb_json_string(&list->json, "group", event->group);
		kb_json_string(&list->json, "description", event->description);
		kb_json_u64(&list->json, "type", event->event.type);
		kb_json_u64(&list->json, "config", event->event.config);
		kb_json_string(&list->json, "refused", why);
		kb_json_end(&list->json);
		return 0;
	}
	if (strcmp(list->group, event->group))
		kb_out_printf(list->json.out, "%s%s:\n", *list->group ? "\n" : "", event->group);
	snprintf(list->group, sizeof(list->group), "%s", event->group);
	kb_out_printf(list->json.out, "  %-32s %s%s%s%s\n", event->event.name, event->description,
		      why ? " (" : "", why ? why : "", why ? ")" : "");
	return 0;
}

/* Why this machine can't count what a metric needs; NULL: it can. */
static const char *metric_refusal(const struct kb_metric *metric)
{
	const char *events[KB_METRIC_EVENTS_MAX];
	struct kb_perf_event event, slots;
	char text[512];
	unsigned int nr = kb_metric_events(metric, events, text, sizeof(text));

	for (unsigned int i = 0; i < nr; i++) {
		const char *why;

		if (kb_events_parse(&event, 1, events[i], NULL, NULL) != 1)
			return "this machine has no such event";
		why = refusal(!kb_event_needs_slots(&event) ||
			      kb_events_parse(&slots, 1, "slots", NULL, NULL) != 1 ?
			      kb_event_probe(&event) : kb_event_probe_beside(&event, &slots));
		if (why)
			return why;
	}
	return NULL;
}

static void show_metric(struct listing *list, const struct kb_metric *metric)
{
	struct kb_json *json = &list->json;
	const char *why;

	if (!is_wanted(list, metric->name, metric->group))
		return;
	why = metric_refusal(metric);
	if (why && strncmp(why, "not allowed", 11) && !list->all) {
		list->hidden++;
		return;
	}
	list->nr++;
	if (list->people) {
		kb_out_printf(json->out, "  %-20s %s%s%s%s\n  %-20s = %s  [%s]\n", metric->name,
			      metric->what, why ? " (" : "", why ? why : "", why ? ")" : "",
			      metric->group, metric->formula, metric->source);
		return;
	}
	kb_json_begin(json, "metric_fact");
	kb_json_string(json, "name", metric->name);
	kb_json_string(json, "group", *metric->group ? metric->group : NULL);
	kb_json_string(json, "description", metric->what);
	kb_json_string(json, "unit", metric->unit);
	kb_json_string(json, "formula", metric->formula);
	kb_json_string(json, "source", metric->source);
	kb_json_string(json, "refused", why);
	kb_json_end(json);
}

static void show_metrics(struct listing *list)
{
	if (list->people)
		kb_out_printf(list->json.out, "  METRIC               what it says\n"
			      "  GROUP                = FORMULA  [who published it]\n\n");
	for (const struct kb_metric *metric = kb_metrics_all(); metric->name; metric++)
		show_metric(list, metric);
}

int cmd_list(int argc, char **argv)
{
	struct listing list = { .people = true };
	bool sessions = false, metrics = false;
	const char *what;
	int option;

	while ((option = cli_getopt(argc, argv, &usage)) != -1) {
		switch (option) {
		case OPTION_ALL:
			list.all = true;
			break;
		case OPTION_METRICS:
			metrics = true;
			break;
		case OPTION_SESSIONS:
			sessions = true;
			break;
		case 'j':
			list.people = false;
			break;
		default:
			return cli_usage(option == 'h', &usage);
		}
	}
	list.patterns = argv + optind;
	if (sessions && *list.patterns) {
		cli_warn("leave out '%s': --sessions lists all sessions", *list.patterns);
		return cli_usage(false, &usage);
	}
	if (sessions)
		return sessions_print(list.people);
	if (lines_open(&list.json, list.people))
		return CLI_IMPOSSIBLE;
	what = metrics ? "metric" : "event";
	if (metrics)
		show_metrics(&list);
	else
		kb_events_list(NULL, show, &list);
	if (lines_close(&list.json, CLI_OK))
		return CLI_IMPOSSIBLE;
	if (!list.nr && *list.patterns)
		return cli_fail("no %s matches%s", what, list.hidden ? " that this machine can count "
				"(see --all)" : "");
	if (list.hidden)
		cli_note("%u %ss that this machine can't count are left out (--all shows them)",
			 list.hidden, what);
	return CLI_OK;
}
