// SPDX-License-Identifier: MIT
/*
 * libdebuginfod is opened only when a file is needed: it loads many libraries, and few machines
 * use it. Its functions are declared here, because its header is installed less often than the
 * library.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/progress_tell.h"
#include "sym/image/debuginfod.h"

#define PATIENCE_MS	10000	/* without a byte, after which servers are given up */

/* As in elfutils/debuginfod.h. */
struct debuginfod_client;
typedef int (*progress_function)(struct debuginfod_client *client, long done, long all);

static struct {
	struct debuginfod_client *(*begin)(void);
	void (*end)(struct debuginfod_client *client);
	int (*find_debuginfo)(struct debuginfod_client *client, const unsigned char *id, int length,
			      char **path);
	void (*set_progressfn)(struct debuginfod_client *client, progress_function function);
} library;

static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
static int64_t started;		/* ms */
static bool tried, given_up;
static long received;

static bool open_library(void)
{
	void *handle;

	if (!tried) {
		tried = true;
		handle = dlopen("libdebuginfod.so.1", RTLD_LAZY | RTLD_LOCAL);
		if (!handle)
			return false;
		*(void **)&library.begin = dlsym(handle, "debuginfod_begin");
		*(void **)&library.end = dlsym(handle, "debuginfod_end");
		*(void **)&library.find_debuginfo = dlsym(handle, "debuginfod_find_debuginfo");
		*(void **)&library.set_progressfn = dlsym(handle, "debuginfod_set_progressfn");
	}
	return library.begin && library.end && library.find_debuginfo && library.set_progressfn;
}

/* The library calls this while it waits. A result other than 0 ends the download. */
static int watch(struct debuginfod_client *client, long done, long all)
{
	int64_t now = kb_clock_ms();

	(void)client;
	kb_progress_tell("fetching debug information", done > 0 ? (uint64_t)done : 0,
			 all > 0 ? (uint64_t)all : 0);
	if (done != received) {
		received = done;
		started = now;
	}
	given_up = now - started >= PATIENCE_MS;
	return given_up;
}

/* Call it with the lock held. */
static char *find(const struct kb_build_id *id)
{
	struct debuginfod_client *client;
	char *path = NULL;
	int fd;

	if (given_up || !open_library())
		return NULL;
	client = library.begin();
	if (!client)
		return NULL;
	received = 0;
	started = kb_clock_ms();
	library.set_progressfn(client, watch);
	fd = library.find_debuginfo(client, id->bytes, id->length, &path);
	library.end(client);
	if (fd < 0)
		return NULL;
	close(fd);
	return path;
}

char *kb_debuginfod_find(const struct kb_build_id *id)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	char *path;

	if (!urls || !*urls || !id->length)
		return NULL;
	pthread_mutex_lock(&one_at_a_time);
	path = find(id);
	pthread_mutex_unlock(&one_at_a_time);
	return path;
}
