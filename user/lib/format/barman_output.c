// SPDX-License-Identifier: MIT
/*
 * The writer's output to its file. Blocks of a linear store go through a buffer of constant
 * size. A circular store stays in memory, because the writer reads the blocks that it
 * overwrites. Data are written before the header that counts them, so a writer that is killed
 * leaves all that it had synced.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <kbarman/out.h>

#include "format/barman_writer.h"

#define MOVE_BYTES	((size_t)1 << 20)
#define MOVE_MAX	((uint64_t)64 << 20)	/* compacting never copies more data than this */

static int io_error(struct kb_barman_writer *w, int error)
{
	if (!w->error.code)
		kb_error_set(&w->error, -error, KB_NO_OFFSET, "can't write the capture: %s",
			     strerror(error));
	return w->error.code;
}

/* Write at @offset of the capture, or at the end where there are no offsets. */
static int put(struct kb_barman_writer *w, const void *data, size_t length, uint64_t offset)
{
	const uint8_t *from = data;

	if (w->error.code)
		return w->error.code;
	if (w->out) {
		int ret = kb_out_bytes(w->out, data, length);

		return ret ? io_error(w, -ret) : 0;
	}
	if (w->behind) {
		int ret = kb_behind_write(w->behind, data, length, w->base + offset);

		return ret ? io_error(w, -ret) : 0;
	}
	while (length) {
		ssize_t n = w->seekable ? pwrite(w->fd, from, length, w->base + offset)
					: write(w->fd, from, length);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return io_error(w, n < 0 ? errno : ENOSPC);
		from += n;
		offset += n;
		length -= n;
	}
	return 0;
}

/* Set the fields of the header that describe the store. */
static void set_store(struct kb_barman_writer *w)
{
	uint8_t *store = barman_header_field(w, w->places.store);
	uint64_t length = w->flushed + w->used, write = length, total = length, read = 0;

	if (w->ring) {
		length = w->ring_bytes;
		write = total = w->write;
		read = w->read;
	} else if (w->limit != UINT64_MAX) {
		length = w->limit;
	}
	kb_store64(store, length, w->swap);
	kb_store64(store + 8, write, w->swap);
	kb_store64(store + 16, read, w->swap);
	kb_store64(store + 24, total, w->swap);
	kb_store64(barman_header_field(w, BARMAN_AT_LAST_TIMESTAMP), w->last_timestamp, w->swap);
	kb_store32(barman_header_field(w, BARMAN_AT_STRING_LENGTH), w->string_bytes, w->swap);
	barman_complete_header(w);
}

/* Write the whole header to a file that does not allow a second write to it. */
static int send_header(struct kb_barman_writer *w, bool open_end)
{
	set_store(w);
	if (open_end && w->limit != UINT64_MAX) {
		uint8_t *store = barman_header_field(w, w->places.store);

		kb_store64(store + 8, w->limit, w->swap);
		kb_store64(store + 24, w->limit, w->swap);
	} else if (open_end) {
		uint8_t *store = barman_header_field(w, w->places.store);

		kb_store64(store, BARMAN_OPEN_END, w->swap);
		kb_store64(store + 8, BARMAN_OPEN_END, w->swap);
		kb_store64(store + 24, 0, w->swap);
	}
	w->header_sent = true;
	return put(w, w->header, w->places.end, 0);
}

void barman_write_to(struct kb_barman_writer *w, struct kb_out *out)
{
	w->out = out;
	w->seekable = false;
}

int barman_flush(struct kb_barman_writer *w)
{
	int ret = 0;

	if (!w->seekable && !w->header_sent)
		ret = send_header(w, true);
	if (!ret)
		ret = put(w, w->buffer, w->used, w->places.end + w->flushed);
	if (ret)
		return ret;
	w->flushed += w->used;
	w->used = 0;
	return 0;
}

static int put_rows(struct kb_barman_writer *w, uint64_t table, uint64_t row_bytes, uint32_t from,
		    uint32_t to)
{
	return put(w, w->header + table + 4 + from * row_bytes, (to - from) * row_bytes,
		   table + 4 + from * row_bytes);
}

