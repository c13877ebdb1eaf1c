"""Functions that convert the log files of brokers (server.log and others) into Spark tables.

A record of such a table is one entry of a log file: a line with a time, and the lines that continue it. Lines that are no part of
a record have a table of their own.
"""
