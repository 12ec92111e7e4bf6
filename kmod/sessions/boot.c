// SPDX-License-Identifier: GPL-2.0-only
#define pr_fmt(fmt) "kbarman: " fmt

#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/perf_event.h>
#include <linux/security.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/time64.h>

#include "capture/reserved.h"
#include "session.h"
#include "sessions/boot.h"
#include "sessions/calls.h"
#include "sessions/sessions.h"
#include "sessions/attach.h"
#include "sources/object.h"
#include "stacks/callchain.h"

static char *boot_words;
module_param_named(boot, boot_words, charp, 0444);
MODULE_PARM_DESC(boot, "Record from now on: sched,idle,maps,marks,wake,migrate,irq,softirq,freq,syscalls,"
		       "faults,block,objects,chains or usual,latency");

static bool boot_overwrite;
module_param(boot_overwrite, bool, 0444);
MODULE_PARM_DESC(boot_overwrite, "Keep the newest records of this recording, not the oldest ones");

static unsigned int boot_hz;
module_param(boot_hz, uint, 0444);
MODULE_PARM_DESC(boot_hz, "Samples per second and CPU of this recording (default 0)");

static DEFINE_SPINLOCK(boot_lock);
static struct kbarman_session *boot_session;	/* NULL = there is none any more */

/* The words of the tool, and two that stand for several. */
static const struct {
	const char *word;
	u32 sources;
	u32 flags;
} words[] __initconst = {
	{ "sched", KBARMAN_SOURCE_SCHED },
	{ "idle", KBARMAN_SOURCE_IDLE },
	{ "maps", KBARMAN_SOURCE_MAPS },
	{ "marks", KBARMAN_SOURCE_MARKS },
	{ "wake", KBARMAN_SOURCE_WAKE },
	{ "migrate", KBARMAN_SOURCE_MIGRATE },
	{ "irq", KBARMAN_SOURCE_IRQ },
	{ "softirq", KBARMAN_SOURCE_SOFTIRQ },
	{ "freq", KBARMAN_SOURCE_FREQ },
	{ "syscalls", KBARMAN_SOURCE_SYSCALLS },
	{ "faults", KBARMAN_SOURCE_FAULTS },
	{ "block", KBARMAN_SOURCE_BLOCK },
	{ "usual", KBARMAN_SOURCE_SCHED | KBARMAN_SOURCE_IDLE | KBARMAN_SOURCE_MAPS |
		   KBARMAN_SOURCE_MARKS },
	{ "latency", KBARMAN_SOURCE_LATENCY },
	{ "objects", 0, KBARMAN_CONFIGURE_OBJECTS },
	{ "chains", 0, KBARMAN_CONFIGURE_CHAIN_KERNEL },
};

static int __init boot_take_word(struct kbarman_configure *config, const char *word, size_t length)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(words); i++) {
		if (strlen(words[i].word) != length || strncmp(words[i].word, word, length))
			continue;
		config->sources |= words[i].sources;
		config->flags |= words[i].flags;
		return 0;
	}
	pr_err("boot=%s: '%.*s' can't be recorded: give words of 'modinfo kbarman', with commas between\n",
	       boot_words, (int)length, word);
	return -EINVAL;
}

static int __init boot_parse(struct kbarman_configure *config)
{
	const char *word = boot_words;
	size_t length;
	int error;

	for (;; word += length + 1) {
		length = strcspn(word, ",");
		error = boot_take_word(config, word, length);
		if (error || !word[length])
			break;
	}
	if (!error && config->flags & KBARMAN_CONFIGURE_CHAIN_KERNEL && !boot_hz) {
		pr_err("boot=%s: call chains are those of samples: give boot_hz, too\n", boot_words);
		error = -EINVAL;
	}
	return error;
}

/* Of what this kernel can't give nothing is recorded. */
static void __init boot_leave_out_absent(struct kbarman_configure *config)
{
	u32 absent = config->sources & kbarman_sources_absent();
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(words); i++)
		if (words[i].sources && !(words[i].sources & ~absent) && is_power_of_2(words[i].sources))
			pr_warn("boot=%s: this kernel can't give '%s', which is left out\n", boot_words,
				words[i].word);
	config->sources &= ~absent;
	if (config->flags & KBARMAN_CONFIGURE_OBJECTS && !kbarman_object_features) {
		pr_warn("boot=%s: this kernel can't give 'objects', which is left out\n", boot_words);
		config->flags &= ~KBARMAN_CONFIGURE_OBJECTS;
	}
}

