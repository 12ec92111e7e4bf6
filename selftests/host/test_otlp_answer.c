// SPDX-License-Identifier: MIT
/* What a collector of profiles answers, byte by byte as protocol buffers have it. */
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "export/otlp/answer.h"

#include "../lib/tap.h"

static const uint8_t partial[] = {
	0x0a, 0x0b,					/* partial_success, 11 bytes */
	0x08, 0xac, 0x02,				/* rejected_profiles: 300 */
	0x12, 0x06, 't', 'o', 'o', 'o', 'l', 'd',	/* error_message */
};

static void check_whole(void)
{
	struct kb_otlp_answer answer;

	tap_ok(!kb_otlp_read_answer("", 0, &answer) && !answer.rejected && !answer.length,
	       "an_empty_answer_takes_everything");
	tap_ok(!kb_otlp_read_answer(partial, sizeof(partial), &answer) && answer.rejected == 300 &&
	       answer.length == 6 && !memcmp(answer.text, "tooold", 6), "what_is_rejected_is_read");
}

static void check_cut(void)
{
	struct kb_otlp_answer answer;
	size_t size, whole = 0;

	for (size = 1; size < sizeof(partial); size++)
		whole += kb_otlp_read_answer(partial, size, &answer) != -EINVAL;
	tap_is(whole, 0, "an_answer_that_is_cut_off_is_none");
}

static void check_pages(void)
{
	static const char *const pages[] = { "<html>", "{}", "ok", "\n", "404 page not found" };
	struct kb_otlp_answer answer;
	size_t i, taken = 0;

	for (i = 0; i < ARRAY_SIZE(pages); i++)
		taken += kb_otlp_read_answer(pages[i], strlen(pages[i]), &answer) != -EINVAL;
	tap_is(taken, 0, "a_page_for_people_is_no_answer");
}

static void check_others(void)
{
	static const uint8_t later[] = { 0x51, 1, 2, 3, 4, 5, 6, 7, 8, 0x55, 1, 2, 3, 4, 0x58, 1 };
	static const uint8_t status[] = { 0x08, 3, 0x12, 2, 'n', 'o' };
	struct kb_otlp_answer answer;

	tap_ok(!kb_otlp_read_answer(later, sizeof(later), &answer), "fields_of_later_versions_are_skipped");
	tap_ok(!kb_otlp_read_failure(status, sizeof(status), &answer) && answer.length == 2 &&
	       !memcmp(answer.text, "no", 2), "a_failure_says_why");
}

int main(void)
{
	check_whole();
	check_cut();
	check_pages();
	check_others();
	return tap_done();
}
