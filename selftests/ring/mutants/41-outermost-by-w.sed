# a writer takes itself for the outermost one if nobody has reserved behind it
s/^	return READ_ONCE(ring->commit) == begin;$/	return READ_ONCE(ring->w) - begin < 64;/
