# records are counted by load and store
s/local_inc(&ring->written);/{ long n = READ_ONCE(ring->written.value); barrier(); WRITE_ONCE(ring->written.value, n + 1); }/
