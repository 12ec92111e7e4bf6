/* SPDX-License-Identifier: MIT */
/*
 * MiniDebugInfo: stripped programs of some distributions have the rest of their symbol table in
 * a section .gnu_debugdata, an ELF file compressed with xz.
 */
#ifndef KB_LIB_SYM_ELF_MINIDEBUG_H
#define KB_LIB_SYM_ELF_MINIDEBUG_H

#include <stddef.h>
#include <stdint.h>

/* Open liblzma, for processes that will not be able to open files later. */
void kb_minidebug_prepare(void);

/*
 * Decompress such a section of @size bytes into *@out, which the caller frees. Returns 0;
 * -ENOSYS: liblzma is not installed; -EBADMSG: the section is damaged or has more than 64 MiB; or
 * -ENOMEM. After an error *@out is NULL.
 */
int kb_minidebug_unpack(const void *data, size_t size, uint8_t **out, size_t *unpacked);

#endif
