# a ring is taken to be a word larger than it is
s/WRITE_ONCE(ring->limit, oldest + size);/WRITE_ONCE(ring->limit, oldest + size + WORD);/
s/if (!kbarman_ring_after(end - oldest, size))/if (!kbarman_ring_after(end - oldest, size + WORD))/
