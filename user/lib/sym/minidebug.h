/* SPDX-License-Identifier: MIT */
/*
 * MiniDebugInfo: stripped programs of some distributions carry the rest of their symbol
 * table in a section, .gnu_debugdata, an ELF file packed by xz.
 */
#ifndef KBARMAN_SYM_MINIDEBUG_H
#define KBARMAN_SYM_MINIDEBUG_H

#include <stddef.h>

/*
 * Unpack @size bytes of such a section into a memory file. Returns its descriptor,
 * the caller's to close; -ENOSYS if liblzma is not on this machine, -EBADMSG if the
 * section is damaged or too large, or another negative errno.
 */
int kb_minidebug_unpack(const void *data, size_t size);

#endif
