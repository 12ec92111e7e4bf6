# a stream drops as well
/^void kbarman_ring_drop(/,/^}/{
s/if (!ring->overwrite)/if (false)/
}
