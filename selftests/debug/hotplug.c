// SPDX-License-Identifier: MIT
/*
 * hotplug [TIMES]: a CPU goes and comes back, 100 times, while everything is recorded and
 * read. All that was written comes out whole, and the CPU records again each time.
 */

#include "noise.h"
#include "reader.h"

#define CPU	1

/* Until the CPU is known to record, or not. False: it took too long. */
static bool settles(struct reader *reader, uint32_t online)
{
	unsigned int i;

	for (i = 0; i < 6000; i++) {
		reader_take(reader);
		if (stats(reader->fd, CPU).online == online)
			return true;
		usleep(10000);
	}
	return false;
}

/* The CPU writes records now that it did not write before. */
static bool records_again(struct reader *reader)
{
	uint64_t before = reader->cpus[CPU].records;
	unsigned int i;

	for (i = 0; i < 6000; i++) {
		reader_take(reader);
		if (reader->cpus[CPU].records > before + 10)
			return true;
		usleep(10000);
	}
	return false;
}

static const char *once(struct reader *reader)
{
	cpu_set_online(CPU, false);
	if (!settles(reader, 0))
		return "a CPU that went and records still";
	cpu_set_online(CPU, true);
	if (!settles(reader, 1))
		return "a CPU that came back and does not record";
	return records_again(reader) ? NULL : "a CPU that came back and is silent";
}

int main(int argc, char **argv)
{
	unsigned int i, times = argc > 1 ? atoi(argv[1]) : 100;
	struct noise noise = { .nr = 0 };
	static struct reader reader;
	const char *fault = NULL;
	int fd = device_open_free();

	if (configure(fd, (struct kbarman_configure) {
			.mode = KBARMAN_MODE_STREAM, .ring_bytes = 4 * MIB,
			.sources = KBARMAN_SOURCE_ALL, .nr_events = 2,
			.events_ptr = sampled_or_clock(&cycles, 1000000) }))
		lost("no configure");
	noise_pipes(&noise, 2);
	noise_forks(&noise);
	reader_begin(&reader, fd);
	if (start(fd))
		lost("no start");
	for (i = 0; i < times && !fault; i++)
		fault = once(&reader);
	if (stop(fd))
		fault = "a stop that failed";
	noise_end(&noise);
	reader_take(&reader);
	reader_settle(&reader);
	tap_note("%u times, %llu records", i, (unsigned long long)reader.records);
	if (!tap_ok(!fault, "cpus_go_and_come_back_while_recording"))
		tap_note("%s, at the %uth time", fault, i);
	reader_promise(&reader);
	reader_end(&reader);
	close(fd);
	return tap_done();
}
