// SPDX-License-Identifier: GPL-2.0-only
#include <linux/mutex.h>
#include <linux/rwsem.h>
#include <asm/unistd.h>

#include "capture/users.h"
#include "sources/object.h"
#include "uapi/kbarman.h"

#ifdef CONFIG_DETECT_HUNG_TASK_BLOCKER
#include <linux/hung_task.h>
#else
#define BLOCKER_TYPE_MASK	3UL
#endif

/*
 * Whether the registers say if the task is in a system call. On arm they do not say it of a call whose
 * first argument is -1.
 */
#if defined(CONFIG_X86) || defined(CONFIG_ARM64) || defined(CONFIG_RISCV) || defined(CONFIG_S390)
const u32 kbarman_object_features = KBARMAN_FEATURE_OBJECTS;
#else
const u32 kbarman_object_features;
#endif

#define FILE	KBARMAN_WAITS_FOR_FILE

const u8 kbarman_waits_for[KBARMAN_CALLS] = {
	[__NR_read] = FILE, [__NR_write] = FILE, [__NR_readv] = FILE, [__NR_writev] = FILE,
	[__NR_pread64] = FILE, [__NR_pwrite64] = FILE, [__NR_preadv] = FILE, [__NR_pwritev] = FILE,
	[__NR_preadv2] = FILE, [__NR_pwritev2] = FILE, [__NR_getdents64] = FILE,
	[__NR_recvmsg] = FILE, [__NR_sendmsg] = FILE, [__NR_recvmmsg] = FILE,
	[__NR_sendmmsg] = FILE, [__NR_accept4] = FILE, [__NR_connect] = FILE, [__NR_sendto] = FILE,
	[__NR_recvfrom] = FILE, [__NR_fsync] = FILE, [__NR_fdatasync] = FILE, [__NR_syncfs] = FILE,
	[__NR_fallocate] = FILE, [__NR_ftruncate] = FILE,
	[__NR_flock] = FILE, [__NR_fcntl] = FILE, [__NR_ioctl] = FILE, [__NR_epoll_pwait] = FILE,
#ifdef __NR_sync_file_range
	[__NR_sync_file_range] = FILE,
#endif
#ifdef __NR_accept
	[__NR_accept] = FILE,
#endif
#ifdef __NR_epoll_wait
	[__NR_epoll_wait] = FILE,
#endif
#ifdef __NR_epoll_pwait2
	[__NR_epoll_pwait2] = FILE,
#endif
	[__NR_futex] = KBARMAN_WAITS_FOR_FUTEX,
};

/* What is none of these has no place in a file system. */
const u8 kbarman_file_kinds[16] = {
	[0] = BM_KBARMAN_OBJECT_ANON,
	[S_IFIFO >> 12] = BM_KBARMAN_OBJECT_PIPE,
	[S_IFCHR >> 12] = BM_KBARMAN_OBJECT_DEVICE,
	[3] = BM_KBARMAN_OBJECT_ANON,
	[S_IFDIR >> 12] = BM_KBARMAN_OBJECT_FILE,
	[5] = BM_KBARMAN_OBJECT_ANON,
	[S_IFBLK >> 12] = BM_KBARMAN_OBJECT_DEVICE,
	[7] = BM_KBARMAN_OBJECT_ANON,
	[S_IFREG >> 12] = BM_KBARMAN_OBJECT_FILE,
	[9 ... 11] = BM_KBARMAN_OBJECT_ANON,
	[S_IFSOCK >> 12] = BM_KBARMAN_OBJECT_SOCKET,
	[13 ... 15] = BM_KBARMAN_OBJECT_ANON,
};

/* Whether the session's owner may know who holds a lock for which the current task waits. */
static bool tells_holder(const struct kbarman_session *session)
{
	return session->peeks || kbarman_user_of(current_cred()) == session->who.user;
}

/* ---- futexes ---- */

/* The number in the first PID namespace of the thread that has @number in the task's; 0: it is not there. */
static u32 thread_of(u32 number)
{
	const struct task_struct *task;
	u32 found = 0;

	if (!number || kbarman_in_first_pid_namespace())
		return number;
	rcu_read_lock();
	task = pid_task(find_vpid(number), PIDTYPE_PID);
	if (task)
		found = task->pid;
	rcu_read_unlock();
	return found;
}

static u32 holder_of(unsigned long address, unsigned int operation, unsigned int value)
{
	u32 word = 0;

	if (kbarman_waits_for_mutex(operation, value))
		return thread_of(kbarman_mutex_owner(address));
	if (!kbarman_waits_for_pi(operation) || !kbarman_read_user(&word, address))
		return 0;
	return thread_of(word & FUTEX_TID_MASK);
}

/* ---- locks of Linux ---- */

