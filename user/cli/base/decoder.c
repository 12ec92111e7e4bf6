// SPDX-License-Identifier: MIT
/*
 * Parent and keeper exchange packets over a socket. The parent sends requests, with the
 * descriptors for the decoder. A packet of a single byte tells the keeper to end the decoder. The
 * keeper answers each request with one packet that says how the decoder ended. The decoder's
 * answer does not pass the keeper: the decoder sends it to the parent through a pipe.
 *
 * The parent may be in a sandbox that allows only some system calls for packets (sandbox.c), so
 * this file makes system calls by number.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/base/cli.h"
#include "cli/base/decoder.h"
#include "cli/base/sandbox.h"
#include "cli/base/syscalls.h"
#include "sym/image/decode.h"
#include "sym/question/answer.h"

#define PATIENCE_MS	10000U		/* limit of a decoder; a decoder that hangs halves it, */
#define LEAST_MS	300U		/* but not below this */
#define BYTES_A_MS	8192U		/* a large file gets a ms more for so many bytes, */
#define LARGE_MS	60000U		/* up to this */
#define KEEPER_MS	2000		/* more than the keeper needs to end a decoder */
#define KEEPERS		4		/* limit for new keepers, if keepers are killed */
#define MEMORY		(512ULL << 20)	/* of a decoder, plus twice the size of its file, */
#define MEMORY_MOST	(sizeof(void *) == 8 ? 6ULL << 30 : 2ULL << 30)	/* up to this */
#define PIPE_BYTES	(1 << 20)
#define FAILED_MAX	256		/* remembered files, which are not tried again */
#define CONTROL		3		/* the keeper's descriptor */

struct request {
	struct kb_question question;
	uint32_t patience_ms;
	uint64_t memory;
};

/* How a decoder ended. */
struct end {
	int32_t status;			/* that of waitpid() */
	int32_t killed;			/* enum why: did the keeper kill the decoder? */
};

enum why { ENDED, HUNG, TOLD };

/* ---- packets ---- */

#define FDS	2

static ssize_t send_packet(int fd, const void *data, size_t size, const int *fds, unsigned int nr)
{
	union {
		struct cmsghdr header;
		/* cppcheck-suppress unusedStructMember ; it is what the size comes from */
		char space[CMSG_SPACE(FDS * sizeof(int))];
	} control = { 0 };
	struct iovec part = { .iov_base = (void *)data, .iov_len = size };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

	if (nr) {
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(nr * sizeof(int));
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(nr * sizeof(int));
		memcpy(CMSG_DATA(&control.header), fds, nr * sizeof(int));
	}
	return syscall(SYS_sendmsg, fd, &message, MSG_NOSIGNAL);
}

