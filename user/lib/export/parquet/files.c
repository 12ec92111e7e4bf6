// SPDX-License-Identifier: MIT
/* See files.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "export/parquet/files.h"

#define FILES_MOST	20000U	/* of a capture: a year by the hour, twice */
#define NAME_MOST	120U	/* bytes of the name of a host or a capture; encoded three times that */

static int failed(struct kb_error *err, int error, const char *path)
{
	if (error == -ENOMEM)
		return kb_error_set(err, error, KB_NO_OFFSET, "out of memory");
	return kb_error_set(err, error, KB_NO_OFFSET, "can't write %s: %s", path, strerror(-error));
}

/* ---- names ---- */

/* A name as part of a path that every engine reads: other characters become %XX. */
static char *encode(const char *name)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
	size_t length = strnlen(name, NAME_MOST);
	char *to = malloc(3 * length + 1), *at = to;

	for (size_t i = 0; to && i < length; i++) {
		/* a dot at the beginning would hide the file */
		if (strchr(plain, name[i]) && (i || name[i] != '.'))
			*at++ = name[i];
		else
			at += sprintf(at, "%%%02X", (unsigned char)name[i]);
	}
	if (to)
		*at = 0;
	return to;
}

static void put_hour(char *to, size_t room, int64_t hour)
{
	time_t seconds = (time_t)(hour * 3600);
	struct tm at = { 0 };

	gmtime_r(&seconds, &at);
	snprintf(to, room, "%04d-%02d-%02dT%02d", at.tm_year + 1900, at.tm_mon + 1, at.tm_mday,
		 at.tm_hour);
}

int kb_parquet_files_init(struct kb_parquet_files *files, const char *directory, const char *host,
			  const char *name, enum kb_parquet_codec codec, struct kb_error *err)
{
	int ret;

	*files = (struct kb_parquet_files) {
		.directory = directory, .host = encode(*host ? host : "unknown"),
		.name = encode(*name ? name : "capture"),
	};
	kb_table_init(&files->written, 3 * sizeof(uint64_t), 2);
	ret = files->host && files->name ? kb_parquet_work_create(&files->work, codec) : -ENOMEM;
	if (ret == -ENOSYS)
		return kb_error_set(err, ret, KB_NO_OFFSET, "zstd needs libzstd.so.1, which is not installed: "
				    "install libzstd1, or give --format gzip");
	return ret ? failed(err, ret, directory) : 0;
}

void kb_parquet_files_release(struct kb_parquet_files *files)
{
	for (size_t i = 0; i < files->nr_done; i++) {
		if (files->done[i].temporary)
			unlink(files->done[i].temporary);
		free(files->done[i].temporary);
		free(files->done[i].path);
	}
	free(files->done);
	kb_table_release(&files->written);
	kb_parquet_work_destroy(files->work);
	free(files->host);
	free(files->name);
}

/* ---- a file ---- */