/* Samples by the CPU's cycles, or by a clock where there is no PMU. */
static struct kbarman_event boot_events[] __initdata = {
	{
		.name = "cycles",
		.attr = {
			.type = PERF_TYPE_HARDWARE,
			.config = PERF_COUNT_HW_CPU_CYCLES,
			.freq = 1,
			.exclude_guest = 1,
		},
	}, {
		.name = "cpu-clock",
		.flags = KBARMAN_EVENT_ELSE | KBARMAN_EVENT_FALLBACK,
		.attr = { .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK },
	},
};

/* They have the chains that this machine can give. */
static void __init boot_take_samples(struct kbarman_configure *config)
{
	u32 features = kbarman_callchain_features;

	config->sources |= KBARMAN_SOURCE_PMU;
	config->nr_events = ARRAY_SIZE(boot_events);
	boot_events[0].attr.sample_freq = boot_hz;
	boot_events[1].attr.sample_period = max_t(u32, NSEC_PER_SEC / boot_hz, 1);
	if (config->flags & KBARMAN_CONFIGURE_CHAIN_KERNEL) {
		config->flags &= ~KBARMAN_CONFIGURE_CHAIN_KERNEL;
		if (features & KBARMAN_FEATURE_CHAIN_KERNEL)
			config->flags |= KBARMAN_CONFIGURE_CHAIN_KERNEL;
		if (features & KBARMAN_FEATURE_CHAIN_USER)
			config->flags |= KBARMAN_CONFIGURE_CHAIN_USER;
		if (features & KBARMAN_FEATURE_CHAIN_STACK)
			config->flags |= KBARMAN_CONFIGURE_CHAIN_STACK;
	}
}

static int __init boot_begin(struct kbarman_session *session, struct kbarman_wanted *wanted)
{
	struct kbarman_start report = { .event = ~0U, .cpu = ~0U };
	int error = kbarman_session_configure(session, NULL, wanted);

	return error ?: kbarman_session_start(session, NULL, &report);
}

static int __init boot_record(struct kbarman_wanted *wanted)
{
	struct kbarman_session *session;
	int error = security_locked_down(LOCKDOWN_PERF);

	if (error)
		return error;
	if (!zalloc_cpumask_var(&wanted->cpus, GFP_KERNEL))
		return -ENOMEM;
	cpumask_copy(wanted->cpus, cpu_possible_mask);
	session = kbarman_sessions_create();
	error = PTR_ERR_OR_ZERO(session);
	if (!error) {
		error = boot_begin(session, wanted);
		if (error)
			kbarman_sessions_leave(session);
		else
			boot_session = session;
	}
	free_cpumask_var(wanted->cpus);
	return error;
}

int __init kbarman_boot_init(void)
{
	struct kbarman_wanted wanted = { .events = boot_events };
	int error;

	if (!boot_words || !*boot_words)
		return 0;
	wanted.config.mode = boot_overwrite ? KBARMAN_MODE_OVERWRITE : KBARMAN_MODE_STREAM;
	error = boot_parse(&wanted.config);
	if (error)
		return error;
	boot_leave_out_absent(&wanted.config);
	if (boot_hz)
		boot_take_samples(&wanted.config);
	if (kbarman_reserved_bytes())
		wanted.config.flags |= KBARMAN_CONFIGURE_RESERVED;
	error = boot_record(&wanted);
	if (error)
		pr_warn("boot=%s: nothing is recorded: error %d\n", boot_words, error);
	return 0;
}

void kbarman_boot_exit(void)
{
	struct kbarman_session *session = kbarman_boot_take(0);

	if (!session)
		return;
	kbarman_session_abandon(session, NULL);
	kbarman_sessions_leave(session);
}

struct kbarman_session *kbarman_boot_take(u64 id)
{
	struct kbarman_session *session;

	spin_lock(&boot_lock);
	session = boot_session;
	if (session && id && READ_ONCE(session->id) != id)
		session = NULL;
	if (session)
		boot_session = NULL;
	spin_unlock(&boot_lock);
	return session;
}

void kbarman_boot_put_back(struct kbarman_session *session)
{
	spin_lock(&boot_lock);
	boot_session = session;
	spin_unlock(&boot_lock);
}
