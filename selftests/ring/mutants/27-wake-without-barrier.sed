# who waits is asked before what was written is to be seen
/^	smp_mb();$/d
