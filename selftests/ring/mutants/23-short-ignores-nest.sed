# the short way is taken by nested writers
s/if (unlikely(READ_ONCE(ring->nest)))/if (false)/
