"""What others are told of meetings over HTTP."""
