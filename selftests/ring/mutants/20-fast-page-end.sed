# the fast path takes a block that ends a page
s/if (unlikely(kbarman_ring_crosses(head, next)) ||/if (unlikely(kbarman_ring_crosses(head, next - 1)) ||/
