# who waits for less waits for as much as the one before
s/!left || left > pages;/!left;/
