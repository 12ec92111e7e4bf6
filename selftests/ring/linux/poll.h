/* SPDX-License-Identifier: MIT */
/* For kmod/ring/wake.h in user space: who polls is known to the test. */
struct file;
struct poll_table_struct;

#define poll_wait(file, queue, wait)	((void)(file), (void)(queue), (void)(wait))
