// SPDX-License-Identifier: MIT
/*
 * See poll.h. A source is one file or several files that are read together at one rate.
 * Each source has a timer; all timers are in one epoll. Each kind of source has a function that
 * writes the values.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "cli/base/cli.h"
#include "cli/record/poll.h"

#define SOURCES_MAX	64
#define DEFAULT_HZ	10
#define HZ_MAX		1000
#define STATES_MAX	16		/* idle states of a CPU */
#define DIGITS_MAX	9		/* digits after the point of a number */
#define CPU_PATH	"/sys/devices/system/cpu/cpu%u/"

struct source;

/* A file and the series of its number. */
struct file {
	int fd;				/* -1: the file does not exist */
	unsigned int cpu;
	unsigned int series;		/* index into the source's series */
	uint64_t last;			/* last reading of a sum that only grows */
	bool has_last;
};

struct kind {
	const char *name;		/* name for --chart; NULL: --poll */
	int (*open)(struct source *source);
	int (*read)(struct source *source, struct kb_error *err);
};

struct source {
	const struct kind *kind;
	struct record_polls *polls;
	unsigned int hz;
	int timer;
	char *path;			/* --poll */
	struct kbarman_mark_series series[STATES_MAX];
	unsigned int nr_series;
	struct file *files;
	unsigned int nr_files;
	int digits;			/* --poll: digits after the point */
	uint64_t failed;
	int error;			/* errno of the last failure */
};

struct record_polls {
	int epoll;
	unsigned int nr_cpus;
	struct kb_recorder *recorder;
	struct source sources[SOURCES_MAX];
	unsigned int nr;
	char *text;			/* TEXT_BYTES for the text of a file */
};

#define TEXT_BYTES	(4U << 20)	/* /proc/interrupts of a machine with many CPUs */

/* ---- all sources ---- */

/* Reads the whole file as a string. NULL: the file can't be read. */
static char *read_text(struct source *source, int fd)
{
	char *text = source->polls->text;
	size_t used = 0;
	ssize_t n;

	do {
		n = pread(fd, text + used, TEXT_BYTES - 1 - used, (off_t)used);
		if (n > 0)
			used += (size_t)n;
	} while ((n > 0 && used < TEXT_BYTES - 1) || (n < 0 && errno == EINTR));
	if (n < 0 || !used) {
		source->failed++;
		source->error = n < 0 ? errno : ENODATA;
		return NULL;
	}
	text[used] = '\0';
	return text;
}

static int put(struct source *source, unsigned int series, unsigned int cpu, int64_t when,
	       uint64_t value, struct kb_error *err)
{
	return kb_recorder_value(source->polls->recorder, when, cpu, 0,
				 source->series[series].series, value, err);
}

/* Writes by how much a sum has grown since the last reading. The first reading is only stored. */
static int put_growth(struct source *source, struct file *file, int64_t when, uint64_t sum,
		      struct kb_error *err)
{
	uint64_t before = file->last;
	bool known = file->has_last && sum >= before;

	file->last = sum;
	file->has_last = true;
	return known ? put(source, file->series, file->cpu, when, sum - before, err) : 0;
}

static struct kbarman_mark_series *new_series(struct source *source, const char *chart,
					      const char *name, const char *units)
{
	struct kbarman_mark_series *series = &source->series[source->nr_series++];
	double one = 1.0;

	*series = (struct kbarman_mark_series){
		.colour = BM_SERIES_COLOUR_AUTOMATIC,
		.series_class = BM_SERIES_CLASS_ABSOLUTE,
		.display = BM_SERIES_DISPLAY_AVERAGE,
		.series_composition = BM_SERIES_OVERLAY,
		.rendering_type = BM_RENDERING_LINE,
	};
	memcpy(&series->multiplier, &one, sizeof(one));
	snprintf(series->chart, sizeof(series->chart), "%s", chart);
	snprintf(series->name, sizeof(series->name), "%s", name);
	snprintf(series->units, sizeof(series->units), "%s", units);
	return series;
}

