// SPDX-License-Identifier: MIT
/*
 * A queue of pieces, written in order by one thread, with syncs and cuts between them. The first
 * error is kept. After it the queue is emptied without writing, because data after a hole are
 * useless.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io/behind.h"
#include "base/thread.h"

#define PIECE_BYTES	((size_t)256 << 10)
#define PIECES_MAX	256U		/* pieces that wait; a caller waits at this limit */
#define SPARE_MAX	8U		/* unused pieces kept for later writes */

enum what { WRITE, SYNC, CUT };

struct piece {
	struct piece *next;
	enum what what;
	uint64_t offset;
	size_t length;
	uint8_t data[PIECE_BYTES];
};

struct kb_behind {
	int fd;
	pthread_t thread;
	pthread_mutex_t lock;		/* protects all members below */
	pthread_cond_t work, done;
	struct piece *first, *last;	/* first is the one being written */
	struct piece *spare;
	unsigned int nr_pieces, nr_spare;
	int error;
	bool stop;
};

/* ---- the thread ---- */

static int write_piece(int fd, const struct piece *piece)
{
	const uint8_t *from = piece->data;
	uint64_t offset = piece->offset;
	size_t left = piece->length;

	if (piece->what == SYNC)
		return fdatasync(fd) && errno != EINVAL ? -errno : 0;
	if (piece->what == CUT)
		return ftruncate(fd, (off_t)offset) ? -errno : 0;
	while (left) {
		ssize_t n = pwrite(fd, from, left, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ENOSPC;
		from += n;
		offset += (uint64_t)n;
		left -= (size_t)n;
	}
	return 0;
}

static void release_first(struct kb_behind *behind)
{
	struct piece *piece = behind->first;

	behind->first = piece->next;
	if (!behind->first)
		behind->last = NULL;
	behind->nr_pieces--;
	if (behind->nr_spare == SPARE_MAX) {
		free(piece);
		return;
	}
	piece->next = behind->spare;
	behind->spare = piece;
	behind->nr_spare++;
}

static void *write_pieces(void *context)
{
	struct kb_behind *behind = context;

	pthread_mutex_lock(&behind->lock);
	for (;;) {
		int ret = behind->error;

		if (!behind->first) {
			if (behind->stop)
				break;
			pthread_cond_wait(&behind->work, &behind->lock);
			continue;
		}
		if (!ret) {
			pthread_mutex_unlock(&behind->lock);
			ret = write_piece(behind->fd, behind->first);
			pthread_mutex_lock(&behind->lock);
		}
		behind->error = ret;
		release_first(behind);
		pthread_cond_broadcast(&behind->done);
	}
	pthread_mutex_unlock(&behind->lock);
	return NULL;
}

/* ---- callers ---- */

static struct piece *new_piece(struct kb_behind *behind)
{
	struct piece *piece = behind->spare;

	if (!piece)
		return malloc(sizeof(*piece));
	behind->spare = piece->next;
	behind->nr_spare--;
	return piece;
}

static int add_piece(struct kb_behind *behind, enum what what, const void *data, size_t length,
		     uint64_t offset)
{
	struct piece *piece;
	int ret;

	pthread_mutex_lock(&behind->lock);
	while (behind->nr_pieces >= PIECES_MAX && !behind->error)
		pthread_cond_wait(&behind->done, &behind->lock);
	ret = behind->error;
	piece = ret ? NULL : new_piece(behind);
	if (piece) {
		piece->next = NULL;
		piece->what = what;
		piece->offset = offset;
		piece->length = length;
		if (length)
			memcpy(piece->data, data, length);
		if (behind->last)
			behind->last->next = piece;
		else
			behind->first = piece;
		behind->last = piece;
		behind->nr_pieces++;
		pthread_cond_signal(&behind->work);
	} else if (!ret) {
		ret = behind->error = -ENOMEM;
	}
	pthread_mutex_unlock(&behind->lock);
	return ret;
}

int kb_behind_write(struct kb_behind *behind, const void *data, size_t length, uint64_t offset)
{
	const uint8_t *from = data;
	int ret = 0;

	while (length && !ret) {
		size_t part = length < PIECE_BYTES ? length : PIECE_BYTES;

		ret = add_piece(behind, WRITE, from, part, offset);
		from += part;
		offset += part;
		length -= part;
	}
	return ret;
}

int kb_behind_sync(struct kb_behind *behind)
{
	return add_piece(behind, SYNC, NULL, 0, 0);
}

int kb_behind_cut(struct kb_behind *behind, uint64_t length)
{
	return add_piece(behind, CUT, NULL, 0, length);
}

int kb_behind_drain(struct kb_behind *behind)
{
	int ret;

	pthread_mutex_lock(&behind->lock);
	while (behind->first)
		pthread_cond_wait(&behind->done, &behind->lock);
	ret = behind->error;
	pthread_mutex_unlock(&behind->lock);
	return ret;
}

int kb_behind_create(struct kb_behind **out, int fd)
{
	struct kb_behind *behind = calloc(1, sizeof(*behind));
	int ret;

	*out = NULL;
	if (!behind)
		return -ENOMEM;
	behind->fd = fd;
	pthread_mutex_init(&behind->lock, NULL);
	pthread_cond_init(&behind->work, NULL);
	pthread_cond_init(&behind->done, NULL);
	ret = kb_thread_start(&behind->thread, write_pieces, behind);
	if (ret) {
		free(behind);
		return ret;
	}
	*out = behind;
	return 0;
}

void kb_behind_destroy(struct kb_behind *behind)
{
	if (!behind)
		return;
	pthread_mutex_lock(&behind->lock);
	behind->stop = true;
	pthread_cond_signal(&behind->work);
	pthread_mutex_unlock(&behind->lock);
	pthread_join(behind->thread, NULL);
	while (behind->spare) {
		struct piece *piece = behind->spare;

		behind->spare = piece->next;
		free(piece);
	}
	pthread_cond_destroy(&behind->work);
	pthread_cond_destroy(&behind->done);
	pthread_mutex_destroy(&behind->lock);
	free(behind);
}
