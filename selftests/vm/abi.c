// SPDX-License-Identifier: MIT
/* Every call's good and bad arguments, and every error that kbarman.h names. */
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stddef.h>

#include "kselftest_harness.h"
#include "lib.h"

#define SCHED	KBARMAN_SOURCE_SCHED

static const struct kbarman_configure plain = { .sources = SCHED };

/* ---- what holds for every struct ---- */

/*
 * The arguments are zero but for the size and what the setup sets; on a configured, stopped
 * session in stream mode that is a good call for each.
 */
FIXTURE(call)
{
	int fd;
	uint32_t known;		/* bytes that the kernel knows of the struct */
	union {
		uint8_t bytes[4096];
		uint32_t size;
		struct kbarman_configure configure;
		struct kbarman_stats stats;
		struct kbarman_add_symbols add_symbols;
	};
};

/*
 * One kernel serves programs of 32 bits and of 64: to both a struct is the same. i386 aligns
 * 64-bit numbers to four bytes, so a hole in one of these shows itself there. The first sizes
 * never change: a program that was built with them is served forever.
 */
#define LENGTH(type, bytes) _Static_assert(sizeof(struct type) == (bytes), #type)
#define FIRST(name, bytes) _Static_assert(KBARMAN_##name##_SIZE_VER0 == (bytes), #name)
LENGTH(kbarman_get_abi, KBARMAN_GET_ABI_SIZE);
LENGTH(kbarman_query, 168);
FIRST(QUERY, 168);
LENGTH(kbarman_map_tail, 200);
FIRST(MAP_TAIL, 120);
LENGTH(kbarman_event, 328);
FIRST(EVENT, 328);
LENGTH(kbarman_configure, 184);
FIRST(CONFIGURE, 184);
LENGTH(kbarman_start, 16);
FIRST(START, 16);
LENGTH(kbarman_consume, 48);
FIRST(CONSUME, 16);
LENGTH(kbarman_stats, 240);
FIRST(STATS, 216);
LENGTH(kbarman_clock_pair, 32);
LENGTH(kbarman_clock, 104);
FIRST(CLOCK, 104);
LENGTH(kbarman_map_row, 40);
FIRST(MAP_ROW, 40);
LENGTH(kbarman_add_maps, 24);
FIRST(ADD_MAPS, 24);
LENGTH(kbarman_add_symbols, 24);
FIRST(ADD_SYMBOLS, 24);
LENGTH(kbarman_session_info, 104);
FIRST(SESSION_INFO, 104);
LENGTH(kbarman_sessions, 40);
FIRST(SESSIONS, 40);
LENGTH(kbarman_choose, 16);
FIRST(CHOOSE, 16);
LENGTH(kbarman_adopt, 16);
FIRST(ADOPT, 16);
LENGTH(kbarman_turn, 8);
FIRST(TURN, 8);
LENGTH(kbarman_mark, 40);
FIRST(MARK, 40);
LENGTH(kbarman_mark_state, 8);
LENGTH(kbarman_mark_series, 320);
FIRST(MARK_SERIES, 320);

FIXTURE_VARIANT(call)
{
	unsigned long command;
	uint32_t first;			/* the smallest size */
	size_t reserved;		/* 4 bytes there must be zero; 0: none */
};

#define RESERVED(type) offsetof(struct type, reserved)

FIXTURE_VARIANT_ADD(call, query) { KBARMAN_QUERY, KBARMAN_QUERY_SIZE_VER0,
				   RESERVED(kbarman_query) };
FIXTURE_VARIANT_ADD(call, configure) { KBARMAN_CONFIGURE, KBARMAN_CONFIGURE_SIZE_VER0, 0 };
FIXTURE_VARIANT_ADD(call, start) { KBARMAN_START, KBARMAN_START_SIZE_VER0, 0 };
FIXTURE_VARIANT_ADD(call, consume) { KBARMAN_CONSUME, KBARMAN_CONSUME_SIZE_VER0,
				     RESERVED(kbarman_consume) };
FIXTURE_VARIANT_ADD(call, stats) { KBARMAN_STATS, KBARMAN_STATS_SIZE_VER0, 0 };
FIXTURE_VARIANT_ADD(call, clock) { KBARMAN_CLOCK, KBARMAN_CLOCK_SIZE_VER0, 0 };
FIXTURE_VARIANT_ADD(call, add_maps) { KBARMAN_ADD_MAPS, KBARMAN_ADD_MAPS_SIZE_VER0,
				      RESERVED(kbarman_add_maps) };
FIXTURE_VARIANT_ADD(call, add_symbols) { KBARMAN_ADD_SYMBOLS, KBARMAN_ADD_SYMBOLS_SIZE_VER0,
					 offsetof(struct kbarman_add_symbols, flags) };
FIXTURE_VARIANT_ADD(call, sessions) { KBARMAN_SESSIONS, KBARMAN_SESSIONS_SIZE_VER0, 0 };
FIXTURE_VARIANT_ADD(call, choose) { KBARMAN_CHOOSE, KBARMAN_CHOOSE_SIZE_VER0, 0 };

FIXTURE_SETUP(call)
{
	struct kbarman_configure stream = plain;

	stream.mode = KBARMAN_MODE_STREAM;
	self->fd = device_open_free();
	/* Who owns a session can't choose one. */
	if (variant->command != KBARMAN_CHOOSE)
		ASSERT_EQ(0, configure(self->fd, stream));
	self->size = self->known = _IOC_SIZE(variant->command);
	if (variant->command == KBARMAN_CONFIGURE)
		self->configure.sources = SCHED;
	if (variant->command == KBARMAN_STATS)
		self->stats.cpu = KBARMAN_CPU_ALL;
	if (variant->command == KBARMAN_ADD_SYMBOLS)
		self->add_symbols.bytes_ptr = (uintptr_t)self->bytes, self->add_symbols.bytes = 1;
}

FIXTURE_TEARDOWN(call)
{
	close(self->fd);
}

/* The call as a program makes it whose struct has @size bytes. */
static int call_sized(int fd, unsigned long command, void *argument, uint32_t size)
{
	*(uint32_t *)argument = size;
	return call(fd, sized(command, size), argument);
}

static bool answers(unsigned long command)
{
	return _IOC_DIR(command) & _IOC_READ;
}

TEST_F(call, exact_size_is_accepted)
{
	EXPECT_EQ(0, call(self->fd, variant->command, self->bytes));
	EXPECT_EQ(self->known, self->size);
}

TEST_F(call, smaller_than_the_first_version_is_refused)
{
	uint32_t size;

	for (size = 0; size < variant->first; size++) {
		EXPECT_EQ(-EINVAL, call_sized(self->fd, variant->command, self->bytes, size))
			TH_LOG("size %u of %u", size, self->known);
	}
}

/* The kernel knows fields that the program does not. */
TEST_F(call, a_program_with_less_fields_is_served)
{
	uint32_t size;

	for (size = variant->first; size < self->known; size += 8) {
		memset(self->bytes + size, 0xff, sizeof(self->bytes) - size);
		EXPECT_EQ(0, call_sized(self->fd, variant->command, self->bytes, size))
			TH_LOG("size %u of %u", size, self->known);
		EXPECT_EQ(answers(variant->command) ? self->known : size, self->size);
		EXPECT_EQ(0xff, self->bytes[size]);
		memset(self->bytes + size, 0, sizeof(self->bytes) - size);
	}
}

