# eviction takes all that is published
s/return kbarman_ring_after(target, commit) || kbarman_ring_after(needed, target) ? commit : target;/return commit;/
