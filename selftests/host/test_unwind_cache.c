// SPDX-License-Identifier: MIT
/*
 * Rows of a file that was read before cost no compiling, and nobody else can say what they are. The
 * file is a copy of this program, in a folder where the cache is as well.
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../lib/tap.h"
#include "sym/elf/elf.h"
#include "sym/elf/unwind.h"
#include "sym/files/file_id.h"
#include "sym/question/question.h"
#include "sym/unwind/cache.h"
#include "sym/unwind/file.h"

static char folder[] = "/tmp/kbarman-unwind-cache-XXXXXX";
static char program[128], home[128], entries[256], entry[768];
static struct kb_elf own;		/* what the file has */
static unsigned int compiled;		/* how often */

static void must(bool done, const char *what)
{
	if (done)
		return;
	perror(what);
	exit(2);
}

/* A shell that has $D, the folder. */
static void run(const char *commands)
{
	must(system(commands) == 0, commands);
}

/* A kb_decoder. */
static int decode(void *context, const struct kb_question *question, int fd, const char *label,
		  struct kb_elf *found)
{
	(void)context;
	if (question->what == KB_QUESTION_IDENTITY)
		return kb_elf_identify_fd(found, fd, label, NULL);
	compiled++;
	return kb_elf_unwind_read_fd(found, fd, label, NULL);
}

/* Load the rows; are they right, and how often were they compiled? -1: they are not right. */
static int load(void)
{
	char id[KB_FILE_ID];
	struct kb_unwind_place place = { .image = program };
	struct kb_unwind_file file;
	bool same;

	must(kb_file_id(program, id), program);
	place.file = kb_text(id);
	compiled = 0;
	if (kb_unwind_file_load(&file, &place, NULL))
		return -1;
	same = file.rows.header->size == own.unwind.header->size &&
	       !memcmp(file.rows.header, own.unwind.header, own.unwind.header->size) &&
	       file.nr_segments == own.nr_segments &&
	       !memcmp(file.segments, own.segments, own.nr_segments * sizeof(*own.segments));
	kb_unwind_file_release(&file);
	return same ? (int)compiled : -1;
}

/* How many files the cache has. */
static unsigned int nr_entries(void)
{
	char command[384];
	unsigned int nr = 0;
	FILE *list;

	snprintf(command, sizeof(command), "ls -A %s 2>/dev/null | wc -l", entries);
	list = popen(command, "r");
	must(list && fscanf(list, "%u", &nr) == 1 && !pclose(list), "ls");
	return nr;
}

static void begin(void)
{
	run("cp /proc/$PPID/exe $D/program && chmod 755 $D/program && mkdir -m 700 $D/home");
}

static void end(void)
{
	run("rm -rf $D/home $D/program");
}

static void name_entry(void)
{
	size_t at = (size_t)snprintf(entry, sizeof(entry), "%s/", entries);
	struct stat st;

	for (uint32_t i = 0; i < own.build_id.length; i++)
		at += (size_t)snprintf(entry + at, sizeof(entry) - at, "%02x",
				       own.build_id.bytes[i]);
	must(!stat(program, &st), program);
	snprintf(entry + at, sizeof(entry) - at, "-%lld", (long long)st.st_size);
	setenv("E", entry, 1);
}

static void test_hit(void)
{
	struct stat st;
	ino_t before;

	tap_is(load(), 1, "a_new_file_is_compiled");
	tap_is(nr_entries(), 1, "its_rows_are_kept");
	name_entry();
	tap_ok(!stat(entry, &st) && (uint64_t)st.st_size == own.unwind.header->size &&
	       (st.st_mode & 0777) == 0600, "as_an_entry_with_its_build_id_and_size");
	tap_is(load(), 0, "a_known_file_is_not_compiled");
	kb_decode_by(NULL, NULL);
	before = st.st_ino;
	tap_ok(!load() && !stat(entry, &st) && st.st_ino == before,
	       "nor_is_it_where_nobody_else_decodes");
	kb_decode_by(decode, NULL);
	run("touch -d 2001-01-01 $E");
	load();
	tap_ok(!stat(entry, &st) && st.st_mtim.tv_sec > 1500000000, "its_use_makes_an_entry_new");
	run("printf x >>$D/program");
	tap_is(load(), 1, "a_file_of_another_size_is_another_one");
	tap_is(nr_entries(), 2, "both_are_kept");
}

