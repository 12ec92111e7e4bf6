// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests to block devices, each when it ends. Who gave a request to its queue, and when it went to the driver,
 * is in a table of the session while the request is under way.
 *
 * Context of the probes: a task, a softirq or an interrupt, on any CPU. What happens to one request happens one
 * after the other.
 */
#include <linux/hash.h>
#include <linux/sched.h>

#include "capture/memory.h"
#include "compat/tracepoint.h"
#include "here.h"
#include "ring/record.h"
#include "sources/sources.h"

#ifdef CONFIG_BLOCK
#include <trace/events/block.h>

#include "compat/block.h"
#endif

/* A request that is under way: one of the places of its bucket, which its request alone writes. */
struct kbarman_request {
	const struct request *request;	/* NULL = none */
	u32 task_id;			/* which gave it to its queue */
	u64 begin;			/* when the driver got it, or that it waits in its queue: */
};

#define WAITS_AGAIN	0		/* the driver gave it back */
#define WAITS		1

#define BUCKET		8
#define BUCKET_BITS	9
#define PLACES		(BUCKET << BUCKET_BITS)

#ifdef CONFIG_BLOCK
static struct kbarman_request *block_bucket(const struct kbarman_session *session,
					    const struct request *request)
{
	return &session->requests[BUCKET * hash_ptr(request, BUCKET_BITS)];
}

static struct kbarman_request *block_find(const struct kbarman_session *session,
					  const struct request *request)
{
	struct kbarman_request *place = block_bucket(session, request), *end = place + BUCKET;

	for (; place < end; place++)
		if (smp_load_acquire(&place->request) == request)
			return place;
	return NULL;
}

/* A place for @request of the current task. NULL: its bucket is full. */
static struct kbarman_request *block_add(const struct kbarman_session *session,
					 const struct request *request)
{
	struct kbarman_request *place = block_bucket(session, request), *end = place + BUCKET;

	for (; place < end; place++)
		if (!READ_ONCE(place->request) && !cmpxchg(&place->request, NULL, request)) {
			place->task_id = current->pid;
			return place;
		}
	return NULL;
}

/*
 * The current task hands @request on. If the request is in a state above @last, its place is left over from
 * another one in the same memory, whose end nobody told.
 */
static void block_hand_on(void *data, const struct request *request, u64 last, u64 begin)
{
	const struct kbarman_session *session;
	struct kbarman_request *place;

	preempt_disable_notrace();
	session = kbarman_here(data)->session;
	place = block_find(session, request);
	if (!place)
		place = block_add(session, request);
	else if (place->begin > last)
		place->task_id = current->pid;
	if (place)
		place->begin = begin;
	preempt_enable_notrace();
}

static notrace void on_block_insert(KBARMAN_REQUEST_ARGUMENTS)
{
	block_hand_on(data, request, WAITS_AGAIN, WAITS);
}

static notrace void on_block_issue(KBARMAN_REQUEST_ARGUMENTS)
{
	block_hand_on(data, request, WAITS, kbarman_clock());
}

static notrace void on_block_requeue(KBARMAN_REQUEST_ARGUMENTS)
{
	struct kbarman_request *place;

	preempt_disable_notrace();
	place = block_find(kbarman_here(data)->session, request);
	if (place)
		place->begin = WAITS_AGAIN;
	preempt_enable_notrace();
}

/* @request has become a part of another one. */
static notrace void on_block_merge(KBARMAN_REQUEST_ARGUMENTS)
{
	struct kbarman_request *place;

	preempt_disable_notrace();
	place = block_find(kbarman_here(data)->session, request);
	if (place)
		smp_store_release(&place->request, NULL);
	preempt_enable_notrace();
}

#define FLAG(from, to)	{ (__force u32)(from), to }

