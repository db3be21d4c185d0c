"""Between the socket and uvicorn's protocols: what a connection may cost before anything it says is understood."""
