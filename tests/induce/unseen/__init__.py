"""Raw trace formats that look like what products emit, as generators of samples with ground truth.

`FORMATS[name].write(folder, seed, runs)` writes sample files below the folder and gives a Truth for each run. Same seed,
same files. Of fifteen pairs one was drawn by a coin (random.Random(771_204)) before any was written; the others,
`second_*`, stayed closed until the search was measured on them once.
The twelve of `products_*` came later, from somebody who had seen neither the search nor the others; so did the
twelve of `agents_*`, from another one; six of these were looked at long after the others.
`python -m unseen [seed]` checks every format. What the fields of Truth mean: `unseen.truth`.
"""

from importlib import import_module

from unseen.truth import FORMATS, Format, Step, Truth, check

for _group in ("chat", "rows", "spans", "text"):
    import_module(f"unseen.{_group}")
    import_module(f"unseen.second_{_group}")
    import_module(f"unseen.products_{_group}")
    import_module(f"unseen.agents_{_group}")

__all__ = ["FORMATS", "Format", "Step", "Truth", "check"]
