// SPDX-License-Identifier: MIT
/*
 * The real device under fire: on every CPU a crowd of processes that switch as fast as
 * they can, and one that writes marks whose every byte is known; samples interrupt both.
 * Meanwhile others take snapshots of the rings, and in stream mode one reader consumes.
 * Every block that is read is looked at, and every record accounted for.
 *
 * KBARMAN_TORTURE in the environment is how many blocks of a stream are read, for longer
 * runs, and ten times as many in snapshots.
 */
#include <pthread.h>
#include <sys/resource.h>

#include "kselftest_harness.h"
#include "lib.h"

#define MAX_CPUS	64
#define SENDERS		3		/* of a group of the crowd, and as many receivers */
#define BLOCKS		SLOWED(100000)
#define MESSAGE		100

/* Shared with the processes that make the load. */
struct load {
	volatile bool done;
	volatile uint32_t attempted[MAX_CPUS];	/* marks, begun */
};

FIXTURE(torture)
{
	int fd;
	uint32_t nr_cpus;
	uint64_t blocks;		/* of a stream, to read */
	struct load *load;
	pid_t children[MAX_CPUS * (2 * SENDERS + 1)];
	unsigned int nr_children;
	int counters[MAX_CPUS];
	uint64_t inner[MAX_CPUS], outer[MAX_CPUS];	/* switches, by the kernel's count */
};

FIXTURE_SETUP(torture)
{
	const char *blocks = getenv("KBARMAN_TORTURE");
	uint32_t cpu;

	self->fd = device_open_free();
	self->nr_cpus = query(self->fd).nr_cpus;
	ASSERT_GE(MAX_CPUS, self->nr_cpus);
	self->blocks = blocks ? strtoull(blocks, NULL, 0) : BLOCKS;
	self->load = mmap(NULL, sizeof(*self->load), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->load);
	self->nr_children = 0;
	for (cpu = 0; cpu < self->nr_cpus; cpu++)
		self->counters[cpu] = switch_counter(cpu);
}

FIXTURE_TEARDOWN(torture)
{
	uint32_t cpu;

	for (cpu = 0; cpu < self->nr_cpus; cpu++)
		close(self->counters[cpu]);
	munmap(self->load, sizeof(*self->load));
	close(self->fd);
}

/* ---- the load ---- */

static uint32_t text_length(uint32_t number)
{
	return number * 37 % 200;
}

static char text_at(uint32_t cpu, uint32_t number, uint32_t i)
{
	return 'a' + (cpu + number + i * 7) % 26;
}

/* Marks of this CPU, one after the other. */
static void write_marks(struct load *load, uint32_t cpu)
{
	struct {
		struct kbarman_mark mark;
		char text[256];
	} m = { .mark = { .size = sizeof(m.mark), .type = KBARMAN_MARK_STRING, .channel = cpu } };
	/* With read permission: such a descriptor has as many as it likes. */
	int fd = open(KBARMAN_DEVICE, O_RDWR | O_CLOEXEC);
	uint32_t number, i;

	pin(cpu);
	for (number = 0; !load->done; number++) {
		m.mark.text_bytes = text_length(number);
		m.mark.colour = number;
		for (i = 0; i < m.mark.text_bytes; i++)
			m.text[i] = text_at(cpu, number, i);
		load->attempted[cpu] = number + 1;
		if (write(fd, &m, sizeof(m.mark) + m.mark.text_bytes) < 0)
			lost("no mark");
		if (number % 16 == 0)
			sched_yield();
	}
}

static void send_all(struct load *load, const int *pipes)
{
	static const char message[MESSAGE];
	unsigned int i;

	while (!load->done)
		for (i = 0; i < SENDERS; i++)
			if (write(pipes[2 * i + 1], message, MESSAGE) < 0)
				lost("no message sent");
}

static void receive_all(int pipe)
{
	char message[MESSAGE];

	while (read(pipe, message, MESSAGE) > 0)
		;
}

