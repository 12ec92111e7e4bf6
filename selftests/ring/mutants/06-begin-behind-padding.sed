# a writer that padded takes itself for a nested one
/^static noinline struct kbarman_slot ring_reserve(/,/^}/s/\.begin = begin };/.begin = head };/
