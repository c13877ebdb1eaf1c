"""The values that all packages share: events, effects, rules, tables, znodes. No I/O."""
