// SPDX-License-Identifier: MIT
/*
 * See annotate_server.h. One epoll serves four listeners and all clients. There is a Unix and a
 * TCP listener for the stream, and a Unix and a TCP listener for the connection on which
 * clients are told that the capture begins or ends.
 *
 * The server collects the bytes of a client until a message is complete. The client's setup
 * stays in front of the message in the buffer, so setup and message together are a stream that
 * the strict reader of Annotate streams accepts.
 */
#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "format/annotate/put.h"
#include "record/device/annotate_server.h"

#define VERSION_AT	9			/* offset of the version digit in a setup */
#define VERSION_BYTES	11			/* "ANNOTATE 3\n" */
#define START		5			/* marker and length of a message */
#define PORT		8083
#define PARENT_PORT	8082
#define PARENT_SOCKET	KB_ANNOTATE_SOCKET "-parent"
#define CLIENTS_MAX	512
#define USER_CLIENTS_MAX (CLIENTS_MAX / 2)	/* of one user; of all TCP clients */
#define IMAGE_MAX	(8U << 20)		/* longest visual message, bytes */
#define READ_BYTES	32768
#define SMALL		((size_t)3 * READ_BYTES) /* buffer of each client; more is for images */
#define LARGE_MAX	((size_t)64 << 20)	/* memory above SMALL, of all clients together */
#define USER_LARGE_MAX	(LARGE_MAX / 2)
#define TURNS		128			/* reads from one client before the others get a
						 * turn */
#define BACKLOG		64			/* also the number of clients accepted in a turn */

enum kind { LISTENER, PARENT_LISTENER, CLIENT, PARENT };

#define TCP_USER ((uid_t)-1)

/* A listener or a client: anything in the epoll. */
struct peer {
	enum kind kind;
	int fd;
	struct peer *next;		/* in the server's list, which has no listeners */
	struct annotate_client client;	/* CLIENT: setup.version is 0 until the setup has come */
	uint8_t *buffer;		/* the setup and the bytes received behind it */
	uid_t user;			/* TCP_USER: not known */
	size_t used, room, setup;	/* bytes; the setup is in front of the buffer */
};

struct annotate_server {
	int epoll;
	struct annotate_sink sink;
	struct peer listeners[4];
	struct peer *peers;
	unsigned int nr_peers, number;
	int spare;			/* a descriptor to hang up with where there is no other */
};

/* ---- peers ---- */

static void close_peer(struct annotate_server *server, struct peer *peer)
{
	struct peer **link = &server->peers;

	while (*link != peer)
		link = &(*link)->next;
	*link = peer->next;
	server->nr_peers--;
	close(peer->fd);
	free(peer->buffer);
	free(peer);
}

static int watch(struct annotate_server *server, struct peer *peer)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = peer };

	return epoll_ctl(server->epoll, EPOLL_CTL_ADD, peer->fd, &event) ? -errno : 0;
}

/* What one user takes of the limited resources. */
struct share {
	unsigned int peers;
	size_t large;
};

static struct share share_of(const struct annotate_server *server, uid_t user)
{
	struct share share = { 0 };

	for (const struct peer *peer = server->peers; peer; peer = peer->next) {
		if (peer->user != user)
			continue;
		share.peers++;
		share.large += peer->room > SMALL ? peer->room - SMALL : 0;
	}
	return share;
}

/* Accept one more client, or close @fd if there is no place for it. */
static void take_in(struct annotate_server *server, int fd, enum kind kind)
{
	struct annotate_client client = { .number = server->number++ };
	socklen_t length = sizeof(struct ucred);
	struct ucred who = { .uid = TCP_USER };
	struct peer *peer = NULL;

	if (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &length) && who.pid > 0)
		client.pid = (uint32_t)who.pid;
	if (server->nr_peers < CLIENTS_MAX &&
	    share_of(server, who.uid).peers < USER_CLIENTS_MAX)
		peer = calloc(1, sizeof(*peer));
	if (!peer) {
		close(fd);
		if (server->sink.bad)
			server->sink.bad(server->sink.context, &client,
					 "there are too many connections");
		return;
	}
	peer->kind = kind == LISTENER ? CLIENT : PARENT;
	peer->fd = fd;
	peer->user = who.uid;
	peer->client = client;
	peer->next = server->peers;
	server->peers = peer;
	server->nr_peers++;
	if (watch(server, peer))
		close_peer(server, peer);
}

