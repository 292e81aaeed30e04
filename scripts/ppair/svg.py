"""What matplotlib writes as SVG, made small and fit to stand in a page beside others."""

from __future__ import annotations

import re
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

SVG = "http://www.w3.org/2000/svg"
XLINK = "http://www.w3.org/1999/xlink"
HREF = f"{{{XLINK}}}href"
DECIMALS = 2  # of a point, 1/72 inch
NUMBERS = ("d", "x", "y", "transform", "points", "width", "height", "cx", "cy", "r")
REFERENCE = re.compile(r"url\(#([^)]+)\)")
LONG = re.compile(r"-?\d+\.\d+(?![\de])")
NO_ROTATION = re.compile(r"rotate\(-?0(?:\.0+)? [^)]*\)")


def tidy(text: str, prefix: str, title: str) -> str:
    """An <svg> element with TITLE for those who cannot see it, without XML declaration.

    Ids that nothing refers to go, the others begin with PREFIX. There is no style sheet, which
    would be the whole page's, and no metadata.
    """
    ElementTree.register_namespace("", SVG)
    ElementTree.register_namespace("xlink", XLINK)
    root = ElementTree.fromstring(text)
    _prune(root)
    used = _references(root)
    for element in root.iter():
        _shorten(element)
        _rename(element, prefix, used)
    for name in ("width", "height"):  # points, which not all readers understand, to pixels
        root.set(name, f"{float(root.attrib[name].removesuffix('pt')) * 4 / 3:.0f}")
    root.set("role", "img")
    root.set("style", "stroke-linejoin:round;stroke-linecap:butt")  # as the style sheet had it
    label = Element(f"{{{SVG}}}title")
    label.text = title
    root.insert(0, label)
    for element in root.iter():
        element.tail = "\n"
        if element.text and not element.text.strip():
            element.text = None
    return ElementTree.tostring(root, encoding="unicode")


def _name(element: Element) -> str:
    return str(element.tag).rpartition("}")[2]


def _prune(element: Element) -> None:
    """Takes out style sheets, metadata and empty definitions, and groups that group nothing."""
    for child in list(element):
        _prune(child)
        name = _name(child)
        if name in ("metadata", "style") or name in ("defs", "g") and not len(child):
            element.remove(child)
        elif name == "g" and set(child.attrib) <= {"id"}:
            at = list(element).index(child)
            element.remove(child)
            for offset, grandchild in enumerate(list(child)):
                element.insert(at + offset, grandchild)


def _references(root: Element) -> set[str]:
    found = set()
    for element in root.iter():
        for name, value in element.attrib.items():
            found |= set(REFERENCE.findall(value))
            if name == HREF and value.startswith("#"):
                found.add(value[1:])
    return found


def _rename(element: Element, prefix: str, used: set[str]) -> None:
    own = element.attrib.pop("id", None)
    if own in used:
        element.set("id", prefix + own)
    for name, value in element.attrib.items():
        if name == HREF and value.startswith("#"):
            element.set(name, f"#{prefix}{value[1:]}")
        else:
            element.set(name, REFERENCE.sub(rf"url(#{prefix}\1)", value))


def _shorten(element: Element) -> None:
    """Numbers to a hundredth of a point, no line breaks in paths, no rotation by nothing."""
    for name in NUMBERS:
        if name in element.attrib:
            element.set(name, " ".join(LONG.sub(_rounded, element.attrib[name]).split()))
    if "transform" in element.attrib:
        rest = NO_ROTATION.sub("", element.attrib["transform"]).strip()
        if rest:
            element.set("transform", rest)
        else:
            del element.attrib["transform"]


def _rounded(match: re.Match[str]) -> str:
    return f"{float(match[0]):.{DECIMALS}f}".rstrip("0").rstrip(".")
