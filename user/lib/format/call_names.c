// SPDX-License-Identifier: MIT
/*
 * Names of system calls, in the order of their numbers; "-" has none. They are the kernel's: those of
 * amd64, those of arm64 and RISC-V, and from number 424 on those of all machines.
 */
#include <string.h>

#include <kbarman/event.h>

#include "base/array.h"
#include "format/call_names.h"

#define FIRST_SHARED	424

static const char amd64[] =
	"read\0write\0open\0close\0stat\0fstat\0lstat\0poll\0lseek\0mmap\0mprotect\0munmap\0brk\0"
	"rt_sigaction\0rt_sigprocmask\0rt_sigreturn\0ioctl\0pread64\0pwrite64\0readv\0writev\0"
	"access\0pipe\0select\0sched_yield\0mremap\0msync\0mincore\0madvise\0shmget\0shmat\0"
	"shmctl\0dup\0dup2\0pause\0nanosleep\0getitimer\0alarm\0setitimer\0getpid\0sendfile\0"
	"socket\0connect\0accept\0sendto\0recvfrom\0sendmsg\0recvmsg\0shutdown\0bind\0listen\0"
	"getsockname\0getpeername\0socketpair\0setsockopt\0getsockopt\0clone\0fork\0vfork\0"
	"execve\0exit\0wait4\0kill\0uname\0semget\0semop\0semctl\0shmdt\0msgget\0msgsnd\0msgrcv\0"
	"msgctl\0fcntl\0flock\0fsync\0fdatasync\0truncate\0ftruncate\0getdents\0getcwd\0chdir\0"
	"fchdir\0rename\0mkdir\0rmdir\0creat\0link\0unlink\0symlink\0readlink\0chmod\0fchmod\0"
	"chown\0fchown\0lchown\0umask\0gettimeofday\0getrlimit\0getrusage\0sysinfo\0times\0"
	"ptrace\0getuid\0syslog\0getgid\0setuid\0setgid\0geteuid\0getegid\0setpgid\0getppid\0"
	"getpgrp\0setsid\0setreuid\0setregid\0getgroups\0setgroups\0setresuid\0getresuid\0"
	"setresgid\0getresgid\0getpgid\0setfsuid\0setfsgid\0getsid\0capget\0capset\0"
	"rt_sigpending\0rt_sigtimedwait\0rt_sigqueueinfo\0rt_sigsuspend\0sigaltstack\0utime\0"
	"mknod\0uselib\0personality\0ustat\0statfs\0fstatfs\0sysfs\0getpriority\0setpriority\0"
	"sched_setparam\0sched_getparam\0sched_setscheduler\0sched_getscheduler\0"
	"sched_get_priority_max\0sched_get_priority_min\0sched_rr_get_interval\0mlock\0munlock\0"
	"mlockall\0munlockall\0vhangup\0modify_ldt\0pivot_root\0_sysctl\0prctl\0arch_prctl\0"
	"adjtimex\0setrlimit\0chroot\0sync\0acct\0settimeofday\0mount\0umount2\0swapon\0swapoff\0"
	"reboot\0sethostname\0setdomainname\0iopl\0ioperm\0create_module\0init_module\0"
	"delete_module\0get_kernel_syms\0query_module\0quotactl\0nfsservctl\0getpmsg\0putpmsg\0"
	"afs_syscall\0tuxcall\0security\0gettid\0readahead\0setxattr\0lsetxattr\0fsetxattr\0"
	"getxattr\0lgetxattr\0fgetxattr\0listxattr\0llistxattr\0flistxattr\0removexattr\0"
	"lremovexattr\0fremovexattr\0tkill\0time\0futex\0sched_setaffinity\0sched_getaffinity\0"
	"set_thread_area\0io_setup\0io_destroy\0io_getevents\0io_submit\0io_cancel\0"
	"get_thread_area\0lookup_dcookie\0epoll_create\0epoll_ctl_old\0epoll_wait_old\0"
	"remap_file_pages\0getdents64\0set_tid_address\0restart_syscall\0semtimedop\0fadvise64\0"
	"timer_create\0timer_settime\0timer_gettime\0timer_getoverrun\0timer_delete\0"
	"clock_settime\0clock_gettime\0clock_getres\0clock_nanosleep\0exit_group\0epoll_wait\0"
	"epoll_ctl\0tgkill\0utimes\0vserver\0mbind\0set_mempolicy\0get_mempolicy\0mq_open\0"
	"mq_unlink\0mq_timedsend\0mq_timedreceive\0mq_notify\0mq_getsetattr\0kexec_load\0waitid\0"
	"add_key\0request_key\0keyctl\0ioprio_set\0ioprio_get\0inotify_init\0inotify_add_watch\0"
	"inotify_rm_watch\0migrate_pages\0openat\0mkdirat\0mknodat\0fchownat\0futimesat\0"
	"newfstatat\0unlinkat\0renameat\0linkat\0symlinkat\0readlinkat\0fchmodat\0faccessat\0"
	"pselect6\0ppoll\0unshare\0set_robust_list\0get_robust_list\0splice\0tee\0"
	"sync_file_range\0vmsplice\0move_pages\0utimensat\0epoll_pwait\0signalfd\0"
	"timerfd_create\0eventfd\0fallocate\0timerfd_settime\0timerfd_gettime\0accept4\0"
	"signalfd4\0eventfd2\0epoll_create1\0dup3\0pipe2\0inotify_init1\0preadv\0pwritev\0"
	"rt_tgsigqueueinfo\0perf_event_open\0recvmmsg\0fanotify_init\0fanotify_mark\0prlimit64\0"
	"name_to_handle_at\0open_by_handle_at\0clock_adjtime\0syncfs\0sendmmsg\0setns\0getcpu\0"
	"process_vm_readv\0process_vm_writev\0kcmp\0finit_module\0sched_setattr\0sched_getattr\0"
	"renameat2\0seccomp\0getrandom\0memfd_create\0kexec_file_load\0bpf\0execveat\0"
	"userfaultfd\0membarrier\0mlock2\0copy_file_range\0preadv2\0pwritev2\0pkey_mprotect\0"
	"pkey_alloc\0pkey_free\0statx\0io_pgetevents\0rseq\0uretprobe\0uprobe\0";
