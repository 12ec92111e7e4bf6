// SPDX-License-Identifier: MIT
/*
 * NMIs from QEMU's monitor, whose handler (module/nmi.c) writes into the ring of its CPU,
 * whatever that was doing: what was interrupted in the middle of a record, and what was
 * put there meanwhile, come out whole, in order, and accounted for, number by number.
 *
 * Needs the test build of the module, and somebody outside who injects while the file
 * "inject" is in the current directory (inject.py). RECORDS: how many are waited for, of
 * all kinds, instead of a million.
 */
#include "noise.h"
#include "parameters.h"
#include "reader.h"

#define TASK_BASE	0x40000000U
#define TASK_MASK	0x0fffffffU
#define SIGN		"inject"

static uint64_t injected;	/* records of NMIs that came out */
static uint64_t missing;	/* numbers that were left out */
static uint32_t next_number[READER_CPUS];

static void look(struct reader *reader, uint32_t cpu, const union record *r)
{
	uint32_t number;

	if (r->header.record_type != BM_RECORD_TASK_SWITCH || r->task_switch.task_id < TASK_BASE)
		return;
	number = r->task_switch.task_id & TASK_MASK;
	if (number < next_number[cpu])
		reader_blame(reader, cpu, number, "a record of an NMI twice, or out of order");
	missing += number - next_number[cpu];
	next_number[cpu] = number + 1;
	injected++;
}

static void record(struct reader *reader, int fd)
{
	struct noise noise = { .nr = 0 };

	noise_pipes(&noise, 4);
	reader_begin(reader, fd);
	if (start(fd))
		lost("no start");
	write_parameter("test_nmi", "1");
	close(open(SIGN, O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
	reader_take_wanted(reader);
	unlink(SIGN);
	write_parameter("test_nmi", "0");
	if (stop(fd))
		lost("no stop");
	noise_end(&noise);
	reader_take(reader);
	reader_settle(reader);
}

int main(void)
{
	static struct reader reader = { .look = look };
	uint64_t attempts, nested;
	struct kbarman_stats s;
	int fd, error;

	test_build_want();
	fd = device_open();
	error = configure(fd, (struct kbarman_configure) {
		.mode = KBARMAN_MODE_STREAM, .ring_bytes = 4 * MIB, .watermark = 256 * KIB,
		.sources = KBARMAN_SOURCE_SCHED | KBARMAN_SOURCE_IDLE | KBARMAN_SOURCE_MAPS });
	if (error)
		lost("configure: %d", error);
	record(&reader, fd);
	s = stats(fd, KBARMAN_CPU_ALL);
	attempts = parameter("test_nmi_attempts");
	nested = parameter("test_nmi_nested");
	tap_note("%llu records, %llu of them of NMIs; %llu NMIs inside a writer; %llu lost",
		 (unsigned long long)s.written, (unsigned long long)injected,
		 (unsigned long long)nested, (unsigned long long)lost_records(&s));
	reader_promise(&reader);
	tap_ok(injected && nested, "nmis_interrupt_writers");
	/* The last numbers of a CPU may be lost, and then nothing comes behind them. */
	if (!tap_ok(injected + missing <= attempts &&
		    attempts - injected <= lost_records(&s), "nmis_lose_only_what_is_counted"))
		tap_note("%llu tried, %llu came out, %llu left out", (unsigned long long)attempts,
			 (unsigned long long)injected, (unsigned long long)missing);
	reader_end(&reader);
	close(fd);
	return tap_done();
}
