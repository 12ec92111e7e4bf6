// SPDX-License-Identifier: MIT
/* Interrupts and softirqs: as many as Linux counts, and each entry with its exit. */
#include <ctype.h>
#include <signal.h>

#include "kselftest_harness.h"
#include "details.h"

#define IRQS	(BIT(BM_KBARMAN_IRQ_ENTRY) | BIT(BM_KBARMAN_IRQ_EXIT) |	\
		 BIT(BM_KBARMAN_IPI_ENTRY) | BIT(BM_KBARMAN_IPI_EXIT))
#define RUNS	(BIT(BM_KBARMAN_SOFTIRQ_ENTRY) | BIT(BM_KBARMAN_SOFTIRQ_EXIT))
#define SOFTIRQS	10
#define ROWS	64		/* of /proc/interrupts */
#define CPUS	2
#define NAPS	200
#define STARTS	20

static const struct kbarman_configure both = {
	.sources = KBARMAN_SOURCE_IRQ | KBARMAN_SOURCE_SOFTIRQ, .ring_bytes = 4 * MIB };

FIXTURE(interrupts)
{
	int fd;
};

FIXTURE_SETUP(interrupts)
{
	self->fd = device_open_free();
	if (query(self->fd).nr_cpus < CPUS || query(self->fd).absent & both.sources)
		skip_test();
}

FIXTURE_TEARDOWN(interrupts)
{
	close(self->fd);
}

/* Timers, softirqs, IPIs, and a device's interrupts. */
static void work(void)
{
	struct echo e;
	char text[64];
	int i;

	pin(0);
	e = echo_create(1);
	for (i = 0; i < NAPS; i++) {
		echo_rounds(&e, 1);
		usleep(1000);
		/* on the shared file system, which is a device */
		read_file(MODULE_FILE, text, 2);
	}
	echo_destroy(&e);
}

/* ---- pairs ---- */

static bool is_entry(const struct fact *f)
{
	return f->detail.what == BM_KBARMAN_IRQ_ENTRY || f->detail.what == BM_KBARMAN_IPI_ENTRY ||
	       f->detail.what == BM_KBARMAN_SOFTIRQ_ENTRY;
}

/*
 * Where on the stack of @depth is what @f ends? On PREEMPT_RT a task may preempt another one in a
 * softirq, and begin softirqs itself: they pair in each task.
 */
static size_t entry_of(const struct fact *stack, size_t depth, const struct fact *f)
{
	size_t at = depth - 1;

	while (is_rt() && at && stack[at].task != f->task)
		at--;
	return at;
}

/*
 * Was one of the two tracepoints of a pair not called at all? QEMU 7.2 may execute a stale translation
 * for ever, of the code before Linux switched the tracepoint on (scripts/vm): so it did on arm64 in a
 * few of a thousand starts. QEMU 10 did not.
 */
static bool is_one_sided(int fd, uint32_t cpu)
{
	static const unsigned int entry[] = { BM_KBARMAN_IRQ_ENTRY, BM_KBARMAN_IPI_ENTRY,
					      BM_KBARMAN_SOFTIRQ_ENTRY };
	struct facts facts = { 0 };
	bool one_sided = false;
	size_t i;

	facts_add_cpu(&facts, fd, cpu, IRQS | RUNS);
	for (i = 0; i < ARRAY_SIZE(entry); i++) {
		unsigned int entries = facts_count(&facts, entry[i], ~0U, ~0U);
		unsigned int exits = facts_count(&facts, entry[i] + 1, ~0U, ~0U);

		/* One of them may be under way at the start, or at the stop. */
		one_sided |= (!entries || !exits) && entries + exits > 1;
	}
	free(facts.all);
	return one_sided;
}

/*
 * What is entered last ends first. Only in front of all entries of its kind may stand an exit of something that had
 * begun before the rings opened; on arm64 of a handler, and of the IPI in it, which may have begun behind that.
 */
