"""Solution: a pause begins with the first parked request after a Stable group, and ends when the group is Stable again."""


def pauses(run):
    found, parked = {}, []
    for r in run.records:
        if r.kind == "park":
            parked.append(r.at_ms)
        if r.kind == "group" and r.fields["to"] == "Stable":
            found[r.fields["group_metadata"].generation] = r.at_ms - parked[0]
            parked = []
    return found
