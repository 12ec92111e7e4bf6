// SPDX-License-Identifier: MIT
/*
 * The sandbox: see sandbox.h. A filter sorts system calls into four groups:
 *
 * - calls that decoding needs are allowed;
 * - calls that only an attacker needs end the process with a message. An attacker may have removed
 *   the handler that prints the message, but the call fails all the same;
 * - calls that change files or start a process fail with "not permitted";
 * - all other calls fail as on a kernel that does not have them, which libraries expect.
 *
 * A filter sees numbers, not names of files. Where a verb has to make files, Landlock limits the
 * folders.
 */
#include <asm/termbits.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"
#include "cli/base/cli.h"
#include "cli/base/sandbox.h"
#include "cli/base/syscalls.h"

#define ACCESS_MODE	3	/* the kernel's O_ACCMODE; musl's has more bits */

#ifndef TCGETS2			/* musl's <sys/ioctl.h> */
#define TCGETS2	_IOR('T', 0x2A, struct termios2)
#endif

#if defined(__x86_64__) && !defined(__ILP32__)
#define ARCH	AUDIT_ARCH_X86_64
#elif defined(__i386__)
#define ARCH	AUDIT_ARCH_I386
#elif defined(__aarch64__) && !defined(__AARCH64EB__)
#define ARCH	AUDIT_ARCH_AARCH64
#elif defined(__arm__) && !defined(__ARMEB__)
#define ARCH	AUDIT_ARCH_ARM
#elif defined(__s390x__)
#define ARCH	AUDIT_ARCH_S390X
#elif defined(__riscv) && __riscv_xlen == 64
#define ARCH	AUDIT_ARCH_RISCV64
#endif

/* A sanitizer in the program needs more system calls than the program. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#undef ARCH
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer) || \
	__has_feature(thread_sanitizer)
#undef ARCH
#endif
#endif

#define NOBODY	65534		/* the kernel's default for unknown users and groups */

static bool off, done;

void cli_sandbox_off(void)
{
	off = true;
}

bool cli_is_pipe(const char *path)
{
	struct stat st;

	if (strcmp(path, "-") ? stat(path, &st) : fstat(STDIN_FILENO, &st))
		return false;
	return !S_ISREG(st.st_mode);
}

void cli_sandbox_reading(const char *input)
{
	cli_sandbox(&(struct cli_sandbox) { .inputs = &input, .nr_inputs = 1 });
}

static bool debuginfod_wanted(void)
{
	const char *urls = getenv("DEBUGINFOD_URLS");

	return urls && *urls;
}

bool cli_sandbox_is_entered(void)
{
	return done;
}

bool cli_sandbox_is_on(void)
{
#ifdef ARCH
	return !off;
#else
	return false;
#endif
}

#ifdef ARCH

/* ---- the calls; some have other names on 32 bits, new architectures lack the oldest ---- */

static const int harmless[] = {
	/* open files, and opening files to read them */
	SYS_read, SYS_readv, SYS_pread64, SYS_preadv, SYS_write, SYS_writev, SYS_pwrite64,
	SYS_pwritev, SYS_lseek, SYS_close, SYS_close_range, SYS_fstat, SYS_statx, SYS_fstatfs,
	SYS_statfs, SYS_faccessat, SYS_faccessat2, SYS_readlinkat, SYS_getcwd, SYS_getdents64,
	SYS_dup, SYS_dup3, SYS_ftruncate, SYS_fallocate, SYS_fsync, SYS_fdatasync, SYS_sendfile,
	SYS_copy_file_range, SYS_memfd_create, SYS_pselect6, SYS_ppoll,
	/* memory */
	SYS_brk, SYS_munmap, SYS_mremap, SYS_mprotect, SYS_madvise, SYS_mincore, SYS_msync,
	/* the process itself */
	SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_sigaltstack,
	SYS_restart_syscall, SYS_exit, SYS_exit_group, SYS_getpid, SYS_getppid, SYS_gettid,
	SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid, SYS_getrusage, SYS_times, SYS_umask,
	SYS_futex, SYS_set_robust_list, SYS_set_tid_address, SYS_rseq, SYS_membarrier,
	SYS_sched_yield, SYS_sched_getaffinity, SYS_getcpu, SYS_getrandom, SYS_uname, SYS_sysinfo,
	SYS_clock_gettime, SYS_clock_getres, SYS_clock_nanosleep, SYS_nanosleep,
	SYS_gettimeofday,
#ifdef SYS_mmap
	SYS_mmap,
#endif
#ifdef SYS_newfstatat
	SYS_newfstatat,
#endif
#ifdef SYS_fadvise64
	SYS_fadvise64,
#endif
#ifdef SYS_open
	SYS_access, SYS_readlink, SYS_stat, SYS_lstat, SYS_poll, SYS_dup2,
#endif
#ifdef SYS_time
	SYS_time,
#endif
#ifdef SYS_select
	SYS_select,
#endif
#ifdef SYS_mmap2
	SYS_mmap2, SYS__llseek, SYS_stat64, SYS_lstat64, SYS_fstat64, SYS_fstatat64,
	SYS_statfs64, SYS_fstatfs64, SYS_ftruncate64, SYS_sendfile64, SYS_getuid32,
	SYS_geteuid32, SYS_getgid32, SYS_getegid32, SYS_ugetrlimit, SYS_sigreturn,
	SYS_clock_gettime64, SYS_clock_getres_time64, SYS_clock_nanosleep_time64, SYS_futex_time64,
	SYS_ppoll_time64, SYS_pselect6_time64,
#endif
#ifdef __arm__
	SYS_arm_fadvise64_64, __ARM_NR_cacheflush, __ARM_NR_set_tls,
#elif defined(__i386__)
	SYS_fadvise64_64, SYS_set_thread_area,
#elif defined(__x86_64__)
	SYS_arch_prctl,
#endif
};

