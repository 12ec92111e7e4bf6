// SPDX-License-Identifier: MIT
/* Names of what tasks wait for, of real descriptors of this program. */
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "../../user/lib/record/recorder/proc_objects.c"
#include "../lib/tap.h"

#define LONG	(60 * KB_NS_PER_S)	/* of CPU time: as much as it takes */

static char folder[] = "/tmp/kbarman-objects-XXXXXX";

static const char *at(const char *name)
{
	static char path[sizeof(folder) + 64];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

/* What the module would say of @fd, of which this process is the task that waits. */
static struct kb_proc_object object_of(uint8_t kind, int fd)
{
	struct kb_proc_object object = { .kind = kind, .id = (uint32_t)fd, .task = (uint32_t)getpid() };
	char path[PATH_BYTES], text[512];
	unsigned int mount = 0;
	struct stat st;

	fstat(fd, &st);
	object.value = st.st_ino;
	if (kind == KB_OBJECT_DEVICE)
		object.id = major(st.st_rdev) << 20 | minor(st.st_rdev);
	if (kind != KB_OBJECT_FILE)
		return object;
	/* Of a layered file system stat(2) may say another device. */
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	read_text(path, text, sizeof(text));
	sscanf(text, "pos: %*s flags: %*s mnt_id: %u", &mount);
	object.id = device_of(object.task, mount);
	return object;
}

static bool is_named(struct kb_proc_object object, const char *name, const char *promise)
{
	const uint32_t self = (uint32_t)getpid();

	kb_proc_objects_name(&object, 1, &self, 1, LONG);
	return tap_is_string(object.name, name, promise);
}

static void files(void)
{
	char path[sizeof(folder) + 64], removed[sizeof(path) + 16], odd[sizeof(path)];
	struct kb_proc_object object;
	struct stat st;
	int fd;

	fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	fstat(fd, &st);
	object = object_of(KB_OBJECT_FILE, fd);
	tap_is(object.id, major(st.st_dev) << 20 | minor(st.st_dev), "the_device_of_a_mount_is_that_of_its_files");
	close(fd);

	snprintf(odd, sizeof(odd), "%s", at("a\033[1m\n\xff -> b"));
	fd = open(odd, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	object = object_of(KB_OBJECT_FILE, fd);
	is_named(object, odd, "a_file_has_its_path_whatever_is_in_it");
	object.value++;
	is_named(object, "", "another_inode_is_not_believed");
	object.value--;
	object.id++;
	is_named(object, "", "nor_is_another_device");
	object.id--;
	snprintf(path, sizeof(path), "%s", at("new"));
	rename(odd, path);
	is_named(object, path, "a_renamed_file_has_its_new_path");
	unlink(path);
	snprintf(removed, sizeof(removed), "%s (deleted)", path);
	is_named(object, removed, "a_removed_one_says_so");
	close(fd);
	is_named(object, "", "a_closed_one_has_no_name");
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	object = object_of(KB_OBJECT_FILE, fd);
	tap_ok(!kb_proc_objects_name(&object, 1, NULL, 0, 0) && !*object.name, "without_time_nothing_is_looked_up");
	object.task = 0x7ffffff0;
	is_named(object, "", "a_task_that_has_ended_is_not_asked");
	unlink(path);
	close(fd);
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	is_named(object_of(KB_OBJECT_FILE, fd), folder, "a_folder_is_a_file");
	close(fd);
}

static void devices_and_others(void)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct kb_proc_object object = object_of(KB_OBJECT_DEVICE, fd);

	is_named(object, "/dev/null", "a_device_has_its_path");
	object.id++;
	is_named(object, "", "another_device_with_that_inode_is_not_believed");
	close(fd);

	fd = epoll_create1(EPOLL_CLOEXEC);
	is_named(object_of(KB_OBJECT_ANON, fd), "eventpoll", "epoll_has_its_kind");
	close(fd);
	fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	is_named(object_of(KB_OBJECT_ANON, fd), "timerfd", "so_has_a_timer");
	close(fd);
	fd = eventfd(0, EFD_CLOEXEC);
	object = object_of(KB_OBJECT_ANON, fd);
	is_named(object, "eventfd", "and_an_event");
	object.value++;
	is_named(object, "", "not_with_another_inode");
	object.value--;
	dup2(STDIN_FILENO, fd);
	is_named(object, "", "nor_if_the_descriptor_is_something_else_now");
	close(fd);
}

static int bound(int family, int type, struct sockaddr *address, socklen_t *length)
{
	int fd = socket(family, type | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, address, *length) || (type == SOCK_STREAM && listen(fd, 1)) ||
	    getsockname(fd, address, length)) {
		close(fd);
		return -1;
	}
	return fd;
}

