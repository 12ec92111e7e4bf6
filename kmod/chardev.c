// SPDX-License-Identifier: GPL-2.0-only
#include <linux/capability.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
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
#include "chardev_map.h"
#include "marks/marks.h"
#include "marks/rate.h"
#include "ring/ring.h"
#include "sessions/calls.h"
#include "sessions/descriptor.h"
#include "sessions/sessions.h"
#include "stacks/callchain.h"

#define MAX_PIDS	4096
#define MAX_ROWS	4096
#define MAX_IMAGE	4096
#define MAX_FACTS	4096	/* per call */
#define MAX_CPU_WORDS	1024	/* independent of NR_CPUS, which callers need not know */
#define MAX_SERIES	4096

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

/*
 * Copy a struct from user space. Its first field is its own size, as the caller knows the struct:
 * see "Structs" in the UAPI header. @known is the size that this kernel knows, which is still the
 * size of the first version.
 */
static int struct_get(void *to, size_t known, const void __user *from, u32 *size)
{
	if (get_user(*size, (const u32 __user *)from))
		return -EFAULT;
	if (*size < known)
		return -EINVAL;
	if (*size > PAGE_SIZE)
		return -E2BIG;
	return copy_struct_from_user(to, known, from, *size);
}

static int struct_put(void __user *to, const void *from, size_t known)
{
	return copy_to_user(to, from, known) ? -EFAULT : 0;
}

static bool bytes_are_zero(const void *bytes, size_t length)
{
	return !memchr_inv(bytes, 0, length);
}

#define reserved_zero(s)	bytes_are_zero((s)->reserved, sizeof((s)->reserved))

/*
 * Copy an array of @count elements from user address @user. The caller frees it with kvfree().
 * Returns NULL for no elements, or an ERR_PTR.
 */
static void *array_get(u64 user, size_t count, size_t element)
{
	void *array;

	if (!count)
		return NULL;
	array = kvmalloc_array(count, element, GFP_KERNEL);
	if (!array)
		return ERR_PTR(-ENOMEM);
	if (copy_from_user(array, u64_to_user_ptr(user), count * element)) {
		kvfree(array);
		return ERR_PTR(-EFAULT);
	}
	return array;
}

static long ioctl_query(struct file *file, struct kbarman_session *session, void __user *argument)
{
	struct kbarman_query query;
	u32 size;
	int error = struct_get(&query, sizeof(query), argument, &size);

	if (error)
		return error;
	if (query.reserved0 || !reserved_zero(&query))
		return -EINVAL;
	memset(&query, 0, sizeof(query));
	query.size = size;
	error = kbarman_session_query(session, file, &query);
	return error ?: struct_put(argument, &query, sizeof(query));
}

static int config_check(const struct kbarman_configure *config)
{
	u32 flags = KBARMAN_CONFIGURE_FREQ | KBARMAN_CONFIGURE_FALLBACK |
		    KBARMAN_CONFIGURE_INHERIT | KBARMAN_CONFIGURE_CHAIN |
		    KBARMAN_CONFIGURE_CHAIN_SWITCH | KBARMAN_CONFIGURE_COUNT_SWITCH |
		    KBARMAN_CONFIGURE_PER_CORE | KBARMAN_CONFIGURE_REUSE;
	bool counters = config->sources & KBARMAN_SOURCE_PMU;
	bool counts = config->flags & KBARMAN_CONFIGURE_COUNT_SWITCH || config->count_ns;

	if (config->flags & ~flags || config->sources & ~KBARMAN_SOURCE_ALL ||
	    config->mode > KBARMAN_MODE_STREAM || !reserved_zero(config))
		return -EINVAL;
	if (config->flags & KBARMAN_CONFIGURE_REUSE && config->mode != KBARMAN_MODE_STREAM)
		return -EINVAL;
	if (config->flags & KBARMAN_CONFIGURE_CHAIN_SWITCH &&
	    !(config->flags & KBARMAN_CONFIGURE_CHAIN && config->sources & KBARMAN_SOURCE_SCHED))
		return -EINVAL;
	if (config->stack_bytes > (config->flags & KBARMAN_CONFIGURE_CHAIN_STACK ?
				    KBARMAN_MAX_STACK_BYTES : 0))
		return -EINVAL;
	if (config->stack_ns && !(config->flags & KBARMAN_CONFIGURE_CHAIN_STACK))
		return -EINVAL;
	if (config->turn_ms && (!(config->flags & KBARMAN_CONFIGURE_COUNT_SWITCH) ||
				config->turn_ms < KBARMAN_TURN_MS_MIN ||
				config->turn_ms > KBARMAN_TURN_MS_MAX))
		return -EINVAL;
	if (config->max_stack && !(config->flags & KBARMAN_CONFIGURE_CHAIN))
		return -EINVAL;
	if (config->nr_events > BM_MAX_PMU_COUNTERS || config->nr_pids > MAX_PIDS ||
	    config->max_series > MAX_SERIES || config->max_stack > KBARMAN_MAX_STACK)
		return -E2BIG;
	if (config->ring_bytes && (config->ring_bytes < KBARMAN_RING_MIN ||
				   config->ring_bytes > KBARMAN_RING_MAX))
		return -EINVAL;
	if (config->max_tasks > INT_MAX ||
	    config->max_maps > INT_MAX || config->max_strings > INT_MAX)
		return -EINVAL;
	if (counters != (config->nr_events > 0) || counters != (config->sample > 0 || counts))
		return -EINVAL;
	if (config->count_ns && (config->count_ns < KBARMAN_COUNT_NS_MIN ||
				 config->count_ns > KBARMAN_COUNT_NS_MAX))
		return -EINVAL;
	if (config->flags & KBARMAN_CONFIGURE_FREQ && config->sample > U32_MAX)
		return -EINVAL;
	if (strnlen(config->target_name, sizeof(config->target_name)) ==
	    sizeof(config->target_name))
		return -EINVAL;
	return 0;
}

