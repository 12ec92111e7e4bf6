// SPDX-License-Identifier: MIT
/*
 * See push_send.h. A request is sent again after 408, 429, all of 5xx but the two that say "never",
 * and if there was no answer. The pauses double, with a random part, so that many machines that
 * lost a server do not come back at the same moment; a server may ask for longer ones (Retry-After).
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/hash.h"
#include "cli.h"
#include "export/otlp_answer.h"
#include "push_send.h"

#define FIRST_PAUSE_MS	500
#define LAST_PAUSE_MS	30000
#define STEP_MS		100	/* after which a signal is seen at the latest */
#define YEAR_S		31536000	/* of longer pauses that a server asks for */
#define TEXT_MAX	200	/* shown bytes of an answer */

static bool is_later(long status)
{
	return status == 408 || status == 429 || (status >= 500 && status != 501 && status != 505);
}

/* What the server said in its answer of a failure: its text, if it is one. */
static void explain(const struct push_sender *sender, const struct push_reply *reply,
		    char text[TEXT_MAX + 32])
{
	const char *said = reply->body;
	size_t length = reply->size;
	struct kb_otlp_answer answer;

	if (sender->otlp && !kb_otlp_read_failure(reply->body, reply->size, &answer)) {
		said = answer.text;
		length = answer.length;
	}
	if (length > TEXT_MAX)
		length = TEXT_MAX;
	length = strnlen(said, length);
	if (length)
		snprintf(text, TEXT_MAX + 32, "status %ld: %.*s", reply->status, (int)length, said);
	else
		snprintf(text, TEXT_MAX + 32, "status %ld", reply->status);
}

static enum push_fate taken(struct push_sender *sender, const struct push_reply *reply)
{
	struct kb_otlp_answer answer = { .text = "" };

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

/* Sends once. Fills @why unless the request was taken. */
static enum push_fate send_once(struct push_sender *sender, const char *url,
				const struct push_request *request, char why[TEXT_MAX + 32],
				int64_t *retry_after_ms)
{
	struct push_reply reply;

	*retry_after_ms = 0;
	push_http_post(sender->http, url, request->data, request->size, &reply);
	if (!reply.status) {
		snprintf(why, TEXT_MAX + 32, "%.*s", TEXT_MAX, reply.why);
		return PUSH_LATER;
	}
	if (reply.status >= 200 && reply.status < 300)
		return taken(sender, &reply);
	explain(sender, &reply, why);
	if (!is_later(reply.status))
		return PUSH_REFUSED;
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
	char why[TEXT_MAX + 32] = "";
	enum push_fate fate;

	if (sender->given_up || *sender->stop)
		return PUSH_LATER;
	for (;;) {
		fate = send_once(sender, url, request, why, &after);
		if (fate == PUSH_REFUSED)
			cli_warn("%s: does not take the request: %s", sender->shown, why);
		if (fate != PUSH_LATER)
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
