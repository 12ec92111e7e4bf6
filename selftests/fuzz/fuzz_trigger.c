// SPDX-License-Identifier: MIT
/*
 * Fuzz target of triggers: the bytes up to the first newline are an expression, those behind it a capture.
 * Whatever is found, its reason is UTF-8 for a terminal, and it is found once.
 */
#include <stdlib.h>
#include <string.h>

#include <kbarman/trigger.h>

#include "base/text/utf8.h"

static void must(bool good)
{
	if (!good)
		abort();
}

static void check_fired(const struct kb_fired *fired)
{
	size_t length = strlen(fired->reason);
	char shown[KB_FIRED_REASON];

	must(fired->trigger && length && length < KB_FIRED_REASON);
	must(kb_utf8_valid(fired->reason, length) == length);
	must(kb_utf8_shown(shown, fired->reason, length) == length &&
	     memcmp(shown, fired->reason, length) == 0);
}

static void detect(const struct kb_triggers *triggers, struct kb_trace *trace)
{
	struct kb_detector *detector;
	const struct kb_walk *walk;
	struct kb_fired fired;
	int64_t last = 0;

	if (kb_detector_create(&detector, triggers, trace, NULL, NULL))
		return;
	while (kb_trace_next(trace, &walk, NULL) > 0) {
		must(!kb_detector_feed(detector, walk));
		last = walk->ns;
		while (kb_detector_fired(detector, last, &fired))
			check_fired(&fired);
	}
	must(!kb_detector_time(detector, last));
	while (kb_detector_fired(detector, INT64_MAX, &fired))
		check_fired(&fired);
	must(!kb_detector_fired(detector, INT64_MAX, &fired));
	kb_detector_destroy(detector);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const usual[] = {
		"latency>1us", "irq>1us", "offcpu:*>1us", "wait:*>1us", "syscall:*>1us", "counter:*>10/s",
		"counter:*>10", "mark:*",
	};
	const uint8_t *end = memchr(data, '\n', size);
	struct kb_triggers *triggers;
	struct kb_trace *trace;
	char text[128] = "";
	uint8_t *capture;

	if (!end || (size_t)(end - data) >= sizeof(text))
		return 0;
	memcpy(text, data, (size_t)(end - data));
	must(!kb_triggers_create(&triggers, NULL));
	for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
		must(!kb_triggers_add(triggers, usual[i], NULL));
	kb_triggers_add(triggers, text, NULL);
	size -= (size_t)(end + 1 - data);
	capture = malloc(size + 1);
	must(capture != NULL);
	memcpy(capture, end + 1, size);
	if (!kb_trace_open_memory(&trace, capture, size, NULL, NULL)) {
		detect(triggers, trace);
		kb_trace_close(trace);
	}
	free(capture);
	kb_triggers_destroy(triggers);
	return 0;
}
