/* SPDX-License-Identifier: MIT */
/* The ELF machines of programs that run here: with words of 64 and of 32 bits. */
#ifndef KB_LIB_SYM_FILES_NATIVE_H
#define KB_LIB_SYM_FILES_NATIVE_H

#include <elf.h>

#if defined(__x86_64__) || defined(__i386__)
#define KB_NATIVE_64	EM_X86_64
#define KB_NATIVE_32	EM_386
#elif defined(__aarch64__) || defined(__arm__)
#define KB_NATIVE_64	EM_AARCH64
#define KB_NATIVE_32	EM_ARM
#elif defined(__riscv)
#define KB_NATIVE_64	EM_RISCV
#define KB_NATIVE_32	EM_RISCV
#elif defined(__s390x__)
#define KB_NATIVE_64	EM_S390
#define KB_NATIVE_32	EM_NONE
#else
#define KB_NATIVE_64	EM_NONE
#define KB_NATIVE_32	EM_NONE
#endif

#endif
