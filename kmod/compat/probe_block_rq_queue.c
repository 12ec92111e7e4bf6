// SPDX-License-Identifier: GPL-2.0-only
/* Up to 5.10 the tracepoints of requests that wait have their queue as the first argument. */
#include <linux/blkdev.h>
#include <trace/events/block.h>

static void probe(void *data, struct request_queue *queue, struct request *request)
{
}

static __maybe_unused void compat(void)
{
	check_trace_callback_type_block_rq_issue(probe);
}
