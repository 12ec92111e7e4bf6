// SPDX-License-Identifier: GPL-2.0-only
/* 5.15 moved the disk of a request to its queue. */
#include <linux/blkdev.h>

static __maybe_unused struct gendisk *compat(const struct request_queue *queue)
{
	return queue->disk;
}