/* The program knows fields that the kernel does not, and does not use them. */
TEST_F(call, a_program_with_more_fields_is_served)
{
	static const uint8_t zero[64];

	EXPECT_EQ(0, call_sized(self->fd, variant->command, self->bytes, self->known + 64));
	EXPECT_EQ(answers(variant->command) ? self->known : self->known + 64, self->size);
	EXPECT_EQ(0, memcmp(self->bytes + self->known, zero, sizeof(zero)));
}

TEST_F(call, fields_that_the_kernel_does_not_know_are_too_big)
{
	self->bytes[self->known + 63] = 1;
	EXPECT_EQ(-E2BIG, call_sized(self->fd, variant->command, self->bytes, self->known + 64));
	EXPECT_EQ(answers(variant->command) ? self->known : self->known + 64, self->size);
}

TEST_F(call, a_size_that_is_not_the_numbers_is_refused)
{
	self->size = self->known + 8;
	EXPECT_EQ(-EINVAL, call(self->fd, variant->command, self->bytes));
	self->size = 0;
	EXPECT_EQ(-EINVAL, call(self->fd, variant->command, self->bytes));
}

TEST_F(call, another_direction_is_another_call)
{
	unsigned int direction;

	for (direction = 0; direction < 4; direction++) {
		unsigned long command = _IOC(direction, 'k', _IOC_NR(variant->command),
					     self->known);

		if (command == variant->command)
			continue;
		EXPECT_EQ(-ENOTTY, call(self->fd, command, self->bytes))
			TH_LOG("direction %u", direction);
	}
}

TEST_F(call, bytes_behind_the_size_do_not_matter)
{
	memset(self->bytes + self->known, 0xff, sizeof(self->bytes) - self->known);
	EXPECT_EQ(0, call(self->fd, variant->command, self->bytes));
	EXPECT_EQ(0xff, self->bytes[self->known]);
}

TEST_F(call, reserved_fields_must_be_zero)
{
	size_t i;

	for (i = variant->reserved; i && i < variant->reserved + 4; i++) {
		self->bytes[i] = 1;
		ASSERT_EQ(-EINVAL, call(self->fd, variant->command, self->bytes))
			TH_LOG("byte %zu", i);
		self->bytes[i] = 0;
		self->size = self->known;
	}
}

TEST_F(call, bad_pointers_fault)
{
	char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *across;

	ASSERT_NE(MAP_FAILED, pages);
	ASSERT_EQ(0, munmap(pages + 4096, 4096));
	EXPECT_EQ(-EFAULT, call(self->fd, variant->command, NULL));
	EXPECT_EQ(-EFAULT, call(self->fd, variant->command, pages + 4096));
	EXPECT_EQ(-EFAULT, call(self->fd, variant->command, (void *)-4096L));
	across = pages + 4096 - self->known + 8;
	memcpy(across, self->bytes, self->known - 8);
	EXPECT_EQ(-EFAULT, call(self->fd, variant->command, across));
}

/* And a call that answers nothing does not try to. */
TEST_F(call, answer_to_read_only_memory_faults)
{
	char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(MAP_FAILED, page);
	memcpy(page, self->bytes, self->known);
	ASSERT_EQ(0, mprotect(page, 4096, PROT_READ));
	EXPECT_EQ(answers(variant->command) ? -EFAULT : 0, call(self->fd, variant->command, page));
}

TEST_F(call, write_only_descriptor_is_refused)
{
	int fd = open(KBARMAN_DEVICE, O_WRONLY | O_CLOEXEC);

	ASSERT_LE(0, fd);
	EXPECT_EQ(-EBADF, call(fd, variant->command, self->bytes));
	close(fd);
}

/* ---- what each call refuses by itself ---- */

FIXTURE(abi)
{
	int fd;
};

FIXTURE_SETUP(abi)
{
	self->fd = device_open_free();
}

FIXTURE_TEARDOWN(abi)
{
	close(self->fd);
}

TEST_F(abi, unknown_calls_are_refused)
{
	uint8_t bytes[512] = { 0 };
	unsigned int number;

	for (number = 0; number < 256; number++) {
		if (number >= 0xb0 && number <= 0xbe)
			continue;
		EXPECT_EQ(-ENOTTY, call(self->fd, _IO('k', number), bytes))
			TH_LOG("number 0x%x", number);
	}
	EXPECT_EQ(-ENOTTY, call(self->fd, _IOWR('K', 0xb0, struct kbarman_query), bytes));
}

/* What a tool of ABI 2 asks first: it sees that the module is of another one, and says so. */
TEST_F(abi, a_tool_of_abi_2_is_told_the_version)
{
	uint32_t words[KBARMAN_GET_ABI_SIZE / 4 + 1] = { KBARMAN_GET_ABI_SIZE };
	unsigned int i;

	words[KBARMAN_GET_ABI_SIZE / 4] = 4711;
	EXPECT_EQ(0, call(self->fd, _IO('k', 0xb0), words));
	EXPECT_EQ(KBARMAN_GET_ABI_SIZE, words[0]);
	EXPECT_EQ(KBARMAN_ABI, words[1]);
	for (i = 2; i < KBARMAN_GET_ABI_SIZE / 4; i++)
		EXPECT_EQ(0, words[i]);
	EXPECT_EQ(4711, words[i]);
	for (i = 0xb1; i < 0xbe; i++)
		if (i != _IOC_NR(KBARMAN_STOP) && i != _IOC_NR(KBARMAN_MARK_STATE))
			EXPECT_EQ(-ENOTTY, call(self->fd, _IO('k', i), words)) TH_LOG("0x%x", i);
}

TEST_F(abi, query_before_configure_tells_of_the_device_only)
{
	struct kbarman_query q = query(self->fd);
	struct kbarman_query zero = { 0 };

	EXPECT_EQ(KBARMAN_ABI, q.abi);
	EXPECT_EQ(0, q.state);
	EXPECT_EQ(sysconf(_SC_PAGESIZE), q.page_size);
	EXPECT_LE(sysconf(_SC_NPROCESSORS_CONF), q.nr_cpus);
	EXPECT_LT(0, q.clock_hz);
	EXPECT_EQ(64 * KIB, q.min_ring_bytes);
	EXPECT_EQ(1024 * MIB, q.max_ring_bytes);
	EXPECT_EQ(0, memcmp(&q.mode, &zero.mode, offsetof(struct kbarman_query, absent) -
						 offsetof(struct kbarman_query, mode)));
	EXPECT_EQ(0, q.recording);
	EXPECT_LE(q.nr_cpus, q.nr_cpu_words * 64);
}

TEST_F(abi, pmu_feature_and_name_come_together)
{
	struct kbarman_query q = query(self->fd);

	EXPECT_EQ(!!(q.features & KBARMAN_FEATURE_PMU), !!q.pmu_name[0]);
}

