// SPDX-License-Identifier: MIT
/*
 * Where sparse stacks end: those of threads, signal handlers, coroutines and vfork(). Above each
 * stack lie words that look like addresses of code: none of them may ever be recorded.
 */
#include <pthread.h>
#include <signal.h>
#include <ucontext.h>

#include "kselftest_harness.h"
#include "stacks.h"

#define STACK_BYTES	(256 * KIB)
#define BURN_MS		300
#define MOST		90	/* percent: while the worker writes, nobody knows an end */

/* ---- a stack with something above it ---- */

struct room {
	char *stack, *above;	/* STACK_BYTES each */
};

static void NOINLINE lure(void)
{
	sink++;
}

static struct room room_make(void)
{
	char *at = mmap(NULL, 2 * STACK_BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uintptr_t *word;

	if (at == MAP_FAILED)
		lost("no room for a stack");
	for (word = (uintptr_t *)at; word < (uintptr_t *)(at + 2 * STACK_BYTES); word++)
		*word = (uintptr_t)lure;
	memset(at, 0, STACK_BYTES);
	return (struct room) { at, at + STACK_BYTES };
}

static void room_free(struct room *room)
{
	munmap(room->stack, 2 * STACK_BYTES);
}

/* The memory above gets a mapping of its own. */
static void room_part(struct room *room)
{
	if (mprotect(room->above, STACK_BYTES, PROT_READ))
		lost("no mprotect");
}

/* ---- what was recorded ---- */

struct found {
	unsigned int samples, whole, limited, full, lured, outside;
	const char *damage;
};

static void judge_stack(struct found *found, const struct stack *stack, const struct room *room)
{
	uint32_t i;

	found->samples++;
	found->whole += stack->head->end == BM_KBARMAN_STACK_WHOLE;
	found->limited += stack->head->end == BM_KBARMAN_STACK_LIMIT;
	found->full += stack->head->end == BM_KBARMAN_STACK_FULL;
	if (stack->damage)
		found->damage = stack->damage;
	for (i = 0; i < stack->nr; i++) {
		found->lured += stack->words[i].word == (uintptr_t)lure;
		found->outside += room && (stack->words[i].address < (uintptr_t)room->stack ||
					   stack->words[i].address >= (uintptr_t)room->above);
	}
}

/* The samples in burn() of @task, which ran on the stack of @room. */
static struct found look(int fd, uint32_t task, const struct room *room)
{
	static struct stack stack;
	struct found found = { 0 };
	uint32_t cpu;

	for (cpu = 0; cpu < query(fd).nr_cpus; cpu++) {
		struct walk walk = walk_begin(map_cpu(fd, cpu));
		const union record *r;

		while ((r = walk_next(&walk)))
			if (r->header.record_type == BM_RECORD_SAMPLE_WITH_PC &&
			    r->sample.task_id == task && in_burn(sample_pc(r)) &&
			    stack_of(&stack, &walk, r))
				judge_stack(&found, &stack, room);
	}
	return found;
}

/* Nothing of others' memory, and all of the stack in @percent of the samples or more. */
static void expect_whole(struct __test_metadata *_metadata, struct found found,
			 unsigned int percent)
{
	EXPECT_EQ(NULL, found.damage) TH_LOG("%s", found.damage);
	EXPECT_LT(4, found.samples);	/* a busy machine's VM takes few */
	EXPECT_LE(found.samples * percent, found.whole * 100);
	EXPECT_EQ(0, found.lured);
	EXPECT_EQ(0, found.outside);
	TH_LOG("%u samples: %u of whole stacks, %u at the limit, %u full", found.samples,
	       found.whole, found.limited, found.full);
}

FIXTURE(ends) {
	int fd;
	struct room room;
};

FIXTURE_SETUP(ends)
{
	self->fd = device_open_free();
	if (!(query(self->fd).features & KBARMAN_FEATURE_CHAIN_STACK))
		SKIP(return, "no sparse stacks on this architecture");
	self->room = room_make();
	ASSERT_EQ(0, configure(self->fd, sampling(0)));
}

FIXTURE_TEARDOWN(ends)
{
	if (self->room.stack)
		room_free(&self->room);
	close(self->fd);
}

/* ---- threads ---- */

struct runner {
	volatile bool go;
	volatile uint32_t id;
	const void *above;	/* the stack */
};

static void *run(void *argument)
{
	struct runner *runner = argument;

	runner->id = (uint32_t)syscall(SYS_gettid);
	while (!runner->go)
		sched_yield();
	burn_for(BURN_MS);
	return NULL;
}

static pthread_t run_on(struct runner *runner, const struct room *room)
{
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	if (pthread_attr_setstack(&attributes, room->stack, STACK_BYTES) ||
	    pthread_create(&thread, &attributes, run, runner))
		lost("no thread");
	pthread_attr_destroy(&attributes);
	return thread;
}

TEST_F(ends, a_new_thread_has_its_stack_from_the_first_sample_on)
{
	struct runner runner = { .go = true };

	ASSERT_EQ(0, start(self->fd));
	pthread_join(run_on(&runner, &self->room), NULL);
	ASSERT_EQ(0, stop(self->fd));
	expect_whole(_metadata, look(self->fd, runner.id, &self->room), MOST);
}

static void run_from_before(int fd, struct runner *runner, const struct room *room)
{
	pthread_t thread = run_on(runner, room);

	while (!runner->id)
		sched_yield();
	if (start(fd))
		lost("no start");
	runner->go = true;
	pthread_join(thread, NULL);
	if (stop(fd))
		lost("no stop");
}

TEST_F(ends, an_older_thread_has_the_stack_of_its_mapping)
{
	struct runner runner = { 0 };

	room_part(&self->room);
	run_from_before(self->fd, &runner, &self->room);
	expect_whole(_metadata, look(self->fd, runner.id, &self->room), 50);
}

TEST_F(ends, an_older_thread_has_nothing_of_what_is_above_its_stack)
{
	struct runner runner = { 0 };

#if defined(__i386__) || defined(__s390x__)
	SKIP(return, "the module does not know the thread pointer of this architecture");
#endif
	run_from_before(self->fd, &runner, &self->room);
	expect_whole(_metadata, look(self->fd, runner.id, &self->room), 50);
}

static int use_nothing(void *room)
{
	spin_at((uintptr_t)((struct room *)room)->above);
	burn_for(BURN_MS);
	return 0;
}

/* Its stack pointer is where it began, or a little above. */
TEST_F(ends, a_thread_may_have_used_nothing_of_its_stack_yet)
{
	pid_t child;

	ASSERT_EQ(0, start(self->fd));
	child = clone(use_nothing, self->room.above, CLONE_VM | SIGCHLD, &self->room);
	ASSERT_LT(0, child);
	waitpid(child, NULL, 0);
	ASSERT_EQ(0, stop(self->fd));
	expect_whole(_metadata, look(self->fd, (uint32_t)child, &self->room), MOST);
}

/* ---- signals ---- */

static void on_signal(int number)
{
	burn_for(BURN_MS);
	sink += (unsigned int)number;
}

TEST_F(ends, a_signal_handler_has_the_stack_for_signals)
{
	const stack_t stack = { .ss_sp = self->room.stack, .ss_size = STACK_BYTES };
	const stack_t none = { .ss_flags = SS_DISABLE };
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };

