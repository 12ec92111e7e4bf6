// SPDX-License-Identifier: MIT
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent/folder.h"
#include "agent/say.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/io/create.h"
#include "base/io/disk.h"
#include "base/thread.h"

#define PART		".part"
#define WHOLE		".cap"
#define SYMBOLS		".kallsyms"	/* behind the name of a capture: the kernel's, of a crash */
#define LOCK		".lock"		/* has the number of the next file */
#define LAST		".last-"	/* a session follows */
#define TIME_SHAPE	"00000000T000000Z"
#define DIGITS_MAX	18		/* of a number: there is always a next one */
#define BLOCK_BYTES	512		/* of st_blocks */
#define SAY_AGAIN_MS	3600000		/* between two messages that files were removed */

struct job {
	struct job *next;
	int fd;
	char name[NAME_MAX + 1];
};

struct agent_folder {
	char *path;
	int fd, lock_fd;
	uint64_t next;			/* number of the next file */
	pthread_t thread;
	pthread_mutex_t lock;		/* of all members below */
	pthread_cond_t work, done;
	struct job *first, **last;
	bool stop, busy;
	int64_t job_ms;			/* when the thread began with a file; 0: it has none */
	/* Of the thread alone: what was removed and not said yet, and when to say it. */
	struct agent_folder_counts unsaid;
	int64_t say_ms;
	uint64_t bound, keep_free;
	bool make_room;
	struct agent_folder_counts counts;
};

/* ---- names ---- */

static const char *suffix_of(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot ? dot : "";
}

/* SESSION-NUMBER-TIME.cap or .part, as agent_folder_create() makes them. */
static bool parse_name(const char *name, struct agent_file *file)
{
	const char *suffix = suffix_of(name), *dash = strchr(name, '-');
	size_t digits;
	char *end;

	file->part = !strcmp(suffix, PART);
	if ((!file->part && strcmp(suffix, WHOLE) != 0) || !dash ||
	    (size_t)(dash - name) >= sizeof(file->session) || strlen(name) > NAME_MAX)
		return false;
	memcpy(file->session, name, (size_t)(dash - name));
	file->session[dash - name] = '\0';
	snprintf(file->name, sizeof(file->name), "%s", name);
	file->number = strtoull(dash + 1, &end, 10);
	digits = strspn(dash + 1, "0123456789");
	if (digits < 8 || digits > DIGITS_MAX || *end++ != '-')
		return false;
	for (const char *at = TIME_SHAPE; *at; at++, end++)
		if (*at == '0' ? *end < '0' || *end > '9' : *end != *at)
			return false;
	return end == suffix;
}

char *agent_folder_path(const struct agent_folder *folder, const char *name, char *path)
{
	snprintf(path, PATH_MAX, "%s/%s", folder->path, name);
	return path;
}

char *agent_folder_last(const struct agent_folder *folder, const char *session, char *path)
{
	snprintf(path, PATH_MAX, "%s/" LAST "%s", folder->path, session);
	return path;
}

/* ---- what is there ---- */

/* The name of the symbols beside the capture @name. */
static const char *symbols_of(const char *name, char symbols[NAME_MAX + sizeof(SYMBOLS)])
{
	snprintf(symbols, NAME_MAX + sizeof(SYMBOLS), "%s" SYMBOLS, name);
	return symbols;
}

static int by_number(const void *left, const void *right)
{
	const struct agent_file *a = left, *b = right;

	return a->number < b->number ? -1 : a->number > b->number;
}

