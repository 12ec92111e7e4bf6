// SPDX-License-Identifier: GPL-2.0-only
#include <linux/kprobes.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/rculist.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/uaccess.h>

#include "capture/header.h"
#include "capture/shares.h"
#include "capture/tables.h"
#include "compat/argument.h"
#include "compat/mm.h"
#include "compat/module.h"
#include "here.h"
#include "maps/mapping.h"
#include "maps/probes.h"
#include "maps/queue.h"
#include "ring/clock.h"

/* The sessions that record mappings. The kprobes are attached while there is one. */
static LIST_HEAD(maps_sessions);	/* RCU */
static DEFINE_MUTEX(maps_lock);		/* for those who change the list */

/*
 * No header says which arguments these functions of Linux have, or that they have them for good. So
 * the module checks what it finds in their places. What is not a mapping there is not followed, and
 * the features say that mappings are not seen:
 *
 * perf_event_mmap()	checked with a mapping that the module makes: at module init, and at each start
 *			and stop of a session, because an administrator can switch off all kprobes
 * copy_vma()		checked at each call, because a module can't call mremap()
 */

static u32 maps_features;

static void __maybe_unused maps_set_features(bool made, bool moved)
{
	WRITE_ONCE(maps_features, (made ? KBARMAN_FEATURE_MAPS_MADE : 0) |
			     (made && moved ? KBARMAN_FEATURE_MAPS : 0));
}

u32 kbarman_maps_features(void)
{
	return READ_ONCE(maps_features);
}

#if IS_ENABLED(CONFIG_KPROBES) && defined(kbarman_argument)
/* Each CPU's room for a path, while the probes are attached. */
struct path_room {
	char bytes[PATH_MAX];
};

static struct path_room __percpu *path_rooms;

static void fact_push_map(struct kbarman_maps *maps, struct mm_struct *mm,
			  const struct kbarman_mapping *mapping)
{
	struct kbarman_fact *fact = kbarman_fact_claim_map(maps, mapping);

	if (!fact) {
		kbarman_fact_leave_out_for_good(maps, mm);
		return;
	}
	mmgrab(mm);
	fact->mm = mm;
	kbarman_fact_publish(maps, fact, KBARMAN_FACT_MAP);
}

/*
 * The current task maps @mapping into @mm: every session that records the task is told.
 * Context: as on_mmap().
 */
static void maps_push(struct mm_struct *mm, const struct kbarman_mapping *mapping)
{
	struct kbarman_maps *maps;

	list_for_each_entry_rcu(maps, &maps_sessions, list)
		if (kbarman_wants(maps->session, current->pid))
			fact_push_map(maps, mm, mapping);
}

/* True if @vma is a mapping of the current task. @vma may be anything. Context: as on_mmap(). */
static bool vma_is_mapped(const struct vm_area_struct *vma)
{
	unsigned long start;

	return !get_kernel_nofault(start, &vma->vm_start) && find_vma(current->mm, start) == vma;
}

/* What perf_event_mmap() was called with for the mapping that mmap_probe_sees() makes. */
static struct {
	struct task_struct *maker;	/* NULL: no mapping is being made */
	unsigned long start, end;
} checked;

/* Context: as on_mmap(). */
static int on_checked_mmap(struct kprobe *unused, struct pt_regs *regs)
{
	const struct vm_area_struct *vma = (void *)kbarman_argument(regs, 0);

	if (READ_ONCE(checked.maker) == current && vma_is_mapped(vma)) {
		checked.start = vma->vm_start;
		checked.end = vma->vm_end;
	}
	return 0;
}

/*
 * 1: perf_event_mmap() was called with a new mapping, and the probe saw it; 0: it did not; < 0:
 * there is no place for a mapping. Context: task.
 */
static int mmap_probe_sees(void)
{
	unsigned long at;

	if (!current->mm)
		return -ESRCH;
	checked.start = 0;
	checked.end = 0;
	WRITE_ONCE(checked.maker, current);
	at = vm_mmap(NULL, 0, PAGE_SIZE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, 0);
	WRITE_ONCE(checked.maker, NULL);
	if (IS_ERR_VALUE(at))
		return (int)at;
	vm_munmap(at, PAGE_SIZE);
	return checked.start <= at && at < checked.end;
}

/*
 * perf_event_mmap(vma).
 * Context: a task that holds the mmap_lock of the vma; preemption or interrupts off.
 */
