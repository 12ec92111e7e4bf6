/* SPDX-License-Identifier: MIT */
/* Shared code of the tests of what takes time: system calls, faults and block requests. */
#ifndef KBARMAN_VM_ENDED_H
#define KBARMAN_VM_ENDED_H

#include "details.h"

/* One of them, as its record has it. */
struct ended {
	uint64_t end;
	uint32_t at;		/* the CPU on which it ended */
	uint32_t task;		/* the task that ran there */
	union {
		struct bm_kbarman_detail detail;
		struct bm_kbarman_syscall syscall;
		struct bm_kbarman_fault fault;
		struct bm_kbarman_block block;
	};
};

struct ended_list {
	struct ended *all;
	size_t nr, room;
};

static inline void ended_add(struct ended_list *list, struct ended ended)
{
	if (list->nr == list->room) {
		list->room = list->room ? 2 * list->room : 1024;
		list->all = realloc(list->all, list->room * sizeof(ended));
		if (!list->all)
			lost("no memory");
	}
	list->all[list->nr++] = ended;
}

static inline int ended_compare(const void *a, const void *b)
{
	const struct ended *x = a, *y = b;

	return (x->end > y->end) - (x->end < y->end);
}

/* Those of all CPUs whose kind is @what, in order; of the task @task that ran, or of all if it is 0. */
static inline struct ended_list ended_of(int fd, enum bm_kbarman_what what, pid_t task)
{
	const size_t bytes = what == BM_KBARMAN_SYSCALL ? sizeof(struct bm_kbarman_syscall) :
			     sizeof(struct bm_kbarman_fault);
	uint32_t cpu, nr_cpus = query(fd).nr_cpus;
	const struct bm_kbarman_detail *detail;
	struct ended_list list = { 0 };
	const union record *r;

	_Static_assert(sizeof(struct bm_kbarman_fault) == sizeof(struct bm_kbarman_block), "");

	for (cpu = 0; cpu < nr_cpus; cpu++) {
		const void *map = map_cpu(fd, cpu);
		struct walk walk = walk_begin(map);

		while ((r = walk_next(&walk))) {
			struct ended ended = { .end = r->header.timestamp, .at = cpu, .task = r->counter.task_id };

			detail = walk_detail(&walk, r);
			if (!detail || detail->what != what || (task && ended.task != (uint32_t)task))
				continue;
			memcpy(&ended.syscall, detail, bytes);
			ended_add(&list, ended);
		}
		munmap((void *)map, query(fd).map_bytes);
	}
	qsort(list.all, list.nr, sizeof(*list.all), ended_compare);
	return list;
}

/* Configure @c with these @flags for @task alone. */
static inline int configure_chosen(int fd, struct kbarman_configure c, pid_t task, uint32_t flags)
{
	uint32_t pid = task;

	c.flags = flags;
	c.pids_ptr = (uintptr_t)&pid;
	c.nr_pids = 1;
	return configure(fd, c);
}

/* ---- a program that begins when it is told to ---- */

static inline pid_t program_begin(int go, void (*program)(void))
{
	pid_t child = fork();
	char byte;

	if (child)
		return child;
	if (syscall(SYS_read, go, &byte, 1) != 1)
		_exit(1);
	program();
	_exit(0);
}

/* Let it begin, and wait for its end: its status. */
static inline int program_end(int go, pid_t program)
{
	int status;

	if (write(go, "", 1) != 1 || waitpid(program, &status, 0) != program)
		return -1;
	return status;
}

#endif /* KBARMAN_VM_ENDED_H */
