"""`python -m loadtest partials`: translations of speech that is still going on, as readers see them.

A recogniser's revisions are played in real time into meetings of the real gateway, three ways:

    ours   as partials, then the final; readers choose `live`, `stable` or `final`
    naive  each revision as a final utterance of its own, as a gateway without partials would have it
    alone  the finals only: what quality and tokens are compared with

    result  what a reader was shown over time, broken promises, erasure, lag, scores and their bars (pure)
    run     a speaker and their readers over WebSockets, the arms, one source language after the other; the report
"""
