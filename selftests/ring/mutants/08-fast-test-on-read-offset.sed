# the fast test looks at read_offset, which another may have moved just now
s/kbarman_ring_after(end, called ? ring->called_limit : ring->short_limit)/kbarman_ring_crosses(head, end) || kbarman_ring_after(end, READ_ONCE(ring->header->read_offset) + ring->mask + 1)/
s/if (kbarman_ring_after(next, READ_ONCE(ring->limit)) &&/if (kbarman_ring_after(next, READ_ONCE(ring->header->read_offset) + size) \&\&/
