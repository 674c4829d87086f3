"""The public names, each once: this stub types them, and the package reads it to know which room has which."""

from prefixguard import factory as factory
from prefixguard.alarm import AlarmPolicy as AlarmPolicy
from prefixguard.alarm import Level as Level
from prefixguard.auditor import AuditLine as AuditLine
from prefixguard.auditor import AuditPlan as AuditPlan
from prefixguard.auditor import audit as audit
from prefixguard.automata import ExportResult as ExportResult
from prefixguard.automata import export as export
from prefixguard.bundle import (
    Bundle as Bundle,
)
from prefixguard.bundle import (
    KeyPair as KeyPair,
)
from prefixguard.bundle import (
    Signed as Signed,
)
from prefixguard.bundle import (
    new_key as new_key,
)
from prefixguard.bundle import (
    open_bundle as open_bundle,
)
from prefixguard.bundle import (
    sign as sign,
)
from prefixguard.cli import info as info
from prefixguard.errors import PrefixGuardError as PrefixGuardError
from prefixguard.escalate import (
    Endpoint as Endpoint,
)
from prefixguard.escalate import (
    EscalatedReading as EscalatedReading,
)
from prefixguard.escalate import (
    EscalatedSession as EscalatedSession,
)
from prefixguard.escalate import (
    EscalationPolicy as EscalationPolicy,
)
from prefixguard.escalate import (
    Escalator as Escalator,
)
from prefixguard.escalate import (
    Verdict as Verdict,
)
from prefixguard.evaluation import (
    Comparison as Comparison,
)
from prefixguard.evaluation import (
    EvaluationTable as EvaluationTable,
)
from prefixguard.evaluation import (
    check_behaviours as check_behaviours,
)
from prefixguard.evaluation import (
    compare as compare,
)
from prefixguard.evaluation import (
    evaluate as evaluate,
)
from prefixguard.evaluation.controls import controls_beside as controls_beside
from prefixguard.evaluation.data_check import DataCheck as DataCheck
from prefixguard.evaluation.data_check import check_data as check_data
from prefixguard.evaluation.judge import JudgeResult as JudgeResult
from prefixguard.evaluation.judge import judge as judge
from prefixguard.evaluation.leaks import LeakAudit as LeakAudit
from prefixguard.evaluation.leaks import audit_leaks as audit_leaks
from prefixguard.evaluation.report import report_of as report_of
from prefixguard.evaluation.report import write_report as write_report
from prefixguard.evaluation.retraining import ablate as ablate
from prefixguard.evaluation.retraining import cross_validate as cross_validate
from prefixguard.evaluation.retraining import leave_one_agent_out as leave_one_agent_out
from prefixguard.evaluation.retraining import training_of as training_of
from prefixguard.hook import hook_settings as hook_settings
from prefixguard.induce import (
    CheckReport as CheckReport,
)
from prefixguard.induce import (
    Induced as Induced,
)
from prefixguard.induce import (
    check_adapter as check_adapter,
)
from prefixguard.induce import (
    induce_adapter as induce_adapter,
)
from prefixguard.integrations import (
    Alarm as Alarm,
)
from prefixguard.integrations import (
    Event as Event,
)
from prefixguard.integrations import (
    Guard as Guard,
)
from prefixguard.integrations import (
    WatchedRun as WatchedRun,
)
from prefixguard.integrations.converting import convert as convert
from prefixguard.integrations.sinks import FileSink as FileSink
from prefixguard.integrations.sinks import LogSink as LogSink
from prefixguard.integrations.sinks.observability import LangfuseSink as LangfuseSink
from prefixguard.integrations.sinks.observability import PhoenixSink as PhoenixSink
from prefixguard.integrations.sinks.telemetry import OpenTelemetrySink as OpenTelemetrySink
from prefixguard.integrations.sinks.telemetry import PrometheusSink as PrometheusSink
from prefixguard.integrations.sinks.webhook import WebhookSink as WebhookSink
from prefixguard.learn import LearnListener as LearnListener
from prefixguard.learn import TrainConfig as TrainConfig
from prefixguard.learn.train import TrainResult as TrainResult
from prefixguard.learn.train import train as train
from prefixguard.runtime import (
    CalibratedRules as CalibratedRules,
)
from prefixguard.runtime import (
    CalibrateResult as CalibrateResult,
)
from prefixguard.runtime import (
    Drift as Drift,
)
from prefixguard.runtime import (
    DriftReference as DriftReference,
)
from prefixguard.runtime import (
    DriftSignal as DriftSignal,
)
from prefixguard.runtime import (
    Monitor as Monitor,
)
from prefixguard.runtime import (
    Reading as Reading,
)
from prefixguard.runtime import (
    ScoredRun as ScoredRun,
)
from prefixguard.runtime import (
    Session as Session,
)
from prefixguard.runtime import (
    calibrate as calibrate,
)
from prefixguard.runtime import (
    calibrate_rules as calibrate_rules,
)
from prefixguard.runtime import (
    load as load,
)
from prefixguard.runtime import (
    parse as parse,
)
from prefixguard.runtime import (
    score as score,
)
from prefixguard.runtime import (
    watch as watch,
)
from prefixguard.simulation.demonstration import demo as demo
from prefixguard.stepview import (
    Adapter as Adapter,
)
from prefixguard.stepview import (
    ReadReport as ReadReport,
)
from prefixguard.stepview import (
    SpooledRuns as SpooledRuns,
)
from prefixguard.stepview import (
    StepRecord as StepRecord,
)
from prefixguard.stepview import (
    list_adapters as list_adapters,
)
from prefixguard.stepview import (
    load_adapter as load_adapter,
)
from prefixguard.store import Store as Store
from prefixguard.trace import Fault as Fault
from prefixguard.trace import Mistake as Mistake
from prefixguard.trace import Outcome as Outcome
from prefixguard.trace import Run as Run

__distribution__: str
__version__: str
