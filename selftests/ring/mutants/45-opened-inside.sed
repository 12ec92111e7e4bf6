# a writer that looks whether the ring is closed after its clock alone may be older than the opening
/^static noinline struct kbarman_slot ring_reserve(/,/^}/{
/Before `w` and the clock/,/^	barrier();/d
}