	ASSERT_EQ(0, sigaltstack(&stack, NULL));
	ASSERT_EQ(0, sigaction(SIGUSR1, &action, NULL));
	ASSERT_EQ(0, start(self->fd));
	raise(SIGUSR1);
	ASSERT_EQ(0, stop(self->fd));
	sigaltstack(&none, NULL);
	expect_whole(_metadata, look(self->fd, (uint32_t)getpid(), &self->room), MOST);
}

/* ---- coroutines ---- */

static void coroutine(void)
{
	burn_for(BURN_MS);
}

TEST_F(ends, a_coroutine_has_the_stack_of_its_mapping)
{
	ucontext_t caller, callee;

	room_part(&self->room);
	ASSERT_EQ(0, getcontext(&callee));
	callee.uc_stack.ss_sp = self->room.stack;
	callee.uc_stack.ss_size = STACK_BYTES;
	callee.uc_link = &caller;
	makecontext(&callee, coroutine, 0);
	ASSERT_EQ(0, start(self->fd));
	ASSERT_EQ(0, swapcontext(&caller, &callee));
	ASSERT_EQ(0, stop(self->fd));
	expect_whole(_metadata, look(self->fd, (uint32_t)getpid(), &self->room), 50);
}

/* ---- children ---- */

TEST_F(ends, a_child_of_vfork_has_the_stack_of_its_parent)
{
	static volatile pid_t child;
	pid_t got;

	ASSERT_EQ(0, start(self->fd));
	got = vfork();
	if (!got) {
		child = (pid_t)syscall(SYS_getpid);
		touch_stack(environ);
		burn_for(BURN_MS);
		_exit(0);
	}
	waitpid(got, NULL, 0);
	ASSERT_EQ(0, stop(self->fd));
	expect_whole(_metadata, look(self->fd, (uint32_t)child, NULL), MOST);
}

static void *fork_and_burn(void *argument)
{
	struct runner *runner = argument;
	pid_t child = fork();

	if (!child) {
		touch_stack(runner->above);
		burn_for(BURN_MS);
		_exit(0);
	}
	runner->id = (uint32_t)child;
	waitpid(child, NULL, 0);
	return NULL;
}

TEST_F(ends, a_child_of_a_thread_has_the_stack_of_that_thread)
{
	struct runner runner = { .above = self->room.above };
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	pthread_attr_setstack(&attributes, self->room.stack, STACK_BYTES);
	ASSERT_EQ(0, start(self->fd));
	ASSERT_EQ(0, pthread_create(&thread, &attributes, fork_and_burn, &runner));
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attributes);
	ASSERT_EQ(0, stop(self->fd));
	expect_whole(_metadata, look(self->fd, runner.id, &self->room), MOST);
}

TEST_HARNESS_MAIN
