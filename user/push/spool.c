// SPDX-License-Identifier: MIT
/*
 * See spool.h. A file begins with lines of text that say what it is; an empty line ends them,
 * and the body follows.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/io/create.h"
#include "base/io/whole.h"
#include "cli/base/cli.h"
#include "push/spool.h"

#define SUFFIX		".request"
#define PART		"new.part"	/* what is being written */
#define NAME_MAX_BYTES	32
#define HEAD_MAX	(16U << 10)
#define MAGIC		"kbarman-push 1"

static void name_of(char name[NAME_MAX_BYTES], uint64_t number)
{
	snprintf(name, NAME_MAX_BYTES, "%012" PRIu64 SUFFIX, number);
}

/* The number of a request's file; 0: it is no such file. */
static uint64_t number_of(const char *name)
{
	char again[NAME_MAX_BYTES];
	uint64_t number = strtoull(name, NULL, 10);

	name_of(again, number);
	return strcmp(again, name) ? 0 : number;
}

static int compare(const void *one, const void *other)
{
	const uint64_t *a = one, *b = other;

	return (*a > *b) - (*a < *b);
}

/* The numbers of all requests, oldest first, to be freed. NULL without memory. */
static uint64_t *list(const struct push_spool *spool, size_t *nr)
{
	uint64_t *numbers = malloc(sizeof(*numbers)), *longer;
	int fd = openat(spool->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	*nr = 0;
	while (numbers && folder && (entry = readdir(folder))) {
		uint64_t number = number_of(entry->d_name);

		if (!number)
			continue;
		longer = realloc(numbers, (*nr + 2) * sizeof(*numbers));
		if (!longer) {
			free(numbers);
			numbers = NULL;
			break;
		}
		numbers = longer;
		numbers[(*nr)++] = number;
	}
	if (folder)
		closedir(folder);
	else if (fd >= 0)
		close(fd);
	if (numbers)
		qsort(numbers, *nr, sizeof(*numbers), compare);
	return numbers;
}

/*
 * What tells one place from another, to be freed: its URL without user and password, which may be
 * others tomorrow, and with a hash instead of its query, which may hold a secret.
 */
static char *key_of(const char *url)
{
	const char *scheme = strstr(url, "://");
	const char *host = scheme ? scheme + 3 : url, *path = host + strcspn(host, "/?#");
	const char *at = memrchr(host, '@', (size_t)(path - host)), *query = strchr(path, '?');
	size_t length = query ? (size_t)(query - path) : strlen(path);
	char hash[20] = "", *key;

	if (query)
		snprintf(hash, sizeof(hash), "#%016" PRIx64, kb_hash_bytes(0, query, strlen(query)));
	path = at ? at + 1 : host;
	length += strcspn(path, "/?#");
	return asprintf(&key, "%.*s%.*s%s", (int)(host - url), url, (int)length, path, hash) < 0 ?
	       NULL : key;
}

static bool is_for(const struct push_place *place, const char *kind, const char *url)
{
	char *wanted = key_of(place->url), *key = key_of(url);
	bool same = wanted && key && !strcmp(kind, place->kind) && !strcmp(key, wanted);

	free(wanted);
	free(key);
	return same;
}

int push_spool_open(struct push_spool *spool, const char *path, uint64_t limit)
{
	uint64_t *numbers;
	size_t nr;

	*spool = (struct push_spool){ .path = path, .limit = limit, .fd = -1 };
	if (mkdir(path, 0700) && errno != EEXIST)
		return cli_fail("%s: can't make the folder: %s", path, strerror(errno));
	spool->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (spool->fd < 0)
		return cli_fail("%s: %s", path, strerror(errno));
	if (flock(spool->fd, LOCK_EX | LOCK_NB)) {
		cli_note("%s: another push uses this spool: waiting for it", path);
		while (flock(spool->fd, LOCK_EX)) {
			if (errno == EINTR)
				continue;
			push_spool_close(spool);
			return cli_fail("%s: can't lock: %s", path, strerror(errno));
		}
	}
	if (!unlinkat(spool->fd, PART, 0))
		cli_warn("%s: a push was cut off while it wrote a request here, which is lost",
			 path);
	numbers = list(spool, &nr);
	if (!numbers) {
		push_spool_close(spool);
		return cli_fail("out of memory");
	}
	spool->last = nr ? numbers[nr - 1] : 0;
	spool->earlier = spool->last;
	free(numbers);
	return 0;
}

void push_spool_close(struct push_spool *spool)
{
	if (spool->fd >= 0)
		close(spool->fd);
	spool->fd = -1;
}

/* ---- one file ---- */

struct file {
	char *data;
	size_t size;
	const char *kind, *url;		/* in data */
	struct push_request request;	/* its data are in @data */
};

/* The value of the line "NAME: VALUE" at *@at, which ends with NUL then. NULL: another line. */
static char *take_line(char **at, const char *name)
{
	size_t length = strlen(name);
	char *end = strchr(*at, '\n'), *value = *at + length;

	if (!end || strncmp(*at, name, length))
		return NULL;
	*end = 0;
	*at = end + 1;
	return value;
}

static bool take_number(char **at, const char *name, uint64_t *value)
{
	char *text = take_line(at, name), *end;

	if (!text || *text < '0' || *text > '9')
		return false;
	*value = strtoull(text, &end, 10);
	return !*end;
}

static bool parse(struct file *file)
{
	struct push_counts *counts = &file->request.counts;
	char *end = memmem(file->data, file->size < HEAD_MAX ? file->size : HEAD_MAX, "\n\n", 2);
	char *at = file->data, *magic;
	uint64_t size;

	if (!end)
		return false;
	end[1] = 0;
	magic = take_line(&at, MAGIC);
	file->kind = magic && !*magic ? take_line(&at, "kind: ") : NULL;
	file->url = file->kind ? take_line(&at, "url: ") : NULL;
	if (!file->url || !take_number(&at, "samples: ", &counts->samples) ||
	    !take_number(&at, "waits: ", &counts->waits) ||
	    !take_number(&at, "wait_ns: ", &counts->wait_ns) ||
	    !take_number(&at, "profiles: ", &counts->profiles) ||
	    !take_number(&at, "from: ", &counts->from) ||
	    !take_number(&at, "until: ", &counts->until) || !take_number(&at, "bytes: ", &size))
		return false;
	file->request.data = end + 2;
	file->request.size = (size_t)(file->data + file->size - (end + 2));
	return file->request.size == size;
}

/* Returns false after a message. Free file->data in any case. */
static bool read_file(struct push_spool *spool, uint64_t number, struct file *file)
{
	char name[NAME_MAX_BYTES];
	struct stat st;
	ssize_t got = -1;
	int fd;

	*file = (struct file){ 0 };
	name_of(name, number);
	fd = openat(spool->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) &&
	    (uint64_t)st.st_size <= PUSH_BYTES_MAX + HEAD_MAX)
		file->data = malloc((size_t)st.st_size + 1);
	if (file->data)
		got = kb_read_whole(fd, file->data, (size_t)st.st_size);
	if (fd >= 0)
		close(fd);
	file->size = got < 0 ? 0 : (size_t)got;
	if (got >= 0 && parse(file))
		return true;
	cli_warn("%s/%s: not a whole request: it stays there and is not sent", spool->path, name);
	return false;
}

