# consume takes any position
s/if (walk(ring, from, target, &records) != target)/if (walk(ring, from, target, \&records) == 1)/
