-- Whether the store takes new work: a full one refuses this script, as every other that promises more.

return 1
