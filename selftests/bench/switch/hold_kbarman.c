// SPDX-License-Identifier: MIT
/*
 * Keeps a session in overwrite mode running until standard input ends, then prints the
 * records and the bytes that were written.
 *
 *	hold_kbarman sched		switches only
 *	hold_kbarman reserved		switches only, in memory that survives a reset
 *	hold_kbarman objects		switches, with what tasks wait for
 *	hold_kbarman wake		wakeups only
 *	hold_kbarman syscalls		system calls only
 *	hold_kbarman usual		what `kbarman record` asks for
 *	hold_kbarman NAME NS		a sample each NS nanoseconds: plain, fp or stack, with
 *					call chains of that kind
 */
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>

#include "hold.h"
#include "uapi/kbarman.h"

static struct kbarman_event cpu_clock = {
	.attr = { .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK }, .name = "cpu-clock",
};

static const struct recording {
	const char *name;
	uint32_t sources, flags;
} recordings[] = {
	{ "sched", KBARMAN_SOURCE_SCHED, 0 },
	{ "reserved", KBARMAN_SOURCE_SCHED, KBARMAN_CONFIGURE_RESERVED },
	{ "objects", KBARMAN_SOURCE_SCHED, KBARMAN_CONFIGURE_OBJECTS },
	{ "wake", KBARMAN_SOURCE_WAKE, 0 },
	{ "syscalls", KBARMAN_SOURCE_SYSCALLS, 0 },
	{ "usual", KBARMAN_SOURCE_SCHED | KBARMAN_SOURCE_IDLE | KBARMAN_SOURCE_MAPS, 0 },
	{ "plain", KBARMAN_SOURCE_PMU | KBARMAN_SOURCE_MAPS, 0 },
	{ "fp", KBARMAN_SOURCE_PMU | KBARMAN_SOURCE_MAPS,
	  KBARMAN_CONFIGURE_CHAIN_USER | KBARMAN_CONFIGURE_CHAIN_KERNEL },
	{ "stack", KBARMAN_SOURCE_PMU | KBARMAN_SOURCE_MAPS,
	  KBARMAN_CONFIGURE_CHAIN_STACK | KBARMAN_CONFIGURE_CHAIN_KERNEL },
};

static const struct recording *find(const char *name)
{
	const struct recording *recording = recordings;

	while (strcmp(recording->name, name))
		if (++recording == recordings + sizeof(recordings) / sizeof(recordings[0]))
			exit(2);
	return recording;
}

int main(int argc, char **argv)
{
	const struct recording *what = find(argc > 1 ? argv[1] : "");
	struct kbarman_configure configure = {
		.size = sizeof(configure),
		.mode = KBARMAN_MODE_OVERWRITE,
		.sources = what->sources,
		.flags = what->flags,
		.ring_bytes = 4 << 20,
	};
	struct kbarman_start start = { .size = sizeof(start) };
	struct kbarman_stats stats = { .size = sizeof(stats), .cpu = KBARMAN_CPU_ALL };
	int fd = open(KBARMAN_DEVICE, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		die(KBARMAN_DEVICE);
	if (what->sources & KBARMAN_SOURCE_PMU) {
		cpu_clock.attr.sample_period = argc > 2 ? strtoul(argv[2], NULL, 0) : 0;
		configure.event_bytes = sizeof(cpu_clock);
		configure.nr_events = 1;
		configure.events_ptr = (uintptr_t)&cpu_clock;
	}
	if (ioctl(fd, KBARMAN_CONFIGURE, &configure) || ioctl(fd, KBARMAN_START, &start))
		die("hold_kbarman");
	hold();
	if (ioctl(fd, KBARMAN_STOP, 0) || ioctl(fd, KBARMAN_STATS, &stats))
		die("hold_kbarman");
	printf("%llu %llu\n", (unsigned long long)stats.written, (unsigned long long)stats.bytes);
	return 0;
}