bool push_spool_forget(struct push_spool *spool, uint64_t number)
{
	char name[NAME_MAX_BYTES];

	name_of(name, number);
	if (!unlinkat(spool->fd, name, 0))
		return true;
	if (errno != ENOENT)
		cli_warn("%s/%s: can't remove: %s: the next push sends it again", spool->path, name,
			 strerror(errno));
	return false;
}

/* ---- room ---- */

static uint64_t size_of(const struct push_spool *spool, uint64_t number)
{
	char name[NAME_MAX_BYTES];
	struct stat st;

	name_of(name, number);
	return fstatat(spool->fd, name, &st, AT_SYMLINK_NOFOLLOW) ? 0 : (uint64_t)st.st_size;
}

static void drop(struct push_spool *spool, uint64_t number)
{
	struct file file;

	read_file(spool, number, &file);
	push_count(&spool->dropped, &file.request.counts);
	if (number > spool->earlier)
		push_count(&spool->dropped_own, &file.request.counts);
	else if (spool->left)
		spool->left--;
	free(file.data);
	push_spool_forget(spool, number);
}

/* Drops the oldest requests until there is room for @size bytes. */
static int make_room(struct push_spool *spool, uint64_t size)
{
	uint64_t *numbers, all = 0;
	size_t nr, i;

	if (size > spool->limit)
		return -EFBIG;
	numbers = list(spool, &nr);
	if (!numbers)
		return -ENOMEM;
	for (i = 0; i < nr; i++)
		all += size_of(spool, numbers[i]);
	for (i = 0; i < nr && all > spool->limit - size; i++) {
		all -= size_of(spool, numbers[i]);
		drop(spool, numbers[i]);
	}
	free(numbers);
	return 0;
}

