/* SPDX-License-Identifier: MIT */
/* The parts of a latency report as text. latency.c says in which order they come. */
#ifndef KB_LIB_EXPORT_TEXT_LATENCY_PARTS_H
#define KB_LIB_EXPORT_TEXT_LATENCY_PARTS_H

#include "export/text/latency_put.h"

/* ---- latency_waits.c ---- */

void latency_put_waits(const struct latency_text *text);

/* ---- latency_irq.c ---- */

void latency_put_interrupts(const struct latency_text *text);
void latency_put_halts(const struct latency_text *text);
void latency_put_cpus(const struct latency_text *text);

#endif