TEST_F(abi, query_after_configure_describes_the_session)
{
	struct kbarman_configure c = plain;
	struct kbarman_query q;
	uint64_t session;

	c.mode = KBARMAN_MODE_STREAM;
	c.ring_bytes = 128 * KIB;
	ASSERT_EQ(0, configure(self->fd, c));
	q = query(self->fd);
	EXPECT_EQ(KBARMAN_STATE_CONFIGURED | KBARMAN_STATE_OWNED | KBARMAN_STATE_MINE, q.state);
	EXPECT_EQ(KBARMAN_MODE_STREAM, q.mode);
	EXPECT_EQ(SCHED, q.sources);
	EXPECT_EQ(0, q.nr_events);
	EXPECT_EQ(128 * KIB, q.ring_bytes);
	EXPECT_EQ(0, q.header_bytes % q.page_size);
	EXPECT_LE(q.header_bytes + sizeof(struct bm_datastore_header_data) + q.ring_bytes,
		  q.map_bytes);
	EXPECT_LE(q.map_bytes, q.map_stride);
	session = q.session;
	ASSERT_EQ(0, configure(self->fd, c));
	EXPECT_EQ(session + 1, query(self->fd).session);
}

TEST_F(abi, the_mask_has_the_cpus_that_can_be_mapped)
{
	uint64_t only_first = 1, mask[1024];
	struct kbarman_configure c = plain;
	struct kbarman_query q = { .size = sizeof(q), .cpus_ptr = (uintptr_t)mask, .nr_cpu_words = 1024 };
	uint32_t cpu;

	memset(mask, 0xff, sizeof(mask));
	ASSERT_EQ(0, call(self->fd, KBARMAN_QUERY, &q));
	for (cpu = 0; cpu < q.nr_cpu_words; cpu++)
		EXPECT_EQ(0, mask[cpu]);
	EXPECT_EQ(~0ULL, mask[q.nr_cpu_words]);
	ASSERT_EQ(0, configure(self->fd, c));
	q.size = sizeof(q);
	q.nr_cpu_words = 1024;
	ASSERT_EQ(0, call(self->fd, KBARMAN_QUERY, &q));
	for (cpu = 0; cpu < q.nr_cpus; cpu++)
		EXPECT_EQ(try_map(self->fd, &q, cpu) != MAP_FAILED, mask[cpu / 64] >> cpu % 64 & 1)
			TH_LOG("CPU %u", cpu);
	c.cpus_ptr = (uintptr_t)&only_first;
	c.nr_cpu_words = 1;
	ASSERT_EQ(0, configure(self->fd, c));
	q.size = sizeof(q);
	q.nr_cpu_words = 1;
	ASSERT_EQ(0, call(self->fd, KBARMAN_QUERY, &q));
	EXPECT_EQ(1, mask[0]);
	q.size = sizeof(q);
	q.cpus_ptr = 16;
	q.nr_cpu_words = 1;
	EXPECT_EQ(-EFAULT, call(self->fd, KBARMAN_QUERY, &q));
}

TEST_F(abi, a_map_says_whose_it_is)
{
	const struct kbarman_map_tail *tail;
	struct kbarman_stats s;
	struct kbarman_query q;
	uint64_t session;

	ASSERT_EQ(0, configure(self->fd, plain));
	q = query(self->fd);
	session = q.session;
	tail = tail_of(map_cpu(self->fd, 0), &q);
	EXPECT_EQ(sizeof(*tail), tail->size);
	EXPECT_EQ(KBARMAN_ABI, tail->abi);
	EXPECT_EQ(0, tail->cpu);
	EXPECT_EQ(q.word_bytes, tail->word_bytes);
	EXPECT_EQ(session, tail->session);
	EXPECT_EQ(0, tail->recording);
	EXPECT_EQ(KBARMAN_STATE_CONFIGURED, tail->state);
	ASSERT_EQ(0, start(self->fd));
	EXPECT_EQ(2, tail->recording);
	EXPECT_EQ(2, query(self->fd).recording);
	EXPECT_EQ(KBARMAN_STATE_CONFIGURED | KBARMAN_STATE_RUNNING, tail->state);
	ping_pong(0, 100);
	ASSERT_EQ(0, stop(self->fd));
	EXPECT_EQ(0, tail->state & KBARMAN_STATE_RUNNING);
	EXPECT_EQ(query(self->fd).generation, tail->generation);
	s = stats(self->fd, 0);
	EXPECT_LT(200, tail->counts.written);
	EXPECT_EQ(s.written, tail->counts.written);
	EXPECT_EQ(s.overwritten, tail->counts.overwritten);
	EXPECT_EQ(0, memcmp(s.lost, tail->counts.lost, sizeof(s.lost)));
	ASSERT_EQ(0, start(self->fd));
	EXPECT_EQ(4, tail->recording);
	EXPECT_EQ(0, tail->counts.written);
	EXPECT_EQ(s.written, tail->former.written);
	EXPECT_EQ(s.overwritten, tail->former.overwritten);
	EXPECT_EQ(0, memcmp(s.lost, tail->former.lost, sizeof(s.lost)));
	ASSERT_EQ(0, stop(self->fd));
	EXPECT_EQ(s.written, tail->former.written);
	/* The map stays that of the former configuration. */
	ASSERT_EQ(0, configure(self->fd, plain));
	EXPECT_EQ(session, tail->session);
	EXPECT_EQ(4, tail->recording);
	EXPECT_EQ(session + 1, tail_of(map_cpu(self->fd, 0), &q)->session);
	EXPECT_EQ(0, query(self->fd).recording);
}

TEST_F(abi, state_follows_start_and_stop)
{
	ASSERT_EQ(0, configure(self->fd, plain));
	EXPECT_EQ(0, query(self->fd).state & KBARMAN_STATE_RUNNING);
	ASSERT_EQ(0, start(self->fd));
	EXPECT_NE(0, query(self->fd).state & KBARMAN_STATE_RUNNING);
	ASSERT_EQ(0, stop(self->fd));
	EXPECT_EQ(0, query(self->fd).state & KBARMAN_STATE_RUNNING);
}

TEST_F(abi, ring_size_is_rounded_up_to_a_power_of_two)
{
	struct kbarman_configure c = plain;

	c.ring_bytes = 64 * KIB + 1;
	ASSERT_EQ(0, configure(self->fd, c));
	EXPECT_EQ(128 * KIB, query(self->fd).ring_bytes);
	c.ring_bytes = 0;
	ASSERT_EQ(0, configure(self->fd, c));
	EXPECT_EQ(1 * MIB, query(self->fd).ring_bytes);
}