static void internet(void)
{
	struct sockaddr_in at4 = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) }, mine;
	struct sockaddr_in6 at6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	socklen_t length = sizeof(at4);
	int server = bound(AF_INET, SOCK_STREAM, (struct sockaddr *)&at4, &length), client, fd;
	char name[128];

	client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (connect(client, (struct sockaddr *)&at4, sizeof(at4)))
		tap_note("no connection");
	length = sizeof(mine);
	getsockname(client, (struct sockaddr *)&mine, &length);
	snprintf(name, sizeof(name), "tcp 127.0.0.1:%u", ntohs(at4.sin_port));
	is_named(object_of(KB_OBJECT_SOCKET, server), name, "a_socket_that_listens_has_one_end");
	snprintf(name, sizeof(name), "tcp 127.0.0.1:%u -> 127.0.0.1:%u", ntohs(mine.sin_port), ntohs(at4.sin_port));
	is_named(object_of(KB_OBJECT_SOCKET, client), name, "a_connection_has_two");
	fd = accept4(server, NULL, NULL, SOCK_CLOEXEC);
	snprintf(name, sizeof(name), "tcp 127.0.0.1:%u -> 127.0.0.1:%u", ntohs(at4.sin_port), ntohs(mine.sin_port));
	is_named(object_of(KB_OBJECT_SOCKET, fd), name, "its_own_is_the_first");
	close(fd);
	close(client);
	close(server);

	length = sizeof(at6);
	fd = bound(AF_INET6, SOCK_DGRAM, (struct sockaddr *)&at6, &length);
	if (fd >= 0) {
		snprintf(name, sizeof(name), "udp [::1]:%u", ntohs(at6.sin6_port));
		is_named(object_of(KB_OBJECT_SOCKET, fd), name, "addresses_of_ipv6_are_in_brackets");
		close(fd);
	}
}

/* Files of that number have no descriptor, so each takes a look at all of them. */
static void a_socket_beside(unsigned int files)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t length = sizeof(address);
	int fd = bound(AF_INET, SOCK_STREAM, (struct sockaddr *)&address, &length);
	struct kb_proc_object *objects = calloc(files + 1, sizeof(*objects));
	struct kb_proc_object *last = &objects[files];
	const uint32_t self = (uint32_t)getpid();
	int64_t took = kb_clock_ns(CLOCK_THREAD_CPUTIME_ID);

	*last = object_of(KB_OBJECT_SOCKET, fd);
	kb_proc_objects_name(last, 1, &self, 1, LONG);
	took = kb_clock_ns(CLOCK_THREAD_CPUTIME_ID) - took;
	last->name[0] = '\0';
	for (unsigned int i = 0; i < files; i++)
		objects[i] = (struct kb_proc_object){ .kind = KB_OBJECT_FILE, .task = self };
	kb_proc_objects_name(objects, files + 1, &self, 1, 20 * took);
	tap_ok(*last->name, "files_leave_time_for_sockets");
	free(objects);
	close(fd);
}

static int bound_to(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	socklen_t length = sizeof(address);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	return bound(AF_UNIX, SOCK_STREAM, (struct sockaddr *)&address, &length);
}

