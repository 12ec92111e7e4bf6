// SPDX-License-Identifier: GPL-2.0-only
/*
 * Call chains: see callchain.h.
 *
 * User memory determines a chain of frame pointers, and it may contain anything. So each frame must
 * be at a higher address than the one before it, as on a stack; then no frame is seen twice. The
 * number of frames is limited, too.
 */
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/sched/task_stack.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "callchain.h"
#include "compat/mm.h"
#include "source_maps.h"

#define LEVELS		4	/* task, softirq, irq, NMI */
#define ITERATOR_BYTES	1024	/* longer than the function that calls the probes of a tracepoint;
				 * the next function of this kind is farther away */

/* Constant while a session runs. */
static u32 wanted;		/* KBARMAN_CONFIGURE_CHAIN_* */
static u32 max_addresses;

/* Used by the owning CPU only. An interrupt leaves `depth` as it was. */
struct memory {
	unsigned int depth;	/* pieces in use */
	void *bytes;		/* LEVELS pieces, NULL = none */
};

static DEFINE_PER_CPU(struct memory, memory);

static size_t piece_bytes(void)
{
	return sizeof(struct kbarman_callchain) + max_addresses * sizeof(bm_uintptr);
}

int kbarman_callchain_allocate(const struct cpumask *cpus, u32 flags, u32 max_stack)
{
	int cpu;

	wanted = flags;
	max_addresses = max_stack;
	for_each_cpu(cpu, cpus) {
		struct memory *mine = per_cpu_ptr(&memory, cpu);

		mine->depth = 0;
		mine->bytes = kvzalloc_node(LEVELS * piece_bytes(), GFP_KERNEL, cpu_to_node(cpu));
		if (!mine->bytes)
			return -ENOMEM;
	}
	return 0;
}

void kbarman_callchain_free(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		struct memory *mine = per_cpu_ptr(&memory, cpu);

		kvfree(mine->bytes);
		mine->bytes = NULL;
	}
}

/* Returns NULL if there is no memory, or if writers nest deeper than LEVELS. */
static struct kbarman_callchain *get_piece(void)
{
	struct memory *mine = this_cpu_ptr(&memory);
	struct kbarman_callchain *chain;
	unsigned int depth = mine->depth;

	if (unlikely(depth >= LEVELS || !mine->bytes))
		return NULL;
	/*
	 * An interrupt before this store uses the same piece, and gives it back before it returns.
	 */
	WRITE_ONCE(mine->depth, depth + 1);
	barrier();
	chain = mine->bytes + depth * piece_bytes();
	chain->head.nr = 0;
	chain->head.nr_kernel = 0;
	return chain;
}

void kbarman_callchain_put(struct kbarman_callchain *chain)
{
	if (!chain)
		return;
	barrier();
	this_cpu_ptr(&memory)->depth--;
}

/* ---- frames ---- */

bool kbarman_frames_add(struct kbarman_frames *frames, unsigned long address)
{
	if (frames->skip) {
		if (within_module(address, THIS_MODULE) ||
		    address - frames->iterator < ITERATOR_BYTES)
			return true;
		frames->skip = false;
	}
	if (frames->nr == frames->max)
		return false;
	frames->addresses[frames->nr++] = address;
	return true;
}

bool kbarman_read_record(unsigned long record[2], unsigned long address, unsigned int word)
{
	union {
		u32 words[2];
		u64 longs[2];
	} frame;

	if (!IS_ALIGNED(address, word))
		return false;
	if (word == sizeof(u32)) {
		if (!kbarman_read_user(&frame.words, address))
			return false;
		record[0] = frame.words[0];
		record[1] = frame.words[1];
		return true;
	}
	if (!kbarman_read_user(&frame.longs, address))
		return false;
	record[0] = frame.longs[0];
	record[1] = frame.longs[1];
	return true;
}

static void add_user_frames(struct kbarman_frames *frames, struct pt_regs *regs)
{
	struct kbarman_user_place place = {};
	unsigned long frame, record[2];

	kbarman_user_place(&place, regs);
	if (!place.pc || !kbarman_frames_add(frames, place.pc))
		return;
	if (place.caller && !kbarman_frames_add(frames, kbarman_plain_address(place.caller)))
		return;
	for (frame = place.frame; frame; frame = record[0] > frame ? record[0] : 0) {
		if (!kbarman_read_record(record, frame - place.behind, place.word))
			return;
		record[1] = kbarman_plain_address(record[1]);
		/*
		 * An address outside of user space ends the chain: readers could take it for a
		 * kernel address. access_ok() is not used, because it warns in interrupts.
		 */
		if (!record[1] || record[1] >= KBARMAN_TASK_SIZE_MAX ||
		    !kbarman_frames_add(frames, record[1]))
			return;
	}
}

/*
 * The registers with which the current task left its user code. NULL if the task has no user code.
 */
static struct pt_regs *user_regs(struct pt_regs *regs)
{
	if (regs && user_mode(regs))
		return regs;
	/* The task may be changing other bits of its flags. */
	return current->mm && !(data_race(current->flags) & PF_KTHREAD) ? task_pt_regs(current) :
		NULL;
}

static struct kbarman_callchain *gather(struct pt_regs *regs, const void *iterator)
{
	struct kbarman_callchain *chain = get_piece();
	struct kbarman_frames frames;

	if (unlikely(!chain))
		return NULL;
	frames = (struct kbarman_frames) {
		.addresses = chain->addresses,
		.max = max_addresses,
		.skip = !regs,
		.iterator = (unsigned long)iterator,
	};
	if (wanted & KBARMAN_CONFIGURE_CHAIN_KERNEL && !(regs && user_mode(regs)))
		kbarman_frames_kernel(&frames, regs);
	chain->head.nr_kernel = frames.nr;
	regs = user_regs(regs);
	if (wanted & KBARMAN_CONFIGURE_CHAIN_USER && regs && kbarman_user_is_here()) {
		/*
		 * Before the record is made, so that no mapping row is stamped later than its
		 * record.
		 */
		kbarman_maps_sampled();
		frames.skip = false;
		add_user_frames(&frames, regs);
	}
	chain->head.nr = frames.nr;
	if (frames.nr)
		return chain;
	kbarman_callchain_put(chain);
	return NULL;
}

struct kbarman_callchain *kbarman_callchain_sample(struct pt_regs *regs)
{
	return gather(regs, NULL);
}

struct kbarman_callchain *kbarman_callchain_here(const void *iterator)
{
	return gather(NULL, iterator);
}
