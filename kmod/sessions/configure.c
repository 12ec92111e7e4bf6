// SPDX-License-Identifier: GPL-2.0-only
/* What a session wants, and the memory that it takes. */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/utsname.h>

#include "capture/capture.h"
#include "capture/memory.h"
#include "capture/reserved.h"
#include "capture/storage.h"
#include "capture/users.h"
#include "ring/record.h"
#include "session.h"
#include "sessions/calls.h"
#include "sessions/chosen.h"
#include "sessions/rings.h"
#include "sessions/sessions.h"
#include "sessions/attach.h"
#include "sources/object.h"
#include "stacks/callchain.h"

#define DEFAULT_TASKS	16384
#define TASKS_A_CPU	16		/* Linux has some 10 threads of its own for each */
#define DEFAULT_MAPS	65536
#define DEFAULT_STRINGS	(4U << 20)
#define LEAST_TASKS	512		/* these three, if no other size is given and the room is small */
#define LEAST_MAPS	1024
#define LEAST_STRINGS	(64U << 10)

static unsigned long default_ring_bytes = 1UL << 20;
module_param_named(ring_bytes, default_ring_bytes, ulong, 0644);
MODULE_PARM_DESC(ring_bytes, "Bytes of a CPU's ring if the session sets none (default 1 MiB)");

/* KBARMAN_CONFIGURE_CHAIN_* of which this session's chains consist: user frames, or stacks. */
static u32 config_chain_parts(const struct kbarman_session *session)
{
	u32 parts = session->config.flags & KBARMAN_CONFIGURE_CHAIN;

	if (parts & KBARMAN_CONFIGURE_CHAIN_STACK)
		parts &= ~KBARMAN_CONFIGURE_CHAIN_USER;
	return session->kernel_addresses ? parts : parts & ~KBARMAN_CONFIGURE_CHAIN_KERNEL;
}

/* The longest block is a sample with all counters and the longest chain. */
static bool session_chains_fit(const struct kbarman_session *session)
{
	const struct kbarman_configure *config = &session->config;
	u64 longest = sizeof(bm_uintptr) + sizeof(struct bm_protocol_sample) + sizeof(bm_uintptr) +
		      min_t(u32, config->nr_events, BM_MAX_PMU_COUNTERS) * sizeof(u64) +
		      kbarman_callchain_max(session);

	return !(config->flags & KBARMAN_CONFIGURE_CHAIN) || longest <= config->ring_bytes / 8;
}

/* What is allocated for a CPU, in Linux's memory. */
static u64 session_ring_memory(const struct kbarman_session *session)
{
	const struct kbarman_configure *config = &session->config;

	return (config->flags & KBARMAN_CONFIGURE_RESERVED ? 0 : config->ring_bytes) + kbarman_callchain_memory(session);
}

/*
 * A ring for each CPU. One that is not present yet gets its ring at the start, or when it comes
 * online. What is allocated is not promised any more.
 */
static int session_add_rings(struct kbarman_session *session, u64 *promised)
{
	u64 bytes = session_ring_memory(session);
	int cpu, error;

	for_each_cpu_and(cpu, session->cpus, cpu_present_mask) {
		error = kbarman_rings_add(session, cpu);
		if (error)
			return error;
		bytes = min(bytes, *promised);
		kbarman_memory_keep(bytes);
		*promised -= bytes;
	}
	return 0;
}