/* Calls that create, rename and remove the output. */
static const int change_files[] = {
	SYS_unlinkat, SYS_renameat2, SYS_mkdirat, SYS_fchmod, SYS_fchmodat, SYS_utimensat,
#ifdef SYS_renameat
	SYS_renameat,
#endif
#ifdef SYS_open
	SYS_creat, SYS_unlink, SYS_rename, SYS_mkdir, SYS_rmdir, SYS_chmod,
#endif
};

/* Calls of libraries that connect to a server. */
static const int talk[] = {
	SYS_socket, SYS_socketpair, SYS_connect, SYS_bind, SYS_listen, SYS_accept4, SYS_getsockname,
	SYS_getpeername, SYS_setsockopt, SYS_getsockopt, SYS_sendto, SYS_recvfrom, SYS_sendmsg,
	SYS_recvmsg, SYS_sendmmsg, SYS_recvmmsg, SYS_shutdown, SYS_pipe2, SYS_eventfd2,
	SYS_epoll_create1, SYS_epoll_ctl, SYS_epoll_pwait,
#ifdef SYS_accept
	SYS_accept,
#endif
#ifdef SYS_socketcall
	SYS_socketcall,
#endif
#ifdef SYS_open
	SYS_pipe, SYS_epoll_wait,
#endif
#ifdef SYS_recvmmsg_time64
	SYS_recvmmsg_time64,
#endif
};

/*
 * Calls that make a process are only refused: without another program a process does no harm. They
 * don't end the process either because libraries block all signals before them, so the handler
 * could print no message.
 */
static const int processes[] = {
	SYS_clone, SYS_clone3,
#ifdef SYS_fork
	SYS_fork, SYS_vfork,
#endif
};

/* Calls that ask another process to decode. */
static const int ask[] = { SYS_pipe2, SYS_sendmsg, SYS_recvmsg };

static const int await[] = { SYS_wait4, SYS_waitid };

/*
 * All calls of a decoder: it reads and writes its open files and gets memory. Its open files are
 * the file to decode, the pipe for its answer, and /dev/null.
 */
static const int decode[] = {
	SYS_read, SYS_pread64, SYS_lseek, SYS_fstat, SYS_statx, SYS_write, SYS_writev, SYS_close,
	SYS_brk, SYS_munmap, SYS_mremap, SYS_madvise,
	SYS_rt_sigreturn, SYS_rt_sigprocmask, SYS_restart_syscall, SYS_exit, SYS_exit_group,
	SYS_getpid, SYS_gettid, SYS_futex, SYS_sched_yield, SYS_getrandom, SYS_sysinfo,
	SYS_clock_gettime, SYS_gettimeofday,
#ifdef SYS_newfstatat
	SYS_newfstatat,
#endif
#ifdef SYS_mmap2
	SYS__llseek, SYS_fstat64, SYS_fstatat64, SYS_sigreturn, SYS_clock_gettime64,
	SYS_futex_time64,
#endif
};

