// SPDX-License-Identifier: MIT
/*
 * See send.h. A request is sent again after 408, 429, all of 5xx but the two that say "never",
 * and if there was no answer. The pauses double, with a random part, so that many machines that
 * lost a server do not come back at the same moment; a server may ask for longer ones (Retry-After).
 *
 * Most other answers are about who asks, where and how (a token that has run out, a server that has
 * moved), and not about the request: the same one is taken when that is mended. So it is not lost,
 * and the server is given up, because the next request would be answered the same way.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/clock.h"
#include "base/hash.h"
#include "cli/base/cli.h"
#include "export/otlp/answer.h"
#include "push/grpc.h"
#include "push/send.h"

#define FIRST_PAUSE_MS	500
#define LAST_PAUSE_MS	30000
#define STEP_MS		100	/* after which a signal is seen at the latest */
#define YEAR_S		31536000	/* of longer pauses that a server asks for */
#define TEXT_MAX	(PUSH_WHY - 32)	/* shown bytes of an answer */
#define HOPS_MAX	5	/* from one place to the next */

static bool is_later(long status)
{
	return status == 408 || status == 429 || (status >= 500 && status != 501 && status != 505);
}

/*
 * What the server says to find wrong in the request itself. Servers and proxies say so as well of
 * whom they don't know, and of a protocol that they don't speak: push.c waits for evidence.
 */
static bool is_refusal(long status)
{
	return status == 400 || status == 415 || status == 422;
}

/* Whether the answer is a page for people, such as that of a portal: no server of profiles has any. */
static bool is_page(const struct push_reply *reply)
{
	const char *text = reply->body;
	size_t i = 0;

	while (i < reply->size && strchr(" \t\r\n", text[i]) && text[i])
		i++;
	return i < reply->size && text[i] == '<';
}

/* What the server said in its answer of a failure: its text, if it is one. */
static void explain(const struct push_sender *sender, const struct push_reply *reply,
		    char text[PUSH_WHY])
{
	const char *said = reply->body;
	size_t length = reply->size;
	struct kb_otlp_answer answer;

	if (sender->otlp && reply->grpc_status < 0 && !kb_otlp_read_failure(reply->body, reply->size, &answer)) {
		said = answer.text;
		length = answer.length;
	}
	if (length > TEXT_MAX)
		length = TEXT_MAX;
	length = strnlen(said, length);
	snprintf(text, PUSH_WHY, "%sstatus %ld%s%.*s", reply->grpc_status < 0 ? "" : "gRPC's ",
		 reply->grpc_status < 0 ? reply->status : reply->grpc_status, length ? ": " : "", (int)length, said);
}

static enum push_fate taken(struct push_sender *sender, const struct push_reply *reply)
{
	struct kb_otlp_answer answer = { .text = "" };

	if (is_page(reply)) {
		sender->given_up = true;
		cli_warn("%s: answers with status %ld and a page for people: this is no server of "
			 "profiles: look at the URL", sender->shown, reply->status);
		return PUSH_LATER;
	}
	if (sender->otlp && kb_otlp_read_answer(reply->body, reply->size, &answer)) {
		cli_warn("%s: answers with status %ld and something that is not OTLP: it is not "
			 "known whether it took the request, which is not sent again",
			 sender->shown, reply->status);
		return PUSH_UNCLEAR;
	}
	if (answer.rejected) {
		cli_warn("%s: took the request, but not %llu profiles of it: %.*s", sender->shown,
			 (unsigned long long)answer.rejected,
			 (int)(answer.length < TEXT_MAX ? answer.length : TEXT_MAX),
			 answer.length ? answer.text : "it does not say why");
		sender->rejected += answer.rejected;
	}
	return PUSH_TAKEN;
}

/* The parts of a URL that say which server it is. */
struct origin {
	int scheme;		/* length */
	const char *host;	/* with the port */
	int length, name;	/* of it, and of its part without the port */
};

static struct origin origin_of(const char *url)
{
	struct origin o = { .scheme = (int)strcspn(url, ":") };
	const char *end, *at, *port;

	o.host = strstr(url, "://") ? strstr(url, "://") + 3 : url;
	end = o.host + strcspn(o.host, "/?#");
	at = memrchr(o.host, '@', (size_t)(end - o.host));
	o.host = at ? at + 1 : o.host;
	o.length = (int)(end - o.host);
	port = memrchr(o.host, ':', (size_t)o.length);
	o.name = port && !memchr(port, ']', (size_t)(end - port)) ? (int)(port - o.host) : o.length;
	return o;
}

/* Whether a secret that is meant for @from may be sent to @to: the same server, or the same with TLS. */
static bool is_same_server(const char *from, const char *to)
{
	const struct origin a = origin_of(from), b = origin_of(to);

	if (a.name != b.name || strncasecmp(a.host, b.host, (size_t)a.name) != 0)
		return false;
	if (!strncasecmp(from, "http:", 5) && !strncasecmp(to, "https:", 6))
		return true;
	return a.scheme == b.scheme && !strncasecmp(from, to, (size_t)a.scheme) &&
	       a.length == b.length && !memcmp(a.host, b.host, (size_t)a.length);
}

