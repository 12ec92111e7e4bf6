// SPDX-License-Identifier: GPL-2.0-only
#include <linux/cpu.h>
#include <linux/nospec.h>
#include <linux/overflow.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <linux/topology.h>

#include "capture/capture.h"
#include "capture/header.h"
#include "capture/memory.h"
#include "capture/storage.h"
#include "here.h"
#include "ring/record.h"
#include "sessions/rings.h"
#include "stacks/callchain.h"

static int ring_allocate(struct kbarman_session *session, int cpu)
{
	struct kbarman_cpu *percpu = per_cpu_ptr(session->each, cpu);
	unsigned long pages = session->config.ring_bytes >> KBARMAN_RING_PAGE_SHIFT;

	if (!percpu->pages)
		percpu->pages = kbarman_memory_pages(array_size(pages, sizeof(*percpu->pages)),
						  cpu_to_node(cpu));
	if (!percpu->pages)
		return -ENOMEM;
	return kbarman_capture_add_ring(session->capture, cpu);
}

static void ring_begin(struct kbarman_session *session, int cpu)
{
	struct kbarman_cpu *percpu = per_cpu_ptr(session->each, cpu);

	percpu->ring.wake = session->wake;
	percpu->ring.stamp = kbarman_record_stamp(cpu);
	percpu->ring.closed = true;
	kbarman_ring_init(&percpu->ring, session->capture->rings[cpu], percpu->pages,
			  session->config.ring_bytes, cpu,
			  session->config.mode == KBARMAN_MODE_OVERWRITE);
}

int kbarman_rings_add(struct kbarman_session *session, int cpu)
{
	int error = kbarman_callchain_add(session, cpu) ?: ring_allocate(session, cpu);

	if (!error)
		ring_begin(session, cpu);
	return error;
}

static void ring_empty(struct kbarman_cpu *percpu)
{
	struct kbarman_ring *ring = kbarman_ring_of(percpu);

	if (!ring)
		return;
	kbarman_ring_empty(ring);
	percpu->told_offline = false;
}

static void ring_empty_here(void *data)
{
	ring_empty(kbarman_here(data));
}

/*
 * Probes are attached, and find the rings closed. Each ring is emptied by its CPU, which no probe
 * interrupts but one in an NMI. A CPU that is offline can't come online meanwhile.
 */
void kbarman_rings_empty(struct kbarman_session *session)
{
	struct kbarman_map_tail *tail;
	struct kbarman_ring *ring;
	int cpu;

	/* This may be megabytes, and needs no CPU to itself: who writes nothing looks at no page. */
	for_each_cpu(cpu, session->cpus) {
		ring = kbarman_rings_find(session, cpu);
		tail = kbarman_capture_tail(session->capture, cpu);
		if (ring)
			kbarman_ring_forget_pages(ring);
		if (tail) {
			tail->former = tail->counts;
			memset(&tail->counts, 0, sizeof(tail->counts));
		}
		cond_resched();
	}
	cpus_read_lock();
	on_each_cpu_mask(session->cpus, ring_empty_here, kbarman_probe_data(session), true);
	for_each_cpu(cpu, session->cpus)
		if (!cpu_online(cpu))
			ring_empty(per_cpu_ptr(session->each, cpu));
	cpus_read_unlock();
}

void kbarman_rings_forget(struct kbarman_session *session)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		struct kbarman_cpu *percpu = per_cpu_ptr(session->each, cpu);

		memset(&percpu->ring, 0, sizeof(percpu->ring));
		kbarman_memory_free(percpu->pages);
		percpu->pages = NULL;
	}
}

static void ring_close_here(void *data)
{
	struct kbarman_ring *ring = kbarman_ring_of(kbarman_here(data));

	if (ring && !READ_ONCE(ring->closed))
		kbarman_ring_close(ring);
}

void kbarman_rings_close(struct kbarman_session *session)
{
	struct kbarman_ring *ring;
	int cpu;

	on_each_cpu_mask(session->cpus, ring_close_here, kbarman_probe_data(session), true);
	/* Those of CPUs that are offline, or were a moment ago. */
	for_each_cpu(cpu, session->cpus) {
		ring = kbarman_rings_find(session, cpu);
		if (ring && !READ_ONCE(ring->closed) &&
		    smp_call_function_single(cpu, ring_close_here, kbarman_probe_data(session),
					     true))
			kbarman_ring_shut(ring);
	}
}

void kbarman_rings_settle(struct kbarman_session *session)
{
	struct kbarman_ring *ring;
	int cpu;

	for_each_cpu(cpu, session->cpus) {
		ring = kbarman_rings_find(session, cpu);
		if (ring)
			kbarman_ring_settle(ring);
	}
}

void kbarman_rings_close_short(struct kbarman_session *session)
{
	struct kbarman_ring *ring;
	int cpu;

	for_each_possible_cpu(cpu) {
		ring = kbarman_ring_of(per_cpu_ptr(session->each, cpu));
		if (ring)
			kbarman_ring_close_short(ring);
	}
}

void kbarman_rings_sign(struct kbarman_session *session)
{
	struct kbarman_capture *capture = session->capture;
	u32 state = KBARMAN_STATE_CONFIGURED;
	struct kbarman_map_tail *tail;
	int cpu;

	static_assert(sizeof(*tail) + sizeof(struct bm_datastore_header_data) <= KBARMAN_RING_PAGE);

	lockdep_assert_held(&session->lock);
	if (session->running)
		state |= KBARMAN_STATE_RUNNING;
	if (session->unsteady)
		state |= KBARMAN_STATE_UNSTEADY;
	for_each_cpu(cpu, session->cpus) {
		tail = kbarman_capture_tail(capture, cpu);
		if (!tail)
			continue;
		tail->size = sizeof(*tail);
		tail->abi = KBARMAN_ABI;
		tail->cpu = cpu;
		tail->word_bytes = sizeof(long);
		tail->session = capture->session;
		WRITE_ONCE(tail->recording, session->recording_id);
		kbarman_header_sign(capture, tail);
		WRITE_ONCE(tail->state, state);
	}
}

struct kbarman_ring *kbarman_rings_find(struct kbarman_session *session, u32 cpu)
{
	if (!session->capture || cpu >= nr_cpu_ids || !cpu_possible(cpu))
		return NULL;
	cpu = array_index_nospec(cpu, nr_cpu_ids);
	/* The ring of a CPU that is coming online may not be ready. */
	return kbarman_ring_of(per_cpu_ptr(session->each, cpu));
}