/* `field` of a plain configuration set to `value` is refused with `error`, and named. */
#define EXPECT_REFUSED(error, field, value) do { \
	struct kbarman_configure c_ = plain; \
	c_.size = sizeof(c_); \
	c_.field = (value); \
	EXPECT_EQ(-(error), call(self->fd, KBARMAN_CONFIGURE, &c_)) \
		TH_LOG("%s = %s", #field, #value); \
	EXPECT_EQ(offsetof(struct kbarman_configure, field), c_.bad_offset) \
		TH_LOG("%s = %s", #field, #value); \
} while (0)

TEST_F(abi, configure_refuses_unknown_modes_sources_and_flags)
{
	unsigned int bit;

	EXPECT_REFUSED(EINVAL, mode, 2);
	EXPECT_REFUSED(EINVAL, mode, ~0U);
	for (bit = 13; bit < 32; bit++) {
		EXPECT_REFUSED(EINVAL, sources, SCHED | 1U << bit);
	}
	EXPECT_REFUSED(EINVAL, flags, 1U << 8);
	for (bit = 12; bit < 32; bit++) {
		EXPECT_REFUSED(EINVAL, flags, 1U << bit);
	}
}

TEST_F(abi, configure_refuses_what_makes_no_sense)
{
	EXPECT_REFUSED(EINVAL, sources, 0);
	EXPECT_REFUSED(EINVAL, flags, KBARMAN_CONFIGURE_INHERIT);
	EXPECT_REFUSED(EINVAL, max_series, 1);
	EXPECT_REFUSED(EINVAL, max_stack, 1);
	EXPECT_REFUSED(EINVAL, stack_ns, 1);
	EXPECT_REFUSED(EINVAL, count_ns, 1);
	EXPECT_REFUSED(EINVAL, max_tasks, 1);
	EXPECT_REFUSED(EINVAL, watermark, 2 * MIB);
}

/* Samples without PC have no chains. */
TEST_F(abi, configure_refuses_chains_of_nothing)
{
	static const uint32_t flags[] = { KBARMAN_CONFIGURE_CHAIN_KERNEL, KBARMAN_CONFIGURE_CHAIN_USER,
					  KBARMAN_CONFIGURE_CHAIN_STACK };
	uint32_t features = query(self->fd).features;
	struct kbarman_configure c;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		EXPECT_REFUSED(EINVAL, flags, flags[i]);
		c = plain;
		c.sources |= KBARMAN_SOURCE_PMU;
		c.flags = flags[i] | KBARMAN_CONFIGURE_COUNT_SWITCH;
		c.nr_events = 1;
		c.events_ptr = sampled(&cpu_clock, 1, 0);
		EXPECT_EQ(-EINVAL, configure(self->fd, c));
	}
	if (features & KBARMAN_FEATURE_CHAIN_KERNEL) {
		c.flags = KBARMAN_CONFIGURE_CHAIN_KERNEL | KBARMAN_CONFIGURE_CHAIN_SWITCH |
			  KBARMAN_CONFIGURE_COUNT_SWITCH;
		EXPECT_EQ(0, configure(self->fd, c));
	}
}

TEST_F(abi, configure_names_the_element_that_is_wrong)
{
	struct kbarman_event events[2] = { cpu_clock, cpu_clock };
	struct kbarman_configure c = { .size = sizeof(c), .sources = KBARMAN_SOURCE_PMU, .nr_events = 2,
				       .event_bytes = sizeof(events[0]) };
	uint64_t words[4] = { 1, 0, 0, 1ULL << 63 };
	uint32_t pids[3] = { getpid(), ~0U, getpid() };

	events[1].name[0] = '\0';
	c.events_ptr = sampled(events, 2, 1000000);
	EXPECT_EQ(-EINVAL, call(self->fd, KBARMAN_CONFIGURE, &c));
	EXPECT_EQ(offsetof(struct kbarman_configure, events_ptr), c.bad_offset);
	EXPECT_EQ(1, c.bad_index);
	EXPECT_EQ(offsetof(struct kbarman_event, name), c.bad_member);
	c = plain;
	c.size = sizeof(c);
	c.cpus_ptr = (uintptr_t)words;
	c.nr_cpu_words = 4;
	EXPECT_EQ(-EINVAL, call(self->fd, KBARMAN_CONFIGURE, &c));
	EXPECT_EQ(offsetof(struct kbarman_configure, cpus_ptr), c.bad_offset);
	EXPECT_EQ(255, c.bad_index);
	EXPECT_EQ(0, c.bad_member);
	words[3] = 0;
	EXPECT_EQ(0, call(self->fd, KBARMAN_CONFIGURE, &c));
	EXPECT_EQ(0, c.bad_offset);
	EXPECT_EQ(0, c.bad_index);
	c.pids_ptr = (uintptr_t)pids;
	c.nr_pids = 3;
	EXPECT_EQ(-ESRCH, call(self->fd, KBARMAN_CONFIGURE, &c));
	EXPECT_EQ(offsetof(struct kbarman_configure, pids_ptr), c.bad_offset);
	EXPECT_EQ(1, c.bad_index);
}

TEST_F(abi, configure_names_the_pointer_that_is_bad)
{
	struct kbarman_configure c = plain;

	c.size = sizeof(c);
	c.pids_ptr = 4096;
	c.nr_pids = 1;
	EXPECT_EQ(-EFAULT, call(self->fd, KBARMAN_CONFIGURE, &c));
	EXPECT_EQ(offsetof(struct kbarman_configure, pids_ptr), c.bad_offset);
	c.cpus_ptr = 4096;
	c.nr_cpu_words = 1;
	EXPECT_EQ(-EFAULT, call(self->fd, KBARMAN_CONFIGURE, &c));
	EXPECT_EQ(offsetof(struct kbarman_configure, cpus_ptr), c.bad_offset);
	c.nr_cpu_words = 0;
	c.sources = KBARMAN_SOURCE_PMU;
	c.events_ptr = 4096;
	c.event_bytes = sizeof(struct kbarman_event);
	c.nr_events = 1;
	EXPECT_EQ(-EFAULT, call(self->fd, KBARMAN_CONFIGURE, &c));
	EXPECT_EQ(offsetof(struct kbarman_configure, events_ptr), c.bad_offset);
}

/* As a program has them that knows a later kernel. */
TEST_F(abi, configure_names_the_event_that_this_kernel_does_not_know)
{
	struct { struct kbarman_event event; uint64_t more; } events[2] = { };
	struct kbarman_configure c = { .size = sizeof(c), .sources = KBARMAN_SOURCE_PMU, .nr_events = 2,
				       .event_bytes = sizeof(events[0]), .events_ptr = (uintptr_t)events };

	events[0].event = cpu_clock;
	events[0].event.attr.sample_period = 1000000;
	events[1].event = cpu_clock;
	events[1].more = 1;
	EXPECT_EQ(-E2BIG, call(self->fd, KBARMAN_CONFIGURE, &c));
	EXPECT_EQ(offsetof(struct kbarman_configure, events_ptr), c.bad_offset);
	EXPECT_EQ(1, c.bad_index);
	EXPECT_EQ(sizeof(struct kbarman_event), c.bad_member);
	events[1].more = 0;
	events[1].event.attr_bytes[KBARMAN_ATTR_BYTES - 1] = 1;
	c.event_bytes = sizeof(events[0]);
	EXPECT_EQ(-E2BIG, call(self->fd, KBARMAN_CONFIGURE, &c));
	EXPECT_EQ(1, c.bad_index);
	EXPECT_EQ(offsetof(struct kbarman_event, attr), c.bad_member);
}

TEST_F(abi, configure_names_the_chains_that_no_record_can_hold)
{
	struct kbarman_configure c = { .size = sizeof(c), .sources = KBARMAN_SOURCE_PMU, .nr_events = 1,
				       .event_bytes = sizeof(cpu_clock), .ring_bytes = 64 * KIB,
				       .flags = KBARMAN_CONFIGURE_CHAIN_KERNEL,
				       .max_stack = KBARMAN_MAX_STACK };

	if (!(query(self->fd).features & KBARMAN_FEATURE_CHAIN_KERNEL))
		SKIP(return, "this machine has no chains of the kernel");
	c.events_ptr = sampled(&cpu_clock, 1, 1000000);
	EXPECT_EQ(-E2BIG, call(self->fd, KBARMAN_CONFIGURE, &c));
	EXPECT_EQ(offsetof(struct kbarman_configure, max_stack), c.bad_offset);
}

