"""A loop around the plain `openai` client, watched by the spans that its instrumentation makes.

pip install ".[gbdt,llm,otel]" openinference-instrumentation-openai
python examples/opentelemetry/run.py
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "model"))

import openai
from openinference.instrumentation.openai import OpenAIInstrumentor
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from practice import find_order, refund
from rehearsal import rehearse

TOOLS = {"find_order": find_order, "refund": refund}


def run_agent(guard, url, run):
    provider = TracerProvider(span_limits=SpanLimits(max_attributes=10_000))
    provider.add_span_processor(guard.otel(run_id=run.task_id))
    OpenAIInstrumentor().instrument(tracer_provider=provider)
    with provider.get_tracer("clerk").start_as_current_span("answer"):  # the run
        answer(url, run.task)
    OpenAIInstrumentor().uninstrument()


def answer(url, task):
    messages = [{"role": "system", "content": "You are the clerk."}, {"role": "user", "content": task}]
    with openai.OpenAI(base_url=url, api_key="none") as client:
        while True:
            reply = client.chat.completions.create(model="scripted", messages=messages).choices[0].message
            messages.append(reply)
            if not reply.tool_calls:
                return
            for call in reply.tool_calls:
                try:
                    result = TOOLS[call.function.name](**json.loads(call.function.arguments))
                except LookupError as exc:
                    result = f"Error: {exc}"
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


if __name__ == "__main__":
    rehearse(run_agent)