/* Additional calls of the keeper, which decoders may not make. */
static const int keep[] = {
	SYS_wait4, SYS_waitid, SYS_kill, SYS_sendmsg, SYS_recvmsg, SYS_ppoll, SYS_prlimit64,
	SYS_seccomp, SYS_prctl, SYS_set_robust_list, SYS_getppid, SYS_clone,
#ifdef SYS_open
	SYS_poll, SYS_fork, SYS_vfork,
#endif
#ifdef SYS_mmap2
	SYS_ppoll_time64, SYS_ugetrlimit, SYS_setrlimit,
#endif
};

static const struct deadly {
	int number;
	const char *deed;
} deadly[] = {
	{ SYS_execve, "start a program" },
	{ SYS_execveat, "start a program" },
	{ SYS_socket, "make a connection" },
	{ SYS_socketpair, "make a connection" },
	{ SYS_connect, "make a connection" },
	{ SYS_bind, "make a connection" },
	{ SYS_kill, "signal a process" },
	{ SYS_tkill, "signal a process" },
	{ SYS_tgkill, "signal a process" },
	{ SYS_rt_sigqueueinfo, "signal a process" },
	{ SYS_ptrace, "look into a process" },
	{ SYS_process_vm_readv, "look into a process" },
	{ SYS_process_vm_writev, "change a process" },
	{ SYS_init_module, "change the kernel" },
	{ SYS_finit_module, "change the kernel" },
	{ SYS_bpf, "change the kernel" },
	{ SYS_mount, "change the file system" },
	{ SYS_unshare, "become another user" },
	{ SYS_setuid, "become another user" },
	{ SYS_setresuid, "become another user" },
#ifdef SYS_socketcall
	{ SYS_socketcall, "make a connection" },
#endif
};

/* ---- the message ---- */

static void put(const char *text)
{
	if (write(STDERR_FILENO, text, strlen(text)) < 0)
		_exit(CLI_IMPOSSIBLE);
}

/* The handler of SIGSYS. An attacker may control the process by now. */
static void stopped(int signal, siginfo_t *info, void *context)
{
	const char *deed = "make a forbidden system call";

	(void)signal;
	(void)context;
	for (size_t i = 0; i < ARRAY_SIZE(deadly); i++)
		if (deadly[i].number == info->si_syscall)
			deed = deadly[i].deed;
	put("kbarman ");
	put(cli_verb_name);
	put(": stopped by the sandbox: something tried to ");
	put(deed);
	put(", which reading a file is not known to need: the file may be malicious\n");
	cli_output_remove_all();
	_exit(CLI_IMPOSSIBLE);
}

/* ---- the filter ---- */

/* The kernel's limit is 4096 instructions; this filter has some 300. */
struct filter {
	struct sock_filter code[512];
	unsigned short nr;
};

#define ALLOW		SECCOMP_RET_ALLOW
#define TRAP		SECCOMP_RET_TRAP
#define KILL		SECCOMP_RET_KILL_PROCESS
#define REFUSE(error)	(SECCOMP_RET_ERRNO | (error))

static void add(struct filter *filter, unsigned short code, uint32_t k, uint8_t yes, uint8_t no)
{
	if (filter->nr < sizeof(filter->code) / sizeof(filter->code[0]))
		filter->code[filter->nr++] = (struct sock_filter) { code, yes, no, k };
}

