# a ring is emptied with the limits of the short way that it had
/^void kbarman_ring_empty(struct/,/^}/{
/_limit, closed);/d
}
