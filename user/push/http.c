// SPDX-License-Identifier: MIT
/*
 * libcurl is opened when something is to be sent: it loads many libraries, and metrics are shown without it.
 * Its functions have the types of its header, through the table `library`.
 */
#include <curl/curl.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <kbarman/version.h>

#include "base/array.h"
#include "cli/base/cli.h"
#include "push/http.h"

#define BODY_MAX	(64U << 10)
#define ANSWER_MAX	(1U << 20)	/* bytes of an answer that are read, and of its headers */
#define CONNECT_MS	10000L
#define MESSAGE_MAX	256

#define FUNCTIONS(F)								\
	F(global_init) F(easy_init) F(easy_cleanup) F(easy_setopt) F(easy_perform)	\
	F(easy_getinfo) F(easy_strerror) F(slist_append) F(slist_free_all)

static struct {
#define MEMBER(name)	__typeof__(&curl_##name) name;
	FUNCTIONS(MEMBER)
#undef MEMBER
} library;

struct push_http {
	CURL *curl;
	struct curl_slist *headers;
	char error[CURL_ERROR_SIZE];
	char *body;
	size_t size;
	uint64_t read;		/* bytes of the answer, with those behind @body */
	uint64_t heads;		/* bytes of its headers, with those behind it */
	bool grpc;
	int status;		/* of gRPC; -1: none */
	char message[MESSAGE_MAX];	/* of gRPC */
};

static bool open_library(void)
{
	static const char *const names[] = { "libcurl.so.4", "libcurl-gnutls.so.4" };
	void *handle = NULL;
	bool all = true;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(names) && !handle; i++)
		handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		return false;