static void set_multiplier(struct kbarman_mark_series *series, double multiplier)
{
	memcpy(&series->multiplier, &multiplier, sizeof(multiplier));
}

/* Adds a file to the source and opens it if it exists. NULL: out of memory. */
static struct file *add_file(struct source *source, const char *path, unsigned int cpu,
			     unsigned int series)
{
	struct file *files = realloc(source->files, (source->nr_files + 1) * sizeof(*files));

	if (!files)
		return NULL;
	source->files = files;
	files += source->nr_files++;
	*files = (struct file){ .fd = open(path, O_RDONLY | O_CLOEXEC), .cpu = cpu,
				.series = series };
	return files;
}

/* Adds the only file of a source, which must exist. */
static int add_only_file(struct source *source, const char *path)
{
	struct file *file = add_file(source, path, 0, 0);

	if (!file)
		return cli_fail("out of memory");
	return file->fd >= 0 ? 0 : cli_fail("can't read %s: %s", path, strerror(errno));
}

/* ---- --poll: a number in a file ---- */

/* The number at the beginning of @text, times 10^@digits. False: there is none. */
static bool parse_number(const char *text, int digits, uint64_t *value)
{
	bool negative = false, any = false;
	uint64_t sum = 0;

	text += strspn(text, " \t\n");
	if (*text == '-' || *text == '+')
		negative = *text++ == '-';
	for (; *text >= '0' && *text <= '9'; text++, any = true)
		sum = sum * 10 + (uint64_t)(*text - '0');
	if (*text == '.')
		text++;
	else
		text = "";
	for (int i = 0; i < digits; i++) {
		bool digit = *text >= '0' && *text <= '9';

		any |= digit;
		sum = sum * 10 + (digit ? (uint64_t)(*text++ - '0') : 0);
	}
	*value = negative ? -sum : sum;
	return any;
}

static int digits_behind_point(const char *text)
{
	const char *point = text + strcspn(text, ".\n");
	int digits = 0;

	if (*point == '.')
		digits = (int)strspn(point + 1, "0123456789");
	return digits < DIGITS_MAX ? digits : DIGITS_MAX;
}

static int open_file(struct source *source)
{
	double multiplier = 1;
	const char *text;
	uint64_t value;

	if (add_only_file(source, source->path))
		return CLI_IMPOSSIBLE;
	text = read_text(source, source->files->fd);
	if (!text)
		return cli_fail("can't read %s: %s", source->path, strerror(source->error));
	source->digits = digits_behind_point(text);
	if (!parse_number(text, source->digits, &value))
		return cli_fail("--poll: %s does not begin with a number", source->path);
	for (int i = 0; i < source->digits; i++)
		multiplier *= 10;
	set_multiplier(&source->series[0], 1 / multiplier);
	return 0;
}

static int read_file(struct source *source, struct kb_error *err)
{
	const char *text = read_text(source, source->files->fd);
	int64_t now = kb_clock_ns(CLOCK_MONOTONIC_RAW);
	uint64_t value;

	if (text && parse_number(text, source->digits, &value))
		return put(source, 0, 0, now, value, err);
	if (text) {
		source->failed++;
		source->error = EINVAL;
	}
	return 0;
}

/* ---- --chart ---- */

static int open_freq(struct source *source)
{
	struct kbarman_mark_series *series = new_series(source, "CPU frequency", "frequency", "Hz");
	bool any = false;

	series->chart_flags = BM_CHART_PER_CPU | BM_CHART_AVERAGE_CORES;
	set_multiplier(series, 1000);		/* the files have kHz */
	for (unsigned int cpu = 0; cpu < source->polls->nr_cpus; cpu++) {
		char path[128];
		struct file *file;

		snprintf(path, sizeof(path), CPU_PATH "cpufreq/scaling_cur_freq", cpu);
		file = add_file(source, path, cpu, 0);
		if (!file)
			return cli_fail("out of memory");
		any |= file->fd >= 0;
	}
	return any ? 0 : cli_fail("--chart freq: no CPU here has a frequency to read (there is no "
				  "cpufreq driver)");
}

