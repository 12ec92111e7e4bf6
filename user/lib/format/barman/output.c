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

#include "format/barman/writer.h"

#define MOVE_BYTES	((size_t)1 << 20)
#define MOVE_MAX	((uint64_t)64 << 20)	/* compacting never copies more data than this */

static int io_error(struct kb_barman_writer *writer, int error)
{
	if (!writer->error.code)
		kb_error_set(&writer->error, -error, KB_NO_OFFSET, "can't write the capture: %s",
			     strerror(error));
	return writer->error.code;
}

/* Write at @offset of the capture, or at the end where there are no offsets. */
static int put(struct kb_barman_writer *writer, const void *data, size_t length, uint64_t offset)
{
	const uint8_t *from = data;

	if (writer->error.code)
		return writer->error.code;
	if (writer->out) {
		int ret = kb_out_bytes(writer->out, data, length);

		return ret ? io_error(writer, -ret) : 0;
	}
	if (writer->behind) {
		int ret = kb_behind_write(writer->behind, data, length, writer->base + offset);

		return ret ? io_error(writer, -ret) : 0;
	}
	while (length) {
		ssize_t n = writer->seekable
				    ? pwrite(writer->fd, from, length, writer->base + offset)
				    : write(writer->fd, from, length);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return io_error(writer, n < 0 ? errno : ENOSPC);
		from += n;
		offset += n;
		length -= n;
	}
	return 0;
}

/* Set the fields of the header that describe the store. */
static void set_store(struct kb_barman_writer *writer)
{
	uint8_t *store = barman_header_field(writer, writer->places.store);
	uint64_t length = writer->flushed + writer->used, write = length, total = length, read = 0;

	if (writer->ring) {
		length = writer->ring_bytes;
		write = total = writer->write;
		read = writer->read;
	} else if (writer->limit != UINT64_MAX) {
		length = writer->limit;
	}
	kb_store64(store, length, writer->swap);
	kb_store64(store + 8, write, writer->swap);
	kb_store64(store + 16, read, writer->swap);
	kb_store64(store + 24, total, writer->swap);
	kb_store64(barman_header_field(writer, BARMAN_AT_LAST_TIMESTAMP), writer->last_timestamp,
		   writer->swap);
	kb_store32(barman_header_field(writer, BARMAN_AT_STRING_LENGTH), writer->string_bytes,
		   writer->swap);
	barman_complete_header(writer);
}

/* Write the whole header to a file that does not allow a second write to it. */
static int send_header(struct kb_barman_writer *writer, bool open_end)
{
	set_store(writer);
	if (open_end && writer->limit != UINT64_MAX) {
		uint8_t *store = barman_header_field(writer, writer->places.store);

		kb_store64(store + 8, writer->limit, writer->swap);
		kb_store64(store + 24, writer->limit, writer->swap);
	} else if (open_end) {
		uint8_t *store = barman_header_field(writer, writer->places.store);

		kb_store64(store, BARMAN_OPEN_END, writer->swap);
		kb_store64(store + 8, BARMAN_OPEN_END, writer->swap);
		kb_store64(store + 24, 0, writer->swap);
	}
	writer->header_sent = true;
	return put(writer, writer->header, writer->places.end, 0);
}

void barman_write_to(struct kb_barman_writer *writer, struct kb_out *out)
{
	writer->out = out;
	writer->seekable = false;
}

/* End the file where the records that are flushed end: what is written there next may be less. */
static int cut_tail(struct kb_barman_writer *writer)
{
	uint64_t end = writer->base + writer->places.end + writer->flushed;
	int ret;

	writer->tail = 0;
	if (writer->behind)
		ret = kb_behind_cut(writer->behind, end);
	else
		ret = ftruncate(writer->fd, (off_t)end) ? -errno : 0;
	return ret ? io_error(writer, -ret) : 0;
}

int barman_write_tail(struct kb_barman_writer *writer, const void *blocks, size_t bytes)
{
	int ret = writer->seekable ? put(writer, blocks, bytes,
					 writer->places.end + writer->flushed + writer->tail) : 0;

	if (!ret && writer->seekable)
		writer->tail += bytes;
	return ret;
}