static pid_t child(void)
{
	pid_t pid = fork();

	if (pid < 0)
		lost("no process");
	if (!pid)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

/* Every sender of a group writes to every receiver of it. */
static void crowd_create(struct load *load, pid_t *children)
{
	int pipes[2 * SENDERS];
	unsigned int i, j;

	for (i = 0; i < SENDERS; i++)
		if (pipe2(pipes + 2 * i, O_CLOEXEC))
			lost("no pipe");
	for (i = 0; i < 2 * SENDERS; i++) {
		children[i] = child();
		if (children[i])
			continue;
		for (j = 0; j < 2 * SENDERS; j++)
			if (i < SENDERS ? j % 2 == 0 : j != 2 * (i - SENDERS))
				close(pipes[j]);
		if (i < SENDERS)
			send_all(load, pipes);
		else
			receive_all(pipes[2 * (i - SENDERS)]);
		_exit(0);
	}
	for (j = 0; j < 2 * SENDERS; j++)
		close(pipes[j]);
}

static void load_create(FIXTURE_DATA(torture) *self)
{
	uint32_t cpu;

	for (cpu = 0; cpu < self->nr_cpus; cpu++) {
		pid_t *children = self->children + self->nr_children;

		if (!cpu_online(cpu))
			continue;
		crowd_create(self->load, children);
		children[2 * SENDERS] = child();
		if (!children[2 * SENDERS]) {
			write_marks(self->load, cpu);
			_exit(0);
		}
		self->nr_children += 2 * SENDERS + 1;
	}
}

static void load_destroy(FIXTURE_DATA(torture) *self)
{
	int status;

	self->load->done = true;
	while (self->nr_children > 0) {
		waitpid(self->children[--self->nr_children], &status, 0);
		if (status)
			lost("a process of the load ended by %#x", status);
	}
}

/* The kernel's own count, around the session: it is exact to what lies between the two. */
static void begin(FIXTURE_DATA(torture) *self, struct kbarman_configure config)
{
	uint32_t cpu;

	if (configure(self->fd, config))
		lost("no configuration");
	for (cpu = 0; cpu < self->nr_cpus; cpu++)
		self->outer[cpu] = counter_now(self->counters[cpu]);
	if (start(self->fd))
		lost("no start");
	for (cpu = 0; cpu < self->nr_cpus; cpu++)
		self->inner[cpu] = counter_now(self->counters[cpu]);
	load_create(self);
}

static void end(FIXTURE_DATA(torture) *self)
{
	uint32_t cpu;

	load_destroy(self);
	for (cpu = 0; cpu < self->nr_cpus; cpu++)
		self->inner[cpu] = counter_now(self->counters[cpu]) - self->inner[cpu];
	if (stop(self->fd))
		lost("no stop");
	for (cpu = 0; cpu < self->nr_cpus; cpu++)
		self->outer[cpu] = counter_now(self->counters[cpu]) - self->outer[cpu];
}

/* ---- looking at what is read ---- */

/* What has been seen of one CPU. */
struct seen {
	uint64_t records, switches, samples, marks, losses, last;
	int64_t number;			/* of the last mark, -1: none yet */
	uint64_t missing;		/* marks left out between two */
	const char *fault;
};

static const char *judge_mark(uint32_t cpu, const struct bm_protocol_annotation *a)
{
	uint32_t length = text_length(a->colour), i;

	/* The mark that tells of losses. */
	if (a->type == BM_ANNOTATION_BOOKMARK)
		return NULL;
	if (a->channel != cpu)
		return "a mark of another CPU";
	/* An empty text is the end of the one before, and has no NUL. */
	if (a->data_length != (length ? length + 1 : 0))
		return "a mark with a text of another one's length";
	for (i = 0; i < length; i++)
		if (a->data[i] != text_at(cpu, a->colour, i))
			return "a mark that is torn";
	return length && a->data[length] ? "a mark without an end" : NULL;
}

static void look(struct seen *seen, const void *map, uint32_t cpu, const union record *r,
		 size_t length)
{
	const char *fault = judge_record(map, cpu, r, length);

	if (!fault && r->header.timestamp < seen->last)
		fault = "time goes back";
	seen->last = r->header.timestamp;
	seen->records++;
	switch (r->header.record_type) {
	case BM_RECORD_TASK_SWITCH:
		seen->switches++;
		break;
	case BM_RECORD_SAMPLE_WITH_PC:
		seen->samples++;
		break;
	case BM_RECORD_CUSTOM_COUNTER:
		seen->losses += losses_told(r);
		break;
	case BM_RECORD_ANNOTATION:
		fault = fault ?: judge_mark(cpu, &r->annotation);
		if (r->annotation.type == BM_ANNOTATION_BOOKMARK)
			break;
		if (seen->number >= 0 && r->annotation.colour <= seen->number)
			fault = fault ?: "a mark comes twice, or too late";
		if (seen->number >= 0 || seen->marks)
			seen->missing += r->annotation.colour - seen->number - 1;
		seen->number = r->annotation.colour;
		seen->marks++;
	}
	if (!seen->fault)
		seen->fault = fault;
}

static void look_at_all(struct seen *seen, const void *map, uint32_t cpu, struct walk *walk)
{
	const union record *r;

	while ((r = walk_next(walk)))
		look(seen, map, cpu, r, walk->length);
	if (walk->damage && !seen->fault)
		seen->fault = walk->damage;
}

/*
 * A copy of what the ring holds now, by the rule in uapi/kbarman.h, into @copy, which has
 * the ring's size. False: the writer was faster.
 */
static bool snapshot(const void *map, uint8_t *copy, struct walk *walk)
{
	const struct bm_datastore_header_data *store = capture_store(map);
	uint64_t oldest, from, part;

	*walk = walk_from(map, 0);
	walk->at = __atomic_load_n(&store->read_offset, __ATOMIC_ACQUIRE);
	if (walk->at > walk->end)
		return false;
	from = walk->at & walk->mask;
	part = walk->mask + 1 - from;
	part = part < walk->end - walk->at ? part : walk->end - walk->at;
	memcpy(copy + from, walk->data + from, part);
	memcpy(copy, walk->data, walk->end - walk->at - part);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	oldest = __atomic_load_n(&store->read_offset, __ATOMIC_RELAXED);
	if (oldest > walk->end)
		return false;
	walk->at = oldest > walk->at ? oldest : walk->at;
	walk->data = copy;
	return true;
}

/* Takes snapshots of all CPUs in turn, as anybody may, until it is told to stop. */
struct bystander {
	pthread_t thread;
	int fd;
	uint32_t nr_cpus;
	uint64_t blocks, wanted, tries, missing;
	const char *fault;
	volatile bool enough, stop;
};

static void *stand_by(void *argument)
{
	struct bystander *by = argument;
	struct kbarman_query q = query(by->fd);
	uint8_t *copy = malloc(q.ring_bytes);
	const void *maps[MAX_CPUS];
	uint32_t cpu;

	for (cpu = 0; cpu < by->nr_cpus; cpu++)
		maps[cpu] = cpu_online(cpu) ? map_cpu(by->fd, cpu) : NULL;
	for (cpu = 0; !by->stop && !by->fault; cpu = (cpu + 1) % by->nr_cpus) {
		struct seen seen = { .number = -1 };
		struct walk walk;

		by->tries++;
		if (!maps[cpu] || !snapshot(maps[cpu], copy, &walk))
			continue;
		look_at_all(&seen, maps[cpu], cpu, &walk);
		by->blocks += seen.records;
		by->missing += seen.missing;
		by->fault = seen.fault;
		by->enough = by->blocks >= by->wanted;
	}
	by->enough = true;
	for (cpu = 0; cpu < by->nr_cpus; cpu++)
		if (maps[cpu])
			munmap((void *)maps[cpu], q.map_bytes);
	free(copy);
	return NULL;
}

static void bystander_create(struct bystander *by, const FIXTURE_DATA(torture) *self)
{
	*by = (struct bystander) {
		.fd = device_open(), .nr_cpus = self->nr_cpus, .wanted = 10 * self->blocks };
	if (pthread_create(&by->thread, NULL, stand_by, by))
		lost("no thread");
}

static void bystander_destroy(struct bystander *by)
{
	by->stop = true;
	pthread_join(by->thread, NULL);
	close(by->fd);
}

/* ---- overwrite mode ---- */

#define EVERYTHING								\
	.sources = KBARMAN_SOURCE_SCHED | KBARMAN_SOURCE_IDLE |			\
		   KBARMAN_SOURCE_PMU | KBARMAN_SOURCE_MARKS,			\
	.events_ptr = sampled_or_clock(&cycles, 250000), .nr_events = 2

TEST_F_TIMEOUT(torture, snapshots_are_whole_while_all_cpus_write, 3600)
{
	struct bystander by;
	uint32_t cpu;

	begin(self, (struct kbarman_configure) { EVERYTHING, .ring_bytes = 64 * KIB });
	bystander_create(&by, self);
	while (!by.enough)
		usleep(10000);
	end(self);
	bystander_destroy(&by);
	TH_LOG("%llu blocks in %llu snapshots", (unsigned long long)by.blocks,
	       (unsigned long long)by.tries);
	EXPECT_EQ(NULL, by.fault) TH_LOG("%s", by.fault);
	EXPECT_EQ(0, by.missing);
	for (cpu = 0; cpu < self->nr_cpus; cpu++) {
		struct kbarman_stats s = stats(self->fd, cpu);
		struct seen seen = { .number = -1 };
		const void *map = map_cpu(self->fd, cpu);
		struct walk walk = walk_begin(map);

		look_at_all(&seen, map, cpu, &walk);
		EXPECT_EQ(NULL, seen.fault) TH_LOG("%s", seen.fault);
		EXPECT_EQ(s.written, s.overwritten + seen.records);
		EXPECT_LT(0, s.overwritten);
		/* The newest is there, and nothing between it and the oldest is missing. */
		if (seen.marks)
			EXPECT_EQ(self->load->attempted[cpu], seen.number + 1);
		EXPECT_EQ(0, seen.missing);
		EXPECT_EQ(0, lost_records(&s));
	}
}

/* ---- stream mode ---- */

/* Read all that is there, then give it back. */
static void drain(int fd, const void *map, uint32_t cpu, struct seen *seen)
{
	struct walk walk = walk_begin(map);

	look_at_all(seen, map, cpu, &walk);
	if (consume(fd, cpu, walk.at) && !seen->fault)
		seen->fault = "consume was refused";
}

static uint64_t drain_all(int fd, const void *const *maps, uint32_t nr_cpus, struct seen *seen)
{
	uint64_t records = 0;
	uint32_t cpu;

	for (cpu = 0; cpu < nr_cpus; cpu++) {
		drain(fd, maps[cpu], cpu, &seen[cpu]);
		records += seen[cpu].records;
	}
	return records;
}

static uint64_t lost_of_all(const FIXTURE_DATA(torture) *self)
{
	uint64_t lost = 0;
	uint32_t cpu;

	for (cpu = 0; cpu < self->nr_cpus; cpu++) {
		struct kbarman_stats s = stats(self->fd, cpu);

		lost += lost_records(&s);
	}
	return lost;
}

/* How long the reader was away from the rings at most, and in what time the fastest one is full. */
struct pace {
	uint64_t away, full;	/* ns */
};

/* A session that the reader reads until it has enough. */
static struct pace stream_all(FIXTURE_DATA(torture) *self, const void **maps, struct seen *seen,
			      struct bystander *by)
{
	uint64_t begun, now, last, most = 1;
	struct pace pace = { 0 };
	uint32_t cpu;

	memset(self->load, 0, sizeof(*self->load));
	begin(self, (struct kbarman_configure) {
		EVERYTHING, .mode = KBARMAN_MODE_STREAM, .ring_bytes = 4 * MIB });
	for (cpu = 0; cpu < self->nr_cpus; cpu++) {
		maps[cpu] = map_cpu(self->fd, cpu);
		seen[cpu] = (struct seen) { .number = -1 };
	}
	bystander_create(by, self);
	if (setpriority(PRIO_PROCESS, thread_id(), -20))
		lost("no priority");
	begun = last = clock_ns(CLOCK_MONOTONIC);
	while (drain_all(self->fd, maps, self->nr_cpus, seen) < self->blocks) {
		usleep(10000);
		now = clock_ns(CLOCK_MONOTONIC);
		pace.away = now - last > pace.away ? now - last : pace.away;
		last = now;
	}
	end(self);
	pace.full = clock_ns(CLOCK_MONOTONIC) - begun;
	setpriority(PRIO_PROCESS, thread_id(), 0);
	bystander_destroy(by);
	drain_all(self->fd, maps, self->nr_cpus, seen);
	for (cpu = 0; cpu < self->nr_cpus; cpu++) {
		uint64_t written = walk_begin(maps[cpu]).end;

		most = written > most ? written : most;
	}
	pace.full = (double)pace.full * 4 * MIB / most;
	return pace;
}

/*
 * The highest rate that this machine reaches, on all of its CPUs. The reader comes first,
 * or it would be one of many who want them; and looking at every byte is slow here. In a VM
 * whose host has other work, its CPU may stand still while another one writes: if it was away
 * for half of the time in which a ring is full, it tries again.
 */
TEST_F_TIMEOUT(torture, a_stream_of_all_cpus_loses_nothing_with_4_mib, 3600)
{
	struct seen seen[MAX_CPUS];
	const void *maps[MAX_CPUS];
	struct bystander by;
	struct pace pace;
	int tries = 3;
	uint32_t cpu;

	for (;;) {
		pace = stream_all(self, maps, seen, &by);
		TH_LOG("%llu blocks in snapshots; the reader was away for %llu ms, a ring is full in %llu",
		       (unsigned long long)by.blocks, (unsigned long long)pace.away / 1000000,
		       (unsigned long long)pace.full / 1000000);
		if (!lost_of_all(self) || 2 * pace.away < pace.full || !--tries)
			break;
		for (cpu = 0; cpu < self->nr_cpus; cpu++)
			munmap((void *)maps[cpu], query(self->fd).map_bytes);
	}
	EXPECT_EQ(NULL, by.fault) TH_LOG("%s", by.fault);
	EXPECT_EQ(0, by.missing);
	for (cpu = 0; cpu < self->nr_cpus; cpu++) {
		struct kbarman_stats s = stats(self->fd, cpu);

		EXPECT_EQ(NULL, seen[cpu].fault) TH_LOG("%s", seen[cpu].fault);
		EXPECT_EQ(0, lost_records(&s));
		EXPECT_EQ(0, s.overwritten);
		EXPECT_EQ(s.written, seen[cpu].records);
		EXPECT_EQ(self->load->attempted[cpu], seen[cpu].marks);
		/* One of them says who ran as recording began, and was no switch. */
		EXPECT_LE(self->inner[cpu], seen[cpu].switches - 1);
		EXPECT_GE(self->outer[cpu], seen[cpu].switches - 1);
		EXPECT_LT(0, seen[cpu].samples);
	}
}

/* By two other hands: the kernel's count of switches, and who wrote the marks. */
TEST_F_TIMEOUT(torture, a_stalled_reader_of_all_cpus_loses_what_is_counted, 3600)
{
	struct seen seen[MAX_CPUS] = { 0 };
	const void *maps[MAX_CPUS];
	uint64_t wanted = 0;
	uint32_t cpu;

	begin(self, (struct kbarman_configure) {
		.mode = KBARMAN_MODE_STREAM, .ring_bytes = 64 * KIB,
		.sources = KBARMAN_SOURCE_SCHED | KBARMAN_SOURCE_MARKS });
	for (cpu = 0; cpu < self->nr_cpus; cpu++) {
		maps[cpu] = map_cpu(self->fd, cpu);
		seen[cpu].number = -1;
	}
	while (drain_all(self->fd, maps, self->nr_cpus, seen) < self->blocks / 4) {
		/* Only now and then, and not before something was lost. */
		wanted += 100;
		while (stats(self->fd, KBARMAN_CPU_ALL).lost[KBARMAN_LOST_FULL] < wanted)
			usleep(1000);
	}
	end(self);
	drain_all(self->fd, maps, self->nr_cpus, seen);
	for (cpu = 0; cpu < self->nr_cpus; cpu++) {
		struct kbarman_stats s = stats(self->fd, cpu);
		uint64_t attempts = seen[cpu].switches - 1 + seen[cpu].marks + lost_records(&s);

		EXPECT_EQ(NULL, seen[cpu].fault) TH_LOG("%s", seen[cpu].fault);
		EXPECT_EQ(s.written, seen[cpu].records);
		EXPECT_EQ(lost_records(&s), s.lost[KBARMAN_LOST_FULL]);
		EXPECT_LT(0, lost_records(&s));
		EXPECT_LE(self->inner[cpu] + self->load->attempted[cpu], attempts)
			TH_LOG("CPU %u: %u marks begun, %llu there, %llu switches there, %llu lost", cpu,
			       self->load->attempted[cpu], (unsigned long long)seen[cpu].marks,
			       (unsigned long long)seen[cpu].switches,
			       (unsigned long long)lost_records(&s));
		EXPECT_GE(self->outer[cpu] + self->load->attempted[cpu], attempts);
		EXPECT_GE(lost_records(&s), seen[cpu].missing);
		EXPECT_GE(lost_records(&s), seen[cpu].losses);
	}
}

TEST_HARNESS_MAIN
