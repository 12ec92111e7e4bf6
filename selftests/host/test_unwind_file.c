// SPDX-License-Identifier: MIT
/*
 * Unwind rows of the file of a mapping: of that file and of no other, whatever its path has now.
 * The file is a copy of this program, which this process maps.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../lib/tap.h"
#include "sym/elf/elf.h"
#include "sym/elf/unwind.h"
#include "sym/files/file_id.h"
#include "sym/question/question.h"
#include "sym/unwind/file.h"

#define NOBODY	65534

static char folder[] = "/tmp/kbarman-unwind-file-XXXXXX", path[128], id[KB_FILE_ID];
static struct kb_elf own;		/* what the file has */
static struct kb_error err;
static size_t page;
static void *mapped;

static void must(bool done, const char *what)
{
	if (done)
		return;
	perror(what);
	exit(2);
}

static void copy_bytes(const char *from, int out)
{
	static char bytes[1 << 23];
	int in = open(from, O_RDONLY);
	ssize_t length = read(in, bytes, sizeof(bytes));

	must(length > 0 && length < (ssize_t)sizeof(bytes) &&
	     write(out, bytes, (size_t)length) == length && !close(in), from);
}

static void copy(const char *from, const char *to)
{
	int out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0755);

	copy_bytes(from, out);
	must(!close(out), to);
}

/* A copy of this program at the path, of which the second and third page are mapped. */
static void begin(void)
{
	int fd;

	copy("/proc/self/exe", path);
	must(kb_file_id(path, id), path);
	fd = open(path, O_RDONLY);
	mapped = mmap(NULL, 2 * page, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, (off_t)page);
	must(mapped != MAP_FAILED && !close(fd), path);
}

static void end(void)
{
	munmap(mapped, 2 * page);
	unlink(path);
}

static struct kb_unwind_place place_of(uint32_t pid, const char *file)
{
	return (struct kb_unwind_place) {
		.pid = pid, .start = (uintptr_t)mapped, .length = 2 * page, .offset = page,
		.image = path, .file = kb_text(file),
	};
}

/* Do the rows of @place come, and are they those of this program? */
static bool comes(const struct kb_unwind_place *place)
{
	struct kb_unwind_file file;
	bool same;

	err = (struct kb_error) { 0 };
	if (kb_unwind_file_load(&file, place, &err)) {
		tap_note("%s", kb_error_text(&err));
		return false;
	}
	same = file.rows.header->size == own.unwind.header->size &&
	       !memcmp(file.rows.header, own.unwind.header, own.unwind.header->size) &&
	       file.nr_segments == own.nr_segments &&
	       !memcmp(file.segments, own.segments, own.nr_segments * sizeof(*own.segments));
	kb_unwind_file_release(&file);
	return same && !file.rows.header && !file.segments;
}

/* The error that comes instead of rows, with a sentence that names the image. */
static int fails(const struct kb_unwind_place *place)
{
	struct kb_unwind_file file;
	int ret = kb_unwind_file_load(&file, place, &err);

	if (ret && (!strstr(err.text, place->image) || file.rows.header || file.segments))
		return 1;
	kb_unwind_file_release(&file);
	return ret;
}

