# a writer publishes what somebody else has published since
s/while ((end = READ_ONCE(ring->w)) != now && READ_ONCE(ring->commit) == now) {/while ((end = READ_ONCE(ring->w)) != now) {/
