# a writer that found no room leaves without publishing
/!make_room/,/return NULL/s/kbarman_ring_commit(ring);/ring->nest--;/