int barman_flush(struct kb_barman_writer *writer)
{
	int ret = 0;

	if (writer->tail && writer->used)
		ret = cut_tail(writer);
	if (!ret && !writer->seekable && !writer->header_sent)
		ret = send_header(writer, true);
	if (!ret)
		ret = put(writer, writer->buffer, writer->used,
			  writer->places.end + writer->flushed);
	if (ret)
		return ret;
	writer->flushed += writer->used;
	writer->used = 0;
	return 0;
}

static int put_rows(struct kb_barman_writer *writer, uint64_t table, uint64_t row_bytes,
		    uint32_t from, uint32_t to)
{
	return put(writer, writer->header + table + 4 + from * row_bytes, (to - from) * row_bytes,
		   table + 4 + from * row_bytes);
}

/* Write what has changed in the header, except the counts. */
int barman_write_rows(struct kb_barman_writer *writer)
{
	const struct barman_places *p = &writer->places;
	int ret;

	set_store(writer);
	ret = put(writer, writer->header + BARMAN_AT_STRINGS + writer->synced_strings,
		  writer->string_bytes - writer->synced_strings,
		  BARMAN_AT_STRINGS + writer->synced_strings);
	if (!ret && writer->nr_tasks > writer->synced_tasks)
		ret = put_rows(writer, p->tasks, BARMAN_TASK_BYTES, writer->synced_tasks,
			       writer->nr_tasks);
	if (!ret && writer->nr_maps > writer->synced_maps)
		ret = put_rows(writer, p->maps, p->map_bytes, writer->synced_maps, writer->nr_maps);
	if (!ret && !writer->synced_rest)
		ret = put(writer, writer->header + p->pmus, p->tasks - p->pmus, p->pmus);
	if (!ret && !writer->synced_rest)
		ret = put(writer, writer->header + p->charts, p->store - p->charts, p->charts);
	/* A file that begins with the magic has a whole header from the first sync on. */
	if (!ret && !writer->synced_strings)
		ret = put(writer, writer->header + p->store, BARMAN_STORE_BYTES, p->store);
	return ret;
}

/* Write the counts of rows, strings and bytes of records. */
int barman_write_header(struct kb_barman_writer *writer)
{
	const struct barman_places *p = &writer->places;
	int ret = 0;

	set_store(writer);
	if (writer->shape.max_task_infos)
		ret = put(writer, writer->header + p->tasks, 4, p->tasks);
	if (!ret && writer->shape.max_mmap_layout)
		ret = put(writer, writer->header + p->maps, 4, p->maps);
	if (!ret)
		ret = put(writer, writer->header, BARMAN_AT_STRINGS, 0);
	if (!ret)
		ret = put(writer, writer->header + p->store, BARMAN_STORE_BYTES, p->store);
	if (ret)
		return ret;
	writer->synced_strings = writer->string_bytes;
	writer->synced_tasks = writer->nr_tasks;
	writer->synced_maps = writer->nr_maps;
	writer->synced_rest = true;
	return 0;
}

/* Write what has changed in the ring: at most two pieces. */
int barman_write_ring(struct kb_barman_writer *writer)
{
	uint64_t from = writer->synced_ring, n = writer->ring_bytes;
	int ret = 0;

	if (writer->write - from > n)
		from = writer->write - n;
	while (!ret && from < writer->write) {
		uint64_t at = from % n, piece = writer->write - from;

		if (piece > n - at)
			piece = n - at;
		ret = put(writer, writer->ring + at, piece, writer->places.end + at);
		from += piece;
	}
	if (!ret)
		writer->synced_ring = writer->write;
	return ret;
}

static uint8_t *reserve_linear(struct kb_barman_writer *writer, uint64_t whole, int *error)
{
	uint8_t *at;

	if (whole > writer->limit - (writer->flushed + writer->used)) {
		*error = -ENOSPC;
		return NULL;
	}
	if (kb_unlikely(whole > writer->room - writer->used)) {
		*error = barman_flush(writer);
		if (*error)
			return NULL;
		if (whole > writer->room) {
			uint8_t *more = realloc(writer->buffer, whole);

			if (!more) {
				*error = -ENOMEM;
				return NULL;
			}
			writer->buffer = more;
			writer->room = whole;
		}
	}
	at = writer->buffer + writer->used;
	writer->used += whole;
	return at;
}

