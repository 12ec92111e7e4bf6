# a nested writer publishes
/if (unlikely(ring->nest > 1)) {/,/^	}/c\	if (ring->nest > 1)\n		ring->nest--;
