# a nested writer publishes
/if (unlikely(READ_ONCE(ring->nest) > 1)) {/,/^	}/c\	if (ring->nest > 1)\n		ring->nest--;
