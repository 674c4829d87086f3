"""From featurised runs to a compiled monitor: event abstraction, heads, objective, trainer, calibration."""

from prefixguard.errors import MissingExtraError

try:
    import lightgbm  # noqa: F401
    import onnx  # noqa: F401
    import scipy  # noqa: F401
    import sklearn  # noqa: F401
    import torch  # noqa: F401
except ImportError as exc:
    raise MissingExtraError(f'training needs {exc.name}. Install it with: pip install "prefixguard[train]"') from exc

from prefixguard.learn.batches import labels
from prefixguard.learn.bundle_logits import bundle_logits, model_logits
from prefixguard.learn.calibrate import fit_platt
from prefixguard.learn.checkpoint import Checkpoints
from prefixguard.learn.checks import check_head
from prefixguard.learn.config import BACKENDS, TrainConfig, read_toml
from prefixguard.learn.corpus import Corpus, Rows, featurise
from prefixguard.learn.drift_reference import draw_drift_runs, drift_reference
from prefixguard.learn.fit import FittedMonitor, fit_monitor
from prefixguard.learn.marks import draw_alarm_runs, set_marks
from prefixguard.learn.soft_fsm import SoftFsm
from prefixguard.learn.teacher import out_of_fold, run_weights, sparse_matrix, steps_of
from prefixguard.learn.train import TrainResult, train, train_corpus
from prefixguard.learn.trainer import LearnListener

__all__ = [
    "BACKENDS",
    "Checkpoints",
    "Corpus",
    "FittedMonitor",
    "LearnListener",
    "Rows",
    "SoftFsm",
    "TrainConfig",
    "TrainResult",
    "bundle_logits",
    "check_head",
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
    "set_marks",
    "sparse_matrix",
    "steps_of",
    "train",
    "train_corpus",
]
