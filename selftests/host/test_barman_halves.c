// SPDX-License-Identifier: MIT
/*
 * A helper that checks the second half of a window changes nothing of what a check finds. The
 * helper is made here, so that its work can be counted.
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <kbarman/barman.h>

#include "base/hash.h"
#include "base/helper.h"
#include "base/thread.h"

#include "../lib/random.h"
#include "../lib/tap.h"

#define CORES		8
#define COUNTERS	2
#define RECORDS		60000	/* of a capture: some 2.5 MiB */
#define WINDOW		(1U << 20)
#define ROUNDS		4

/* ---- the helper ---- */

struct kb_helper {
	pthread_t thread;
	void (*work)(void *context);
	void *context;
};

static unsigned int nr_given;

static void *run(void *context)
{
	struct kb_helper *helper = context;

	helper->work(helper->context);
	return NULL;
}

int kb_helper_start(struct kb_helper **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -1;
}

void kb_helper_end(struct kb_helper *helper)
{
	free(helper);
}

void kb_helper_give(struct kb_helper *helper, void (*work)(void *context), void *context)
{
	nr_given++;
	helper->work = work;
	helper->context = context;
	if (pthread_create(&helper->thread, NULL, run, helper))
		abort();
}

void kb_helper_wait(struct kb_helper *helper)
{
	pthread_join(helper->thread, NULL);
}

/* ---- captures ---- */

/* What is in one besides switches, halts and plain samples. */
struct spice {
	const char *name;
	unsigned int chains, texts, backwards;	/* one of so many; 0: none */
	unsigned int wrong_bytes;		/* of the records */
	bool deceitful;		/* the text of a record in the middle looks like many records */
};

static char text[1 << 20];

static void put_any(struct kb_event *e, const struct spice *spice, uint64_t *now)
{
	static uint64_t counters[COUNTERS], chain[4];
	unsigned int kind = random_below(100);

	*now += random_below(50);
	*e = (struct kb_event) { .core = kind < 1 ? CORES - 1 : random_below(CORES - 1),
				 .timestamp = *now, .task_id = random_below(1000) };
	if (spice->backwards && !random_below(spice->backwards))
		e->timestamp -= random_below(1000);
	if (spice->texts && !random_below(spice->texts)) {
		e->type = KB_EVENT_ANNOTATION;
		e->annotation.text = text;
		e->annotation.text_length = random_below(3000);
	} else if (kind < 60) {
		e->type = KB_EVENT_TASK_SWITCH;
		e->task_switch.prev_state = (int16_t)random_below(3);
	} else if (kind < 85) {
		e->type = KB_EVENT_HALT;
		e->halt.entered = random_below(2);
		e->halt.idle_state = -1;
	} else {
		e->type = KB_EVENT_SAMPLE;
		e->sample.has_pc = true;
		e->sample.pc = (uint32_t)random_u64();
		e->sample.nr_counters = COUNTERS;
		counters[0] = random_u64();
		counters[1] = random_below(1000);
		e->sample.counters = counters;
		if (spice->chains && !random_below(spice->chains)) {
			e->sample.chain = chain;
			e->sample.nr_chain = 1 + random_below(4);
		}
	}
}

static void write_capture(int fd, unsigned int word, bool big, const struct spice *spice)
{
	struct kb_barman_layout layout = {
		.size = sizeof(layout), .word_size = word, .big_endian = big, .max_cores = CORES,
		.max_task_infos = 1, .max_string_table_length = 256, .max_pmu_counters = COUNTERS,
	};
	static uint32_t types[COUNTERS] = { 1, 2 };
	const struct kb_pmu pmu = { .num_counters = COUNTERS, .counter_types = types };
	const struct kb_header header = { .target_name = "t", .timestamp_multiplier = 1,
					  .timestamp_divisor = 1 };
	struct kb_barman_writer *w;
	uint64_t now = 1000000;
	struct kb_event e;
	int failed;

	if (kb_barman_writer_create(&w, fd, &layout, NULL))
		abort();
	failed = kb_barman_writer_set_header(w, &header);
	for (uint32_t core = 0; core < CORES; core++)
		failed |= kb_barman_writer_pmu(w, core, &pmu);
	failed |= kb_barman_writer_fact(w, "ext", "1");
	for (unsigned int i = 0; i < RECORDS; i++) {
		put_any(&e, spice, &now);
		if (spice->deceitful && i == RECORDS / 2) {
			e.type = KB_EVENT_ANNOTATION;
			memset(&e.annotation, 0, sizeof(e.annotation));
			e.annotation.text = text;
			e.annotation.text_length = sizeof(text);
		}
		failed |= kb_barman_writer_event(w, &e);
	}
	if (failed || kb_barman_writer_finish(w, false, NULL))
		abort();
	kb_barman_writer_destroy(w);
}