/* Writes the number of each file. */
static int read_each(struct source *source, struct kb_error *err)
{
	int ret = 0;

	for (unsigned int i = 0; i < source->nr_files && !ret; i++) {
		const struct file *file = &source->files[i];
		const char *text = file->fd < 0 ? NULL : read_text(source, file->fd);
		int64_t now = kb_clock_ns(CLOCK_MONOTONIC_RAW);
		uint64_t value;

		if (text && parse_number(text, 0, &value))
			ret = put(source, file->series, file->cpu, now, value, err);
	}
	return ret;
}

/* The series of an idle state by name: CPUs of one machine may have different idle states. */
static int idle_series(struct source *source, const char *name)
{
	struct kbarman_mark_series *series;

	for (unsigned int i = 0; i < source->nr_series; i++) {
		if (!strcmp(source->series[i].name, name))
			return (int)i;
	}
	if (source->nr_series == STATES_MAX)
		return -1;
	series = new_series(source, "Idle states", name, "s");
	series->chart_flags = BM_CHART_PER_CPU;
	series->series_class = BM_SERIES_CLASS_DELTA;
	series->display = BM_SERIES_DISPLAY_ACCUMULATE;
	series->series_composition = BM_SERIES_STACKED;
	series->rendering_type = BM_RENDERING_FILLED;
	set_multiplier(series, 1e-6);		/* the files have us */
	return (int)source->nr_series - 1;
}

static int open_idle(struct source *source)
{
	for (unsigned int cpu = 0; cpu < source->polls->nr_cpus; cpu++) {
		for (unsigned int state = 0; state < STATES_MAX; state++) {
			char path[128], name[32] = "";
			int series;
			FILE *f;

			snprintf(path, sizeof(path), CPU_PATH "cpuidle/state%u/name", cpu, state);
			f = fopen(path, "re");
			if (!f)
				break;
			if (fgets(name, sizeof(name), f))
				name[strcspn(name, "\n")] = '\0';
			fclose(f);
			series = idle_series(source, *name ? name : "unnamed");
			snprintf(path, sizeof(path), CPU_PATH "cpuidle/state%u/time", cpu, state);
			if (series >= 0 && !add_file(source, path, cpu, (unsigned int)series))
				return cli_fail("out of memory");
		}
	}
	return source->nr_files ? 0 :
		cli_fail("--chart idle: no CPU here has idle states (there is no cpuidle driver); "
			 "leave out --chart idle, idling itself is recorded");
}

static int read_growths(struct source *source, struct kb_error *err)
{
	int ret = 0;

	for (unsigned int i = 0; i < source->nr_files && !ret; i++) {
		struct file *file = &source->files[i];
		const char *text = file->fd < 0 ? NULL : read_text(source, file->fd);
		int64_t now = kb_clock_ns(CLOCK_MONOTONIC_RAW);
		uint64_t sum;

		if (text && parse_number(text, 0, &sum))
			ret = put_growth(source, file, now, sum, err);
	}
	return ret;
}

static int open_runnable(struct source *source)
{
	new_series(source, "Runnable tasks", "runnable", "tasks");
	return add_only_file(source, "/proc/loadavg");
}

/* "0.00 0.01 0.05 2/345 678": the fourth field has the tasks, including the one that reads. */
static int read_runnable(struct source *source, struct kb_error *err)
{
	const char *text = read_text(source, source->files->fd);
	int64_t now = kb_clock_ns(CLOCK_MONOTONIC_RAW);
	unsigned int running;

	if (!text || sscanf(text, "%*s %*s %*s %u/", &running) != 1)
		return 0;
	return put(source, 0, 0, now, running ? running - 1 : 0, err);
}

