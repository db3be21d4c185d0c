"""Whole texts over HTTP: what is asked for in whichever API becomes translations."""
