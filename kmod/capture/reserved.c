// SPDX-License-Identifier: GPL-2.0-only
#define pr_fmt(fmt) "kbarman: " fmt

#include <linux/compiler.h>
#include <linux/ctype.h>
#include <linux/err.h>
#include <linux/io.h>
#include <linux/ioport.h>
#include <linux/kernel.h>
#include <linux/libnvdimm.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/of.h>
#include <linux/of_reserved_mem.h>
#include <linux/sched.h>
#include <linux/sizes.h>
#include <linux/smp.h>
#include <linux/stacktrace.h>
#include <linux/string.h>
#include <linux/timekeeping.h>

#include "capture/reserved.h"
#include "compat/mm.h"
#include "ring/clock.h"
#include "uapi/stamp.h"

static char *reserved_place;
module_param_named(memory, reserved_place, charp, 0444);
MODULE_PARM_DESC(memory, "Memory that survives a reset, to record into: ADDRESS,SIZE, or the name of a reserve_mem= or of a node of reserved-memory");

#define HALF_MIN	SZ_256K

enum half_state {
	HALF_FREE,
	HALF_USED,		/* by a capture of this boot */
	HALF_FORMER,
};

struct kbarman_half {
	phys_addr_t address;
	struct kbarman_stamp *stamp;	/* its memory begins with it. While it is used, `bytes` are
					 * those that are taken */
	enum half_state state;		/* under the lock; read without it at the end of all */
	unsigned int readers;		/* who reads the former recording; under the lock */
};

static struct kbarman_half halves[2];
static u64 half_bytes;			/* 0: there is no such memory. Constant */
static void *reserved_memory;
static DEFINE_MUTEX(reserved_lock);

/* ---- where it is ---- */

static bool place_of_node(const char *name, phys_addr_t *address, phys_addr_t *bytes)
{
	struct device_node *parent = of_find_node_by_path("/reserved-memory"), *node;
	struct reserved_mem *found = NULL;

	for_each_child_of_node(parent, node)
		if (!found && of_node_name_eq(node, name))
			found = of_reserved_mem_lookup(node);
	of_node_put(parent);
	if (!found)
		return false;
	*address = found->base;
	*bytes = found->size;
	return true;
}

static bool place_has(phys_addr_t address, phys_addr_t bytes, unsigned long flags)
{
	return region_intersects(address, bytes, flags, IORES_DESC_NONE) != REGION_DISJOINT;
}

/* Of an address nobody has said that it is kept free, so it is looked at. */
static int __init place_of_address(phys_addr_t *address, phys_addr_t *bytes)
{
	char *end;

	*address = memparse(reserved_place, &end);
	*bytes = *end == ',' ? memparse(end + 1, &end) : 0;
	if (*end || !*bytes || *address + *bytes < *address) {
		pr_err("memory=%s: give ADDRESS,SIZE, or a name\n", reserved_place);
		return -EINVAL;
	}
	if (!place_has(*address, *bytes, IORESOURCE_SYSTEM_RAM) &&
	    !place_has(*address, *bytes, IORESOURCE_BUSY))
		return 0;
	pr_err("memory=%s: Linux uses this memory: keep it free, on x86 with memmap=SIZE$ADDRESS\n",
	       reserved_place);
	return -EBUSY;
}

static int __init place_find(phys_addr_t *address, phys_addr_t *bytes)
{
	if (isdigit(*reserved_place))
		return place_of_address(address, bytes);
	if (kbarman_reserve_mem(reserved_place, address, bytes) ||
	    place_of_node(reserved_place, address, bytes))
		return 0;
	pr_err("memory=%s: there is no reserve_mem= and no node of reserved-memory of that name\n",
	       reserved_place);
	return -ENOENT;
}

/* Nothing of it is believed but a size that fits. */
static bool half_has_former(const struct kbarman_half *half)
{
	const struct kbarman_stamp *stamp = half->stamp;

	return stamp->magic == KBARMAN_STAMP_MAGIC && stamp->sum == kbarman_stamp_sum(stamp) &&
	       stamp->address == half->address &&
	       stamp->bytes >= PAGE_SIZE && stamp->bytes <= half_bytes;
}

