// SPDX-License-Identifier: MIT
/*
 * A queue of pieces, written in order by one thread. A piece without bytes is a sync. The first
 * error is kept. After it the queue is emptied without writing, because data behind a hole are
 * useless.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/behind.h"
#include "base/thread.h"

#define PIECE_BYTES	((size_t)256 << 10)
#define PIECES_MAX	256U		/* pieces that wait; a caller waits at this limit */
#define SPARE_MAX	8U		/* unused pieces kept for later writes */

struct piece {
	struct piece *next;
	uint64_t offset;
	size_t length;			/* 0: a sync */
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

	if (!left)
		return fdatasync(fd) && errno != EINVAL ? -errno : 0;
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

static void release_first(struct kb_behind *b)
{
	struct piece *piece = b->first;

	b->first = piece->next;
	if (!b->first)
		b->last = NULL;
	b->nr_pieces--;
	if (b->nr_spare == SPARE_MAX) {
		free(piece);
		return;
	}
	piece->next = b->spare;
	b->spare = piece;
	b->nr_spare++;
}

static void *write_pieces(void *context)
{
	struct kb_behind *b = context;

	pthread_mutex_lock(&b->lock);
	for (;;) {
		int ret = b->error;

		if (!b->first) {
			if (b->stop)
				break;
			pthread_cond_wait(&b->work, &b->lock);
			continue;
		}
		if (!ret) {
			pthread_mutex_unlock(&b->lock);
			ret = write_piece(b->fd, b->first);
			pthread_mutex_lock(&b->lock);
		}
		b->error = ret;
		release_first(b);
		pthread_cond_broadcast(&b->done);
	}
	pthread_mutex_unlock(&b->lock);
	return NULL;
}

/* ---- callers ---- */

static struct piece *new_piece(struct kb_behind *b)
{
	struct piece *piece = b->spare;

	if (!piece)
		return malloc(sizeof(*piece));
	b->spare = piece->next;
	b->nr_spare--;
	return piece;
}

static int add_piece(struct kb_behind *b, const void *data, size_t length, uint64_t offset)
{
	struct piece *piece;
	int ret;

	pthread_mutex_lock(&b->lock);
	while (b->nr_pieces >= PIECES_MAX && !b->error)
		pthread_cond_wait(&b->done, &b->lock);
	ret = b->error;
	piece = ret ? NULL : new_piece(b);
	if (piece) {
		piece->next = NULL;
		piece->offset = offset;
		piece->length = length;
		if (length)
			memcpy(piece->data, data, length);
		if (b->last)
			b->last->next = piece;
		else
			b->first = piece;
		b->last = piece;
		b->nr_pieces++;
		pthread_cond_signal(&b->work);
	} else if (!ret) {
		ret = b->error = -ENOMEM;
	}
	pthread_mutex_unlock(&b->lock);
	return ret;
}

int kb_behind_write(struct kb_behind *b, const void *data, size_t length, uint64_t offset)
{
	const uint8_t *from = data;
	int ret = 0;

	while (length && !ret) {
		size_t part = length < PIECE_BYTES ? length : PIECE_BYTES;

		ret = add_piece(b, from, part, offset);
		from += part;
		offset += part;
		length -= part;
	}
	return ret;
}

int kb_behind_sync(struct kb_behind *b)
{
	return add_piece(b, NULL, 0, 0);
}

int kb_behind_drain(struct kb_behind *b)
{
	int ret;

	pthread_mutex_lock(&b->lock);
	while (b->first)
		pthread_cond_wait(&b->done, &b->lock);
	ret = b->error;
	pthread_mutex_unlock(&b->lock);
	return ret;
}

int kb_behind_create(struct kb_behind **out, int fd)
{
	struct kb_behind *b = calloc(1, sizeof(*b));
	int ret;

	*out = NULL;
	if (!b)
		return -ENOMEM;
	b->fd = fd;
	pthread_mutex_init(&b->lock, NULL);
	pthread_cond_init(&b->work, NULL);
	pthread_cond_init(&b->done, NULL);
	ret = kb_thread_start(&b->thread, write_pieces, b);
	if (ret) {
		free(b);
		return ret;
	}
	*out = b;
	return 0;
}

void kb_behind_destroy(struct kb_behind *b)
{
	if (!b)
		return;
	pthread_mutex_lock(&b->lock);
	b->stop = true;
	pthread_cond_signal(&b->work);
	pthread_mutex_unlock(&b->lock);
	pthread_join(b->thread, NULL);
	while (b->spare) {
		struct piece *piece = b->spare;

		b->spare = piece->next;
		free(piece);
	}
	pthread_cond_destroy(&b->work);
	pthread_cond_destroy(&b->done);
	pthread_mutex_destroy(&b->lock);
	free(b);
}
