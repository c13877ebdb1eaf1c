"""Exercise: which assignor wins the vote of four members? Fill in, then exercises.check("read-a-vote", winner)."""

# anna offers range, sticky; bert and cleo offer roundrobin, sticky, range; dora offers sticky, range, roundrobin.
winner = None  # FILL IN: the name of the assignor
