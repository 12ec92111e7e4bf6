// SPDX-License-Identifier: MIT
/*
 * kbarman annotate: writes marks from a shell. <kbarman/mark.h>, which programs use, ignores
 * errors; this verb reports each error in a message.
 */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kbarman/event.h>
#include <uapi/barman_v2.h>

#include "cli/base/cli.h"
#include "record/device/mark_device.h"

enum { OPTION_NAME = 256, OPTION_END, OPTION_COLOUR, OPTION_DELTA };

static const struct cli_option options[] = {
	{ 'b', "bookmark", NULL, "write a bookmark: it marks a moment and is on no lane" },
	{ 'n', "channel", "N", "put the annotation on lane N (default 0)" },
	{ OPTION_NAME, "name", "NAME", "also give the lane this name" },
	{ OPTION_END, "end", NULL, "end the annotation on the lane; takes no TEXT" },
	{ OPTION_COLOUR, "colour", "RRGGBB", "show the mark in this colour" },
	{ 'c', "counter", "[CHART:]NAME=VALUE",
	  "write VALUE of the counter NAME (default CHART: annotate)" },
	{ 'u', "units", "UNITS", "the units of VALUE" },
	{ OPTION_DELTA, "delta", NULL, "VALUE is an increase; without --delta it is a level" },
	{ 0 },
};

static const struct cli_usage usage = {
	.head =
	"usage: kbarman annotate [OPTIONS] TEXT\n"
	"       kbarman annotate [OPTIONS] -c NAME=VALUE\n"
	"\n"
	"Write an annotation, a bookmark or a counter value into the running recording. If TEXT\n"
	"is '-', each line of standard input is written as it arrives.\n"
	"\n",
	.options = options,
	.column = 27,
	.tail =
	"\n"
	"Exit status: 0 written; 2 not written, for example because nothing is recording.\n",
};

struct annotate {
	int fd;
	struct kbarman_mark mark;
	struct kbarman_mark_series series;
	const char *text, *lane;
	const char *counter;
	uint32_t colour;
	bool bookmark, end, delta;
};

static int check_text(const char *text)
{
	size_t length = strlen(text);

	if (length <= KBARMAN_MARK_TEXT_MAX)
		return 0;
	return cli_fail("the text has %zu bytes: shorten it to %d bytes at most", length,
			KBARMAN_MARK_TEXT_MAX);
}

static int open_device(struct annotate *x)
{
	x->fd = kb_mark_device_open();
	if (x->fd >= 0)
		return 0;
	if (x->fd == -ENOENT)
		return cli_fail("no " KBARMAN_DEVICE ": load the module ('insmod kbarman.ko' or "
				"'modprobe kbarman' as root)");
	if (x->fd == -EACCES)
		return cli_fail("you have no write permission for " KBARMAN_DEVICE ": run as root, "
				"or let root chmod it (this allows marks and nothing else)");
	return cli_fail(KBARMAN_DEVICE ": %s", strerror(-x->fd));
}

/* Without a recording the module drops marks silently. For this verb that is an error. */
static int check_recording(struct annotate *x)
{
	int recording = kb_mark_device_recording(x->fd);

	if (recording < 0)
		return cli_fail(KBARMAN_DEVICE ": can't find out whether a recording runs: %s; "
				"load the module of this tool's release", strerror(-recording));
	return recording ? 0 : cli_fail("no recording runs, so nothing was written: start 'kbarman "
					"record' or 'kbarman flight start' first");
}

static int write_mark(struct annotate *x, const char *text)
{
	int ret = kb_mark_device_write(x->fd, &x->mark, text);

	return ret ? cli_fail(KBARMAN_DEVICE " refused the mark: %s", strerror(-ret)) : 0;
}

/* ---- annotations ---- */

static int name_lane(struct annotate *x)
{
	struct annotate lane = { .fd = x->fd };

	if (!x->lane)
		return 0;
	lane.mark.type = KBARMAN_MARK_CHANNEL;
	lane.mark.channel = x->mark.channel;
	return write_mark(&lane, x->lane);
}

/* Writes a mark for each line of standard input. Cuts lines that are too long for a mark. */
static int write_lines(struct annotate *x)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t length;
	int ret = 0;

	while (!ret && (length = getline(&line, &room, stdin)) >= 0) {
		if (length && line[length - 1] == '\n')
			line[--length] = '\0';
		if (length > KBARMAN_MARK_TEXT_MAX)
			line[KBARMAN_MARK_TEXT_MAX] = '\0';
		/* An empty text would end the annotation on the lane. */
		if (*line)
			ret = write_mark(x, line);
	}
	if (!ret && ferror(stdin))
		ret = cli_fail("can't read standard input: %s", strerror(errno));
	free(line);
	return ret;
}

static int write_text(struct annotate *x)
{
	int ret = name_lane(x);

	if (ret)
		return ret;
	x->mark.type = x->bookmark ? KBARMAN_MARK_BOOKMARK : KBARMAN_MARK_STRING;
	x->mark.colour = x->colour;
	if (x->end)
		return write_mark(x, "");
	return strcmp(x->text, "-") ? write_mark(x, x->text) : write_lines(x);
}

/* ---- counters ---- */

static bool fits(char *to, size_t room, const char *from, size_t length)
{
	if (length >= room)
		return false;
	memcpy(to, from, length);
	return true;
}

