# SPDX-License-Identifier: MIT
#
# awk -f kcsan.awk: the kernel's messages without the race detector's reports of races that
# are not the module's. Linux has races of its own, some within what the module calls, or
# what an interrupt calls that came while the module ran: a frame of the module in a report
# says nothing. A race is the module's when the module's code made one of its two accesses,
# by itself or through a function that copies, compares or links what it is given and touches
# nothing else (copy_from_kernel_nofault() counts in the current task).

BEGIN {
	helper = "^(_*(mem|str)[a-z]+|_*(arch_)?copy_(to|from)_user|_*list_[a-z_]+|_*bitmap_[a-z_]+|_*rb_[a-z_]+)\\+"
}

/BUG: KCSAN: / {
	report = $0
	ours = access = 0
	next
}
report == "" {
	print
	next
}
/======/ {
	if (ours)
		print report "\n" $0
	report = ""
	next
}
{
	report = report "\n" $0
}
# "write (marked) to 0xffff8880053ba400 of 8 bytes by task 1 on cpu 0:", and frames below it
/(read|write) .*to 0x/ {
	access = 1
	next
}
access && match($0, /[A-Za-z0-9_.]+\+0x/) {
	if (/\[kbarman\]/)
		ours = 1
	access = !/\[kbarman\]/ && substr($0, RSTART) ~ helper
}
END {
	# cut off in the middle: that it is not the module's is not known
	if (report != "")
		print report
}