int barman_append(struct kb_barman_writer *writer, const void *blocks, size_t bytes)
{
	const uint8_t *from = blocks;
	int ret = 0;

	if (bytes > writer->limit - (writer->flushed + writer->used))
		return -ENOSPC;
	while (bytes && !ret) {
		size_t part = writer->room - writer->used;

		if (part > bytes)
			part = bytes;
		memcpy(writer->buffer + writer->used, from, part);
		writer->used += part;
		from += part;
		bytes -= part;
		if (writer->used == writer->room)
			ret = barman_flush(writer);
	}
	return ret;
}

/* Remove old blocks until there is room for @whole <= ring_bytes bytes. */
static void ring_evict(struct kb_barman_writer *writer, uint64_t whole)
{
	unsigned int word = writer->shape.word;
	uint64_t padding_bit = UINT64_C(1) << (word * 8 - 1);

	while (writer->write + whole - writer->read > writer->ring_bytes) {
		const uint8_t *at = writer->ring + writer->read % writer->ring_bytes;

		writer->read += word + (kb_load_word(at, word, writer->swap) & ~padding_bit);
	}
}

/* A block that would be split at the end goes to the start, and padding fills the end. */
static uint8_t *reserve_ring(struct kb_barman_writer *writer, uint64_t whole, int *error)
{
	unsigned int word = writer->shape.word;
	uint64_t padding_bit = UINT64_C(1) << (word * 8 - 1);
	uint64_t n = writer->ring_bytes, head = writer->write % n;

	if (whole > n) {
		*error = -E2BIG;
		return NULL;
	}
	if (whole > n - head) {
		uint64_t pad = n - head;

		ring_evict(writer, pad);
		kb_store_word(writer->ring + head, padding_bit | (pad - word), word, writer->swap);
		writer->write += pad;
		head = 0;
	}
	ring_evict(writer, whole);
	writer->write += whole;
	return writer->ring + head;
}

uint8_t *barman_reserve(struct kb_barman_writer *writer, uint64_t length, int *error)
{
	unsigned int word = writer->shape.word;
	uint8_t *at;

	if (kb_unlikely(length > BARMAN_RECORD_MAX)) {
		*error = -E2BIG;
		return NULL;
	}
	at = writer->ring ? reserve_ring(writer, word + length, error)
		     : reserve_linear(writer, word + length, error);
	if (kb_unlikely(!at))
		return NULL;
	kb_store_word(at, length, word, writer->swap);
	return at + word;
}

/* Make a second header with the same tables without unused rows. */
static int small_header(const struct kb_barman_writer *writer, struct barman_shape *shape,
			struct barman_places *places, uint32_t more_strings, uint8_t **out)
{
	const struct barman_places *p = &writer->places;
	uint32_t most = 0;
	uint8_t *to;

	*shape = writer->shape;
	shape->max_string_table_length = ((writer->string_bytes + 3) & ~3U) + more_strings;
	for (uint32_t core = 0; core < shape->max_cores; core++) {
		if (writer->num_counters[core] > most)
			most = writer->num_counters[core];
	}
	shape->max_pmu_counters = most;
	/*
	 * A table whose size becomes 0 would remove fields from the records. The series that
	 * records refer to are not known, unless the layout says so.
	 */
	if (writer->spare_series && shape->num_series) {
		shape->num_charts = writer->nr_charts ? writer->nr_charts : 1;
		shape->num_series = writer->nr_series ? writer->nr_series : 1;
	}
	if (shape->max_task_infos)
		shape->max_task_infos = writer->nr_tasks ? writer->nr_tasks : 1;
	if (shape->max_mmap_layout)
		shape->max_mmap_layout = writer->nr_maps ? writer->nr_maps : 1;
	barman_places(places, shape);
	to = calloc(1, places->end);
	if (!to)
		return -ENOMEM;
	*out = to;