static int on_mmap(struct kprobe *unused, struct pt_regs *regs)
{
	struct vm_area_struct *vma = (struct vm_area_struct *)kbarman_argument(regs, 0);
	struct kbarman_mapping mapping;

	/* READ_IMPLIES_EXEC makes the mapping of mmap_probe_sees() executable. */
	if (vma->vm_flags & VM_EXEC && READ_ONCE(checked.maker) != current) {
		kbarman_mapping_init(&mapping, vma, this_cpu_ptr(path_rooms)->bytes);
		maps_push(vma->vm_mm, &mapping);
		return 0;
	}
	return on_checked_mmap(unused, regs);
}

/* True if copy_vma()'s arguments can be those of a move. Context: as on_mmap(). */
static bool move_is_as_expected(struct vm_area_struct *vma, unsigned long start,
				unsigned long length, unsigned long offset)
{
	return vma_is_mapped(vma) && length && !offset_in_page(start | length) &&
	       start + length > start && start + length <= KBARMAN_TASK_SIZE_MAX &&
	       offset - vma->vm_pgoff < vma_pages(vma);
}

/* Set for good when copy_vma() was called with other arguments than move_is_as_expected() knows. */
static bool moves_differ;

/* The sessions' workers write into the captures that moves are not seen. */
static void maps_tell_all(void)
{
	struct kbarman_maps *maps;

	list_for_each_entry_rcu(maps, &maps_sessions, list) {
		set_bit(KBARMAN_WANTED_TELL, &maps->wanted);
		kbarman_fact_leave_out(maps);
	}
}

/*
 * copy_vma(&vma, address, length, page offset, ...): mremap() is about to move a part of the
 * mapping. If the move fails afterwards, nothing is mapped at the new address and no code runs
 * there, so the row does no harm.
 * Context: as on_mmap().
 */
static int on_move(struct kprobe *unused, struct pt_regs *regs)
{
	struct vm_area_struct *vma = NULL;
	struct kbarman_mapping mapping;

	if (READ_ONCE(moves_differ))
		return 0;
	if (get_kernel_nofault(vma, (struct vm_area_struct **)kbarman_argument(regs, 0)) ||
	    !move_is_as_expected(vma, kbarman_argument(regs, 1), kbarman_argument(regs, 2),
		     kbarman_argument(regs, 3))) {
		WRITE_ONCE(moves_differ, true);
		maps_set_features(kbarman_maps_features() & KBARMAN_FEATURE_MAPS_MADE, false);
		maps_tell_all();
		return 0;
	}
	if (vma->vm_flags & VM_EXEC) {
		kbarman_mapping_init(&mapping, vma, this_cpu_ptr(path_rooms)->bytes);
		mapping.start = kbarman_argument(regs, 1);
		mapping.end = mapping.start + kbarman_argument(regs, 2);
		mapping.offset = (u64)kbarman_argument(regs, 3) << PAGE_SHIFT;
		maps_push(vma->vm_mm, &mapping);
	}
	return 0;
}

static struct map_probe {
	const char *symbol;
	kprobe_pre_handler_t handler;
	bool usable;		/* as found at module init */
	bool attached;
	struct kprobe kprobe;
} map_probes[] = {
	{ .symbol = "perf_event_mmap", .handler = on_mmap },
	/* mremap(2), which does not call perf_event_mmap() */
	{ .symbol = "copy_vma", .handler = on_move },
};

static int map_probe_attach(struct map_probe *probe, kprobe_pre_handler_t handler)
{
	int error;

	/* Unregistering leaves values in the struct that registering refuses. */
	probe->kprobe = (struct kprobe) {
		.symbol_name = probe->symbol,
		.pre_handler = handler,
	};
	error = register_kprobe(&probe->kprobe);
#ifdef KBARMAN_ENTRY_BYTES
	if (error == -EINVAL) {
		probe->kprobe = (struct kprobe) {
			.symbol_name = probe->symbol,
			.offset = KBARMAN_ENTRY_BYTES,
			.pre_handler = handler,
		};
		error = register_kprobe(&probe->kprobe);
	}
#endif
	probe->attached = !error;
	return error;
}

