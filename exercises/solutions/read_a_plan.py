"""Solution: one scan of the files; each pair of run and kind has all its rows in one partition after the exchange."""

# The plan of SELECT run, kind, count(*) FROM journal GROUP BY run, kind:
#
# HashAggregate
#   Exchange hashpartitioning(run, kind)
#     HashAggregate
#       BroadcastHashJoin
#         Filter
#           FileScan text
#         BroadcastExchange
#           Filter
#             Scan ExistingRDD
answer = [1, ["run", "kind"]]
