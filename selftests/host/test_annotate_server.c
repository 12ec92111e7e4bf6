// SPDX-License-Identifier: MIT
/*
 * The listener for Annotate clients, as gatord answers them and as hostile clients try it:
 * in a network namespace of its own, where nobody else listens.
 */
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "record/device/annotate_server.h"

#include "../lib/tap.h"

#define SETUP	"ANNOTATE 5\n\1\0\0\0\1\0\0\0\0"
#define HELLO	"\1\7\0\0\0\1\0hello"
#define MANY	700

static struct annotate_server *server;
static unsigned int messages, dropped;
static const char *last_drop = "";

static int on_message(void *context, const struct annotate_client *client,
		      const struct kb_annotate_message *m, const uint8_t *bytes, size_t length)
{
	(void)context, (void)client, (void)m, (void)bytes, (void)length;
	messages++;
	return 0;
}

static void on_bad(void *context, const struct annotate_client *client, const char *why)
{
	static char text[256];

	(void)context, (void)client;
	dropped++;
	snprintf(text, sizeof(text), "%s", why);
	last_drop = text;
}

static bool own_network(void)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	bool good;
	int fd;

	if (unshare(geteuid() ? CLONE_NEWUSER | CLONE_NEWNET : CLONE_NEWNET))
		return false;
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	good = !ioctl(fd, SIOCSIFFLAGS, &lo);
	close(fd);
	return good;
}

static void start(void)
{
	struct annotate_sink sink = { on_message, on_bad, NULL };
	struct kb_error err;

	annotate_server_close(server);
	messages = dropped = 0;
	if (annotate_server_open(&server, &sink, &err)) {
		printf("Bail out! %s\n", err.text);
		exit(1);
	}
}

static int connect_to(const struct sockaddr *address, socklen_t length)
{
	struct timeval patience = { .tv_sec = 30 };
	int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (fd < 0 || connect(fd, address, length)) {
		close(fd);
		return -1;
	}
	return fd;
}

static int connect_unix(const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	memcpy(address.sun_path + 1, name, strlen(name));
	return connect_to((struct sockaddr *)&address,
			  (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name)));
}

static int connect_tcp(uint16_t port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	return connect_to((struct sockaddr *)&address, sizeof(address));
}

static void serve(void)
{
	for (int i = 0; i < 100; i++)
		annotate_server_serve(server);
}

/* All of it, while the other side reads. */
static bool put(int fd, const void *data, size_t size)
{
	const char *at = data;

	while (size) {
		ssize_t n = send(fd, at, size, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno != EAGAIN)
			return false;
		if (n > 0) {
			at += n;
			size -= (size_t)n;
		}
		annotate_server_serve(server);
	}
	return true;
}

/* A client on which the server has not hung up says hello, and that arrives. */
static bool is_heard(int fd)
{
	unsigned int before = messages;
	bool sent = put(fd, SETUP, sizeof(SETUP) - 1) && put(fd, HELLO, sizeof(HELLO) - 1);

	serve();
	return sent && messages == before + 1;
}

static bool hung_up(int fd)
{
	char byte;
	ssize_t n = recv(fd, &byte, 1, 0);

	return n == 0 || (n < 0 && errno == ECONNRESET);
}

/* ---- as gatord ---- */

static void check_begin(void)
{
	int parents[3], data;
	char bytes[8];
	bool good;

	start();
	parents[0] = connect_unix("streamline-annotate-parent");
	parents[1] = connect_tcp(8082);
	serve();
	/* one that is still in the queue */
	parents[2] = connect_unix("streamline-annotate-parent");
	data = connect_unix("streamline-annotate");
	serve();
	annotate_server_begin(server);
	good = true;
	for (int i = 0; i < 3; i++)
		good &= recv(parents[i], bytes, sizeof(bytes), 0) == 1 && !bytes[0];
	tap_ok(good, "who_asked_is_told_of_the_beginning_with_a_zero");
	good = recv(data, bytes, sizeof(bytes), MSG_DONTWAIT) < 0 && errno == EAGAIN;
	tap_ok(good, "a_stream_is_told_nothing");
	tap_ok(is_heard(data), "and_goes_on");

	annotate_server_finish(server);
	good = hung_up(data);
	for (int i = 0; i < 3; i++)
		good &= recv(parents[i], bytes, sizeof(bytes), 0) == 1 && !bytes[0] &&
			recv(parents[i], bytes, sizeof(bytes), 0) == 0;
	tap_ok(good, "and_of_the_end_when_its_streams_are_closed");
	for (int i = 0; i < 3; i++)
		close(parents[i]);
	close(data);
}