/* Events of one group take turns together or not at all. The first one, which samples, does not. */
static bool turns_are_valid(const struct kbarman_configure *config,
			    const struct kbarman_event *events)
{
	u32 i, turns = 0;

	for (i = 0; i < config->nr_events; i++) {
		if (events[i].flags & KBARMAN_EVENT_GROUP) {
			if ((events[i].flags ^ events[i - 1].flags) & KBARMAN_EVENT_TURN)
				return false;
		} else if (events[i].flags & KBARMAN_EVENT_TURN) {
			turns++;
		}
	}
	return config->turn_ms ? turns > 1 && !(events->flags & KBARMAN_EVENT_TURN) : !turns;
}

/*
 * Without turns KBARMAN_EVENT_GROUP changes nothing: counters are pinned, and so all of them count
 * at the same time.
 */
static int events_check(const struct kbarman_configure *config, const struct kbarman_event *events)
{
	u32 flags = KBARMAN_EVENT_NO_USER | KBARMAN_EVENT_NO_KERNEL | KBARMAN_EVENT_NO_HV |
		    KBARMAN_EVENT_PRECISE | KBARMAN_EVENT_TURN;
	u32 i;

	for (i = 0; i < config->nr_events; i++) {
		if (events[i].flags & ~flags || !events[i].name[0] ||
		    strnlen(events[i].name, sizeof(events[i].name)) == sizeof(events[i].name))
			return -EINVAL;
		/* Of all events but the first one. */
		flags |= KBARMAN_EVENT_GROUP;
	}
	return turns_are_valid(config, events) ? 0 : -EINVAL;
}

/* The CPUs of the __u64 words at cpus_ptr; all possible CPUs if there are no words. */
static int config_get_cpus(const struct kbarman_configure *config, struct cpumask *cpus)
{
	u32 words = config->nr_cpu_words, bit;
	u64 *mask;

	if (!words) {
		cpumask_copy(cpus, cpu_possible_mask);
		return 0;
	}
	if (words > MAX_CPU_WORDS)
		return -EINVAL;
	mask = array_get(config->cpus_ptr, words, sizeof(*mask));
	if (IS_ERR(mask))
		return PTR_ERR(mask);
	cpumask_clear(cpus);
	for (bit = 0; bit < words * 64; bit++) {
		if (!(mask[bit / 64] >> (bit % 64) & 1))
			continue;
		if (bit >= nr_cpu_ids || !cpu_possible(bit))
			break;
		cpumask_set_cpu(bit, cpus);
	}
	kvfree(mask);
	return bit < words * 64 || cpumask_empty(cpus) ? -EINVAL : 0;
}

static long ioctl_configure(struct file *file, void __user *argument)
{
	struct kbarman_wanted wanted;
	struct kbarman_event *events;
	u32 *pids, size;
	int error = struct_get(&wanted.config, sizeof(wanted.config), argument, &size);

	if (error)
		return error;
	error = config_check(&wanted.config);
	if (error)
		return error;
	if (!alloc_cpumask_var(&wanted.cpus, GFP_KERNEL))
		return -ENOMEM;
	error = config_get_cpus(&wanted.config, wanted.cpus);
	if (error)
		goto err_cpus;
	events = array_get(wanted.config.events_ptr, wanted.config.nr_events, sizeof(*events));
	if (IS_ERR(events)) {
		error = PTR_ERR(events);
		goto err_cpus;
	}
	error = events_check(&wanted.config, events);
	if (error)
		goto err_events;
	pids = array_get(wanted.config.pids_ptr, wanted.config.nr_pids, sizeof(*pids));
	if (IS_ERR(pids)) {
		error = PTR_ERR(pids);
		goto err_events;
	}
	wanted.events = events;
	wanted.pids = pids;
	error = kbarman_descriptor_configure(file->private_data, file, &wanted);
	kvfree(pids);
err_events:
	kvfree(events);
err_cpus:
	free_cpumask_var(wanted.cpus);
	return error;
}

