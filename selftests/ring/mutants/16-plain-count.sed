# records are counted by load and store, those of nested writers as well
s/data_race(ring->written++);/{ unsigned long n = READ_ONCE(ring->written); barrier(); WRITE_ONCE(ring->written, n + 1); }/
s/local_inc(&ring->nested);/{ unsigned long n = READ_ONCE(ring->written); barrier(); WRITE_ONCE(ring->written, n + 1); }/
