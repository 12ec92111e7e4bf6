# eviction goes beyond what is published
s/return kbarman_ring_after(target, commit) || kbarman_ring_after(needed, target) ? commit : target;/return target;/
s/^	if (kbarman_ring_after(target, commit))$/	if (false)/