static const char *const memory_series[] = { "used", "free", "cached", "swapped" };

static int open_memory(struct source *source)
{
	for (unsigned int i = 0; i < 4; i++) {
		struct kbarman_mark_series *series = new_series(source, "Memory", memory_series[i],
								"B");

		set_multiplier(series, 1024);	/* the file has KiB */
	}
	return add_only_file(source, "/proc/meminfo");
}

/* The KiB of a line of /proc/meminfo; 0: there is no such line. */
static uint64_t meminfo(const char *text, const char *key)
{
	size_t length = strlen(key);

	for (; text; text = strchr(text, '\n')) {
		text += *text == '\n';
		if (!strncmp(text, key, length) && text[length] == ':')
			return strtoull(text + length + 1, NULL, 10);
	}
	return 0;
}

static int read_memory(struct source *source, struct kb_error *err)
{
	const char *text = read_text(source, source->files->fd);
	int64_t now = kb_clock_ns(CLOCK_MONOTONIC_RAW);
	int ret = 0;

	if (!text)
		return 0;
	const uint64_t values[] = {
		meminfo(text, "MemTotal") - meminfo(text, "MemAvailable"),
		meminfo(text, "MemFree"), meminfo(text, "Cached"),
		meminfo(text, "SwapTotal") - meminfo(text, "SwapFree"),
	};

	for (unsigned int i = 0; i < 4 && !ret; i++)
		ret = put(source, i, 0, now, values[i], err);
	return ret;
}

static int open_irq(struct source *source)
{
	struct kbarman_mark_series *series = new_series(source, "Interrupts", "interrupts",
							"interrupts");

	series->chart_flags = BM_CHART_PER_CPU;
	series->series_class = BM_SERIES_CLASS_DELTA;
	series->display = BM_SERIES_DISPLAY_ACCUMULATE;
	series->rendering_type = BM_RENDERING_FILLED;
	if (add_only_file(source, "/proc/interrupts"))
		return CLI_IMPOSSIBLE;
	/* The other CPUs have no file: they only need the last sum. */
	for (unsigned int cpu = 1; cpu < source->polls->nr_cpus; cpu++) {
		if (!add_file(source, "", cpu, 0))
			return cli_fail("out of memory");
	}
	return 0;
}

/*
 * The first line names the CPU of each column. Each other line with a number in all columns is an
 * interrupt. Sets @sums to the sums of the columns. Returns the number of columns.
 */
static unsigned int sum_interrupts(char *text, unsigned int *cpus, uint64_t *sums,
				   unsigned int max)
{
	char *line, *rest, *at;
	unsigned int nr = 0, i;

	line = strtok_r(text, "\n", &rest);
	for (at = line; at && nr < max && (at = strstr(at, "CPU")); at += 3)
		cpus[nr++] = (unsigned int)strtoul(at + 3, NULL, 10);
	memset(sums, 0, nr * sizeof(*sums));
	while (nr && (line = strtok_r(NULL, "\n", &rest))) {
		uint64_t values[nr];
		char *end;

		at = strchr(line, ':');
		for (i = 0; at && i < nr; i++, at = end) {
			at += *at == ':';
			values[i] = strtoull(at, &end, 10);
			if (end == at)
				break;
		}
		if (at && i == nr)
			for (i = 0; i < nr; i++)
				sums[i] += values[i];
	}
	return nr;
}

static int read_irq(struct source *source, struct kb_error *err)
{
	unsigned int max = source->nr_files, cpus[max], nr, i;
	char *text = read_text(source, source->files->fd);
	int64_t now = kb_clock_ns(CLOCK_MONOTONIC_RAW);
	uint64_t sums[max];
	int ret = 0;

	if (!text)
		return 0;
	nr = sum_interrupts(text, cpus, sums, max);
	for (i = 0; i < nr && !ret; i++) {
		if (cpus[i] < source->nr_files)
			ret = put_growth(source, &source->files[cpus[i]], now, sums[i], err);
	}
	return ret;
}