/* What was done to the entry: then the file is compiled, and the entry is right again. */
static void mends(const char *commands, const char *name)
{
	run(commands);
	if (tap_is(load(), 1, name))
		tap_is(load(), 0, "the_entry_is_right_again");
}

static void test_damage(void)
{
	load();
	name_entry();
	mends("printf x | dd of=$E bs=1 seek=2000 conv=notrunc 2>/dev/null",
	      "a_changed_entry_is_not_used");
	mends("truncate -s -1 $E", "a_cut_entry_is_not_used");
	mends("truncate -s +1 $E", "an_entry_that_goes_on_is_not_used");
	mends(": >$E", "an_empty_entry_is_not_used");
	mends("truncate -s 1T $E", "an_endless_entry_is_not_used");
	mends("mv $E $E.x && ln -s $E.x $E", "a_link_is_not_used");
	alarm(300);
	mends("rm $E && mkfifo $E", "a_fifo_is_not_used");
	alarm(0);
	run("rm $E && mkdir $E");
	tap_is(load(), 1, "a_folder_is_not_used");
	tap_is(load(), 1, "it_stays");
	run("rmdir $E && ls -A $D/home/kbarman/unwind | grep -q new && exit 1 || :");
	tap_ok(true, "no_temporary_file_stays");
}

/* With what was done, the file is compiled again and again, and no entry is left. */
static void never(const char *commands, const char *name)
{
	run(commands);
	tap_ok(load() == 1 && load() == 1 && !nr_entries(), name);
}

static void test_folders(void)
{
	never("rm -rf $D/home; : >$D/home", "a_cache_that_is_a_file_is_none");
	never("rm -rf $D/home; mkdir -p $D/home/kbarman && mkdir -m 777 $D/home/kbarman/unwind",
	      "a_folder_where_others_may_write_is_not_used");
	never("rm -rf $D/home; mkdir -p $D/home/kbarman $D/else &&"
	      "ln -s $D/else $D/home/kbarman/unwind",
	      "a_link_instead_of_the_folder_is_not_used");
	run("test -z \"$(ls -A $D/else)\" && rmdir $D/else && rm -rf $D/home");
	unsetenv("XDG_CACHE_HOME");
	unsetenv("HOME");
	never(":", "without_a_home_there_is_no_cache");
	setenv("HOME", "/proc", 1);
	never(":", "a_home_that_can_not_be_written_is_no_error");
	setenv("HOME", folder, 1);
	setenv("XDG_CACHE_HOME", "home", 1);
	tap_ok(load() == 1 && load() == 0, "without_another_folder_it_is_below_home");
	run("test -f $D/.cache/kbarman/unwind/*-* && rm -r $D/.cache");
	setenv("XDG_CACHE_HOME", home, 1);
}

static void test_owners(void)
{
	never("chmod g+w $D/program", "a_file_that_a_group_may_change_is_not_kept");
	never("chmod g-w,o+w $D/program", "a_file_that_anybody_may_change_is_not_kept");
	if (geteuid()) {
		tap_skip("a_file_of_somebody_else_is_not_kept", "only root can give files away");
		return;
	}
	never("chmod o-w $D/program; chown nobody $D/program",
	      "a_file_of_somebody_else_is_not_kept");
	run("chown 0 $D/program");
	load();
	tap_is(load(), 0, "a_file_of_root_is_kept");
	run("chown nobody $D/program");
	tap_is(load(), 1, "rows_of_a_file_of_somebody_else_are_not_looked_up");
	run("chown 0 $D/program");
	never("rm -r $D/home/kbarman; chown nobody $D/home", "a_home_of_somebody_else_is_not_used");
	run("test -z \"$(ls -A $D/home)\"");
	never("chown 0 $D/home; mkdir -p $D/home/kbarman/unwind; chown nobody $D/home/kbarman",
	      "a_folder_of_somebody_else_is_not_used");
	never("chown 0 $D/home/kbarman; chown nobody $D/home/kbarman/unwind",
	      "nor_is_the_last_folder");
}

/* In a process that has the file on such a file system. */
static bool is_not_kept_on_a_stick(void)
{
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("stick", folder, "tmpfs", MS_NOSUID, NULL))
		return false;
	begin();
	return load() == 1 && load() == 1 && !nr_entries();
}

