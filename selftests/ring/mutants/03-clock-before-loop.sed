# the clock is not read again when another writer came in between
/^static noinline struct kbarman_slot ring_reserve(/,/^}/{
/^	do {$/i\	now = ring_clock();
/^		now = ring_clock();$/d
}