static long ioctl_start(struct file *file, struct kbarman_session *session, void __user *argument)
{
	struct kbarman_start start;
	u32 size;
	int error = struct_get(&start, sizeof(start), argument, &size);

	if (error)
		return error;
	if (start.flags || !reserved_zero(&start))
		return -EINVAL;
	start.event = ~0U;
	start.cpu = ~0U;
	error = kbarman_session_start(session, file, &start);
	if (!struct_put(argument, &start, sizeof(start)))
		return error;
	/* The caller gets an error, so the session must not run. */
	if (!error)
		kbarman_session_stop(session, file);
	return -EFAULT;
}

static long ioctl_consume(struct file *file, struct kbarman_session *session,
			  void __user *argument)
{
	struct kbarman_consume consume;
	u32 size;
	int error = struct_get(&consume, sizeof(consume), argument, &size);

	if (error)
		return error;
	if (!reserved_zero(&consume))
		return -EINVAL;
	return kbarman_session_consume(session, file, consume.cpu, consume.position);
}

static long ioctl_stats(struct kbarman_session *session, void __user *argument)
{
	struct kbarman_stats stats;
	u32 size, cpu;
	int error = struct_get(&stats, sizeof(stats), argument, &size);

	if (error)
		return error;
	if (!reserved_zero(&stats))
		return -EINVAL;
	cpu = stats.cpu;
	memset(&stats, 0, sizeof(stats));
	stats.size = size;
	stats.cpu = cpu;
	error = kbarman_session_stats(session, cpu, &stats);
	return error ?: struct_put(argument, &stats, sizeof(stats));
}

static long ioctl_clock(struct kbarman_session *session, void __user *argument)
{
	struct kbarman_clock clock;
	u32 size;
	int error = struct_get(&clock, sizeof(clock), argument, &size);

	if (error)
		return error;
	if (clock.flags || !reserved_zero(&clock))
		return -EINVAL;
	error = kbarman_session_clock(session, &clock);
	return error ?: struct_put(argument, &clock, sizeof(clock));
}

static long ioctl_task_facts(struct kbarman_session *session, void __user *argument)
{
	struct kbarman_capture *capture;
	struct kbarman_task_fact *facts;
	struct kbarman_task_facts request;
	u32 size;
	int error = struct_get(&request, sizeof(request), argument, &size);

	if (error)
		return error;
	if (request.reserved0 || !reserved_zero(&request))
		return -EINVAL;
	capture = kbarman_session_capture(session);
	if (!capture)
		return -EINVAL;
	request.count = min_t(u32, request.count, MAX_FACTS);
	facts = kvcalloc(request.count, sizeof(*facts), GFP_KERNEL);
	error = -ENOMEM;
	if (!facts)
		goto out;
	request.count = kbarman_tables_task_facts(capture, request.first, request.count, facts);
	error = -EFAULT;
	if (!copy_to_user(u64_to_user_ptr(request.facts_ptr), facts,
			  request.count * sizeof(*facts)))
		error = struct_put(argument, &request, sizeof(request));
	kvfree(facts);
out:
	kbarman_capture_put(capture);
	return error;
}

static int row_add_map(struct file *file, struct kbarman_session *session,
		       const struct kbarman_map_row *row, char *image)
{
	if (!row->length || !row->image_length || row->image_length >= MAX_IMAGE)
		return -EINVAL;
	if (copy_from_user(image, u64_to_user_ptr(row->image_ptr), row->image_length))
		return -EFAULT;
	if (memchr(image, 0, row->image_length))
		return -EINVAL;
	return kbarman_session_add_map(session, file, row, image);
}

static long ioctl_add_maps(struct file *file, struct kbarman_session *session,
			   void __user *argument)
{
	struct kbarman_map_row *rows;
	struct kbarman_add_maps request;
	char *image;
	u32 size, i;
	int error = struct_get(&request, sizeof(request), argument, &size);

	if (error)
		return error;
	if (request.count > MAX_ROWS || !reserved_zero(&request))
		return -EINVAL;
	error = kbarman_session_check_owner(session, file);
	if (error)
		return error;
	rows = array_get(request.rows_ptr, request.count, sizeof(*rows));
	if (IS_ERR(rows))
		return PTR_ERR(rows);
	image = kmalloc(MAX_IMAGE, GFP_KERNEL);
	if (!image)
		error = -ENOMEM;
	for (i = 0; !error && i < request.count; i++)
		error = row_add_map(file, session, &rows[i], image);
	request.count = error ? max(i, 1U) - 1 : i;
	kfree(image);
	kvfree(rows);
	return struct_put(argument, &request, sizeof(request)) ?: error;
}