static const char generic[] =
	"io_setup\0io_destroy\0io_submit\0io_cancel\0io_getevents\0setxattr\0lsetxattr\0"
	"fsetxattr\0getxattr\0lgetxattr\0fgetxattr\0listxattr\0llistxattr\0flistxattr\0"
	"removexattr\0lremovexattr\0fremovexattr\0getcwd\0lookup_dcookie\0eventfd2\0"
	"epoll_create1\0epoll_ctl\0epoll_pwait\0dup\0dup3\0fcntl\0inotify_init1\0"
	"inotify_add_watch\0inotify_rm_watch\0ioctl\0ioprio_set\0ioprio_get\0flock\0mknodat\0"
	"mkdirat\0unlinkat\0symlinkat\0linkat\0renameat\0umount2\0mount\0pivot_root\0nfsservctl\0"
	"statfs\0fstatfs\0truncate\0ftruncate\0fallocate\0faccessat\0chdir\0fchdir\0chroot\0"
	"fchmod\0fchmodat\0fchownat\0fchown\0openat\0close\0vhangup\0pipe2\0quotactl\0"
	"getdents64\0lseek\0read\0write\0readv\0writev\0pread64\0pwrite64\0preadv\0pwritev\0"
	"sendfile\0pselect6\0ppoll\0signalfd4\0vmsplice\0splice\0tee\0readlinkat\0newfstatat\0"
	"fstat\0sync\0fsync\0fdatasync\0sync_file_range\0timerfd_create\0timerfd_settime\0"
	"timerfd_gettime\0utimensat\0acct\0capget\0capset\0personality\0exit\0exit_group\0"
	"waitid\0set_tid_address\0unshare\0futex\0set_robust_list\0get_robust_list\0nanosleep\0"
	"getitimer\0setitimer\0kexec_load\0init_module\0delete_module\0timer_create\0"
	"timer_gettime\0timer_getoverrun\0timer_settime\0timer_delete\0clock_settime\0"
	"clock_gettime\0clock_getres\0clock_nanosleep\0syslog\0ptrace\0sched_setparam\0"
	"sched_setscheduler\0sched_getscheduler\0sched_getparam\0sched_setaffinity\0"
	"sched_getaffinity\0sched_yield\0sched_get_priority_max\0sched_get_priority_min\0"
	"sched_rr_get_interval\0restart_syscall\0kill\0tkill\0tgkill\0sigaltstack\0"
	"rt_sigsuspend\0rt_sigaction\0rt_sigprocmask\0rt_sigpending\0rt_sigtimedwait\0"
	"rt_sigqueueinfo\0rt_sigreturn\0setpriority\0getpriority\0reboot\0setregid\0setgid\0"
	"setreuid\0setuid\0setresuid\0getresuid\0setresgid\0getresgid\0setfsuid\0setfsgid\0"
	"times\0setpgid\0getpgid\0getsid\0setsid\0getgroups\0setgroups\0uname\0sethostname\0"
	"setdomainname\0getrlimit\0setrlimit\0getrusage\0umask\0prctl\0getcpu\0gettimeofday\0"
	"settimeofday\0adjtimex\0getpid\0getppid\0getuid\0geteuid\0getgid\0getegid\0gettid\0"
	"sysinfo\0mq_open\0mq_unlink\0mq_timedsend\0mq_timedreceive\0mq_notify\0mq_getsetattr\0"
	"msgget\0msgctl\0msgrcv\0msgsnd\0semget\0semctl\0semtimedop\0semop\0shmget\0shmctl\0"
	"shmat\0shmdt\0socket\0socketpair\0bind\0listen\0accept\0connect\0getsockname\0"
	"getpeername\0sendto\0recvfrom\0setsockopt\0getsockopt\0shutdown\0sendmsg\0recvmsg\0"
	"readahead\0brk\0munmap\0mremap\0add_key\0request_key\0keyctl\0clone\0execve\0mmap\0"
	"fadvise64\0swapon\0swapoff\0mprotect\0msync\0mlock\0munlock\0mlockall\0munlockall\0"
	"mincore\0madvise\0remap_file_pages\0mbind\0get_mempolicy\0set_mempolicy\0migrate_pages\0"
	"move_pages\0rt_tgsigqueueinfo\0perf_event_open\0accept4\0recvmmsg\0-\0-\0-\0-\0-\0-\0-\0"
	"-\0-\0-\0-\0-\0-\0-\0-\0-\0wait4\0prlimit64\0fanotify_init\0fanotify_mark\0"
	"name_to_handle_at\0open_by_handle_at\0clock_adjtime\0syncfs\0setns\0sendmmsg\0"
	"process_vm_readv\0process_vm_writev\0kcmp\0finit_module\0sched_setattr\0sched_getattr\0"
	"renameat2\0seccomp\0getrandom\0memfd_create\0bpf\0execveat\0userfaultfd\0membarrier\0"
	"mlock2\0copy_file_range\0preadv2\0pwritev2\0pkey_mprotect\0pkey_alloc\0pkey_free\0"
	"statx\0io_pgetevents\0rseq\0kexec_file_load\0";
