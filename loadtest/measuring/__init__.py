"""One trial, measured: lines are played to a system while the machine is watched."""
