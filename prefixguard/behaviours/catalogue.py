"""The behaviours that are known of every agent, as data.

Each step has exactly one of the last eleven, which say what the step is. The others hold or do not hold. All rest on
what the step's record and the steps before it say: never on the number of the step, except for the limit of steps, and
never on who the agent is.
"""

from __future__ import annotations

import hashlib
from typing import Final

from prefixguard.behaviours.behaviour import Behaviour

#: What a step can be. All but `speaks` are calls.
CONSEQUENCES: Final = (
    "reads", "searches", "writes", "edits", "tests", "acts", "submits", "waits", "thinks", "speaks", "escalates",
)  # fmt: skip

#: Times the same call must give the same result where the agent waits in between.
PATIENT: Final = 20

_REPEATED: Final = (
    "call_seen", "same_call_in_a_row", "most_repeated_call", "repeated_calls", "result_seen", "call_and_result_seen",
    "repeat_rate",
)  # fmt: skip
_FAILED: Final = ("is_error", "errors", "error_rate", "errors_in_a_row", "steps_since_error")

CATALOGUE: Final = (
    # Loops
    Behaviour(
        "same_call_same_result",
        "fault",
        "The same call gave the same result again, and nothing had changed in between.",
        "You have made this call before and got the same result: use that result, or do something else.",
        "Stop equal calls after the second equal result, or tell the agent that its call changes nothing.",
        watch=3,
        alarm=6,
        rests_on=_REPEATED,
        label="same call, same result",
    ),
    Behaviour(
        "same_call_other_result",
        "neutral",
        "The same call gave another result than before, as polling does.",
        label="same call, other result",
    ),
    Behaviour(
        "alternating_calls",
        "fault",
        "Two calls alternate, each with the result that it had before.",
        "You are going back and forth between two calls that change nothing: do something else.",
        "Look for what sends the agent from one call to the other and back; end such a pair after its second round.",
        watch=4,
        alarm=8,
        rests_on=_REPEATED,
    ),
    Behaviour(
        "same_message",
        "fault",
        "The agent says, or thinks, again what it has before, word for word.",
        "You have said this before: say what is new, or take the next step.",
        "Check that the agent sees its last message and the answer, and that the answer says what it can do instead.",
        watch=2,
        alarm=4,
        rests_on=("message_seen", "repeat_rate"),
        label="same message again",
    ),
    Behaviour(
        "messages_in_a_row",
        "fault",
        "The agent has spoken three times or more in a row, and nothing new came in between.",
        "Nobody has answered: make a call, or finish.",
        "End the turn after a message, or ask for a call.",
        watch=4,
        alarm=8,
        rests_on=("messages_in_a_row", "messages", "is_message", "steps_since_call"),
    ),
    Behaviour(
        "no_call",
        "neutral",
        "The agent has made no call for five steps or more.",
        "You have not used a tool for a while: make the call that the task needs.",
        "Check that the tools reach the agent.",
        label="no call for 5 steps",
    ),
    # Errors
    Behaviour("call_failed", "neutral", "The step failed."),
    Behaviour(
        "errors_in_a_row",
        "fault",
        "Three calls or more failed in a row.",
        "Your last calls failed: read the errors, and change what causes them before you go on.",
        "Read these errors: a tool is down, or nothing tells the agent the names and arguments that it needs.",
        watch=3,
        alarm=8,
        rests_on=_FAILED,
    ),
    Behaviour(
        "same_error_again",
        "fault",
        "This is the error of an earlier step whose call, or what it ran, was another: the change did not help.",
        "Your change did not touch the cause of this error: read it again, and change something else.",
        "Make the error say which argument is wrong, and name what exists or how to list it.",
        watch=3,
        alarm=8,
        rests_on=(*_FAILED, "tool_failures", "result_seen"),
    ),
    Behaviour(
        "missing_tool",
        "fault",
        "The agent called a tool, or a command in a shell, that does not exist.",
        "This does not exist: use the tools and commands that are there.",
        "Offer it, or take its name out of the prompt.",
        watch=1,
        alarm=4,
        rests_on=(*_FAILED, "failed_tools", "tool_failures"),
    ),
    Behaviour(
        "prose_as_command",
        "fault",
        "The agent gave a shell, or another tool that runs commands, prose to run.",
        "This tool runs commands alone: send one, and say in a message what you have to say.",
        "Say in the prompt what is run as a command, and give the agent a way to think and to answer in words.",
        watch=1,
        alarm=4,
        rests_on=(*_FAILED, "failed_tools", "tool_failures"),
        label="prose as a command",
    ),
    Behaviour(
        "reply_refused",
        "fault",
        "The agent's reply was refused before any call was made.",
        "Your reply was not accepted: keep to the format that was asked for.",
        "Say the format by an example in the prompt, or use the provider's own tool calls.",
        watch=2,
        alarm=4,
        rests_on=(*_FAILED, "steps_since_call"),
    ),
    Behaviour(
        "growing_retry",
        "fault",
        "After each error the agent tries the same tool with longer arguments.",
        "Longer arguments did not help: make the smallest call that can succeed.",
        "Give an example of a short call that succeeds in the tool's description.",
        watch=3,
        alarm=6,
        rests_on=("tool_failures", "errors_in_a_row", "size_arguments", "largest_arguments"),
        label="retries grow longer",
    ),
    Behaviour(
        "failed_tool_again",
        "neutral",
        "The agent used a tool, or a command in a shell, that had failed before.",
        label="tool or command had failed before",
    ),
    Behaviour(
        "recovered",
        "neutral",
        "A call succeeded after calls that had failed; it may be another call.",
        label="success after failure",
    ),
    # What was said and what was done
    Behaviour(
        "call_as_text",
        "fault",
        "The agent wrote a call as text and did not make it.",
        "You described a call and did not make it: make the call with the tool.",
        "Use the provider's tool calls, and refuse replies that hold a call as text.",
        watch=1,
        alarm=3,
        rests_on=("is_message", "messages", "steps_since_call", "size_action"),
    ),
    Behaviour(
        "claim_over_failure",
        "fault",
        "The agent says that it succeeded, but its last call of that kind failed and was not repaired.",
        "The call behind this claim failed: repeat it, or say that it failed.",
        "Let the agent report success only from a result that says so.",
        watch=1,
        alarm=1,
        rests_on=("is_message", "errors", "error_rate", "steps_since_error"),
        label="claims success over a failure",
    ),
    Behaviour(
        "answer_without_call",
        "fault",
        "The agent answers without having used any tool.",
        "You have not looked anything up: use your tools before you answer.",
        "Ask for at least one call before an answer, and check that the tools reach the agent.",
        watch=1,
        alarm=3,
        rests_on=("calls", "is_message", "steps_since_call", "size_action"),
    ),
    Behaviour(
        "result_ignored",
        "fault",
        "The agent hands its work in although the last result says that it failed.",
        "The last check failed: mend what it names before you finish.",
        "Run the check again when the agent finishes, and refuse a failing one.",
        watch=1,
        rests_on=("errors", "error_rate", "steps_since_error"),
    ),
    Behaviour(
        "identifier_from_nowhere",
        "fault",
        "The call has an identifier that stood nowhere before.",
        "You have not read this identifier anywhere: look it up before you use it.",
        "Let the tool refuse unknown identifiers, and say where they are found.",
        watch=1,
        alarm=4,
        rests_on=("ungrounded", "ungrounded_average", "ungrounded_calls"),
    ),
    Behaviour(
        "write_after_failed_read",
        "fault",
        "The agent changed something right after it failed to read, or read nothing.",
        "You did not get what you wanted to read: read it first, and change it then.",
        "Let the tool that writes ask for what was read.",
        watch=1,
        alarm=3,
        rests_on=("is_error", "errors", "steps_since_error", "size_result"),
    ),
    # Results
    Behaviour(
        "empty_result_again",
        "fault",
        "Reading or searching gave nothing again.",
        "Your searches find nothing: search for less, or elsewhere.",
        "Let the tool say why it finds nothing, and what would be found.",
        watch=3,
        alarm=8,
        rests_on=("size_result", "mean_size_result", "result_seen"),
    ),
    Behaviour("result_seen", "neutral", "The result was seen before.", label="result seen before"),
    Behaviour("long_result", "neutral", "The result is long."),
    # Tests
    Behaviour(
        "edits_without_test",
        "fault",
        "The agent has edited three times or more, or hands in what it edited, and has run nothing since.",
        "You have not run what you changed: run the tests now.",
        "Ask for a test after edits, and say how tests are run.",
        watch=12,
        rests_on=("same_tool_in_a_row", "tool_seen", "tools", "tool_entropy"),
        label="edits without a test",
    ),
    Behaviour(
        "same_tests_fail",
        "fault",
        "The same tests fail again.",
        "Your last change did not help these tests: find the cause before you change more.",
        "Show the agent the first failing assertion alone.",
        watch=3,
        alarm=6,
        rests_on=("result_seen", "errors", "errors_in_a_row", "tool_failures"),
        label="same tests fail again",
    ),
    Behaviour("tests_pass", "neutral", "The tests pass."),
    # Tools
    Behaviour(
        "new_tool",
        "neutral",
        "The agent used a tool, or a command in a shell, for the first time.",
        label="first use of a tool or command",
    ),
    Behaviour(
        "same_tool_many",
        "neutral",
        "The last four calls or more were of the same tool, or command in a shell; messages and thoughts do not count.",
        label="same tool 4 times or more",
    ),
    # Limits
    Behaviour(
        "near_step_cap",
        "artefact",
        "The run is near its limit of steps.",
        "Few steps are left: finish with what you have.",
        "Raise the limit of steps, or give the agent smaller tasks.",
        rests_on=("step", "log_step"),
    ),
    # What steps take, where somebody says it
    Behaviour(
        "runaway_cost",
        "artefact",
        "The last three steps or more each cost at least four times what is usual for the run.",
        "Your last steps are far dearer than those before: read and write less at a time.",
        "Look what has grown: a long result that is sent again with every call, or answers without end.",
        rests_on=("tokens_in", "tokens_out", "cents", "tokens_in_ratio", "tokens_out_ratio", "cents_ratio"),
    ),
    Behaviour(
        "slowing_steps",
        "artefact",
        "The last three steps or more each took at least four times as long as is usual for the run, and ten seconds.",
        "Your last calls were slow: make smaller ones.",
        "Look whether a tool or the provider is overloaded, and set a time limit.",
        rests_on=("seconds", "mean_seconds", "seconds_ratio"),
    ),
    # What the step is
    Behaviour("reads", "neutral", "The agent reads something."),
    Behaviour("searches", "neutral", "The agent searches."),
    Behaviour("writes", "neutral", "The agent changes something outside."),
    Behaviour("edits", "neutral", "The agent makes, changes or deletes files.", label="changes files"),
    Behaviour("tests", "neutral", "The agent runs tests."),
    Behaviour("acts", "neutral", "The agent makes a call of unknown consequence.", label="uses a tool"),
    Behaviour("submits", "neutral", "The agent hands its work in."),
    Behaviour("waits", "neutral", "The agent waits."),
    Behaviour("thinks", "neutral", "The agent writes a thought down."),
    Behaviour("speaks", "neutral", "The agent speaks."),
    Behaviour("escalates", "neutral", "The agent hands over to a human."),
)

BY_NAME: Final = {behaviour.name: behaviour for behaviour in CATALOGUE}

#: One more whenever a behaviour holds at other steps than in the release before, or with another count.
CATALOGUE_VERSION: Final = 7
#: Behaviours of steps that have signals. They raise no level of rules, and none of the others holds otherwise for them,
#: so what was made with a catalogue that had none of them is as it was.
OF_SIGNALS: Final = frozenset(("runaway_cost", "slowing_steps"))
#: What levels rest on: the version, and the counts of every behaviour; words do not count.
CATALOGUE_SHA256: Final = hashlib.sha256(
    repr(
        (CATALOGUE_VERSION, [(one.name, one.watch, one.alarm) for one in CATALOGUE if one.name not in OF_SIGNALS])
    ).encode()
).hexdigest()