/* Write what has changed in the header, except the counts. */
int barman_write_rows(struct kb_barman_writer *w)
{
	const struct barman_places *p = &w->places;
	int ret;

	set_store(w);
	ret = put(w, w->header + BARMAN_AT_STRINGS + w->synced_strings,
		  w->string_bytes - w->synced_strings, BARMAN_AT_STRINGS + w->synced_strings);
	if (!ret && w->nr_tasks > w->synced_tasks)
		ret = put_rows(w, p->tasks, BARMAN_TASK_BYTES, w->synced_tasks, w->nr_tasks);
	if (!ret && w->nr_maps > w->synced_maps)
		ret = put_rows(w, p->maps, p->map_bytes, w->synced_maps, w->nr_maps);
	if (!ret && !w->synced_rest)
		ret = put(w, w->header + p->pmus, p->tasks - p->pmus, p->pmus);
	if (!ret && !w->synced_rest)
		ret = put(w, w->header + p->charts, p->store - p->charts, p->charts);
	return ret;
}

/* Write the counts of rows, strings and bytes of records. */
int barman_write_header(struct kb_barman_writer *w)
{
	const struct barman_places *p = &w->places;
	int ret = 0;

	set_store(w);
	if (w->shape.max_task_infos)
		ret = put(w, w->header + p->tasks, 4, p->tasks);
	if (!ret && w->shape.max_mmap_layout)
		ret = put(w, w->header + p->maps, 4, p->maps);
	if (!ret)
		ret = put(w, w->header, BARMAN_AT_STRINGS, 0);
	if (!ret)
		ret = put(w, w->header + p->store, BARMAN_STORE_BYTES, p->store);
	if (ret)
		return ret;
	w->synced_strings = w->string_bytes;
	w->synced_tasks = w->nr_tasks;
	w->synced_maps = w->nr_maps;
	w->synced_rest = true;
	return 0;
}

/* Write what has changed in the ring: at most two pieces. */
int barman_write_ring(struct kb_barman_writer *w)
{
	uint64_t from = w->synced_ring, n = w->ring_bytes;
	int ret = 0;

	if (w->write - from > n)
		from = w->write - n;
	while (!ret && from < w->write) {
		uint64_t at = from % n, piece = w->write - from;

		if (piece > n - at)
			piece = n - at;
		ret = put(w, w->ring + at, piece, w->places.end + at);
		from += piece;
	}
	if (!ret)
		w->synced_ring = w->write;
	return ret;
}

static uint8_t *reserve_linear(struct kb_barman_writer *w, uint64_t whole, int *error)
{
	uint8_t *at;

	if (whole > w->limit - (w->flushed + w->used)) {
		*error = -ENOSPC;
		return NULL;
	}
	if (kb_unlikely(whole > w->room - w->used)) {
		*error = barman_flush(w);
		if (*error)
			return NULL;
		if (whole > w->room) {
			uint8_t *more = realloc(w->buffer, whole);

			if (!more) {
				*error = -ENOMEM;
				return NULL;
			}
			w->buffer = more;
			w->room = whole;
		}
	}
	at = w->buffer + w->used;
	w->used += whole;
	return at;
}

int barman_append(struct kb_barman_writer *w, const void *blocks, size_t bytes)
{
	const uint8_t *from = blocks;
	int ret = 0;

	if (bytes > w->limit - (w->flushed + w->used))
		return -ENOSPC;
	while (bytes && !ret) {
		size_t part = w->room - w->used;

		if (part > bytes)
			part = bytes;
		memcpy(w->buffer + w->used, from, part);
		w->used += part;
		from += part;
		bytes -= part;
		if (w->used == w->room)
			ret = barman_flush(w);
	}
	return ret;
}

/* Remove old blocks until there is room for @whole <= ring_bytes bytes. */
static void ring_evict(struct kb_barman_writer *w, uint64_t whole)
{
	unsigned int word = w->shape.word;
	uint64_t padding_bit = UINT64_C(1) << (word * 8 - 1);

	while (w->write + whole - w->read > w->ring_bytes) {
		const uint8_t *at = w->ring + w->read % w->ring_bytes;

		w->read += word + (kb_load_word(at, word, w->swap) & ~padding_bit);
	}
}