int agent_folder_list(struct agent_folder *folder, struct agent_file **files)
{
	struct agent_file *list = NULL;
	size_t nr = 0, max = 0;
	struct dirent *entry;
	struct stat of_folder;
	char symbols[NAME_MAX + sizeof(SYMBOLS)];
	uid_t owner;
	int fd = openat(folder->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	*files = NULL;
	if (!dir) {
		int error = errno;

		if (fd >= 0)
			close(fd);
		return -error;
	}
	owner = fstat(dirfd(dir), &of_folder) ? geteuid() : of_folder.st_uid;
	while ((entry = readdir(dir))) {
		struct stat st;

		if (!KB_ARRAY_ROOM(list, max, nr + 1)) {
			closedir(dir);
			free(list);
			return -ENOMEM;
		}
		if (!parse_name(entry->d_name, &list[nr]) ||
		    fstatat(folder->fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
		    !S_ISREG(st.st_mode) || (st.st_uid != geteuid() && st.st_uid != owner))
			continue;
		list[nr].bytes = (uint64_t)st.st_blocks * BLOCK_BYTES;
		list[nr].changed_ns = st.st_mtim.tv_sec * KB_NS_PER_S + st.st_mtim.tv_nsec;
		if (!fstatat(folder->fd, symbols_of(entry->d_name, symbols), &st, AT_SYMLINK_NOFOLLOW))
			list[nr].bytes += (uint64_t)st.st_blocks * BLOCK_BYTES;
		nr++;
	}
	closedir(dir);
	if (!list)
		return 0;
	qsort(list, nr, sizeof(*list), by_number);
	*files = list;
	return (int)nr;
}

const struct agent_file *agent_folder_newest(const struct agent_file *files, int nr,
					     const char *session)
{
	for (int i = nr - 1; i >= 0; i--)
		if (!files[i].part && !strcmp(files[i].session, session))
			return &files[i];
	return NULL;
}

/* ---- the thread ---- */

/* How many bytes the files have to give back. */
static uint64_t too_many(struct agent_folder *folder, uint64_t total)
{
	uint64_t bound, keep, more;

	pthread_mutex_lock(&folder->lock);
	bound = folder->bound;
	keep = folder->keep_free;
	pthread_mutex_unlock(&folder->lock);
	more = kb_disk_missing(folder->fd, keep);
	return total > bound && total - bound > more ? total - bound : more;
}

struct share {
	const char *session;
	uint64_t bytes;
	int nr, oldest;
};

static struct share *find_share(struct share *shares, size_t nr, const char *session)
{
	for (size_t i = 0; i < nr; i++)
		if (!strcmp(shares[i].session, session))
			return &shares[i];
	return NULL;
}

/*
 * Which file goes: the oldest of the session that takes most, so that one that writes all the time does
 * not cost another one its rare captures. The newest of each session stays. -1: none can go.
 */
static int find_oldest(const struct agent_file *files, int n)
{
	struct share *shares = NULL, *share, *most = NULL;
	size_t nr = 0, max = 0;
	int found;

	for (int i = 0; i < n; i++) {
		if (files[i].part)
			continue;
		share = find_share(shares, nr, files[i].session);
		if (!share) {
			if (!KB_ARRAY_ROOM(shares, max, nr + 1))
				break;
			share = &shares[nr++];
			*share = (struct share){ .session = files[i].session, .oldest = i };
		}
		share->bytes += files[i].bytes;
		share->nr++;
	}
	for (size_t i = 0; i < nr; i++)
		if (shares[i].nr > 1 && (!most || shares[i].bytes > most->bytes))
			most = &shares[i];
	found = most ? most->oldest : -1;
	free(shares);
	return found;
}

/* Removes the oldest files, as long as all take more than they may, or the disk has too little room. */
static void keep_bound(struct agent_folder *folder)
{
	struct agent_folder_counts removed = { 0 };
	uint64_t total = 0, kept = 0, excess;
	char symbols[NAME_MAX + sizeof(SYMBOLS)];
	struct agent_file *files;
	int nr = agent_folder_list(folder, &files), oldest;

	for (int i = 0; files && i < nr; i++) {
		if (files[i].part)
			continue;
		total += files[i].bytes;
		kept++;
	}
	excess = too_many(folder, total);
	while (files && removed.removed_bytes < excess && (oldest = find_oldest(files, nr)) >= 0) {
		files[oldest].part = true;	/* no file to be removed any more */
		if (unlinkat(folder->fd, files[oldest].name, 0))
			continue;
		unlinkat(folder->fd, symbols_of(files[oldest].name, symbols), 0);
		total -= files[oldest].bytes;
		kept--;
		removed.removed++;
		removed.removed_bytes += files[oldest].bytes;
	}
	free(files);
	pthread_mutex_lock(&folder->lock);
	folder->counts.removed += removed.removed;
	folder->counts.removed_bytes += removed.removed_bytes;
	folder->counts.files = kept;
	folder->counts.bytes = total;
	pthread_mutex_unlock(&folder->lock);
	folder->unsaid.removed += removed.removed;
	folder->unsaid.removed_bytes += removed.removed_bytes;
	if (!folder->unsaid.removed || kb_clock_ms() < folder->say_ms)
		return;
	agent_say(AGENT_INFO, "removed the %" PRIu64 " oldest captures, %" PRIu64
		  " bytes: the folder is full", folder->unsaid.removed, folder->unsaid.removed_bytes);
	folder->unsaid = (struct agent_folder_counts){ 0 };
	folder->say_ms = kb_clock_ms() + SAY_AGAIN_MS;
}

/* File systems that have no links lose what is taken away, and nothing else. */
static void link_last(struct agent_folder *folder, const char *name)
{
	char last[sizeof(LAST) + AGENT_NAME_MAX], new[sizeof(last) + 4];

	snprintf(last, sizeof(last), LAST "%.*s", (int)strcspn(name, "-"), name);
	snprintf(new, sizeof(new), "%s.new", last);
	unlinkat(folder->fd, new, 0);
	if (!linkat(folder->fd, name, folder->fd, new, 0) &&
	    renameat(folder->fd, new, folder->fd, last))
		unlinkat(folder->fd, new, 0);
}

/* Returns the bytes of the file, which has its name now; 0 after a message, which is kept in @why. */
static uint64_t give_name(struct agent_folder *folder, const struct job *job, char why[256])
{
	char name[NAME_MAX + 1], from[NAME_MAX + sizeof(SYMBOLS)], to[sizeof(from)];
	size_t stem = (size_t)(suffix_of(job->name) - job->name);
	struct stat st = { 0 };

	snprintf(name, sizeof(name), "%.*s%s", (int)stem, job->name, WHOLE);
	if ((renameat(folder->fd, symbols_of(job->name, from), folder->fd, symbols_of(name, to)) && errno != ENOENT) ||
	    fsync(job->fd) || fstat(job->fd, &st) ||
	    renameat(folder->fd, job->name, folder->fd, name)) {
		snprintf(why, 256, "%.99s is lost: %.99s", job->name, strerror(errno));
		agent_say(AGENT_ERROR, "%s/%s", folder->path, why);
		return 0;
	}
	link_last(folder, name);
	if (fsync(folder->fd)) {
		snprintf(why, 256, "the folder is not on the disk: %.99s", strerror(errno));
		agent_say(AGENT_ERROR, "%s: %s", folder->path, why);
		return 0;
	}
	return (uint64_t)st.st_blocks * BLOCK_BYTES + 1;
}

static void *finish_files(void *context)
{
	struct agent_folder *folder = context;

	pthread_mutex_lock(&folder->lock);
	for (;;) {
		struct job *job = folder->first;
		char why[sizeof(folder->counts.trouble)] = "";
		uint64_t bytes;

		if (folder->make_room) {
			folder->make_room = false;
			folder->busy = true;
			pthread_mutex_unlock(&folder->lock);
			keep_bound(folder);
			pthread_mutex_lock(&folder->lock);
			continue;
		}
		if (!job) {
			folder->busy = false;
			pthread_cond_broadcast(&folder->done);
			if (folder->stop)
				break;
			pthread_cond_wait(&folder->work, &folder->lock);
			continue;
		}
		folder->busy = true;
		folder->first = job->next;
		if (!folder->first)
			folder->last = &folder->first;
		folder->job_ms = kb_clock_ms();
		pthread_mutex_unlock(&folder->lock);
		bytes = give_name(folder, job, why);
		close(job->fd);
		free(job);
		keep_bound(folder);
		pthread_mutex_lock(&folder->lock);
		folder->job_ms = 0;
		folder->counts.written += bytes > 0;
		folder->counts.written_bytes += bytes ? bytes - 1 : 0;
		folder->counts.failed += !bytes;
		memcpy(folder->counts.trouble, why, sizeof(why));
	}
	pthread_mutex_unlock(&folder->lock);
	return NULL;
}

/* ---- files ---- */

/* The files of the folder can be taken away, so their numbers are not enough. */
static void write_next(struct agent_folder *folder)
{
	char text[24];

	snprintf(text, sizeof(text), "%020" PRIu64 "\n", folder->next);
	/* On a disk that does not take it, the files that are there tell. */
	if (pwrite(folder->lock_fd, text, strlen(text), 0) < 0)
		return;
}

static uint64_t read_next(const struct agent_folder *folder)
{
	char text[24] = "";

	return pread(folder->lock_fd, text, sizeof(text) - 1, 0) > 0 ? strtoull(text, NULL, 10) : 0;
}

static int lock_folder(struct agent_folder *folder, struct kb_error *err)
{
	struct flock lock = { .l_type = F_WRLCK };

	folder->lock_fd = kb_create(folder->fd, LOCK, KB_CREATE_SAME, KB_CREATE_PRIVATE);
	if (folder->lock_fd < 0)
		return kb_error_set(err, folder->lock_fd, KB_NO_OFFSET, "%s/" LOCK " can't be written: %s",
				    folder->path, strerror(-folder->lock_fd));
	/* of the descriptor: a folder that is opened again is locked beside the old one, and the agent has no
	 * children that could hold it */
	if (fcntl(folder->lock_fd, F_OFD_SETLK, &lock))
		return kb_error_set(err, -EBUSY, KB_NO_OFFSET, "another kbarmand writes into %s: stop it, or "
				    "give this one another folder", folder->path);
	return 0;
}

/* Whether the path is that of another folder now: it was made anew, or something is mounted there. */
static bool is_another(const struct agent_folder *folder)
{
	struct stat at, st;

	return stat(folder->path, &at) || fstat(folder->fd, &st) || at.st_dev != st.st_dev ||
	       at.st_ino != st.st_ino;
}

/* Goes on in the folder that is there now. Returns 0 or a negative errno: all stays as it was. */
static int open_again(struct agent_folder *folder)
{
	int fd, old = folder->fd, old_lock = folder->lock_fd;
	struct agent_file *files;
	struct kb_error err;
	int nr, ret;

	mkdir(folder->path, 0750);
	fd = open(folder->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	/* What waits for its name has it in the old one. */
	agent_folder_drain(folder);
	folder->fd = fd;
	ret = lock_folder(folder, &err);
	if (ret) {
		agent_say(AGENT_ERROR, "%s", kb_error_text(&err));
		if (folder->lock_fd >= 0)
			close(folder->lock_fd);
		close(fd);
		folder->fd = old;
		folder->lock_fd = old_lock;
		return ret;
	}
	close(old);
	close(old_lock);
	nr = agent_folder_list(folder, &files);
	if (nr > 0 && files[nr - 1].number >= folder->next)
		folder->next = files[nr - 1].number + 1;
	free(files);
	agent_say(AGENT_NOTICE, "%s is another folder now: captures go there from here on", folder->path);
	return 0;
}

int agent_folder_create(struct agent_folder *folder, const char *session, char name[NAME_MAX + 1])
{
	time_t now = time(NULL);
	char text[32];
	struct tm tm;
	/* What is written into one that nobody finds is lost. */
	int fd = is_another(folder) ? open_again(folder) : 0;

	if (fd < 0)
		return fd;
	gmtime_r(&now, &tm);
	strftime(text, sizeof(text), "%Y%m%dT%H%M%SZ", &tm);
	snprintf(name, NAME_MAX + 1, "%s-%08" PRIu64 "-%s" PART, session, folder->next, text);
	fd = kb_create(folder->fd, name, KB_CREATE_FIRST, KB_CREATE_PRIVATE);
	if (fd < 0)
		return fd;
	folder->next++;
	write_next(folder);
	return fd;
}

void agent_folder_finish(struct agent_folder *folder, int fd, const char *name)
{
	struct job *job = calloc(1, sizeof(*job));

	if (!job) {
		/* The next agent finds it. */
		agent_say(AGENT_ERROR, "%s/%s keeps this name: out of memory", folder->path, name);
		close(fd);
		return;
	}
	job->fd = fd;
	snprintf(job->name, sizeof(job->name), "%s", name);
	pthread_mutex_lock(&folder->lock);
	*folder->last = job;
	folder->last = &job->next;
	pthread_cond_signal(&folder->work);
	pthread_mutex_unlock(&folder->lock);
}

void agent_folder_fail(struct agent_folder *folder)
{
	pthread_mutex_lock(&folder->lock);
	folder->counts.failed++;
	pthread_mutex_unlock(&folder->lock);
}

void agent_folder_remove(struct agent_folder *folder, const char *name)
{
	char symbols[NAME_MAX + sizeof(SYMBOLS)];

	if (unlinkat(folder->fd, name, 0))
		agent_say(AGENT_WARNING, "%s/%s: %s", folder->path, name, strerror(errno));
	unlinkat(folder->fd, symbols_of(name, symbols), 0);
}

void agent_folder_drain(struct agent_folder *folder)
{
	pthread_mutex_lock(&folder->lock);
	while (folder->first || folder->busy || folder->make_room)
		pthread_cond_wait(&folder->done, &folder->lock);
	pthread_mutex_unlock(&folder->lock);
}

void agent_folder_make_room(struct agent_folder *folder)
{
	pthread_mutex_lock(&folder->lock);
	folder->make_room = true;
	pthread_cond_signal(&folder->work);
	pthread_mutex_unlock(&folder->lock);
}

void agent_folder_bound(struct agent_folder *folder, uint64_t bytes, uint64_t growing,
			uint64_t keep_free)
{
	pthread_mutex_lock(&folder->lock);
	folder->bound = bytes > growing ? bytes - growing : 0;
	folder->keep_free = keep_free;
	pthread_mutex_unlock(&folder->lock);
}

void agent_folder_counts(struct agent_folder *folder, struct agent_folder_counts *counts)
{
	pthread_mutex_lock(&folder->lock);
	*counts = folder->counts;
	counts->waits_ms = folder->job_ms ? kb_clock_ms() - folder->job_ms : 0;
	pthread_mutex_unlock(&folder->lock);
}

/* ---- the folder ---- */

static int look_at_folder(struct agent_folder *folder, struct kb_error *err)
{
	struct agent_file *files;
	int nr = agent_folder_list(folder, &files);

	if (nr < 0)
		return kb_error_set(err, nr, KB_NO_OFFSET, "%s can't be read: %s", folder->path,
				    strerror(-nr));
	folder->next = files && nr ? files[nr - 1].number + 1 : 1;
	if (read_next(folder) > folder->next)
		folder->next = read_next(folder);
	for (int i = 0; files && i < nr; i++) {
		folder->counts.files += !files[i].part;
		folder->counts.bytes += files[i].part ? 0 : files[i].bytes;
	}
	free(files);
	return 0;
}

int agent_folder_open(struct agent_folder **out, const char *path, struct kb_error *err)
{
	struct agent_folder *folder = calloc(1, sizeof(*folder));
	int ret;

	*out = NULL;
	if (!folder)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	folder->lock_fd = -1;
	folder->last = &folder->first;
	folder->bound = UINT64_MAX;
	pthread_mutex_init(&folder->lock, NULL);
	pthread_cond_init(&folder->work, NULL);
	pthread_cond_init(&folder->done, NULL);
	folder->path = strdup(path);
	/* cppcheck-suppress nullPointerOutOfMemory ; mkdir() takes a path that is not there */
	if (folder->path)
		mkdir(path, 0750);
	folder->fd = folder->path ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (folder->fd < 0)
		ret = kb_error_set(err, -errno, KB_NO_OFFSET, "folder %s: %s", path, strerror(errno));
	else
		ret = lock_folder(folder, err) ?: look_at_folder(folder, err);
	if (!ret && kb_thread_start(&folder->thread, finish_files, folder))
		ret = kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "no thread can be started");
	if (!ret) {
		*out = folder;
		return 0;
	}
	if (folder->lock_fd >= 0)
		close(folder->lock_fd);
	if (folder->fd >= 0)
		close(folder->fd);
	free(folder->path);
	free(folder);
	return ret;
}

void agent_folder_close(struct agent_folder *folder)
{
	if (!folder)
		return;
	pthread_mutex_lock(&folder->lock);
	folder->stop = true;
	pthread_cond_signal(&folder->work);
	pthread_mutex_unlock(&folder->lock);
	pthread_join(folder->thread, NULL);
	pthread_cond_destroy(&folder->done);
	pthread_cond_destroy(&folder->work);
	pthread_mutex_destroy(&folder->lock);
	close(folder->lock_fd);
	close(folder->fd);
	free(folder->path);
	free(folder);
}
