# a gap begins with the last loss
s/ == lost || since < READ_ONCE(owed->since))$/ || true)/
