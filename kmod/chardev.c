// SPDX-License-Identifier: GPL-2.0-only
#include <linux/capability.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/nospec.h>
#include <linux/poll.h>
#include <linux/security.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "capture/capture.h"
#include "capture/memory.h"
#include "capture/storage.h"
#include "capture/tables.h"
#include "capture/users.h"
#include "chardev.h"
#include "marks/marks.h"
#include "marks/rate.h"
#include "sessions/calls.h"
#include "sessions/descriptor.h"
#include "sessions/sessions.h"

#define MAX_ROWS	4096
#define MAX_IMAGE	4096

static const struct file_operations marker_file_operations;

/*
 * A descriptor without read permission gets file operations of its own, which can write marks and
 * nothing else.
 */
static int marker_open(struct inode *inode, struct file *file)
{
	struct kbarman_account *account = kbarman_account_open(file->f_cred);

	if (!account)
		return -ENOMEM;
	file->private_data = account;
	file->f_op = &marker_file_operations;	/* belongs to this module too, on which the file
						 * holds a reference */
	return nonseekable_open(inode, file);
}

static int kbarman_open(struct inode *inode, struct file *file)
{
	int error;

	/* The mode of the device file has already decided who may open for writing. */
	if (!(file->f_mode & FMODE_READ))
		return marker_open(inode, file);
	if (!perfmon_capable())
		return -EPERM;
	error = security_locked_down(LOCKDOWN_PERF);
	if (error)
		return error;
	file->private_data = kbarman_descriptor_open();
	return file->private_data ? nonseekable_open(inode, file) : -ENOMEM;
}

static int kbarman_release(struct inode *inode, struct file *file)
{
	kbarman_descriptor_close(file->private_data, file);
	return 0;
}

/* ---- ioctl ---- */

/* A struct of a call: the bytes that both the caller and this kernel know, and behind them zeroes. */
union argument {
	u32 size;
	struct kbarman_query query;
	struct kbarman_configure configure;
	struct kbarman_start start;
	struct kbarman_consume consume;
	struct kbarman_stats stats;
	struct kbarman_clock clock;
	struct kbarman_add_maps add_maps;
	struct kbarman_add_symbols add_symbols;
	struct kbarman_mark_series mark_series;
	struct kbarman_sessions sessions;
	struct kbarman_choose choose;
	struct kbarman_adopt adopt;
	struct kbarman_turn turn;
	struct kbarman_former former;
};

/* On whose descriptor a call is made. */
struct caller {
	struct file *file;
	struct kbarman_session *session;	/* that the descriptor sees, if the call uses it */
	struct kbarman_marks marks;
};

struct call {
	unsigned int command;	/* its size is the one that this kernel knows */
	u32 first;		/* the struct's first size: see "Structs" in the UAPI header */
	bool sees;		/* uses the session that the descriptor sees */
	long (*make)(const struct caller *caller, union argument *argument);
};

static long call_query(const struct caller *caller, union argument *argument)
{
	struct kbarman_query *query = &argument->query;
	u32 words = DIV_ROUND_UP(nr_cpu_ids, 64), room = min(query->nr_cpu_words, words);
	void __user *user = u64_to_user_ptr(query->cpus_ptr);
	u64 *cpus;
	int error;

	if (query->reserved)
		return -EINVAL;
	cpus = kcalloc(words, sizeof(*cpus), GFP_KERNEL);
	if (!cpus)
		return -ENOMEM;
	*query = (struct kbarman_query) { .size = query->size, .cpus_ptr = query->cpus_ptr,
					  .nr_cpu_words = words };
	error = kbarman_session_query(caller->session, caller->file, query, cpus, words);
	if (!error && copy_to_user(user, cpus, room * sizeof(*cpus)))
		error = -EFAULT;
	kfree(cpus);
	return error;
}

static long call_configure(const struct caller *caller, union argument *argument)
{
	struct kbarman_wanted wanted = { .config = argument->configure };
	long error;

	wanted.config.bad_offset = wanted.config.bad_index = wanted.config.bad_member = 0;
	error = kbarman_chardev_configure(caller->file, &wanted);
	argument->configure.event_bytes = sizeof(struct kbarman_event);
	argument->configure.bad_offset = wanted.config.bad_offset;
	argument->configure.bad_index = wanted.config.bad_index;
	argument->configure.bad_member = wanted.config.bad_member;
	return error;
}

