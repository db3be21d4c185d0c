"""The event log in Redis or Valkey, which several gateways share and which outlives them.

One server, with a copy of everything on its disk before it answers (`appendfsync always`); not Redis Cluster.

`connection` is one connection, `commands` sends many commands in one go, `lua` has the scripts, `entries` what
is written and read, `topic` the order in which a meeting's publications are delivered, `pushes` how they come,
`log` the adapter, `checks` what must be set in the server.
"""
