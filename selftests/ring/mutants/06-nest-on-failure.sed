# a writer that found no room leaves without publishing
/^noinline struct kbarman_slot kbarman_ring_reserve_slow/,/^}/s/kbarman_ring_commit(ring);/ring->nest--;/
