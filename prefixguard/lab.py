"""The former name of `prefixguard.simulation`, for one release."""

import warnings

from prefixguard.simulation import WORLDS, generate, write_runs

__all__ = ["WORLDS", "generate", "write_runs"]

warnings.warn("prefixguard.lab is prefixguard.simulation now: import it from there.", FutureWarning, stacklevel=2)