static const struct kind file_kind = { NULL, open_file, read_file };

static const struct kind charts[] = {
	{ "freq", open_freq, read_each },
	{ "idle", open_idle, read_growths },
	{ "runnable", open_runnable, read_runnable },
	{ "memory", open_memory, read_memory },
	{ "irq", open_irq, read_irq },
};

/* ---- options ---- */

struct record_polls *record_polls_create(void)
{
	struct record_polls *polls = calloc(1, sizeof(*polls));

	if (!polls)
		return NULL;
	polls->epoll = -1;
	polls->nr_cpus = (unsigned int)sysconf(_SC_NPROCESSORS_CONF);
	return polls;
}

static struct source *add_source(struct record_polls *polls, const struct kind *kind,
				 unsigned int hz)
{
	struct source *source = &polls->sources[polls->nr];

	if (polls->nr == SOURCES_MAX)
		return NULL;
	polls->nr++;
	source->kind = kind;
	source->polls = polls;
	source->hz = hz;
	source->timer = -1;
	return source;
}

/* Parses the text after the last '@' as a rate. 0: this is not a valid rate. */
static unsigned int parse_hz(const char *text)
{
	char *end;
	unsigned long hz = *text >= '0' && *text <= '9' ? strtoul(text, &end, 10) : 0;

	return hz && !*end && hz <= HZ_MAX ? (unsigned int)hz : 0;
}

/*
 * Cuts off "@HZ" and returns HZ; 0: this is not a valid rate. A path may contain '@' (soc@0/temp):
 * only a number at its end is a rate.
 */
static unsigned int take_hz(char *text, bool path)
{
	char *at = strrchr(text, '@');

	if (!at || (path && (!at[1] || at[1 + strspn(at + 1, "0123456789")])))
		return DEFAULT_HZ;
	*at = '\0';
	return parse_hz(at + 1);
}

int record_polls_add_file(struct record_polls *polls, const char *text)
{
	char *copy = strdup(text), *path, *colon, *name = copy;
	const char *chart = "files";
	struct source *source;
	unsigned int hz;

	if (!copy)
		return cli_fail("out of memory");
	path = strchr(copy, '=');
	hz = path ? take_hz(path + 1, true) : 1;
	if (!path || path == copy || !path[1] || !hz) {
		free(copy);
		return cli_fail(hz ? "--poll %s: give a name and a file, as in heat=/sys/class/thermal/"
				     "thermal_zone0/temp@10" :
				     "--poll %s: give a rate from 1 to 1000 readings per second",
				     text);
	}
	*path++ = '\0';
	colon = strchr(copy, ':');
	if (colon) {
		*colon = '\0';
		chart = copy;
		name = colon + 1;
	}
	source = add_source(polls, &file_kind, hz);
	if (source && *chart && *name && strlen(chart) < sizeof(source->series->chart) &&
	    strlen(name) < sizeof(source->series->name)) {
		new_series(source, chart, name, "");
		source->path = strdup(path);
	}
	free(copy);
	if (!source)
		return cli_fail("--poll: at most %d files and charts", SOURCES_MAX);
	return source->path ? 0 : cli_fail("--poll %s: a name is empty or has more than 63 bytes",
					   text);
}

static int add_chart(struct record_polls *polls, char *name)
{
	unsigned int hz = take_hz(name, false);

	if (!hz)
		return cli_fail("--chart %s: give a rate from 1 to 1000 readings per second", name);
	for (size_t i = 0; i < ARRAY_SIZE(charts); i++) {
		if (strcmp(charts[i].name, name))
			continue;
		for (unsigned int j = 0; j < polls->nr; j++) {
			if (polls->sources[j].kind == &charts[i])
				return cli_fail("--chart %s: give each chart once", name);
		}
		return add_source(polls, &charts[i], hz) ? 0 :
			cli_fail("--chart: at most %d files and charts", SOURCES_MAX);
	}
	return cli_fail("--chart %s: give some of freq, idle, runnable, memory and irq", name);
}

