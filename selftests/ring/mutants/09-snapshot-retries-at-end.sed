# a snapshot that was overtaken up to its end tries again
s/if (after(oldest, end))/if (!after(end, oldest))/