#define TAKE(name)								\
	*(void **)&library.name = dlsym(handle, "curl_" #name);			\
	all &= library.name != NULL;
	FUNCTIONS(TAKE)
#undef TAKE
	/* cppcheck-suppress resourceLeak ; stays open until the program ends */
	return all;
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

/* If the header is @name, copies what of its value there is room for. */
static bool take_value(const char *data, size_t size, const char *name, char *to, size_t room)
{
	size_t skip = strlen(name);

	if (size < skip || strncasecmp(data, name, skip) != 0)
		return false;
	snprintf(to, room, "%.*s", (int)(size - skip), data + skip);
	return true;
}

/* A status of gRPC; what is none is that which says nothing. */
static int status_of(const char *text)
{
	const char *digits = text + strspn(text, " \t");
	size_t length = strspn(digits, "0123456789");

	return length && length < 4 && !digits[length + strspn(digits + length, " \t\r\n")] ?
	       atoi(digits) : PUSH_GRPC_UNKNOWN;
}

/*
 * libcurl calls this with each header, and with those behind the answer. It keeps them all, and not each version
 * of it has a limit: headers without an end are no answer.
 */
static size_t take_header(const char *data, size_t one, size_t size, void *context)
{
	struct push_http *http = context;
	char number[16];

	(void)one;	/* always 1 */
	http->heads += size;
	if (http->heads > ANSWER_MAX)
		return 0;
	if (take_value(data, size, "grpc-status:", number, sizeof(number)))
		http->status = status_of(number);
	take_value(data, size, "grpc-message:", http->message, sizeof(http->message));
	return size;
}

static bool add_header(struct curl_slist **list, const char *text)
{
	struct curl_slist *longer = library.slist_append(*list, text);

	if (longer)
		*list = longer;
	return longer;
}

/* Passes on a value of the command line. False, after a message: this libcurl does not take it. */
static bool set(const struct push_http *http, CURLoption option, const char *name, const char *value)
{
	CURLcode error = value ? library.easy_setopt(http->curl, option, value) : CURLE_OK;

	if (error)
		cli_warn("%s: libcurl says: %s", name, library.easy_strerror(error));
	return !error;
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
	http->curl = library.global_init(CURL_GLOBAL_ALL) ? NULL : library.easy_init();
	/* without this one, libcurl waits a second for a server that does not know "Expect" */
	ok &= add_header(&http->headers, "Expect:");
	for (i = 0; i < options->nr_headers; i++)
		ok &= add_header(&http->headers, options->headers[i]);
	if (!http->body || !http->curl || !ok) {
		push_http_close(http);
		return cli_fail("out of memory");
	}
	snprintf(agent, sizeof(agent), "kbarman/%s", kb_version());
	library.easy_setopt(http->curl, CURLOPT_USERAGENT, agent);
	library.easy_setopt(http->curl, CURLOPT_NOSIGNAL, 1L);
#if LIBCURL_VERSION_NUM >= 0x075500
	library.easy_setopt(http->curl, CURLOPT_PROTOCOLS_STR, "http,https");
#else
	library.easy_setopt(http->curl, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
	library.easy_setopt(http->curl, CURLOPT_TIMEOUT_MS, options->timeout_ms);
	library.easy_setopt(http->curl, CURLOPT_CONNECTTIMEOUT_MS,
			    options->timeout_ms < CONNECT_MS ? options->timeout_ms : CONNECT_MS);
	library.easy_setopt(http->curl, CURLOPT_HTTPHEADER, http->headers);
	library.easy_setopt(http->curl, CURLOPT_ERRORBUFFER, http->error);
	library.easy_setopt(http->curl, CURLOPT_WRITEFUNCTION, take_body);
	library.easy_setopt(http->curl, CURLOPT_WRITEDATA, http);
	library.easy_setopt(http->curl, CURLOPT_HEADERFUNCTION, take_header);
	library.easy_setopt(http->curl, CURLOPT_HEADERDATA, http);
	/* what a proxy says of its tunnel is nothing that the server said */
	library.easy_setopt(http->curl, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	http->grpc = options->grpc;
	if (http->grpc)		/* libcurl 7.88 fails with its second request on a connection without TLS */
		library.easy_setopt(http->curl, CURLOPT_FORBID_REUSE, 1L);
	if (!set(http, CURLOPT_CAINFO, "--cacert", options->authorities) ||
	    !set(http, CURLOPT_SSLCERT, "--cert", options->certificate) ||
	    !set(http, CURLOPT_SSLKEY, "--key", options->key) ||
	    !set(http, CURLOPT_PROXY, "--proxy", options->proxy)) {
		push_http_close(http);
		return CLI_IMPOSSIBLE;
	}
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
	curl_off_t after = 0;
	long status = 0;
	char *location = NULL;
	CURLcode error;

	*reply = (struct push_reply){ .body = http->body, .grpc_status = -1, .grpc_message = http->message };
	http->status = -1;
	http->message[0] = 0;
	if (http->grpc)		/* a server without TLS can't be asked which version it speaks */
		library.easy_setopt(http->curl, CURLOPT_HTTP_VERSION,
				    strncasecmp(url, "https:", 6) ? CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE :
								     CURL_HTTP_VERSION_2TLS);
	http->size = 0;
	http->read = 0;
	http->heads = 0;
	http->error[0] = 0;
	library.easy_setopt(http->curl, CURLOPT_URL, url);
	library.easy_setopt(http->curl, CURLOPT_POST, 1L);
	library.easy_setopt(http->curl, CURLOPT_POSTFIELDS, data);
	library.easy_setopt(http->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)size);
	error = library.easy_perform(http->curl);
	if (error && http->read <= ANSWER_MAX) {
		snprintf(reply->why, sizeof(reply->why), "%s", http->heads > ANSWER_MAX ? "its headers have no end" :
			 http->error[0] ? http->error : library.easy_strerror(error));
		return;
	}
	library.easy_getinfo(http->curl, CURLINFO_RESPONSE_CODE, &status);
	library.easy_getinfo(http->curl, CURLINFO_RETRY_AFTER, &after);
	library.easy_getinfo(http->curl, CURLINFO_REDIRECT_URL, &location);
	reply->status = status;
	reply->location = location;
	reply->retry_after = after;
	reply->size = http->size;
	reply->grpc_status = http->status;
}
