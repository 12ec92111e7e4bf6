# what was written before the wake-up was armed counts for it
s/^	} while (pages && pages < most);$/	} while (0);/