/* Some bytes in the second half of the file are others. */
static void spoil(uint8_t *data, size_t size, unsigned int nr)
{
	while (nr--)
		data[size / 4 + random_below(size - size / 4)] ^= 1 << random_below(8);
}

/* ---- checks ---- */

struct result {
	struct kb_validation sum;
	unsigned int nr_findings, nr_given;
	uint64_t findings;	/* a hash of their texts */
	int ret;
};

static void use_cpus(unsigned int nr)
{
	static cpu_set_t all;
	cpu_set_t some;

	if (!CPU_COUNT(&all))
		sched_getaffinity(0, sizeof(all), &all);
	CPU_ZERO(&some);
	for (int cpu = 0; cpu < CPU_SETSIZE && nr; cpu++)
		if (CPU_ISSET(cpu, &all)) {
			CPU_SET(cpu, &some);
			nr--;
		}
	sched_setaffinity(0, sizeof(some), &some);
}

static void check(int fd, unsigned int cpus, struct result *r)
{
	const struct kb_error *finding;
	struct kb_barman *barman;
	char path[32];

	memset(r, 0, sizeof(*r));
	use_cpus(cpus);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (kb_barman_open(&barman, path, NULL))
		abort();
	kb_barman_set_window(barman, WINDOW);
	nr_given = 0;
	r->ret = kb_barman_validate(barman, &r->sum, NULL);
	r->nr_given = nr_given;
	for (; (finding = kb_barman_finding(barman, r->nr_findings)); r->nr_findings++)
		r->findings = kb_hash_bytes(r->findings, finding->text, strlen(finding->text));
	kb_barman_close(barman);
}

/* Returns how many windows were divided. */
static unsigned int a_half_changes_nothing(unsigned int word, bool big, const struct spice *spice)
{
	int fd = memfd_create("capture", 0);
	struct result alone, helped;
	unsigned int divided;
	struct stat st;
	uint8_t *data;
	char name[128];

	write_capture(fd, word, big, spice);
	fstat(fd, &st);
	data = mmap(NULL, st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	spoil(data, st.st_size, spice->wrong_bytes);
	munmap(data, st.st_size);
	check(fd, 1, &alone);
	check(fd, 2, &helped);
	tap_is(alone.nr_given, 0, "one_cpu_has_no_helper");
	divided = helped.nr_given;
	helped.nr_given = 0;
	snprintf(name, sizeof(name), "a_half_changes_nothing_%s_%u_%s", spice->name, word * 8,
		 big ? "big" : "little");
	if (!tap_ok(!memcmp(&alone, &helped, sizeof(alone)), name))
		tap_note("%" PRIu64 " records, %" PRIu64 " backwards, %u findings, checksum %" PRIx64
			 ", not %" PRIu64 ", %" PRIu64 ", %u, %" PRIx64, helped.sum.records,
			 helped.sum.backwards, helped.nr_findings, helped.sum.checksum,
			 alone.sum.records, alone.sum.backwards, alone.nr_findings,
			 alone.sum.checksum);
	close(fd);
	return divided;
}

static void halves_change_nothing(unsigned int word, const struct spice *spice)
{
	unsigned int divided = 0;
	char name[128];

	for (int round = 0; round < ROUNDS; round++)
		divided += a_half_changes_nothing(word, round == ROUNDS - 1, spice);
	/*
	 * Of two windows each; where a row begins is a guess, which may be wrong. Damage may end a
	 * capture. With 32 bits there are hardly any rows of fast records.
	 */
	snprintf(name, sizeof(name), "a_helper_helps_%s", spice->name);
	if (word == 8)
		tap_ok(divided > (spice->wrong_bytes ? 0 : ROUNDS), name);
}

/* A text that looks like halting events. */
static void make_deceitful_text(unsigned int word)
{
	/* type and core, timestamp, entered */
	const uint32_t record[] = { 6, 0, 7, 0, 1, 0 }, length = sizeof(record);

	memset(text, 0, sizeof(text));
	for (size_t at = 0; at + word + length <= sizeof(text); at += word + length) {
		memcpy(text + at, &length, sizeof(length));
		memcpy(text + at + word, record, length);
	}
}

int main(void)
{
	static const struct spice spices[] = {
		{ .name = "plain" },
		{ .name = "backwards", .backwards = 3 },
		{ .name = "chains", .chains = 100 },
		{ .name = "texts", .texts = 1000 },
		{ .name = "spoilt", .texts = 5000, .wrong_bytes = 40 },
		{ .name = "deceitful", .deceitful = true },
	};

	random_start();
	if (kb_cpus() < 2) {
		tap_skip("a_half_changes_nothing", "there is one CPU");
		return tap_done();
	}
	for (unsigned int word = 4; word <= 8; word += 4) {
		make_deceitful_text(word);
		for (size_t i = 0; i < sizeof(spices) / sizeof(spices[0]); i++)
			halves_change_nothing(word, &spices[i]);
	}
	return tap_done();
}
