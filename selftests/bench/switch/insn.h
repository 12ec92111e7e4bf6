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

/*
 * A string instruction or one of I/O, with a repeat prefix: how many bytes it moves at once.
 * 0: another instruction.
 */
static inline unsigned int repeated_bytes(const struct qemu_plugin_insn *insn)
{
	uint8_t data[INSN_MOST];
	size_t i, size = insn_bytes(insn, data);
	unsigned int width = 4;
	bool prefix = false;

	for (i = 0; i < size; i++)
		if (data[i] == 0xf2 || data[i] == 0xf3)
			prefix = true;
		else if ((data[i] & 0xf8) == 0x48)
			width = 8;
		else if (data[i] == 0x66)
			width = 2;
		else if ((data[i] & 0xf0) != 0x40 && data[i] != 0x67)
			break;
	if (guest_is_arm64 || !prefix || i == size)
		return 0;
	if (data[i] < 0x6c || (data[i] > 0x6f && data[i] < 0xa4) || data[i] == 0xa8 ||
	    data[i] == 0xa9 || data[i] > 0xaf)
		return 0;
	return data[i] & 1 ? width : 1;
}

/* How many times @line bytes are full when @bytes more are moved. */
static inline uint64_t lines_filled(uintptr_t bytes, unsigned int line)
{
	static uint64_t moved;
	uint64_t lines;

	moved += bytes;
	lines = moved / line;
	moved %= line;
	return lines;
}

#endif /* KBARMAN_BENCH_INSN_H */