static void map_probe_detach(struct map_probe *probe)
{
	struct kprobe *kprobe = &probe->kprobe;
	kprobe_opcode_t *address = kprobe->addr;

	if (!probe->attached)
		return;
	unregister_kprobe(kprobe);
	if (!kprobe->addr) {
		/*
		 * ftrace had no memory to release the function. The kprobe is then still
		 * registered, although its module may be unloaded. Marked as disabled, the kprobe
		 * can be unregistered without ftrace. What ftrace keeps then calls no handler.
		 */
		kprobe->addr = address;
		kprobe->flags |= KPROBE_FLAG_DISABLED;
		unregister_kprobe(kprobe);
	}
	probe->attached = false;
}

static void map_probes_detach(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(map_probes); i++)
		map_probe_detach(&map_probes[i]);
	/* Unregistering has waited for the handlers. */
	free_percpu(path_rooms);
	path_rooms = NULL;
}

/* Attach those that this kernel has. */
static void map_probes_attach(void)
{
	unsigned int i;

	path_rooms = alloc_percpu(struct path_room);
	for (i = 0; i < ARRAY_SIZE(map_probes) && path_rooms; i++)
		if (map_probes[i].usable)
			map_probe_attach(&map_probes[i], map_probes[i].handler);
	maps_set_features(map_probes[0].attached, map_probes[1].attached && !moves_differ);
}

/*
 * Whether the probes still see anything: kernel.ftrace_enabled and kprobes/enabled of debugfs
 * switch them off, and nobody tells. Sessions that run are told. What was off and on again between
 * two looks is not found out.
 */
static void map_probes_look(void)
{
	u32 before = kbarman_maps_features();
	int seen = map_probes[0].attached ? mmap_probe_sees() : -ENODEV;

	if (seen < 0)
		return;
	maps_set_features(seen, map_probes[1].attached && !moves_differ);
	if (before & ~kbarman_maps_features()) {
		rcu_read_lock();
		maps_tell_all();
		rcu_read_unlock();
	}
}

/* The handlers of sessions are not called here: there is no session. */
static void map_probes_find(void)
{
	map_probes[0].usable = !map_probe_attach(&map_probes[0], on_checked_mmap) &&
			       mmap_probe_sees() > 0;
	map_probes[1].usable = !map_probe_attach(&map_probes[1], NULL);
	maps_set_features(map_probes[0].usable, map_probes[1].usable);
	map_probes_detach();
}
#else
static void map_probes_attach(void)
{
}

static void map_probes_look(void)
{
}

static void map_probes_detach(void)
{
}

static void map_probes_find(void)
{
}
#endif

void kbarman_maps_probes_add(struct kbarman_maps *maps)
{
	mutex_lock(&maps_lock);
	if (list_empty(&maps_sessions))
		map_probes_attach();
	map_probes_look();
	list_add_tail_rcu(&maps->list, &maps_sessions);
	mutex_unlock(&maps_lock);
}

void kbarman_maps_probes_remove(struct kbarman_maps *maps)
{
	mutex_lock(&maps_lock);
	map_probes_look();
	list_del_rcu(&maps->list);
	if (list_empty(&maps_sessions))
		map_probes_detach();
	mutex_unlock(&maps_lock);
}

void kbarman_maps_probes_tell(struct kbarman_capture *capture)
{
	u32 seen = kbarman_maps_features();

	if (!(seen & KBARMAN_FEATURE_MAPS))
		kbarman_header_fact(capture, "maps_seen", "%s",
				    seen & KBARMAN_FEATURE_MAPS_MADE ? "made" : "start");
}

/* ---- modules ---- */

static int on_module(struct notifier_block *unused, unsigned long state, void *argument)
{
	const struct module *module = argument;
	char name[MODULE_NAME_LEN + 2];
	unsigned long start, length;
	struct kbarman_maps *maps;
	int name_length;

	if (state != MODULE_STATE_COMING)
		return NOTIFY_DONE;
	start = kbarman_module_text(module, &length);
	name_length = scnprintf(name, sizeof(name), "[%s]", module->name);
	rcu_read_lock();
	list_for_each_entry_rcu(maps, &maps_sessions, list)
		if (maps->session->kernel_addresses)
			kbarman_tables_add_map(maps->session->capture, kbarman_clock(),
					       KBARMAN_USER_ROOT, 0, start, length, 0, name,
					       name_length, 0);
	rcu_read_unlock();
	return NOTIFY_OK;
}

static struct notifier_block module_notifier = { .notifier_call = on_module };

int __init kbarman_maps_probes_init(void)
{
	map_probes_find();
	return register_module_notifier(&module_notifier);
}

void kbarman_maps_probes_exit(void)
{
	unregister_module_notifier(&module_notifier);
}
