# the clock is not read again when another writer came in between
/^	do {$/i\	now = ring_clock();
/^		now = ring_clock();$/d
