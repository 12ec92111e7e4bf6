// SPDX-License-Identifier: GPL-2.0-only
#include <linux/errno.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "memory.h"

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
static DEFINE_SPINLOCK(memory_lock);

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