static bool can_open_mapped_files(void)
{
	char link[96];
	int fd;

	snprintf(link, sizeof(link), "/proc/self/map_files/%lx-%lx", (unsigned long)mapped,
		 (unsigned long)mapped + 2 * page);
	fd = open(link, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void test_path(void)
{
	struct kb_unwind_place place = place_of(0, id);
	char contents[KB_FILE_ID], other[KB_FILE_ID + 8];

	tap_ok(comes(&place), "a_file_with_the_identity_is_read");
	place.file = kb_text("1:2:3:4:1700000000000000000");
	tap_is(fails(&place), -ESTALE, "a_file_with_another_identity_is_refused");
	place.file = kb_text("");
	tap_is(fails(&place), -ESTALE, "a_path_without_an_identity_is_refused");
	must(sscanf(id, "%*u:%*u:%*u:%s", contents) == 1, id);
	snprintf(other, sizeof(other), "999:1:7:%s", contents);
	place.file = kb_text(other);
	tap_ok(comes(&place), "a_file_of_another_disk_with_its_size_and_time_is_read");
	place = place_of(0, id);
	unlink(path);
	tap_is(fails(&place), -ENOENT, "a_deleted_file_without_a_process_is_lost");
}

/* With the rights of root. */
static void test_mapped(void)
{
	struct kb_unwind_place place = place_of((uint32_t)getpid(), id);

	tap_ok(comes(&place), "a_mapped_file_is_read");
	place.start += page;
	place.offset += page;
	place.length = page;
	tap_ok(comes(&place), "a_part_of_a_mapping_is_enough");
	unlink(path);
	tap_ok(comes(&place), "a_deleted_file_of_a_living_process_is_read");
	place.file = kb_text("");
	tap_ok(comes(&place), "a_mapped_file_needs_no_identity");
	place.offset = 0;
	tap_is(fails(&place), -ENOENT, "a_mapping_of_another_part_is_not_the_one");
	place = place_of((uint32_t)getpid(), "1:2:3:4:1700000000000000000");
	tap_is(fails(&place), -ENOENT, "a_mapping_of_another_file_is_not_the_one");

	place = place_of((uint32_t)getpid(), id);
	copy("/bin/true", path);
	tap_ok(comes(&place), "a_replaced_file_of_a_living_process_is_read");
	place.pid = 0;
	tap_is(fails(&place), -ESTALE, "what_replaced_it_is_refused");
}

static void test_written(void)
{
	const struct timespec times[] = { { 1700000000, 1 }, { 1700000000, 1 } };
	struct kb_unwind_place place = place_of((uint32_t)getpid(), id);

	must(!utimensat(AT_FDCWD, path, times, 0), path);
	tap_ok(comes(&place), "a_mapped_file_whose_time_was_changed_is_read");
	place.pid = 0;
	tap_is(fails(&place), -ESTALE, "at_its_path_it_is_refused");
}

/* A memory file has neither a path nor an identity. */
static void test_memory_file(void)
{
	struct kb_unwind_place place = place_of((uint32_t)getpid(), "");
	int fd = memfd_create("jit", 0);

	copy_bytes("/proc/self/exe", fd);
	place.image = "/memfd:jit (deleted)";
	place.start = (uintptr_t)mmap(NULL, page, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	place.offset = 0;
	place.length = page;
	tap_ok(comes(&place), "a_mapped_memory_file_is_read");
	munmap((void *)(uintptr_t)place.start, page);
	close(fd);
}

/* Without rights: a process of a user who has none. */
static void test_without_rights(void)
{
	int status = -1;
	pid_t child;

	fflush(stdout);
	child = geteuid() ? -1 : fork();
	if (!child) {
		struct kb_unwind_place place = place_of((uint32_t)getpid(), id);

		must(!setgroups(0, NULL) && !setgid(NOBODY) && !setuid(NOBODY), "nobody");
		_exit(can_open_mapped_files() ? 2 : !comes(&place));
	}
	if (child < 0) {
		tap_skip("without_rights_the_path_is_read", "only root can give up rights");
		return;
	}
	waitpid(child, &status, 0);
	tap_is(status, 0, "without_rights_the_path_is_read");
}

static void test_ended(void)
{
	struct kb_unwind_place place = place_of(0, id);
	pid_t child = fork();

	if (!child)
		_exit(0);
	waitpid(child, NULL, 0);
	place.pid = (uint32_t)child;
	tap_ok(comes(&place), "the_path_remains_when_the_process_has_ended");
}

/* A process whose root directory is the folder. */
static void test_other_root(void)
{
	struct kb_unwind_place place = place_of(0, id);
	int ready[2];
	pid_t child;
	char byte;

	if (geteuid()) {
		tap_skip("a_file_of_a_container_is_read", "only root can change its root");
		return;
	}
	must(!pipe(ready), "pipe");
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		must(!chroot(folder) && write(ready[1], "", 1) == 1, folder);
		pause();
		_exit(0);
	}
	must(read(ready[0], &byte, 1) == 1 && !close(ready[0]) && !close(ready[1]), "pipe");
	place.pid = (uint32_t)child;
	place.image = strrchr(path, '/');
	tap_ok(comes(&place), "a_file_of_a_container_is_read");
	place.pid = 0;
	tap_is(fails(&place), -ENOENT, "without_the_container_it_is_not_there");
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

/* Nothing but a regular file is opened: the alarm ends the test if one waits. */
static void test_other_kinds(void)
{
	struct kb_unwind_place place = place_of(0, id);
	char other[160];

	snprintf(other, sizeof(other), "%s.other", path);
	must(!rename(path, other) && !mkfifo(path, 0600), path);
	alarm(300);
	tap_is(fails(&place), -ENOEXEC, "a_fifo_is_refused");
	unlink(path);
	must(!symlink(other, path), path);
	tap_is(fails(&place), -ENOEXEC, "a_link_is_refused");
	unlink(path);
	must(!mkdir(path, 0700), path);
	tap_is(fails(&place), -ENOEXEC, "a_folder_is_refused");
	rmdir(path);
	place.image = "/dev/zero";
	tap_is(fails(&place), -ENOEXEC, "a_device_is_refused");
	place.image = "[heap]";
	tap_is(fails(&place), -ENOENT, "what_has_no_path_has_no_file");
	alarm(0);
	rename(other, path);
}

static void test_vdso(void)
{
	struct kb_unwind_place place = { .image = "[vdso]", .start = (uint64_t)-4096 };
	struct kb_unwind_file file;

	if (sizeof(void *) < 8)
		place.start = 4096;
	if (kb_unwind_file_load(&file, &place, &err) == -ENOENT) {
		tap_skip("the_vdso_has_rows", "this machine has no vdso");
		return;
	}
	tap_ok(file.rows.header && file.rows.header->nr_rows && file.nr_segments &&
	       file.segments[0].executable, "the_vdso_has_rows");
	kb_unwind_file_release(&file);
	place.start = place.start > UINT32_MAX ? 4096 : (uint64_t)-4096;
	tap_is(fails(&place), -ENOTSUP, "that_of_another_word_size_is_refused");
}

/* ---- decoders: each is a kb_decoder ---- */

static int honest(void *context, const struct kb_question *question, int fd, const char *label,
		  struct kb_elf *found)
{
	unsigned int *asked = context;

	++*asked;
	return question->what == KB_QUESTION_IDENTITY ?
		kb_elf_identify_fd(found, fd, label, NULL) :
		kb_elf_unwind_read_fd(found, fd, label, NULL);
}

static int without_rows(void *context, const struct kb_question *question, int fd,
			const char *label, struct kb_elf *found)
{
	(void)context;
	(void)question;
	return kb_elf_identify_fd(found, fd, label, NULL);
}

static int dead(void *context, const struct kb_question *question, int fd, const char *label,
		struct kb_elf *found)
{
	(void)context;
	(void)question;
	(void)fd;
	(void)label;
	(void)found;
	return KB_DECODER_DIED;
}

static void test_decoders(void)
{
	struct kb_unwind_place place = place_of(0, id);
	unsigned int asked = 0;

	kb_decode_by(honest, &asked);
	tap_ok(comes(&place) && asked, "rows_come_from_a_decoder");
	kb_decode_by(without_rows, NULL);
	tap_is(fails(&place), KB_DECODER_LIED, "an_answer_without_rows_is_refused");
	kb_decode_by(dead, NULL);
	tap_is(fails(&place), KB_DECODER_DIED, "a_decoder_that_died_is_told");
	kb_decode_by(NULL, NULL);
}

static void with_a_file(void (*test)(void))
{
	begin();
	test();
	end();
}

static void test_with_rights(void)
{
	bool can;

	begin();
	can = can_open_mapped_files();
	end();
	if (!can) {
		tap_skip("mapped_files_are_read", "only root may open them");
		return;
	}
	with_a_file(test_mapped);
	with_a_file(test_written);
	with_a_file(test_memory_file);
}

int main(void)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	setenv("XDG_CACHE_HOME", "/proc/none", 1);
	page = (size_t)sysconf(_SC_PAGESIZE);
	must(mkdtemp(folder) && !chmod(folder, 0755), folder);
	snprintf(path, sizeof(path), "%s/program", folder);
	must(!kb_elf_unwind_read_fd(&own, fd, "own", NULL) && !close(fd), "/proc/self/exe");
	with_a_file(test_path);
	test_with_rights();
	with_a_file(test_without_rights);
	with_a_file(test_ended);
	with_a_file(test_other_root);
	with_a_file(test_other_kinds);
	test_vdso();
	with_a_file(test_decoders);
	kb_elf_release(&own);
	rmdir(folder);
	return tap_done();
}
