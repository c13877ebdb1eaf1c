"""Solution: roundrobin is no candidate, because anna does not offer it; bert, cleo and dora vote for sticky."""

# anna offers range, sticky; bert and cleo offer roundrobin, sticky, range; dora offers sticky, range, roundrobin.
winner = "sticky"
