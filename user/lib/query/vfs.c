// SPDX-License-Identifier: MIT
/*
 * The files that SQLite may use: temporary ones without a name, for what is sorted and does not fit into
 * its memory. It can't open any other file, whatever a question says, because nothing here takes a
 * name.
 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/io/temporary.h"
#include "query/query_inside.h"

struct file {
	struct sql_file base;	/* the first member */
	int fd;
};

static int fd_of(const struct sql_file *file)
{
	return ((const struct file *)file)->fd;
}

/* ---- an open file ---- */

static int close_file(struct sql_file *file)
{
	close(fd_of(file));
	return SQL_OK;
}

/* What is behind the end is read as zeros. */
static int read_file(struct sql_file *file, void *data, int bytes, long long offset)
{
	char *to = data;

	while (bytes) {
		ssize_t n = pread(fd_of(file), to, (size_t)bytes, offset);

		if (n < 0 && errno != EINTR)
			return SQL_IOERR;
		if (n == 0) {
			memset(to, 0, (size_t)bytes);
			return SQL_IOERR_SHORT_READ;
		}
		if (n > 0) {
			to += n;
			bytes -= (int)n;
			offset += n;
		}
	}
	return SQL_OK;
}

static int write_file(struct sql_file *file, const void *data, int bytes, long long offset)
{
	const char *from = data;

	while (bytes) {
		ssize_t n = pwrite(fd_of(file), from, (size_t)bytes, offset);

		if (n < 0 && errno != EINTR)
			return errno == ENOSPC ? SQL_FULL : SQL_IOERR;
		if (n > 0) {
			from += n;
			bytes -= (int)n;
			offset += n;
		}
	}
	return SQL_OK;
}

static int truncate_file(struct sql_file *file, long long size)
{
	return ftruncate(fd_of(file), size) ? SQL_IOERR : SQL_OK;
}

static int size_file(struct sql_file *file, long long *size)
{
	struct stat st;

	if (fstat(fd_of(file), &st))
		return SQL_IOERR;
	*size = st.st_size;
	return SQL_OK;
}

/* Nobody else has the file, and it need not survive. */
static int nothing(struct sql_file *file, int argument)
{
	(void)file;
	(void)argument;
	return SQL_OK;
}

static int check_lock(struct sql_file *file, int *locked)
{
	(void)file;
	*locked = 0;
	return SQL_OK;
}

static int control(struct sql_file *file, int what, void *argument)
{
	(void)file;
	(void)what;
	(void)argument;
	return SQL_NOTFOUND;
}

static int zero(struct sql_file *file)
{
	(void)file;
	return 0;
}

static const struct sql_file_methods methods = {
	.version = 1,
	.close = close_file,
	.read = read_file,
	.write = write_file,
	.truncate = truncate_file,
	.sync = nothing,
	.size = size_file,
	.lock = nothing,
	.unlock = nothing,
	.check_lock = check_lock,
	.control = control,
	.sector_size = zero,
	.characteristics = zero,
};

/* ---- files by name: there are none ---- */

/* In memory where a folder can't have files without a name. */
static int open_file(struct sql_vfs *vfs, const char *path, struct sql_file *base, int flags,
		     int *out_flags)
{
	struct file *file = (struct file *)base;

	(void)vfs;
	base->methods = NULL;
	if (path)
		return SQL_CANTOPEN;
	file->fd = kb_temporary_file();
	if (file->fd < 0)
		file->fd = memfd_create("kbarman", MFD_CLOEXEC);
	if (file->fd < 0)
		return SQL_CANTOPEN;
	base->methods = &methods;
	if (out_flags)
		*out_flags = flags;
	return SQL_OK;
}

static int remove_file(struct sql_vfs *vfs, const char *path, int sync)
{
	(void)vfs;
	(void)path;
	(void)sync;
	return SQL_IOERR;
}

static int access_file(struct sql_vfs *vfs, const char *path, int flags, int *out)
{
	(void)vfs;
	(void)path;
	(void)flags;
	*out = 0;
	return SQL_OK;
}

static int full_path(struct sql_vfs *vfs, const char *path, int bytes, char *out)
{
	size_t size = strlen(path) + 1;

	(void)vfs;
	if (size > (size_t)bytes)
		return SQL_CANTOPEN;
	memcpy(out, path, size);
	return SQL_OK;
}

/* ---- what else SQLite asks its system ---- */

static int fill_random(struct sql_vfs *vfs, int bytes, char *out)
{
	ssize_t n = getrandom(out, (size_t)bytes, 0);

	(void)vfs;
	return n < 0 ? 0 : (int)n;
}

static int sleep_us(struct sql_vfs *vfs, int us)
{
	(void)vfs;
	return us;
}

/* Days since noon in Greenwich on November 24, 4714 B.C., as SQLite counts. */
static int now(struct sql_vfs *vfs, double *days)
{
	struct timespec time;

	(void)vfs;
	clock_gettime(CLOCK_REALTIME, &time);
	*days = 2440587.5 + ((double)time.tv_sec + (double)time.tv_nsec / 1e9) / 86400;
	return SQL_OK;
}

static int last_error(struct sql_vfs *vfs, int bytes, char *out)	/* NOLINT: SQLite's type */
{
	(void)vfs;
	(void)bytes;
	(void)out;
	return 0;
}

int query_add_vfs(void)
{
	static struct sql_vfs vfs = {
		.version = 1,
		.file_bytes = sizeof(struct file),
		.path_bytes = 512,
		.name = QUERY_VFS,
		.open = open_file,
		.remove = remove_file,
		.access = access_file,
		.full_path = full_path,
		.random = fill_random,
		.sleep = sleep_us,
		.time = now,
		.last_error = last_error,
	};

	return kb_sql.vfs_register(&vfs, 0);
}