static void expect_pairs(struct __test_metadata *_metadata, int fd, uint32_t cpu, uint32_t whats)
{
	struct fact stack[8];
	struct facts facts = { 0 };
	size_t i, at, depth = 0, early = 0;
	uint64_t entered = 0;		/* a bit for each kind of entry */

	facts_add_cpu(&facts, fd, cpu, whats);
	for (i = 0; i < facts.nr; i++) {
		const struct fact *f = &facts.all[i];

		EXPECT_EQ(is_entry(f), f->value);
		if (is_entry(f)) {
			ASSERT_GT(8, depth);
			stack[depth++] = *f;
			entered |= BIT(f->detail.what);
			continue;
		}
		if (!(entered & BIT(f->detail.what - 1))) {
			EXPECT_GE(2, ++early);
			continue;
		}
		ASSERT_LT(0, depth) TH_LOG("CPU %u: exit %u of %u without entry", cpu,
					   f->detail.what, f->detail.id);
		at = entry_of(stack, depth, f);
		EXPECT_EQ(stack[at].detail.what + 1, f->detail.what);
		EXPECT_EQ(stack[at].detail.id, f->detail.id);
		EXPECT_EQ(stack[at].detail.cpu, f->detail.cpu);
		EXPECT_EQ(stack[at].detail.context, f->detail.context);
		EXPECT_EQ(stack[at].task, f->task);
		depth--;
		memmove(&stack[at], &stack[at + 1], (depth - at) * sizeof(*stack));
	}
	EXPECT_GE(2, depth);
	free(facts.all);
}

TEST_F(interrupts, entries_and_exits_pair)
{
	struct judgement j;
	uint32_t cpu;

	ASSERT_EQ(0, configure(self->fd, both));
	ASSERT_EQ(0, start(self->fd));
	work();
	ASSERT_EQ(0, stop(self->fd));
	for (cpu = 0; cpu < CPUS; cpu++) {
		expect_pairs(_metadata, self->fd, cpu, IRQS);
		expect_pairs(_metadata, self->fd, cpu, RUNS);
		j = judge_cpu(self->fd, cpu);
		EXPECT_EQ(NULL, j.fault) TH_LOG("CPU %u: %s", cpu, j.fault);
	}
}

/* Probes are attached and detached one after the other, while interrupts come. */
TEST_F(interrupts, they_pair_from_the_start_to_the_stop)
{
	int round, one_sided = 0;
	pid_t busy = fork();

	if (!busy) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			work();
	}
	ASSERT_EQ(0, configure(self->fd, both));
	for (round = 0; round < STARTS; round++) {
		ASSERT_EQ(0, start(self->fd));
		usleep(2000);
		ASSERT_EQ(0, stop(self->fd));
		if (is_one_sided(self->fd, round % CPUS)) {
			one_sided++;
			continue;
		}
		expect_pairs(_metadata, self->fd, round % CPUS, IRQS);
		expect_pairs(_metadata, self->fd, round % CPUS, RUNS);
	}
	EXPECT_GE(STARTS / 5, one_sided);
	kill(busy, SIGKILL);
	waitpid(busy, NULL, 0);
}

/* An interrupt interrupts a softirq, and never the other way round. */
TEST_F(interrupts, no_softirq_runs_inside_of_an_interrupt)
{
	struct facts facts = { 0 };
	int inside = 0;
	size_t i;

	ASSERT_EQ(0, configure(self->fd, both));
	ASSERT_EQ(0, start(self->fd));
	work();
	ASSERT_EQ(0, stop(self->fd));
	facts_add_cpu(&facts, self->fd, 0, IRQS | RUNS);
	for (i = 0; i < facts.nr; i++) {
		const struct fact *f = &facts.all[i];

		if (BIT(f->detail.what) & RUNS) {
			EXPECT_EQ(0, inside) TH_LOG("softirq %u", f->detail.id);
			EXPECT_EQ(BM_KBARMAN_IN_SOFTIRQ, f->detail.context);
			continue;
		}
		EXPECT_EQ(BM_KBARMAN_IN_IRQ, f->detail.context);
		inside += is_entry(f) ? 1 : inside ? -1 : 0;
	}
	free(facts.all);
}

/* ---- as many as Linux counts ---- */

struct counts {
	uint32_t irq;
	uint64_t of[CPUS];
};

/* The rows of /proc/interrupts with a number and one handler. Returns how many. */
static unsigned int read_interrupts(struct counts *rows)
{
	FILE *file = fopen("/proc/interrupts", "re");
	unsigned int nr = 0;
	char line[512];

	if (!file)
		lost("no /proc/interrupts");
	while (nr < ROWS && fgets(line, sizeof(line), file)) {
		unsigned long long of[CPUS];
		int end = 0;

		if (sscanf(line, " %u: %llu %llu %n", &rows[nr].irq, &of[0], &of[1], &end) < 3 ||
		    !end || strchr(line + end, ','))
			continue;
		rows[nr].of[0] = of[0];
		rows[nr++].of[1] = of[1];
	}
	fclose(file);
	return nr;
}

/* Returns SOFTIRQS, in the order of their numbers. */
static unsigned int read_softirqs(struct counts *rows)
{
	FILE *file = fopen("/proc/softirqs", "re");
	unsigned int nr = 0;
	char line[512];

	if (!file)
		lost("no /proc/softirqs");
	while (nr < SOFTIRQS && fgets(line, sizeof(line), file)) {
		unsigned long long of[CPUS];

		if (sscanf(line, " %*[A-Z_]: %llu %llu", &of[0], &of[1]) == 2)
			rows[nr] = (struct counts) { nr, { of[0], of[1] } }, nr++;
	}
	fclose(file);
	return nr;
}

