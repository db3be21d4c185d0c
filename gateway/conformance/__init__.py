"""The conformance kit: transcripts of the protocol, and a gateway that plays them to a client in any language.

Knows: the messages, real sockets, and a client's driver as a process. Must not know: the gateway's own code.
docs/write-a-client.md explains how to use it.

    scripted      a gateway on a real socket that follows a script
    transcripts   what happens in a transcript, as JSON
    driver        the client under test
    play          transcripts with one client, with a report
"""
