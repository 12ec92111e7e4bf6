// SPDX-License-Identifier: MIT
/*
 * The same capture, larger than any window, gives the same records however it is
 * read: from memory, through maps of a file, through a pipe; and takes no more
 * memory for being large.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kbarman/barman.h>

#include "../lib/random.h"
#include "../lib/tap.h"

#define BIG_TEXT	(5 << 20)	/* longer than a window */

static char text[BIG_TEXT];

/* Records of all sizes, so that windows end anywhere. */
static bool write_capture(int fd, unsigned int word, bool circular, uint64_t bytes,
			  unsigned int big_texts)
{
	struct kb_barman_layout layout = {
		.size = sizeof(layout),
		.word_size = word, .circular = circular, .buffer_length = circular ? bytes : 0,
		.max_cores = 4, .max_task_infos = 1, .max_string_table_length = 64,
	};
	struct kb_header header = { .target_name = "t", .timestamp_multiplier = 1,
				    .timestamp_divisor = 1 };
	uint64_t written = 0, timestamp = 0;
	struct kb_barman_writer *w;
	int ret = 0;

	if (kb_barman_writer_create(&w, fd, &layout, NULL))
		return false;
	kb_barman_writer_set_header(w, &header);
	while (!ret && written < bytes + bytes / 3) {
		struct kb_event e = { .core = random_below(4), .timestamp = timestamp++ };
		unsigned int kind = random_below(1000);

		if (kind) {
			e.type = KB_EVENT_TASK_SWITCH;
			e.task_id = random_u64();
			e.task_switch.prev_state = KB_STATE_UNKNOWN;
			written += word + 24;
		} else {
			bool big = big_texts && random_below(big_texts) == 0;

			e.type = KB_EVENT_ANNOTATION;
			e.annotation.text = text;
			e.annotation.text_length = big ? BIG_TEXT : random_below(100000);
			written += e.annotation.text_length;
		}
		ret = kb_barman_writer_event(w, &e);
	}
	if (!ret)
		ret = kb_barman_writer_finish(w, false, NULL);
	kb_barman_writer_destroy(w);
	return !ret;
}

struct result {
	uint64_t records, checksum, first, last;
};

static bool read_all(struct kb_barman *barman, struct result *r)
{
	struct kb_error err;
	struct kb_event e;
	int ret;

	*r = (struct result){ 0 };
	while ((ret = kb_barman_next(barman, &e, &err)) == 1) {
		if (!r->records++)
			r->first = e.timestamp;
		r->last = e.timestamp;
		r->checksum += kb_event_checksum(&e);
	}
	if (ret < 0)
		tap_note("%s", err.text);
	return ret == 0;
}

static bool read_path(const char *path, size_t window, bool twice, struct result *r)
{
	struct kb_barman *barman;
	struct kb_validation sum;
	struct kb_error err;
	bool good;

	if (kb_barman_open(&barman, path, &err)) {
		tap_note("%s", err.text);
		return false;
	}
	if (window)
		kb_barman_set_window(barman, window);
	good = read_all(barman, r);
	if (good && twice)
		good = !kb_barman_rewind(barman) && !kb_barman_validate(barman, &sum, &err) &&
		       sum.records == r->records && sum.checksum == r->checksum;
	kb_barman_close(barman);
	return good;
}

/* A child writes the file into a pipe, in pieces of odd lengths. */
static bool read_pipe(int fd, uint64_t size, struct result *r)
{
	char path[32];
	pid_t child;
	int ends[2];
	bool good;

	if (pipe(ends))
		return false;
	child = fork();
	if (child == 0) {
		static char piece[100000];
		uint64_t at = 0;

		close(ends[0]);
		while (at < size) {
			ssize_t n = pread(fd, piece, 1 + random_below(sizeof(piece)), at);

			if (n <= 0 || write(ends[1], piece, n) != n)
				_exit(1);
			at += n;
		}
		_exit(0);
	}
	close(ends[1]);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", ends[0]);
	good = read_path(path, 0, false, r);
	close(ends[0]);
	waitpid(child, NULL, 0);
	return good;
}

static bool same(const struct result *a, const struct result *b)
{
	if (a->records == b->records && a->checksum == b->checksum && a->first == b->first &&
	    a->last == b->last)
		return true;
	tap_note("%" PRIu64 " records %" PRIu64 "..%" PRIu64 ", want %" PRIu64 " %" PRIu64
		 "..%" PRIu64, a->records, a->first, a->last, b->records, b->first, b->last);
	return false;
}

static void every_way_gives_the_same(unsigned int word, bool circular)
{
	int fd = memfd_create("capture", 0);
	struct result want, got;
	struct kb_barman *barman;
	char name[96], path[32];
	struct stat st;
	void *all;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	snprintf(name, sizeof(name), "every_way_gives_the_same_%u_%s", word * 8,
		 circular ? "circular" : "linear");
	if (!write_capture(fd, word, circular, 24 << 20, 30) || fstat(fd, &st)) {
		tap_ok(false, name);
		return;
	}
	all = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (kb_barman_open_memory(&barman, all, st.st_size, NULL) || !read_all(barman, &want)) {
		tap_ok(false, name);
		return;
	}
	kb_barman_close(barman);
	munmap(all, st.st_size);
	tap_ok(want.records > 1000 && want.last > want.first, name);
	snprintf(name, sizeof(name), "file_%u_%s", word * 8, circular ? "circular" : "linear");
	tap_ok(read_path(path, 0, true, &got) && same(&got, &want), name);
	snprintf(name, sizeof(name), "small_window_%u_%s", word * 8,
		 circular ? "circular" : "linear");
	tap_ok(read_path(path, 1, true, &got) && same(&got, &want), name);
	snprintf(name, sizeof(name), "pipe_%u_%s", word * 8, circular ? "circular" : "linear");
	tap_ok(read_pipe(fd, st.st_size, &got) && same(&got, &want), name);
	close(fd);
}

/* In a child, whose peak is its own. */
static void large_captures_take_no_more_memory(void)
{
	const char *name = "large_captures_take_no_more_memory";
	int fd = open(".", O_TMPFILE | O_RDWR, 0600), status;
	struct rusage usage;
	pid_t child;

#ifdef __SANITIZE_ADDRESS__
	tap_skip(name, "the address sanitizer takes more");
	return;
#endif
	if (fd < 0 || !write_capture(fd, 8, false, 200 << 20, 0)) {
		tap_skip(name, "no temporary file here");
		return;
	}
	child = fork();
	if (child == 0) {
		struct result r;
		char path[32];

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		_exit(!read_path(path, 0, true, &r));
	}
	if (wait4(child, &status, 0, &usage) != child || status)
		tap_ok(false, name);
	else if (!tap_ok(usage.ru_maxrss <= 32 << 10, name))
		tap_note("%ld KiB", usage.ru_maxrss);
	close(fd);
}

int main(void)
{
	const char *tmp = getenv("TMPDIR");

	random_start();
	if (chdir(tmp ? tmp : "/tmp"))
		return 1;
	/* First, while this process is small: its child begins with what it has. */
	large_captures_take_no_more_memory();
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = ' ' + i % 90;
	for (unsigned int word = 4; word <= 8; word += 4) {
		every_way_gives_the_same(word, false);
		every_way_gives_the_same(word, true);
	}
	return tap_done();
}