TEST_F(abi, configure_refuses_wrong_sizes)
{
	EXPECT_REFUSED(EINVAL, ring_bytes, 1);
	EXPECT_REFUSED(EINVAL, ring_bytes, 64 * KIB - 1);
	EXPECT_REFUSED(EINVAL, ring_bytes, 1024 * MIB + 1);
	EXPECT_REFUSED(EINVAL, ring_bytes, ~0ULL);
	EXPECT_REFUSED(EINVAL, watermark, ~0ULL);
	EXPECT_REFUSED(EINVAL, max_tasks, ~0U);
	EXPECT_REFUSED(EINVAL, max_tasks, 0x7fffffff);
	EXPECT_REFUSED(EINVAL, max_maps, ~0U);
	EXPECT_REFUSED(EINVAL, max_maps, 0x7fffffff);
	EXPECT_REFUSED(EINVAL, max_strings, ~0U);
}

TEST_F(abi, configure_refuses_what_memory_cannot_hold)
{
	struct kbarman_configure c = plain;
	long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);

	if ((uint64_t)pages * size / sysconf(_SC_NPROCESSORS_CONF) > 1024 * MIB)
		SKIP(return, "this machine has memory for the largest rings");
	c.ring_bytes = 1024 * MIB;
	EXPECT_EQ(-ENOMEM, configure(self->fd, c));
	EXPECT_EQ(0, query(self->fd).state);
}

TEST_F(abi, configure_refuses_too_many_events_and_pids)
{
	EXPECT_REFUSED(E2BIG, nr_events, KBARMAN_EVENTS_MAX + 1);
	EXPECT_REFUSED(E2BIG, nr_events, ~0U);
	EXPECT_REFUSED(E2BIG, nr_pids, 4097);
	EXPECT_REFUSED(E2BIG, nr_pids, ~0U);
	EXPECT_REFUSED(E2BIG, max_series, 4097);
	EXPECT_REFUSED(E2BIG, max_series, ~0U);
}

TEST_F(abi, configure_refuses_a_name_without_end)
{
	struct kbarman_configure c = plain;

	memset(c.target_name, 'x', sizeof(c.target_name));
	EXPECT_EQ(-EINVAL, configure(self->fd, c));
	c.target_name[sizeof(c.target_name) - 1] = '\0';
	EXPECT_EQ(0, configure(self->fd, c));
}

TEST_F(abi, configure_refuses_processes_that_are_not_there)
{
	uint32_t pids[2] = { getpid(), 0 };
	struct kbarman_configure c = plain;
	pid_t gone = fork();

	if (!gone)
		_exit(0);
	waitpid(gone, NULL, 0);
	c.pids_ptr = (uintptr_t)pids;
	c.nr_pids = 1;
	EXPECT_EQ(0, configure(self->fd, c));
	c.nr_pids = 2;
	pids[1] = gone;
	EXPECT_EQ(-ESRCH, configure(self->fd, c));
	pids[1] = 0;
	EXPECT_EQ(-ESRCH, configure(self->fd, c));
	pids[1] = ~0U;
	EXPECT_EQ(-ESRCH, configure(self->fd, c));
}

TEST_F(abi, configure_refuses_cpus_that_are_not_there)
{
	struct kbarman_configure c = plain;
	uint64_t words[4] = { 1 };

	c.cpus_ptr = (uintptr_t)words;
	c.nr_cpu_words = 1;
	EXPECT_EQ(0, configure(self->fd, c));
	c.nr_cpu_words = 4;
	EXPECT_EQ(0, configure(self->fd, c));
	words[3] = 1ULL << 63;
	EXPECT_EQ(-EINVAL, configure(self->fd, c));
	words[0] = words[3] = 0;
	EXPECT_EQ(-EINVAL, configure(self->fd, c));
	words[0] = 1;
	c.nr_cpu_words = ~0U;
	EXPECT_EQ(-EINVAL, configure(self->fd, c));
}

/* What maps show would fit; what the module keeps beside it would not. */
TEST_F(abi, configure_refuses_tables_that_do_not_fit_into_memory)
{
	struct kbarman_configure c = plain;

	c.ring_bytes = 64 * KIB;
	c.max_maps = memory_available() / 100 * 65 / sizeof(struct bm_protocol_header_mmap_layout);
	EXPECT_EQ(-ENOMEM, configure(self->fd, c));
	c.max_maps = 0;
	EXPECT_EQ(0, configure(self->fd, c));
}

TEST_F(abi, configure_faults_on_bad_pointers)
{
	struct kbarman_configure c = plain;

	c.nr_cpu_words = 1;
	EXPECT_EQ(-EFAULT, configure(self->fd, c));
	c = plain;
	c.nr_pids = 1;
	c.pids_ptr = ~0ULL;
	EXPECT_EQ(-EFAULT, configure(self->fd, c));
	c = plain;
	c.sources |= KBARMAN_SOURCE_PMU;
	c.nr_events = 1;
	c.events_ptr = 4096;
	EXPECT_EQ(-EFAULT, configure(self->fd, c));
}

TEST_F(abi, a_refused_configure_leaves_nothing_owned)
{
	struct kbarman_configure c = plain;
	int other = device_open();

	c.mode = 7;
	ASSERT_EQ(-EINVAL, configure(self->fd, c));
	EXPECT_EQ(0, query(self->fd).state & KBARMAN_STATE_OWNED);
	EXPECT_EQ(0, configure(other, plain));
	close(other);
}

TEST_F(abi, a_refused_reconfigure_leaves_the_session_as_it_was)
{
	struct kbarman_configure c = plain;
	uint64_t session;

	ASSERT_EQ(0, configure(self->fd, plain));
	session = query(self->fd).session;
	c.mode = 7;
	ASSERT_EQ(-EINVAL, configure(self->fd, c));
	EXPECT_EQ(session, query(self->fd).session);
	EXPECT_EQ(0, start(self->fd));
}

/* ---- events ---- */

static struct kbarman_configure sampling(const struct kbarman_event *event)
{
	return (struct kbarman_configure) {
		.sources = SCHED | KBARMAN_SOURCE_PMU, .nr_events = 1,
		.events_ptr = sampled(event, 1, 1000000) };
}

TEST_F(abi, configure_accepts_a_good_event)
{
	EXPECT_EQ(0, configure(self->fd, sampling(&cpu_clock)));
}

TEST_F(abi, events_and_the_pmu_source_go_together)
{
	struct kbarman_configure c = sampling(&cpu_clock);

	c.sources = SCHED;
	EXPECT_EQ(-EINVAL, configure(self->fd, c));
	c = sampling(&cpu_clock);
	c.nr_events = 0;
	EXPECT_EQ(-EINVAL, configure(self->fd, c));
}

TEST_F(abi, configure_refuses_a_sample_period_of_nothing)
{
	struct kbarman_configure c = sampling(&cpu_clock);

	c.events_ptr = (uintptr_t)&cpu_clock;
	EXPECT_EQ(-EINVAL, configure(self->fd, c));
	c.events_ptr = sampled_hz(&cpu_clock, 1, 0);
	EXPECT_EQ(-EINVAL, configure(self->fd, c));
	c.events_ptr = sampled(&cpu_clock, 1, 1ULL << 63);
	EXPECT_EQ(-EINVAL, configure(self->fd, c));
}

