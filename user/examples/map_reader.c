// SPDX-License-Identifier: MIT
/*
 * Records a CPU for a second and prints the records in its map. A tool needs only the two headers
 * below for this. The ring is stopped before it is read, so that it can be read in place.
 * uapi/kbarman.h describes how to read a running ring.
 */
#include <err.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <uapi/barman_v2.h>
#include <uapi/kbarman.h>

static void print_record(const void *data)
{
	static const char *const names[] = { "?", "sample", "sample with PC", "task switch",
					     "custom counter", "annotation", "halting event" };
	const struct bm_protocol_record_header *header = data;
	const struct bm_protocol_task_switch *task_switch = data;
	unsigned int type = header->record_type < 7 ? header->record_type : 0;

	printf("%llu %s", (unsigned long long)header->timestamp, names[type]);
	if (type == BM_RECORD_TASK_SWITCH)
		printf(" to task %u", task_switch->task_id);
	putchar('\n');
}

int main(int argc, char **argv)
{
	struct kbarman_event event = {
		.name = "cpu-clock",
		.attr = { .type = PERF_TYPE_SOFTWARE, .size = sizeof(event.attr), .config = PERF_COUNT_SW_CPU_CLOCK,
			  .freq = 1, .sample_freq = 100 },
	};
	struct kbarman_configure configure = {
		.size = sizeof(configure),
		.mode = KBARMAN_MODE_OVERWRITE,
		.sources = KBARMAN_SOURCE_ALL & ~KBARMAN_SOURCE_DETAILS,
		.nr_events = 1,
		.events_ptr = (__u64)(unsigned long)&event,
		.event_bytes = sizeof(event),
	};
	struct kbarman_start start = { .size = sizeof(start) };
	struct kbarman_query query = { .size = sizeof(query) };
	off_t cpu = argc > 1 ? atoi(argv[1]) : 0;
	int fd = open(KBARMAN_DEVICE, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		err(1, KBARMAN_DEVICE);
	if (ioctl(fd, KBARMAN_CONFIGURE, &configure) || ioctl(fd, KBARMAN_QUERY, &query))
		err(1, "configure");

	/* The whole map is a Barman v2 capture in the kernel's word size. Its ring follows the header. */
	const char *map = mmap(NULL, query.map_bytes, PROT_READ, MAP_SHARED, fd,
			       cpu * query.map_stride);
	if (map == MAP_FAILED)
		err(1, "mmap of CPU %d", (int)cpu);
	/* cppcheck-suppress nullPointerArithmeticOutOfMemory ; a map that fails is MAP_FAILED */
	const struct bm_datastore_header_data *store = (const void *)(map + query.header_bytes);
	const struct bm_protocol_header_start *header = (const void *)map;
	const bool wide = header->magic_bytes == BM64_PROTOCOL_MAGIC_BYTES;
	const char *ring = (const char *)(store + 1);

	if (ioctl(fd, KBARMAN_START, &start))
		err(1, "start");
	sleep(1);
	if (ioctl(fd, KBARMAN_STOP, 0))
		err(1, "stop");

	/* Offsets only grow: take them modulo the ring's size. No block crosses the ring's end. */
	for (__u64 at = store->read_offset; at < store->write_offset;) {
		const void *block = ring + at % store->buffer_length;
		const __u64 word = wide ? *(const __u64 *)block : *(const __u32 *)block;
		const __u64 padding = wide ? BM64_BLOCK_PADDING : BM32_BLOCK_PADDING;
		const char *record = (const char *)block + (wide ? 8 : 4);

		if (!(word & padding))
			print_record(record);
		at += (wide ? 8 : 4) + (word & ~padding);
	}
	return 0;
}
