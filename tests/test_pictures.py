"""The README's pictures are those of a real run, as the program shows it today."""

import importlib.util
import struct
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs/pictures"
REMEDY = "made anew by .venv/bin/python scripts/pictures.py"


def script():
    spec = importlib.util.spec_from_file_location("pictures", ROOT / "scripts/pictures.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_terminals_picture_is_what_the_program_prints():
    assert (PICTURES / "terminal.svg").read_text() == script().terminal_svg(script().EXAMPLE), (
        f"docs/pictures/terminal.svg is {REMEDY}"
    )


def test_the_terminals_picture_asks_for_nothing_outside_and_ends_with_a_whole_section():
    drawing = (PICTURES / "terminal.svg").read_text()
    assert "url(http" not in drawing and "@font-face" not in drawing and "href" not in drawing
    shown = "".join(ElementTree.fromstring(drawing).itertext())
    assert "the\u00a0server's\u00a0disk\u00a0reads" in shown


def test_the_pages_picture_is_one_of_the_size_that_the_script_makes():
    content = (PICTURES / "page.png").read_bytes()
    assert content.startswith(b"\x89PNG")
    assert struct.unpack(">II", content[16:24]) == (script().WIDTH, script().HEIGHT)
