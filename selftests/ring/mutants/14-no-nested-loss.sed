# no limit to what nested writers may take
s/if (after(end - READ_ONCE(ring->commit), size)) {/if (false) {/