TEST_F(abi, configure_refuses_bad_events)
{
	struct kbarman_event event = cpu_clock;

	event.name[0] = '\0';
	EXPECT_EQ(-EINVAL, configure(self->fd, sampling(&event)));
	memset(event.name, 'x', sizeof(event.name));
	EXPECT_EQ(-EINVAL, configure(self->fd, sampling(&event)));
}

TEST_F(abi, configure_refuses_unknown_flags_of_events)
{
	struct kbarman_event events[2] = { cpu_clock, cpu_clock };
	struct kbarman_configure c = sampling(events);
	unsigned int bit;

	c.nr_events = 2;
	for (bit = 0; bit < 32; bit++) {
		events[1].flags = 1U << bit;
		c.events_ptr = sampled(events, 2, 1000000);
		EXPECT_EQ(bit < 3 ? 0 : -EINVAL, configure(self->fd, c)) TH_LOG("bit %u", bit);
	}
	events[0].flags = KBARMAN_EVENT_ELSE;		/* for no event */
	c.events_ptr = sampled(events, 2, 1000000);
	EXPECT_EQ(-EINVAL, configure(self->fd, c));
}

/* As of perf_event_open(2): the parts that counters have, and nothing else. */
TEST_F(abi, configure_takes_known_parts_of_attr_and_no_other)
{
	static const size_t sizes[] = {
		PERF_ATTR_SIZE_VER0, PERF_ATTR_SIZE_VER1, PERF_ATTR_SIZE_VER5,
		sizeof(struct perf_event_attr) };
	struct perf_event_attr known = { .type = ~0U, .config = ~0ULL, .sample_period = ~0ULL, .freq = 1,
		.precise_ip = 3, .exclude_user = 1, .exclude_kernel = 1, .exclude_hv = 1,
		.exclude_idle = 1, .exclude_host = 1, .exclude_guest = 1, .config1 = ~0ULL,
		.config2 = ~0ULL };
	const uint8_t *mask = (const uint8_t *)&known;
	unsigned int i, byte, bit;

	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		/* What newer kernels know is not tried. */
		for (byte = 0; byte < sizeof(known) && byte < PERF_ATTR_SIZE_VER6; byte++) {
			struct kbarman_event event = cpu_clock;
			uint8_t *bytes = (uint8_t *)&event.attr;

			event.attr.sample_period = 1000000;
			event.attr.size = sizes[i];
			for (bit = 0; bit < 8; bit++) {
				struct kbarman_configure c = sampling(&event);
				bool good = mask[byte] >> bit & 1 && byte < sizes[i];

				/* Its own size, and a period with the highest bit. */
				if ((byte >= 4 && byte < 8) || (byte >= 16 && byte < 24))
					continue;
				bytes[byte] ^= 1 << bit;
				c.ring_bytes = 64 * KIB;
				c.max_tasks = c.max_maps = 16;
				c.max_strings = 4096;
				c.events_ptr = (uintptr_t)&event;
				if (configure(self->fd, c) == -E2BIG && byte >= PERF_ATTR_SIZE_VER5)
					continue;		/* an older kernel */
				EXPECT_EQ(good ? 0 : -EINVAL, configure(self->fd, c))
					TH_LOG("size %zu, byte %u, bit %u", sizes[i], byte, bit);
				bytes[byte] ^= 1 << bit;
			}
		}
	}
}

/* One event, which has @bytes bytes. */
static int configure_long(int fd, const void *event, uint32_t bytes)
{
	struct kbarman_configure c = sampling(&cpu_clock);

	c.size = sizeof(c);
	c.events_ptr = (uintptr_t)event;
	c.event_bytes = bytes;
	return call(fd, KBARMAN_CONFIGURE, &c);
}

TEST_F(abi, configure_looks_at_the_sizes_of_events)
{
	struct { struct kbarman_event event; uint64_t more[4]; } e = { .event = cpu_clock };

	e.event.attr.sample_period = 1000000;
	EXPECT_EQ(-EINVAL, configure_long(self->fd, &e, KBARMAN_EVENT_SIZE_VER0 - 1));
	EXPECT_EQ(0, configure_long(self->fd, &e, KBARMAN_EVENT_SIZE_VER0));
	EXPECT_EQ(0, configure_long(self->fd, &e, sizeof(e)));
	EXPECT_EQ(-EINVAL, configure_long(self->fd, &e, 1 << 20));
	e.event.attr.size = PERF_ATTR_SIZE_VER0 - 1;
	EXPECT_EQ(-E2BIG, configure_long(self->fd, &e, sizeof(e)));
	e.event.attr.size = KBARMAN_ATTR_BYTES + 1;
	EXPECT_EQ(-E2BIG, configure_long(self->fd, &e, sizeof(e)));
	e.event.attr.size = KBARMAN_ATTR_BYTES;
	EXPECT_EQ(0, configure_long(self->fd, &e, sizeof(e)));
	e.event.attr_bytes[KBARMAN_ATTR_BYTES - 1] = 1;		/* unknown to any kernel */
	EXPECT_EQ(-E2BIG, configure_long(self->fd, &e, sizeof(e)));
	e.event.attr_bytes[KBARMAN_ATTR_BYTES - 1] = 0;
	e.more[3] = 1;
	EXPECT_EQ(-E2BIG, configure_long(self->fd, &e, sizeof(e)));
	EXPECT_EQ(0, configure_long(self->fd, &e, sizeof(e.event)));
}

TEST_F(abi, configure_refuses_more_counters_than_a_sample_has)
{
	struct kbarman_event events[33];
	struct kbarman_configure c = sampling(&cpu_clock);
	unsigned int i;

	for (i = 0; i < 33; i++)
		events[i] = cpu_clock;
	events[0].attr.sample_period = 1000000;
	c.events_ptr = (uintptr_t)events;
	c.nr_events = 33;
	EXPECT_EQ(-E2BIG, configure(self->fd, c));
	events[32].flags = KBARMAN_EVENT_ELSE;
	EXPECT_EQ(0, configure(self->fd, c));
}

TEST_F(abi, only_the_first_counter_samples)
{
	struct kbarman_event events[3] = { cpu_clock, cpu_clock, cpu_clock };
	struct kbarman_configure c = sampling(events);

	c.nr_events = 3;
	events[0].attr.sample_period = events[1].attr.sample_period = 1000000;
	c.events_ptr = (uintptr_t)events;
	EXPECT_EQ(-EINVAL, configure(self->fd, c));
	events[1].flags = KBARMAN_EVENT_ELSE;
	EXPECT_EQ(0, configure(self->fd, c));
}

/* ---- start, stop, consume, stats, clock ---- */

TEST_F(abi, calls_before_configure_are_refused)
{
	struct kbarman_stats s = { .size = sizeof(s), .cpu = KBARMAN_CPU_ALL };
	struct kbarman_clock k = { .size = sizeof(k) };
	struct kbarman_add_maps m = { .size = sizeof(m) };
	struct kbarman_add_symbols a = { .size = sizeof(a), .bytes_ptr = (uintptr_t)&a, .bytes = 1 };

	EXPECT_EQ(-ENODATA, start(self->fd));
	EXPECT_EQ(-ENODATA, stop(self->fd));
	EXPECT_EQ(-ENODATA, consume(self->fd, 0, 0));
	EXPECT_EQ(-ENODATA, call(self->fd, KBARMAN_STATS, &s));
	EXPECT_EQ(-ENODATA, call(self->fd, KBARMAN_CLOCK, &k));
	EXPECT_EQ(-ENODATA, call(self->fd, KBARMAN_ADD_MAPS, &m));
	EXPECT_EQ(-ENODATA, call(self->fd, KBARMAN_ADD_SYMBOLS, &a));
}

