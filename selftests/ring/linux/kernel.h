/* SPDX-License-Identifier: MIT */
/* For kmod/ring/wake.c in user space. */
#define container_of(p, type, member)	((type *)((char *)(p) - offsetof(type, member)))