static long call_start(const struct caller *caller, union argument *argument)
{
	struct kbarman_start *start = &argument->start;

	if (start->flags)
		return -EINVAL;
	start->event = ~0U;
	start->cpu = ~0U;
	return kbarman_session_start(caller->session, caller->file, start);
}

static long call_consume(const struct caller *caller, union argument *argument)
{
	struct kbarman_consume *consume = &argument->consume;
	struct kbarman_descriptor *descriptor = caller->file->private_data;
	const u64 __user *positions = u64_to_user_ptr(consume->positions_ptr);
	u32 i, count = consume->nr_positions;
	int error = 0;

	if (consume->reserved || count > nr_cpu_ids ||
	    (consume->cpu == KBARMAN_CPU_ALL ? !count && !consume->recording : count))
		return -EINVAL;
	if (!count)
		return kbarman_descriptor_consume(descriptor, caller->file, caller->session, consume);
	for (i = 0; i < count && !error; i++) {
		consume->cpu = i;
		if (copy_from_user(&consume->position, positions + i, sizeof(consume->position)))
			return -EFAULT;
		if (consume->position != KBARMAN_NO_POSITION)
			error = kbarman_descriptor_consume(descriptor, caller->file, caller->session,
							   consume);
	}
	return error;
}

static long call_turn(const struct caller *caller, union argument *argument)
{
	return kbarman_session_turn(caller->session, caller->file, argument->turn.turn);
}

static int stats_put_each(struct kbarman_session *session, const struct kbarman_stats *wanted)
{
	u32 cpu;
	int error = 0;

	for (cpu = 0; cpu < min(wanted->nr_each, nr_cpu_ids) && !error; cpu++) {
		struct kbarman_stats stats = { .size = sizeof(stats), .cpu = cpu };

		error = kbarman_session_stats(session, cpu, &stats);
		if (error == -EINVAL)
			stats = (struct kbarman_stats) { };
		if (!error || error == -EINVAL)
			error = kbarman_element_put(wanted->each_ptr, wanted->each_bytes, cpu, &stats,
						    sizeof(stats));
	}
	return error;
}

static long call_stats(const struct caller *caller, union argument *argument)
{
	const struct kbarman_stats wanted = argument->stats;
	struct kbarman_stats *stats = &argument->stats;
	int error;

	*stats = (struct kbarman_stats) { .size = wanted.size, .cpu = wanted.cpu,
					  .each_ptr = wanted.each_ptr, .nr_each = wanted.nr_each,
					  .each_bytes = sizeof(*stats) };
	if (wanted.nr_each && (wanted.cpu != KBARMAN_CPU_ALL ||
			       !kbarman_element_is_good(1, wanted.each_bytes, KBARMAN_STATS_SIZE_VER0)))
		return -EINVAL;
	error = kbarman_session_stats(caller->session, wanted.cpu, stats);
	return error ?: stats_put_each(caller->session, &wanted);
}

static long call_clock(const struct caller *caller, union argument *argument)
{
	if (argument->clock.flags)
		return -EINVAL;
	return kbarman_session_clock(caller->session, &argument->clock);
}

static int row_add_map(const struct caller *caller, const struct kbarman_map_row *row, char *image)
{
	if (!row->length || !row->image_length || row->image_length >= MAX_IMAGE)
		return -EINVAL;
	if (copy_from_user(image, u64_to_user_ptr(row->image_ptr), row->image_length))
		return -EFAULT;
	if (memchr(image, 0, row->image_length))
		return -EINVAL;
	return kbarman_session_add_map(caller->session, caller->file, row, image);
}

static long call_add_maps(const struct caller *caller, union argument *argument)
{
	struct kbarman_add_maps *request = &argument->add_maps;
	u32 bytes = request->row_bytes, count = request->count;
	struct kbarman_map_row row;
	char *image;
	int error;

	request->row_bytes = sizeof(row);
	request->count = 0;
	if (count > MAX_ROWS || request->reserved ||
	    !kbarman_element_is_good(count, bytes, KBARMAN_MAP_ROW_SIZE_VER0))
		return -EINVAL;
	error = kbarman_session_add_map(caller->session, caller->file, NULL, NULL);
	if (error)
		return error;
	image = kmalloc(MAX_IMAGE, GFP_KERNEL);
	if (!image)
		return -ENOMEM;
	while (!error && request->count < count) {
		error = kbarman_element_get(&row, sizeof(row), request->rows_ptr, bytes, request->count) ?:
			row_add_map(caller, &row, image);
		request->count += !error;
	}
	kfree(image);
	return error;
}

