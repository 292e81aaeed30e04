"""The page: one valid file, in which nothing that was measured becomes markup."""

import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
import sample
from ppair import page, store
from ppair import results as outcomes
from ppair.advice import Warning
from ppair.failure import Failure
from ppair.results import Plot

VOID = {"meta", "br", "hr", "img", "link", "input"}
HOSTILE = '<script>alert("x & y")</script> \' \u00e9 \x1b[1m'


class Reader(HTMLParser):
    """Elements, ids and words; complains of tags that do not match."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.ids, self.words, self.tags, self.attributes = [], [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_startendtag(self, tag, attrs):
        self.note(tag, attrs)

    def handle_starttag(self, tag, attrs):
        self.note(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def note(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_data(self, data):
        if data.strip():
            self.words.append(data.strip())


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """A sweep with a failed point and a run."""
    folder = tmp_path_factory.mktemp("r")
    fails = {"20": HOSTILE}
    return [
        sample.stall(folder / "stall", repetitions=2, fails=lambda v, _: fails.get(v["low"])),
        sample.single(folder / "run", repetitions=2, interval_s=0.1),
    ]


@pytest.fixture(scope="module")
def text(both):
    """Their page."""
    return page.render(both)


def test_tags_match_and_ids_are_unique(text):
    reader = Reader(text)
    assert text.startswith("<!DOCTYPE html>")
    assert len(reader.ids) == len(set(reader.ids)) > 5
    assert reader.tags.count("section") == 2
    assert reader.tags.count("svg") == 3
    assert reader.tags.count("h1") == 2


def test_the_same_result_twice_has_ids_of_its_own(both):
    ids = Reader(page.render([both[1], both[1]])).ids
    assert len(ids) == len(set(ids)) > 5


def test_pictures_are_well_formed_by_themselves(text):
    pictures = re.findall(r"<svg .*?</svg>", text, flags=re.DOTALL)
    assert len(pictures) == 3
    for picture in pictures:
        ElementTree.fromstring(picture)


def test_nothing_comes_from_elsewhere_and_nothing_runs(text):
    reader = Reader(text)
    assert not {"script", "link", "img", "iframe", "object"} & set(reader.tags)
    links = [value for name, value in reader.attributes if name in ("src", "href", "xlink:href")]
    assert all(value.startswith("#") for value in links)
    assert not [name for name, _ in reader.attributes if name.startswith("on")]
    assert "@import" not in text and "url(http" not in text


def test_references_in_pictures_lead_somewhere(text):
    ids = set(Reader(text).ids)
    used = re.findall(r'url\(#([^)]+)\)|xlink:href="#([^"]+)"', text)
    assert {a or b for a, b in used} <= ids


def test_what_programs_wrote_is_text(both):
    results = both[0]
    results.warnings = [Warning("spread", HOSTILE, HOSTILE)]
    results.findings = {
        "sentences": [HOSTILE],
        "tables": [{"title": HOSTILE, "headings": [HOSTILE], "rows": [[HOSTILE]]}],
    }
    found = page.render([results])
    reader = Reader(found)
    assert "script" not in reader.tags
    assert sum('<script>alert("x & y")</script> \' \\xe9 \\x1b[1m' in w for w in reader.words) >= 5
    results.warnings, results.findings = [], {}


def test_parts_are_there_in_order(text):
    found = re.sub(r"<svg .*?</svg>", "<svg>", text, flags=re.DOTALL)
    parts = [
        "<h1>Credit stall: 200 credits",
        'class="lead"',
        "<svg>",
        "200 credits at first;",
        ">Points<",
        ">failed<",
        "Every number is the median",
        "<summary>Every run",
        ">Environment<",
        "Example CPU 3000, 4 of them",
        "<summary>Commands",
        "ppair run --psend",
        "<h1>psend and precv",
        "Time by percentile",
        ">Repetitions<",
        ">stddev<",
    ]
    places = [found.index(part) for part in parts]
    assert places == sorted(places)


def test_an_interrupted_result_says_so():
    results = sample.in_memory({"1": [100]})
    results.status, results.why = outcomes.INTERRUPTED, "interrupted by SIGINT"
    assert "interrupted: interrupted by SIGINT</p>" in page.render([results])


def test_it_is_made_for_phones_print_and_the_dark(text):
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in text
    assert "@media print" in text and "prefers-color-scheme: dark" in text
    assert text.count('<div class="box"><table') == Reader(text).tags.count("table")


def test_names_of_options_are_not_broken_and_titles_are_there_once():
    results = sample.in_memory({"1": [100]}, plots=(Plot("P", "x", ("messages_per_s",)),))
    wide = {"title": "P", "headings": ["h"] * 13, "rows": [["1"] * 13]}
    results.findings = {"sentences": ["With --tls-ca: 2."], "tables": [wide]}
    found = page.render([results])
    assert '<p class="lead">With <span class="option">--tls-ca</span>: 2.</p>' in found
    assert found.count("<h2>P</h2>") == found.count("<h2>P, in numbers</h2>") == 1
    assert found.count('<table class="wide">') == 1


def test_it_is_written_whole_or_not_at_all(tmp_path):
    results = sample.in_memory({"1": [1]}, plots=(Plot("P", "x", ("messages_per_s",)),))
    path = tmp_path / "new" / "page.html"
    page.write_page([results], path)
    first = path.read_bytes()
    page.write_page([results], path)
    assert path.read_bytes() == first
    assert first.isascii()
    assert [file.name for file in path.parent.iterdir()] == ["page.html"]
    with pytest.raises(Failure, match="Is a directory|directory"):
        page.write_page([results], tmp_path)