/* [CHART:]NAME=VALUE */
static int parse_counter(struct annotate *x)
{
	struct kbarman_mark_series *series = &x->series;
	const char *equals = strrchr(x->counter, '='), *colon = strchr(x->counter, ':');
	const char *name = x->counter;
	char *end;

	if (!equals || equals[1] < '0' || equals[1] > '9')
		return cli_fail("-c %s: give a name and a whole number, as in frogs=5", x->counter);
	errno = 0;
	x->mark.value = strtoull(equals + 1, &end, 0);
	if (errno || *end)
		return cli_fail("-c %s: '%s' is not a whole number of at most 64 bits", x->counter,
				equals + 1);
	strcpy(series->chart, "annotate");
	if (colon && colon < equals) {
		memset(series->chart, 0, sizeof(series->chart));
		if (!fits(series->chart, sizeof(series->chart), name, (size_t)(colon - name)))
			return cli_fail("-c %s: the chart's name has more than %zu bytes",
					x->counter, sizeof(series->chart) - 1);
		name = colon + 1;
	}
	if (!fits(series->name, sizeof(series->name), name, (size_t)(equals - name)))
		return cli_fail("-c %s: the name has more than %zu bytes", x->counter,
				sizeof(series->name) - 1);
	if (!*series->name || !*series->chart)
		return cli_fail("-c %s: a name is empty", x->counter);
	return 0;
}

static int write_value(struct annotate *x)
{
	const double one = 1.0;
	int ret;

	x->series.colour = BM_SERIES_COLOUR_AUTOMATIC;
	memcpy(&x->series.multiplier, &one, sizeof(one));
	x->series.series_class = x->delta ? BM_SERIES_CLASS_INCIDENT : BM_SERIES_CLASS_ABSOLUTE;
	x->series.display = x->delta ? BM_SERIES_DISPLAY_ACCUMULATE : BM_SERIES_DISPLAY_AVERAGE;
	x->series.series_composition = BM_SERIES_OVERLAY;
	x->series.rendering_type = x->delta ? BM_RENDERING_BAR : BM_RENDERING_LINE;
	ret = kb_mark_device_series(x->fd, &x->series);
	if (ret == -ENOSPC)
		return cli_fail("the recording has no room for another counter: use fewer");
	if (ret)
		return cli_fail(KBARMAN_DEVICE " refused the counter: %s", strerror(-ret));
	x->mark.type = KBARMAN_MARK_COUNTER;
	x->mark.series = x->series.series;
	return write_mark(x, "");
}

/* ---- options ---- */

static int parse_colour(struct annotate *x, const char *text)
{
	if (strlen(text) != 6 || text[strspn(text, "0123456789abcdefABCDEF")])
		return cli_fail("--colour %s: give six hexadecimal digits, as in ff8000", text);
	x->colour = KB_ANNOTATION_RGB(strtoul(text, NULL, 16));
	return 0;
}

static int parse_channel(struct annotate *x, const char *text)
{
	char *end;

	errno = 0;
	x->mark.channel = (uint32_t)strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || errno || *end || strlen(text) > 9)
		return cli_fail("-n %s: not a number from 0 to 999999999", text);
	return 0;
}

static int parse_option(struct annotate *x, int option)
{
	switch (option) {
	case 'b':
		x->bookmark = true;
		return 0;
	case 'n':
		return parse_channel(x, optarg);
	case 'c':
		x->counter = optarg;
		return 0;
	case 'u':
		if (!fits(x->series.units, sizeof(x->series.units), optarg, strlen(optarg)))
			return cli_fail("-u %s: units have at most %zu bytes", optarg,
					sizeof(x->series.units) - 1);
		return 0;
	case OPTION_NAME:
		x->lane = optarg;
		return check_text(optarg);
	case OPTION_END:
		x->end = true;
		return 0;
	case OPTION_COLOUR:
		return parse_colour(x, optarg);
	case OPTION_DELTA:
		x->delta = true;
		return 0;
	}
	return cli_usage(false, &usage);
}

/* Checks the arguments after the options, and which options go together. */
static int check_words(struct annotate *x, int argc, char **argv)
{
	bool text = !x->counter && !x->end;

	if (text != (argc == 1))
		return cli_fail(text ? "give one TEXT: put several words into quotes" :
				       "-c and --end take no TEXT");
	if (x->counter && (x->bookmark || x->end || x->lane || x->mark.channel || x->colour))
		return cli_fail("-c takes no -b, -n, --name, --end and --colour: leave them out");
	if (!x->counter && (*x->series.units || x->delta))
		return cli_fail("-u and --delta need -c");
	if (x->bookmark && (x->end || x->lane || x->mark.channel))
		return cli_fail("-b takes no -n, --name and --end: a bookmark is on no lane");
	if (x->end && (x->colour || x->lane))
		return cli_fail("--end takes no --colour and no --name");
	if (!text)
		return x->counter ? parse_counter(x) : 0;
	x->text = argv[0];
	if (!*x->text)
		return cli_fail("the TEXT is empty: give a text, or --end to end the annotation");
	return check_text(x->text);
}

int cmd_annotate(int argc, char **argv)
{
	struct annotate x = { .fd = -1 };
	int option, ret;

	while ((option = cli_getopt(argc, argv, &usage)) != -1) {
		if (option == 'h')
			return cli_usage(true, &usage);
		ret = parse_option(&x, option);
		if (ret)
			return ret;
	}
	ret = check_words(&x, argc - optind, argv + optind);
	if (!ret)
		ret = open_device(&x);
	if (!ret)
		ret = check_recording(&x);
	if (!ret)
		ret = x.counter ? write_value(&x) : write_text(&x);
	if (x.fd >= 0)
		close(x.fd);
	return ret;
}
