"""Load tests of the gateway: `python -m loadtest --help`.

    workload ─┐
    results ──┼─ speakers (the client process) ─┐
    machine ──┤  serving (gateway + engine) ────┼─ direct ─ __main__
              └─ report ────────────────────────┤
       soak, partials, page (own packages) ─────┘

Everything runs on this machine: the gateway listens on the loopback interface, and nothing else is called.
"""
