"""The values that every room shares: events, effects, rules, tables, znodes. Pure."""
