# a writer looks whether somebody else has published, and then what there is to publish
s/while ((end = READ_ONCE(ring->w)) != now && READ_ONCE(ring->commit) == now) {/while (READ_ONCE(ring->commit) == now \&\& (end = READ_ONCE(ring->w)) != now) {/