static long call_add_symbols(const struct caller *caller, union argument *argument)
{
	const u64 bytes = argument->add_symbols.bytes;
	struct kbarman_capture *capture;
	long error = 0;

	if (argument->add_symbols.flags || !bytes || bytes > KBARMAN_SYMBOLS_MAX)
		return -EINVAL;
	capture = kbarman_session_add_symbols(caller->session, caller->file, bytes);
	if (IS_ERR(capture))
		return PTR_ERR(capture);
	/* The caller's memory may be slow to come: nobody waits for that. A crash meanwhile leaves no symbols. */
	if (copy_from_user(capture->symbols + 1, u64_to_user_ptr(argument->add_symbols.bytes_ptr), bytes)) {
		error = -EFAULT;
	} else {
		smp_wmb();
		WRITE_ONCE(*capture->symbols, bytes);
	}
	kbarman_capture_put(capture);
	return error;
}

static long call_sessions(const struct caller *caller, union argument *argument)
{
	struct kbarman_session *found[KBARMAN_SLOTS];
	struct kbarman_sessions *request = &argument->sessions;
	u32 bytes = request->info_bytes, room = request->count, i;
	struct kbarman_session_info info;
	int error = 0;

	if (!kbarman_element_is_good(room, bytes, KBARMAN_SESSION_INFO_SIZE_VER0))
		return -EINVAL;
	request->info_bytes = sizeof(info);
	request->count = kbarman_sessions_all(found);
	request->most = kbarman_sessions_most();
	request->memory = kbarman_memory_of(kbarman_user_of(caller->file->f_cred));
	request->memory_limit = kbarman_memory_limit();
	for (i = 0; i < request->count; i++) {
		if (!error && i < room)
			error = kbarman_session_tell(found[i], caller->file, &info) ?:
				kbarman_element_put(request->sessions_ptr, bytes, i, &info, sizeof(info));
		kbarman_session_put(found[i]);
	}
	return error;
}

static long call_choose(const struct caller *caller, union argument *argument)
{
	const struct kbarman_choose *choose = &argument->choose;

	if (choose->flags & ~KBARMAN_CHOOSE_ONLY || (choose->flags && !choose->session))
		return -EINVAL;
	return kbarman_descriptor_choose(caller->file->private_data, choose->session,
					 choose->flags & KBARMAN_CHOOSE_ONLY);
}

static long call_adopt(const struct caller *caller, union argument *argument)
{
	if (argument->adopt.flags)
		return -EINVAL;
	return kbarman_descriptor_adopt(caller->file->private_data, caller->file,
					argument->adopt.session);
}

static long call_former(const struct caller *caller, union argument *argument)
{
	return kbarman_chardev_former(caller->file, &argument->former);
}

static long call_mark_series(const struct caller *caller, union argument *argument)
{
	if (memchr_inv(argument->mark_series.reserved, 0, sizeof(argument->mark_series.reserved)))
		return -EINVAL;
	return kbarman_marks_series(&caller->marks, &argument->mark_series);
}

