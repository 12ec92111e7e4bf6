// SPDX-License-Identifier: MIT
/*
 * Which file of a path gives an image its names: a copy of this very program, and captures
 * that say of it what the module would say, or something else.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <kbarman/barman.h>
#include <kbarman/symbol.h>

#include "../lib/tap.h"
#include "sym/files/file_id.h"
#include "sym/files/namesakes.h"

#define BASE	0x10000000UL	/* where task 1 has the program, task 2 twice that, ... */

static char dir[] = "/tmp/kbarman-files-XXXXXX", path[64];
static uint64_t place;		/* of one_of_ours() in the file */
static struct stat st;
static char real_id[KB_FILE_ID];

__attribute__((noinline)) int one_of_ours(int x)
{
	return x * 7 + 1;
}

static void must(bool done, const char *what)
{
	if (done)
		return;
	perror(what);
	exit(2);
}

/* Where in the program the function is. */
static void find_place(void)
{
	int (*volatile function)(int) = one_of_ours;
	FILE *maps = fopen("/proc/self/maps", "r");
	uint64_t low, high, offset;
	char line[4352];

	while (maps && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64, &low, &high, &offset) == 3 &&
		    (uintptr_t)function >= low && (uintptr_t)function < high)
			place = (uintptr_t)function - low + offset;
	must(maps && place, "/proc/self/maps");
	fclose(maps);
}

/* A copy of this program at @to. */
static void copy_program(const char *to)
{
	static char bytes[1 << 22];
	int in = open("/proc/self/exe", O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0700);
	ssize_t length = read(in, bytes, sizeof(bytes));

	must(length > 0 && length < (ssize_t)sizeof(bytes) &&
	     write(out, bytes, (size_t)length) == length && !close(in) && !close(out), to);
}

static void set_time(const char *of, time_t seconds, long ns)
{
	const struct timespec times[] = { { seconds, ns }, { seconds, ns } };

	must(!utimensat(AT_FDCWD, of, times, 0), of);
	must(!stat(path, &st) && kb_file_id(path, real_id), path);
}

/* An id with that inode of a disk that is not here, and what else @size and @ns say. */
static const char *other_id(unsigned int inode, uint64_t size, uint64_t ns)
{
	static char ids[8][KB_FILE_ID];
	static unsigned int next;
	char *id = ids[next++ % 8];

	snprintf(id, KB_FILE_ID, "999:1:%u:%" PRIu64 ":%" PRIu64, inode, size, ns);
	return id;
}

