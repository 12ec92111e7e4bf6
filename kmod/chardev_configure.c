// SPDX-License-Identifier: GPL-2.0-only
/* KBARMAN_CONFIGURE: what a configuration may be, and the arrays that belong to it. */
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/perf_event.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "chardev.h"
#include "ring/ring.h"
#include "sessions/calls.h"
#include "sessions/descriptor.h"
#include "stacks/callchain.h"

#define MAX_PIDS	4096
#define MAX_CPU_WORDS	1024	/* independent of NR_CPUS, which callers need not know */
#define MAX_SERIES	4096

/*
 * Copy an array of @count numbers from the user address in the field of @config at @offset. The
 * caller frees it with kvfree(). Returns NULL for no elements, or an ERR_PTR.
 */
static void *array_get(struct kbarman_configure *config, size_t offset, size_t count, size_t element)
{
	u64 user = *(u64 *)((char *)config + offset);
	void *array;

	if (!count)
		return NULL;
	array = kvmalloc_array(count, element, GFP_KERNEL);
	if (!array)
		return ERR_PTR(-ENOMEM);
	if (copy_from_user(array, u64_to_user_ptr(user), count * element)) {
		kvfree(array);
		config->bad_offset = offset;
		return ERR_PTR(-EFAULT);
	}
	return array;
}

static bool counts_between_samples(const struct kbarman_configure *config)
{
	return config->flags & KBARMAN_CONFIGURE_COUNT_SWITCH || config->count_ns;
}

/* What each field may be, and what goes together with what. Zero has a meaning of its own. */
static int config_check(struct kbarman_configure *config)
{
	u32 flags = config->flags, sources = config->sources;
	bool chains = flags & KBARMAN_CONFIGURE_CHAIN, stacks = flags & KBARMAN_CONFIGURE_CHAIN_STACK;
	bool counters = sources & KBARMAN_SOURCE_PMU;

#define CHECK(field, condition, error) do {				\
	if (!(condition))						\
		return KBARMAN_REFUSE(config, field, error);		\
} while (0)
#define CHECK_RANGE(field, first, last)					\
	CHECK(field, !config->field || (config->field >= (first) && config->field <= (last)), EINVAL)