/* A block that would be split at the end goes to the start, and padding fills the end. */
static uint8_t *reserve_ring(struct kb_barman_writer *w, uint64_t whole, int *error)
{
	unsigned int word = w->shape.word;
	uint64_t padding_bit = UINT64_C(1) << (word * 8 - 1);
	uint64_t n = w->ring_bytes, head = w->write % n;

	if (whole > n) {
		*error = -E2BIG;
		return NULL;
	}
	if (whole > n - head) {
		uint64_t pad = n - head;

		ring_evict(w, pad);
		kb_store_word(w->ring + head, padding_bit | (pad - word), word, w->swap);
		w->write += pad;
		head = 0;
	}
	ring_evict(w, whole);
	w->write += whole;
	return w->ring + head;
}

uint8_t *barman_reserve(struct kb_barman_writer *w, uint64_t length, int *error)
{
	unsigned int word = w->shape.word;
	uint8_t *at;

	if (kb_unlikely(length > BARMAN_RECORD_MAX)) {
		*error = -E2BIG;
		return NULL;
	}
	at = w->ring ? reserve_ring(w, word + length, error)
		     : reserve_linear(w, word + length, error);
	if (kb_unlikely(!at))
		return NULL;
	kb_store_word(at, length, word, w->swap);
	return at + word;
}

/* Make a second header with the same tables without unused rows. */
static int small_header(const struct kb_barman_writer *w, struct barman_shape *shape,
			struct barman_places *places, uint32_t more_strings, uint8_t **out)
{
	const struct barman_places *p = &w->places;
	uint32_t most = 0;
	uint8_t *to;

	*shape = w->shape;
	shape->max_string_table_length = ((w->string_bytes + 3) & ~3U) + more_strings;
	for (uint32_t core = 0; core < shape->max_cores; core++) {
		if (w->num_counters[core] > most)
			most = w->num_counters[core];
	}
	shape->max_pmu_counters = most;
	/*
	 * A table whose size becomes 0 would remove fields from the records. The series that
	 * records refer to are not known, unless the layout says so.
	 */
	if (w->spare_series && shape->num_series) {
		shape->num_charts = w->nr_charts ? w->nr_charts : 1;
		shape->num_series = w->nr_series ? w->nr_series : 1;
	}
	if (shape->max_task_infos)
		shape->max_task_infos = w->nr_tasks ? w->nr_tasks : 1;
	if (shape->max_mmap_layout)
		shape->max_mmap_layout = w->nr_maps ? w->nr_maps : 1;
	barman_places(places, shape);
	to = calloc(1, places->end);
	if (!to)
		return -ENOMEM;
	*out = to;

	memcpy(to, w->header, BARMAN_AT_STRINGS + w->string_bytes);
	for (uint32_t core = 0; core < shape->max_cores; core++)
		memcpy(to + places->pmus + core * places->pmu_bytes,
		       w->header + p->pmus + core * p->pmu_bytes,
		       20 + shape->word + 4 * (size_t)w->num_counters[core]);
	if (shape->max_task_infos)
		memcpy(to + places->tasks, w->header + p->tasks,
		       4 + (size_t)w->nr_tasks * BARMAN_TASK_BYTES);
	if (shape->max_mmap_layout)
		memcpy(to + places->maps, w->header + p->maps, 4 + w->nr_maps * p->map_bytes);
	if (shape->num_series) {
		memcpy(to + places->charts, w->header + p->charts,
		       4 + (size_t)shape->num_charts * BARMAN_CHART_BYTES);
		kb_store32(to + places->charts, shape->num_charts, w->swap);
		memcpy(to + places->series, w->header + p->series,
		       (size_t)shape->num_series * BARMAN_SERIES_BYTES);
	}
	kb_store32(to + BARMAN_AT_HEADER_LENGTH, places->end, w->swap);
	kb_store32(to + BARMAN_AT_CONFIG + 4, shape->max_task_infos, w->swap);
	kb_store32(to + BARMAN_AT_CONFIG + 8, shape->max_mmap_layout, w->swap);
	kb_store32(to + BARMAN_AT_CONFIG + 12, shape->max_pmu_counters, w->swap);
	kb_store32(to + BARMAN_AT_CONFIG + 16, shape->max_string_table_length, w->swap);
	kb_store32(to + BARMAN_AT_CONFIG + 20, shape->num_series, w->swap);
	return 0;
}

