// SPDX-License-Identifier: MIT
/*
 * Overflow handlers that interrupt the probes: on a kernel with pseudo-NMIs a sample is
 * written in the middle of a task switch's record, with interrupts off all around. Under
 * hackbench's load a million records come out whole, in order, and accounted for.
 *
 * The same program on the same kernel booted without them shows what is an NMI's doing:
 * then no sample is inside a probe.
 *
 * RECORDS: how many, instead of a million.
 */

#include "noise.h"
#include "reader.h"

#define PERIOD		400000	/* cycles */

/* The functions that write a record, from the switch probe on. */
static const char *const writers[] = { "on_sched_switch", "kbarman_record_switch",
				       "record_small_slow", "kbarman_ring_reserve" };

#define NR_WRITERS	(sizeof(writers) / sizeof(writers[0]))

struct range {
	uint64_t start, end;
};

static struct range ranges[NR_WRITERS];
static uint64_t inside[READER_CPUS];	/* samples whose place is in one of them */

/* A symbol of the module ends where the next one begins; the list is in no order. */
static void find_writers(void)
{
	char line[256], name[128], module[64];
	unsigned long long address;
	unsigned int i, pass;
	FILE *f;

	for (pass = 0; pass < 2; pass++) {
		f = fopen("/proc/kallsyms", "r");
		while (f && fgets(line, sizeof(line), f)) {
			if (sscanf(line, "%llx %*c %127s %63s", &address, name, module) != 3 ||
			    strcmp(module, "[kbarman]") || name[0] == '$' || name[0] == '.')
				continue;
			for (i = 0; i < NR_WRITERS; i++)
				if (!pass && !strcmp(name, writers[i]))
					ranges[i] = (struct range) { address, ~0ULL };
				else if (pass && address > ranges[i].start &&
					 address < ranges[i].end)
					ranges[i].end = address;
		}
		if (f)
			fclose(f);
	}
	if (!ranges[0].start)
		lost("the module has no symbol %s", writers[0]);
}

static void look(struct reader *reader, uint32_t cpu, const union record *r)
{
	bm_uintptr pc;
	unsigned int i;

	(void)reader;
	if (r->header.record_type != BM_RECORD_SAMPLE_WITH_PC)
		return;
	memcpy(&pc, &r->sample + 1, sizeof(pc));
	for (i = 0; i < NR_WRITERS; i++)
		if (pc >= ranges[i].start && pc < ranges[i].end) {
			inside[cpu]++;
			return;
		}
}

static uint64_t all_inside(void)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < READER_CPUS; i++)
		sum += inside[i];
	return sum;
}

static bool booted_with_nmis(void)
{
	char line[1024] = "";
	int fd = open("/proc/cmdline", O_RDONLY | O_CLOEXEC);

	if (read(fd, line, sizeof(line) - 1) < 0)
		lost("no command line");
	close(fd);
	return strstr(line, "gicv3_pseudo_nmi=1");
}

static void record(struct reader *reader, int fd)
{
	struct noise noise = { .nr = 0 };

	noise_pipes(&noise, 6);
	reader_begin(reader, fd);
	if (start(fd))
		lost("no start");
	reader_take_wanted(reader);
	if (stop(fd))
		lost("no stop");
	noise_end(&noise);
	reader_take(reader);
	reader_settle(reader);
}

int main(void)
{
	static struct reader reader = { .look = look };
	struct kbarman_stats s;
	int fd = device_open();
	int error;

	error = configure(fd, (struct kbarman_configure) {
		.mode = KBARMAN_MODE_STREAM, .ring_bytes = 4 * MIB, .watermark = 256 * KIB,
		.sources = KBARMAN_SOURCE_ALL, .nr_events = 1,
		.events_ptr = sampled(&cycles, 1, PERIOD) });
	if (error)
		lost("configure: %d", error);
	find_writers();
	record(&reader, fd);
	s = stats(fd, KBARMAN_CPU_ALL);
	tap_note("%llu records, %llu of them samples, %llu inside a probe; %llu lost",
		 (unsigned long long)s.written,
		 (unsigned long long)reader.by_type[BM_RECORD_SAMPLE_WITH_PC],
		 (unsigned long long)all_inside(), (unsigned long long)lost_records(&s));
	reader_promise(&reader);
	if (booted_with_nmis())
		tap_ok(all_inside() > 0, "overflows_interrupt_the_probes");
	else
		tap_is(all_inside(), 0, "overflows_wait_for_the_probes");
	reader_end(&reader);
	close(fd);
	return tap_done();
}
