# a snapshot that was overtaken up to its end tries again
s/if (kbarman_ring_after(oldest, end))/if (!kbarman_ring_after(end, oldest))/