/* @to with the user and password of @from, to be freed. NULL without memory. */
static char *with_user(const char *from, const char *to)
{
	const struct origin a = origin_of(from), b = origin_of(to);
	const char *user = strstr(from, "://") + 3;
	char *url;

	return asprintf(&url, "%.*s://%.*s%s", b.scheme, to, (int)(a.host - user), user, b.host) < 0 ?
	       NULL : url;
}

/* A call of gRPC. */
static void call(struct push_sender *sender, const char *url, const struct push_request *request,
		 struct push_reply *reply)
{
	size_t size;
	void *message = push_grpc_message(request, &size);

	if (message) {
		push_http_post(sender->http, url, message, size, reply);
		push_grpc_reply(reply);
	} else {
		*reply = (struct push_reply){ .why = "out of memory" };
	}
	free(message);
}

/* Posts, and follows the server to another path of it. */
static void post(struct push_sender *sender, const char *url, const struct push_request *request,
		 struct push_reply *reply)
{
	char *next = NULL;

	for (int hop = 0; ; hop++) {
		push_http_post(sender->http, next ?: url, request->data, request->size, reply);
		if ((reply->status != 307 && reply->status != 308) || !reply->location ||
		    hop == HOPS_MAX || !is_same_server(next ?: url, reply->location))
			break;
		free(next);
		next = with_user(url, reply->location);
		if (!next) {
			*reply = (struct push_reply){ .why = "out of memory" };
			break;
		}
	}
	free(next);
}

/* Sends once. Fills @why unless the request was taken. */
static enum push_fate send_once(struct push_sender *sender, const char *url,
				const struct push_request *request, char why[PUSH_WHY],
				int64_t *retry_after_ms)
{
	struct push_reply reply = { 0 };

	*retry_after_ms = 0;
	(sender->grpc ? call : post)(sender, url, request, &reply);
	if (!reply.status) {
		snprintf(why, PUSH_WHY, "%.*s", TEXT_MAX, reply.why);
		return PUSH_LATER;
	}
	if (reply.status >= 200 && reply.status < 300)
		return taken(sender, &reply);
	explain(sender, &reply, why);
	if (reply.status == 413)
		return PUSH_TOO_LARGE;
	if (is_refusal(reply.status))
		return PUSH_REFUSED;
	if (!is_later(reply.status)) {
		sender->given_up = true;
		if (reply.status / 100 == 3 && reply.location) {
			const char *to = origin_of(reply.location).host;
			size_t length = strcspn(to, "?#");

			cli_warn("%s: status %ld: it has moved to '%.*s://%.*s': if that is right, give "
				 "this URL", sender->shown, reply.status,
				 (int)strcspn(reply.location, ":"), reply.location,
				 (int)(length < TEXT_MAX ? length : TEXT_MAX), to);
		} else {
			cli_warn("%s: %s: it takes nothing until that is mended: look at the URL, and "
				 "at what --http-header gives", sender->shown, why);
		}
	}
	if (reply.retry_after > 0)
		*retry_after_ms = 1000 * (reply.retry_after < YEAR_S ? reply.retry_after : YEAR_S);
	return PUSH_LATER;
}

/* Half of @ms, and a random part of the other half. */
static int64_t spread(int64_t ms)
{
	uint64_t random = kb_hash_word((uint64_t)kb_clock_ns(CLOCK_MONOTONIC), (uint64_t)ms);

	return ms / 2 + (int64_t)(random >> 32) % (ms / 2);
}

/* Returns false if a signal came. */
static bool pause_ms(const struct push_sender *sender, int64_t ms)
{
	int64_t until = kb_clock_ms() + ms, left;

	while (!*sender->stop && (left = until - kb_clock_ms()) > 0) {
		const struct timespec step = {
			.tv_nsec = (left < STEP_MS ? left : STEP_MS) * KB_NS_PER_MS,
		};

		nanosleep(&step, NULL);
	}
	return !*sender->stop;
}

enum push_fate push_send(struct push_sender *sender, const char *url,
			 const struct push_request *request)
{
	int64_t until = kb_clock_ms() + sender->patience_ms, pause = FIRST_PAUSE_MS, after, wait;
	char why[PUSH_WHY] = "";
	enum push_fate fate;

	if (sender->given_up || *sender->stop)
		return PUSH_LATER;
	for (;;) {
		fate = send_once(sender, url, request, why, &after);
		if (fate == PUSH_REFUSED && strcmp(why, sender->refused) != 0) {
			cli_warn("%s: does not take the request: %s", sender->shown, why);
			snprintf(sender->refused, sizeof(sender->refused), "%s", why);
		}
		if (fate != PUSH_LATER || sender->given_up)
			return fate;
		wait = spread(pause);
		if (wait < after)
			wait = after;
		if (kb_clock_ms() + wait > until || !pause_ms(sender, wait))
			break;
		pause = pause * 2 < LAST_PAUSE_MS ? pause * 2 : LAST_PAUSE_MS;
	}
	sender->given_up = true;
	if (after > sender->patience_ms)
		cli_warn("%s: %s: it asks to wait for %lld s, which is longer than --retry allows",
			 sender->shown, why, (long long)(after / 1000));
	else
		cli_warn("%s: %s: given up", sender->shown, why);
	return PUSH_LATER;
}