static uint64_t mtime_ns(void)
{
	return (uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec;
}

struct session {
	struct kb_barman *barman;
	struct kb_symbolizer *symbolizer;
	int fd;
	unsigned int said;		/* complaints, */
	char last[512];			/* the last of them */
};

/* Task 1 has the file @ids[0] mapped, task 2 the next one, ... "" is not told. */
static struct session *begin(const struct kb_symbol_options *options, unsigned int nr,
			     const char *const *ids)
{
	static struct session session;
	struct session *s = &session;
	const struct kb_barman_layout layout = {
		.size = sizeof(layout),
		.max_cores = 1, .max_task_infos = 1, .max_mmap_layout = 1024,
		.max_string_table_length = 1 << 17,
	};
	struct kb_header header = {
		.target_name = "test", .timestamp_multiplier = 1, .timestamp_divisor = 1,
		.unix_base_ns = (uint64_t)time(NULL) * 1000000000,
	};
	struct kb_barman_writer *writer;
	struct kb_error err = { 0 };
	struct utsname name;
	char at[32];
	int ret;

	*s = (struct session) { .fd = memfd_create("capture", 0) };
	uname(&name);
	ret = kb_barman_writer_create(&writer, s->fd, &layout, &err);
	must(!ret && !kb_barman_writer_set_header(writer, &header) &&
	     !kb_barman_writer_fact(writer, "host", name.nodename) &&
	     !kb_barman_writer_fact(writer, "release", name.release), "a capture");
	for (unsigned int i = 0; i < nr; i++) {
		const struct kb_map row = {
			.timestamp = 10, .task_id = 0x7fff0000 + i, .base_address = BASE * (i + 1),
			.length = BASE / 2, .image = path, .file = kb_text(ids[i]),
		};

		must(!kb_barman_writer_map(writer, &row), "a row");
	}
	must(!kb_barman_writer_finish(writer, true, &err), "a capture");
	kb_barman_writer_destroy(writer);
	snprintf(at, sizeof(at), "/proc/self/fd/%d", s->fd);
	must(!kb_barman_open(&s->barman, at, &err) &&
	     !kb_symbolizer_create(&s->symbolizer, s->barman, at, options, &err), "a symbolizer");
	return s;
}

static void listen(void *context, const char *sentence)
{
	struct session *s = context;

	s->said++;
	snprintf(s->last, sizeof(s->last), "%s", sentence);
}

static void end(struct session *s)
{
	kb_symbolizer_destroy(s->symbolizer);
	kb_barman_close(s->barman);
	close(s->fd);
}

static const struct kb_symbol *resolve(struct session *s, unsigned int file)
{
	return kb_symbolizer_resolve(s->symbolizer, 0x7fff0000 + file, 20,
				     BASE * (file + 1) + place);
}

/* "1" for each file that had its name, "0" for the others, and the complaints. */
static void check(const struct kb_symbol_options *options, unsigned int nr, const char *const *ids,
		  const char *named, unsigned int said, const char *what, const char *test)
{
	struct session *s = begin(options, nr, ids);
	char found[128] = "";

	for (unsigned int i = 0; i < nr; i++)
		found[i] = strcmp(resolve(s, i)->name, "one_of_ours") == 0 ? '1' : '0';
	kb_symbolizer_complaints(s->symbolizer, listen, s);
	if (strcmp(found, named) || s->said != said || !strstr(s->last, what))
		tap_note("named %s, %u complaints, the last: %s", found, s->said, s->last);
	tap_ok(!strcmp(found, named) && s->said == said && strstr(s->last, what), test);
	end(s);
}

#define CHECK(options, named, said, what, test, ...) \
	check(options, sizeof((const char *[]) { __VA_ARGS__ }) / sizeof(char *), \
	      (const char *[]) { __VA_ARGS__ }, named, said, what, test)

static void test_one_file(void)
{
	CHECK(NULL, "1", 0, "", "a_file_that_is_the_one_has_its_names", real_id);
	CHECK(NULL, "1", 0, "", "a_file_of_which_nothing_was_said_has_its_names", "");
	CHECK(NULL, "1", 0, "", "a_file_that_was_copied_up_has_its_names",
	      other_id(7, (uint64_t)st.st_size, mtime_ns()));
	CHECK(NULL, "1", 0, "", "an_inode_alone_never_takes_the_only_files_names", "999:1:7");
	CHECK(NULL, "1", 1, "changed or replaced since", "a_file_that_changed_has_its_names_loudly",
	      other_id(7, (uint64_t)st.st_size + 8, mtime_ns()));
	CHECK(NULL, "11", 0, "", "many_rows_of_one_file_are_one_file", real_id, real_id);
}

static void test_several(void)
{
	uint64_t size = (uint64_t)st.st_size;

	CHECK(NULL, "10", 1, "one of 2", "another_file_has_no_names_of_this_one", real_id,
	      other_id(7, size + 8, mtime_ns()));
	CHECK(NULL, "01", 1, "is not the file that was recorded", "whichever_is_asked_first",
	      other_id(7, size, mtime_ns() + 1), real_id);
	CHECK(NULL, "00", 2, "one of 2", "what_cant_be_told_apart_is_said_of_each",
	      other_id(7, size + 8, 5), other_id(8, size + 16, 5));
	CHECK(NULL, "00", 2, "one of 2", "inodes_alone_tell_no_other_file_from_it",
	      "999:1:7", "999:1:8");
	CHECK(NULL, "101", 1, "one of 3", "copies_of_a_file_have_its_names", real_id,
	      other_id(7, size + 8, mtime_ns()), other_id(8, size, mtime_ns()));
}

static void test_copies(void)
{
	const char *ids[] = { other_id(7, (uint64_t)st.st_size, mtime_ns()), real_id,
			      other_id(8, (uint64_t)st.st_size, mtime_ns()) };
	struct session *s = begin(NULL, 3, ids);
	uint32_t id[3];

	for (int i = 0; i < 3; i++)
		id[i] = resolve(s, (unsigned int)i)->id;
	tap_ok(id[0] && id[0] == id[1] && id[1] == id[2], "a_file_and_its_copies_are_one_image");
	end(s);
}

/* Some tools give everything the same time. */
static void test_no_time(void)
{
	set_time(path, 1, 0);
	CHECK(NULL, "10", 1, "one of 2", "a_time_that_all_files_have_says_nothing", real_id,
	      other_id(7, (uint64_t)st.st_size, 1000000000));
	set_time(path, 1600000000, 123456789);
}

/* Make what leads to the file @to, or take it away again. */
static void directories(char *to, bool make)
{
	for (char *slash = to + strlen(dir); make && (slash = strchr(slash + 1, '/')); *slash = '/') {
		*slash = '\0';
		must(!mkdir(to, 0700), to);
	}
	for (char *slash; !make && (slash = strrchr(to, '/')) > to + strlen(dir);) {
		*slash = '\0';
		must(!rmdir(to), to);
	}
}

static void test_symfs(void)
{
	char tree[128], inner[256];
	const struct kb_symbol_options options = { .size = sizeof(options), .symfs = tree };
	uint64_t size = (uint64_t)st.st_size;

	snprintf(tree, sizeof(tree), "%s/tree", dir);
	snprintf(inner, sizeof(inner), "%s%s", tree, path);
	directories(inner, true);
	copy_program(inner);
	set_time(inner, 1500000000, 5);
	CHECK(&options, "1", 0, "", "the_only_file_is_taken_from_a_tree", other_id(7, 8, 9));
	CHECK(&options, "01", 1, tree, "of_several_the_one_that_is_in_the_tree",
	      real_id, other_id(7, size, 1500000000000000005));
	CHECK(&options, "00", 2, tree, "or_none_if_it_cant_be_told",
	      other_id(7, 8, 9), other_id(8, 9, 10));
	unlink(inner);
	directories(inner, false);
}

/* A hostile file may have any number of them. */
static void test_many(void)
{
	static char ids[200][KB_FILE_ID];
	const char *list[200];
	struct session *s;
	unsigned int i;

	for (i = 0; i < 200; i++) {
		snprintf(ids[i], KB_FILE_ID, "8:1:%u:77:1600000000000000000", i);
		list[i] = ids[i];
	}
	list[150] = real_id;
	s = begin(NULL, 200, list);
	tap_is_string(resolve(s, 150)->name, "one_of_ours", "one_of_many_files_is_found");
	tap_is_string(resolve(s, 3)->name, "", "and_not_given_to_the_others");
	end(s);
}

static void test_alike(void)
{
	static const struct {
		const char *a, *b;
		bool alike;
	} cases[] = {
		{ "8:1:7:100:1600000000000000000", "0:9:8:100:1600000000000000000", true },
		{ "8:1:7:100:1600000000000000000", "8:1:7:101:1600000000000000000", false },
		{ "8:1:7:100:1600000000000000000", "8:1:7:100:1600000000000000001", false },
		{ "8:1:7:100:1000000000", "8:1:7:100:1000000000", false },
		{ "8:1:7:100:0", "8:1:7:100:0", false },
		{ "8:1:7", "8:1:7", false },
		{ "8:1:7:100", "8:1:7:100", false },
		{ "", "", false },
		{ ":::", ":::", false },
		{ "::::", "::::", false },
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		tap_ok(kb_file_id_alike(kb_text(cases[i].a), kb_text(cases[i].b)) == cases[i].alike,
		       "files_are_alike_by_size_and_time");
}

static void test_namesakes(void)
{
	static char table[] = "/a\0/b\0/a";
	struct kb_map maps[] = {
		{ .image_ptr = 3, .image = table + 3, .file = kb_text("1:1:1") },
		{ .image_ptr = 0, .image = table, .file = kb_text("1:1:3") },
		{ .image_ptr = 0, .image = table, .file = kb_text("1:1:3") },
		{ .image_ptr = 6, .image = table + 6, .file = kb_text("1:1:3") },
		{ .image_ptr = 7, .image = table, .file = kb_text("1:1:33") },
		{ .image_ptr = 6, .image = table + 6 },
	};
	struct kb_header header = { .maps = maps, .nr_maps = 6,
				    .string_table_length = sizeof(table) };
	struct kb_namesakes namesakes = { 0 };
	const struct kb_map *const *rows;

	tap_is(kb_namesakes_find(&namesakes, &header, "/a", &rows), 2, "files_are_counted_once");
	tap_ok(rows[0]->file.length == 5 && rows[1]->file.length == 6, "each_has_a_row");
	tap_is(kb_namesakes_find(&namesakes, &header, "/b", &rows), 1, "each_name_has_its_own");
	tap_is(kb_namesakes_find(&namesakes, &header, "/c", &rows), 0, "others_have_none");
	kb_namesakes_release(&namesakes);
	tap_is(kb_namesakes_find(&namesakes, NULL, "/a", &rows), 0, "nor_is_there_one_without_rows");
}

/* A capture that another machine has made. */
static struct kb_barman *open_elsewhere(void)
{
	const struct kb_barman_layout layout = { .size = sizeof(layout), .max_cores = 1, .max_string_table_length = 4096 };
	const struct kb_header header = { .timestamp_multiplier = 1, .timestamp_divisor = 1 };
	struct kb_barman_writer *writer;
	struct kb_barman *barman = NULL;
	int fd = memfd_create("elsewhere", 0);
	struct kb_error err;
	char at[32];

	snprintf(at, sizeof(at), "/proc/self/fd/%d", fd);
	must(!kb_barman_writer_create(&writer, fd, &layout, &err) &&
	     !kb_barman_writer_set_header(writer, &header) &&
	     !kb_barman_writer_fact(writer, "host", "elsewhere") &&
	     !kb_barman_writer_finish(writer, true, &err) && !kb_barman_open(&barman, at, &err),
	     "another capture");
	kb_barman_writer_destroy(writer);
	close(fd);
	return barman;
}

/* Captures one after the other, as `kbarman top` has them: what was read is not read again. */
static void test_cache(void)
{
	const struct kb_symbol_options symfs_of_the_cache = { .size = sizeof(symfs_of_the_cache), .symfs = "/" };
	struct kb_symbol_options options = { .size = sizeof(options), .symfs = "/nonexistent" };
	const struct kb_symbol *symbol;
	struct kb_symbolizer *other;
	struct kb_barman *barman;
	struct kb_error err;
	struct session *s;
	uint32_t id;

	must(!kb_symbol_cache_create(&options.cache, &symfs_of_the_cache, &err), "a cache");
	s = begin(&options, 1, (const char *[]){ real_id });
	id = resolve(s, 0)->id;
	end(s);
	must(!unlink(path), path);
	s = begin(&options, 2, (const char *[]){ other_id(7, 8, 9), real_id });
	symbol = resolve(s, 1);
	tap_is_string(symbol->name, "one_of_ours", "images_that_were_read_stay");
	tap_is(symbol->id, id, "with_their_ids");
	tap_is_string(resolve(s, 0)->name, "", "another_file_of_that_name_is_another_one");
	end(s);
	barman = open_elsewhere();
	tap_is(kb_symbolizer_create(&other, barman, NULL, &options, &err), -EXDEV,
	       "a_capture_of_another_machine_is_refused");
	kb_barman_close(barman);
	kb_symbol_cache_destroy(options.cache);
}

int main(void)
{
	must(mkdtemp(dir), dir);
	snprintf(path, sizeof(path), "%s/program", dir);
	find_place();
	copy_program(path);
	set_time(path, 1600000000, 123456789);
	test_one_file();
	test_several();
	test_copies();
	test_no_time();
	test_symfs();
	test_many();
	test_alike();
	test_namesakes();
	test_cache();
	unlink(path);
	rmdir(dir);
	return tap_done();
}
