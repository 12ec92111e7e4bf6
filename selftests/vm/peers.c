// SPDX-License-Identifier: MIT
/*
 * Two programs of one machine that talk by TCP: `peers FILE`. The client sends a byte each millisecond and waits
 * for the answer of the server, until FILE is there. The interface lo is up afterwards.
 */
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void must(int result, const char *what)
{
	if (result >= 0)
		return;
	perror(what);
	exit(1);
}

static void loopback_up(int fd)
{
	struct ifreq request = { .ifr_name = "lo" };

	must(ioctl(fd, SIOCGIFFLAGS, &request), "lo");
	request.ifr_flags |= IFF_UP;
	must(ioctl(fd, SIOCSIFFLAGS, &request), "lo can't be brought up");
}

static void serve(int listener)
{
	int fd = accept(listener, NULL, NULL);
	char byte;

	must(fd, "accept");
	must(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int)), "TCP_NODELAY");
	while (recv(fd, &byte, 1, 0) == 1)
		must((int)send(fd, &byte, 1, MSG_NOSIGNAL), "send");
	exit(0);
}

static void ask(int fd, const char *until)
{
	char byte = 0;

	must(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int)), "TCP_NODELAY");
	while (access(until, F_OK)) {
		must((int)send(fd, &byte, 1, MSG_NOSIGNAL), "send");
		if (recv(fd, &byte, 1, 0) != 1)
			must(-1, "the server is gone");
		usleep(1000);
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fd = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t length = sizeof(address);

	if (argc != 2)
		return 2;
	must(listener, "socket");
	must(fd, "socket");
	loopback_up(listener);
	must(bind(listener, (struct sockaddr *)&address, sizeof(address)), "bind");
	must(listen(listener, 1), "listen");
	must(getsockname(listener, (struct sockaddr *)&address, &length), "getsockname");
	if (!fork()) {
		prctl(PR_SET_NAME, "server");
		close(fd);
		serve(listener);
	}
	prctl(PR_SET_NAME, "client");
	must(connect(fd, (struct sockaddr *)&address, sizeof(address)), "connect");
	ask(fd, argv[1]);
	close(fd);
	return wait(NULL) < 0;
}
