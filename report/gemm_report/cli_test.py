import shlex

import pytest

from gemm_report.cli import COMMANDS, main


@pytest.mark.parametrize("command", [None, *COMMANDS])
def test_help_has_examples_that_parse_and_exit_codes(
    command: str | None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*([command] if command else []), "--help"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    examples, codes = said.split("\nexamples:\n")[1].split("\nexit codes:\n")
    assert "  0  " in codes
    assert "  3  " in codes
    for module in COMMANDS.values():
        monkeypatch.setattr(module, "run", lambda options: 0)
    lines = [line.strip() for line in examples.replace("\\\n", "").split("\n")]
    lines = [line.partition("&&")[0] for line in lines if line.startswith("gemm-report ")]
    assert lines
    for line in lines:
        assert main(shlex.split(line)[1:]) == 0, line


def test_help_and_errors_name_what_was_called(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def said(*arguments: str) -> str:
        with pytest.raises(SystemExit):
            main(arguments)
        return "".join(capsys.readouterr())

    assert "see gemm-report explain --help" in said("explain")
    monkeypatch.setenv("GEMM_REPORT_AS", "tools/report")
    assert "see tools/explain --help" in said("explain")
    assert "see tools/report figures --help" in said("figures")
    assert "\n  tools/explain WarpTile 4096\n" in said("explain", "--help")
    assert "gemm-report" not in said("explain", "--help") + said("report", "--help")
    whole = said("--help")
    assert whole.startswith("usage: tools/report ")
    assert "\n  tools/report report results/" in whole
    assert "\n  tools/explain WarpTile 4096\n" in whole