static void test_stick(void)
{
	static const char name[] = "a_file_system_without_set_user_id_programs_is_not_trusted";
	int status = -1;
	pid_t child;

	if (geteuid()) {
		tap_skip(name, "only root can mount a file system");
		return;
	}
	fflush(stdout);
	child = fork();
	if (!child)
		_exit(!is_not_kept_on_a_stick());
	waitpid(child, &status, 0);
	tap_is(status, 0, name);
}

/* A disk that is full in the middle of an entry: this limit is as good. */
static void test_full_disk(void)
{
	struct rlimit before, low;

	signal(SIGXFSZ, SIG_IGN);
	must(!getrlimit(RLIMIT_FSIZE, &before), "limits");
	low = before;
	low.rlim_cur = 4096;
	must(!setrlimit(RLIMIT_FSIZE, &low), "limits");
	tap_is(load(), 1, "a_full_disk_is_no_error");
	must(!setrlimit(RLIMIT_FSIZE, &before), "limits");
	tap_is(nr_entries(), 0, "nothing_is_left_there");
}

static bool is_there(const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", entries, name);
	return !access(path, F_OK);
}

static void test_limit(void)
{
	load();
	run("cd $D/home/kbarman/unwind && truncate -s 100M a b c && touch -d 2001-01-01 b &&"
	    "touch -d 2002-01-01 a && touch -d 2003-01-01 c");
	tap_is(load(), 0, "a_use_removes_nothing");
	tap_ok(is_there("a") && is_there("b"), "above_the_limit_all_stay_until_something_is_added");
	run("printf x >>$D/program");
	load();
	tap_ok(!is_there("b"), "what_was_not_used_for_longest_goes");
	tap_ok(is_there("a") && is_there("c") && nr_entries() == 4, "the_others_stay");
}

/* A cache of another limit, and what is too large for it. */
static void test_too_large(void)
{
	struct kb_build_id none = { 0 };
	struct kb_unwind_cache cache;
	struct kb_unwind_rows rows;
	int fd = open(program, O_RDONLY | O_CLOEXEC);

	must(kb_unwind_cache_open(&cache, fd), program);
	cache.limit = own.unwind.header->size - 1;
	kb_unwind_cache_put(&cache, &own.build_id, &own.unwind);
	tap_is(nr_entries(), 0, "what_is_larger_than_the_limit_is_not_kept");
	cache.limit++;
	kb_unwind_cache_put(&cache, &own.build_id, &own.unwind);
	tap_is(nr_entries(), 1, "what_is_as_large_is_kept");
	cache.limit--;
	tap_ok(!kb_unwind_cache_get(&cache, &own.build_id, &rows),
	       "but_is_not_read_with_a_smaller_one");
	cache.limit++;
	kb_unwind_cache_put(&cache, &none, &own.unwind);
	tap_ok(nr_entries() == 1 && !kb_unwind_cache_get(&cache, &none, &rows),
	       "without_a_build_id_nothing_is_kept");
	kb_unwind_cache_close(&cache);
	close(fd);
}

static void with_a_file(void (*test)(void))
{
	begin();
	test();
	end();
}

static bool prepare(void)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct statvfs fs;

	must(mkdtemp(folder) && !chmod(folder, 0755) && !statvfs(folder, &fs), folder);
	snprintf(program, sizeof(program), "%s/program", folder);
	snprintf(home, sizeof(home), "%s/home", folder);
	snprintf(entries, sizeof(entries), "%s/kbarman/unwind", home);
	setenv("D", folder, 1);
	setenv("XDG_CACHE_HOME", home, 1);
	must(!kb_elf_unwind_read_fd(&own, fd, "own", NULL) && !close(fd), "/proc/self/exe");
	must(own.build_id.length, "the linker made no build-id");
	return !(fs.f_flag & ST_NOSUID);
}

int main(void)
{
	if (prepare()) {
		kb_decode_by(decode, NULL);
		with_a_file(test_hit);
		with_a_file(test_damage);
		with_a_file(test_folders);
		with_a_file(test_owners);
		test_stick();
		with_a_file(test_full_disk);
		with_a_file(test_limit);
		with_a_file(test_too_large);
	} else {
		tap_skip("rows_are_kept", "/tmp is mounted with nosuid");
	}
	kb_elf_release(&own);
	rmdir(folder);
	return tap_done();
}
