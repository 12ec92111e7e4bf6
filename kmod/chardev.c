// SPDX-License-Identifier: GPL-2.0-only
#include <linux/anon_inodes.h>
#include <linux/capability.h>
#include <linux/err.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/security.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "callchain.h"
#include "chardev.h"
#include "compat/mm.h"
#include "session.h"
#include "source_marker.h"

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
static int open_marker(struct inode *inode, struct file *file)
{
	struct kbarman_marker *marker = kbarman_marker_open(file->f_cred);

	if (!marker)
		return -ENOMEM;
	file->private_data = marker;
	file->f_op = &marker_file_operations;	/* belongs to this module too, on which the file
						 * holds a reference */
	return nonseekable_open(inode, file);
}

static int kbarman_open(struct inode *inode, struct file *file)
{
	int error;

	/* The mode of the device file has already decided who may open for writing. */
	if (!(file->f_mode & FMODE_READ))
		return open_marker(inode, file);
	if (!perfmon_capable())
		return -EPERM;
	error = security_locked_down(LOCKDOWN_PERF);
	if (error)
		return error;
	kbarman_session_open();
	return nonseekable_open(inode, file);
}

static int kbarman_release(struct inode *inode, struct file *file)
{
	kbarman_session_release(file);
	return 0;
}

/* ---- ioctl ---- */

/*
 * Copy a struct from user space. Its first field is its own size, as the caller knows the struct:
 * see "Structs" in the UAPI header. @known is the size that this kernel knows, which is still the
 * size of the first version.
 */
static int get_struct(void *to, size_t known, const void __user *from, u32 *size)
{
	if (get_user(*size, (const u32 __user *)from))
		return -EFAULT;
	if (*size < known)
		return -EINVAL;
	if (*size > PAGE_SIZE)
		return -E2BIG;
	return copy_struct_from_user(to, known, from, *size);
}

static int put_struct(void __user *to, const void *from, size_t known)
{
	return copy_to_user(to, from, known) ? -EFAULT : 0;
}

static bool all_zero(const void *bytes, size_t length)
{
	return !memchr_inv(bytes, 0, length);
}

#define reserved_zero(s)	all_zero((s)->reserved, sizeof((s)->reserved))

/*
 * Copy an array of @count elements from user address @user. The caller frees it with kvfree().
 * Returns NULL for no elements, or an ERR_PTR.
 */
static void *get_array(u64 user, size_t count, size_t element)
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

static long ioctl_query(struct file *file, void __user *argument)
{
	struct kbarman_query query;
	u32 size;
	int error = get_struct(&query, sizeof(query), argument, &size);

	if (error)
		return error;
	if (query.reserved0 || !reserved_zero(&query))
		return -EINVAL;
	memset(&query, 0, sizeof(query));
	query.size = size;
	kbarman_session_query(file, &query);
	return put_struct(argument, &query, sizeof(query));
}

