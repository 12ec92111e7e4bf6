// SPDX-License-Identifier: MIT
/* Errors have a whole sentence, however long it is, and nothing to free. */
#include <errno.h>
#include <pthread.h>

#include <kbarman/error.h>

#include "../lib/tap.h"

#define LONG	5000

static char path[LONG];

static void *fill(void *context)
{
	struct kb_error *err = context;

	kb_error_set(err, -EIO, 7, "%s: is read in another thread", path);
	return strlen(kb_error_text(err)) > LONG ? err : NULL;
}

int main(void)
{
	static const char tail[] = ": not there";
	struct kb_error err, copy, others[64], plain = { .text = "a sentence", .whole = 1 };
	char want[LONG + sizeof(tail)];
	pthread_t thread;
	void *result;

	memset(path, 'p', sizeof(path) - 1);
	snprintf(want, sizeof(want), "%s%s", path, tail);

	tap_is(kb_error_set(&err, -ENOENT, 3, "%s", "short"), -ENOENT, "the_code_is_returned");
	tap_ok(err.code == -ENOENT && err.offset == 3, "code_and_offset_are_in_the_struct");
	tap_ok(kb_error_text(&err) == err.text, "a_short_sentence_is_in_the_struct");
	tap_is(kb_error_set(NULL, -EIO, 0, "%s", path), -EIO, "nobody_has_to_ask_for_the_text");

	kb_error_set(&err, -ENOENT, KB_NO_OFFSET, "%s%s", path, tail);
	tap_is_string(kb_error_text(&err), want, "a_long_sentence_is_whole");
	tap_is(strlen(err.text), sizeof(err.text) - 1, "the_struct_has_its_beginning");
	copy = err;
	tap_is_string(kb_error_text(&copy), want, "a_copy_has_the_same_sentence");

	for (int i = 0; i < 63; i++)
		kb_error_set(&others[i], -EIO, 0, "%d %s", i, path);
	tap_is_string(kb_error_text(&err), want, "it_stays_for_63_others");
	kb_error_set(&others[63], -EIO, 0, "63 %s", path);
	tap_ok(kb_error_text(&err) == err.text, "then_its_beginning_stays");
	tap_ok(!strncmp(kb_error_text(&others[0]), "0 pp", 4) &&
	       strlen(kb_error_text(&others[0])) > LONG, "the_others_are_whole");
	tap_ok(kb_error_text(&plain) == plain.text, "a_struct_of_the_caller_has_its_own_text");

	if (pthread_create(&thread, NULL, fill, &err) || pthread_join(thread, &result))
		result = NULL;
	tap_ok(result, "each_thread_has_its_sentences");
	tap_ok(kb_error_text(&err) == err.text, "another_thread_gets_the_beginning");
	return tap_done();
}
