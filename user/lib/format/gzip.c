// SPDX-License-Identifier: MIT
/*
 * Connects two outputs with zlib's deflate, with the header and trailer of RFC 1952.
 *
 * The input is cut into blocks, which are compressed on as many CPUs as there are. Each block ends
 * at a byte boundary, and may refer to the last 32 KiB of the one before it, so hardly anything is
 * lost by that. The blocks are always the same, so the output does not depend on the number of CPUs.
 * Input of one block needs no thread; nor does a program that can't make threads.
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/io/out_packet.h"
#include "base/thread.h"
#include "format/gzip.h"

#define BLOCK		(256U << 10)
#define WINDOW		(1U << MAX_WBITS)	/* how far deflate refers back */
#define WORKERS_MAX	4U
#define BLOCKS		(2 * WORKERS_MAX)	/* that are being filled, compressed or written */

struct block {
	uint8_t *input;		/* a window of the block before this one, and BLOCK bytes */
	uint8_t *packed;
	uint32_t window, size, packed_size, crc;
	bool last, done;
};

struct kb_gzip {
	struct kb_out *in, *out;
	struct block blocks[BLOCKS];
	uint32_t room;			/* of block.packed */
	uint32_t crc, bytes;		/* of what was written; the number of bytes is modulo 2^32 */
	z_stream stream;		/* the caller's */
	/*
	 * Blocks have numbers. [written, taken) are done or being compressed, [taken, filled) wait,
	 * and the block `filled` is being filled.
	 */
	unsigned int written, taken, filled;
	unsigned int nr_workers;
	bool tried;			/* to start them */
	pthread_t workers[WORKERS_MAX];
	pthread_mutex_t lock;		/* protects all members below, taken, filled and block.done */
	pthread_cond_t work, done;
	bool stop;
};

static int stream_begin(z_stream *stream)
{
	return deflateInit2(stream, Z_BEST_SPEED, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) ?
		       -ENOMEM : 0;
}

static struct block *block_of(struct kb_gzip *gzip, unsigned int number)
{
	return &gzip->blocks[number % BLOCKS];
}

/* ---- compressing ---- */

static void block_pack(struct block *block, z_stream *stream, uint32_t room)
{
	const uint8_t *data = block->input + WINDOW;

	deflateReset(stream);
	if (block->window)
		deflateSetDictionary(stream, data - block->window, block->window);
	stream->next_in = (void *)data;
	stream->avail_in = block->size;
	stream->next_out = block->packed;
	stream->avail_out = room;
	deflate(stream, block->last ? Z_FINISH : Z_SYNC_FLUSH);
	block->packed_size = room - stream->avail_out;
	block->crc = (uint32_t)crc32(0, data, block->size);
}

/* Compress the next block that waits. Context: gzip->lock, which is released meanwhile. */
static void pack_next(struct kb_gzip *gzip, z_stream *stream)
{
	struct block *block = block_of(gzip, gzip->taken++);

	pthread_mutex_unlock(&gzip->lock);
	block_pack(block, stream, gzip->room);
	pthread_mutex_lock(&gzip->lock);
	block->done = true;
}

static void *work(void *context)
{
	struct kb_gzip *gzip = context;
	z_stream stream = { 0 };

	/* Without memory the others do it, and the caller. */
	if (stream_begin(&stream))
		return NULL;
	pthread_mutex_lock(&gzip->lock);
	for (;;) {
		while (gzip->taken == gzip->filled && !gzip->stop)
			pthread_cond_wait(&gzip->work, &gzip->lock);
		if (gzip->taken == gzip->filled)
			break;
		pack_next(gzip, &stream);
		pthread_cond_signal(&gzip->done);
	}
	pthread_mutex_unlock(&gzip->lock);
	deflateEnd(&stream);
	return NULL;
}

/* One thread less than CPUs: the caller compresses when it has nothing else to do. */
static void start_workers(struct kb_gzip *gzip)
{
	unsigned int wanted = kb_cpus();

	gzip->tried = true;
	while (gzip->nr_workers < WORKERS_MAX && gzip->nr_workers + 1 < wanted &&
	       !kb_thread_start(&gzip->workers[gzip->nr_workers], work, gzip))
		gzip->nr_workers++;
}

/* ---- writing ---- */

static int put_block(struct kb_gzip *gzip, struct block *block)
{
	gzip->crc = (uint32_t)crc32_combine(gzip->crc, block->crc, block->size);
	gzip->bytes += block->size;
	block->done = false;
	gzip->written++;
	return kb_out_bytes(gzip->out, block->packed, block->packed_size);
}

/* Write the oldest block; compress blocks until it is done. There is one. */
static int write_oldest(struct kb_gzip *gzip)
{
	struct block *oldest = block_of(gzip, gzip->written);

	pthread_mutex_lock(&gzip->lock);
	while (!oldest->done)
		if (gzip->taken == gzip->filled)
			pthread_cond_wait(&gzip->done, &gzip->lock);
		else
			pack_next(gzip, &gzip->stream);
	pthread_mutex_unlock(&gzip->lock);
	return put_block(gzip, oldest);
}

