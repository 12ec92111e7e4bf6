// SPDX-License-Identifier: MIT
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/stat.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <kbarman/event.h>

#include "base/clock.h"
#include "base/io/whole.h"
#include "record/recorder/proc_objects.h"

#define PATH_BYTES	64U		/* of a file of /proc */
#define UNIX		"unix"
#define ENDS_SHOWN	3U		/* processes that have one end of a pipe */

/* What is looked for, and where. */
struct look {
	struct kb_proc_object *objects;
	unsigned int nr;
	int64_t until;			/* CPU time of this thread */
	uint32_t task;			/* whose descriptors are in */
	int folder;
	struct ends *ends;		/* by object */
};

/* Who has the ends of a pipe: that to read from, and that to write to. */
struct ends {
	uint32_t nr[2], last[2];
	char text[2][128];
};

static bool is_late(const struct look *look)
{
	return kb_clock_ns(CLOCK_THREAD_CPUTIME_ID) >= look->until;
}

static bool read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length;

	if (fd < 0)
		return false;
	length = kb_read_whole(fd, text, size - 1);
	close(fd);
	if (length < 0)
		return false;
	text[length] = '\0';
	return true;
}

/* What the link says; false: it is gone, or longer than a name. */
static bool read_link(int folder, const char *path, char text[KB_OBJECT_NAME])
{
	ssize_t length = readlinkat(folder, path, text, KB_OBJECT_NAME);

	if (length <= 0 || length == KB_OBJECT_NAME)
		return false;
	text[length] = '\0';
	return true;
}

/* Call @take with each descriptor of the task and its link, until that returns true. */
static void each_descriptor(struct look *look, uint32_t task,
			    bool (*take)(const struct look *look, const char *fd, const char *link))
{
	char path[PATH_BYTES], link[KB_OBJECT_NAME];
	const struct dirent *entry;
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/fd", task);
	folder = opendir(path);
	if (!folder)
		return;
	look->task = task;
	look->folder = dirfd(folder);
	while (!is_late(look) && (entry = readdir(folder)))
		if (read_link(look->folder, entry->d_name, link) && take(look, entry->d_name, link))
			break;
	closedir(folder);
}

/* ---- files and devices ---- */

/* The device of the task's mount with that number, MAJOR << 20 | MINOR; 0: it is not there. */
static uint32_t device_of(uint32_t task, unsigned int mount)
{
	unsigned int number, major, minor;
	char path[PATH_BYTES], *line = NULL;
	uint32_t device = 0;
	size_t room = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/mountinfo", task);
	file = fopen(path, "re");
	while (file && !device && getline(&line, &room, file) > 0)
		if (sscanf(line, "%u %*u %u:%u", &number, &major, &minor) == 3 && number == mount)
			device = major << 20 | minor;
	free(line);
	if (file)
		fclose(file);
	return device;
}

static bool is_file(const struct look *look, const char *fd)
{
	char path[PATH_BYTES], text[512];
	unsigned int mount;
	uint64_t inode;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/fdinfo/%s", look->task, fd);
	return read_text(path, text, sizeof(text)) &&
	       sscanf(text, "pos: %*s flags: %*s mnt_id: %u ino: %" SCNu64, &mount, &inode) == 2 &&
	       inode == look->objects->value && device_of(look->task, mount) == look->objects->id;
}

/* This asks the file system, and not a server: devices and what has no place have none. */
static bool is_inode(const struct look *look, const char *fd)
{
	const struct kb_proc_object *object = look->objects;
	struct statx st;

	/* musl has it since 1.2.5 only */
	return !syscall(SYS_statx, look->folder, fd, AT_STATX_DONT_SYNC, STATX_INO, &st) &&
	       st.stx_ino == object->value &&
	       (object->kind == KB_OBJECT_ANON ||
		(st.stx_rdev_major << 20 | st.stx_rdev_minor) == object->id);
}

/* If it has got another name meanwhile, or the descriptor is of another file now, it is not believed. */
static bool take_path(const struct look *look, const char *fd, const char *link)
{
	char again[KB_OBJECT_NAME];
	bool is_device = look->objects->kind == KB_OBJECT_DEVICE;

	if (strncmp(link, is_device ? "/dev/" : "/", is_device ? 5 : 1) != 0 ||
	    !(is_device ? is_inode(look, fd) : is_file(look, fd)) ||
	    !read_link(look->folder, fd, again) || strcmp(link, again) != 0)
		return false;
	memcpy(look->objects->name, again, strlen(again) + 1);
	return true;
}

