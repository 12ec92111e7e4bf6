// SPDX-License-Identifier: MIT
/*
 * See http_server.h. A connection goes through three states: its request is read, its answer is
 * written, and what the client still sends is read and forgotten, because closing a socket with
 * unread input may take the answer away.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "push/http_server.h"

#define REQUEST_MAX	8192	/* bytes */
#define DRAIN_MS	1000

enum state { FREE, ASKS, TAKES, LEAVES };

struct client {
	enum state state;
	int fd;
	int64_t since, until;		/* ms: when it came; when it is given up */
	char *data;			/* the request, then the answer */
	size_t size, done;
};

struct http_server {
	struct http_server_options how;
	struct client clients[HTTP_CLIENTS];
	struct http_server_sums sums;
	int64_t deaf_until;		/* ms: no new clients */
};

int http_server_open(struct http_server **out, const struct http_server_options *options)
{
	struct http_server *server = calloc(1, sizeof(*server));
	int flags = fcntl(options->listener, F_GETFL);

	if (!server)
		return -ENOMEM;
	if (flags < 0 || fcntl(options->listener, F_SETFL, flags | O_NONBLOCK)) {
		free(server);
		return -errno;
	}
	server->how = *options;
	*out = server;
	return 0;
}

static void end_client(struct client *client)
{
	close(client->fd);
	free(client->data);
	*client = (struct client){ .state = FREE };
}

static void drop(struct http_server *server, struct client *client)
{
	server->sums.dropped += client->state != LEAVES;
	end_client(client);
}

void http_server_close(struct http_server *server)
{
	if (!server)
		return;
	for (unsigned int i = 0; i < HTTP_CLIENTS; i++)
		if (server->clients[i].state != FREE)
			end_client(&server->clients[i]);
	close(server->how.listener);
	free(server);
}

struct http_server_sums http_server_sums(const struct http_server *server)
{
	return server->sums;
}

/* ---- requests ---- */

/* One element of an Accept header, up to its ','. */
static bool is_type(const char *element, size_t length, const char *type)
{
	size_t want = strlen(type);
	const char *q;

	if (length < want || strncasecmp(element, type, want) ||
	    (length > want && !strchr("; \t", element[want])))
		return false;
	for (q = element + want; q + 3 <= element + length; q++) {
		if (strncasecmp(q, "q=0", 3) || (q[-1] != ';' && q[-1] != ' '))
			continue;
		/* 0, 0.0, 0.000 */
		q += 3;
		q += q < element + length && *q == '.' ? 1 + strspn(q + 1, "0") : 0;
		return q < element + length && *q >= '0' && *q <= '9';
	}
	return true;
}

bool http_accepts(const char *accept, const char *type)
{
	size_t length;

	for (; *accept; accept += length + (accept[length] == ',')) {
		accept += strspn(accept, " \t");
		length = strcspn(accept, ",");
		if (is_type(accept, length, type))
			return true;
	}
	return false;
}

static const char *reason(int status)
{
	switch (status) {
	case 200: return "OK";
	case 400: return "Bad Request";
	case 404: return "Not Found";
	case 405: return "Method Not Allowed";
	case 431: return "Request Header Fields Too Large";
	case 503: return "Service Unavailable";
	default: return "Internal Server Error";
	}
}

static void write_answer(struct http_server *server, struct client *client,
			 const struct http_answer *answer, bool head)
{
	size_t body = head ? 0 : answer->size;
	char *data = NULL, *whole = NULL;
	int length;

	length = asprintf(&data, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n%s"
			  "Cache-Control: no-store\r\nConnection: close\r\n\r\n", answer->status,
			  reason(answer->status), answer->type, answer->size,
			  answer->status == 405 ? "Allow: GET, HEAD\r\n" : "");
	if (length >= 0) {
		whole = realloc(data, (size_t)length + body);
		if (!whole)
			free(data);
	}
	free(client->data);
	client->data = whole;
	if (!whole) {
		drop(server, client);
		return;
	}
	if (body)
		memcpy(client->data + length, answer->data, body);
	client->state = TAKES;
	client->size = (size_t)length + body;
	client->done = 0;
	client->until = kb_clock_ms() + server->how.patience_ms;
}

static void refuse(struct http_server *server, struct client *client, int status)
{
	char text[64];
	const struct http_answer answer = {
		.status = status, .type = "text/plain; charset=utf-8", .data = text,
		.size = (size_t)snprintf(text, sizeof(text), "%d %s\n", status, reason(status)),
	};

	server->sums.refused++;
	write_answer(server, client, &answer, false);
}

/* Cuts a line off *@at, without its end. NULL: there is none. */
static char *take_line(char **at)
{
	char *line = *at, *end = strchr(line, '\n');

	if (!end)
		return NULL;
	*at = end + 1;
	if (end > line && end[-1] == '\r')
		end--;
	*end = 0;
	return line;
}

static const char *find_accept(char *headers)
{
	const char *line;

	while ((line = take_line(&headers)))
		if (!strncasecmp(line, "accept:", 7))
			return line + 7 + strspn(line + 7, " \t");
	return "";
}

/* Cuts "METHOD PATH HTTP/1.x" into words. */
static bool parse_line(char *line, char **method, char **path)
{
	char *version;

	*method = line;
	*path = strchr(line, ' ');
	version = *path ? strchr(*path + 1, ' ') : NULL;
	if (!version || strncmp(version + 1, "HTTP/1.", 7))
		return false;
	*(*path)++ = 0;
	*version = 0;
	(*path)[strcspn(*path, "?#")] = 0;
	return **path == '/';
}

