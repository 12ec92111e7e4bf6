/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a task of a program waits for when it leaves its CPU, and by what it wakes others. It is read from the
 * registers with which the task entered the kernel, its table of files, and the word of its lock. Nothing is
 * held.
 *
 * Context of all functions but the last: the probe of task switches, where the task that leaves is still the current
 * one and its memory is there. Preemption is off, so what RCU frees stays.
 */
#ifndef KBARMAN_OBJECT_H
#define KBARMAN_OBJECT_H

#include <linux/compat.h>
#include <linux/fdtable.h>
#include <linux/fs.h>
#include <linux/sched/task_stack.h>
#include <asm/syscall.h>

#include "ring/record.h"
#include "session.h"
#include "sources/holder.h"

#ifdef PF_IO_WORKER
#define KBARMAN_PF_IO_WORKER	PF_IO_WORKER
#else
#define KBARMAN_PF_IO_WORKER	0
#endif
#ifdef PF_USER_WORKER
#define KBARMAN_PF_USER_WORKER	PF_USER_WORKER
#else
#define KBARMAN_PF_USER_WORKER	0
#endif

/* KBARMAN_FEATURE_OBJECTS, if this architecture has it. */
extern const u32 kbarman_object_features;

/* What a system call waits for, by its number. */
enum kbarman_waits_for {
	KBARMAN_WAITS,			/* not known: its arguments are what can be told */
	KBARMAN_WAITS_FOR_FILE,		/* the descriptor that is its first argument */
	KBARMAN_WAITS_FOR_FUTEX,
};

#define KBARMAN_CALLS	512
extern const u8 kbarman_waits_for[KBARMAN_CALLS];
extern const u8 kbarman_file_kinds[16];	/* by the upper bits of i_mode */

/* Whether it is a task of Linux. Workers of io_uring and vhost have registers of whoever began them. */
static __always_inline bool kbarman_is_kernels(void)
{
	return current->flags & (PF_KTHREAD | KBARMAN_PF_IO_WORKER | KBARMAN_PF_USER_WORKER);
}

/*
 * Programs that the kernel starts have no registers, nor memory, before they are there. Tasks that exit lose their
 * memory, then their files, and keep their registers; in @prev_state TASK_DEAD they wait for nothing.
 */
static __always_inline bool kbarman_has_object(unsigned int prev_state)
{
	if (kbarman_is_kernels())
		return false;
	return likely(current->mm) || (current->flags & PF_EXITING && !(prev_state & TASK_DEAD) &&
				       user_mode(task_pt_regs(current)));
}

/* The number of the call; -1: the task is in none. */
static __always_inline int kbarman_call(struct pt_regs *regs)
{
#ifdef CONFIG_RISCV
	/* It has the number of any entry. */
	if (regs->cause != EXC_SYSCALL)
		return -1;
#endif
	return syscall_get_nr(current, regs);
}

/* An argument of the call. Linux has a function for all six alone, which copies them. */
static __always_inline unsigned long kbarman_call_argument(struct pt_regs *regs, unsigned int i)
{
#if defined(CONFIG_X86_64)
	return i == 0 ? regs->di : i == 1 ? regs->si : regs->dx;
#elif defined(CONFIG_ARM64)
	return i == 0 ? regs->orig_x0 : regs->regs[i];
#else
	unsigned long arguments[6];

	syscall_get_arguments(current, regs, arguments);
	return arguments[i];
#endif
}

/* Whether the call is one of the machine's other kind of programs. Those of x32 have large numbers. */
static __always_inline bool kbarman_call_is_compat(void)
{
#ifdef CONFIG_X86_64
	return in_ia32_syscall();
#else
	return in_compat_syscall();
#endif
}

static __always_inline u8 kbarman_object_flags(void)
{
	return current->in_iowait ? BM_KBARMAN_OBJECT_IOWAIT : 0;
}

/* The lock of Linux for which the task waits, and its type in the lower bits; 0: none, or it is not told. */
static __always_inline unsigned long kbarman_blocker(void)
{
	/* PREEMPT_RT has other locks. */
#if defined(CONFIG_DETECT_HUNG_TASK_BLOCKER) && !defined(CONFIG_PREEMPT_RT)
	return current->blocker;
#else
	return 0;
#endif
}

