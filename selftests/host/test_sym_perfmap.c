// SPDX-License-Identifier: MIT
/* Maps of code that was made at run time. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../lib/tap.h"
#include "sym/jit/perfmap.h"

static const char text[] =
	"1000 100 first\n"
	"0x2000 0x80 Lfunction;with blanks and (signs)\n"
	"3000 1000 old code\n"
	"3400 100 new code\n"
	"1000 40 first, compiled again\n"
	"nonsense\n"
	"5000 zz broken\n"
	"5000 0 empty\n"
	"6000 10\n"
	"7000 10 still being writ";

static const char *name_at(const struct kb_symtab *symtab, uint64_t address)
{
	struct kb_symtab_hit hit;

	kb_symtab_find(symtab, address, &hit);
	return hit.symbol ? kb_symtab_name(symtab, hit.symbol) : NULL;
}

static void check(const struct kb_symtab *symtab)
{
	tap_is_string(name_at(symtab, 0x1010), "first, compiled again", "the_newest_code_counts");
	tap_is_string(name_at(symtab, 0x1050), NULL, "its_end_is_its_own");
	tap_is_string(name_at(symtab, 0x207f), "Lfunction;with blanks and (signs)",
		      "names_may_have_blanks");
	tap_is_string(name_at(symtab, 0x2080), NULL, "sizes_are_hexadecimal");
	tap_is_string(name_at(symtab, 0x3450), "new code", "newer_code_inside_counts");
	tap_is_string(name_at(symtab, 0x3500), "old code", "older_code_around_it_stays");
	tap_is_string(name_at(symtab, 0x5000), NULL, "broken_lines_are_left_out");
	tap_is_string(name_at(symtab, 0x7000), NULL, "an_unfinished_line_is_left_out");
}

static void test_files(void)
{
	char directory[] = "/tmp/kbarman-perfmap-XXXXXX", path[128];
	struct kb_symtab symtab = { 0 };
	FILE *file;

	if (!mkdtemp(directory))
		exit(2);
	tap_is(kb_perfmap_read(&symtab, directory, 77), -2, "a_missing_map_is_told");
	snprintf(path, sizeof(path), "%s/tmp", directory);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/tmp/perf-77.map", directory);
	file = fopen(path, "w");
	fputs(text, file);
	fclose(file);
	tap_is(kb_perfmap_read(&symtab, directory, 77), 0, "a_map_is_found_by_process");
	tap_is_string(name_at(&symtab, 0x3450), "new code", "a_map_is_read");
	kb_symtab_release(&symtab);
	unlink(path);
	tap_ok(symlink("/proc/kallsyms", path) == 0 && kb_perfmap_read(&symtab, directory, 77) < 0,
	       "links_are_not_followed");
	unlink(path);
	tap_ok(mkfifo(path, 0600) == 0 && kb_perfmap_read(&symtab, directory, 77) < 0,
	       "a_fifo_does_not_block");
	unlink(path);
	*strrchr(path, '/') = '\0';
	rmdir(path);
	rmdir(directory);
}

/* ---- a container ---- */

static bool write_file(const char *path, const char *content)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	bool done = fd >= 0 && write(fd, content, strlen(content)) == (ssize_t)strlen(content);

	close(fd);
	return done;
}

/* As root it takes no other users; anybody else is root in his own. */
static bool enter_namespaces(void)
{
	char map[32];

	snprintf(map, sizeof(map), "0 %u 1", geteuid());
	if (!geteuid())
		return !unshare(CLONE_NEWNS | CLONE_NEWPID);
	return !unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID) && write_file("/proc/self/uid_map", map);
}

/* The first process of the container, with its own /tmp. It writes a byte to @ready, and stays. */
static void live_inside(int ready)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) || mount("none", "/tmp", "tmpfs", 0, NULL) ||
	    getpid() != 1 || !write_file("/tmp/perf-1.map", "1000 100 contained\n") ||
	    write(ready, "", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

/* Begins a container. Returns the number of its process here, 0: it can't be made; *@maker is to be killed. */
static pid_t begin_container(pid_t *maker)
{
	int tell[2], ready[2];
	pid_t inside = 0;
	char byte;

	if (pipe(tell) || pipe(ready))
		return 0;
	*maker = fork();
	if (!*maker) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(ready[0]);
		if (!enter_namespaces())
			_exit(1);
		inside = fork();
		if (!inside)
			live_inside(ready[1]);
		close(ready[1]);
		if (write(tell[1], &inside, sizeof(inside)) != sizeof(inside))
			_exit(1);
		waitpid(inside, NULL, 0);
		_exit(0);
	}
	close(tell[1]);
	close(ready[1]);
	if (read(tell[0], &inside, sizeof(inside)) != sizeof(inside) || read(ready[0], &byte, 1) != 1)
		inside = 0;
	close(tell[0]);
	close(ready[0]);
	return inside;
}

/* Reads the map of the process, with a link to @link_to in place of @name below its /tmp; NULL: as it is. */
static int reads(pid_t inside, const char *name, const char *link_to)
{
	struct kb_symtab symtab = { 0 };
	char path[64], other[80];
	int ret;

	snprintf(path, sizeof(path), "/proc/%d/root/tmp%s", inside, name);
	snprintf(other, sizeof(other), "%s.away", path);
	if (link_to && (rename(path, other) || symlink(link_to, path)))
		return 99;
	ret = kb_perfmap_read(&symtab, "", (uint32_t)inside);
	if (!ret && !name_at(&symtab, 0x1000))
		ret = 99;
	kb_symtab_release(&symtab);
	if (link_to && (unlink(path) || rename(other, path)))
		return 99;
	return ret;
}

static void test_container(void)
{
	pid_t maker = 0, inside = begin_container(&maker);
	static const char promise[] = "the_map_of_a_process_in_a_container_is_found_by_its_own_number";

	if (inside) {
		tap_is(reads(inside, "/perf-1.map", NULL), 0, promise);
		tap_is(reads(inside, "/perf-1.map", "perf-1.map.away"), -ENOENT, "a_link_inside_is_not_followed");
		tap_is(reads(inside, "/perf-1.map", NULL), 0, "and_the_file_is_there_again");
		if (!geteuid()) {
			char path[64];

			snprintf(path, sizeof(path), "/proc/%d/root/tmp/perf-1.map", inside);
			tap_ok(!chown(path, 12345, 0) && reads(inside, "/perf-1.map", NULL) == -ENOENT,
			       "a_file_of_another_user_is_not_read");
		}
	} else {
		tap_skip(promise, "no namespaces can be made here");
	}
	if (maker > 0) {
		kill(maker, SIGKILL);
		waitpid(maker, NULL, 0);
	}
}

int main(void)
{
	struct kb_symtab symtab = { 0 };

	tap_is(kb_perfmap_parse(&symtab, text, sizeof(text) - 1), 0, "a_map_is_parsed");
	check(&symtab);
	kb_symtab_release(&symtab);
	test_files();
	test_container();
	return tap_done();
}
