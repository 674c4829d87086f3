"""From featurised runs to a compiled monitor: event abstraction, heads, objective, trainer, calibration."""

from typing import TYPE_CHECKING, Any

from prefixguard.distribution import install_command
from prefixguard.errors import missing_extra

try:
    import lightgbm  # noqa: F401
    import onnx  # noqa: F401
    import scipy  # noqa: F401
    import sklearn  # noqa: F401
    import threadpoolctl  # noqa: F401
except ImportError as exc:
    networks = f"{install_command('train')} adds torch, for the backends that are networks"
    raise missing_extra("training", "gbdt", exc, or_else=networks) from exc

from prefixguard.learn.calibrate import (
    bundle_logits,
    draw_alarm_runs,
    draw_drift_runs,
    drift_reference,
    fit_platt,
    model_logits,
    set_thresholds,
)
from prefixguard.learn.config import BACKENDS, LearnListener, TrainConfig, read_toml
from prefixguard.learn.corpus import Corpus, Rows, featurise, labels
from prefixguard.learn.fit import FittedMonitor, fit_monitor, torch_part
from prefixguard.learn.teacher import out_of_fold, run_weights, sparse_matrix, steps_of
from prefixguard.learn.train import SCORES_ADAPTER, TrainResult, split_for_training, train, train_corpus

if TYPE_CHECKING:
    from prefixguard.learn.soft_fsm import SoftFsm

__all__ = [
    "BACKENDS",
    "SCORES_ADAPTER",
    "Corpus",
    "FittedMonitor",
    "LearnListener",
    "Rows",
    "SoftFsm",
    "TrainConfig",
    "TrainResult",
    "bundle_logits",
    "draw_alarm_runs",
    "draw_drift_runs",
    "drift_reference",
    "featurise",
    "fit_monitor",
    "fit_platt",
    "labels",
    "model_logits",
    "out_of_fold",
    "read_toml",
    "run_weights",
    "set_thresholds",
    "sparse_matrix",
    "split_for_training",
    "steps_of",
    "torch_part",
    "train",
    "train_corpus",
]

#: Names that need torch, and the files that have them.
_WITH_TORCH = {"SoftFsm": "soft_fsm"}


def __getattr__(name: str) -> Any:
    if name not in _WITH_TORCH:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(torch_part(f"{__name__}.{_WITH_TORCH[name]}", f"{__name__}.{name}"), name)
