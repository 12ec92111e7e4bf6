// SPDX-License-Identifier: MIT
/*
 * Records behind the end of a capture that grows: who recovers it finds them, nobody else does, and
 * nothing of them is left when the records come in their final form.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <kbarman/barman.h>

#include "format/barman/writer.h"

#include "../lib/tap.h"

#define RECORDS	5U

struct file {
	char path[64];
	int fd;
	struct kb_barman_writer *writer;
};

static bool begin(struct file *file, const char *name, bool behind)
{
	const struct kb_barman_layout layout = {
		.size = sizeof(layout), .word_size = 8, .max_cores = 1, .max_task_infos = 4,
		.max_string_table_length = 256,
	};

	snprintf(file->path, sizeof(file->path), "/tmp/kbarman-tail-%d-%s", (int)getpid(), name);
	file->fd = open(file->path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	return file->fd >= 0 && !kb_barman_writer_create(&file->writer, file->fd, &layout, NULL) &&
	       (!behind || !barman_write_behind(file->writer));
}

static void end(struct file *file)
{
	kb_barman_writer_destroy(file->writer);
	close(file->fd);
	unlink(file->path);
}

static bool put(struct file *file, uint32_t number)
{
	const struct kb_event event = {
		.type = KB_EVENT_TASK_SWITCH, .timestamp = 1000 + number, .task_id = number + 1,
	};

	return !kb_barman_writer_event(file->writer, &event);
}

static bool sync_all(struct file *file)
{
	return !kb_barman_writer_sync(file->writer) && !barman_wait(file->writer);
}

/* The bytes of the file from @offset on; *@size are there. */
static uint8_t *bytes_from(const struct file *file, uint64_t offset, size_t *size)
{
	struct stat st;
	uint8_t *bytes;

	if (fstat(file->fd, &st))
		return NULL;
	*size = (size_t)st.st_size - offset;
	bytes = malloc(*size);
	if (bytes && pread(file->fd, bytes, *size, (off_t)offset) != (ssize_t)*size)
		*size = 0;
	return bytes;
}

/* How many records a reader sees, in order from the first one; with @recovered, who recovers. */
static uint32_t seen(const struct file *file, bool recovered, struct kb_salvage *salvage)
{
	struct kb_barman *barman;
	struct kb_event event;
	uint32_t nr = 0;

	if (kb_barman_open(&barman, file->path, NULL))
		return 0;
	if (!recovered || !kb_barman_salvage(barman, salvage, NULL))
		while (kb_barman_next(barman, &event, NULL) == 1 && event.task_id == nr + 1)
			nr++;
	kb_barman_close(barman);
	return nr;
}

/* @promise, of a writer of that kind. */
static const char *of(const char *promise, bool behind)
{
	static char text[128];

	snprintf(text, sizeof(text), "%s%s", promise, behind ? "_of_a_thread_that_writes" : "");
	return text;
}

static void try_writer(bool behind)
{
	struct kb_salvage salvage = { 0 };
	struct file whole, file;
	uint64_t records, block;
	uint8_t *final, *other, *blocks;
	size_t size, other_size;

	if (!tap_ok(begin(&whole, "whole", behind) && begin(&file, "file", behind), of("files_are_made", behind)))
		return;
	for (uint32_t i = 0; i < RECORDS; i++)
		put(&whole, i);
	kb_barman_writer_finish(whole.writer, false, NULL);
	records = whole.writer->places.end;
	block = whole.writer->flushed / RECORDS;
	final = bytes_from(&whole, 0, &size);
	blocks = final + records;

	put(&file, 0);
	put(&file, 1);
	sync_all(&file);
	barman_write_tail(file.writer, blocks + 2 * block, block);
	barman_write_tail(file.writer, blocks + 3 * block, 2 * block);
	sync_all(&file);
	tap_is(seen(&file, false, NULL), 2, of("who_reads_sees_what_the_header_counts", behind));
	tap_is(seen(&file, true, &salvage), RECORDS, of("who_recovers_sees_the_tail", behind));
	tap_ok(salvage.told == 2 * block && salvage.untold == 3 * block && !salvage.dropped,
	       of("all_of_the_tail_is_whole", behind));

	put(&file, 2);
	sync_all(&file);
	tap_is(seen(&file, true, &salvage), 3, of("records_that_come_later_take_its_place", behind));
	tap_ok(!salvage.untold && !salvage.dropped, of("nothing_of_the_former_tail_is_left", behind));

	barman_write_tail(file.writer, blocks + 3 * block, 2 * block);
	put(&file, 3);
	put(&file, 4);
	kb_barman_writer_finish(file.writer, false, NULL);
	other = bytes_from(&file, 0, &other_size);
	tap_ok(size == other_size && !memcmp(final, other, size), of("the_finished_file_is_that_without_a_tail", behind));
	free(final);
	free(other);
	end(&whole);
	end(&file);
}

int main(void)
{
	try_writer(false);
	try_writer(true);
	return tap_done();
}
