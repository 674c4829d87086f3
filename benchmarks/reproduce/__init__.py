"""The four sets of the PrefixGuard paper, read in their published formats, with the paper's splits and seeds."""
