// SPDX-License-Identifier: GPL-2.0-only
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/notifier.h>
#include <linux/reboot.h>

#include "capture/ends.h"
#include "capture/reserved.h"
#include "compat/panic.h"
#include "uapi/stamp.h"

/* The other CPUs have been stopped. It may be in an NMI. */
static int ends_at_panic(struct notifier_block *notifier, unsigned long unused, void *text)
{
	kbarman_reserved_end(KBARMAN_END_PANIC, text);
	return NOTIFY_DONE;
}

static int ends_at_reboot(struct notifier_block *notifier, unsigned long how, void *command)
{
	const char *name = how == SYS_RESTART ? "restart" : how == SYS_HALT ? "halt" : "power off";

	kbarman_reserved_end(KBARMAN_END_REBOOT, command ?: name);
	return NOTIFY_DONE;
}

/* Before others, which may not come back from what they do. */
static struct notifier_block panic_notifier = {
	.notifier_call = ends_at_panic, .priority = INT_MAX };
/* Behind others: what they do is recorded, too. */
static struct notifier_block reboot_notifier = {
	.notifier_call = ends_at_reboot, .priority = INT_MIN };

int __init kbarman_ends_init(void)
{
	int error;

	if (!kbarman_reserved_bytes())
		return 0;
	error = atomic_notifier_chain_register(&panic_notifier_list, &panic_notifier);
	if (error)
		return error;
	error = register_reboot_notifier(&reboot_notifier);
	if (error)
		atomic_notifier_chain_unregister(&panic_notifier_list, &panic_notifier);
	return error;
}

void kbarman_ends_exit(void)
{
	if (!kbarman_reserved_bytes())
		return;
	atomic_notifier_chain_unregister(&panic_notifier_list, &panic_notifier);
	unregister_reboot_notifier(&reboot_notifier);
}
