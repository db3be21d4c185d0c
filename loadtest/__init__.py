"""Load tests of the gateway: `python -m loadtest --help`.

    trial       what is said, what became of it, and the one report of every load test
    talk        which lines are said
    options     what a subcommand is, and what load tests have in common on the command line
    systems     the gateway and other servers, started or found
    driving     clients, in processes of their own
    measuring   one trial, with the machine watched meanwhile

    run, baselines, peers, journey, capacity (sweep and recommend), soak, partials

A folder imports only folders above it; a test reads the files and forbids circles. All of it runs on this machine:
the gateway listens on the loopback interface, and nothing else is called.
"""