/* Whether the same request is there: a capture becomes the same requests whenever it is sent. */
static bool is_there(struct push_spool *spool, const struct push_place *place,
		     const struct push_request *request)
{
	bool found = false;
	size_t nr, i;
	uint64_t *numbers = list(spool, &nr);

	for (i = 0; numbers && i < nr && !found; i++) {
		uint64_t size = size_of(spool, numbers[i]);
		struct file file;

		if (size < request->size || size > request->size + HEAD_MAX)
			continue;
		found = read_file(spool, numbers[i], &file) &&
			file.request.size == request->size && is_for(place, file.kind, file.url) &&
			!memcmp(file.request.data, request->data, request->size);
		free(file.data);
	}
	free(numbers);
	return found;
}

/* Writes the file of the request, beginning with @head, and gives it the name of @number. */
static int write_file(struct push_spool *spool, uint64_t number, const char *head, size_t length,
		      const struct push_request *request)
{
	char name[NAME_MAX_BYTES];
	int fd = kb_create(spool->fd, PART, KB_CREATE_FIRST, 0600), error;

	if (fd < 0)
		return fd;
	error = kb_write_whole(fd, head, length) ?:
		kb_write_whole(fd, request->data, request->size);
	if (!error && fsync(fd))
		error = -errno;
	if (close(fd) && !error)
		error = -errno;
	name_of(name, number);
	if (!error && renameat(spool->fd, PART, spool->fd, name))
		error = -errno;
	if (error)
		unlinkat(spool->fd, PART, 0);
	else
		/* without this, a power loss could take the name away */
		fsync(spool->fd);
	return error;
}

/* The lines of text in front of the body, to be freed. Their length, or a negative errno. */
static int make_head(char **head, const struct push_place *place, const struct push_request *request)
{
	const struct push_counts *counts = &request->counts;
	char *key = key_of(place->url);
	int length;

	*head = NULL;
	if (!key)
		return -ENOMEM;
	length = asprintf(head, MAGIC "\nkind: %s\nurl: %s\nsamples: %" PRIu64 "\nwaits: %" PRIu64
			  "\nwait_ns: %" PRIu64 "\nprofiles: %" PRIu64 "\nfrom: %" PRIu64
			  "\nuntil: %" PRIu64 "\nbytes: %zu\n\n", place->kind, key,
			  counts->samples, counts->waits, counts->wait_ns, counts->profiles,
			  counts->from, counts->until, request->size);
	free(key);
	if (length < 0)
		*head = NULL;
	return length < 0 ? -ENOMEM : length > (int)HEAD_MAX ? -EFBIG : length;
}

int push_spool_add(struct push_spool *spool, const struct push_place *place,
		   const struct push_request *request)
{
	char *head;
	int length, error;

	if (is_there(spool, place, request))
		return 0;
	length = make_head(&head, place, request);
	error = length < 0 ? length : make_room(spool, (uint64_t)length + request->size) ?:
	        write_file(spool, spool->last + 1, head, (size_t)length, request);
	free(head);
	spool->last += !error;
	return error;
}

static int replace(struct push_spool *spool, uint64_t number, const struct push_place *place,
		   const struct push_request *rest)
{
	char *head;
	int length = make_head(&head, place, rest), error;

	error = length < 0 ? length : write_file(spool, number, head, (size_t)length, rest);
	free(head);
	return error;
}

/* Does with the request of @number what @send says. */
static enum push_spool_next send_one(struct push_spool *spool, const struct push_place *place,
				     uint64_t number, const struct push_request *request,
				     push_spool_send send, void *context)
{
	struct push_request rest = { 0 };
	enum push_spool_next next = send(context, number, request, &rest);

	if (rest.data && replace(spool, number, place, &rest))
		cli_warn("%s: the parts of a request that were sent can't be taken out: they are sent "
			 "again", spool->path);
	free(rest.data);
	if (next == PUSH_SPOOL_FORGET)
		push_spool_forget(spool, number);
	else
		spool->left++;
	return next;
}

uint64_t push_spool_walk(struct push_spool *spool, const struct push_place *place, push_spool_send send,
			 void *context)
{
	enum push_spool_next next = PUSH_SPOOL_FORGET;
	uint64_t others = 0;
	size_t nr, i;
	uint64_t *numbers = list(spool, &nr);

	for (i = 0; numbers && i < nr; i++) {
		struct file file;

		if (!read_file(spool, numbers[i], &file))
			spool->damaged++;
		else if (!is_for(place, file.kind, file.url))
			others++;
		else if (next == PUSH_SPOOL_END || (next == PUSH_SPOOL_NEWEST && i < nr - 1))
			spool->left++;
		else
			next = send_one(spool, place, numbers[i], &file.request, send, context);
		free(file.data);
	}
	free(numbers);
	return others;
}
