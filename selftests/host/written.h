/* SPDX-License-Identifier: MIT */
/* A small capture that a test writes into memory, and reads. Without memory the test ends. */
#ifndef SELFTESTS_WRITTEN_H
#define SELFTESTS_WRITTEN_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <kbarman/barman.h>

struct written {
	struct kb_barman_writer *writer;
	int fd;
};

/* A capture of nanoseconds. */
static inline struct written written_begin(const struct kb_barman_layout *layout)
{
	const struct kb_header header = {
		.target_name = "t", .timestamp_multiplier = 1, .timestamp_divisor = 1,
	};
	struct written capture = { .fd = memfd_create("capture", 0) };
	struct kb_error err;

	if (kb_barman_writer_create(&capture.writer, capture.fd, layout, &err) ||
	    kb_barman_writer_set_header(capture.writer, &header))
		abort();
	return capture;
}

/* It is whole, and at @path until the caller closes capture->fd. */
static inline void written_finish(struct written *capture, char path[32])
{
	struct kb_error err;

	if (kb_barman_writer_finish(capture->writer, true, &err))
		abort();
	kb_barman_writer_destroy(capture->writer);
	snprintf(path, 32, "/dev/fd/%d", capture->fd);
}

static inline struct kb_barman *written_open(struct written *capture)
{
	struct kb_barman *barman;
	struct kb_error err;
	char path[32];

	written_finish(capture, path);
	if (kb_barman_open(&barman, path, &err))
		abort();
	close(capture->fd);
	return barman;
}

#endif
