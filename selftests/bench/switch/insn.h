/* SPDX-License-Identifier: MIT */
/* What the plugins that count have to know of the instructions of x86 and arm64. */
#ifndef KBARMAN_BENCH_INSN_H
#define KBARMAN_BENCH_INSN_H

#include "mark.h"
#include "plugin.h"

#define KERNEL		(1ULL << 63)	/* and above */

/* What the guest is: the plugin says so when it is installed. */
static bool guest_is_arm64;

/* False: it is a guest that no plugin here knows. */
static inline bool know_guest(const struct qemu_info_t *info)
{
	guest_is_arm64 = !strcmp(info->target_name, "aarch64");
	return guest_is_arm64 || !strcmp(info->target_name, "x86_64");
}

static inline uint32_t mark_of_arm64(uint32_t word)
{
	return word == MARK_ARM64(MARK_BEGIN) ? MARK_BEGIN :
	       word == MARK_ARM64(MARK_END) ? MARK_END : 0;
}

/* MARK_BEGIN or MARK_END; 0: another instruction. */
static inline uint32_t mark_of(const struct qemu_plugin_insn *insn)
{
	uint8_t bytes[INSN_MOST];
	uint32_t words[2] = { 0 };
	size_t size = insn_bytes(insn, bytes);

	if (size != (guest_is_arm64 ? 4 : sizeof(words)))
		return 0;
	memcpy(words, bytes, size);
	if (guest_is_arm64)
		return mark_of_arm64(words[0]);
	if (words[0] != MARK_OPCODE || (words[1] != MARK_BEGIN && words[1] != MARK_END))
		return 0;
	return words[1];
}

static inline const uint8_t *without_prefixes(const uint8_t *at, const uint8_t *end_of_insn,
					       bool *repeats)
{
	*repeats = false;
	for (; at < end_of_insn; at++)
		if (*at == 0xf2 || *at == 0xf3)
			*repeats = true;
		else if ((*at & 0xf0) != 0x40 && *at != 0x66 && *at != 0x67)
			break;
	return at;
}

/* A string instruction or one of I/O, with a repeat prefix. */
static inline bool repeats(const struct qemu_plugin_insn *insn)
{
	uint8_t data[INSN_MOST];
	const uint8_t *last = data + insn_bytes(insn, data);
	bool prefix;
	const uint8_t *opcode = without_prefixes(data, last, &prefix);

	if (guest_is_arm64 || !prefix || opcode == last)
		return false;
	return (*opcode >= 0x6c && *opcode <= 0x6f) || (*opcode >= 0xa4 && *opcode <= 0xa7) ||
	       (*opcode >= 0xaa && *opcode <= 0xaf);
}

#endif /* KBARMAN_BENCH_INSN_H */