#define CHECK_NEEDS(field, needed)	CHECK(field, !config->field || (needed), EINVAL)
#define CHECK_FLAG(flag, needed)						\
	CHECK(flags, !(flags & KBARMAN_CONFIGURE_##flag) || (needed), EINVAL)

	CHECK(flags, !(flags & ~KBARMAN_CONFIGURE_ALL), EINVAL);
	CHECK(mode, config->mode <= KBARMAN_MODE_STREAM, EINVAL);
	CHECK(sources, sources && !(sources & ~KBARMAN_SOURCE_ALL), EINVAL);
	CHECK(nr_events, config->nr_events <= KBARMAN_EVENTS_MAX, E2BIG);
	CHECK(nr_pids, config->nr_pids <= MAX_PIDS, E2BIG);
	CHECK(max_series, config->max_series <= MAX_SERIES, E2BIG);
	CHECK(max_stack, config->max_stack <= KBARMAN_MAX_STACK, E2BIG);
	CHECK(nr_cpu_words, config->nr_cpu_words <= MAX_CPU_WORDS, EINVAL);
	CHECK_RANGE(ring_bytes, KBARMAN_RING_MIN, KBARMAN_RING_MAX);
	/* Together they fit into a header, whose length has 32 bits. */
	CHECK_RANGE(max_tasks, KBARMAN_TASKS_MIN, SZ_1G / sizeof(struct bm_protocol_header_task_info));
	CHECK_RANGE(max_maps, 1, SZ_1G / sizeof(struct bm_protocol_header_mmap_layout));
	CHECK_RANGE(max_strings, 1, SZ_1G);
	CHECK_RANGE(stack_bytes, 1, KBARMAN_MAX_STACK_BYTES);
	CHECK_RANGE(count_ns, KBARMAN_COUNT_NS_MIN, KBARMAN_COUNT_NS_MAX);
	CHECK(target_name, memchr(config->target_name, 0, sizeof(config->target_name)), EINVAL);

	CHECK(nr_events, counters == (config->nr_events > 0), EINVAL);
	CHECK(nr_events, counters || !counts_between_samples(config), EINVAL);
	CHECK_FLAG(REUSE, config->mode == KBARMAN_MODE_STREAM);
	CHECK_FLAG(INHERIT, config->nr_pids);
	CHECK_FLAG(OBJECTS, sources & KBARMAN_SOURCE_SCHED);
	CHECK_FLAG(CHAIN_SWITCH, chains && sources & KBARMAN_SOURCE_SCHED);
	CHECK_NEEDS(max_stack, chains);
	CHECK_NEEDS(stack_bytes, stacks);
	CHECK_NEEDS(stack_ns, stacks);
	CHECK_NEEDS(max_series, sources & KBARMAN_SOURCE_MARKS);
#undef CHECK_FLAG
#undef CHECK_NEEDS
#undef CHECK_RANGE
#undef CHECK
	return 0;
}

/* Which parts of @given are taken: see struct kbarman_event in the UAPI header. */
static bool attr_is_valid(const struct perf_event_attr *given)
{
	const struct perf_event_attr taken = {
		.type = given->type,
		.size = given->size,
		.config = given->config,
		.config1 = given->config1,
		.config2 = given->config2,
#ifdef PERF_ATTR_SIZE_VER8
		.config3 = given->config3,
#endif
#ifdef PERF_ATTR_SIZE_VER9
		.config4 = given->config4,
#endif
		.sample_period = given->sample_period,
		.freq = given->freq,
		.precise_ip = given->precise_ip,
		.exclude_user = given->exclude_user,
		.exclude_kernel = given->exclude_kernel,
		.exclude_hv = given->exclude_hv,
		.exclude_idle = given->exclude_idle,
		.exclude_host = given->exclude_host,
		.exclude_guest = given->exclude_guest,
	};
	u32 size = given->size ?: PERF_ATTR_SIZE_VER0;

	/* perf would take a larger period for a negative number. */
	return !memcmp(&taken, given, sizeof(taken)) && given->sample_period <= S64_MAX &&
	       (given->sample_period || !(given->freq || given->precise_ip)) &&
	       (size >= sizeof(*given) ||
		!memchr_inv((const char *)given + size, 0, sizeof(*given) - size));
}

static int event_refuse(struct kbarman_configure *config, u32 event, size_t member, int error)
{
	config->bad_index = event;
	config->bad_member = member;
	return KBARMAN_REFUSE(config, events_ptr, error);
}

static int event_check(struct kbarman_configure *config, const struct kbarman_event *event, u32 i)
{
	u32 size = event->attr.size ?: PERF_ATTR_SIZE_VER0;

	if (size < PERF_ATTR_SIZE_VER0 || size > sizeof(event->attr_bytes) ||
	    memchr_inv(event->attr_bytes + sizeof(event->attr), 0,
		       sizeof(event->attr_bytes) - sizeof(event->attr)))
		return event_refuse(config, i, offsetof(struct kbarman_event, attr), E2BIG);
	if (event->flags & ~(KBARMAN_EVENT_ELSE | KBARMAN_EVENT_OPTIONAL | KBARMAN_EVENT_FALLBACK))
		return event_refuse(config, i, offsetof(struct kbarman_event, flags), EINVAL);
	if (event->turn > KBARMAN_TURNS_MAX || (event->turn && event->attr.sample_period))
		return event_refuse(config, i, offsetof(struct kbarman_event, turn), EINVAL);
	if (!event->name[0] || !memchr(event->name, 0, sizeof(event->name)))
		return event_refuse(config, i, offsetof(struct kbarman_event, name), EINVAL);
	return attr_is_valid(&event->attr) ? 0 :
	       event_refuse(config, i, offsetof(struct kbarman_event, attr), EINVAL);
}

/* What the events are together. */
static int events_check(struct kbarman_configure *config, const struct kbarman_event *events)
{
	bool samples = false, turns = false;
	u32 i, counters = 0;

	for (i = 0; i < config->nr_events; i++) {
		counters += !(events[i].flags & KBARMAN_EVENT_ELSE);
		turns |= events[i].turn;
		samples |= events[i].attr.sample_period;
		if (!counters || (counters > 1 && events[i].attr.sample_period))
			return event_refuse(config, i, !counters ? offsetof(struct kbarman_event, flags) :
							offsetof(struct kbarman_event, attr), EINVAL);
	}
	if (counters > BM_MAX_PMU_COUNTERS)
		return KBARMAN_REFUSE(config, nr_events, E2BIG);
	if ((turns && !(config->flags & KBARMAN_CONFIGURE_COUNT_SWITCH)) ||
	    (counters && !samples && !counts_between_samples(config)) ||
	    (!samples && config->flags & KBARMAN_CONFIGURE_CHAIN &&
	     !(config->flags & KBARMAN_CONFIGURE_CHAIN_SWITCH)))
		return KBARMAN_REFUSE(config, flags, EINVAL);
	return 0;
}

/* The caller frees the result with kvfree(), or it is an ERR_PTR. */
static struct kbarman_event *events_get(struct kbarman_configure *config)
{
	u32 bytes = config->event_bytes, i;
	struct kbarman_event *events;
	int error = 0;

	if (!kbarman_element_is_good(config->nr_events, bytes, KBARMAN_EVENT_SIZE_VER0))
		return ERR_PTR(KBARMAN_REFUSE(config, event_bytes, EINVAL));
	events = kvcalloc(config->nr_events, sizeof(*events), GFP_KERNEL);
	if (!events)
		return ERR_PTR(-ENOMEM);
	for (i = 0; i < config->nr_events && !error; i++) {
		error = kbarman_element_get(&events[i], sizeof(*events), config->events_ptr, bytes, i);
		error = error ? event_refuse(config, i, error == -E2BIG ? sizeof(*events) : 0, -error) :
				event_check(config, &events[i], i);
	}
	if (!error)
		error = events_check(config, events);
	if (!error)
		return events;
	kvfree(events);
	return ERR_PTR(error);
}

/* The CPUs of the __u64 words at cpus_ptr; all possible CPUs if there are no words. */
static int config_get_cpus(struct kbarman_configure *config, struct cpumask *cpus)
{
	u32 words = config->nr_cpu_words, bit;
	u64 *mask;

	if (!words) {
		cpumask_copy(cpus, cpu_possible_mask);
		return 0;
	}
	mask = array_get(config, offsetof(struct kbarman_configure, cpus_ptr), words, sizeof(*mask));
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
	if (bit == words * 64 && !cpumask_empty(cpus))
		return 0;
	config->bad_index = bit < words * 64 ? bit : 0;
	return KBARMAN_REFUSE(config, cpus_ptr, EINVAL);
}

int kbarman_chardev_configure(struct file *file, struct kbarman_wanted *wanted)
{
	struct kbarman_configure *config = &wanted->config;
	struct kbarman_event *events;
	u32 *pids;
	int error = config_check(config);

	if (error)
		return error;
	if (!alloc_cpumask_var(&wanted->cpus, GFP_KERNEL))
		return -ENOMEM;
	error = config_get_cpus(config, wanted->cpus);
	if (error)
		goto err_cpus;
	events = events_get(config);
	if (IS_ERR(events)) {
		error = PTR_ERR(events);
		goto err_cpus;
	}
	pids = array_get(config, offsetof(struct kbarman_configure, pids_ptr), config->nr_pids,
			 sizeof(*pids));
	if (IS_ERR(pids)) {
		error = PTR_ERR(pids);
		goto err_events;
	}
	wanted->events = events;
	wanted->pids = pids;
	error = kbarman_descriptor_configure(file->private_data, file, wanted);
	kvfree(pids);
err_events:
	kvfree(events);
err_cpus:
	free_cpumask_var(wanted->cpus);
	return error;
}
