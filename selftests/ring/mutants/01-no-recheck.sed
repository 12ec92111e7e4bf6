# commit does not look whether a writer came in while it published
s/if (unlikely(now != READ_ONCE(ring->w)) ||/if (/
s/while (unlikely(now != READ_ONCE(ring->w)))/while (false)/
