# no limit to what nested writers may take
s/if (kbarman_ring_after(end - READ_ONCE(ring->commit), size)) {/if (false) {/
