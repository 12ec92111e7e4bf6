# the fast test looks at read_offset, which another may have moved just now
s/kbarman_ring_after(next, READ_ONCE(ring->limit))/kbarman_ring_after(next, READ_ONCE(ring->header->read_offset) + ring->mask + 1)/
