// SPDX-License-Identifier: MIT
/* Unwind rows of code that a process makes and describes while its stacks are unwound. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../lib/tap.h"
#include "sym/image/decode.h"
#include "sym/question/answer.h"
#include "sym/question/question.h"
#include "sym/unwind/dumps.h"

/*
 * Of a trampoline of CPython 3.13 on amd64, 11 bytes: it takes 8 bytes of the stack, calls, gives
 * them back and returns.
 */
static const uint8_t frames[] = {
	0x14, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0,
	0x14, 0, 0, 0, 0x1c, 0, 0, 0, 0xd0, 0xff, 0xff, 0xff, 0x0b, 0, 0, 0, 0, 0x44, 0x0e, 16,
	0x46, 0x0e, 8, 0,
};

static FILE *file;
static char path[128];

static void put(const void *data, size_t size)
{
	if (fwrite(data, size, 1, file) != 1)
		exit(2);
}

static void begin(uint32_t machine)
{
	uint32_t header[10] = { 0x4a695444, 1, 40, machine, 0, 77 };

	file = fopen(path, "w");
	if (!file)
		exit(2);
	put(header, sizeof(header));
	fflush(file);
}

static void put_unwinding(uint64_t time)
{
	uint32_t head[] = { 4, 16 + 24 + sizeof(frames) + 20 };
	uint64_t sizes[] = { sizeof(frames) + 20, 20, 0 };
	uint8_t header[20] = { 1 };

	put(head, sizeof(head));
	put(&time, sizeof(time));
	put(sizes, sizeof(sizes));
	put(frames, sizeof(frames));
	put(header, sizeof(header));
}

static void put_load(uint64_t time, uint64_t start, uint64_t index)
{
	uint32_t head[] = { 0, 16 + 40 + 2 + 11 }, ids[] = { 77, 77 };
	uint64_t place[] = { start, start, 11, index };

	put(head, sizeof(head));
	put(&time, sizeof(time));
	put(ids, sizeof(ids));
	put(place, sizeof(place));
	put("f\0abcdefghijk", 13);
	fflush(file);
}

static struct kb_unwind_dumps *dumps;

static const struct kb_unwind_rows *find(uint64_t address, uint64_t time, uint64_t *bias)
{
	const struct kb_unwind_rows *rows;
	bool waits = false;

	rows = kb_unwind_dumps_find(dumps, 77, address, time, bias, &waits);
	if (waits) {
		kb_unwind_dumps_wait(dumps);
		waits = false;
		rows = kb_unwind_dumps_find(dumps, 77, address, time, bias, &waits);
	}
	return rows;
}

/* Where the caller's address is, from SP on, at @address; -1: nothing is known of it. */
static int distance(uint64_t address, uint64_t time)
{
	uint64_t bias = 0;
	const struct kb_unwind_rows *rows = find(address, time, &bias);
	const struct kb_unwind_step *rule = rows ? kb_unwind_rule_at(rows, address - bias) : NULL;

	if (!rule || rule->what != KB_UNWIND_RULE || rule->count < 1 ||
	    rule[1].what != KB_UNWIND_CFA_BASE)
		return -1;
	return rule[1].offset;
}

static void map_dump(void)
{
	const struct kb_unwind_place place = { .pid = getpid(), .image = path };

	if (kb_unwind_dumps_create(&dumps) || kb_unwind_dumps_map(dumps, 77, 5, &place))
		exit(2);
}

static void test_growing(void)
{
	uint64_t bias;
	bool waits = false;

	begin(62);
	map_dump();
	tap_ok(!kb_unwind_dumps_find(dumps, 78, 0x1000, 100, &bias, &waits) && !waits,
	       "a_task_without_a_dump_does_not_wait");
	tap_is(distance(0x1000, 100), -1, "nothing_is_known_in_the_beginning");
	put_unwinding(200);
	put_load(200, 0x1000, 1);
	tap_is(distance(0x1000, UINT64_MAX - 1), 8, "code_that_was_added_has_rows");
	tap_is(distance(0x1005, UINT64_MAX - 1), 16, "a_row_is_that_of_the_place_in_the_code");
	tap_is(distance(0x100a, UINT64_MAX - 1), 8, "so_is_the_last_one");
	tap_is(distance(0x100b, UINT64_MAX - 1), -1, "behind_the_code_there_is_none");
	put_unwinding(300);
	fflush(file);
	tap_is(distance(0x2005, UINT64_MAX - 1), -1, "rows_without_code_are_of_none");
	put_load(300, 0x2000, 2);
	tap_is(distance(0x2005, UINT64_MAX - 1), 16, "rows_wait_for_their_code");
	put_load(400, 0x1000, 3);
	tap_is(distance(0x1005, UINT64_MAX - 1), -1, "code_without_rows_takes_the_place");
	tap_is(distance(0x2005, UINT64_MAX - 1), 16, "other_code_stays");
	kb_unwind_dumps_destroy(dumps);
	fclose(file);
}

