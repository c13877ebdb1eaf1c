"""Solution: cleo polls too late again and again, leaves and joins again; then anna, the leader, joins again by itself."""

ends = [("cleo", "LeaveGroup"), ("cleo", "JoinGroup"), ("anna", "JoinGroup"), ("cleo", "LeaveGroup")]