int __init kbarman_reserved_init(void)
{
	phys_addr_t address, bytes;
	unsigned int i;
	int error;

	if (!reserved_place || !*reserved_place)
		return 0;
	error = place_find(&address, &bytes);
	if (error)
		return error;
	if (!PAGE_ALIGNED(address) || bytes / 2 < HALF_MIN) {
		pr_err("memory=%s: it has to begin with a page and to have %u KiB at least\n",
		       reserved_place, HALF_MIN * 2 / SZ_1K);
		return -EINVAL;
	}
	reserved_memory = memremap(address, bytes, MEMREMAP_WB);
	if (!reserved_memory) {
		pr_err("memory=%s: this memory can't be mapped\n", reserved_place);
		return -ENOMEM;
	}
	half_bytes = ALIGN_DOWN(bytes / 2, PAGE_SIZE);
	for (i = 0; i < ARRAY_SIZE(halves); i++) {
		halves[i].address = address + i * half_bytes;
		halves[i].stamp = reserved_memory + i * half_bytes;
		halves[i].state = half_has_former(&halves[i]) ? HALF_FORMER : HALF_FREE;
		if (halves[i].state == HALF_FORMER)
			pr_notice("memory=%s has what was recorded before this boot: 'kbarman recover --previous'\n",
				  reserved_place);
	}
	return 0;
}

void kbarman_reserved_exit(void)
{
	if (reserved_memory)
		memunmap(reserved_memory);
}

u64 kbarman_reserved_bytes(void)
{
	return half_bytes ? half_bytes - PAGE_SIZE : 0;
}

/* ---- this boot ---- */

/* Of two former recordings the one that goes first: it did not end with a crash, or it is newer. */
static struct kbarman_half *half_worth_less(void)
{
	const struct kbarman_stamp *one = halves[0].stamp, *other = halves[1].stamp;
	bool reboot = kbarman_stamp_end(one) == KBARMAN_END_REBOOT;

	if (reboot != (kbarman_stamp_end(other) == KBARMAN_END_REBOOT))
		return &halves[reboot ? 0 : 1];
	return &halves[one->began_ns > other->began_ns ? 0 : 1];
}

static struct kbarman_half *half_choose(void)
{
	struct kbarman_half *half;
	unsigned int i;

	lockdep_assert_held(&reserved_lock);
	for (i = 0; i < ARRAY_SIZE(halves); i++)
		if (halves[i].state == HALF_FREE)
			return &halves[i];
	if (halves[0].state == HALF_USED || halves[1].state == HALF_USED)
		return NULL;
	half = half_worth_less();
	return half->readers ? NULL : half;
}

struct kbarman_half *kbarman_half_take(void)
{
	struct kbarman_half *half;
	u64 at;

	if (!half_bytes)
		return ERR_PTR(-EOPNOTSUPP);
	mutex_lock(&reserved_lock);
	half = half_choose();
	if (half) {
		WRITE_ONCE(half->stamp->magic, 0);
		half->stamp->capture = 0;
		half->state = HALF_USED;
	}
	mutex_unlock(&reserved_lock);
	if (!half)
		return ERR_PTR(-EADDRINUSE);
	/* All of it: no beacon of a former capture is left behind the pages of this one. */
	for (at = 0; at < half_bytes; at += SZ_1M) {
		memset((void *)half->stamp + at, 0, min_t(u64, SZ_1M, half_bytes - at));
		cond_resched();
	}
	half->stamp->bytes = PAGE_SIZE;
	return half;
}

void kbarman_half_give(struct kbarman_half *half)
{
	if (!half)
		return;
	mutex_lock(&reserved_lock);
	WRITE_ONCE(half->stamp->magic, 0);
	half->state = HALF_FREE;
	mutex_unlock(&reserved_lock);
}