static void test_times(void)
{
	begin(62);
	put_load(100, 0x1000, 1);
	put_unwinding(200);
	put_load(200, 0x1000, 2);
	put_load(300, 0x1000, 3);
	map_dump();
	tap_is(distance(0x1005, 150), -1, "code_is_that_of_the_time");
	tap_is(distance(0x1005, 250), 16, "code_comes_into_force_as_time_goes_on");
	tap_is(distance(0x1005, 350), -1, "and_ends_when_other_code_comes");
	kb_unwind_dumps_destroy(dumps);
	fclose(file);
}

/* Trampolines that are alike, the last of which are not in the file yet. */
static void test_alike(void)
{
	begin(62);
	for (uint64_t i = 0; i < 3; i++) {
		put_unwinding(100 + i);
		put_load(100 + i, 0x1000 + 0x110 * i, i);
	}
	map_dump();
	tap_is(distance(0x1225, 101), -1, "two_of_them_are_not_enough");
	tap_is(distance(0x1335, 200), 16, "code_at_the_same_distance_is_alike");
	tap_is(distance(0x1330 + 0x110 * 9, 200), 8, "so_is_more_of_it");
	tap_is(distance(0x1340, 200), -1, "what_is_between_is_not");
	tap_is(distance(0x1335 + 0x110 * 1000, 200), -1, "nor_is_what_is_far_away");
	put_unwinding(300);
	put_load(300, 0x1400, 9);
	tap_is(distance(0x1335, UINT64_MAX - 1), -1, "code_at_other_distances_is_not_alike");
	kb_unwind_dumps_destroy(dumps);
	fclose(file);
}

static void test_unknown_machine(void)
{
	begin(0);
	put_unwinding(200);
	put_load(200, 0x1000, 1);
	map_dump();
#ifdef __x86_64__
	tap_is(distance(0x1005, 300), 16, "a_dump_without_a_machine_is_of_this_one");
#else
	tap_ok(distance(0x1005, 300) != 1, "a_dump_without_a_machine_is_read");
#endif
	kb_unwind_dumps_destroy(dumps);
	fclose(file);
	begin(999);
	put_unwinding(200);
	put_load(200, 0x1000, 1);
	map_dump();
	tap_is(distance(0x1005, 300), -1, "a_machine_that_is_not_known_has_no_rows");
	kb_unwind_dumps_destroy(dumps);
	fclose(file);
}

static void test_bad_files(void)
{
	const char *names[] = { "text_has_no_rows", "a_file_that_is_not_there_has_no_rows" };

	for (int i = 0; i < 2; i++) {
		file = fopen(path, "w");
		fputs("this is text that is longer than the header of a jitdump", file);
		fclose(file);
		if (i)
			unlink(path);
		map_dump();
		tap_is(distance(0x1000, 300), -1, names[i]);
		tap_is(distance(0x1000, 400), -1, "it_is_not_asked_for_again");
		kb_unwind_dumps_destroy(dumps);
	}
}

/* A kb_decoder: the answer goes through bytes. */
static ssize_t some(void *context, void *to, size_t size)
{
	return read(*(int *)context, to, size);
}

static int asked;

static int decode_here(void *context, const struct kb_question *question, int fd, const char *label,
		       struct kb_elf *found)
{
	int answer = memfd_create("answer", 0), ret;

	(void)context;
	(void)label;
	asked++;
	kb_decode_by(NULL, NULL);
	ret = kb_decode_answer(question, fd, answer);
	kb_decode_by(decode_here, NULL);
	lseek(answer, 0, SEEK_SET);
	if (!ret)
		ret = kb_answer_read(found, some, &answer);
	close(answer);
	return ret;
}

static void test_elsewhere(void)
{
	begin(62);
	put_unwinding(200);
	put_load(200, 0x1000, 1);
	kb_decode_by(decode_here, NULL);
	map_dump();
	tap_is(distance(0x1005, 300), 16, "rows_come_through_an_answer");
	put_unwinding(400);
	put_load(400, 0x2000, 2);
	tap_is(distance(0x2005, UINT64_MAX - 1), 16, "what_was_added_comes_through_an_answer");
	tap_ok(asked >= 2, "another_process_was_asked");
	kb_unwind_dumps_destroy(dumps);
	kb_decode_by(NULL, NULL);
	fclose(file);
}

int main(void)
{
	char directory[] = "/tmp/kbarman-dumps-XXXXXX";

	if (!mkdtemp(directory))
		return 2;
	snprintf(path, sizeof(path), "%s/jit-77.dump", directory);
	test_growing();
	test_times();
	test_alike();
	test_unknown_machine();
	test_bad_files();
	test_elsewhere();
	unlink(path);
	rmdir(directory);
	return tap_done();
}
