// SPDX-License-Identifier: GPL-2.0-only
/* Newer kernels give the status of a request that ends where there was an errno. */
#include <linux/blkdev.h>
#include <trace/events/block.h>

static void probe(void *data, struct request *request, blk_status_t status, unsigned int bytes)
{
}

static __maybe_unused void compat(void)
{
	check_trace_callback_type_block_rq_complete(probe);
}