static int accept_one(const struct peer *listener)
{
	/* cppcheck-suppress nullPointer ; the client's address is not needed */
	return accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

static int spare_descriptor(void)
{
	return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

/*
 * No descriptor is left, so a waiting client would wait for ever, and poll() would report the
 * listener for ever. Hang up on one client. False if this fails, too.
 */
static bool turn_away(struct annotate_server *server, const struct peer *listener)
{
	struct annotate_client client = { .number = server->number };
	int fd;

	if (server->spare < 0)
		server->spare = spare_descriptor();
	if (server->spare < 0)
		return false;
	close(server->spare);
	fd = accept_one(listener);
	if (fd >= 0)
		close(fd);
	server->spare = spare_descriptor();
	if (fd < 0)
		return false;
	server->number++;
	if (server->sink.bad)
		server->sink.bad(server->sink.context, &client, "no file descriptor is left");
	return true;
}

static void accept_all(struct annotate_server *server, struct peer *listener)
{
	/* A client that connects again and again must not keep the others waiting. */
	for (int turn = 0; turn <= BACKLOG; turn++) {
		int fd = accept_one(listener);

		if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
			if (!turn_away(server, listener))
				return;
			continue;
		}
		if (fd < 0 && errno != EINTR && errno != ECONNABORTED)
			return;
		if (fd >= 0)
			take_in(server, fd, listener->kind);
	}
}

/* ---- messages ---- */

static uint32_t load32(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, 4);
	return le32toh(value);
}

/* Length in bytes of the message at @at, of which START bytes are there; 0: too long. */
static size_t message_bytes(const uint8_t *at)
{
	uint32_t body = load32(at + 1);

	return body > (*at == KB_ANNOTATE_VISUAL ? IMAGE_MAX : KB_ANNOTATE_MAX_BODY) ?
		       0 : START + (size_t)body;
}

/* Decode the setup and one message behind it as a stream. */
static int decode(struct annotate_server *server, struct peer *peer, size_t length,
		  struct kb_error *err)
{
	struct kb_annotate_message message;
	struct kb_annotate_reader *reader;
	int ret;

	ret = kb_annotate_open_memory(&reader, peer->buffer, peer->setup + length, err);
	if (ret)
		return ret;
	ret = kb_annotate_next(reader, &message, err);
	if (ret == 1) {
		if (message.type == KB_ANNOTATE_VISUAL)
			message.visual.image = peer->buffer + peer->setup + length -
					       message.visual.image_bytes;
		ret = server->sink.message(server->sink.context, &peer->client, &message,
					   peer->buffer + peer->setup, length);
	}
	kb_annotate_close(reader);
	return ret;
}

size_t annotate_client_setup(const struct annotate_client *client,
			     uint8_t setup[KB_ANNOTATE_SETUP_BYTES])
{
	return (size_t)(kb_annotate_put_setup(setup, &client->setup) - setup);
}

/* 1: the setup is complete; 0: it is not yet. */
static int take_setup(struct peer *peer, struct kb_error *err)
{
	struct kb_annotate_reader *reader;
	int ret;

	if (peer->used < VERSION_BYTES)
		return 0;
	/* The reader refuses a setup whose version is not a digit. */
	peer->setup = kb_annotate_setup_bytes(peer->buffer[VERSION_AT] - '0');
	if (peer->used < peer->setup)
		return 0;
	ret = kb_annotate_open_memory(&reader, peer->buffer, peer->setup, err);
	if (ret)
		return ret < 0 ? ret : -EBADMSG;
	peer->client.setup = *kb_annotate_setup(reader);
	kb_annotate_close(reader);
	return 1;
}

/*
 * Decode all complete messages. Negative: drop the client because of @err; positive: the sink's
 * result.
 */
static int take_messages(struct annotate_server *server, struct peer *peer, struct kb_error *err)
{
	size_t length;
	int ret;

	if (!peer->client.setup.version) {
		ret = take_setup(peer, err);
		if (ret <= 0)
			return ret;
	}
	for (size_t at = peer->setup;; at += length) {
		size_t left = peer->used - at;

		length = left >= START ? message_bytes(peer->buffer + at) : START + 1;
		if (!length)
			return kb_error_set(err, -EMSGSIZE, KB_NO_OFFSET,
					    "a message is longer than this tool accepts");
		if (length > left) {
			memmove(peer->buffer + peer->setup, peer->buffer + at, left);
			peer->used = peer->setup + left;
			return 0;
		}
		/* The message is decoded directly behind the setup. */
		if (at != peer->setup)
			memmove(peer->buffer + peer->setup, peer->buffer + at, length);
		ret = decode(server, peer, length, err);
		if (ret)
			return ret;
	}
}

