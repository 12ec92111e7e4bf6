// SPDX-License-Identifier: MIT
/*
 * libcurl is opened only by this verb: it loads many libraries. Its functions and the numbers that
 * its ABI keeps are declared here, because its header is installed less often than the library.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include <kbarman/version.h>

#include "base/array.h"
#include "cli.h"
#include "push_http.h"

#define BODY_MAX	(64U << 10)
#define ANSWER_MAX	(1U << 20)	/* bytes of an answer that are read */
#define CONNECT_MS	10000L

/* Source: curl/curl.h of libcurl 7.74, the oldest one that is supported. */
enum {
	GLOBAL_ALL = 3,
	OPTION_NOSIGNAL = 99,
	OPTION_POST = 47,
	OPTION_TIMEOUT_MS = 155,
	OPTION_CONNECTTIMEOUT_MS = 156,
	OPTION_PROTOCOLS = 181,
	OPTION_WRITEDATA = 10001,
	OPTION_URL = 10002,
	OPTION_ERRORBUFFER = 10010,
	OPTION_POSTFIELDS = 10015,
	OPTION_USERAGENT = 10018,
	OPTION_HTTPHEADER = 10023,
	OPTION_CAINFO = 10065,
	OPTION_WRITEFUNCTION = 20011,
	OPTION_POSTFIELDSIZE_LARGE = 30120,
	INFO_REDIRECT_URL = 0x100000 + 31,
	INFO_RESPONSE_CODE = 0x200002,
	INFO_RETRY_AFTER = 0x600000 + 57,
	PROTOCOLS_HTTP_HTTPS = 3,
};

struct curl_list;

struct push_http {
	void *curl;
	struct curl_list *headers;
	char error[256];	/* of CURL_ERROR_SIZE bytes */
	char *body;
	size_t size;
	uint64_t read;		/* bytes of the answer, with those behind @body */
};

static struct {
	int (*global_init)(long flags);
	void *(*easy_init)(void);
	void (*easy_cleanup)(void *curl);
	int (*easy_setopt)(void *curl, int option, ...);
	int (*easy_perform)(void *curl);
	int (*easy_getinfo)(void *curl, int info, ...);
	const char *(*easy_strerror)(int error);
	struct curl_list *(*slist_append)(struct curl_list *list, const char *text);
	void (*slist_free_all)(struct curl_list *list);
} library;

static bool open_library(void)
{
	static const char *const names[] = { "libcurl.so.4", "libcurl-gnutls.so.4" };
	void *handle = NULL;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(names) && !handle; i++)
		handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		return false;
	*(void **)&library.global_init = dlsym(handle, "curl_global_init");
	*(void **)&library.easy_init = dlsym(handle, "curl_easy_init");
	*(void **)&library.easy_cleanup = dlsym(handle, "curl_easy_cleanup");
	*(void **)&library.easy_setopt = dlsym(handle, "curl_easy_setopt");
	*(void **)&library.easy_perform = dlsym(handle, "curl_easy_perform");
	*(void **)&library.easy_getinfo = dlsym(handle, "curl_easy_getinfo");
	*(void **)&library.easy_strerror = dlsym(handle, "curl_easy_strerror");
	*(void **)&library.slist_append = dlsym(handle, "curl_slist_append");
	*(void **)&library.slist_free_all = dlsym(handle, "curl_slist_free_all");
	return library.global_init && library.easy_init && library.easy_cleanup &&
	       library.easy_setopt && library.easy_perform && library.easy_getinfo &&
	       library.easy_strerror && library.slist_append && library.slist_free_all;
}

/*
 * libcurl calls this with parts of the answer. What is too long is read and forgotten; what has no end
 * ends here: the status is known, and the server is left.
 */