	memcpy(to, writer->header, BARMAN_AT_STRINGS + writer->string_bytes);
	for (uint32_t core = 0; core < shape->max_cores; core++)
		memcpy(to + places->pmus + core * places->pmu_bytes,
		       writer->header + p->pmus + core * p->pmu_bytes,
		       20 + shape->word + 4 * (size_t)writer->num_counters[core]);
	if (shape->max_task_infos)
		memcpy(to + places->tasks, writer->header + p->tasks,
		       4 + (size_t)writer->nr_tasks * BARMAN_TASK_BYTES);
	if (shape->max_mmap_layout)
		memcpy(to + places->maps, writer->header + p->maps,
		       4 + writer->nr_maps * p->map_bytes);
	if (shape->num_series) {
		memcpy(to + places->charts, writer->header + p->charts,
		       4 + (size_t)shape->num_charts * BARMAN_CHART_BYTES);
		kb_store32(to + places->charts, shape->num_charts, writer->swap);
		memcpy(to + places->series, writer->header + p->series,
		       (size_t)shape->num_series * BARMAN_SERIES_BYTES);
	}
	kb_store32(to + BARMAN_AT_HEADER_LENGTH, places->end, writer->swap);
	kb_store32(to + BARMAN_AT_CONFIG + 4, shape->max_task_infos, writer->swap);
	kb_store32(to + BARMAN_AT_CONFIG + 8, shape->max_mmap_layout, writer->swap);
	kb_store32(to + BARMAN_AT_CONFIG + 12, shape->max_pmu_counters, writer->swap);
	kb_store32(to + BARMAN_AT_CONFIG + 16, shape->max_string_table_length, writer->swap);
	kb_store32(to + BARMAN_AT_CONFIG + 20, shape->num_series, writer->swap);
	return 0;
}

static void take_header(struct kb_barman_writer *writer, const struct barman_shape *shape,
			const struct barman_places *places, uint8_t *header)
{
	free(writer->header);
	writer->header = header;
	writer->shape = *shape;
	writer->places = *places;
}

/* Move data in the file down by @by bytes, and shorten the file. */
static int move_down(struct kb_barman_writer *writer, uint64_t by)
{
	uint64_t from = writer->base + writer->places.end, end = from + writer->flushed;
	uint8_t *piece = malloc(MOVE_BYTES);
	int ret = 0;

	if (!piece)
		return -ENOMEM;
	while (from < end && !ret) {
		ssize_t n = pread(writer->fd, piece, MOVE_BYTES, from);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			ret = n < 0 ? -errno : -EIO;
		else
			ret = put(writer, piece, n, from - by - writer->base);
		from += n;
	}
	free(piece);
	if (!ret && ftruncate(writer->fd, end - by))
		ret = -errno;
	return ret;
}

/* Whether the file can be read. Moving its data requires that. */
static bool is_readable(const struct kb_barman_writer *writer)
{
	return (fcntl(writer->fd, F_GETFL) & O_ACCMODE) == O_RDWR;
}

/*
 * Let the file system remove whole blocks from the middle of the header. The rest, less than a
 * block, is added to the string table. Returns 0 on success.
 */
static int collapse(struct kb_barman_writer *writer, uint64_t by, uint64_t *taken)
{
	struct stat st;
	uint64_t block, from;

	if (fstat(writer->fd, &st))
		return -errno;
	block = st.st_blksize > 0 ? st.st_blksize : 4096;
	from = (writer->base + block - 1) / block * block;
	if (from - writer->base > by)
		return -EINVAL;
	*taken = (by - (from - writer->base)) / block * block;
	if (!*taken)
		return -EINVAL;
	return fallocate(writer->fd, FALLOC_FL_COLLAPSE_RANGE, from, *taken) ? -errno : 0;
}

/*
 * Remove the unused rows. Data that are not written yet are simply written to another place.
 * Data in the file must be moved, and stay if that is expensive; the rows are holes anyway.
 */
static void compact_header(struct kb_barman_writer *writer)
{
	struct barman_places places;
	struct barman_shape shape;
	uint64_t by, taken = 0;
	uint8_t *small;

	if (small_header(writer, &shape, &places, 0, &small))
		return;
	by = writer->places.end - places.end;
	if (by && writer->flushed) {
		if (collapse(writer, by, &taken) == 0) {
			free(small);
			if (small_header(writer, &shape, &places, by - taken, &small)) {
				io_error(writer, ENOMEM);
				return;
			}
		} else {
			int ret;

			if (writer->flushed > MOVE_MAX || !is_readable(writer)) {
				free(small);
				return;
			}
			ret = move_down(writer, by);
			if (ret)
				io_error(writer, -ret);
		}
	}
	take_header(writer, &shape, &places, small);
	writer->synced_ring = 0;
}

int barman_write_behind(struct kb_barman_writer *writer)
{
	return writer->seekable ? kb_behind_create(&writer->behind, writer->fd) : 0;
}