/* Whether @peer's buffer may have @room bytes, given the buffers of the others. */
static bool may_have(const struct annotate_server *server, const struct peer *peer, size_t room)
{
	size_t all = 0;

	if (room <= SMALL)
		return true;
	room -= SMALL + (peer->room > SMALL ? peer->room - SMALL : 0);
	for (const struct peer *other = server->peers; other; other = other->next)
		all += other->room > SMALL ? other->room - SMALL : 0;
	return all + room <= LARGE_MAX && share_of(server, peer->user).large + room <= USER_LARGE_MAX;
}

static bool resize(struct peer *peer, size_t room)
{
	uint8_t *buffer = realloc(peer->buffer, room);

	if (!buffer)
		return false;
	peer->buffer = buffer;
	peer->room = room;
	return true;
}

static bool make_room(struct annotate_server *server, struct peer *peer)
{
	size_t room = peer->used + READ_BYTES;

	/* The image is complete: others may need the room. */
	if (peer->room > SMALL && room <= SMALL)
		return resize(peer, SMALL);
	if (room <= peer->room)
		return true;
	if (room > SMALL)
		room += room / 2;
	else
		room = room > SMALL / 2 ? SMALL : SMALL / 2;
	return may_have(server, peer, room) && resize(peer, room);
}

static int read_client(struct annotate_server *server, struct peer *peer)
{
	struct kb_error err = { .text = "the clients of its user sent more unfinished messages "
					"than fit into memory" };

	for (int turn = 0; turn < TURNS; turn++) {
		ssize_t n = 0;
		int ret = -ENOMEM;

		if (make_room(server, peer)) {
			n = recv(peer->fd, peer->buffer + peer->used, READ_BYTES, 0);
			if (n < 0 && errno == EINTR)
				continue;
			if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
				return 0;
			if (n <= 0) {
				close_peer(server, peer);
				return 0;
			}
			peer->used += (size_t)n;
			ret = take_messages(server, peer, &err);
		}
		if (ret < 0 && server->sink.bad)
			server->sink.bad(server->sink.context, &peer->client, kb_error_text(&err));
		if (ret < 0)
			close_peer(server, peer);
		if (ret)
			return ret < 0 ? 0 : ret;
	}
	return 0;
}

/* Bytes on a parent connection are ignored. The server only notes that it is closed. */
static void read_parent(struct annotate_server *server, struct peer *peer)
{
	char bytes[256];
	ssize_t n = recv(peer->fd, bytes, sizeof(bytes), 0);

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		close_peer(server, peer);
}

static int serve(struct annotate_server *server, struct peer *peer)
{
	switch (peer->kind) {
	case LISTENER:
	case PARENT_LISTENER:
		accept_all(server, peer);
		return 0;
	case PARENT:
		read_parent(server, peer);
		return 0;
	case CLIENT:
		return read_client(server, peer);
	}
	return 0;
}

int annotate_server_serve(struct annotate_server *server)
{
	struct epoll_event events[32];
	int n = epoll_wait(server->epoll, events, 32, 0), ret = 0;

	/* Serving one peer never closes another one. */
	for (int i = 0; i < n && !ret; i++)
		ret = serve(server, events[i].data.ptr);
	return ret;
}