/* The request is whole: @client->size bytes and a NUL. */
static void answer_request(struct http_server *server, struct client *client)
{
	struct http_answer answer = { .status = 404, .type = "text/plain; charset=utf-8" };
	struct http_request request;
	char *at = client->data, *line, *method, *path;

	line = strlen(at) == client->size ? take_line(&at) : NULL;
	if (!line || !parse_line(line, &method, &path)) {
		refuse(server, client, 400);
		return;
	}
	if (strcmp(method, "GET") && strcmp(method, "HEAD")) {
		refuse(server, client, 405);
		return;
	}
	request = (struct http_request){ .path = path, .accept = find_accept(at) };
	server->how.answer(server->how.context, &request, &answer);
	if (answer.status == 404) {
		refuse(server, client, 404);
		return;
	}
	server->sums.requests++;
	write_answer(server, client, &answer, !strcmp(method, "HEAD"));
}

/* Does the request end in front of here, with an empty line? */
static bool is_whole(const struct client *client)
{
	return memmem(client->data, client->size, "\r\n\r\n", 4) ||
	       memmem(client->data, client->size, "\n\n", 2);
}

static void read_request(struct http_server *server, struct client *client)
{
	ssize_t got = recv(client->fd, client->data + client->size, REQUEST_MAX - client->size,
			   MSG_DONTWAIT);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0) {
		drop(server, client);
		return;
	}
	client->size += (size_t)got;
	client->data[client->size] = 0;
	if (is_whole(client))
		answer_request(server, client);
	else if (client->size == REQUEST_MAX)
		refuse(server, client, 431);
}

/* ---- connections ---- */

static void write_more(struct http_server *server, struct client *client)
{
	ssize_t done = send(client->fd, client->data + client->done, client->size - client->done,
			    MSG_DONTWAIT | MSG_NOSIGNAL);

	if (done < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (done < 0) {
		drop(server, client);
		return;
	}
	client->done += (size_t)done;
	if (client->done < client->size)
		return;
	shutdown(client->fd, SHUT_WR);
	client->state = LEAVES;
	client->until = kb_clock_ms() + DRAIN_MS;
}

static void drain(struct client *client)
{
	char unread[4096];
	ssize_t got = recv(client->fd, unread, sizeof(unread), MSG_DONTWAIT);

	if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
		end_client(client);
}

/* A place for a new connection; NULL: all take their answers. */
static struct client *find_place(struct http_server *server)
{
	struct client *oldest = NULL;

	for (unsigned int i = 0; i < HTTP_CLIENTS; i++) {
		struct client *client = &server->clients[i];

		if (client->state == FREE)
			return client;
		if (client->state != TAKES && (!oldest || client->since < oldest->since))
			oldest = client;
	}
	if (oldest)
		drop(server, oldest);
	return oldest;
}

static void accept_one(struct http_server *server)
{
	/* cppcheck-suppress nullPointer ; the client's address is not needed */
	int fd = accept4(server->how.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct client *client;
	int64_t now = kb_clock_ms();

	if (fd < 0) {
		/* without descriptors or memory poll(2) would come back at once */
		if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			server->deaf_until = now + 100;
		return;
	}
	client = find_place(server);
	if (!client) {
		server->sums.dropped++;
		close(fd);
		return;
	}
	*client = (struct client){
		.state = ASKS, .fd = fd, .since = now, .until = now + server->how.patience_ms,
		.data = malloc(REQUEST_MAX + 1),
	};
	if (!client->data)
		drop(server, client);
}

unsigned int http_server_fds(const struct http_server *server, struct pollfd fds[HTTP_FDS],
			     int64_t *timeout_ms)
{
	int64_t now = kb_clock_ms(), next = now + *timeout_ms;
	bool deaf = server->deaf_until > now;

	fds[0] = (struct pollfd){ .fd = deaf ? -1 : server->how.listener, .events = POLLIN };
	if (deaf && server->deaf_until < next)
		next = server->deaf_until;
	for (unsigned int i = 0; i < HTTP_CLIENTS; i++) {
		const struct client *client = &server->clients[i];

		fds[i + 1] = (struct pollfd){
			.fd = client->state == FREE ? -1 : client->fd,
			.events = client->state == TAKES ? POLLOUT : POLLIN,
		};
		if (client->state != FREE && client->until < next)
			next = client->until;
	}
	*timeout_ms = next > now ? next - now : 0;
	return HTTP_FDS;
}

static void serve(struct http_server *server, struct client *client)
{
	switch (client->state) {
	case ASKS:
		read_request(server, client);
		break;
	case TAKES:
		write_more(server, client);
		break;
	case LEAVES:
		drain(client);
		break;
	case FREE:
		break;
	}
}

void http_server_serve(struct http_server *server, const struct pollfd *fds, unsigned int nr)
{
	int64_t now = kb_clock_ms();

	for (unsigned int i = 1; i < nr; i++) {
		struct client *client = &server->clients[i - 1];

		if (client->state == FREE || client->fd != fds[i].fd)
			continue;
		if (fds[i].revents)
			serve(server, client);
		else if (client->until <= now)
			drop(server, client);
	}
	if (fds[0].revents)
		accept_one(server);
}
