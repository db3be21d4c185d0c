"""The event log in Redis or Valkey, which several gateways share and which outlives them.

One server, with a copy of everything on its disk before it answers (`appendfsync always`); not Redis Cluster.

`connection` is one connection, `commands` sends many commands in one go, `store` runs scripts, `entries` is what
is written and read, `pushes` how publications come, `checks` what must be set in the server, the rest adapters.
"""
