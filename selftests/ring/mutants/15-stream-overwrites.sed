# a stream evicts as well
s/if (!ring->overwrite) {/if (false) {/
