# commit does not look whether a writer came in while it published
s/if (unlikely(it->end != data_race(ring->w)))/if (false)/
s/while ((end = READ_ONCE(ring->w)) != now && READ_ONCE(ring->commit) == now) {/if ((end = READ_ONCE(ring->w)) != now) {/