static const char shared[] =
	"pidfd_send_signal\0io_uring_setup\0io_uring_enter\0io_uring_register\0open_tree\0"
	"move_mount\0fsopen\0fsconfig\0fsmount\0fspick\0pidfd_open\0clone3\0close_range\0"
	"openat2\0pidfd_getfd\0faccessat2\0process_madvise\0epoll_pwait2\0mount_setattr\0"
	"quotactl_fd\0landlock_create_ruleset\0landlock_add_rule\0landlock_restrict_self\0"
	"memfd_secret\0process_mrelease\0futex_waitv\0set_mempolicy_home_node\0cachestat\0"
	"fchmodat2\0map_shadow_stack\0futex_wake\0futex_wait\0futex_requeue\0statmount\0"
	"listmount\0lsm_get_self_attr\0lsm_set_self_attr\0lsm_list_modules\0mseal\0setxattrat\0"
	"getxattrat\0listxattrat\0removexattrat\0open_tree_attr\0file_getattr\0file_setattr\0"
	"listns\0rseq_slice_yield\0fchroot\0syscalls\0";

/* The machines as uname(2) calls them. */
static const struct {
	const char *machine, *names;
} lists[] = {
	{ "x86_64", amd64 }, { "aarch64", generic }, { "riscv64", generic },
};

static const char *find_name(const char *name, unsigned int number)
{
	for (; number && *name; number--)
		name += strlen(name) + 1;
	return *name && strcmp(name, "-") != 0 ? name : NULL;
}

/* @compat: of the machine's other kind of programs. */
static const char *call_name(const char *machine, bool compat, uint16_t number)
{
	if (number >= FIRST_SHARED)
		return find_name(shared, number - FIRST_SHARED);
	for (size_t i = 0; machine && !compat && i < ARRAY_SIZE(lists); i++)
		if (strcmp(lists[i].machine, machine) == 0)
			return find_name(lists[i].names, number);
	return NULL;
}

bool kb_object_is_outside(const struct kb_object *object)
{
	return object->kind == KB_OBJECT_NO_CALL ||
	       (object->kind != KB_OBJECT_NONE && object->flags & KB_OBJECT_OUTSIDE);
}

const char *kb_object_call_name(const char *machine, const struct kb_object *object)
{
	return object->kind == KB_OBJECT_NONE || kb_object_is_outside(object) ? NULL :
	       call_name(machine, object->flags & KB_OBJECT_COMPAT, object->call);
}
