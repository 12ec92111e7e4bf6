# the short way is taken by nested writers
/bool kbarman_ring_reserve_within(/,/^}/s/head = READ_ONCE(ring->commit);/head = READ_ONCE(ring->w);/