/* ---- filling ---- */

static int block_room(struct kb_gzip *gzip, struct block *block)
{
	if (!block->input)
		block->input = malloc(WINDOW + BLOCK);
	if (!block->packed)
		block->packed = malloc(gzip->room);
	block->size = 0;
	block->window = 0;
	block->last = false;
	return block->input && block->packed ? 0 : -ENOMEM;
}

/* The block that is being filled goes to the workers. */
static void give_block(struct kb_gzip *gzip)
{
	pthread_mutex_lock(&gzip->lock);
	gzip->filled++;
	pthread_cond_signal(&gzip->work);
	pthread_mutex_unlock(&gzip->lock);
}

/* The same, and the next one begins. */
static int next_block(struct kb_gzip *gzip)
{
	struct block *block = block_of(gzip, gzip->filled), *next;
	int ret = 0;

	if (!gzip->tried)
		start_workers(gzip);
	while (!ret && gzip->filled + 1 - gzip->written == BLOCKS)
		ret = write_oldest(gzip);
	next = block_of(gzip, gzip->filled + 1);
	ret = ret ? ret : block_room(gzip, next);
	if (ret)
		return ret;
	memcpy(next->input, block->input + BLOCK, WINDOW);
	next->window = WINDOW;
	give_block(gzip);
	return 0;
}

static int fill(void *context, const void *data, size_t size)
{
	struct kb_gzip *gzip = context;
	const uint8_t *from = data;
	struct block *block;
	size_t part;
	int ret;

	while (size) {
		block = block_of(gzip, gzip->filled);
		/* more follows, so it is not the last one */
		if (block->size == BLOCK) {
			ret = next_block(gzip);
			if (ret)
				return ret;
			continue;
		}
		part = BLOCK - block->size < size ? BLOCK - block->size : size;
		memcpy(block->input + WINDOW + block->size, from, part);
		block->size += (uint32_t)part;
		from += part;
		size -= part;
	}
	return 0;
}

/* ---- the whole ---- */

static void put_header(struct kb_out *out)
{
	/* deflate, no name, no time, at its fastest, made on a Unix */
	static const uint8_t header[] = { 0x1f, 0x8b, Z_DEFLATED, 0, 0, 0, 0, 0, 4, 3 };

	kb_out_bytes(out, header, sizeof(header));
}

int kb_gzip_create(struct kb_gzip **out, struct kb_out *to, struct kb_out **in)
{
	struct kb_gzip *gzip = calloc(1, sizeof(*gzip));

	if (!gzip)
		return -ENOMEM;
	gzip->out = to;
	pthread_mutex_init(&gzip->lock, NULL);
	pthread_cond_init(&gzip->work, NULL);
	pthread_cond_init(&gzip->done, NULL);
	if (stream_begin(&gzip->stream))
		goto err;
	/* a sync flush may add some bytes to what zlib tells */
	gzip->room = (uint32_t)deflateBound(&gzip->stream, BLOCK) + 64;
	if (block_room(gzip, block_of(gzip, 0)) || kb_out_function(&gzip->in, fill, gzip))
		goto err;
	put_header(to);
	*in = gzip->in;
	*out = gzip;
	return 0;

err:
	kb_gzip_destroy(gzip);
	return -ENOMEM;
}

void kb_gzip_destroy(struct kb_gzip *gzip)
{
	if (!gzip)
		return;
	pthread_mutex_lock(&gzip->lock);
	gzip->stop = true;
	gzip->taken = gzip->filled;	/* nobody wants what is left */
	pthread_cond_broadcast(&gzip->work);
	pthread_mutex_unlock(&gzip->lock);
	for (unsigned int i = 0; i < gzip->nr_workers; i++)
		pthread_join(gzip->workers[i], NULL);
	for (unsigned int i = 0; i < BLOCKS; i++) {
		free(gzip->blocks[i].input);
		free(gzip->blocks[i].packed);
	}
	pthread_cond_destroy(&gzip->work);
	pthread_cond_destroy(&gzip->done);
	pthread_mutex_destroy(&gzip->lock);
	kb_out_destroy(gzip->in);
	deflateEnd(&gzip->stream);
	free(gzip);
}

static int put_trailer(const struct kb_gzip *gzip)
{
	uint8_t trailer[8];

	for (unsigned int i = 0; i < 4; i++) {
		trailer[i] = (uint8_t)(gzip->crc >> 8 * i);
		trailer[4 + i] = (uint8_t)(gzip->bytes >> 8 * i);
	}
	return kb_out_bytes(gzip->out, trailer, sizeof(trailer));
}

int kb_gzip_finish(struct kb_gzip *gzip)
{
	int error = kb_out_flush(gzip->in);

	if (error)
		return error;
	block_of(gzip, gzip->filled)->last = true;
	give_block(gzip);
	while (!error && gzip->written != gzip->filled)
		error = write_oldest(gzip);
	return error ? error : put_trailer(gzip);
}
