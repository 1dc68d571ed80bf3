"""Recordings as files: Chrome's trace JSON and Perfetto's protobuf (https://ui.perfetto.dev opens both), and reading them back."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

from ..base.errors import ArgumentError, message
from ..framework.atomic import replacing
from .events import Event, ProfilerResult, TracerEventType, links

_KINDS = {kind.name: kind for kind in TracerEventType}
_NS_PER_US = 1000
#: Of a counter's track in a trace of protobuf form; threads have their own numbers.
_MEMORY_TRACK = 1


def write_result(result: ProfilerResult, path: str, format: str = "json") -> None:
    """Write the recording to the path, whose folder is made when needed.

    Raises:
        ArgumentError: the format is neither ``json`` nor ``pb``.
    """
    if format not in ("json", "pb"):
        raise ArgumentError(message(f"export(): format is {format!r}", "a trace is written as 'json' or 'pb'"))
    content = json.dumps(trace_json(result)).encode() if format == "json" else _trace_bytes(result)
    with replacing(path) as file:
        file.write(content)


def trace_json(result: ProfilerResult) -> dict[str, Any]:
    """The recording in Chrome's trace event format: complete events with their threads' names, flows from forward to backward, counters of memory."""
    process = os.getpid()
    head = {"ph": "M", "pid": process}
    rows: list[dict[str, Any]] = [{**head, "name": "process_name", "args": {"name": "sampan"}}]
    rows += [{**head, "tid": t, "name": "thread_name", "args": {"name": name}} for t, name in result.threads.items()]
    rows += [_row(event, process, result.has_memory) for event in result.events]
    for number, (forward, backward) in enumerate(links(result.events)):
        flow = {"name": "backward", "cat": "autograd", "id": number, "pid": process}
        rows.append({**flow, "ph": "s", "tid": forward.thread, "ts": forward.begin_ns / _NS_PER_US})
        rows.append({**flow, "ph": "f", "bp": "e", "tid": backward.thread, "ts": backward.begin_ns / _NS_PER_US})
    for moment_ns, allocated in _memory_samples(result):
        counter = {"ph": "C", "pid": process, "name": "allocated memory", "ts": moment_ns / _NS_PER_US}
        rows.append({**counter, "args": {"bytes": allocated}})
    return {
        "schemaVersion": result.get_version(),
        "displayTimeUnit": "ms",
        "span_index": str(result.span_index),
        "traceEvents": rows,
        "ExtraInfo": result.get_extra_info(),
        "memory": result.memory,
        "cpu": result.cpu,
    }


def _row(event: Event, process: int, has_memory: bool) -> dict[str, Any]:
    row = {
        "name": event.name,
        "cat": event.kind.name,
        "ph": "X",
        "pid": process,
        "tid": event.thread,
        "ts": event.begin_ns / _NS_PER_US,
        "dur": event.duration_ns / _NS_PER_US,
    }
    args: dict[str, Any] = {"operands": event.shapes} if event.shapes else {}
    if has_memory and (event.begin_bytes or event.end_bytes):
        args |= {"bytes before": event.begin_bytes, "bytes after": event.end_bytes}
    return {**row, "args": args} if args else row


def _memory_samples(result: ProfilerResult) -> Iterator[tuple[int, int]]:
    """Moments and the bytes allocated then, where that changed."""
    if not result.has_memory:
        return
    moments = [(e.begin_ns, e.begin_bytes) for e in result.events if e.begin_bytes or e.end_bytes]
    moments += [(e.end_ns, e.end_bytes) for e in result.events if e.begin_bytes or e.end_bytes]
    last = -1
    for moment_ns, allocated in sorted(moments):
        if allocated != last:
            yield moment_ns, allocated
        last = allocated


def read_result(path: str) -> ProfilerResult:
    """The recording in the file."""
    with open(path, "rb") as file:
        content = file.read()
    try:
        return _from_json(json.loads(content)) if content.lstrip()[:1] == b"{" else _from_trace(content, path)
    except (ValueError, LookupError, TypeError, AttributeError, _decode_error()) as error:
        raise ArgumentError(
            message(f"{path} holds no recording of a profiler", str(error), "pass a file that Profiler.export() wrote")
        ) from error


def _from_json(trace: dict[str, Any]) -> ProfilerResult:
    rows = trace["traceEvents"]
    threads = {r["tid"]: r["args"]["name"] for r in rows if r["name"] == "thread_name"}
    events = [_event_of_row(r) for r in rows if r["ph"] == "X"]
    has_memory = any(r["ph"] == "C" for r in rows)
    return ProfilerResult(events, threads, trace["memory"], trace["cpu"], int(trace["span_index"]), has_memory)


def _event_of_row(row: dict[str, Any]) -> Event:
    begin_ns = round(row["ts"] * _NS_PER_US)
    args = row.get("args", {})
    memory = args.get("bytes before", 0), args.get("bytes after", 0)
    end_ns = begin_ns + round(row["dur"] * _NS_PER_US)
    return Event(row["name"], _KINDS[row["cat"]], begin_ns, end_ns, row["tid"], args.get("operands", ""), *memory)


# ---------------------------------------------------------------------- Perfetto's protobuf

# The fields that are used of perfetto/trace/trace.proto, track_event.proto and track_descriptor.proto.
_MESSAGES = """
Annotation 10:string:name 4:int64:int_value 6:string:string_value
TrackEvent 9:int32:type 11:uint64:track_uuid 22:string*:categories 23:string:name 30:int64:counter_value 4:Annotation*:debug_annotations
Process 1:int32:pid 6:string:process_name
Thread 1:int32:pid 2:int64:tid 5:string:thread_name
Counter 3:int32:unit
Track 1:uint64:uuid 5:uint64:parent_uuid 2:string:name 3:Process:process 4:Thread:thread 8:Counter:counter
Packet 8:uint64:timestamp 10:uint32:trusted_packet_sequence_id 11:TrackEvent:track_event 60:Track:track_descriptor
Trace 1:Packet*:packet
"""
_BEGIN, _END, _INSTANT, _COUNTER = 1, 2, 3, 4
_BYTES = 3  # CounterDescriptor.UNIT_SIZE_BYTES
_FACTS = "recording"  # the instant event of the process whose note holds what else a recording has, as JSON


def _trace_class() -> Any:
    from ..framework.interchange.wire import message_class  # protobuf is loaded by the first trace of its form

    return message_class("sampan.trace", _MESSAGES, "Trace")


def _decode_error() -> type[Exception]:
    from ..framework.interchange.wire import DecodeError

    return DecodeError


def _trace_bytes(result: ProfilerResult) -> bytes:
    trace = _trace_class()()
    process = os.getpid()
    whole = trace.packet.add().track_descriptor
    facts = {"memory": result.memory, "cpu": result.cpu, "span_index": result.span_index, "has_memory": result.has_memory}
    whole.uuid, whole.process.pid, whole.process.process_name = process << 1, process, "sampan"
    first_ns = min((e.begin_ns for e in result.events), default=0)
    note = trace.packet.add(timestamp=first_ns, trusted_packet_sequence_id=1).track_event
    note.type, note.track_uuid, note.name = _INSTANT, whole.uuid, _FACTS
    note.debug_annotations.add(name=_FACTS, string_value=json.dumps(facts))
    for thread, name in result.threads.items():
        track = trace.packet.add().track_descriptor
        track.uuid, track.parent_uuid = thread, whole.uuid
        track.thread.pid, track.thread.tid, track.thread.thread_name = process, thread & 0x7FFFFFFF, name
    memory = trace.packet.add().track_descriptor
    memory.uuid, memory.parent_uuid, memory.name, memory.counter.unit = _MEMORY_TRACK, whole.uuid, "allocated memory", _BYTES
    for moment_ns, _, what in sorted(_moments(result), key=lambda m: m[:2]):
        packet = trace.packet.add(timestamp=moment_ns, trusted_packet_sequence_id=1)
        made = packet.track_event
        if isinstance(what, int):
            made.type, made.track_uuid, made.counter_value = _COUNTER, _MEMORY_TRACK, what
            continue
        event, is_begin = what
        made.type, made.track_uuid = (_BEGIN if is_begin else _END), event.thread
        if is_begin:
            made.name = event.name
            made.categories.append(event.kind.name)
            if event.shapes:
                made.debug_annotations.add(name="operands", string_value=event.shapes)
            if result.has_memory and (event.begin_bytes or event.end_bytes):
                made.debug_annotations.add(name="bytes before", int_value=event.begin_bytes)
                made.debug_annotations.add(name="bytes after", int_value=event.end_bytes)
    return bytes(trace.SerializeToString())


def _moments(result: ProfilerResult) -> Iterator[tuple[int, float, Any]]:
    """(time, rank among those of the same time, a begin, an end or a sample of memory): outer events begin before inner ones and end after them."""
    ordered = sorted(result.events, key=lambda e: (e.begin_ns, -e.end_ns))
    for number, event in enumerate(ordered):
        yield event.begin_ns, number, (event, True)
        # of those that end at one moment the last begun ends first, and all before what begins then; what takes no time, after its own beginning
        yield event.end_ns, (-number - 1 if event.duration_ns else number + 0.5), (event, False)
    for moment_ns, allocated in _memory_samples(result):
        yield moment_ns, len(ordered), allocated


def _from_trace(content: bytes, path: str) -> ProfilerResult:
    trace = _trace_class()()
    trace.ParseFromString(content)
    result = ProfilerResult()
    open_events: dict[int, list[int]] = {}
    for packet in trace.packet:
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            if track.HasField("thread"):
                result.threads[track.uuid] = track.thread.thread_name
            continue
        told = packet.track_event
        if told.type == _BEGIN:
            notes = {a.name: a.string_value if a.HasField("string_value") else a.int_value for a in told.debug_annotations}
            memory = notes.get("bytes before", 0), notes.get("bytes after", 0)
            open_events.setdefault(told.track_uuid, []).append(len(result.events))
            begin_ns, kind = packet.timestamp, _KINDS[told.categories[0]]
            result.events.append(Event(told.name, kind, begin_ns, begin_ns, told.track_uuid, notes.get("operands", ""), *memory))
        elif told.type == _INSTANT:
            facts = json.loads(told.debug_annotations[0].string_value)
            result.memory, result.cpu = facts["memory"], facts["cpu"]
            result.span_index, result.has_memory = facts["span_index"], facts["has_memory"]
        elif told.type == _END:
            k = open_events[told.track_uuid].pop()
            e = result.events[k]
            result.events[k] = Event(e.name, e.kind, e.begin_ns, packet.timestamp, e.thread, e.shapes, e.begin_bytes, e.end_bytes)
    if not trace.packet:
        raise ValueError("it is empty")
    return result