/* @fds has room for FDS descriptors and gets @nr; it may be NULL. */
static ssize_t take_packet(int fd, void *data, size_t size, int *fds, unsigned int *nr)
{
	union {
		struct cmsghdr header;
		/* cppcheck-suppress unusedStructMember ; it is what the size comes from */
		char space[CMSG_SPACE(FDS * sizeof(int))];
	} control;
	struct iovec part = { .iov_base = data, .iov_len = size };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	ssize_t length;

	if (fds) {
		*nr = 0;
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
	}
	length = syscall(SYS_recvmsg, fd, &message, MSG_CMSG_CLOEXEC);
	if (length > 0 && fds && message.msg_controllen >= CMSG_LEN(sizeof(int)) &&
	    control.header.cmsg_type == SCM_RIGHTS) {
		*nr = (unsigned int)((control.header.cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(fds, CMSG_DATA(&control.header), *nr * sizeof(int));
	}
	return length;
}

/* ---- the decoder ---- */

static uint64_t own_memory;		/* memory of the keeper, with which a decoder begins */

/* Address space, as RLIMIT_AS counts it. */
static uint64_t memory_in_use(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	unsigned long long pages = 0;

	if (!file)
		return 0;
	if (fscanf(file, "%llu", &pages) != 1)
		pages = 0;
	fclose(file);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void limit(int resource, rlim_t most)
{
	setrlimit(resource, &(struct rlimit) { most, most });
}

__attribute__((noreturn))
static void decode(const struct request *request, const int *fds, unsigned int nr)
{
	close(CONTROL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	limit(RLIMIT_AS, (rlim_t)(request->memory + own_memory));
	limit(RLIMIT_CPU, request->patience_ms / 1000 + 1);
	limit(RLIMIT_FSIZE, 0);
	limit(RLIMIT_NOFILE, 0);
	limit(RLIMIT_CORE, 0);
	cli_sandbox_decoder();
	/* the last descriptor is the pipe for the answer */
	_exit(kb_decode_answer(&request->question, nr == 2 ? fds[0] : -1, fds[nr - 1]) ? 1 : 0);
}

/* ---- the keeper ---- */

static void woken(int signal)
{
	(void)signal;
}

/* Waits until @pid ends. Kills it if it takes too long or if the parent sends a packet. */
static void wait_for(pid_t pid, uint32_t patience_ms, const sigset_t *mask, struct end *end)
{
	int64_t until = kb_clock_ms() + patience_ms;

	*end = (struct end) { 0 };
	while (waitpid(pid, &end->status, WNOHANG) != pid) {
		int64_t left = until - kb_clock_ms();
		struct timespec time = { .tv_sec = left / 1000, .tv_nsec = left % 1000 * 1000000 };
		struct pollfd fd = { .fd = CONTROL, .events = POLLIN };

		if (left > 0 && ppoll(&fd, 1, &time, mask) <= 0)
			continue;
		end->killed = left > 0 ? TOLD : HUNG;
		kill(pid, SIGKILL);
		while (waitpid(pid, &end->status, 0) < 0 && errno == EINTR)
			;
		return;
	}
}

static void serve(const struct request *request, const int *fds, unsigned int nr,
		  const sigset_t *mask)
{
	struct end end = { .status = -1 };
	pid_t pid = fork();

	if (!pid)
		decode(request, fds, nr);
	for (unsigned int i = 0; i < nr; i++)
		close(fds[i]);
	if (pid > 0)
		wait_for(pid, request->patience_ms, mask, &end);
	if (send_packet(CONTROL, &end, sizeof(end), NULL, 0) < 0)
		_exit(0);
}

/* Closes all descriptors of the parent except @control, which becomes CONTROL. */
static void close_all(int control)
{
	int null = open("/dev/null", O_RDWR);

	for (int fd = 0; fd < 3; fd++)
		if (null < 0 || dup2(null, fd) < 0)
			close(fd);
	if (control != CONTROL)
		dup2(control, CONTROL);
	if (syscall(SYS_close_range, CONTROL + 1, ~0U, 0))
		for (int fd = CONTROL + 1; fd < 1024; fd++)
			close(fd);
}

/* When memory is short, the kernel shall kill decoders first. */
static void be_expendable(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, "1000", 4) < 0)
		errno = 0;
	close(fd);
}

__attribute__((noreturn))
static void keep(int control)
{
	struct sigaction action = { .sa_handler = woken };
	sigset_t all, mask;

	/*
	 * Signals of a terminal or a service manager must not end the keeper: the parent handles
	 * them and needs the keeper for a while.
	 */
	setsid();
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	sigaction(SIGCHLD, &action, NULL);
	mask = all;
	sigdelset(&mask, SIGCHLD);
	close_all(control);
	be_expendable();
	kb_decode_by(NULL, NULL);
	kb_decode_prepare();
	own_memory = memory_in_use();
	cli_sandbox_keeper();
	for (;;) {
		struct request request;
		unsigned int nr;
		int fds[FDS];
		ssize_t length = take_packet(CONTROL, &request, sizeof(request), fds, &nr);

		if (!length || (length < 0 && errno != EINTR))
			_exit(0);	/* the parent has ended */
		if (length == sizeof(request) && nr)
			serve(&request, fds, nr, &mask);
	}
}

/* ---- the parent ---- */

/* What is missing of a file without an answer. */
enum lack { NAMES, CHAINS, LACKS };

static const char *const lack_text[LACKS] = {
	[NAMES] = "%s has no names: %s",
	[CHAINS] = "call chains end in %s: %s",
};

struct failed {
	dev_t device;
	ino_t inode;
	off_t size;
	struct timespec changed;
	int code;
	bool noted[LACKS];
};

static struct {
	pid_t pid;
	int control;			/* -1: there is no keeper */
	unsigned int started;
	uint32_t patience_ms;
	struct failed failed[FAILED_MAX];
	unsigned int nr_failed;
	struct reason {
		int code;
		const char *text;
		struct {
			unsigned int nr;
			char first[256];
		} files[LACKS];
	} reasons[5];
} keeper = {
	.control = -1,
	.patience_ms = PATIENCE_MS,
	.reasons = {
		{ .code = KB_DECODER_FORBIDDEN,
		  .text = "the sandbox stopped its decoder; the file may be malicious" },
		{ .code = KB_DECODER_DIED, .text = "its decoder crashed" },
		{ .code = KB_DECODER_HUNG, .text = "its decoder took too long" },
		{ .code = KB_DECODER_LIED, .text = "its decoder gave no valid answer" },
		{ .code = KB_DECODER_NONE, .text = "no decoder could be started" },
	},
};

static int start_keeper(void)
{
	int ends[2];

	if (keeper.started == KEEPERS || cli_sandbox_is_entered() ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -EAGAIN;
	keeper.started++;
	keeper.pid = fork();
	if (!keeper.pid) {
		close(ends[0]);
		keep(ends[1]);
	}
	close(ends[1]);
	keeper.control = ends[0];
	if (keeper.pid > 0)
		return 0;
	close(keeper.control);
	keeper.control = -1;
	return -EAGAIN;
}

pid_t cli_decoder_process(void)
{
	return keeper.control < 0 ? 0 : keeper.pid;
}

/* Closes the socket. The keeper notices that and exits. */
static void lose_keeper(void)
{
	close(keeper.control);
	keeper.control = -1;
	waitpid(keeper.pid, NULL, WNOHANG);
}

struct source {
	int fd;
	int64_t until;
};

/* Waits until @fd can be read. */
static int wait_until(int fd, int64_t until)
{
	struct pollfd poller = { .fd = fd, .events = POLLIN };
	int64_t left;
	int nr;

	do {
		left = until - kb_clock_ms();
		nr = poll(&poller, 1, left > 0 ? (int)left : 0);
	} while (nr < 0 && errno == EINTR);
	return nr > 0 ? 0 : nr ? -errno : KB_DECODER_HUNG;
}

static ssize_t some_bytes(void *context, void *to, size_t size)
{
	struct source *source = context;
	ssize_t nr;
	int ret;

	/* Reads without waiting what is in the pipe already. */
	do {
		ret = 0;
		nr = read(source->fd, to, size);
		if (nr < 0 && errno == EAGAIN)
			ret = wait_until(source->fd, source->until);
	} while (nr < 0 && !ret && (errno == EINTR || errno == EAGAIN));
	return ret ? ret : nr < 0 ? -errno : nr;
}

/* The result of a question whose answer was read with the result @ret. */
static int judge(int ret, const struct end *end)
{
	/* A decoder that had died before the keeper killed it has another status. */
	if (end->killed && WIFSIGNALED(end->status) && WTERMSIG(end->status) == SIGKILL)
		return end->killed == HUNG ? KB_DECODER_HUNG : ret;
	if (end->status == -1)
		return KB_DECODER_NONE;
	if (WIFSIGNALED(end->status) && WTERMSIG(end->status) == SIGSYS)
		return KB_DECODER_FORBIDDEN;
	return end->status ? KB_DECODER_DIED : ret;
}

/* Sends the question and reads the answer. */
static int ask_keeper(const struct request *request, int fd, struct kb_elf *found)
{
	int64_t until = kb_clock_ms() + request->patience_ms + KEEPER_MS / 2;
	struct end end = { 0 };
	struct source source;
	int ends[2], fds[FDS], ret, got;
	unsigned int nr = 0;

	if (syscall(SYS_pipe2, ends, O_CLOEXEC))
		return KB_DECODER_NONE;
	fcntl(ends[0], F_SETPIPE_SZ, PIPE_BYTES);
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	if (fd >= 0)
		fds[nr++] = fd;
	fds[nr++] = ends[1];
	ret = send_packet(keeper.control, request, sizeof(*request), fds, nr) < 0 ? -errno : 0;
	close(ends[1]);
	if (ret) {
		close(ends[0]);
		return -ECONNRESET;
	}
	source = (struct source) { .fd = ends[0], .until = until };
	ret = kb_answer_read(found, some_bytes, &source);
	close(ends[0]);
	/* The rest of the decoder's answer is of no use. */
	if (ret == KB_DECODER_LIED || ret == KB_DECODER_HUNG || ret == -ENOMEM)
		send_packet(keeper.control, "", 1, NULL, 0);
	if (wait_until(keeper.control, kb_clock_ms() + KEEPER_MS) ||
	    take_packet(keeper.control, &end, sizeof(end), NULL, NULL) != sizeof(end))
		got = -ECONNRESET;
	else
		got = judge(ret, &end);
	if (got && !ret)
		kb_elf_release(found);
	return got;
}

static uint32_t patience_with(const struct stat *st)
{
	uint64_t more = (uint64_t)st->st_size / BYTES_A_MS;

	if (more > LARGE_MS)
		more = LARGE_MS;
	return keeper.patience_ms + (uint32_t)(more * keeper.patience_ms / PATIENCE_MS);
}

static enum lack lack_of(const struct kb_question *question)
{
	return question->what == KB_QUESTION_UNWIND || question->what == KB_QUESTION_IDENTITY ?
	       CHAINS : NAMES;
}

static struct failed identity(const struct stat *st, int code)
{
	return (struct failed) {
		.code = code,
		.device = st->st_dev, .inode = st->st_ino, .size = st->st_size,
		.changed = st->st_mtim,
	};
}

/* What is known of this file, if it was tried before and failed; else NULL. */
static struct failed *failure_of(const struct stat *st)
{
	struct failed file = identity(st, 0);

	for (unsigned int i = 0; i < keeper.nr_failed; i++) {
		struct failed *other = &keeper.failed[i];

		if (other->device == file.device && other->inode == file.inode &&
		    other->size == file.size && other->changed.tv_sec == file.changed.tv_sec &&
		    other->changed.tv_nsec == file.changed.tv_nsec)
			return other;
	}
	return NULL;
}

/* Counts failures of decoders; other errors are those of the file. False: it is one of those. */
static bool count(int code, enum lack lack, const char *label)
{
	for (size_t i = 0; i < sizeof(keeper.reasons) / sizeof(keeper.reasons[0]); i++) {
		struct reason *reason = &keeper.reasons[i];

		if (reason->code != code)
			continue;
		if (!reason->files[lack].nr++)
			snprintf(reason->files[lack].first, sizeof(reason->files[lack].first), "%s",
				 label);
		return true;
	}
	return false;
}

static void note(int code, enum lack lack, const char *label, const struct stat *st)
{
	if (count(code, lack, label) && st && keeper.nr_failed < FAILED_MAX) {
		keeper.failed[keeper.nr_failed] = identity(st, code);
		keeper.failed[keeper.nr_failed++].noted[lack] = true;
	}
	if (code == KB_DECODER_HUNG && keeper.patience_ms / 2 >= LEAST_MS)
		keeper.patience_ms /= 2;
}

/* kb_decoder */
static int ask(void *context, const struct kb_question *question, int fd, const char *label,
	       struct kb_elf *found)
{
	struct request request = { .question = *question };
	struct stat st = { 0 };
	bool is_file = fd >= 0 && !fstat(fd, &st);
	struct failed *failed = is_file ? failure_of(&st) : NULL;
	enum lack lack = lack_of(question);
	int ret;

	(void)context;
	*found = (struct kb_elf) { 0 };
	/* A file is not tried again, for whatever it is asked. */
	if (failed) {
		if (!failed->noted[lack])
			count(failed->code, lack, label);
		failed->noted[lack] = true;
		return failed->code;
	}
	request.patience_ms = patience_with(&st);
	request.memory = (uint64_t)st.st_size < MEMORY_MOST / 2 ? MEMORY + 2 * (uint64_t)st.st_size :
			 MEMORY_MOST;
	if (request.memory > MEMORY_MOST)
		request.memory = MEMORY_MOST;
	do {
		ret = keeper.control < 0 ? start_keeper() : 0;
		if (!ret)
			ret = ask_keeper(&request, fd, found);
		if (ret == -ECONNRESET)
			lose_keeper();
	} while (ret == -ECONNRESET);
	note(ret, lack, label, is_file ? &st : NULL);
	return ret;
}

void cli_decoder_start(void)
{
	if (!cli_sandbox_is_on() || keeper.control >= 0)
		return;
	start_keeper();
	/*
	 * Without a keeper there are no names: this is better than reading files with all rights.
	 */
	kb_decode_by(ask, NULL);
}

static void report(struct reason *reason, enum lack lack)
{
	char text[384];

	if (!reason->files[lack].nr)
		return;
	snprintf(text, sizeof(text), lack_text[lack], reason->files[lack].first, reason->text);
	if (reason->files[lack].nr > 1)
		cli_warn("%s; the same happened to %u more", text, reason->files[lack].nr - 1);
	else
		cli_warn("%s", text);
	reason->files[lack].nr = 0;
}

void cli_decoder_report(void)
{
	for (size_t i = 0; i < sizeof(keeper.reasons) / sizeof(keeper.reasons[0]); i++)
		for (enum lack lack = 0; lack < LACKS; lack++)
			report(&keeper.reasons[i], lack);
}