static int session_allocate_promised(struct kbarman_session *session,
				     const struct kbarman_layout *layout, u64 *promised)
{
	const struct kbarman_configure *config = &session->config;
	u64 bytes = kbarman_layout_memory(layout);
	struct kbarman_capture *capture;
	int error;

	capture = kbarman_capture_create(layout, config->mode == KBARMAN_MODE_OVERWRITE ||
					 config->flags & KBARMAN_CONFIGURE_REUSE, session->who.user);
	if (IS_ERR(capture))
		return PTR_ERR(capture);
	kbarman_memory_keep(bytes);
	*promised -= bytes;
	capture->kernel_addresses = session->kernel_addresses;
	capture->sources = config->sources;
	if (capture->half)
		kbarman_half_stamp(capture->half, capture->beacon, __kuid_val(session->who.uid),
				   session->kernel_addresses);
	/* A ring may be full for the longest block when it lacks an eighth. */
	capture->watermark = min(config->watermark, config->ring_bytes / 8 * 7);
	kbarman_session_set_capture(session, capture);
	error = session_add_rings(session, promised);
	if (!error)
		kbarman_capture_reset(capture, config->target_name, 0);
	return error;
}

static struct kbarman_layout config_layout(const struct kbarman_configure *config)
{
	return (struct kbarman_layout) {
		.max_cores = nr_cpu_ids,
		.max_tasks = config->max_tasks,
		.max_maps = config->max_maps,
		.max_strings = config->max_strings,
		.max_series = KBARMAN_SERIES_COUNT + config->max_series,
		.ring_bytes = config->ring_bytes,
		.reserved = config->flags & KBARMAN_CONFIGURE_RESERVED,
	};
}

static int session_allocate(struct kbarman_session *session, struct kbarman_wanted *wanted)
{
	struct kbarman_layout layout = config_layout(&session->config);
	unsigned int rings = 0;
	int cpu, error;
	u64 promised;

	if (!session_chains_fit(session))
		return KBARMAN_REFUSE(&wanted->config, max_stack, E2BIG);
	error = kbarman_layout_init(&layout);
	if (error)
		return error;
	/* Those of CPUs that come later, too. */
	if (layout.reserved && kbarman_layout_reserved(&layout, cpumask_weight(session->cpus)) > kbarman_reserved_bytes())
		return KBARMAN_REFUSE(&wanted->config, ring_bytes, ENOSPC);
	for_each_cpu_and(cpu, session->cpus, cpu_present_mask)
		rings++;
	/* Refuse now a configuration that would use up the machine's memory later. */
	promised = rings * session_ring_memory(session) + kbarman_layout_memory(&layout);
	error = kbarman_memory_promise(promised);
	if (error)
		return error;
	error = session_allocate_promised(session, &layout, &promised);
	kbarman_memory_keep(promised);
	return error ?: kbarman_chosen_allocate(session, wanted);
}

/* Half of @size, which nobody has @given and which is larger than @least. False: it stays. */
static bool config_halve(u32 *size, u32 given, u32 least)
{
	if (given || *size <= least)
		return false;
	*size /= 2;
	return true;
}

/* Sizes that are not @given become smaller: those of tables, if that is @wanted of them. False: none can. */
static bool config_shrink(struct kbarman_configure *config, const struct kbarman_configure *given, bool wanted)
{
	if (wanted && (config_halve(&config->max_maps, given->max_maps, LEAST_MAPS) |
		       config_halve(&config->max_strings, given->max_strings, LEAST_STRINGS) |
		       config_halve(&config->max_tasks, given->max_tasks, LEAST_TASKS)))
		return true;
	if (given->ring_bytes || config->ring_bytes <= KBARMAN_RING_MIN)
		return false;
	config->ring_bytes /= 2;
	return true;
}

/*
 * Sizes that are not @given are as large as fits into reserved memory, with half of it for the tables. Room is left for
 * symbols, of which nobody has said yet whether they come.
 */
static void config_fit(struct kbarman_configure *config, const struct kbarman_configure *given, unsigned int rings)
{
	const u64 all = kbarman_reserved_bytes(), room = all - min_t(u64, all / 8, KBARMAN_SYMBOLS_MAX);
	struct kbarman_layout layout;

	do {
		layout = config_layout(config);
		if (!kbarman_layout_init(&layout) && kbarman_layout_reserved(&layout, rings) <= room)
			return;
	} while (config_shrink(config, given, layout.header_bytes > room / 2));
}

