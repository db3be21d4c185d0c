"""Tells others of meetings over HTTP."""
