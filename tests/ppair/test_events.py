"""Strict JSON, and what is an event."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fake_peer import interval_event, start_event, summary_event
from ppair import events
from ppair.events import BadEvent

ERROR = '{"event": "error", "what": '

NOT_JSON = [
    "",
    " ",
    "hello",
    "{",
    "{'a': 1}",
    '{"a": 1,}',
    '{"a": 1} {"a": 1}',
    '{"a": 1, "a": 1}',
    '{"b": {"a": 1, "a": 2}}',
    '[{"a": 1, "a": 1}]',
    "NaN",
    "Infinity",
    '{"a": -Infinity}',
    "1e999",
    '{"a": -1e999}',
    "[" * 100_000 + "]" * 100_000,
    "9" * 5000,
    "\x00",
    '"\t"',
]
NO_EVENTS = [
    "[]",
    "{}",
    "null",
    "5",
    '"summary"',
    '{"event": "later"}',
    '{"event": null}',
    '{"event": ["summary"]}',
    '{"event": "Summary"}',
    '{"Event": "summary"}',
]


@pytest.mark.parametrize("text", NOT_JSON, ids=lambda text: ascii(text)[:24])
def test_what_is_not_json(text: str) -> None:
    with pytest.raises(ValueError):
        events.strict_json(text)
    with pytest.raises(BadEvent, match="is not an event$"):
        events.parse(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e308", 1e308),
        ("-0.5", -0.5),
        ("18446744073709551615", 2**64 - 1),
        ("1796079159898598087", 1796079159898598087),
        (' {"a": [1, null, true, "\\u00e9"]} ', {"a": [1, None, True, "\u00e9"]}),
        ('{"a": {"b": 1}, "b": {"a": 1}}', {"a": {"b": 1}, "b": {"a": 1}}),
    ],
)
def test_what_is_json(text: str, value: object) -> None:
    assert events.strict_json(text) == value


@pytest.mark.parametrize("text", NO_EVENTS)
def test_what_is_no_event(text: str) -> None:
    with pytest.raises(BadEvent) as caught:
        events.parse(text)
    assert str(caught.value) == f'"{text}" is not an event'


def test_a_long_line_is_quoted_in_part_and_in_ascii() -> None:
    with pytest.raises(BadEvent) as caught:
        events.parse("\u00e9" * 10 + "x" * 1_000_000)
    assert str(caught.value).isascii() and len(str(caught.value)) < 150


@pytest.mark.parametrize("schema", ['"ppair/2"', "null", "1", '["ppair/1"]'])
def test_another_schema(schema: str) -> None:
    with pytest.raises(BadEvent, match="^schema .*, where ppair/1 is understood$"):
        events.parse(f'{{"event": "start", "schema": {schema}}}')


@pytest.mark.parametrize("kind", ["interval", "summary"])
@pytest.mark.parametrize(
    "messages", ["null", "5", "[]", '{"sent": "5"}', '{"sent": 1.5}', '{"sent": true}']
)
def test_counts_that_are_none(kind: str, messages: str) -> None:
    with pytest.raises(BadEvent, match=f"^an event {kind} without its counts of messages$"):
        events.parse(f'{{"event": "{kind}", "messages": {messages}}}')


def test_counts_may_not_exist() -> None:
    """Outcomes of pre-settled messages."""
    assert events.parse('{"event": "interval", "messages": {"sent": 5, "accepted": null}}')


@pytest.mark.parametrize("program", ["psend", "precv"])
def test_what_the_programs_write(program: str) -> None:
    for event in (
        start_event(program, []),
        {"event": "ready", "port": 5},
        interval_event(program, 5),
        {"event": "error", "what": "x"},
        summary_event(program, 5),
    ):
        assert events.parse(json.dumps(event)) == event


def test_a_file_is_read_one_event_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(f"{ERROR}1}}\n{ERROR}2}}\ngarbage\n")
    found = events.read(path)
    assert [next(found)["what"], next(found)["what"]] == [1, 2]
    with pytest.raises(BadEvent):
        next(found)


def test_a_last_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(f'{ERROR}1}}\n{{"event": "summ')
    assert [event["what"] for event in events.read(path)] == [1]


def test_a_file_that_is_not_ascii(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"\xff\xfe\n")
    with pytest.raises(BadEvent):
        list(events.read(path))


def test_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text("")
    assert list(events.read(tmp_path / "x.jsonl")) == []