static uint64_t row_of(const struct counts *rows, unsigned int nr, uint32_t irq, uint32_t cpu)
{
	while (nr--)
		if (rows[nr].irq == irq)
			return rows[nr].of[cpu];
	return 0;
}

/*
 * Linux's counts are read before the start and behind the stop, and again in between: what was
 * recorded is no more than the first two say, and no less than the second two.
 */
static void expect_counts(struct __test_metadata *_metadata, int fd,
			  unsigned int (*read_counts)(struct counts *rows), unsigned int what)
{
	struct counts before[ROWS], begun[ROWS], ended[ROWS], behind[ROWS];
	unsigned int nr[4], i, seen = 0;
	uint32_t cpu;

	ASSERT_EQ(0, configure(fd, both));
	nr[0] = read_counts(before);
	ASSERT_EQ(0, start(fd));
	nr[1] = read_counts(begun);
	work();
	nr[2] = read_counts(ended);
	ASSERT_EQ(0, stop(fd));
	nr[3] = read_counts(behind);
	for (cpu = 0; cpu < CPUS; cpu++) {
		struct facts facts = { 0 };

		facts_add_cpu(&facts, fd, cpu, BIT(what));
		for (i = 0; i < nr[3]; i++) {
			uint32_t irq = behind[i].irq;
			unsigned int recorded = facts_count(&facts, what, ~0U, irq);

			EXPECT_LE(recorded, behind[i].of[cpu] - row_of(before, nr[0], irq, cpu))
				TH_LOG("CPU %u, number %u", cpu, irq);
			EXPECT_GE(recorded, row_of(ended, nr[2], irq, cpu) -
					    row_of(begun, nr[1], irq, cpu))
				TH_LOG("CPU %u, number %u", cpu, irq);
			seen += recorded;
		}
		free(facts.all);
	}
	EXPECT_LE(10, seen);
}

TEST_F(interrupts, handlers_are_as_many_as_the_kernel_counts)
{
	struct counts rows[ROWS];

	/* s390x has other interrupts, which Linux handles without its table. */
	if (!read_interrupts(rows))
		SKIP(return, "no interrupt of this machine has a number");
	expect_counts(_metadata, self->fd, read_interrupts, BM_KBARMAN_IRQ_ENTRY);
}

TEST_F(interrupts, softirqs_are_as_many_as_the_kernel_counts)
{
	expect_counts(_metadata, self->fd, read_softirqs, BM_KBARMAN_SOFTIRQ_ENTRY);
}

/* Whoever runs: see kbarman.h. */
TEST_F(interrupts, a_session_of_chosen_tasks_has_all_of_them)
{
	struct kbarman_configure c = both;
	uint32_t pids[] = { getpid() }, cpu;
	struct facts facts = { 0 };
	unsigned int in_others = 0;
	size_t i;

	c.pids_ptr = (uintptr_t)pids;
	c.nr_pids = 1;
	ASSERT_EQ(0, configure(self->fd, c));
	ASSERT_EQ(0, start(self->fd));
	work();
	ASSERT_EQ(0, stop(self->fd));
	for (cpu = 0; cpu < CPUS; cpu++)
		facts_add_cpu(&facts, self->fd, cpu, IRQS);
	for (i = 0; i < facts.nr; i++)
		in_others += facts.all[i].task != pids[0];
	EXPECT_LE(1, in_others);
	free(facts.all);
}

/* The frequency, and idle states that did not pay, need hardware; the source starts anyway. */
TEST_F(interrupts, frequencies_are_no_numbers_out_of_the_air)
{
	struct kbarman_configure c = { .sources = KBARMAN_SOURCE_FREQ };
	struct facts facts;
	size_t i;

	ASSERT_EQ(0, configure(self->fd, c));
	ASSERT_EQ(0, start(self->fd));
	work();
	ASSERT_EQ(0, stop(self->fd));
	facts = facts_of(self->fd, ~0U);
	for (i = 0; i < facts.nr; i++) {
		const struct fact *f = &facts.all[i];

		EXPECT_TRUE(f->detail.what == BM_KBARMAN_FREQUENCY ||
			    f->detail.what == BM_KBARMAN_IDLE_MISS);
		EXPECT_GT(query(self->fd).nr_cpus, f->detail.cpu);
		EXPECT_LT(0, f->value);
	}
	free(facts.all);
}

TEST_HARNESS_MAIN