static void config_fill_defaults(struct kbarman_configure *config, const struct cpumask *cpus)
{
	const struct kbarman_configure given = *config;

	if (!config->ring_bytes)
		config->ring_bytes = config->flags & KBARMAN_CONFIGURE_RESERVED ? KBARMAN_RING_MAX :
				     default_ring_bytes;
	config->ring_bytes = roundup_pow_of_two(clamp_t(u64, config->ring_bytes,
							KBARMAN_RING_MIN, KBARMAN_RING_MAX));
	if (!config->max_tasks)
		config->max_tasks = max_t(u32, DEFAULT_TASKS, nr_cpu_ids * TASKS_A_CPU);
	if (!config->max_maps)
		config->max_maps = DEFAULT_MAPS;
	if (!config->max_strings)
		config->max_strings = DEFAULT_STRINGS;
	if (config->flags & KBARMAN_CONFIGURE_RESERVED)
		config_fit(config, &given, cpumask_weight(cpus));
	if (!config->watermark)
		config->watermark = config->ring_bytes / 4;
	if (config->flags & KBARMAN_CONFIGURE_CHAIN && !config->max_stack)
		config->max_stack = KBARMAN_DEFAULT_STACK;
	if (config->flags & KBARMAN_CONFIGURE_CHAIN_STACK && !config->stack_bytes)
		config->stack_bytes = KBARMAN_DEFAULT_STACK_BYTES;
	if (!config->target_name[0])
		strscpy(config->target_name, init_uts_ns.name.nodename,
			sizeof(config->target_name));
}

static bool config_flags_possible(u32 flags)
{
	if (flags & KBARMAN_CONFIGURE_OBJECTS && !kbarman_object_features)
		return false;
	if (flags & KBARMAN_CONFIGURE_RESERVED && !kbarman_reserved_bytes())
		return false;
	if (flags & KBARMAN_CONFIGURE_CHAIN_STACK) {
		if (!(kbarman_callchain_features & KBARMAN_FEATURE_CHAIN_STACK))
			return false;
	} else if (flags & KBARMAN_CONFIGURE_CHAIN_USER &&
		   !(kbarman_callchain_features & KBARMAN_FEATURE_CHAIN_USER)) {
		return false;
	}
	return !(flags & KBARMAN_CONFIGURE_CHAIN_KERNEL) ||
	       kbarman_callchain_features & KBARMAN_FEATURE_CHAIN_KERNEL;
}

/* Without its tasks nothing can be recorded. */
static bool config_sources_possible(const struct kbarman_configure *config)
{
	u32 needed = config->sources | KBARMAN_ABSENT_TASKS;

	if (config->flags & KBARMAN_CONFIGURE_COUNT_SWITCH)
		needed |= KBARMAN_SOURCE_SCHED;
	return !(needed & kbarman_sources_absent());
}

/* What is built in @spare, which nobody else sees. */
static int spare_build(struct kbarman_session *spare, const struct kbarman_session *session,
		       struct kbarman_wanted *wanted, const struct cred *cred,
		       bool kernel_addresses)
{
	int error;

	mutex_lock(&spare->lock);
	spare->wake = session->wake;
	spare->who.user = kbarman_user_of(cred);
	spare->kernel_addresses = kernel_addresses;
	spare->peeks = cred->user_ns == &init_user_ns && cap_raised(cred->cap_effective, CAP_SYS_PTRACE);
	spare->config = wanted->config;
	config_fill_defaults(&spare->config, wanted->cpus);
	if (spare->config.watermark > spare->config.ring_bytes) {
		error = KBARMAN_REFUSE(&wanted->config, watermark, EINVAL);
		goto out;
	}
	spare->events = kvcalloc(wanted->config.nr_events, sizeof(*spare->events),
				 GFP_KERNEL_ACCOUNT);
	error = -ENOMEM;
	if (wanted->config.nr_events && !spare->events)
		goto out;
	memcpy(spare->events, wanted->events, wanted->config.nr_events * sizeof(*wanted->events));
	cpumask_copy(spare->cpus, wanted->cpus);
	spare->chain_parts = config_chain_parts(spare);
	error = session_allocate(spare, wanted);
out:
	mutex_unlock(&spare->lock);
	return error;
}