static void take_header(struct kb_barman_writer *w, const struct barman_shape *shape,
			const struct barman_places *places, uint8_t *header)
{
	free(w->header);
	w->header = header;
	w->shape = *shape;
	w->places = *places;
}

/* Move data in the file down by @by bytes, and shorten the file. */
static int move_down(struct kb_barman_writer *w, uint64_t by)
{
	uint64_t from = w->base + w->places.end, end = from + w->flushed;
	uint8_t *piece = malloc(MOVE_BYTES);
	int ret = 0;

	if (!piece)
		return -ENOMEM;
	while (from < end && !ret) {
		ssize_t n = pread(w->fd, piece, MOVE_BYTES, from);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			ret = n < 0 ? -errno : -EIO;
		else
			ret = put(w, piece, n, from - by - w->base);
		from += n;
	}
	free(piece);
	if (!ret && ftruncate(w->fd, end - by))
		ret = -errno;
	return ret;
}

/* Whether the file can be read. Moving its data requires that. */
static bool is_readable(const struct kb_barman_writer *w)
{
	return (fcntl(w->fd, F_GETFL) & O_ACCMODE) == O_RDWR;
}

/*
 * Let the file system remove whole blocks from the middle of the header. The rest, less than a
 * block, is added to the string table. Returns 0 on success.
 */
static int collapse(struct kb_barman_writer *w, uint64_t by, uint64_t *taken)
{
	struct stat st;
	uint64_t block, from;

	if (fstat(w->fd, &st))
		return -errno;
	block = st.st_blksize > 0 ? st.st_blksize : 4096;
	from = (w->base + block - 1) / block * block;
	if (from - w->base > by)
		return -EINVAL;
	*taken = (by - (from - w->base)) / block * block;
	if (!*taken)
		return -EINVAL;
	return fallocate(w->fd, FALLOC_FL_COLLAPSE_RANGE, from, *taken) ? -errno : 0;
}

/*
 * Remove the unused rows. Data that are not written yet are simply written to another place.
 * Data in the file must be moved, and stay if that is expensive; the rows are holes anyway.
 */
static void compact_header(struct kb_barman_writer *w)
{
	struct barman_places places;
	struct barman_shape shape;
	uint64_t by, taken = 0;
	uint8_t *small;

	if (small_header(w, &shape, &places, 0, &small))
		return;
	by = w->places.end - places.end;
	if (by && w->flushed) {
		if (collapse(w, by, &taken) == 0) {
			free(small);
			if (small_header(w, &shape, &places, by - taken, &small)) {
				io_error(w, ENOMEM);
				return;
			}
		} else {
			int ret;

			if (w->flushed > MOVE_MAX || !is_readable(w)) {
				free(small);
				return;
			}
			ret = move_down(w, by);
			if (ret)
				io_error(w, -ret);
		}
	}
	take_header(w, &shape, &places, small);
	w->synced_ring = 0;
}

int barman_write_behind(struct kb_barman_writer *w)
{
	return w->seekable ? kb_behind_create(&w->behind, w->fd) : 0;
}

int barman_wait(struct kb_barman_writer *w)
{
	int ret = w->behind ? kb_behind_drain(w->behind) : 0;

	return ret ? io_error(w, -ret) : 0;
}

/*
 * If a thread writes, sync the data to the disk before the header that counts them, so that
 * they survive a power loss. The first time is an exception, because the caller waits for it.
 */
static int sync_output(struct kb_barman_writer *w)
{
	int ret = w->ring ? barman_write_ring(w) : barman_flush(w);

	if (!ret)
		ret = barman_write_rows(w);
	if (!ret && w->behind && w->synced_strings && kb_behind_sync(w->behind))
		ret = barman_wait(w);
	return ret ? ret : barman_write_header(w);
}

