/* SPDX-License-Identifier: MIT */
/* The reasons in plain words: each fills in `reason` of a moment whose other members are set. */
#ifndef KB_LIB_TRIGGER_REASON_H
#define KB_LIB_TRIGGER_REASON_H

#include <kbarman/latency.h>
#include <kbarman/trigger.h>

#include "analysis/latency/wakeups.h"

/* @task waited; @waker: who woke it. */
void kb_reason_wait(struct kb_fired *fired, const struct kb_latency_wait *wait, const char *task,
		    const char *waker);
/* @call: the system call in which it waits; @object: for what. NULL: not to be told. */
void kb_reason_off(struct kb_fired *fired, const struct kb_off *off, bool is_over, const char *task,
		   const char *call, const char *object);

/* @name: of the interrupt; @task: whom it interrupted, NULL: nobody that is known. */
void kb_reason_irq(struct kb_fired *fired, const struct kb_tile *tile, const char *name,
		   const char *task);
/* @call took that long, in @task. */
void kb_reason_syscall(struct kb_fired *fired, const char *call, const char *task);

/* @task: of fired->task_id, which gave the request to Linux's queue; NULL: that is not known. */
void kb_reason_block(struct kb_fired *fired, uint8_t operation, const char *disk, const char *task);
void kb_reason_rate(struct kb_fired *fired, const char *name, double rate);
void kb_reason_value(struct kb_fired *fired, const char *name, double value);
void kb_reason_mark(struct kb_fired *fired, const struct kb_event *event, const char *task);
void kb_reason_psi(struct kb_fired *fired);
void kb_reason_signal(struct kb_fired *fired, const char *name);

#endif
