"""The four sets, in the paper's order."""

from __future__ import annotations

from collections.abc import Mapping

from reproduce import skillsbench, tau2, terminalbench, webarena
from reproduce.benchmark import Benchmark

BENCHMARKS: Mapping[str, Benchmark] = {
    module.BENCHMARK.name: module.BENCHMARK for module in (webarena, tau2, skillsbench, terminalbench)
}
