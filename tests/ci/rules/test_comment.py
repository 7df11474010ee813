"""What the code host shows about a check."""

from __future__ import annotations

from markdown_it import MarkdownIt

from proofstone.ci.rules.comment import MARKER, MAX_LINES, list_annotations, write_comment
from proofstone.common.models import Confidence, ConfidenceReason, Finding, Outcome, Severity
from tests.gate.records import check_report
from tests.rows import each_row

EVIL = "<script>x</script> [a](http://evil) ![i](http://evil) @everyone `code` ~~~~~~\n::error::x \u202e\x1b[2J"


def finding(**changed: object) -> Finding:
    known: dict[str, object] = {"layer": "L2", "severity": "critical", "detail": "it passes only because it was edited"}
    return Finding.model_validate({**known, "fix": "change it", "rule": "edited-expectation", **changed})


def test_a_pass_is_shown_with_its_confidence_and_what_would_raise_it() -> None:
    reasons = (ConfidenceReason(reason="no test fails without it", remedy="add one"),)
    text = write_comment(check_report(confidence=Confidence.MEDIUM, reasons=reasons, changed=("a.py",)), "https://ci/1")
    assert text.startswith(MARKER)
    assert "✅ Proofstone: passed, confidence medium" in text
    assert "no test fails without it" in text and "https://ci/1" in text and "1 file changed" in text
    assert "accept" not in text


@each_row("count", [0, 1, 9, 10, 11, 400])
def test_a_comment_has_at_most_sixty_lines_and_counts_what_it_leaves_out(count: int) -> None:
    long = "line\n" * 50
    findings = tuple(finding(path=f"tests/test_{number}.py", before=long, after=long) for number in range(count))
    report = check_report(outcome=Outcome.FAILED, confidence=Confidence.LOW, reason="edited", findings=findings)
    text = write_comment(report, ignored=["a", "b", "c", "d", "e", "f"])
    assert len(text.splitlines()) <= MAX_LINES
    shown = text.count("**edited-expectation**")
    assert (f"{count - shown} more finding" in text) == (shown < count)
    assert text.count("~~~~~~diff") == shown


def test_text_of_the_change_is_shown_as_it_is() -> None:
    hostile = finding(detail=EVIL, fix=EVIL, path=f"a{EVIL}.py", before=EVIL, after=EVIL)
    report = check_report(outcome=Outcome.FAILED, reason=EVIL, findings=(hostile,))
    text = write_comment(report, ignored=[EVIL])
    tokens = MarkdownIt("commonmark", {"html": True}).enable("strikethrough").parse(text)
    inner = [child for token in tokens for child in token.children or ()]
    assert not {token.type for token in (*tokens, *inner)} & {"html_inline", "link_open", "image", "s_open"}
    assert [token.content for token in tokens if token.type == "html_block"] == [f"{MARKER}\n"]
    outside = "".join(child.content for child in inner if child.type == "text")
    assert "@everyone" not in outside
    assert all(char.isprintable() or char in "\n\u200b" for char in text)


def test_annotations_stand_at_the_lines_and_are_one_command_each() -> None:
    lines = list_annotations((finding(path="a,b:c.py", line=4, detail=EVIL), finding(severity=Severity.MINOR)))
    assert all("\n" not in line for line in lines)
    assert lines[0].startswith("::error file=a%2Cb%3Ac.py,line=4,title=Proofstone edited-expectation::")
    assert lines[1].startswith("::notice title=Proofstone edited-expectation::it passes only")