void kbarman_half_stamp(struct kbarman_half *half, u64 capture, u32 uid, bool kernel_addresses)
{
	struct kbarman_stamp *stamp = half->stamp;

	stamp->capture = capture;
	stamp->address = half->address;
	stamp->uid = uid;
	stamp->flags = kernel_addresses ? KBARMAN_STAMP_KERNEL : 0;
	stamp->began_ns = ktime_get_real_ns();
	stamp->sum = kbarman_stamp_sum(stamp);
	/* Only a whole stamp is one. On 32-bit machines there is no release of 64 bits. */
	smp_wmb();
	WRITE_ONCE(stamp->magic, KBARMAN_STAMP_MAGIC);
}

void *kbarman_half_pages(struct kbarman_half *half, u64 bytes)
{
	u64 taken = half->stamp->bytes;

	if (bytes > half_bytes - taken)
		return NULL;
	WRITE_ONCE(half->stamp->bytes, taken + bytes);
	return (void *)half->stamp + taken;
}

u64 kbarman_half_bytes(const struct kbarman_half *half)
{
	return half ? READ_ONCE(half->stamp->bytes) : 0;
}

unsigned long kbarman_half_frame(const struct kbarman_half *half, const void *memory)
{
	return half ? PHYS_PFN(half->address + (memory - (const void *)half->stamp)) :
		      vmalloc_to_pfn(memory);
}

/* ---- the end ---- */

static void stamp_end(struct kbarman_stamp *stamp, u32 end, const char *text)
{
	unsigned long chain[KBARMAN_STAMP_CHAIN];
	unsigned int i;

	/* What is half written is not believed: a panic may come while a reboot is noted. */
	WRITE_ONCE(stamp->end_sum, 0);
	barrier();
	stamp->ticks = kbarman_clock();
	stamp->end = end;
	stamp->cpu = raw_smp_processor_id();
	stamp->task_id = current->pid;
	memcpy(stamp->comm, current->comm, sizeof(stamp->comm));
	stamp->comm[sizeof(stamp->comm) - 1] = 0;
	strscpy(stamp->text, text, sizeof(stamp->text));
	stamp->nr_chain = stamp->flags & KBARMAN_STAMP_KERNEL ?
			  stack_trace_save(chain, ARRAY_SIZE(chain), 1) : 0;
	for (i = 0; i < stamp->nr_chain; i++)
		stamp->chain[i] = chain[i];
	/* Behind all that it sums up. */
	smp_wmb();
	WRITE_ONCE(stamp->end_sum, kbarman_stamp_end_sum(stamp));
	/* A reset takes what is in caches only. */
	arch_wb_cache_pmem(stamp, stamp->bytes);
}

void kbarman_reserved_end(u32 end, const char *text)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(halves); i++)
		if (READ_ONCE(halves[i].state) == HALF_USED &&
		    halves[i].stamp->end != KBARMAN_END_PANIC)
			stamp_end(halves[i].stamp, end, text);
}

/* ---- former boots ---- */

struct kbarman_half *kbarman_former_get(u32 number)
{
	struct kbarman_half *found[ARRAY_SIZE(halves)], *half = NULL;
	unsigned int i, nr = 0;

	mutex_lock(&reserved_lock);
	for (i = 0; i < ARRAY_SIZE(halves); i++)
		if (halves[i].state == HALF_FORMER)
			found[nr++] = &halves[i];
	if (nr == 2 && found[0]->stamp->began_ns > found[1]->stamp->began_ns)
		swap(found[0], found[1]);
	if (number < nr) {
		half = found[number];
		half->readers++;
	}
	mutex_unlock(&reserved_lock);
	return half;
}

void kbarman_former_put(struct kbarman_half *half)
{
	mutex_lock(&reserved_lock);
	half->readers--;
	mutex_unlock(&reserved_lock);
}

int kbarman_former_release(struct kbarman_half *half)
{
	int error = -EBUSY;

	mutex_lock(&reserved_lock);
	if (half->readers == 1) {
		WRITE_ONCE(half->stamp->magic, 0);
		half->state = HALF_FREE;
		error = 0;
	}
	mutex_unlock(&reserved_lock);
	return error;
}

const struct kbarman_stamp *kbarman_former_stamp(const struct kbarman_half *half)
{
	return half->stamp;
}