/* The end: data, sync, header. Afterwards the file's position is behind the capture. */
static int finish_output(struct kb_barman_writer *w, bool compact)
{
	uint64_t data;
	int ret;

	set_store(w);
	if (!w->seekable) {
		if (w->header_sent)
			return barman_flush(w);
		if (compact)
			compact_header(w);
		ret = send_header(w, false);
		if (!ret && w->ring)
			return put(w, w->ring, w->write < w->ring_bytes ? w->write : w->ring_bytes,
				   0);
		return ret ? ret : barman_flush(w);
	}
	/* The rest is done by this thread, and not all of it is writing. */
	ret = barman_wait(w);
	kb_behind_destroy(w->behind);
	w->behind = NULL;
	if (ret)
		return ret;
	if (compact)
		compact_header(w);
	ret = w->ring ? barman_write_ring(w) : barman_flush(w);
	if (!ret && !compact)
		ret = barman_write_rows(w);
	if (!ret && fdatasync(w->fd))
		ret = io_error(w, errno);
	if (ret)
		return ret;
	if (compact) {
		set_store(w);
		ret = put(w, w->header, w->places.end, 0);
	} else {
		ret = barman_write_header(w);
	}
	if (ret)
		return ret;
	data = w->ring ? w->write < w->ring_bytes ? w->write : w->ring_bytes : w->flushed;
	/* An earlier sync may have written data behind the new end. */
	if (ftruncate(w->fd, w->base + w->places.end + data))
		return io_error(w, errno);
	lseek(w->fd, w->base + w->places.end + data, SEEK_SET);
	return 0;
}

/* Copy the record buffer from file to file, within the file system if it can do that. */
static int copy_data(const struct kb_barman_writer *from, struct kb_barman_writer *to)
{
	off_t in = from->base + from->places.end, out = to->places.end;
	uint64_t left = from->flushed;
	uint8_t *piece;
	int ret = 0;

	while (left) {
		ssize_t n = copy_file_range(from->fd, &in, to->fd, &out, left, 0);

		if (n <= 0)
			break;
		left -= n;
	}
	piece = left ? malloc(MOVE_BYTES) : NULL;
	if (left && !piece)
		return -ENOMEM;
	while (left && !ret) {
		ssize_t n = pread(from->fd, piece, left < MOVE_BYTES ? left : MOVE_BYTES, in);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			ret = n < 0 ? -errno : -EIO;
			break;
		}
		ret = put(to, piece, n, out);
		in += n;
		out += n;
		left -= n;
	}
	free(piece);
	return ret;
}

/* A copy of the writer, with a small header and everything else shared, writes the file. */
static int copy_compact(const struct kb_barman_writer *w, int fd)
{
	struct kb_barman_writer to = *w;
	int ret;

	if (!w->seekable || w->ring || !is_readable(w))
		return -EINVAL;
	if (w->flushed > MOVE_MAX)
		return -EFBIG;
	ret = small_header(w, &to.shape, &to.places, 0, &to.header);
	if (ret)
		return ret;
	to.fd = fd;
	to.base = 0;
	set_store(&to);
	ret = copy_data(w, &to);
	if (!ret)
		ret = put(&to, to.header, to.places.end, 0);
	if (!ret && fdatasync(fd))
		ret = -errno;
	free(to.header);
	return ret;
}

int kb_barman_writer_sync(struct kb_barman_writer *w)
{
	int ret = w->error.code;

	if (ret)
		return ret;
	if (!w->seekable)
		return w->ring ? 0 : barman_flush(w);
	return sync_output(w);
}

int kb_barman_writer_finish(struct kb_barman_writer *w, bool compact, struct kb_error *err)
{
	int ret = w->error.code;

	if (!ret)
		ret = finish_output(w, compact);
	if (ret && !w->error.code)
		kb_error_set(&w->error, ret, KB_NO_OFFSET, "can't write the capture: %s",
			     strerror(-ret));
	if (ret && err)
		*err = w->error;
	return ret;
}

int kb_barman_writer_compact(struct kb_barman_writer *w, int fd, struct kb_error *err)
{
	int ret = w->error.code;

	if (!ret)
		ret = copy_compact(w, fd);
	if (ret)
		kb_error_set(err, ret, KB_NO_OFFSET, "the capture can't be made smaller: %s",
			     strerror(-ret));
	return ret;
}