static size_t take_body(const char *data, size_t one, size_t size, void *context)
{
	struct push_http *http = context;
	size_t room = BODY_MAX - http->size;

	(void)one;	/* always 1 */
	memcpy(http->body + http->size, data, size < room ? size : room);
	http->size += size < room ? size : room;
	http->read += size;
	return http->read > ANSWER_MAX ? 0 : size;
}

static bool add_header(struct curl_list **list, const char *text)
{
	struct curl_list *longer = library.slist_append(*list, text);

	if (longer)
		*list = longer;
	return longer;
}

int push_http_open(struct push_http **out, const struct push_http_options *options)
{
	static char agent[64];
	struct push_http *http;
	bool ok = true;
	size_t i;

	if (!open_library())
		return cli_fail("libcurl is needed to send, and is not here: install libcurl4 (or "
				"libcurl4t64)");
	http = calloc(1, sizeof(*http));
	if (!http)
		return cli_fail("out of memory");
	http->body = malloc(BODY_MAX);
	http->curl = library.global_init(GLOBAL_ALL) ? NULL : library.easy_init();
	/* without this one, libcurl waits a second for a server that does not know "Expect" */
	ok &= add_header(&http->headers, "Expect:");
	for (i = 0; i < options->nr_headers; i++)
		ok &= add_header(&http->headers, options->headers[i]);
	if (!http->body || !http->curl || !ok) {
		push_http_close(http);
		return cli_fail("out of memory");
	}
	snprintf(agent, sizeof(agent), "kbarman/%s", kb_version());
	library.easy_setopt(http->curl, OPTION_USERAGENT, agent);
	library.easy_setopt(http->curl, OPTION_NOSIGNAL, 1L);
	library.easy_setopt(http->curl, OPTION_PROTOCOLS, (long)PROTOCOLS_HTTP_HTTPS);
	library.easy_setopt(http->curl, OPTION_TIMEOUT_MS, options->timeout_ms);
	library.easy_setopt(http->curl, OPTION_CONNECTTIMEOUT_MS,
			    options->timeout_ms < CONNECT_MS ? options->timeout_ms : CONNECT_MS);
	library.easy_setopt(http->curl, OPTION_HTTPHEADER, http->headers);
	library.easy_setopt(http->curl, OPTION_ERRORBUFFER, http->error);
	library.easy_setopt(http->curl, OPTION_WRITEFUNCTION, take_body);
	library.easy_setopt(http->curl, OPTION_WRITEDATA, http);
	if (options->authorities)
		library.easy_setopt(http->curl, OPTION_CAINFO, options->authorities);
	*out = http;
	return 0;
}

void push_http_close(struct push_http *http)
{
	if (!http)
		return;
	library.slist_free_all(http->headers);
	if (http->curl)
		library.easy_cleanup(http->curl);
	free(http->body);
	free(http);
}

void push_http_post(struct push_http *http, const char *url, const void *data, size_t size,
		    struct push_reply *reply)
{
	int64_t after = 0;
	long status = 0;
	int error;

	*reply = (struct push_reply){ .body = http->body };
	http->size = 0;
	http->read = 0;
	http->error[0] = 0;
	library.easy_setopt(http->curl, OPTION_URL, url);
	library.easy_setopt(http->curl, OPTION_POST, 1L);
	library.easy_setopt(http->curl, OPTION_POSTFIELDS, data);
	library.easy_setopt(http->curl, OPTION_POSTFIELDSIZE_LARGE, (int64_t)size);
	error = library.easy_perform(http->curl);
	if (error && http->read <= ANSWER_MAX) {
		snprintf(reply->why, sizeof(reply->why), "%s",
			 http->error[0] ? http->error : library.easy_strerror(error));
		return;
	}
	library.easy_getinfo(http->curl, INFO_RESPONSE_CODE, &status);
	library.easy_getinfo(http->curl, INFO_RETRY_AFTER, &after);
	library.easy_getinfo(http->curl, INFO_REDIRECT_URL, &reply->location);
	reply->status = status;
	reply->retry_after = after;
	reply->size = http->size;
}