#if defined(CONFIG_DETECT_HUNG_TASK_BLOCKER) && !defined(CONFIG_PREEMPT_RT)
static_assert(BM_KBARMAN_OBJECT_MUTEX + BLOCKER_TYPE_MUTEX == BM_KBARMAN_OBJECT_MUTEX &&
	      BM_KBARMAN_OBJECT_MUTEX + BLOCKER_TYPE_SEM == BM_KBARMAN_OBJECT_SEMAPHORE &&
	      BM_KBARMAN_OBJECT_MUTEX + BLOCKER_TYPE_RWSEM_READER == BM_KBARMAN_OBJECT_RWSEM_READ &&
	      BM_KBARMAN_OBJECT_MUTEX + BLOCKER_TYPE_RWSEM_WRITER == BM_KBARMAN_OBJECT_RWSEM_WRITE);

#define OWNER_FLAGS	7UL	/* lower bits of an owner, which Linux keeps to itself */
#define OWNER_READS	1UL	/* ... of an rwsem: who reads may have left */

/* The task can't be freed here: it had the lock a moment ago, and RCU frees tasks. */
static u32 lock_holder(void *lock, u8 kind)
{
	unsigned long owner = 0;
	const struct task_struct *task;

	if (kind == BM_KBARMAN_OBJECT_MUTEX)
		owner = atomic_long_read(&((struct mutex *)lock)->owner);
	else if (kind != BM_KBARMAN_OBJECT_SEMAPHORE)
		owner = atomic_long_read(&((struct rw_semaphore *)lock)->owner);
	if (kind != BM_KBARMAN_OBJECT_MUTEX && owner & OWNER_READS)
		return 0;
	task = (const struct task_struct *)(owner & ~OWNER_FLAGS);
	return task ? task->pid : 0;
}
#else
static u32 lock_holder(void *lock, u8 kind)
{
	return 0;
}
#endif

/* Of what may be in a call or, if @call is -1, in none. */
static u8 object_call_flags(int call)
{
	return call < 0 ? BM_KBARMAN_OBJECT_OUTSIDE : in_compat_syscall() ? BM_KBARMAN_OBJECT_COMPAT : 0;
}

static struct kbarman_object object_of_lock(const struct kbarman_session *session, u8 flags, int call)
{
	unsigned long blocker = kbarman_blocker();
	u8 kind = BM_KBARMAN_OBJECT_MUTEX + (blocker & BLOCKER_TYPE_MASK);
	void *lock = (void *)(blocker & ~BLOCKER_TYPE_MASK);

	return kbarman_object(kind, flags | object_call_flags(call), max(call, 0),
			      tells_holder(session) ? lock_holder(lock, kind) : 0,
			      session->kernel_addresses ? (unsigned long)lock : 0);
}

struct kbarman_object kbarman_object_here(const struct kbarman_session *session)
{
	struct pt_regs *regs = task_pt_regs(current);
	u8 flags = kbarman_object_flags();
	struct kbarman_object object;
	int call = kbarman_object_features ? kbarman_call(regs) : -1;
	unsigned long first;
	u64 address;

	if (kbarman_blocker())
		return object_of_lock(session, flags, call);
	if (kbarman_fault_here(session, &address))
		return kbarman_object(BM_KBARMAN_OBJECT_FAULT, flags | object_call_flags(call), max(call, 0), 0, address);
	if (call < 0)
		return kbarman_object(BM_KBARMAN_OBJECT_NO_CALL, flags, 0, 0, instruction_pointer(regs));
	first = kbarman_call_argument(regs, 0);
	if (in_compat_syscall()) {
		flags |= BM_KBARMAN_OBJECT_COMPAT;
	} else if (!current->mm) {
		/* It exits: of what it had there is the call alone. */
	} else if (call == __NR_futex) {
		return kbarman_object(BM_KBARMAN_OBJECT_FUTEX, flags, call,
				      tells_holder(session) ?
				      holder_of(first, kbarman_call_argument(regs, 1),
						kbarman_call_argument(regs, 2)) : 0, first);
	} else if (call < KBARMAN_CALLS && kbarman_waits_for[call] == FILE &&
		   kbarman_object_of_file(call, flags, first, &object)) {
		return object;
	}
	return kbarman_object(BM_KBARMAN_OBJECT_CALL, flags, call, first, kbarman_call_argument(regs, 1));
}

bool kbarman_object_of_waker(struct kbarman_object *object)
{
	struct pt_regs *regs = task_pt_regs(current);
	int call = kbarman_object_features ? kbarman_call(regs) : -1;

	if (call < 0)
		return false;
	*object = kbarman_object(BM_KBARMAN_OBJECT_CALL, in_compat_syscall() ? BM_KBARMAN_OBJECT_COMPAT : 0,
				 call, kbarman_call_argument(regs, 0), kbarman_call_argument(regs, 1));
	return true;
}
