/* SPDX-License-Identifier: MIT */
/*
 * MiniDebugInfo: stripped programs of some distributions carry the rest of their symbol
 * table in a section, .gnu_debugdata, an ELF file packed by xz.
 */
#ifndef KBARMAN_SYM_MINIDEBUG_H
#define KBARMAN_SYM_MINIDEBUG_H

#include <stddef.h>
#include <stdint.h>

/* Open liblzma, for who will not be able to open files any more. */
void kb_minidebug_prepare(void);

/*
 * Unpack @size bytes of such a section into *@out, which is to be freed. 0; -ENOSYS if
 * liblzma is not on this machine, -EBADMSG if the section is damaged or too large, or
 * -ENOMEM.
 */
int kb_minidebug_unpack(const void *data, size_t size, uint8_t **out, size_t *unpacked);

#endif