static void tell_parents(struct annotate_server *server)
{
	struct peer *peer, *next;

	for (peer = server->peers; peer; peer = next) {
		next = peer->next;
		if (peer->kind == PARENT &&
		    send(peer->fd, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			close_peer(server, peer);
	}
}

void annotate_server_begin(struct annotate_server *server)
{
	for (unsigned int i = 0; i < 4; i++) {
		if (server->listeners[i].kind == PARENT_LISTENER)
			accept_all(server, &server->listeners[i]);
	}
	tell_parents(server);
}

static void close_listeners(struct annotate_server *server)
{
	for (unsigned int i = 0; i < 4; i++) {
		if (server->listeners[i].fd >= 0)
			close(server->listeners[i].fd);
		server->listeners[i].fd = -1;
	}
}

static void close_peers(struct annotate_server *server, enum kind kind)
{
	struct peer *peer, *next;

	for (peer = server->peers; peer; peer = next) {
		next = peer->next;
		if (peer->kind == kind)
			close_peer(server, peer);
	}
}

int annotate_server_finish(struct annotate_server *server)
{
	struct peer *peer, *next;
	int ret = 0;

	for (unsigned int i = 0; i < 4; i++)
		accept_all(server, &server->listeners[i]);
	for (peer = server->peers; peer && !ret; peer = next) {
		next = peer->next;
		if (peer->kind == CLIENT)
			ret = read_client(server, peer);
	}
	/* A client that is told must find no listener, and its other connections closed. */
	close_listeners(server);
	close_peers(server, CLIENT);
	tell_parents(server);
	close_peers(server, PARENT);
	return ret;
}

/* ---- listeners ---- */

/* Returns a descriptor, or -errno. */
static int bound_socket(const struct sockaddr *address, socklen_t length)
{
	int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int on = 1, ret;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (!bind(fd, address, length) && !listen(fd, BACKLOG))
		return fd;
	ret = -errno;
	close(fd);
	return ret;
}

static int listen_at(struct annotate_server *server, struct peer *listener, enum kind kind,
		     const struct sockaddr *address, socklen_t length)
{
	int fd = bound_socket(address, length);

	if (fd < 0)
		return fd;
	listener->kind = kind;
	listener->fd = fd;
	return watch(server, listener);
}

static int listen_unix(struct annotate_server *server, struct peer *listener, enum kind kind,
		       const char *name, struct kb_error *err)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t length = strlen(name);
	int ret;

	/* An abstract name begins with a NUL and ends with the address. */
	memcpy(address.sun_path + 1, name, length);
	ret = listen_at(server, listener, kind, (const struct sockaddr *)&address,
			(socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length));
	return ret ? kb_error_set(err, ret, KB_NO_OFFSET, "can't listen at the socket @%s: %s", name,
				  ret == -EADDRINUSE ? "another program does already, perhaps "
				  "gatord"
						     : strerror(-ret)) : 0;
}

static int listen_tcp(struct annotate_server *server, struct peer *listener, enum kind kind,
		      uint16_t port, struct kb_error *err)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int ret = listen_at(server, listener, kind, (const struct sockaddr *)&address,
			    sizeof(address));

	return ret ? kb_error_set(err, ret, KB_NO_OFFSET, "can't listen at 127.0.0.1, port %u: %s",
				  port, ret == -EADDRINUSE ?
				  "somebody does already, gatord perhaps" : strerror(-ret)) : 0;
}

int annotate_server_open(struct annotate_server **out, const struct annotate_sink *sink,
			 struct kb_error *err)
{
	struct annotate_server *server = calloc(1, sizeof(*server));
	int ret;

	*out = NULL;
	if (!server)
		return kb_error_set(err, -ENOMEM, KB_NO_OFFSET, "out of memory");
	server->sink = *sink;
	for (unsigned int i = 0; i < 4; i++)
		server->listeners[i].fd = -1;
	server->spare = spare_descriptor();
	server->epoll = epoll_create1(EPOLL_CLOEXEC);
	ret = server->epoll < 0 ?
		      kb_error_set(err, -errno, KB_NO_OFFSET, "epoll: %s", strerror(errno)) : 0;
	ret = ret ?: listen_unix(server, &server->listeners[0], LISTENER, KB_ANNOTATE_SOCKET, err);
	ret = ret ?: listen_unix(server, &server->listeners[1], PARENT_LISTENER, PARENT_SOCKET, err);
	ret = ret ?: listen_tcp(server, &server->listeners[2], LISTENER, PORT, err);
	ret = ret ?: listen_tcp(server, &server->listeners[3], PARENT_LISTENER, PARENT_PORT, err);
	if (ret) {
		annotate_server_close(server);
		return ret;
	}
	*out = server;
	return 0;
}

int annotate_server_fd(const struct annotate_server *server)
{
	return server->epoll;
}

void annotate_server_close(struct annotate_server *server)
{
	if (!server)
		return;
	close_listeners(server);
	close_peers(server, CLIENT);
	close_peers(server, PARENT);
	if (server->epoll >= 0)
		close(server->epoll);
	if (server->spare >= 0)
		close(server->spare);
	free(server);
}
