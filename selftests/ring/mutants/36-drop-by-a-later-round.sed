# drop takes a later round's block for one that it was told of
/^void kbarman_ring_drop(/,/^}/{
s/target - position >= kbarman_ring_size(ring) || //
}
