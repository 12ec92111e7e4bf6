// SPDX-License-Identifier: MIT
/*
 * Keeps a session in overwrite mode running until standard input ends, then prints the
 * records and the bytes that were written.
 *
 *	hold_kbarman [sched | usual]	switches only, or what `kbarman record` asks for
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>

#include "hold.h"
#include "uapi/kbarman.h"

int main(int argc, char **argv)
{
	bool usual = argc > 1 && !strcmp(argv[1], "usual");
	struct kbarman_configure configure = {
		.size = sizeof(configure),
		.mode = KBARMAN_MODE_OVERWRITE,
		.sources = usual ? KBARMAN_SOURCE_SCHED | KBARMAN_SOURCE_IDLE | KBARMAN_SOURCE_MAPS :
				   KBARMAN_SOURCE_SCHED,
		.ring_bytes = 4 << 20,
	};
	struct kbarman_start start = { .size = sizeof(start) };
	struct kbarman_stats stats = { .size = sizeof(stats), .cpu = KBARMAN_CPU_ALL };
	int fd = open(KBARMAN_DEVICE, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		die(KBARMAN_DEVICE);
	if (ioctl(fd, KBARMAN_CONFIGURE, &configure) || ioctl(fd, KBARMAN_START, &start))
		die("hold_kbarman");
	hold();
	if (ioctl(fd, KBARMAN_STOP, 0) || ioctl(fd, KBARMAN_STATS, &stats))
		die("hold_kbarman");
	printf("%llu %llu\n", (unsigned long long)stats.written, (unsigned long long)stats.bytes);
	return 0;
}