static u16 block_flags(const struct request *request)
{
	static const struct {
		u32 from;
		u16 to;
	} flags[] = {
		FLAG(REQ_SYNC, BM_KBARMAN_BLOCK_SYNC),
		FLAG(REQ_META, BM_KBARMAN_BLOCK_META),
		FLAG(REQ_RAHEAD, BM_KBARMAN_BLOCK_AHEAD),
		FLAG(REQ_FUA, BM_KBARMAN_BLOCK_FUA),
		FLAG(REQ_PREFLUSH, BM_KBARMAN_BLOCK_PREFLUSH),
	};
	u32 asked = (__force u32)request->cmd_flags;
	u16 told = asked & BM_KBARMAN_BLOCK_OPERATION;
	int i;

	for (i = 0; i < ARRAY_SIZE(flags); i++)
		if (asked & flags[i].from)
			told |= flags[i].to;
	return told;
}

static notrace void on_block_complete(KBARMAN_COMPLETE_ARGUMENTS)
{
	struct kbarman_ended ended = {
		.result = KBARMAN_COMPLETE_ERROR,
		.numbers = { blk_rq_pos(request), KBARMAN_TWO_WORDS(kbarman_request_device(request), bytes) } };
	struct kbarman_request *place;
	struct kbarman_cpu *here;
	u32 task_id = 0;

	preempt_disable_notrace();
	here = kbarman_here(data);
	place = block_find(here->session, request);
	if (place) {
		task_id = place->task_id;
		ended.begin = place->begin > WAITS ? place->begin << KBARMAN_BEGIN_SHIFT : 0;
		if (bytes >= blk_rq_bytes(request))
			smp_store_release(&place->request, NULL);
	}
	if (kbarman_wants(here->session, task_id))
		kbarman_record_ended(&here->ring, current->pid, KBARMAN_SERIES_BLOCK,
				     kbarman_detail(BM_KBARMAN_BLOCK, kbarman_context(current->pid), task_id,
						    block_flags(request)),
				     &ended, KBARMAN_BLOCK_NUMBERS);
	preempt_enable_notrace();
}

#define INSERT		KBARMAN_PROBE(block_rq_insert, on_block_insert)
#define ISSUE		KBARMAN_PROBE(block_rq_issue, on_block_issue)
#define REQUEUE		KBARMAN_PROBE(block_rq_requeue, on_block_requeue)
#define COMPLETE	KBARMAN_PROBE(block_rq_complete, on_block_complete)
#else
#define INSERT		.name = "block_rq_insert"
#define ISSUE		.name = "block_rq_issue"
#define REQUEUE		.name = "block_rq_requeue"
#define COMPLETE	.name = "block_rq_complete"
static void on_block_merge(void)
{
}
#endif

static struct kbarman_probe block_probes[] = {
	{ INSERT },
	{ ISSUE },
	{ REQUEUE },
	/* It has the arguments of the others, and older kernels do not have it. */
	{ .name = "block_rq_merge", .function = on_block_merge, .optional = true },
	{ COMPLETE },
};

static void block_end(struct kbarman_session *session)
{
	kbarman_memory_free(session->requests);
	session->requests = NULL;
}

static int block_start(struct kbarman_session *session)
{
	int error;

	session->requests = kbarman_memory_pages(PLACES * sizeof(*session->requests), NUMA_NO_NODE);
	if (!session->requests)
		return -ENOMEM;
	error = kbarman_probes_attach(block_probes, ARRAY_SIZE(block_probes), kbarman_probe_data(session));
	if (error) {
		kbarman_probes_wait();
		block_end(session);
	}
	return error;
}

static void block_stop(struct kbarman_session *session)
{
	kbarman_probes_detach(block_probes, ARRAY_SIZE(block_probes), kbarman_probe_data(session));
}

const struct kbarman_source kbarman_source_block = {
	.name = "block",
	.bit = KBARMAN_SOURCE_BLOCK,
	.absent = KBARMAN_SOURCE_BLOCK,
	.probes = block_probes,
	.nr_probes = ARRAY_SIZE(block_probes),
	.start = block_start,
	.stop = block_stop,
	.end = block_end,
};