/* Of descriptor @fd. False: it has no file any more. */
static __always_inline bool kbarman_object_of_file(u16 call, u8 flags, unsigned int fd,
						   struct kbarman_object *object)
{
	struct file *file = files_lookup_fd_raw(current->files, fd);
	const struct inode *inode = file ? READ_ONCE(file->f_inode) : NULL;
	u8 kind;
	u32 id = fd;

	static_assert(BM_KBARMAN_OBJECT_FILE < BM_KBARMAN_OBJECT_DEVICE);

	if (unlikely(!inode))
		return false;
	kind = kbarman_file_kinds[inode->i_mode >> 12];
	if (kind <= BM_KBARMAN_OBJECT_DEVICE)
		id = kind == BM_KBARMAN_OBJECT_FILE ? inode->i_sb->s_dev : inode->i_rdev;
	*object = kbarman_object(kind, flags, call, id, inode->i_ino);
	return true;
}

/* Of a lock. False: who holds it takes more to know. */
static __always_inline bool kbarman_object_of_futex(const struct kbarman_cpu *here, u16 call,
						    struct pt_regs *regs, struct kbarman_object *object)
{
	unsigned long address = kbarman_call_argument(regs, 0);
	unsigned int operation = kbarman_call_argument(regs, 1);
	u32 holder = 0;

	if (kbarman_waits_for_mutex(operation, kbarman_call_argument(regs, 2))) {
		if (!here->session->peeks || !kbarman_in_first_pid_namespace())
			return false;
		holder = kbarman_mutex_owner(address);
	} else if (kbarman_waits_for_pi(operation)) {
		return false;
	}
	*object = kbarman_object(BM_KBARMAN_OBJECT_FUTEX, 0, call, holder, address);
	return true;
}

/* What the call of the current task is about, which @waits for it or not. False: it takes more to know. */
static __always_inline bool kbarman_object_of_call(const struct kbarman_cpu *here, bool waits,
						   struct kbarman_object *object)
{
	struct pt_regs *regs = task_pt_regs(current);
	unsigned int call = kbarman_call(regs);
	unsigned long first = kbarman_call_argument(regs, 0);

	if (unlikely(!current->mm || call >= KBARMAN_CALLS || kbarman_call_is_compat()))
		return false;
	switch (kbarman_waits_for[call]) {
	case KBARMAN_WAITS:
		*object = kbarman_object(BM_KBARMAN_OBJECT_CALL, 0, call, first, kbarman_call_argument(regs, 1));
		return true;
	case KBARMAN_WAITS_FOR_FILE:
		return kbarman_object_of_file(call, 0, first, object);
	default:
		if (waits)
			return kbarman_object_of_futex(here, call, regs, object);
		*object = kbarman_object(BM_KBARMAN_OBJECT_FUTEX, 0, call, 0, first);
		return true;
	}
}

/*
 * The object of the current task, which is not kbarman_is_kernels(), if that takes no function to be called:
 * the short way, which most waits take. False: kbarman_object_here() has it, if there is one.
 */
static __always_inline bool kbarman_object_short(const struct kbarman_cpu *here, struct kbarman_object *object)
{
	return likely(!current->in_iowait && !kbarman_blocker()) && kbarman_object_of_call(here, true, object);
}

/* Of the current task, for which kbarman_has_object(), in all cases. */
struct kbarman_object kbarman_object_here(const struct kbarman_session *session);

/* The address of the fault in which the current task is, if @session records faults. False: it is in none. */
bool kbarman_fault_here(const struct kbarman_session *session, u64 *address);

/*
 * The call in which the current task is, for which kbarman_has_object(), and what the call is about: where
 * kbarman_object_of_call() does not know. False: it is in none. Context: preemption off, in a task or a softirq.
 */
bool kbarman_object_of_waker(struct kbarman_object *object);

#endif /* KBARMAN_OBJECT_H */