/* Arm's client blocks in send(), and its program with it, while somebody holds the socket. */
static void check_finish(void)
{
	int fd;

	start();
	fd = connect_unix("streamline-annotate");
	if (send(fd, SETUP HELLO HELLO, sizeof(SETUP HELLO HELLO) - 1, 0) < 0)
		exit(1);
	annotate_server_finish(server);
	tap_is(messages, 2, "what_was_sent_before_the_end_is_taken");
	tap_ok(hung_up(fd), "a_client_does_not_wait_for_who_does_not_read_any_more");
	close(fd);
	fd = connect_unix("streamline-annotate");
	tap_ok(fd < 0 && errno == ECONNREFUSED, "nor_does_one_that_comes_later");
	if (fd >= 0)
		close(fd);
}

/* ---- hostile clients ---- */

static void check_many(void)
{
	static int fds[MANY];
	unsigned int open = 0;
	int tcp;

	start();
	for (int i = 0; i < MANY; i++) {
		fds[i] = connect_unix(i % 2 ? "streamline-annotate" : "streamline-annotate-parent");
		annotate_server_serve(server);
	}
	serve();
	for (int i = 0; i < MANY; i++) {
		char byte;

		open += recv(fds[i], &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
	}
	tap_is(open, 256, "one_user_has_half_of_the_connections");
	tap_is(dropped, MANY - 256, "who_is_hung_up_on_is_told_of");
	tap_ok(strstr(last_drop, "connections"), "with_the_reason");
	tcp = connect_tcp(8083);
	serve();
	tap_ok(is_heard(tcp), "another_one_is_heard_all_the_same");
	close(tcp);
	for (int i = 0; i < MANY; i++)
		close(fds[i]);
	serve();
	fds[0] = connect_unix("streamline-annotate");
	serve();
	tap_ok(is_heard(fds[0]), "who_has_gone_leaves_room");
	close(fds[0]);
}

/* The recorder's other files may leave none to accept with. */
static void check_no_descriptor(void)
{
	struct pollfd more = { .events = POLLIN };
	struct rlimit usual, few;
	int fillers[256], nr = 0, fd;

	start();
	fd = connect_unix("streamline-annotate");
	getrlimit(RLIMIT_NOFILE, &usual);
	few = (struct rlimit) { .rlim_cur = 256, .rlim_max = usual.rlim_max };
	setrlimit(RLIMIT_NOFILE, &few);
	while (nr < 256 && (fillers[nr] = dup(0)) >= 0)
		nr++;
	serve();
	more.fd = annotate_server_fd(server);
	tap_is(poll(&more, 1, 0), 0, "without_descriptors_nothing_is_left_to_serve_for_ever");
	tap_ok(recv(fd, &more, 1, MSG_DONTWAIT) == 0, "who_can_not_be_accepted_is_hung_up_on");
	tap_ok(dropped == 1 && strstr(last_drop, "descriptor"), "and_told_of_with_the_reason");
	while (nr)
		close(fillers[--nr]);
	setrlimit(RLIMIT_NOFILE, &usual);
	close(fd);
	fd = connect_unix("streamline-annotate");
	serve();
	tap_ok(is_heard(fd), "with_descriptors_again_the_next_one_is_heard");
	close(fd);
}

/* @fd: a picture of nearly 8 MiB, but for its last byte. */
static bool put_half_a_picture(int fd)
{
	static const char head[] = "\5\0\0\x80\0\1t";	/* the NUL is of the text */
	static char rest[(8 << 20) - 3 - 1];

	return put(fd, SETUP, sizeof(SETUP) - 1) && put(fd, head, sizeof(head)) &&
	       put(fd, rest, sizeof(rest));
}

static void check_pictures(void)
{
	int fds[16], tcp, taken = 0, small;

	start();
	for (int i = 0; i < 16; i++) {
		fds[i] = connect_unix("streamline-annotate");
		taken += put_half_a_picture(fds[i]) && !dropped;
	}
	tap_ok(taken >= 2 && taken < 16, "halves_of_pictures_are_kept_up_to_a_bound");
	tap_ok(dropped >= 1 && strstr(last_drop, "unfinished messages"), "beyond_it_a_client_is_dropped");
	small = connect_unix("streamline-annotate");
	serve();
	tap_ok(is_heard(small), "who_sends_no_pictures_is_heard_all_the_same");
	tcp = connect_tcp(8083);
	serve();
	tap_ok(put_half_a_picture(tcp) && put(tcp, "", 1) &&
	       put(tcp, HELLO, sizeof(HELLO) - 1) && (serve(), messages == 3),
	       "another_users_picture_arrives");
	close(tcp);
	for (int i = 0; i < 16; i++)
		close(fds[i]);
	close(small);
}

/* Room for a picture is given back when it has come. */
static void check_room(void)
{
	int fds[16];
	bool good = true;

	start();
	for (int i = 0; i < 16; i++) {
		fds[i] = connect_unix("streamline-annotate");
		good &= put_half_a_picture(fds[i]) && put(fds[i], "", 1) &&
			put(fds[i], HELLO, sizeof(HELLO) - 1);
		serve();
	}
	tap_is(dropped, 0, "threads_that_sent_a_picture_each_are_not_dropped");
	tap_is(messages, good ? 32 : -1, "and_all_of_them_arrive");
	for (int i = 0; i < 16; i++)
		close(fds[i]);
}

static void check_slow(void)
{
	static const char stream[] = SETUP HELLO HELLO;
	int slow, quick;

	start();
	slow = connect_unix("streamline-annotate");
	quick = connect_unix("streamline-annotate");
	serve();
	for (size_t i = 0; i < sizeof(stream) - 1; i++) {
		if (i == sizeof(SETUP) + 3)
			tap_ok(is_heard(quick), "nobody_waits_for_a_slow_writer");
		put(slow, stream + i, 1);
		serve();
	}
	tap_is(messages, 3, "a_stream_that_comes_byte_by_byte_is_whole");
	close(slow);
	close(quick);
}

static void check_versions(void)
{
	static const char *const setups[] = { "ANNOTATE 1\n\1\0\0\0\1\0\0\0",
					      "ANNOTATE 2\n\1\0\0\0\1\0\0\0",
					      "ANNOTATE 3\n\1\0\0\0\1\0\0\0\0",
					      "ANNOTATE 4\n\1\0\0\0\1\0\0\0\0", SETUP };
	char name[64];

	for (int i = 0; i < 5; i++) {
		int fd;

		start();
		fd = connect_unix("streamline-annotate");
		serve();
		put(fd, setups[i], i < 2 ? 19 : 20);
		put(fd, HELLO HELLO, 2 * sizeof(HELLO) - 2);
		serve();
		snprintf(name, sizeof(name), "a_client_of_version_%d_is_heard", i + 1);
		tap_is(messages, 2, name);
		close(fd);
	}
	for (int digit = 0; digit < 256; digit++) {
		char setup[] = SETUP;
		int fd;

		if (digit >= '1' && digit <= '5')
			continue;
		setup[9] = (char)digit;
		start();
		fd = connect_unix("streamline-annotate");
		serve();
		put(fd, setup, sizeof(setup) - 1);
		put(fd, HELLO, sizeof(HELLO) - 1);
		serve();
		if (messages || dropped != 1) {
			tap_note("digit %d: %u messages, %u dropped", digit, messages, dropped);
			break;
		}
		close(fd);
		if (digit == 255)
			tap_ok(true, "any_other_is_dropped");
	}
}

int main(void)
{
	if (!own_network()) {
		printf("1..0 # SKIP no network namespace of its own: %s\n", strerror(errno));
		return 0;
	}
	check_begin();
	check_finish();
	check_versions();
	check_no_descriptor();
	check_many();
	check_pictures();
	check_room();
	check_slow();
	annotate_server_close(server);
	return tap_done();
}
