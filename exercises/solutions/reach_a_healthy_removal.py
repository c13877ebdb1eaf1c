"""Solution: a heartbeat during a rebalance is answered, and does not restart the session timeout (0.9)."""

acts = [("join", "anna"), ("heartbeat", "cleo"), ("fire_timer", 2, "session billing cleo-7f4fa49f457d07351e6bc3fb29cb096c")]
