# what is between the start of what is there and the end of its page is taken for overwritten
/^static bool records_before(/,/^}/s/^		\*records -= behind;$//