static void load(struct filter *filter, size_t offset)
{
	add(filter, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void answer(struct filter *filter, uint32_t what)
{
	add(filter, BPF_RET | BPF_K, what, 0, 0);
}

/* Loads the low half of an argument: of the arguments checked here the kernel only uses this. */
static void load_argument(struct filter *filter, unsigned int n)
{
	size_t low = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 4 : 0;

	load(filter, offsetof(struct seccomp_data, args) + n * sizeof(uint64_t) + low);
}

static void answer_call(struct filter *filter, int number, uint32_t what)
{
	add(filter, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 1);
	answer(filter, what);
}

static void answer_calls(struct filter *filter, const int *numbers, size_t count, uint32_t what)
{
	for (size_t i = 0; i < count; i++)
		answer_call(filter, numbers[i], what);
}

#define ANSWER_CALLS(filter, list, what) \
	answer_calls(filter, list, ARRAY_SIZE(list), what)

/* Allows the call @number if its argument @n has one of @values. */
static void allow_values(struct filter *filter, int number, unsigned int n, const uint32_t *values,
			 unsigned int count, uint32_t otherwise)
{
	add(filter, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, (uint8_t)(2 * count + 2));
	load_argument(filter, n);
	for (unsigned int i = 0; i < count; i++)
		answer_call(filter, (int)values[i], ALLOW);
	answer(filter, otherwise);
}

/* Allows to open files for reading, and files without a name, which no other process can see. */
static void allow_reading(struct filter *filter, int number, unsigned int n)
{
	add(filter, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 8);
	load_argument(filter, n);
	add(filter, BPF_ALU | BPF_AND | BPF_K, ACCESS_MODE | O_CREAT | O_TRUNC | O_TMPFILE, 0, 0);
	answer_call(filter, O_TMPFILE | O_RDWR, ALLOW);
	/* One bit of O_TMPFILE is O_DIRECTORY, with which folders are read. */
	add(filter, BPF_ALU | BPF_AND | BPF_K,
	    ACCESS_MODE | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY), 0, 0);
	answer_call(filter, O_RDONLY, ALLOW);
	answer(filter, REFUSE(EPERM));
}

/* Allows new threads of this process, but no new processes. A flag distinguishes the two. */
static void allow_threads(struct filter *filter)
{
#ifdef __s390x__
	const unsigned int flags = 1;
#else
	const unsigned int flags = 0;
#endif

	add(filter, BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4);
	load_argument(filter, flags);
	add(filter, BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 0, 1);
	answer(filter, ALLOW);
	answer(filter, REFUSE(EPERM));
	/* The filter can't see the flags of clone3: libraries fall back to clone. */
	answer_call(filter, SYS_clone3, REFUSE(ENOSYS));
}

static void check_machine(struct filter *filter, uint32_t otherwise)
{
	load(filter, offsetof(struct seccomp_data, arch));
	add(filter, BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0);
	answer(filter, otherwise);
	load(filter, offsetof(struct seccomp_data, nr));
}

static void build(struct filter *filter, bool files, const struct cli_sandbox *wanted)
{
	/* the last two are for sockets */
	static const uint32_t asked[] = { TCGETS, TCGETS2, TIOCGWINSZ, FIONREAD, FIONBIO };
	static const uint32_t asked_of_files[] = { F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD,
						   F_GETFL, F_SETFL };
	static const uint32_t self[] = { 0 };
	uint32_t pid = (uint32_t)getpid();

	check_machine(filter, TRAP);
	ANSWER_CALLS(filter, harmless, ALLOW);
	ANSWER_CALLS(filter, change_files, files ? ALLOW : REFUSE(EPERM));
	if (wanted->network)
		ANSWER_CALLS(filter, talk, ALLOW);
	if (wanted->decoder)
		ANSWER_CALLS(filter, ask, ALLOW);
	if (wanted->child)
		ANSWER_CALLS(filter, await, ALLOW);
	if (wanted->threads)
		allow_threads(filter);
	ANSWER_CALLS(filter, processes, REFUSE(EPERM));
	allow_values(filter, SYS_tgkill, 0, &pid, 1, TRAP);
	allow_values(filter, SYS_prlimit64, 0, self, 1, REFUSE(EPERM));
	allow_values(filter, SYS_fcntl, 1, asked_of_files, 6, REFUSE(EINVAL));
#ifdef SYS_fcntl64
	allow_values(filter, SYS_fcntl64, 1, asked_of_files, 6, REFUSE(EINVAL));
#endif
	allow_values(filter, SYS_ioctl, 1, asked, wanted->network ? 5 : 3, REFUSE(ENOTTY));
	for (size_t i = 0; i < ARRAY_SIZE(deadly); i++)
		answer_call(filter, deadly[i].number, TRAP);
	if (files) {
		answer_call(filter, SYS_openat, ALLOW);
#ifdef SYS_open
		answer_call(filter, SYS_open, ALLOW);
#endif
	} else {
		allow_reading(filter, SYS_openat, 2);
#ifdef SYS_open
		allow_reading(filter, SYS_open, 1);
#endif
	}
	/* The accumulator may hold an argument by now: don't compare call numbers after this. */
	answer(filter, REFUSE(ENOSYS));
}

static void install(struct filter *filter)
{
	struct sock_fprog program = { .filter = filter->code, .len = filter->nr };

	syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

static void confine_calls(bool files, const struct cli_sandbox *wanted)
{
	static struct filter filter;
	struct sigaction action = { .sa_sigaction = stopped, .sa_flags = SA_SIGINFO };

	build(&filter, files, wanted);
	sigaction(SIGSYS, &action, NULL);
	install(&filter);
}

/* Allows any memory that is not executable. */
static void allow_data(struct filter *filter, int number)
{
	add(filter, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 4);
	load_argument(filter, 2);
	add(filter, BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1);
	answer(filter, REFUSE(EPERM));
	answer(filter, ALLOW);
}

/* The filter of the keeper, which its decoders inherit. A decoder only adds confine_decoder(). */
static void confine_keeper(void)
{
	static const uint32_t asked_of_files[] = { F_GETFD, F_GETFL };
	static struct filter filter;

	check_machine(&filter, KILL);
	ANSWER_CALLS(&filter, decode, ALLOW);
	ANSWER_CALLS(&filter, keep, ALLOW);
#ifdef SYS_mmap
	allow_data(&filter, SYS_mmap);
#endif
#ifdef SYS_mmap2
	allow_data(&filter, SYS_mmap2);
#endif
	allow_data(&filter, SYS_mprotect);
	allow_values(&filter, SYS_fcntl, 1, asked_of_files, 2, REFUSE(EINVAL));
#ifdef SYS_fcntl64
	allow_values(&filter, SYS_fcntl64, 1, asked_of_files, 2, REFUSE(EINVAL));
#endif
	for (size_t i = 0; i < ARRAY_SIZE(deadly); i++)
		answer_call(&filter, deadly[i].number, KILL);
	answer(&filter, REFUSE(ENOSYS));
	install(&filter);
}

static void confine_decoder(void)
{
	static struct filter filter;

	check_machine(&filter, KILL);
	ANSWER_CALLS(&filter, keep, KILL);
	answer(&filter, ALLOW);
	install(&filter);
}

/* ---- files ---- */

#define FILE_RIGHTS	LANDLOCK_ACCESS_FS_WRITE_FILE
#define FOLDER_RIGHTS	(LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG | \
			 LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE | \
			 LANDLOCK_ACCESS_FS_REMOVE_DIR)
#define ALL_RIGHTS	(FOLDER_RIGHTS | LANDLOCK_ACCESS_FS_EXECUTE | \
			 LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_SOCK | \
			 LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK | \
			 LANDLOCK_ACCESS_FS_MAKE_SYM)
