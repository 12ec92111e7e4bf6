// SPDX-License-Identifier: GPL-2.0-only
#include <linux/errno.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/numa.h>
#include <linux/page-flags.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/vmalloc.h>

#include "capture/memory.h"

static unsigned long memory_user_mib;
module_param_named(user_mib, memory_user_mib, ulong, 0644);
MODULE_PARM_DESC(user_mib, "MiB that the buffers of all sessions of a user may take together (default 0: three quarters of the machine's memory)");

/* What a user has: more than 0 bytes. */
struct memory {
	struct list_head list;
	u32 user;
	u64 bytes;
};

static LIST_HEAD(memory_users);
static u64 memory_promised;	/* bytes that are not allocated yet */
static DEFINE_SPINLOCK(memory_lock);	/* protects both */

/*
 * Before 5.11 a page that a cgroup is charged for is marked in the field that counts its mappings:
 * it must not be mapped. There nobody is charged.
 */
#ifdef PG_kmemcg
#define CHARGED	0
#else
#define CHARGED	__GFP_ACCOUNT
#endif

/* What is not freed in time kills nobody. */
#define FLAGS	(GFP_KERNEL | CHARGED | __GFP_RETRY_MAYFAIL | __GFP_ZERO | __GFP_HIGHMEM | \
		 __GFP_NOWARN)

int kbarman_memory_promise(u64 bytes)
{
	int error = -ENOMEM;
	u64 free;

	spin_lock(&memory_lock);
	/* Under the lock: what is not promised any more is allocated. */
	free = (u64)si_mem_available() * PAGE_SIZE / 4 * 3;
	if (bytes <= free && memory_promised <= free - bytes) {
		memory_promised += bytes;
		error = 0;
	}
	spin_unlock(&memory_lock);
	return error;
}

void kbarman_memory_keep(u64 bytes)
{
	spin_lock(&memory_lock);
	memory_promised -= bytes;
	spin_unlock(&memory_lock);
}

/*
 * Not __vmalloc(): of some kernels it knows no __GFP_RETRY_MAYFAIL, and no node. Nor does vfree()
 * free it: before 6.14 that takes pages that were mapped out of sums in which they are not.
 */
void *kbarman_memory_pages(u64 bytes, int node)
{
	unsigned long nr = 0, count = DIV_ROUND_UP_ULL(bytes, PAGE_SIZE);
	void *memory = NULL;
	struct page **pages;

	if (bytes > (u64)totalram_pages() * PAGE_SIZE)
		return NULL;
	pages = kvmalloc_array(count, sizeof(*pages), GFP_KERNEL_ACCOUNT | __GFP_NORETRY);
	if (!pages)
		return NULL;
	for (; nr < count && !fatal_signal_pending(current); nr++) {
		pages[nr] = alloc_pages_node(node, FLAGS, 0);
		if (!pages[nr])
			break;
		cond_resched();
	}
	if (nr == count)
		memory = vmap(pages, count, VM_MAP, PAGE_KERNEL);
	while (!memory && nr)
		__free_page(pages[--nr]);
	kvfree(pages);
	return memory;
}

void kbarman_memory_free(void *memory)
{
	struct page *page, *next;
	LIST_HEAD(pages);
	void *at;

	if (!memory)
		return;
	/* Linux leaves the page behind what it maps without a page. */
	for (at = memory; (page = vmalloc_to_page(at)); at += PAGE_SIZE)
		list_add(&page->lru, &pages);
	vunmap(memory);
	list_for_each_entry_safe(page, next, &pages, lru) {
		__free_page(page);
		cond_resched();
	}
}

u64 kbarman_memory_limit(void)
{
	u64 mib = READ_ONCE(memory_user_mib);

	if (!mib)
		return (u64)totalram_pages() * PAGE_SIZE / 4 * 3;
	return mib > U64_MAX >> 20 ? U64_MAX : mib << 20;
}

static struct memory *memory_find(u32 user)
{
	struct memory *memory;

	lockdep_assert_held(&memory_lock);
	list_for_each_entry(memory, &memory_users, list)
		if (memory->user == user)
			return memory;
	return NULL;
}

int kbarman_memory_take(u32 user, u64 bytes)
{
	struct memory *spare = kzalloc(sizeof(*spare), GFP_KERNEL), *memory;
	u64 limit = kbarman_memory_limit();
	int error = -EDQUOT;

	if (!spare)
		return -ENOMEM;
	spin_lock(&memory_lock);
	memory = memory_find(user);
	if (bytes > limit || (memory && memory->bytes > limit - bytes))
		goto out;
	error = 0;
	if (!memory) {
		memory = spare;
		memory->user = user;
		list_add(&memory->list, &memory_users);
		spare = NULL;
	}
	memory->bytes += bytes;
out:
	spin_unlock(&memory_lock);
	kfree(spare);
	return error;
}

void kbarman_memory_give(u32 user, u64 bytes)
{
	struct memory *memory;

	spin_lock(&memory_lock);
	memory = memory_find(user);
	memory->bytes -= bytes;
	if (memory->bytes)
		memory = NULL;
	else
		list_del(&memory->list);
	spin_unlock(&memory_lock);
	kfree(memory);
}

u64 kbarman_memory_of(u32 user)
{
	struct memory *memory;
	u64 bytes;

	spin_lock(&memory_lock);
	memory = memory_find(user);
	bytes = memory ? memory->bytes : 0;
	spin_unlock(&memory_lock);
	return bytes;
}