/* "anon_inode:[eventpoll]", "anon_inode:inotify" */
static bool take_anon(const struct look *look, const char *fd, const char *link)
{
	static const char prefix[] = "anon_inode:";
	const char *kind = link + strlen(prefix);

	if (strtoul(fd, NULL, 10) != look->objects->id)
		return false;
	if (strncmp(link, prefix, strlen(prefix)) == 0 && is_inode(look, fd)) {
		kind += *kind == '[';
		snprintf(look->objects->name, KB_OBJECT_NAME, "%.*s", (int)strcspn(kind, "]"), kind);
	}
	return true;
}

/* ---- sockets ---- */

/* "0100007F", "0000…01000000": words in the order of the machine's bytes. */
static void put_end(char *text, size_t size, const char *hex, unsigned int port)
{
	struct in6_addr address = { 0 };
	char shown[INET6_ADDRSTRLEN];
	unsigned int word;

	for (unsigned int i = 0; i < 4 && sscanf(hex + 8 * i, "%8x", &word) == 1; i++) {
		memcpy(&address.s6_addr[4 * i], &word, sizeof(word));
		if (!hex[8 * i + 8])
			break;
	}
	if (strlen(hex) == 8)
		inet_ntop(AF_INET, &address, shown, sizeof(shown));
	else if (IN6_IS_ADDR_V4MAPPED(&address))
		inet_ntop(AF_INET, &address.s6_addr[12], shown, sizeof(shown));
	else
		inet_ntop(AF_INET6, &address, shown, sizeof(shown));
	snprintf(text, size, strchr(shown, ':') ? "[%s]:%u" : "%s:%u", shown, port);
}

/* A line of net/tcp and its like. Returns the inode; 0: none. */
static uint64_t read_ends(const char *line, const char *table, char name[KB_OBJECT_NAME])
{
	char local[33], remote[33], from[64], to[64];
	unsigned int port, remote_port;
	uint64_t inode;

	if (sscanf(line, " %*[^:]: %32[0-9A-F]:%x %32[0-9A-F]:%x %*x %*s %*s %*s %*s %*s %" SCNu64, local,
		   &port, remote, &remote_port, &inode) != 5)
		return 0;
	put_end(from, sizeof(from), local, port);
	put_end(to, sizeof(to), remote, remote_port);
	snprintf(name, KB_OBJECT_NAME, "%.3s %s%s%s", table, from, remote_port ? " -> " : "",
		 remote_port ? to : "");
	return inode;
}

/* A line of net/unix. */
static uint64_t read_unix(const char *line, char name[KB_OBJECT_NAME])
{
	uint64_t inode;
	int path = 0;

	if (sscanf(line, "%*[^:]: %*x %*x %*x %*x %*x %" SCNu64 "%n", &inode, &path) != 1)
		return 0;
	snprintf(name, KB_OBJECT_NAME, UNIX "%.*s", (int)strcspn(line + path, "\n"), line + path);
	return inode;
}

/* A path may have an end of a line, and look like the line of a socket: of two paths none is believed. */
static void take_socket(const struct look *look, uint64_t inode, const char *name, bool is_unix)
{
	for (unsigned int i = 0; i < look->nr; i++) {
		struct kb_proc_object *object = &look->objects[i];

		if (object->kind != KB_OBJECT_SOCKET || object->value != inode ||
		    (is_unix && *object->name && strncmp(object->name, UNIX, strlen(UNIX)) != 0))
			continue;
		snprintf(object->name, sizeof(object->name), "%s",
			 is_unix && *object->name && strcmp(object->name, name) != 0 ? UNIX : name);
	}
}

static void read_sockets(const struct look *look, uint32_t task, const char *table)
{
	char path[PATH_BYTES], name[KB_OBJECT_NAME], *line = NULL;
	bool is_unix = strcmp(table, UNIX) == 0;
	size_t room = 0;
	uint64_t inode;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/net/%s", task, table);
	file = fopen(path, "re");
	while (file && !is_late(look) && getline(&line, &room, file) > 0) {
		inode = is_unix ? read_unix(line, name) : read_ends(line, table, name);
		if (inode)
			take_socket(look, inode, name, is_unix);
	}
	free(line);
	if (file)
		fclose(file);
}