static long ioctl_sessions(struct file *file, void __user *argument)
{
	struct kbarman_session *found[KBARMAN_SLOTS];
	struct kbarman_session_info info;
	struct kbarman_sessions request;
	u32 size, room, i;
	int error = struct_get(&request, sizeof(request), argument, &size);

	if (error)
		return error;
	if (request.reserved0 || !reserved_zero(&request))
		return -EINVAL;
	room = request.count;
	request.count = kbarman_sessions_all(found);
	request.most = kbarman_sessions_most();
	request.memory = kbarman_memory_of(kbarman_user_of(file->f_cred));
	request.memory_limit = kbarman_memory_limit();
	for (i = 0; i < request.count; i++) {
		if (!error && i < room) {
			error = kbarman_session_tell(found[i], file, &info) ?:
				struct_put(u64_to_user_ptr(request.sessions_ptr) + i * sizeof(info),
					   &info, sizeof(info));
		}
		kbarman_session_put(found[i]);
	}
	return error ?: struct_put(argument, &request, sizeof(request));
}

static long ioctl_choose(struct file *file, void __user *argument)
{
	struct kbarman_choose choose;
	u32 size;
	int error = struct_get(&choose, sizeof(choose), argument, &size);

	if (error)
		return error;
	if (choose.flags || !reserved_zero(&choose))
		return -EINVAL;
	return kbarman_descriptor_choose(file->private_data, choose.session);
}

static long ioctl_adopt(struct file *file, void __user *argument)
{
	struct kbarman_adopt adopt;
	u32 size;
	int error = struct_get(&adopt, sizeof(adopt), argument, &size);

	if (error)
		return error;
	if (adopt.flags || !reserved_zero(&adopt))
		return -EINVAL;
	return kbarman_descriptor_adopt(file->private_data, file, adopt.session);
}

static long ioctl_mark_series(const struct kbarman_marks *marks, void __user *argument)
{
	struct kbarman_mark_series series;
	u32 size;
	int error = struct_get(&series, sizeof(series), argument, &size);

	if (error)
		return error;
	if (!reserved_zero(&series) ||
	    !bytes_are_zero(series.reserved0, sizeof(series.reserved0)) || series.reserved1)
		return -EINVAL;
	error = kbarman_marks_series(marks, &series);
	return error ?: struct_put(argument, &series, sizeof(series));
}

static long session_ioctl(struct file *file, struct kbarman_session *session,
			  unsigned int command, unsigned long argument)
{
	void __user *user = (void __user *)argument;

	switch (command) {
	case KBARMAN_QUERY:
		return ioctl_query(file, session, user);
	case KBARMAN_START:
		return ioctl_start(file, session, user);
	case KBARMAN_STOP:
		return argument ? -EINVAL : kbarman_session_stop(session, file);
	case KBARMAN_CONSUME:
		return ioctl_consume(file, session, user);
	case KBARMAN_STATS:
		return ioctl_stats(session, user);
	case KBARMAN_CLOCK:
		return ioctl_clock(session, user);
	case KBARMAN_TASK_FACTS:
		return ioctl_task_facts(session, user);
	case KBARMAN_ADD_MAPS:
		return ioctl_add_maps(file, session, user);
	}
	return -ENOTTY;
}

static long kbarman_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	struct kbarman_session *session;
	long result;

	switch (command) {
	case KBARMAN_CONFIGURE:
		return ioctl_configure(file, (void __user *)argument);
	case KBARMAN_SESSIONS:
		return ioctl_sessions(file, (void __user *)argument);
	case KBARMAN_CHOOSE:
		return ioctl_choose(file, (void __user *)argument);
	case KBARMAN_ADOPT:
		return ioctl_adopt(file, (void __user *)argument);
	case KBARMAN_MARK_STATE:
		return argument ? -EINVAL : kbarman_marks_state();
	case KBARMAN_MARK_SERIES:
		return ioctl_mark_series(&(struct kbarman_marks) {
			.only = kbarman_descriptor_own(file->private_data) },
			(void __user *)argument);
	}
	session = kbarman_descriptor_session(file->private_data);
	result = session_ioctl(file, session, command, argument);
	kbarman_session_put(session);
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

static long marker_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	const struct kbarman_marks marks = { .account = file->private_data };

	switch (command) {
	case KBARMAN_MARK_STATE:
		return argument ? -EINVAL : kbarman_marks_state();
	case KBARMAN_MARK_SERIES:
		if (!kbarman_account_pay(marks.account, 1))
			return -EBUSY;
		return ioctl_mark_series(&marks, (void __user *)argument);
	}
	return -EBADF;
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