int barman_wait(struct kb_barman_writer *writer)
{
	int ret = writer->behind ? kb_behind_drain(writer->behind) : 0;

	return ret ? io_error(writer, -ret) : 0;
}

/*
 * If a thread writes, sync the data to the disk before the header that counts them, so that
 * they survive a power loss. The first time is an exception, because the caller waits for it.
 */
static int sync_output(struct kb_barman_writer *writer)
{
	int ret = writer->ring ? barman_write_ring(writer) : barman_flush(writer);

	if (!ret)
		ret = barman_write_rows(writer);
	if (!ret && writer->behind && writer->synced_strings && kb_behind_sync(writer->behind))
		ret = barman_wait(writer);
	return ret ? ret : barman_write_header(writer);
}

/* The end: data, sync, header. Afterwards the file's position is after the capture. */
static int finish_output(struct kb_barman_writer *writer, bool compact)
{
	uint64_t data;
	int ret;

	set_store(writer);
	if (!writer->seekable) {
		if (writer->header_sent)
			return barman_flush(writer);
		if (compact)
			compact_header(writer);
		ret = send_header(writer, false);
		if (!ret && writer->ring)
			return put(writer, writer->ring,
				   writer->write < writer->ring_bytes ? writer->write
								      : writer->ring_bytes,
				   0);
		return ret ? ret : barman_flush(writer);
	}
	/* The rest is done by this thread, and not all of it is writing. */
	ret = barman_wait(writer);
	kb_behind_destroy(writer->behind);
	writer->behind = NULL;
	if (ret)
		return ret;
	if (compact)
		compact_header(writer);
	ret = writer->ring ? barman_write_ring(writer) : barman_flush(writer);
	if (!ret && !compact)
		ret = barman_write_rows(writer);
	if (!ret && fdatasync(writer->fd))
		ret = io_error(writer, errno);
	if (ret)
		return ret;
	if (compact) {
		set_store(writer);
		ret = put(writer, writer->header, writer->places.end, 0);
	} else {
		ret = barman_write_header(writer);
	}
	if (ret)
		return ret;
	data = writer->ring
		       ? writer->write < writer->ring_bytes ? writer->write : writer->ring_bytes
		       : writer->flushed;
	/* An earlier sync may have written data after the new end. */
	if (ftruncate(writer->fd, writer->base + writer->places.end + data))
		return io_error(writer, errno);
	lseek(writer->fd, writer->base + writer->places.end + data, SEEK_SET);
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
static int copy_compact(const struct kb_barman_writer *writer, int fd)
{
	struct kb_barman_writer to = *writer;
	int ret;

	if (!writer->seekable || writer->ring || !is_readable(writer))
		return -EINVAL;
	if (writer->flushed > MOVE_MAX)
		return -EFBIG;
	ret = small_header(writer, &to.shape, &to.places, 0, &to.header);
	if (ret)
		return ret;
	to.fd = fd;
	to.base = 0;
	set_store(&to);
	ret = copy_data(writer, &to);
	if (!ret)
		ret = put(&to, to.header, to.places.end, 0);
	if (!ret && fdatasync(fd))
		ret = -errno;
	free(to.header);
	return ret;
}

int kb_barman_writer_sync(struct kb_barman_writer *writer)
{
	int ret = writer->error.code;

	if (ret)
		return ret;
	if (!writer->seekable)
		return writer->ring ? 0 : barman_flush(writer);
	return sync_output(writer);
}

int kb_barman_writer_finish(struct kb_barman_writer *writer, bool compact, struct kb_error *err)
{
	int ret = writer->error.code;

	if (!ret)
		ret = finish_output(writer, compact);
	if (ret && !writer->error.code)
		kb_error_set(&writer->error, ret, KB_NO_OFFSET, "can't write the capture: %s",
			     strerror(-ret));
	if (ret && err)
		*err = writer->error;
	return ret;
}

int kb_barman_writer_compact(struct kb_barman_writer *writer, int fd, struct kb_error *err)
{
	int ret = writer->error.code;

	if (!ret)
		ret = copy_compact(writer, fd);
	if (ret)
		kb_error_set(err, ret, KB_NO_OFFSET, "the capture can't be made smaller: %s",
			     strerror(-ret));
	return ret;
}
