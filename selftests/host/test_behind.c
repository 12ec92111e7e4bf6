// SPDX-License-Identifier: MIT
/* Writing behind: what the disk is asked for, in which order, and who waits for it. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/io/behind.h"

#include "../lib/random.h"
#include "../lib/tap.h"

#define MIB		((size_t)1 << 20)
#define FILE_BYTES	(96 * MIB)

/* ---- the disk, as the thread sees it */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool stalls;
	int fails;			/* errno; 0: it doesn't */
	unsigned int writes, syncs;
	unsigned int writes_at_sync;
} disk = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static void set_stall(bool stalls)
{
	pthread_mutex_lock(&disk.lock);
	disk.stalls = stalls;
	pthread_cond_broadcast(&disk.changed);
	pthread_mutex_unlock(&disk.lock);
}

static unsigned int writes(void)
{
	unsigned int n;

	pthread_mutex_lock(&disk.lock);
	n = disk.writes;
	pthread_mutex_unlock(&disk.lock);
	return n;
}

static int ask_disk(bool is_sync)
{
	int error;

	pthread_mutex_lock(&disk.lock);
	while (disk.stalls)
		pthread_cond_wait(&disk.changed, &disk.lock);
	error = disk.fails;
	disk.writes += !is_sync;
	disk.syncs += is_sync;
	if (is_sync)
		disk.writes_at_sync = disk.writes;
	pthread_mutex_unlock(&disk.lock);
	return error;
}

/* These stand before the C library's. */
ssize_t pwrite64(int fd, const void *data, size_t length, off_t offset)
{
	int error = ask_disk(false);
	const uint8_t *from = data;
	size_t half = length > 4096 ? length / 2 : length;

	if (error) {
		errno = error;
		return -1;
	}
	/* A file system may write less than it is asked for. */
	if (lseek(fd, offset, SEEK_SET) < 0)
		return -1;
	return write(fd, from, half);
}

int fdatasync(int fd)
{
	int error = ask_disk(true);

	(void)fd;
	errno = error;
	return error ? -1 : 0;
}

/* ---- tests */

static int new_file(void)
{
	char path[] = "/tmp/kbarman-behind.XXXXXX";
	int fd = mkstemp(path);

	unlink(path);
	return fd;
}

static struct kb_behind *begin(int *fd)
{
	struct kb_behind *b;

	*fd = new_file();
	disk.writes = disk.syncs = disk.writes_at_sync = 0;
	disk.fails = 0;
	return kb_behind_create(&b, *fd) ? NULL : b;
}

static bool has(int fd, const uint8_t *data, size_t length)
{
	uint8_t *copy = malloc(length);
	bool same = pread(fd, copy, length, 0) == (ssize_t)length && !memcmp(copy, data, length);

	free(copy);
	return same;
}

static void everything_arrives(const uint8_t *data)
{
	struct kb_behind *b;
	size_t done = 0;
	int fd, ret = 0;

	b = begin(&fd);
	while (done < FILE_BYTES) {
		size_t piece = random_u64() % (2 * MIB);

		piece = piece < FILE_BYTES - done ? piece : FILE_BYTES - done;
		ret = ret ?: kb_behind_write(b, data + done, piece, done);
		done += piece;
	}
	tap_ok(!ret && !kb_behind_drain(b) && has(fd, data, FILE_BYTES), "everything_arrives");
	kb_behind_destroy(b);
	close(fd);
}

static void later_writes_win(const uint8_t *data)
{
	struct kb_behind *b;
	int fd, ret = 0;

	b = begin(&fd);
	for (size_t i = 0; i < 1000; i++)
		ret = ret ?: kb_behind_write(b, data + i, 100, 0);
	kb_behind_destroy(b);
	tap_ok(!ret && has(fd, data + 999, 100), "later_writes_win");
	close(fd);
}

static void a_sync_comes_in_its_turn(const uint8_t *data)
{
	struct kb_behind *b;
	int fd;

	b = begin(&fd);
	for (size_t i = 0; i < 10; i++)
		kb_behind_write(b, data, 100, i * 100);
	kb_behind_sync(b);
	for (size_t i = 0; i < 10; i++)
		kb_behind_write(b, data, 100, i * 100);
	tap_ok(!kb_behind_drain(b) && disk.syncs == 1 && disk.writes_at_sync == 10 &&
	       disk.writes == 20, "a_sync_comes_in_its_turn");
	kb_behind_destroy(b);
	close(fd);
}

static void *wake_disk(void *unused)
{
	usleep(100000);
	set_stall(false);
	return unused;
}

static void a_stall_keeps_nobody_waiting(const uint8_t *data)
{
	struct kb_behind *b;
	pthread_t waker;
	int fd, ret = 0;

	b = begin(&fd);
	set_stall(true);
	/* Would never return if it waited. */
	for (size_t i = 0; i < 60; i++)
		ret = ret ?: kb_behind_write(b, data + i * MIB, MIB, i * MIB);
	ret = ret ?: kb_behind_sync(b);
	tap_ok(!ret && !writes(), "a_stall_keeps_nobody_waiting");
	/* From here on it does, for the one who ends the stall. */
	pthread_create(&waker, NULL, wake_disk, NULL);
	for (size_t i = 60; i < 96; i++)
		ret = ret ?: kb_behind_write(b, data + i * MIB, MIB, i * MIB);
	tap_ok(!ret && writes(), "more_than_64_mib_wait_with_who_asks");
	pthread_join(waker, NULL);
	kb_behind_destroy(b);
	tap_ok(has(fd, data, 96 * MIB), "what_waited_is_written");
	close(fd);
}

static void an_error_stays(const uint8_t *data)
{
	struct kb_behind *b;
	unsigned int before;
	int fd, ret;

	b = begin(&fd);
	kb_behind_write(b, data, 100, 0);
	tap_ok(!kb_behind_drain(b), "before_it_there_is_no_error");
	disk.fails = ENOSPC;
	set_stall(true);
	for (size_t i = 0; i < 50; i++)
		kb_behind_write(b, data, 100, 100 + i * 100);
	set_stall(false);
	tap_is(kb_behind_drain(b), -ENOSPC, "an_error_is_told");
	disk.fails = 0;
	before = disk.writes;
	ret = kb_behind_write(b, data, 100, 100);
	tap_ok(ret == -ENOSPC && kb_behind_sync(b) == -ENOSPC && kb_behind_drain(b) == -ENOSPC,
	       "it_stays");
	tap_ok(before == 2 && disk.writes == 2 && !disk.syncs, "behind_it_nothing_is_written");
	kb_behind_destroy(b);
	close(fd);
}

static void a_failed_sync_is_an_error(const uint8_t *data)
{
	struct kb_behind *b;
	int fd;

	b = begin(&fd);
	set_stall(true);
	kb_behind_sync(b);
	kb_behind_write(b, data, 100, 0);
	disk.fails = EIO;
	set_stall(false);
	tap_ok(kb_behind_drain(b) == -EIO && !disk.writes, "a_failed_sync_is_an_error");
	kb_behind_destroy(b);
	close(fd);
}

int main(void)
{
	uint8_t *data = malloc(FILE_BYTES);

	random_start();
	for (size_t i = 0; i < FILE_BYTES; i += 8) {
		uint64_t v = random_u64();

		memcpy(data + i, &v, 8);
	}
	everything_arrives(data);
	later_writes_win(data);
	a_sync_comes_in_its_turn(data);
	a_stall_keeps_nobody_waiting(data);
	an_error_stays(data);
	a_failed_sync_is_an_error(data);
	free(data);
	return tap_done();
}