/* Make the folders of @path behind those of files->directory. */
static int make_folders(const struct kb_parquet_files *files, char *path)
{
	for (char *slash = path + strlen(files->directory) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = 0;
		if (mkdir(path, 0777) && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	return 0;
}

/* The paths of the file. The files of a table and hour have the names NAME, NAME.1, NAME.2 … */
static int name_file(struct kb_parquet_files *files, struct kb_parquet_file *file, uint32_t number,
		     int64_t hour)
{
	const uint64_t key[] = { number, (uint64_t)hour };
	uint64_t *written = kb_table_get(&files->written, key), nr;
	char when[32], more[32] = "";
	int length;

	if (!written)
		return -ENOMEM;
	nr = written[2]++;
	put_hour(when, sizeof(when), hour);
	if (nr)
		snprintf(more, sizeof(more), ".%llu", (unsigned long long)nr);
	length = asprintf(&file->path, "%s/%s/host=%s/hour=%s/%s%s.parquet", files->directory,
			  kb_parquet_tables[number].name, files->host, when, files->name, more);
	if (length < 0) {
		file->path = NULL;
		return -ENOMEM;
	}
	length = (int)(strrchr(file->path, '/') - file->path) + 1;
	if (asprintf(&file->temporary, "%.*s.%s.XXXXXX", length, file->path, file->path + length) < 0) {
		file->temporary = NULL;
		return -ENOMEM;
	}
	return make_folders(files, file->path);
}

static int open_file(struct kb_parquet_files *files, struct kb_parquet_file *file, uint32_t nr_columns)
{
	mode_t mask = umask(0);
	int ret;

	umask(mask);
	file->fd = mkostemp(file->temporary, O_CLOEXEC);
	if (file->fd < 0) {
		free(file->temporary);
		file->temporary = NULL;
		return -errno;
	}
	/* on a file system without modes the file is good all the same */
	if (fchmod(file->fd, 0666 & ~mask))
		errno = 0;
	ret = kb_out_fd(&file->out, file->fd);
	return ret ?: kb_parquet_create(&file->parquet, files->work, file->out, file->columns, nr_columns);
}

int kb_parquet_files_open(struct kb_parquet_files *files, struct kb_parquet_file *file,
			  uint32_t number, int64_t hour, struct kb_error *err)
{
	const struct kb_parquet_table *table = &kb_parquet_tables[number];
	uint32_t nr = 0;
	int ret;

	*file = (struct kb_parquet_file) { .fd = -1 };
	if (files->nr_done > FILES_MOST)
		return kb_error_set(err, -EFBIG, KB_NO_OFFSET,
				    "the times of the capture are in more than %u hours", FILES_MOST);
	for (; nr < KB_PARQUET_COLUMNS && table->columns[nr].name; nr++)
		file->columns[nr] = kb_parquet_column_of(&table->columns[nr]);
	ret = name_file(files, file, number, hour) ?: open_file(files, file, nr);
	if (!ret)
		return 0;
	failed(err, ret, file->path ? file->path : files->directory);
	kb_parquet_files_abandon(file);
	return ret;
}

void kb_parquet_files_abandon(struct kb_parquet_file *file)
{
	kb_parquet_destroy(file->parquet);
	kb_out_destroy(file->out);
	if (file->fd >= 0)
		close(file->fd);
	if (file->temporary)
		unlink(file->temporary);
	free(file->temporary);
	free(file->path);
	*file = (struct kb_parquet_file) { .fd = -1 };
}

int kb_parquet_files_close(struct kb_parquet_files *files, struct kb_parquet_file *file,
			   struct kb_error *err)
{
	int ret = kb_parquet_finish(file->parquet), fd = file->fd;

	if (!ret && fsync(fd))
		ret = -errno;
	if (!ret && !KB_ARRAY_ROOM(files->done, files->max_done, files->nr_done + 1))
		ret = -ENOMEM;
	if (!ret) {
		file->fd = -1;
		ret = close(fd) ? -errno : 0;
	}
	if (ret) {
		failed(err, ret, file->path);
	} else {
		files->done[files->nr_done++] =
			(struct kb_parquet_done) { file->temporary, file->path };
		file->temporary = file->path = NULL;
	}
	kb_parquet_files_abandon(file);
	return ret;
}

/* ---- all of them ---- */

/* The name in its folder lasts, too. File systems that can't say so are trusted. */
static void sync_folder(char *path)
{
	char *slash = strrchr(path, '/');
	int fd;

	*slash = 0;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*slash = '/';
	if (fd < 0)
		return;
	fsync(fd);
	close(fd);
}

int kb_parquet_files_commit(struct kb_parquet_files *files, struct kb_error *err)
{
	for (size_t i = 0; i < files->nr_done; i++) {
		struct kb_parquet_done *done = &files->done[i];

		if (rename(done->temporary, done->path))
			return failed(err, -errno, done->path);
		free(done->temporary);
		done->temporary = NULL;
		sync_folder(done->path);
	}
	return 0;
}
