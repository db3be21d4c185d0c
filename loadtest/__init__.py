"""Load tests of the gateway: `python -m loadtest --help`.

    talk (lines) ──────────────┐                 ┌─ run, sweep, capacity, recommend ─┐
    systems (what is measured) ┼─ trial.measure ─┼─ peers                            ┼─ __main__
    driving (client processes) ┘                 ├─ journey (with baselines)         │
                                                 └─ trial.report ────────────────────┤
    soak, partials, page: own plans, clients and reports ────────────────────────────┘

`systems.gateway` starts every gateway. Everything runs on this machine: the gateway listens on the loopback
interface, and nothing else is called.
"""
