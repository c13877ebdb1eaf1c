"""Exercise: what happens when broker 2 comes back? Order the letters, then lab.check("order-a-startup", order)."""

# A  u-0, which has its only replica there, gets its leader back
# B  broker 2 is told every leader there is
# C  the other brokers are told that broker 2 is alive
# D  broker 2 is told which replicas it hosts, and whom they follow
# E  the registrations of all brokers are read
order = []
