/* SPDX-License-Identifier: MIT */
/*
 * System calls that the headers of older systems lack. A tool that is built there uses them if the
 * kernel has them. The numbers are the same on all machines.
 */
#ifndef KB_CLI_BASE_SYSCALLS_H
#define KB_CLI_BASE_SYSCALLS_H

#include <sys/syscall.h>

#ifndef SYS_close_range
#define SYS_close_range	436
#endif
#ifndef SYS_faccessat2
#define SYS_faccessat2	439
#endif

#if __has_include(<linux/landlock.h>)
#include <linux/landlock.h>
#else
#include <linux/types.h>

struct landlock_ruleset_attr {
	__u64 handled_access_fs;
};

struct landlock_path_beneath_attr {
	__u64 allowed_access;
	__s32 parent_fd;
} __attribute__((packed));

#define LANDLOCK_CREATE_RULESET_VERSION	(1U << 0)
#define LANDLOCK_RULE_PATH_BENEATH	1
#define LANDLOCK_ACCESS_FS_EXECUTE	(1ULL << 0)
#define LANDLOCK_ACCESS_FS_WRITE_FILE	(1ULL << 1)
#define LANDLOCK_ACCESS_FS_READ_FILE	(1ULL << 2)
#define LANDLOCK_ACCESS_FS_READ_DIR	(1ULL << 3)
#define LANDLOCK_ACCESS_FS_REMOVE_DIR	(1ULL << 4)
#define LANDLOCK_ACCESS_FS_REMOVE_FILE	(1ULL << 5)
#define LANDLOCK_ACCESS_FS_MAKE_CHAR	(1ULL << 6)
#define LANDLOCK_ACCESS_FS_MAKE_DIR	(1ULL << 7)
#define LANDLOCK_ACCESS_FS_MAKE_REG	(1ULL << 8)
#define LANDLOCK_ACCESS_FS_MAKE_SOCK	(1ULL << 9)
#define LANDLOCK_ACCESS_FS_MAKE_FIFO	(1ULL << 10)
#define LANDLOCK_ACCESS_FS_MAKE_BLOCK	(1ULL << 11)
#define LANDLOCK_ACCESS_FS_MAKE_SYM	(1ULL << 12)
#endif

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset	444
#define SYS_landlock_add_rule		445
#define SYS_landlock_restrict_self	446
#endif

#endif
