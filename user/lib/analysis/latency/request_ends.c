// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/latency/request_ends.h"
#include "analysis/time/ended.h"
#include "base/text/pattern.h"

bool kb_requests_parse(struct kb_requests_options *options, char *text)
{
	char *dots = strstr(text, "..");

	if (!dots || dots == text || !dots[2])
		return false;
	*dots = '\0';
	options->from = text;
	options->until = dots + 2;
	return true;
}

static const char *behind(const char *text, const char *word)
{
	size_t length = strlen(word);

	return strncmp(text, word, length) ? NULL : text + length;
}

/* "(N)" or "(fd)" at the end of a call. */
static bool take_first(struct kb_request_end *end, char *bracket)
{
	char *rest;

	if (!bracket)
		return true;
	*bracket++ = '\0';
	if (!strcmp(bracket, "fd)")) {
		end->same_first = true;
		return true;
	}
	errno = 0;
	end->has_first = true;
	end->first = strtoull(bracket, &rest, 0);
	return *bracket >= '0' && *bracket <= '9' && !strcmp(rest, ")") && !errno;
}

int kb_request_end_parse(struct kb_request_end *end, const char *text, struct kb_error *err)
{
	const char *call = behind(text, "syscall:");

	*end = (struct kb_request_end){ .text = text, .is_call = call };
	end->pattern = strdup(call ?: behind(text, "mark:") ?: text);
	if (!end->pattern)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	if (call && (!take_first(end, strchr(end->pattern, '(')) || !*end->pattern))
		return kb_error_set(
			err, -EINVAL, KB_NO_OFFSET,
			"'%s' is no end of a request: write syscall:NAME, syscall:NAME(5) for that "
			"descriptor, or syscall:NAME(fd) for the same one in both ends",
			text);
	return 0;
}

/* The texts of other annotations are names of channels and groups. */
static bool is_mark(const struct kb_request_end *end, const struct kb_event *event)
{
	return (event->annotation.type == KB_ANNOTATION_STRING ||
		event->annotation.type == KB_ANNOTATION_BOOKMARK) &&
	       kb_pattern_matches(end->pattern, event->annotation.text,
				  event->annotation.text_length);
}

bool kb_request_end_is(const struct kb_request_end *end, const struct kb_event *event,
		       const struct kb_names *names)
{
	const char *name;

	if (!end->is_call)
		return event->type == KB_EVENT_ANNOTATION && is_mark(end, event);
	if (event->type != KB_EVENT_CUSTOM_COUNTER ||
	    event->custom_counter.what != KB_WHAT_SYSCALL ||
	    (end->has_first && event->custom_counter.arguments[0] != end->first))
		return false;
	name = kb_names_call(names, event);
	return name && kb_pattern_matches(end->pattern, name, strlen(name)) &&
	       kb_syscall_is_own(names, event);
}
