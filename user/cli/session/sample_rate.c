// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/base/cli.h"
#include "cli/session/sample_rate.h"

#define LIMIT_NAME	"kernel.perf_event_max_sample_rate"
#define LIMIT_FILE	"/proc/sys/kernel/perf_event_max_sample_rate"
#define PERCENT_FILE	"/proc/sys/kernel/perf_cpu_time_max_percent"
#define USUAL_HZ	1000	/* of an event whose rate nobody knows */

/* Reads a number from a file. 0: the file can't be read, or has no number. */
static uint64_t read_number(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[32] = "";

	if (fd < 0)
		return 0;
	if (read(fd, text, sizeof(text) - 1) < 0)
		text[0] = '\0';
	close(fd);
	return strtoull(text, NULL, 10);
}

/* The frequency of the fastest CPU, in Hz; 0: unknown. */
static uint64_t fastest_cpu(void)
{
	long nr = sysconf(_SC_NPROCESSORS_CONF);
	uint64_t khz, most = 0;
	char path[96];

	for (long cpu = 0; cpu < nr; cpu++) {
		snprintf(path, sizeof(path),
			 "/sys/devices/system/cpu/cpu%ld/cpufreq/cpuinfo_max_freq", cpu);
		khz = read_number(path);
		if (khz > most)
			most = khz;
	}
	return most * 1000;
}

/* How often per second the event may occur; 0: unknown. */
static uint64_t events_a_second(const struct kb_perf_event *event)
{
	if (event->type == PERF_TYPE_HARDWARE && event->config == PERF_COUNT_HW_CPU_CYCLES)
		return fastest_cpu();
	return 0;
}

static bool counts_ns(const struct kb_perf_event *event)
{
	return event->type == PERF_TYPE_SOFTWARE && (event->config == PERF_COUNT_SW_CPU_CLOCK ||
						     event->config == PERF_COUNT_SW_TASK_CLOCK);
}

/* How often a second @event samples, as far as this is known. */
static uint64_t samples_a_second(const struct kb_sampling *sampling, const struct kb_perf_event *event)
{
	uint64_t rate;

	if (sampling->freq)
		return sampling->period;
	rate = events_a_second(event) / sampling->period;
	return rate ?: USUAL_HZ;
}

void limit_stack_time(struct kbarman_configure *configure, const struct kb_sampling *sampling,
		      const struct kb_perf_event *event)
{
	uint64_t percent, ns;

	/* Linux does not look at its own timers. */
	if (!(configure->flags & KBARMAN_CONFIGURE_CHAIN_STACK) || !sampling->period ||
	    event->type == PERF_TYPE_SOFTWARE)
		return;
	percent = read_number(PERCENT_FILE);
	/* With 0 and 100 it looks at nothing. */
	if (!percent || percent >= 100)
		return;
	/* The scan takes half as long again at most, and Linux adds a quarter to the average. */
	ns = KB_NS_PER_S / 100 * percent / samples_a_second(sampling, event) / 2;
	configure->stack_ns = ns < 1 ? 1 : ns > UINT32_MAX ? UINT32_MAX : (uint32_t)ns;
}

void limit_sample_rate(struct kb_sampling *sampling, const struct kb_perf_event *event)
{
	uint64_t limit = read_number(LIMIT_FILE), asked = sampling->period, least, rate;

	if (!limit || !asked)
		return;
	if (sampling->freq) {
		if (asked <= limit)
			return;
		sampling->period = limit;
		cli_warn("%" PRIu64 " samples per second exceed Linux's limit (" LIMIT_NAME
			 "): sampling %" PRIu64 " times per second", asked, limit);
		return;
	}
	if (counts_ns(event)) {
		least = (KB_NS_PER_S + limit - 1) / limit;
		if (asked >= least)
			return;
		sampling->period = least;
		cli_warn("a sample every %" PRIu64 " ns exceeds Linux's limit (" LIMIT_NAME
			 "): sampling every %" PRIu64 " ns", asked, least);
		return;
	}
	rate = events_a_second(event) / asked;
	if (rate > limit)
		cli_warn("-c %" PRIu64 " can give %" PRIu64 " samples per second, and Linux's "
			 "limit is %" PRIu64 " (" LIMIT_NAME "): Linux may stop the counter at "
			 "times; the summary counts these stops", asked, rate, limit);
}