#define CALL(NAME, name, sees) \
	[_IOC_NR(KBARMAN_##NAME) - _IOC_NR(KBARMAN_QUERY)] = { \
		KBARMAN_##NAME, KBARMAN_##NAME##_SIZE_VER0, sees, call_##name }

static const struct call calls[] = {
	CALL(QUERY, query, true),
	CALL(CONFIGURE, configure, false),
	CALL(START, start, true),
	CALL(CONSUME, consume, true),
	CALL(STATS, stats, true),
	CALL(CLOCK, clock, true),
	CALL(ADD_MAPS, add_maps, true),
	CALL(MARK_SERIES, mark_series, false),
	CALL(SESSIONS, sessions, false),
	CALL(CHOOSE, choose, false),
	CALL(ADOPT, adopt, false),
	CALL(TURN, turn, true),
	CALL(FORMER, former, false),
	CALL(ADD_SYMBOLS, add_symbols, true),
};

/* The call of that type, number and direction, whatever its struct's size is, or NULL. */
static const struct call *call_find(unsigned int command)
{
	unsigned int nr = _IOC_NR(command) - _IOC_NR(KBARMAN_QUERY);
	const struct call *call;

	if (nr >= ARRAY_SIZE(calls))
		return NULL;
	call = &calls[array_index_nospec(nr, ARRAY_SIZE(calls))];
	return call->make && !((call->command ^ command) & ~IOCSIZE_MASK) ? call : NULL;
}

/* See "Structs" in the UAPI header. */
static long call_make(const struct call *call, const struct caller *caller, unsigned int command,
		      void __user *user)
{
	u32 size = _IOC_SIZE(command), known = _IOC_SIZE(call->command);
	bool answers = _IOC_DIR(command) & _IOC_READ;
	union argument argument = { };
	long result;

	if (size < call->first)
		return -EINVAL;
	result = copy_struct_from_user(&argument, known, user, size);
	if (result && result != -E2BIG)
		return result;
	if (!result && argument.size != size)
		return -EINVAL;
	/* Nothing is done for a caller who can't be told of it. */
	if (answers && put_user(known, (u32 __user *)user))
		return -EFAULT;
	if (result)
		return result;
	argument.size = known;
	result = call->make(caller, &argument);
	if (answers && copy_to_user(user, &argument, min(size, known)))
		return -EFAULT;
	return result;
}

/* KBARMAN_GET_ABI: also what a tool of ABI 2 asks first. */
static long version_put(struct kbarman_get_abi __user *user)
{
	return put_user(KBARMAN_ABI, &user->abi);
}

static long kbarman_ioctl(struct file *file, unsigned int command, unsigned long user)
{
	const struct call *call = call_find(command);
	struct caller caller = {
		.file = file,
		.marks.only = kbarman_descriptor_own(file->private_data),
	};
	long result;

	if (command == KBARMAN_GET_ABI)
		return version_put((void __user *)user);
	if (command == KBARMAN_MARK_STATE)
		return user ? -EINVAL : kbarman_marks_state();
	if (!call && command != KBARMAN_STOP)
		return -ENOTTY;
	/* Whoever looks for memory must not hold the session that may have to give way. */
	if (!call || call->sees)
		caller.session = kbarman_descriptor_session(file->private_data);
	if (call)
		result = call_make(call, &caller, command, (void __user *)user);
	else
		result = user ? -EINVAL : kbarman_session_stop(caller.session, file);
	if (caller.session && kbarman_descriptor_is_stale(file->private_data, caller.session))
		result = -ESTALE;
	kbarman_session_put(caller.session);
	return result;
}

static __poll_t kbarman_poll(struct file *file, poll_table *wait)
{
	return kbarman_descriptor_poll(file->private_data, file, wait);
}

/* ---- marks ---- */

static ssize_t kbarman_write(struct kiocb *kiocb, struct iov_iter *from)
{
	return kbarman_marks_write(&(struct kbarman_marks) {
		.only = kbarman_descriptor_own(kiocb->ki_filp->private_data) }, from);
}

static ssize_t marker_write(struct kiocb *kiocb, struct iov_iter *from)
{
	return kbarman_marks_write(&(struct kbarman_marks) {
		.account = kiocb->ki_filp->private_data }, from);
}

static long marker_ioctl(struct file *file, unsigned int command, unsigned long user)
{
	const struct call *call = call_find(command);
	const struct caller caller = { .file = file, .marks.account = file->private_data };

	if (command == KBARMAN_MARK_STATE)
		return user ? -EINVAL : kbarman_marks_state();
	if (!call || call->command != KBARMAN_MARK_SERIES)
		return -EBADF;
	if (!kbarman_account_pay(caller.marks.account, 1))
		return -EBUSY;
	return call_make(call, &caller, command, (void __user *)user);
}

static int marker_release(struct inode *inode, struct file *file)
{
	kbarman_account_close(file->private_data);
	return 0;
}

static const struct file_operations marker_file_operations = {
	.owner = THIS_MODULE,
	.release = marker_release,
	.write_iter = marker_write,
	.unlocked_ioctl = marker_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

static const struct file_operations kbarman_file_operations = {
	.owner = THIS_MODULE,
	.open = kbarman_open,
	.release = kbarman_release,
	.write_iter = kbarman_write,
	.unlocked_ioctl = kbarman_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.poll = kbarman_poll,
	.mmap = kbarman_chardev_mmap,
};

static struct miscdevice kbarman_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "kbarman",
	.mode = 0600,
	.fops = &kbarman_file_operations,
};

int kbarman_chardev_init(void)
{
	return misc_register(&kbarman_device);
}

void kbarman_chardev_exit(void)
{
	misc_deregister(&kbarman_device);
}