static void unix_sockets(void)
{
	char name[sizeof(folder) + 80], path[sizeof(folder) + 64];
	struct kb_proc_object object;
	int pair[2], fd, other;

	snprintf(path, sizeof(path), "%s", at("socket"));
	fd = bound_to(path);
	snprintf(name, sizeof(name), "unix %s", path);
	object = object_of(KB_OBJECT_SOCKET, fd);
	is_named(object, name, "a_unix_socket_has_its_path");
	snprintf(name, sizeof(name), "%s", at(""));
	if (!chdir(folder)) {
		char forged[100];

		snprintf(forged, sizeof(forged), "x\n0: 00000002 00000000 00010000 0001 01 %" PRIu64 " lie", object.value);
		other = bound_to(forged);
		is_named(object, "unix", "of_two_paths_none_is_believed");
		close(other);
		unlink(forged);
	}
	close(fd);
	unlink(path);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return;
	is_named(object_of(KB_OBJECT_SOCKET, pair[0]), "unix", "a_pair_has_no_path");
	object = object_of(KB_OBJECT_SOCKET, pair[0]);
	close(pair[0]);
	close(pair[1]);
	is_named(object, "", "a_closed_socket_has_no_name");
}

/* A process that has nothing but one end of @pipe. */
static uint32_t hold(const int pipe[2], int end)
{
	pid_t child = fork();

	if (child)
		return (uint32_t)child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(pipe[!end]);
	for (;;)
		pause();
}

/* Until the child has closed the other end. */
static bool holds_one(uint32_t process, const int pipe[2], int end)
{
	char path[PATH_BYTES];

	snprintf(path, sizeof(path), "/proc/%u/fd/%d", process, pipe[!end]);
	while (!access(path, F_OK))
		usleep(1000);
	return true;
}

static void pipes(void)
{
	uint32_t processes[6] = { (uint32_t)getpid() };
	struct kb_proc_object object;
	char name[256];
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return;
	object = object_of(KB_OBJECT_PIPE, ends[0]);
	snprintf(name, sizeof(name), "test_proc_objec %u -> test_proc_objec %u", processes[0], processes[0]);
	is_named(object, name, "a_pipe_has_those_who_write_and_read");
	processes[1] = hold(ends, 1);
	holds_one(processes[1], ends, 1);
	close(ends[1]);
	snprintf(name, sizeof(name), "test_proc_objec %u -> test_proc_objec %u", processes[1], processes[0]);
	kb_proc_objects_name(&object, 1, processes, 2, LONG);
	tap_is_string(object.name, name, "each_end_may_be_of_another_process");
	object.name[0] = '\0';
	snprintf(name, sizeof(name), "? -> test_proc_objec %u", processes[0]);
	is_named(object, name, "who_is_not_found_is_not_known");
	for (int i = 2; i < 6; i++) {
		processes[i] = hold(ends, 0);
		while (kill((pid_t)processes[i], 0))
			usleep(1000);
	}
	kb_proc_objects_name(&object, 1, processes, 6, LONG);
	snprintf(name, sizeof(name), "test_proc_objec %u -> test_proc_objec %u, test_proc_objec %u, test_proc_objec %u, ...",
		 processes[1], processes[0], processes[2], processes[3]);
	tap_is_string(object.name, name, "of_many_the_first_are_shown");
	object.name[0] = '\0';
	object.value++;
	kb_proc_objects_name(&object, 1, processes, 6, LONG);
	tap_is_string(object.name, "", "another_pipe_has_no_name");
	close(ends[0]);
	for (int i = 1; i < 6; i++) {
		kill((pid_t)processes[i], SIGKILL);
		waitpid((pid_t)processes[i], NULL, 0);
	}
}

int main(void)
{
	if (!mkdtemp(folder))
		return 1;
	files();
	devices_and_others();
	internet();
	a_socket_beside(10000);
	unix_sockets();
	pipes();
	rmdir(folder);
	return tap_done();
}
