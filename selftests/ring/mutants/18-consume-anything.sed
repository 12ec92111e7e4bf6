# consume takes any position
s/if (ring_walk(ring, from, target, &records) != target)/if (ring_walk(ring, from, target, \&records) == 1)/
