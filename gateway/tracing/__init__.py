"""Traces: where the time of one utterance, or of one request over HTTP, went. Off unless an endpoint is set."""
