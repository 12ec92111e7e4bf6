// SPDX-License-Identifier: MIT
/* Gives a capture whose recording was cut off its end: the header then tells of what there is. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/barman/inside.h"
#include "format/barman/places.h"
#include "format/wire.h"

/* Writes how many bytes of records there are into the store's fields, and ends the file there. */
static int set_end(int fd, const struct kb_header *header, uint64_t bytes)
{
	uint8_t store[BARMAN_STORE_BYTES];
	bool swap = header->big_endian != KB_HOST_BIG_ENDIAN;
	uint64_t at = header->buffer_start - sizeof(store);

	if (pread(fd, store, sizeof(store), (off_t)at) != (ssize_t)sizeof(store))
		return -EIO;
	kb_store64(store, bytes, swap);
	kb_store64(store + 8, bytes, swap);
	kb_store64(store + 24, bytes, swap);
	if (pwrite(fd, store, sizeof(store), (off_t)at) != (ssize_t)sizeof(store))
		return errno ? -errno : -EIO;
	return ftruncate(fd, (off_t)(header->buffer_start + bytes)) ? -errno : 0;
}

int kb_barman_cut(const char *path, bool untold, struct kb_salvage *salvage, struct kb_error *err)
{
	struct kb_barman *barman;
	const struct kb_header *header;
	int ret = kb_barman_open(&barman, path, err), fd;

	if (ret)
		return ret;
	header = kb_barman_header(barman);
	ret = kb_barman_salvage(barman, salvage, err);
	if (!ret && (header->data_store_type != KB_STORE_LINEAR || header->read_offset))
		ret = kb_error_set(err, -EINVAL, KB_NO_OFFSET, "%s: not a capture that grew", path);
	if (ret)
		goto out;
	fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0) {
		ret = kb_error_set(err, -errno, KB_NO_OFFSET, "%s: %s", path, strerror(errno));
		goto out;
	}
	ret = set_end(fd, header, salvage->told + (untold ? salvage->untold : 0));
	if (ret)
		kb_error_set(err, ret, KB_NO_OFFSET, "%s can't be written: %s", path, strerror(-ret));
	close(fd);
out:
	kb_barman_close(barman);
	return ret;
}