TEST_F(abi, start_refuses_flags)
{
	struct kbarman_start s = { .size = sizeof(s), .flags = 1 };

	ASSERT_EQ(0, configure(self->fd, plain));
	EXPECT_EQ(-EINVAL, call(self->fd, KBARMAN_START, &s));
	EXPECT_EQ(0, query(self->fd).state & KBARMAN_STATE_RUNNING);
}

TEST_F(abi, start_names_no_event_when_it_succeeds)
{
	struct kbarman_start s = { .size = sizeof(s) };

	ASSERT_EQ(0, configure(self->fd, plain));
	ASSERT_EQ(0, call(self->fd, KBARMAN_START, &s));
	EXPECT_EQ(~0U, s.event);
	EXPECT_EQ(~0U, s.cpu);
}

TEST_F(abi, start_twice_is_busy)
{
	ASSERT_EQ(0, configure(self->fd, plain));
	ASSERT_EQ(0, start(self->fd));
	EXPECT_EQ(-EBUSY, start(self->fd));
}

TEST_F(abi, configure_while_running_is_busy)
{
	ASSERT_EQ(0, configure(self->fd, plain));
	ASSERT_EQ(0, start(self->fd));
	EXPECT_EQ(-EBUSY, configure(self->fd, plain));
	ASSERT_EQ(0, stop(self->fd));
	EXPECT_EQ(0, configure(self->fd, plain));
}

TEST_F(abi, stop_takes_no_argument)
{
	ASSERT_EQ(0, configure(self->fd, plain));
	EXPECT_EQ(-EINVAL, call(self->fd, KBARMAN_STOP, self));
}

TEST_F(abi, stop_of_a_stopped_session_does_nothing)
{
	struct kbarman_clock before;

	ASSERT_EQ(0, configure(self->fd, plain));
	EXPECT_EQ(0, stop(self->fd));
	ASSERT_EQ(0, start(self->fd));
	EXPECT_EQ(0, stop(self->fd));
	before = clocks(self->fd);
	EXPECT_EQ(0, stop(self->fd));
	EXPECT_EQ(before.stop.timestamp, clocks(self->fd).stop.timestamp);
}

TEST_F(abi, stats_and_consume_refuse_cpus_that_are_not_there)
{
	struct kbarman_stats s = { .size = sizeof(s) };
	struct kbarman_configure stream = plain;
	uint32_t cpus = query(self->fd).nr_cpus;

	stream.mode = KBARMAN_MODE_STREAM;
	ASSERT_EQ(0, configure(self->fd, stream));
	s.cpu = cpus;
	EXPECT_EQ(-EINVAL, call(self->fd, KBARMAN_STATS, &s));
	s.cpu = KBARMAN_CPU_ALL - 1;
	EXPECT_EQ(-EINVAL, call(self->fd, KBARMAN_STATS, &s));
	EXPECT_EQ(-EINVAL, consume(self->fd, cpus, 0));
	EXPECT_EQ(-EINVAL, consume(self->fd, KBARMAN_CPU_ALL, 0));
}

TEST_F(abi, stats_and_maps_refuse_cpus_that_are_not_recorded)
{
	uint64_t only_first = 1;
	struct kbarman_configure c = plain;
	struct kbarman_stats s = { .size = sizeof(s), .cpu = 1 };
	struct kbarman_query q;

	c.cpus_ptr = (uintptr_t)&only_first;
	c.nr_cpu_words = 1;
	ASSERT_EQ(0, configure(self->fd, c));
	q = query(self->fd);
	if (q.nr_cpus < 2)
		SKIP(return, "one CPU only");
	EXPECT_EQ(-EINVAL, call(self->fd, KBARMAN_STATS, &s));
	EXPECT_EQ(MAP_FAILED, try_map(self->fd, &q, 1));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_NE(MAP_FAILED, try_map(self->fd, &q, 0));
}

TEST_F(abi, clock_refuses_flags)
{
	struct kbarman_clock k = { .size = sizeof(k), .flags = 1 };

	ASSERT_EQ(0, configure(self->fd, plain));
	EXPECT_EQ(-EINVAL, call(self->fd, KBARMAN_CLOCK, &k));
}

TEST_F(abi, clock_pairs_are_zero_until_they_are_taken)
{
	static const struct kbarman_clock_pair none;
	struct kbarman_clock k;

	ASSERT_EQ(0, configure(self->fd, plain));
	k = clocks(self->fd);
	EXPECT_EQ(0, memcmp(&k.start, &none, sizeof(none)));
	EXPECT_EQ(0, memcmp(&k.stop, &none, sizeof(none)));
	ASSERT_EQ(0, start(self->fd));
	k = clocks(self->fd);
	EXPECT_NE(0, k.start.raw_ns);
	EXPECT_EQ(0, memcmp(&k.stop, &none, sizeof(none)));
	ASSERT_EQ(0, stop(self->fd));
	EXPECT_NE(0, clocks(self->fd).stop.raw_ns);
}

/* ---- rows of the tables ---- */

static int add_rows(int fd, struct kbarman_map_row *rows, uint32_t *count)
{
	struct kbarman_add_maps m = { .size = sizeof(m), .count = *count,
				      .row_bytes = sizeof(*rows), .rows_ptr = (uintptr_t)rows };
	int error = call(fd, KBARMAN_ADD_MAPS, &m);

	*count = m.count;
	return error;
}

static struct kbarman_map_row row(const char *image)
{
	return (struct kbarman_map_row) {
		.task_id = 4711, .image_length = strlen(image), .base_address = 0x400000,
		.length = 0x1000, .image_offset = 0x200, .image_ptr = (uintptr_t)image };
}

TEST_F(abi, added_maps_are_in_the_table)
{
	struct kbarman_map_row rows[] = { row("/bin/first"), row("/bin/second") };
	const struct bm_protocol_header_mmap_layout *at;
	const void *map;
	uint32_t count = 2;

	ASSERT_EQ(0, configure(self->fd, plain));
	map = map_cpu(self->fd, 0);
	ASSERT_EQ(0, add_rows(self->fd, rows, &count));
	EXPECT_EQ(2, count);
	ASSERT_EQ(2, *capture_map_count(map));
	at = &capture_maps(map)[1];
	EXPECT_EQ(4711, at->task_id);
	EXPECT_EQ(0x400000, at->base_address);
	EXPECT_EQ(0x1000, at->length);
	EXPECT_EQ(0x200, at->image_offset);
	EXPECT_STREQ("/bin/second", capture_strings(map) + at->image_ptr);
	EXPECT_EQ(2, stats(self->fd, KBARMAN_CPU_ALL).maps);
}

