/* SPDX-License-Identifier: MIT */
/*
 * The PMU counters and the interrupts of a capture by name. Counters of two CPUs are the same counter
 * if they have the same name; then they have the same id. Ids begin at 0.
 *
 *	for (uint32_t id = 0; id < kb_names_nr_counters(names); id++)
 *		printf("%.*s\n", (int)kb_names_counter(names, id).length,
 *		       kb_names_counter(names, id).data);
 *
 * Names of tasks at a time are in kbarman/tasks.h.
 */
#ifndef KBARMAN_NAMES_H
#define KBARMAN_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include <kbarman/text.h>
#include <kbarman/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

struct kb_names;

/* The names in @trace, which owns them. NULL and @err without memory. */
struct kb_names *kb_trace_names(struct kb_trace *trace, struct kb_error *err);

/* The number of different counters; ids are below it. */
uint32_t kb_names_nr_counters(const struct kb_names *names);

/* The name of counter @id, such as "cycles". It is not empty, and may be invalid UTF-8. */
struct kb_text kb_names_counter(const struct kb_names *names, uint32_t id);

/* The number of counters that the header has for @core, which may be any number. */
uint32_t kb_names_of_core(const struct kb_names *names, uint32_t core);

/* The largest number of counters that a core has. */
uint32_t kb_names_most_of_core(const struct kb_names *names);

/*
 * True if samples are taken by the same counter on all cores. On machines with cores of several
 * kinds they may be taken by different ones, whose values can't be added up: then only the number
 * of samples says how much code ran.
 */
bool kb_names_one_weight(const struct kb_names *names);

/*
 * The id of the counter whose values are at @index of the samples of @core. @index is below
 * kb_names_of_core(). The first counter of a core is the one that samples.
 */
uint32_t kb_names_counter_id(const struct kb_names *names, uint32_t core, uint32_t index);

/*
 * The name of the handler of interrupt @irq that has @behind others behind it, as the event of its
 * begin says (struct kb_event, custom_counter.cpu); 0 is the last or only one. Empty: the capture
 * does not say. Source: the facts kbarman.irq.N, from /proc/interrupts of the recorded machine.
 */
struct kb_text kb_names_irq(const struct kb_names *names, uint32_t irq, uint32_t behind);

/*
 * The name of the system call in which the previous task of @event, a task switch, waits; in which the task is
 * that runs at a wakeup; or that @event is itself; NULL: in none, or one that has no name here. It is the same
 * pointer each time, for as long as the library is there.
 */
const char *kb_names_call(const struct kb_names *names, const struct kb_event *event);

/*
 * The object_id of @event, a switch at which @task_id waits, as far as it can be believed: of a lock the thread
 * that holds it, if that is another thread of the same process, else 0.
 */
uint32_t kb_names_object_id(const struct kb_names *names, const struct kb_event *event, uint32_t task_id);

/*
 * The name of what @task_id waits for at @event, a task switch: the path of a file, "make 12 -> cat 13" of a pipe,
 * "tcp 127.0.0.1:80 -> 127.0.0.1:40112" of a socket, "eventpoll". NULL: the recorder did not find it. It
 * may have any bytes. The pointer holds as long as @names, and equal ones are the same name. Source: the facts
 * kbarman.object, from /proc while such a task was waiting or soon after.
 */
const char *kb_names_object(const struct kb_names *names, const struct kb_event *event, uint32_t task_id);

#ifdef __cplusplus
}
#endif

#endif
