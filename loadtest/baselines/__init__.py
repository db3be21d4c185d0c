"""Services as they were built before the gateway: an HTTP front, a queue, worker processes with an engine each.

They are what the gateway is compared with, so they are built as well as their architecture allows.
"""