#define READ_RIGHTS	(LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
/* rights of later versions, which older headers lack */
#define REFER_RIGHT	(1ULL << 13)
#define TRUNCATE_RIGHT	(1ULL << 14)
#define IOCTL_RIGHT	(1ULL << 15)

static int landlock_version(void)
{
	return (int)syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
}

/* Forbids all files and, if the kernel can, connections and signals to other processes. */
static void confine_to_nothing(void)
{
	/* struct landlock_ruleset_attr, which is shorter in older headers: see landlock(7) */
	struct { uint64_t files, network, scopes; } all = { .files = ALL_RIGHTS | READ_RIGHTS };
	int version = landlock_version(), ruleset;

	if (version >= 2)
		all.files |= REFER_RIGHT;
	if (version >= 3)
		all.files |= TRUNCATE_RIGHT;
	if (version >= 5)
		all.files |= IOCTL_RIGHT;
	if (version >= 4)
		all.network = 3;	/* bind, connect */
	if (version >= 6)
		all.scopes = 3;		/* abstract sockets, signals */
	ruleset = (int)syscall(SYS_landlock_create_ruleset, &all, version >= 6 ? sizeof(all) :
			       version >= 4 ? 2 * sizeof(uint64_t) : sizeof(uint64_t), 0);
	if (ruleset < 0)
		return;
	syscall(SYS_landlock_restrict_self, ruleset, 0);
	close(ruleset);
}

/*
 * The descriptor stays open. A rule holds for an inode in memory: 9p, and some overlays, forget that
 * of a folder nobody has open, and then know the folder by another one, for which no rule is.
 */
static void permit(int ruleset, const char *path, uint64_t rights)
{
	int fd = open(path, O_PATH | O_CLOEXEC);
	struct landlock_path_beneath_attr beneath = { .allowed_access = rights, .parent_fd = fd };

	if (fd < 0)
		return;
	syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0);
	/* cppcheck-suppress resourceLeak ; it stays open until the process ends */
}

