// SPDX-License-Identifier: GPL-2.0-only
/* Recordings of former boots, in memory that survives a reset: KBARMAN_FORMER. */
#include <linux/anon_inodes.h>
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/err.h>
#include <linux/fcntl.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/uidgid.h>
#include <linux/user_namespace.h>

#include "capture/reserved.h"
#include "chardev.h"
#include "uapi/kbarman.h"
#include "uapi/stamp.h"

static ssize_t former_read(struct file *file, char __user *user, size_t count, loff_t *offset)
{
	const struct kbarman_stamp *stamp = kbarman_former_stamp(file->private_data);

	return simple_read_from_buffer(user, count, offset, stamp, stamp->bytes);
}

static loff_t former_llseek(struct file *file, loff_t offset, int whence)
{
	return fixed_size_llseek(file, offset, whence, kbarman_former_stamp(file->private_data)->bytes);
}

static int former_close(struct inode *inode, struct file *file)
{
	kbarman_former_put(file->private_data);
	return 0;
}

static const struct file_operations former_file_operations = {
	.owner = THIS_MODULE,
	.read = former_read,
	.llseek = former_llseek,
	.release = former_close,
};

/* A descriptor that has @half from now on, or a negative errno. */
static int former_open(struct kbarman_half *half)
{
	int fd = get_unused_fd_flags(O_CLOEXEC);
	struct file *file;

	if (fd < 0)
		return fd;
	file = anon_inode_getfile("[kbarman-former]", &former_file_operations, half, O_RDONLY);
	if (IS_ERR(file)) {
		put_unused_fd(fd);
		return PTR_ERR(file);
	}
	file->f_mode |= FMODE_LSEEK | FMODE_PREAD;
	fd_install(fd, file);
	return fd;
}

static kuid_t former_user(const struct kbarman_stamp *stamp)
{
	return make_kuid(&init_user_ns, (uid_t)stamp->uid);
}

static bool may_know_user(struct file *file, const struct kbarman_stamp *stamp)
{
	return uid_eq(file->f_cred->uid, former_user(stamp)) || file_ns_capable(file, &init_user_ns, CAP_SYS_PTRACE);
}

static bool may_read(struct file *file, const struct kbarman_stamp *stamp)
{
	/* What was nobody's is for those who could have taken it by KBARMAN_ADOPT. */
	return (!uid_valid(former_user(stamp)) || may_know_user(file, stamp)) &&
	       (!(stamp->flags & KBARMAN_STAMP_KERNEL) || file_ns_capable(file, &init_user_ns, CAP_SYSLOG));
}

static void former_tell(struct kbarman_former *former, struct file *file, const struct kbarman_stamp *stamp)
{
	former->address = stamp->address;
	former->bytes = stamp->bytes;
	former->capture = stamp->capture;
	former->began_ns = stamp->began_ns;
	former->uid = may_know_user(file, stamp) ? from_kuid(current_user_ns(), former_user(stamp)) : ~0U;
	former->end = kbarman_stamp_end(stamp);
}

int kbarman_chardev_former(struct file *file, struct kbarman_former *former)
{
	const u64 meant = former->capture;
	const struct kbarman_stamp *stamp;
	struct kbarman_half *half;
	int error = 0;

	if (!kbarman_reserved_bytes())
		return -EOPNOTSUPP;
	if (former->flags & ~(KBARMAN_FORMER_OPEN | KBARMAN_FORMER_RELEASE) ||
	    former->flags == (KBARMAN_FORMER_OPEN | KBARMAN_FORMER_RELEASE))
		return -EINVAL;
	former->fd = -1;
	half = kbarman_former_get(former->number);
	if (!half)
		return -ENOENT;
	stamp = kbarman_former_stamp(half);
	former_tell(former, file, stamp);
	if (former->flags && !may_read(file, stamp)) {
		error = -EPERM;
	} else if (former->flags & KBARMAN_FORMER_RELEASE) {
		error = meant != stamp->capture ? -ESTALE : kbarman_former_release(half);
	} else if (former->flags & KBARMAN_FORMER_OPEN) {
		error = former_open(half);
		if (error >= 0) {
			former->fd = error;
			return 0;
		}
	}
	kbarman_former_put(half);
	return error;
}
