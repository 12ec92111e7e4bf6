/* SPDX-License-Identifier: MIT */
/* One face for the interfaces that QEMU has for plugins (plugin_api.h). */
#ifndef KBARMAN_BENCH_PLUGIN_H
#define KBARMAN_BENCH_PLUGIN_H

#include <stdlib.h>
#include <string.h>

#include "plugin_api.h"

/* QEMU loads a plugin only if it knows the version that the plugin says. */
PLUGIN_EXPORT int qemu_plugin_version;

__attribute__((constructor)) static void choose_version(void)
{
	qemu_plugin_version = qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu ? 3 : 1;
}

/* ---- instructions ---- */

#define INSN_MOST	16	/* bytes of one, of those guests that are known here */

/* Copy the bytes of @insn. Returns how many they are. */
static inline size_t insn_bytes(const struct qemu_plugin_insn *insn, uint8_t bytes[INSN_MOST])
{
	const void *(*data_of)(const struct qemu_plugin_insn *insn);
	size_t size = qemu_plugin_insn_size(insn);

	if (size > INSN_MOST)
		abort();
	if (qemu_plugin_version >= 3)
		return qemu_plugin_insn_data(insn, bytes, size);
	data_of = (const void *(*)(const struct qemu_plugin_insn *))(void (*)(void))
			  qemu_plugin_insn_data;
	memcpy(bytes, data_of(insn), size);
	return size;
}

/* ---- counters ---- */

/* Numbers that translated code adds to. The guest has one vCPU. */
struct counters {
	uint64_t *values;
	struct qemu_plugin_scoreboard *score;	/* which they are in; NULL before version 3 */
};

/* @nr zeros. Call it when the vCPU is there: not before code is translated. */
static inline struct counters counters_new(size_t nr)
{
	struct counters counters = { 0 };

	if (qemu_plugin_version >= 3) {
		counters.score = qemu_plugin_scoreboard_new(nr * sizeof(*counters.values));
		counters.values = qemu_plugin_scoreboard_find(counters.score, 0);
	} else {
		counters.values = calloc(nr, sizeof(*counters.values));
	}
	if (!counters.values)
		abort();
	return counters;
}

/*
 * Whenever @insn is executed, @added is added to the number at @index. Version 1 makes all callbacks
 * of an instruction before it adds, version 3 goes in the order of registration: so say it last.
 */
static inline void count_insn(struct qemu_plugin_insn *insn, const struct counters *counters,
			      size_t index, uint64_t added)
{
	qemu_plugin_u64 number = { counters->score, index * sizeof(*counters->values) };

	if (qemu_plugin_version >= 3)
		qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(
			insn, QEMU_PLUGIN_INLINE_ADD_U64, number, added);
	else
		qemu_plugin_register_vcpu_insn_exec_inline(insn, QEMU_PLUGIN_INLINE_ADD_U64,
							   &counters->values[index], added);
}

#endif /* KBARMAN_BENCH_PLUGIN_H */