/* The caller, with @cred, has the session from now on. */
static void session_take_owner(struct kbarman_session *session, struct file *file,
			       const struct cred *cred)
{
	struct kbarman_owner *who = &session->who;

	session->owner = file;
	put_pid(who->pid);
	who->pid = get_pid(task_tgid(current));
	who->uid = cred->uid;
	get_task_comm(who->comm, current->group_leader);
}

/* @session is what was built in @spare, and @spare what @session was. */
static void session_exchange(struct kbarman_session *session, struct kbarman_session *spare)
{
	int cpu;

	lockdep_assert_held(&session->lock);
	swap(session->config, spare->config);
	session->peeks = spare->peeks;
	swap(session->chain_parts, spare->chain_parts);
	swap(session->tasks, spare->tasks);
	swap(session->pids, spare->pids);
	swap(session->each, spare->each);
	for_each_possible_cpu(cpu)
		per_cpu_ptr(session->each, cpu)->session = session;
	swap(session->events, spare->events);
	cpumask_copy(session->cpus, spare->cpus);
	session->who.user = spare->who.user;
	session->kernel_addresses = spare->kernel_addresses;
	spin_lock(&session->capture_lock);
	swap(session->capture, spare->capture);
	spin_unlock(&session->capture_lock);

	session->recording_id = 0;
	session->fallback = false;
	session->unsteady = false;
	memset(&session->started, 0, sizeof(session->started));
	memset(&session->stopped, 0, sizeof(session->stopped));
}

static bool may_see_kernel_addresses(struct file *file)
{
	return file ? file_ns_capable(file, &init_user_ns, CAP_SYSLOG) : capable(CAP_SYSLOG);
}

/*
 * All that takes long is done without the session's lock: others may look at what it was. An error
 * leaves it as it was.
 */
int kbarman_session_configure(struct kbarman_session *session, struct file *file,
			      struct kbarman_wanted *wanted)
{
	const struct cred *cred = file ? file->f_cred : current_cred();
	struct kbarman_session *spare;
	int error;

	if (!config_flags_possible(wanted->config.flags))
		return KBARMAN_REFUSE(&wanted->config, flags, EOPNOTSUPP);
	if (!config_sources_possible(&wanted->config))
		return KBARMAN_REFUSE(&wanted->config, sources, EOPNOTSUPP);
	if (READ_ONCE(session->running))
		return -EBUSY;
	spare = kbarman_session_spare();
	if (!spare)
		return -ENOMEM;
	/* What begins with the module is nobody's: a stamp says so. */
	spare->who.uid = file ? cred->uid : INVALID_UID;
	error = spare_build(spare, session, wanted, cred, may_see_kernel_addresses(file));
	if (error)
		goto out;
	error = mutex_lock_killable(&session->lock);
	if (error)
		goto out;
	error = -EBUSY;
	if (!session->running) {
		session_exchange(session, spare);
		session_take_owner(session, file, cred);
		/* Chosen again now, for those who ask for the clock before the start. */
		kbarman_clocks_hold();
		kbarman_clocks_release();
		kbarman_sessions_list(session);
		WRITE_ONCE(session->capture->session, session->id);
		kbarman_rings_sign(session);
		error = 0;
	}
	mutex_unlock(&session->lock);
out:
	kbarman_session_drop_spare(spare);
	return error;
}

int kbarman_session_adopt(struct kbarman_session *session, struct file *file)
{
	int error = mutex_lock_killable(&session->lock);

	if (error)
		return error;
	if (session->kernel_addresses && !may_see_kernel_addresses(file))
		error = -EPERM;
	else
		session_take_owner(session, file, file->f_cred);
	mutex_unlock(&session->lock);
	return error;
}
