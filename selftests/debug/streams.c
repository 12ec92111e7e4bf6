// SPDX-License-Identifier: MIT
/*
 * streams [TIMES]: a session is read while it runs, 100 times, until another 2,000 records have
 * come out, each of them whole and accounted for. Beside it there are hackbench, processes that
 * come and go, a program that sends marks, and now and then somebody who wants the module to go,
 * which it can't.
 *
 * Waits for its turn where somebody else has a session: also made to run beside others.
 */

#include "noise.h"
#include "reader.h"
#include "told.h"

/* Marks that nobody records are taken as well. */
static void send_marks(struct noise *noise)
{
	struct kbarman_mark mark = { .size = sizeof(mark), .type = KBARMAN_MARK_STRING };
	int fd;

	if (noise_process(noise))
		return;
	fd = open(KBARMAN_DEVICE, O_WRONLY | O_CLOEXEC);
	while (write(fd, &mark, sizeof(mark)) == sizeof(mark))
		usleep(1000);
	lost("a mark that is not taken");
}

/* NULL, or what went wrong: of what is read the reader knows. */
static const char *once(struct reader *reader)
{
	uint64_t wanted = reader->records + 2000;
	const char *fault = NULL;
	int fd = device_open(), error;

	error = told_configure(fd, (struct kbarman_configure) {
		.mode = KBARMAN_MODE_STREAM, .ring_bytes = MIB, .max_tasks = 1024,
		.max_maps = 1024, .max_strings = 64 * KIB,
		.sources = KBARMAN_SOURCE_ALL,
		.events_ptr = sampled_or_clock(&cycles, 1000000), .nr_events = 2 });
	if (error) {
		close(fd);
		return error == -EBUSY ? NULL : "a configure that failed";
	}
	reader_begin(reader, fd);
	if (start(fd))
		fault = "a start that failed";
	while (!fault && !reader->fault && reader->records < wanted) {
		reader_wait(reader, 200);
		reader_take(reader);
	}
	if (!fault && module_unload() != -EAGAIN)
		fault = "an unload in the middle of a session that was not refused";
	if (!fault && stop(fd))
		fault = "a stop that failed";
	if (!fault) {
		reader_take(reader);
		reader_settle(reader);
	}
	reader_end(reader);
	close(fd);
	return fault;
}

int main(int argc, char **argv)
{
	unsigned long i, times = argc > 1 ? strtoul(argv[1], NULL, 0) : 100;
	/* What runs beside this is to have its turns, too. */
	struct noise noise = { .nice = 10 };
	static struct reader reader;
	const char *fault = NULL;

	module_want();
	noise_hackbench(&noise, 1);
	noise_forks(&noise);
	send_marks(&noise);
	told_begin(&reader.records);
	for (i = 0; i < times && !fault && !reader.fault && !told_to_end; i++)
		fault = once(&reader);
	noise_end(&noise);
	tap_note("%lu times, %lu records, %lu of them marks", i, reader.records,
		 reader.by_type[BM_RECORD_ANNOTATION]);
	if (!tap_ok(!fault, "sessions_are_read_while_they_run"))
		tap_note("%s, at the %luth time: errno %d", fault, i, errno);
	reader_promise(&reader);
	tap_ok(reader.by_type[BM_RECORD_ANNOTATION], "and_marks_are_in_them");
	return told_done();
}