int record_polls_add_charts(struct record_polls *polls, const char *text)
{
	char *copy = strdup(text), *name, *rest;
	int ret = copy && *copy ? 0 : cli_fail("--chart: give a list, as in memory,irq@50");

	if (!ret)
		for (name = strtok_r(copy, ",", &rest); name && !ret;
		     name = strtok_r(NULL, ",", &rest))
			ret = add_chart(polls, name);
	free(copy);
	return ret;
}

/* ---- a recording ---- */

int record_polls_open(struct record_polls *polls)
{
	int ret = 0;

	polls->text = malloc(TEXT_BYTES);
	polls->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (!polls->text || polls->epoll < 0)
		return cli_fail("out of memory or file descriptors");
	for (unsigned int i = 0; i < polls->nr && !ret; i++)
		ret = polls->sources[i].kind->open(&polls->sources[i]);
	return ret;
}

static int start_timer(struct source *source)
{
	struct timespec every = { 0, 1000000000 / (long)source->hz };
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = source };
	struct itimerspec times;

	if (source->hz == 1)
		every = (struct timespec){ 1, 0 };
	times = (struct itimerspec){ every, { 0, 1 } };	/* the first reading is at once */
	source->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (source->timer < 0 || timerfd_settime(source->timer, 0, &times, NULL) ||
	    epoll_ctl(source->polls->epoll, EPOLL_CTL_ADD, source->timer, &event))
		return cli_fail("can't make a timer: %s", strerror(errno));
	return 0;
}

int record_polls_start(struct record_polls *polls, struct kb_device *device,
		       struct kb_recorder *recorder)
{
	struct kb_error err;

	polls->recorder = recorder;
	if (kb_recorder_expect(recorder, 0, &err))
		return cli_fail_error(&err);
	for (unsigned int i = 0; i < polls->nr; i++) {
		struct source *source = &polls->sources[i];

		for (unsigned int j = 0; j < source->nr_series; j++) {
			if (kb_device_series(device, &source->series[j], &err))
				return cli_fail_error(&err);
		}
		if (start_timer(source))
			return CLI_IMPOSSIBLE;
	}
	return 0;
}

int record_polls_fd(const struct record_polls *polls)
{
	return polls->epoll;
}

int record_polls_serve(struct record_polls *polls, struct kb_error *err)
{
	struct epoll_event events[SOURCES_MAX];
	int n = epoll_wait(polls->epoll, events, SOURCES_MAX, 0), ret = 0;

	for (int i = 0; i < n && !ret; i++) {
		struct source *source = events[i].data.ptr;
		uint64_t times;

		/* After missed readings of a busy recorder, reads once, not several times. */
		if (read(source->timer, &times, sizeof(times)) == sizeof(times))
			ret = source->kind->read(source, err);
	}
	return ret;
}

int record_polls_finish(struct record_polls *polls, struct kb_error *err)
{
	int ret = 0;

	for (unsigned int i = 0; i < polls->nr && !ret; i++) {
		struct source *source = &polls->sources[i];

		ret = source->kind->read(source, err);
		if (source->failed)
			cli_warn("%s could not be read %" PRIu64 " times: %s",
				 source->path ?: source->kind->name, source->failed,
				 strerror(source->error));
	}
	return ret;
}

void record_polls_close(struct record_polls *polls)
{
	if (!polls)
		return;
	for (unsigned int i = 0; i < polls->nr; i++) {
		struct source *source = &polls->sources[i];

		for (unsigned int j = 0; j < source->nr_files; j++) {
			if (source->files[j].fd >= 0)
				close(source->files[j].fd);
		}
		if (source->timer >= 0)
			close(source->timer);
		free(source->files);
		free(source->path);
	}
	if (polls->epoll >= 0)
		close(polls->epoll);
	free(polls->text);
	free(polls);
}