TEST_F(abi, add_maps_refuses_bad_rows)
{
	struct kbarman_map_row good = row("/bin/sh"), bad;
	uint32_t count;

	ASSERT_EQ(0, configure(self->fd, plain));
	count = 1, bad = good, bad.length = 0;
	EXPECT_EQ(-EINVAL, add_rows(self->fd, &bad, &count));
	count = 1, bad = good, bad.image_length = 0;
	EXPECT_EQ(-EINVAL, add_rows(self->fd, &bad, &count));
	count = 1, bad = good, bad.image_length = 4096;
	EXPECT_EQ(-EINVAL, add_rows(self->fd, &bad, &count));
	count = 1, bad = good, bad.image_length = ~0U;
	EXPECT_EQ(-EINVAL, add_rows(self->fd, &bad, &count));
	count = 1, bad = good, bad.image_ptr = 16;
	EXPECT_EQ(-EFAULT, add_rows(self->fd, &bad, &count));
	count = 4097;
	EXPECT_EQ(-EINVAL, add_rows(self->fd, &good, &count));
	count = 1;
	EXPECT_EQ(-EFAULT, add_rows(self->fd, NULL, &count));
	EXPECT_EQ(0, stats(self->fd, KBARMAN_CPU_ALL).maps);
}

/* The rows of a program that knows more fields than the kernel, or less. */
TEST_F(abi, rows_may_be_longer_and_not_shorter)
{
	struct {
		struct kbarman_map_row row;
		uint64_t new;
	} rows[2] = { { .row = row("/bin/first") }, { .row = row("/bin/second") } };
	struct kbarman_add_maps m = { .size = sizeof(m), .count = 2, .row_bytes = sizeof(rows[0]),
				      .rows_ptr = (uintptr_t)rows };

	ASSERT_EQ(0, configure(self->fd, plain));
	EXPECT_EQ(0, call(self->fd, KBARMAN_ADD_MAPS, &m));
	EXPECT_EQ(2, m.count);
	EXPECT_EQ(sizeof(struct kbarman_map_row), m.row_bytes);
	EXPECT_EQ(2, stats(self->fd, KBARMAN_CPU_ALL).maps);
	rows[1].new = 1;
	m.row_bytes = sizeof(rows[0]);
	EXPECT_EQ(-E2BIG, call(self->fd, KBARMAN_ADD_MAPS, &m));
	EXPECT_EQ(1, m.count);
	m.row_bytes = KBARMAN_MAP_ROW_SIZE_VER0 - 8;
	EXPECT_EQ(-EINVAL, call(self->fd, KBARMAN_ADD_MAPS, &m));
}

TEST_F(abi, add_maps_says_how_many_went_in)
{
	struct kbarman_map_row rows[5];
	struct kbarman_configure c = plain;
	uint32_t count = 5, i;

	for (i = 0; i < 5; i++)
		rows[i] = row("/bin/sh");
	c.mode = KBARMAN_MODE_STREAM;	/* rows are never used again */
	c.max_maps = 3;
	ASSERT_EQ(0, configure(self->fd, c));
	EXPECT_EQ(-ENOSPC, add_rows(self->fd, rows, &count));
	EXPECT_EQ(3, count);
	EXPECT_EQ(3, stats(self->fd, KBARMAN_CPU_ALL).maps);
	EXPECT_EQ(1, stats(self->fd, KBARMAN_CPU_ALL).missed[KBARMAN_MISSED_MAP]);
}

/* ---- symbols ---- */

static uint64_t memory_in_use(int fd)
{
	struct kbarman_sessions s = { .size = sizeof(s) };

	return call(fd, KBARMAN_SESSIONS, &s) ? 0 : s.memory;
}

TEST_F(abi, a_configuration_has_symbols_once_and_the_user_pays_for_them)
{
	static char bytes[KBARMAN_SYMBOLS_MAX + 1];
	struct kbarman_add_symbols a = { .size = sizeof(a), .bytes_ptr = (uintptr_t)bytes };
	uint64_t before;

	ASSERT_EQ(0, configure(self->fd, plain));
	before = memory_in_use(self->fd);
	EXPECT_EQ(-EINVAL, call(self->fd, KBARMAN_ADD_SYMBOLS, &a));
	a.bytes = sizeof(bytes);
	EXPECT_EQ(-EINVAL, call(self->fd, KBARMAN_ADD_SYMBOLS, &a));
	a.bytes = ~0ULL;
	EXPECT_EQ(-EINVAL, call(self->fd, KBARMAN_ADD_SYMBOLS, &a));
	a.bytes = KBARMAN_SYMBOLS_MAX;
	a.bytes_ptr = 16;
	EXPECT_EQ(-EFAULT, call(self->fd, KBARMAN_ADD_SYMBOLS, &a));
	a.bytes_ptr = (uintptr_t)bytes;
	EXPECT_EQ(-EEXIST, call(self->fd, KBARMAN_ADD_SYMBOLS, &a));
	ASSERT_EQ(0, configure(self->fd, plain));
	EXPECT_EQ(before, memory_in_use(self->fd));
	EXPECT_EQ(0, call(self->fd, KBARMAN_ADD_SYMBOLS, &a));
	EXPECT_LE(before + KBARMAN_SYMBOLS_MAX, memory_in_use(self->fd));
	EXPECT_EQ(-EEXIST, call(self->fd, KBARMAN_ADD_SYMBOLS, &a));
	ASSERT_EQ(0, configure(self->fd, plain));
	EXPECT_EQ(before, memory_in_use(self->fd));
	ASSERT_EQ(0, start(self->fd));
	EXPECT_EQ(0, call(self->fd, KBARMAN_ADD_SYMBOLS, &a));
}

/* Bytes that never come. */
static void add_symbols_of_nothing(int fd)
{
	struct kbarman_add_symbols a = { .size = sizeof(a), .bytes = KBARMAN_SYMBOLS_MAX };
	char *bytes = mmap(NULL, a.bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register all = { .range = { (uintptr_t)bytes, a.bytes }, .mode = UFFDIO_REGISTER_MODE_MISSING };
	int faults = (int)syscall(SYS_userfaultfd, 0);

	if (faults >= 0 && !ioctl(faults, UFFDIO_API, &api) && !ioctl(faults, UFFDIO_REGISTER, &all)) {
		a.bytes_ptr = all.range.start;
		call(fd, KBARMAN_ADD_SYMBOLS, &a);
	}
	_exit(1);
}

TEST_F(abi, symbols_that_are_slow_to_come_are_paid_for_and_hold_up_nobody)
{
	uint64_t before, while_slow = 0;
	pid_t pid;
	int i;

	ASSERT_EQ(0, configure(self->fd, plain));
	before = memory_in_use(self->fd);
	pid = fork();
	if (!pid)
		add_symbols_of_nothing(self->fd);
	for (i = 0; i < 1000 && while_slow < before + KBARMAN_SYMBOLS_MAX && !waitpid(pid, NULL, WNOHANG); i++) {
		usleep(1000);
		while_slow = memory_in_use(self->fd);
	}
	EXPECT_LE(before + KBARMAN_SYMBOLS_MAX, while_slow);
	EXPECT_EQ(0, configure(self->fd, plain));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	EXPECT_EQ(before, memory_in_use(self->fd));
}

TEST_F(abi, others_add_no_symbols)
{
	struct kbarman_add_symbols a = { .size = sizeof(a), .bytes_ptr = (uintptr_t)&a, .bytes = 1 };
	int other = device_open();

	ASSERT_EQ(0, configure(self->fd, plain));
	EXPECT_EQ(-EPERM, call(other, KBARMAN_ADD_SYMBOLS, &a));
	close(other);
}

TEST_HARNESS_MAIN