/* The tables of each network namespace have all of its sockets. */
static void name_sockets(const struct look *look)
{
	static const char *const tables[] = { "tcp", "tcp6", "udp", "udp6", UNIX };
	char path[PATH_BYTES], namespace[KB_OBJECT_NAME], last[KB_OBJECT_NAME] = "";

	for (unsigned int i = 0; i < look->nr; i++) {
		const struct kb_proc_object *object = &look->objects[i];

		snprintf(path, sizeof(path), "/proc/%" PRIu32 "/ns/net", object->task);
		if (object->kind != KB_OBJECT_SOCKET || *object->name ||
		    !read_link(AT_FDCWD, path, namespace) || strcmp(namespace, last) == 0)
			continue;
		memcpy(last, namespace, sizeof(last));
		for (unsigned int k = 0; k < sizeof(tables) / sizeof(*tables); k++)
			read_sockets(look, object->task, tables[k]);
	}
}

/* ---- pipes ---- */

static void add_end(struct ends *ends, bool writes, uint32_t process)
{
	char path[PATH_BYTES], comm[32] = "", *text = ends->text[writes];
	size_t length = strlen(text);

	if (ends->last[writes] == process || ends->nr[writes] > ENDS_SHOWN)
		return;
	ends->last[writes] = process;
	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/comm", process);
	if (ends->nr[writes]++ == ENDS_SHOWN)
		snprintf(text + length, sizeof(ends->text[0]) - length, ", ...");
	else if (read_text(path, comm, sizeof(comm)))
		snprintf(text + length, sizeof(ends->text[0]) - length, "%s%.*s %" PRIu32, length ? ", " : "",
			 (int)strcspn(comm, "\n"), comm, process);
}

/* The rights of a descriptor's link are those that it has. */
static bool take_pipe(const struct look *look, const char *fd, const char *link)
{
	uint64_t inode;
	struct stat st;

	if (sscanf(link, "pipe:[%" SCNu64, &inode) != 1)
		return false;
	for (unsigned int i = 0; i < look->nr; i++) {
		if (look->objects[i].kind != KB_OBJECT_PIPE || look->objects[i].value != inode ||
		    fstatat(look->folder, fd, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		if (st.st_mode & S_IRUSR)
			add_end(&look->ends[i], false, look->task);
		if (st.st_mode & S_IWUSR)
			add_end(&look->ends[i], true, look->task);
	}
	return false;
}

/* Without time to look at all processes, who was not found may be there. */
static void name_pipes(struct look *look, const uint32_t *processes, unsigned int nr)
{
	look->ends = calloc(look->nr, sizeof(*look->ends));
	for (unsigned int i = 0; look->ends && i < nr && !is_late(look); i++)
		each_descriptor(look, processes[i], take_pipe);
	for (unsigned int i = 0; look->ends && i < look->nr; i++) {
		const struct ends *ends = &look->ends[i];

		if (is_late(look) ? ends->nr[0] && ends->nr[1] : ends->nr[0] || ends->nr[1])
			snprintf(look->objects[i].name, KB_OBJECT_NAME, "%s -> %s",
				 ends->nr[1] ? ends->text[1] : "?", ends->nr[0] ? ends->text[0] : "?");
	}
	free(look->ends);
}

bool kb_proc_objects_name(struct kb_proc_object *objects, unsigned int nr, const uint32_t *processes,
			  unsigned int nr_processes, int64_t ns)
{
	int64_t began = kb_clock_ns(CLOCK_THREAD_CPUTIME_ID), until = began + ns;
	struct look look = { .objects = objects, .nr = nr, .until = began + ns / 2 };
	bool pipes = false, is_late_for_sockets;

	/* One reading has all of them. Files are looked for one by one, and many leave no time. */
	name_sockets(&look);
	is_late_for_sockets = is_late(&look);
	look.until = until;
	for (unsigned int i = 0; i < nr; i++) {
		struct look one = { .objects = &objects[i], .nr = 1, .until = until };
		uint8_t kind = objects[i].kind;

		pipes |= kind == KB_OBJECT_PIPE;
		if (kind == KB_OBJECT_FILE || kind == KB_OBJECT_DEVICE || kind == KB_OBJECT_ANON)
			each_descriptor(&one, objects[i].task, kind == KB_OBJECT_ANON ? take_anon : take_path);
	}
	if (pipes)
		name_pipes(&look, processes, nr_processes);
	return !is_late_for_sockets && !is_late(&look);
}
