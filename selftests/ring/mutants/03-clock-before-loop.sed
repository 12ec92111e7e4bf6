# the clock is read once, before the space is reserved
/^	do {$/i\	now = ring_clock();
/^		now = ring_clock();$/d
