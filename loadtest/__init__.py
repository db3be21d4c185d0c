"""Load tests of the gateway: `python -m loadtest --help`.

    values, options ─┐                 ┌─ run ─────────────────────────┐
    talk (lines) ────┤                 ├─ peers ───────────────────────┤
    driving (clients)┼─ trial.measure ─┼─ journey (with baselines) ────┼─ __main__
    systems ─────────┘                 ├─ sweep, capacity, recommend ──┤
                                       └─ trial.report ────────────────┤
    soak, partials, page: own plans, clients and reports ──────────────┘

Everything runs on this machine: the gateway listens on the loopback interface, and nothing else is called.
"""
