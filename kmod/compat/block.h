/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef KBARMAN_COMPAT_BLOCK_H
#define KBARMAN_COMPAT_BLOCK_H

#include <linux/blk-mq.h>
#include <linux/blkdev.h>

/* The arguments of a probe of block_rq_insert, block_rq_issue and block_rq_requeue. */
#ifdef KBARMAN_HAVE_BLOCK_RQ_QUEUE
#define KBARMAN_REQUEST_ARGUMENTS	void *data, struct request_queue *queue, struct request *request
#else
#define KBARMAN_REQUEST_ARGUMENTS	void *data, struct request *request
#endif

/* Those of block_rq_complete, and what the request returned: 0 or a negative errno. */
#ifdef KBARMAN_HAVE_BLOCK_STATUS
#define KBARMAN_COMPLETE_ARGUMENTS	void *data, struct request *request, blk_status_t status, \
					unsigned int bytes
#define KBARMAN_COMPLETE_ERROR		blk_status_to_errno(status)
#else
#define KBARMAN_COMPLETE_ARGUMENTS	void *data, struct request *request, int error, unsigned int bytes
#define KBARMAN_COMPLETE_ERROR		error
#endif

/* The disk of @request, MAJOR << 20 | MINOR; 0: it has none. */
static inline u32 kbarman_request_device(const struct request *request)
{
#ifdef KBARMAN_HAVE_QUEUE_DISK
	struct gendisk *disk = request->q->disk;
#else
	struct gendisk *disk = request->rq_disk;
#endif

	return disk ? disk_devt(disk) : 0;
}

#endif /* KBARMAN_COMPAT_BLOCK_H */
