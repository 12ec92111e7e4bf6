/* SPDX-License-Identifier: MIT */
/* What has taken time: records of system calls, faults and block requests, which are alike. */
#ifndef KB_LIB_FORMAT_BARMAN_ENDED_H
#define KB_LIB_FORMAT_BARMAN_ENDED_H

#include <stdint.h>

#include <uapi/barman_v2.h>

/* The bytes of struct bm_kbarman_syscall and of its like, the detail included; 0: @what takes no time. */
static inline uint64_t barman_ended_bytes(uint8_t what)
{
	return what == BM_KBARMAN_SYSCALL ? sizeof(struct bm_kbarman_syscall) :
	       what == BM_KBARMAN_FAULT	  ? sizeof(struct bm_kbarman_fault) :
	       what == BM_KBARMAN_BLOCK	  ? sizeof(struct bm_kbarman_block) : 0;
}

#endif
