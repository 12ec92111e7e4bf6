/* SPDX-License-Identifier: MIT */
/* Shared code of the tests of wakeups, interrupts and softirqs: what such records say. */
#ifndef KBARMAN_VM_DETAILS_H
#define KBARMAN_VM_DETAILS_H

#include <sys/utsname.h>

#include "lib.h"

#define BIT(n)	(1U << (n))

/* One record, wherever it was written. */
struct fact {
	uint64_t time, value;
	uint32_t series;
	uint32_t at;		/* the CPU that wrote it */
	uint32_t task;		/* the task that ran there */
	struct bm_kbarman_detail detail;
	struct bm_kbarman_object object;	/* of a wakeup; kind 0: there is none */
};

struct facts {
	struct fact *all;
	size_t nr, room;
};

/* The detail of the record that @walk returned last, or NULL. */
static inline const struct bm_kbarman_detail *walk_detail(const struct walk *walk,
							  const union record *r)
{
	if (r->header.record_type != BM_RECORD_CUSTOM_COUNTER ||
	    r->counter.counter < FIRST_DETAILS || r->counter.counter >= FIRST_SERIES ||
	    walk->length < sizeof(r->counter) + sizeof(struct bm_kbarman_detail))
		return NULL;
	return (const void *)(&r->counter + 1);
}

/* What follows @detail, of the record that @walk returned last. */
static inline struct bm_kbarman_object walk_waker_object(const struct walk *walk,
							 const struct bm_kbarman_detail *detail)
{
	const size_t base = sizeof(struct bm_protocol_custom_counter) + sizeof(*detail);
	struct bm_kbarman_object object = { 0 };

	if (detail->what <= BM_KBARMAN_WAKING_NEW && walk->length >= base + sizeof(object))
		memcpy(&object, detail + 1, sizeof(object));
	return object;
}

static inline void facts_add(struct facts *facts, struct fact fact)
{
	if (facts->nr == facts->room) {
		facts->room = facts->room ? 2 * facts->room : 1024;
		facts->all = realloc(facts->all, facts->room * sizeof(fact));
		if (!facts->all)
			lost("no memory");
	}
	facts->all[facts->nr++] = fact;
}

/* Those of one CPU, in order, whose `what` is in @whats, a set of BIT(BM_KBARMAN_...). */
static inline void facts_add_cpu(struct facts *facts, int fd, uint32_t cpu, uint32_t whats)
{
	const struct bm_kbarman_detail *detail;
	const void *map = map_cpu(fd, cpu);
	struct walk walk = walk_begin(map);
	const union record *r;

	while ((r = walk_next(&walk))) {
		detail = walk_detail(&walk, r);
		if (detail && whats & BIT(detail->what))
			facts_add(facts, (struct fact) {
				.time = r->header.timestamp, .value = r->counter.value,
				.series = r->counter.counter, .at = cpu,
				.task = r->counter.task_id, .detail = *detail,
				.object = walk_waker_object(&walk, detail) });
	}
	munmap((void *)map, query(fd).map_bytes);
}

static inline int facts_compare(const void *a, const void *b)
{
	const struct fact *x = a, *y = b;

	return (x->time > y->time) - (x->time < y->time);
}

/* Those of all CPUs by time. The caller frees ->all. */
static inline struct facts facts_of(int fd, uint32_t whats)
{
	uint32_t cpu, nr_cpus = query(fd).nr_cpus;
	struct facts facts = { 0 };

	for (cpu = 0; cpu < nr_cpus; cpu++)
		facts_add_cpu(&facts, fd, cpu, whats);
	qsort(facts.all, facts.nr, sizeof(*facts.all), facts_compare);
	return facts;
}

/* How many of @facts are of @what, with the task @task, of @id; ~0U: any. */
static inline unsigned int facts_count(const struct facts *facts, unsigned int what, uint32_t task,
				       uint32_t id)
{
	unsigned int count = 0;
	size_t i;

	for (i = 0; i < facts->nr; i++)
		count += facts->all[i].detail.what == what &&
			 (task == ~0U || facts->all[i].task == task) &&
			 (id == ~0U || facts->all[i].detail.id == id);
	return count;
}

/* @task has the state @letter, and no CPU has it any more. */
static inline bool is_off(pid_t task, char letter)
{
	char path[64], text[256];
	const char *name_end;

	snprintf(path, sizeof(path), "/proc/%d/stat", task);
	read_file(path, text, sizeof(text));
	name_end = strrchr(text, ')');
	if (!name_end || name_end[2] != letter)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/syscall", task);
	read_file(path, text, sizeof(text));
	return strncmp(text, "running", 7);
}

static inline void wait_until_off(pid_t task, char letter)
{
	while (!is_off(task, letter))
		usleep(1000);
}

static inline void wait_until_waiting(pid_t task)
{
	wait_until_off(task, 'S');
}

static inline bool is_rt(void)
{
	struct utsname name;

	uname(&name);
	return strstr(name.version, "PREEMPT_RT");
}

#endif /* KBARMAN_VM_DETAILS_H */