static int check_config(const struct kbarman_configure *config)
{
	u32 flags = KBARMAN_CONFIGURE_FREQ | KBARMAN_CONFIGURE_FALLBACK |
		    KBARMAN_CONFIGURE_INHERIT | KBARMAN_CONFIGURE_CHAIN |
		    KBARMAN_CONFIGURE_CHAIN_SWITCH | KBARMAN_CONFIGURE_COUNT_SWITCH;
	bool counters = config->sources & KBARMAN_SOURCE_PMU;
	bool counts = config->flags & KBARMAN_CONFIGURE_COUNT_SWITCH || config->count_ns;

	if (config->flags & ~flags || config->sources & ~KBARMAN_SOURCE_ALL ||
	    config->mode > KBARMAN_MODE_STREAM || !reserved_zero(config))
		return -EINVAL;
	if (config->flags & KBARMAN_CONFIGURE_CHAIN_SWITCH &&
	    !(config->flags & KBARMAN_CONFIGURE_CHAIN && config->sources & KBARMAN_SOURCE_SCHED))
		return -EINVAL;
	if (config->max_stack && !(config->flags & KBARMAN_CONFIGURE_CHAIN))
		return -EINVAL;
	if (config->nr_events > BM_MAX_PMU_COUNTERS || config->nr_pids > MAX_PIDS ||
	    config->max_series > MAX_SERIES || config->max_stack > KBARMAN_MAX_STACK)
		return -E2BIG;
	if (config->ring_bytes && (config->ring_bytes < KBARMAN_RING_MIN ||
				   config->ring_bytes > KBARMAN_RING_MAX))
		return -EINVAL;
	if (config->watermark > KBARMAN_RING_MAX || config->max_tasks > INT_MAX ||
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

static int check_events(const struct kbarman_event *events, u32 count)
{
	u32 i;

	for (i = 0; i < count; i++)
		if (events[i].reserved || !events[i].name[0] ||
		    strnlen(events[i].name, sizeof(events[i].name)) == sizeof(events[i].name))
			return -EINVAL;
	return 0;
}

/* The CPUs of the __u64 words at cpus_ptr; all possible CPUs if there are no words. */
static int get_cpus(const struct kbarman_configure *config, struct cpumask *cpus)
{
	u32 words = config->nr_cpu_words, bit;
	u64 *mask;

	if (!words) {
		cpumask_copy(cpus, cpu_possible_mask);
		return 0;
	}
	if (words > MAX_CPU_WORDS)
		return -EINVAL;
	mask = get_array(config->cpus_ptr, words, sizeof(*mask));
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
	struct kbarman_configure config;
	struct kbarman_event *events;
	cpumask_var_t cpus;
	u32 *pids, size;
	int error = get_struct(&config, sizeof(config), argument, &size);

	if (error)
		return error;
	error = check_config(&config);
	if (error)
		return error;
	if (!alloc_cpumask_var(&cpus, GFP_KERNEL))
		return -ENOMEM;
	error = get_cpus(&config, cpus);
	if (error)
		goto err_cpus;
	events = get_array(config.events_ptr, config.nr_events, sizeof(*events));
	if (IS_ERR(events)) {
		error = PTR_ERR(events);
		goto err_cpus;
	}
	error = check_events(events, config.nr_events);
	if (error)
		goto err_events;
	pids = get_array(config.pids_ptr, config.nr_pids, sizeof(*pids));
	if (IS_ERR(pids)) {
		error = PTR_ERR(pids);
		goto err_events;
	}
	error = kbarman_session_configure(file, &config, events, cpus, pids);
	kvfree(pids);
err_events:
	kvfree(events);
err_cpus:
	free_cpumask_var(cpus);
	return error;
}

static long ioctl_start(struct file *file, void __user *argument)
{
	struct kbarman_start start;
	u32 size;
	int error = get_struct(&start, sizeof(start), argument, &size);

	if (error)
		return error;
	if (start.flags || !reserved_zero(&start))
		return -EINVAL;
	start.event = ~0U;
	start.cpu = ~0U;
	error = kbarman_session_start(file, &start);
	if (!put_struct(argument, &start, sizeof(start)))
		return error;
	/* The caller gets an error, so the session must not run. */
	if (!error)
		kbarman_session_stop(file);
	return -EFAULT;
}

static long ioctl_consume(struct file *file, void __user *argument)
{
	struct kbarman_consume consume;
	u32 size;
	int error = get_struct(&consume, sizeof(consume), argument, &size);

	if (error)
		return error;
	if (!reserved_zero(&consume))
		return -EINVAL;
	return kbarman_session_consume(file, consume.cpu, consume.position);
}

static long ioctl_stats(struct file *file, void __user *argument)
{
	struct kbarman_stats stats;
	u32 size, cpu;
	int error = get_struct(&stats, sizeof(stats), argument, &size);

	if (error)
		return error;
	if (!reserved_zero(&stats))
		return -EINVAL;
	cpu = stats.cpu;
	memset(&stats, 0, sizeof(stats));
	stats.size = size;
	stats.cpu = cpu;
	error = kbarman_session_stats(cpu, &stats);
	return error ?: put_struct(argument, &stats, sizeof(stats));
}

static long ioctl_clock(struct file *file, void __user *argument)
{
	struct kbarman_clock clock;
	u32 size;
	int error = get_struct(&clock, sizeof(clock), argument, &size);

	if (error)
		return error;
	if (clock.flags || !reserved_zero(&clock))
		return -EINVAL;
	error = kbarman_session_clock(&clock);
	return error ?: put_struct(argument, &clock, sizeof(clock));
}

static long ioctl_task_facts(struct file *file, void __user *argument)
{
	struct kbarman_capture *capture;
	struct kbarman_task_fact *facts;
	struct kbarman_task_facts request;
	u32 size;
	int error = get_struct(&request, sizeof(request), argument, &size);

	if (error)
		return error;
	if (request.reserved0 || !reserved_zero(&request))
		return -EINVAL;
	capture = kbarman_session_capture();
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
		error = put_struct(argument, &request, sizeof(request));
	kvfree(facts);
out:
	kbarman_capture_put(capture);
	return error;
}

static int add_map(struct file *file, const struct kbarman_map_row *row, char *image)
{
	if (!row->length || !row->image_length || row->image_length >= MAX_IMAGE)
		return -EINVAL;
	if (copy_from_user(image, u64_to_user_ptr(row->image_ptr), row->image_length))
		return -EFAULT;
	if (memchr(image, 0, row->image_length))
		return -EINVAL;
	return kbarman_session_add_map(file, row, image);
}

static long ioctl_add_maps(struct file *file, void __user *argument)
{
	struct kbarman_map_row *rows;
	struct kbarman_add_maps request;
	char *image;
	u32 size, i;
	int error = get_struct(&request, sizeof(request), argument, &size);

	if (error)
		return error;
	if (request.count > MAX_ROWS || !reserved_zero(&request))
		return -EINVAL;
	error = kbarman_session_check_owner(file);
	if (error)
		return error;
	rows = get_array(request.rows_ptr, request.count, sizeof(*rows));
	if (IS_ERR(rows))
		return PTR_ERR(rows);
	image = kmalloc(MAX_IMAGE, GFP_KERNEL);
	if (!image)
		error = -ENOMEM;
	for (i = 0; !error && i < request.count; i++)
		error = add_map(file, &rows[i], image);
	request.count = error ? max(i, 1U) - 1 : i;
	kfree(image);
	kvfree(rows);
	return put_struct(argument, &request, sizeof(request)) ?: error;
}

static long ioctl_mark_series(const struct kbarman_marker *marker, void __user *argument)
{
	struct kbarman_mark_series series;
	u32 size;
	int error = get_struct(&series, sizeof(series), argument, &size);

	if (error)
		return error;
	if (!reserved_zero(&series) || !all_zero(series.reserved0, sizeof(series.reserved0)) ||
	    series.reserved1)
		return -EINVAL;
	error = kbarman_marker_series(marker, &series);
	return error ?: put_struct(argument, &series, sizeof(series));
}

static long kbarman_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	void __user *user = (void __user *)argument;

	switch (command) {
	case KBARMAN_QUERY:
		return ioctl_query(file, user);
	case KBARMAN_CONFIGURE:
		return ioctl_configure(file, user);
	case KBARMAN_START:
		return ioctl_start(file, user);
	case KBARMAN_STOP:
		return argument ? -EINVAL : kbarman_session_stop(file);
	case KBARMAN_CONSUME:
		return ioctl_consume(file, user);
	case KBARMAN_STATS:
		return ioctl_stats(file, user);
	case KBARMAN_CLOCK:
		return ioctl_clock(file, user);
	case KBARMAN_TASK_FACTS:
		return ioctl_task_facts(file, user);
	case KBARMAN_ADD_MAPS:
		return ioctl_add_maps(file, user);
	case KBARMAN_MARK_STATE:
		return argument ? -EINVAL : kbarman_marker_state();
	case KBARMAN_MARK_SERIES:
		return ioctl_mark_series(NULL, user);
	}
	return -ENOTTY;
}

static __poll_t kbarman_poll(struct file *file, poll_table *wait)
{
	return kbarman_session_poll(file, wait);
}

/* ---- mmap ---- */

/*
 * A mapping shows a capture, not the device. Each mapping has a file of its own that holds a
 * reference to the capture. So the descriptor can be closed and the session can be configured again
 * while the mapping exists. Page faults insert the pages one by one: pages that vm_insert_page()
 * had inserted in advance would be lost for good after MADV_DONTNEED.
 *
 * This needs f_op->mmap, which Linux calls deprecated since 6.17 and does not complain of.
 * f_op->mmap_prepare can set the flags and the operations. It may also replace the file, but who
 * drops the new file if the mapping fails has changed more than once (6.17: nobody, a leak), and no
 * header shows it, so that no probe can tell. Without the replacement a mapping would hold the
 * descriptor, and closing it would not stop the session. vm_ops->mapped, which could take a
 * reference instead, does not change that.
 */
static int capture_release(struct inode *inode, struct file *file)
{
	kbarman_capture_put(file->private_data);
	return 0;
}

static const struct file_operations capture_file_operations = {
	.owner = THIS_MODULE,
	.release = capture_release,
	.llseek = noop_llseek,
};

static int vma_refuse_split(struct vm_area_struct *vma, unsigned long address)
{
	return -EINVAL;
}

static int vma_refuse_mremap(struct vm_area_struct *vma)
{
	return -EINVAL;
}

static vm_fault_t vma_fault(struct vm_fault *fault)
{
	struct kbarman_capture *capture = fault->vma->vm_file->private_data;
	u64 start = (u64)fault->vma->vm_pgoff << PAGE_SHIFT;
	struct page *page;

	if (fault->flags & (FAULT_FLAG_WRITE | FAULT_FLAG_MKWRITE))
		return VM_FAULT_SIGBUS;
	page = kbarman_capture_page(capture, div64_u64(start, capture->layout.map_bytes),
				    fault->address - fault->vma->vm_start);
	if (!page)
		return VM_FAULT_SIGBUS;
	get_page(page);
	fault->page = page;
	return 0;
}

static const struct vm_operations_struct kbarman_vm_operations = {
	.KBARMAN_MAY_SPLIT = vma_refuse_split,
	.mremap = vma_refuse_mremap,
	.fault = vma_fault,
};

static int check_range(const struct kbarman_capture *capture, const struct vm_area_struct *vma)
{
	u64 start = (u64)vma->vm_pgoff << PAGE_SHIFT;
	u64 cpu, offset;

	if (vma->vm_end - vma->vm_start != capture->layout.map_bytes)
		return -EINVAL;
	cpu = div64_u64_rem(start, capture->layout.map_bytes, &offset);
	if (offset || cpu >= capture->layout.max_cores)
		return -EINVAL;
	/*
	 * The ring's memory is complete if the pointer is set. Pairs with the release in
	 * kbarman_capture_add_ring().
	 */
	if (!smp_load_acquire(&capture->rings[cpu]))
		return -EINVAL;
	return 0;
}

static int kbarman_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct kbarman_capture *capture;
	struct file *shown;
	int error;

	if (vma->vm_flags & (VM_WRITE | VM_EXEC))
		return -EPERM;
	capture = kbarman_session_capture();
	if (!capture)
		return -EINVAL;
	/* The opener of this descriptor may have fewer rights than the session's owner. */
	error = -EPERM;
	if (capture->kernel_addresses && !file_ns_capable(file, &init_user_ns, CAP_SYSLOG))
		goto err_capture;
	error = check_range(capture, vma);
	if (error)
		goto err_capture;
	shown = anon_inode_getfile("[kbarman]", &capture_file_operations, capture, O_RDONLY);
	if (IS_ERR(shown)) {
		error = PTR_ERR(shown);
		goto err_capture;
	}
	kbarman_vma_set_file(vma, shown);
	fput(shown);
	kbarman_vm_flags_clear(vma, VM_MAYWRITE | VM_MAYEXEC);
	kbarman_vm_flags_set(vma, VM_DONTEXPAND | VM_DONTDUMP);
	vma->vm_ops = &kbarman_vm_operations;
	return 0;

err_capture:
	kbarman_capture_put(capture);
	return error;
}

/* ---- marks ---- */

static ssize_t kbarman_write(struct kiocb *kiocb, struct iov_iter *from)
{
	return kbarman_marker_write(NULL, from);
}

static ssize_t marker_write(struct kiocb *kiocb, struct iov_iter *from)
{
	return kbarman_marker_write(kiocb->ki_filp->private_data, from);
}

static long marker_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	switch (command) {
	case KBARMAN_MARK_STATE:
		return argument ? -EINVAL : kbarman_marker_state();
	case KBARMAN_MARK_SERIES:
		if (!kbarman_marker_may(file->private_data))
			return -EBUSY;
		return ioctl_mark_series(file->private_data, (void __user *)argument);
	}
	return -EBADF;
}

static int marker_release(struct inode *inode, struct file *file)
{
	kbarman_marker_close(file->private_data);
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
	.mmap = kbarman_mmap,
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
