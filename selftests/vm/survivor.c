// SPDX-License-Identifier: MIT
/*
 * Usage: survivor record [SYMBOLS] | work | save DIRECTORY | refused | release NUMBER
 *
 * For reserved.py and panics.py, in a VM whose memory survives its resets. The module is loaded.
 *
 * record	the session that began with the module, or one of root's, has work, by a task `last_work`; ends when its records
 *		are of that. With SYMBOLS, a file, it has these beside its rings, and its work owns it
 * work		has work as hackbench has it, on all CPUs
 * save		each recording of a former boot: DIRECTORY/NUMBER, and a line with its address, size and end
 * refused	who may not have them gets none: number 0 began with the module, and number 1 is root's
 * release	gives that recording's memory back
 */
#include "lib.h"
#include "uapi/stamp.h"

static struct kbarman_former former_of(int fd, uint32_t number, uint32_t flags, uint64_t capture, int wanted)
{
	struct kbarman_former f = { .size = sizeof(f), .number = number, .flags = flags, .capture = capture };
	int error = call(fd, KBARMAN_FORMER, &f);

	if (error != wanted)
		lost("former recording %u, flags %u: %d and not %d", number, flags, error, wanted);
	return f;
}

static void keep_symbols(int fd, const char *path)
{
	static char bytes[4 * MIB];
	struct kbarman_add_symbols a = { .size = sizeof(a), .bytes_ptr = (uintptr_t)bytes };
	struct kbarman_adopt adopt = { .size = sizeof(adopt) };
	FILE *file = fopen(path, "r");

	a.bytes = file ? fread(bytes, 1, sizeof(bytes), file) : 0;
	if (!(query(fd).state & KBARMAN_STATE_MINE) && call(fd, KBARMAN_ADOPT, &adopt))
		lost("the session can't be adopted");
	if (call(fd, KBARMAN_ADD_SYMBOLS, &a))
		lost("%llu bytes of symbols are refused", (long long)a.bytes);
}

static void record(int fd, const char *symbols)
{
	const struct kbarman_configure config = {
		.mode = KBARMAN_MODE_OVERWRITE, .sources = KBARMAN_SOURCE_SCHED, .flags = KBARMAN_CONFIGURE_RESERVED,
		.ring_bytes = 256 * KIB,
	};

	if (!(query(fd).state & KBARMAN_STATE_RUNNING) && (configure(fd, config) || start(fd)))
		lost("nothing is recorded");
	if (symbols)
		keep_symbols(fd, symbols);
	if (!fork()) {
		prctl(PR_SET_NAME, "last_work");
		prctl(PR_SET_PDEATHSIG, 0);
		for (;;)
			ping_pong(0, 1000);
	}
	/* Its last records are not those of the start. */
	while (stats(fd, 0).written < 50000)
		usleep(10000);
}

/* Each sender writes to each reader. */
static void work(void)
{
	enum { PAIRS = 8 };
	char message[100] = { 0 };
	int ends[PAIRS][2], i;

	for (i = 0; i < PAIRS; i++) {
		if (pipe(ends[i]))
			lost("no pipe");
		if (!fork())
			while (read(ends[i][0], message, sizeof(message)) > 0)
				;
	}
	for (i = 0; i < PAIRS; i++)
		if (!fork())
			for (;; i++)
				if (write(ends[i % PAIRS][1], message, sizeof(message)) < 0)
					_exit(1);
}

static void save(int fd, const char *directory)
{
	static char bytes[1 << 16], again[1 << 12];
	struct kbarman_former f = { .size = sizeof(f) };
	uint32_t number;

	for (number = 0; number < 2; number++) {
		char path[256];
		uint64_t all = 0;
		ssize_t got;
		FILE *file;

		f = (struct kbarman_former) { .size = sizeof(f), .number = number, .flags = KBARMAN_FORMER_OPEN };
		if (call(fd, KBARMAN_FORMER, &f))
			break;
		snprintf(path, sizeof(path), "%s/%u", directory, number);
		file = fopen(path, "w");
		while ((got = read(f.fd, bytes, sizeof(bytes))) > 0) {
			if (!file || fwrite(bytes, 1, got, file) != (size_t)got)
				lost("%s", path);
			all += got;
		}
		if (got || all != f.bytes || fclose(file))
			lost("%llu bytes of %llu", (long long)all, (long long)f.bytes);
		if (lseek(f.fd, 0, SEEK_END) != (off_t)all || pread(f.fd, again, sizeof(again), 0) != sizeof(again) ||
		    ((struct kbarman_stamp *)again)->capture != f.capture)
			lost("it is no file");
		former_of(fd, number, KBARMAN_FORMER_RELEASE, f.capture, -EBUSY);
		close(f.fd);
		former_of(fd, number, KBARMAN_FORMER_RELEASE, f.capture + 1, -ESTALE);
		printf("%u 0x%llx %llu %u\n", number, (long long)f.address, (long long)f.bytes, f.end);
	}
}

/* Opened by another user, and without a capability that it takes. */
static void refused(void)
{
	pid_t child = fork();
	int status, fd;

	if (!child) {
		keep_only(CAPABILITY(CAP_PERFMON) | CAPABILITY(CAP_SYS_PTRACE) | CAPABILITY(CAP_SETUID) |
			  CAPABILITY(CAP_DAC_OVERRIDE));
		fd = device_open();
		former_of(fd, 0, 0, 0, 0);
		former_of(fd, 0, KBARMAN_FORMER_OPEN, 0, -EPERM);	/* kernel addresses */
		former_of(fd, 0, KBARMAN_FORMER_RELEASE, 0, -EPERM);
		_exit(0);
	}
	if (waitpid(child, &status, 0) != child || status)
		lost("status %d", status);
	child = fork();
	if (!child) {
		if (prctl(PR_SET_KEEPCAPS, 1) || syscall(SYS_setresuid, 1000, 1000, 1000))
			lost("no other user");
		keep_only(CAPABILITY(CAP_PERFMON) | CAPABILITY(CAP_SYSLOG) | CAPABILITY(CAP_DAC_OVERRIDE));
		fd = device_open();
		if (former_of(fd, 1, 0, 0, 0).uid != ~0U)
			lost("the user is told");
		former_of(fd, 1, KBARMAN_FORMER_OPEN, 0, -EPERM);
		close(former_of(fd, 0, KBARMAN_FORMER_OPEN, 0, 0).fd);
		_exit(0);
	}
	if (waitpid(child, &status, 0) != child || status)
		lost("status %d", status);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int fd = device_open();

	if (!strcmp(what, "record"))
		record(fd, argc > 2 ? argv[2] : NULL);
	else if (!strcmp(what, "work"))
		work();
	else if (!strcmp(what, "save") && argc > 2)
		save(fd, argv[2]);
	else if (!strcmp(what, "refused"))
		refused();
	else if (!strcmp(what, "release") && argc > 2)
		former_of(fd, atoi(argv[2]), KBARMAN_FORMER_RELEASE,
			  former_of(fd, atoi(argv[2]), 0, 0, 0).capture, 0);
	else
		lost("survivor %s", what);
	return 0;
}