/* Permits the folder of @path. Follows links, as the opening of the output does. */
static void permit_folder_of(int ruleset, const char *path, uint64_t rights)
{
	char *real = realpath(path, NULL), *folder = real ? real : strdup(path), *slash;
	size_t length = folder ? strlen(folder) : 0;

	while (length > 1 && folder[length - 1] == '/')
		folder[--length] = 0;
	slash = folder ? strrchr(folder, '/') : NULL;
	if (slash)
		slash[slash == folder] = 0;
	if (folder)
		permit(ruleset, slash ? folder : ".", rights);
	free(folder);
}

static void confine_files(const struct cli_sandbox *wanted, const char *spool)
{
	uint64_t more = landlock_version() >= 3 ? TRUNCATE_RIGHT : 0;
	struct landlock_ruleset_attr attr = { .handled_access_fs = ALL_RIGHTS | more };
	struct stat st;
	int ruleset;

	ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
	if (ruleset < 0)
		return;
	if (wanted->output && stat(wanted->output, &st) == 0 && !S_ISREG(st.st_mode) &&
	    !S_ISDIR(st.st_mode))
		permit(ruleset, wanted->output, FILE_RIGHTS | more);
	else if (wanted->output)
		permit_folder_of(ruleset, wanted->output, FOLDER_RIGHTS | more);
	if (spool)
		permit(ruleset, spool, FOLDER_RIGHTS | more);
	syscall(SYS_landlock_restrict_self, ruleset, 0);
	close(ruleset);
	cli_output_confined();
}

/* Can't @spool have files without a name? Then the process needs the right to make files. */
static bool names_needed(const char *spool)
{
	int fd = open(spool, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd < 0)
		return true;
	close(fd);
	return false;
}

/* The folder of temporary files, as for the data of pipes; NULL: there are none. */
static const char *spool_of(const struct cli_sandbox *wanted)
{
	const char *folder = getenv("TMPDIR");

	bool needed = wanted->temporary;

	for (int i = 0; i < wanted->nr_inputs; i++)
		needed |= cli_is_pipe(wanted->inputs[i]);
	return !needed ? NULL : folder && *folder ? folder : "/tmp";
}

void cli_sandbox(const struct cli_sandbox *wanted)
{
	bool debuginfod = debuginfod_wanted();
	struct cli_sandbox limits = *wanted;
	const char *spool;
	bool files;

	if (off || done || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return;
	done = true;
	if (limits.output && strcmp(limits.output, "-") == 0)
		limits.output = NULL;
	spool = spool_of(&limits);
	files = limits.output || (spool && names_needed(spool)) || debuginfod;
	/*
	 * Without an output and a pipe, the filter forbids to open files for writing, so Landlock
	 * is not needed. libdebuginfod writes to folders of the user's settings, which are not
	 * known here.
	 */
	if (!debuginfod && !limits.processes && (limits.output || spool))
		confine_files(&limits, spool);
	limits.network |= debuginfod;
	limits.threads |= debuginfod;
	confine_calls(files, &limits);
}

/* Becomes the user nobody: even on a kernel without a sandbox, other users' files stay closed. */
static void give_up_user(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { 0 };

	if (!geteuid() && !setgroups(0, NULL) && !setresgid(NOBODY, NOBODY, NOBODY) &&
	    setresuid(NOBODY, NOBODY, NOBODY))
		_exit(CLI_IMPOSSIBLE);
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	syscall(SYS_capset, &header, none);
}

void cli_sandbox_keeper(void)
{
	give_up_user();
	/* No core dump of this process, and no debugger. */
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return;
	confine_to_nothing();
	confine_keeper();
}

void cli_sandbox_decoder(void)
{
	confine_decoder();
}

void cli_sandbox_features(bool *seccomp, int *landlock)
{
	uint32_t trap = SECCOMP_RET_TRAP;

	*seccomp = syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &trap) == 0;
	*landlock = landlock_version();
	/* cppcheck-suppress knownConditionTrueFalse ; it does not read the header */
	if (*landlock < 0)
		*landlock = 0;
}

#else

void cli_sandbox(const struct cli_sandbox *wanted)
{
	(void)wanted;
	(void)debuginfod_wanted;
	(void)off;
	(void)done;
}

void cli_sandbox_keeper(void)
{
}

void cli_sandbox_decoder(void)
{
}

void cli_sandbox_features(bool *seccomp, int *landlock)
{
	*seccomp = false;
	*landlock = 0;
}

#endif
