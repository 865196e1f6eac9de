"""Measurements that others publish become tables; the rows here are made up in their columns."""

from pathlib import Path

import pytest

from helpers.command_line import Cli

SINGLE = "model,dataset,batchsize,amp,speed,gpu_util,gmem_util,gmem,label\nNet,Set,32,0,10,50.5,20,2458.0,1\n"
PAIRS = (
    ",model1,dataset1,gpu_num1,batchsize1,amp1,speed1,model2,dataset2,gpu_num2,batchsize2,amp2,speed2,gpu_util\n"
    "0,Net,Set,1,32,0,0.5,Other,Set,1,64,1,0.9,64\n"
)
MADE = 'Filename,Depth,Activations-Params,Total Activations,Batch Size,Avg GPUTL\nnet.out,3,"[(1, 2)]",7430,996,29.7\n'
EXPECTED = [
    (
        "lucid-jobs",
        SINGLE,
        "profile,batch,mixed_precision,gpu_memory_mib,gpu_utilisation_percent\nNet-Set-32,32,0,2458.0,50.5\n",
    ),
    ("lucid-pairs", PAIRS, "profile,beside,ratio\nNet-Set-32,Other-Set-64-amp,0.5\nOther-Set-64-amp,Net-Set-32,0.9\n"),
    ("gpumemnet", MADE, "profile,depth,activations,batch,gpu_utilisation_percent\nnet.out,3,7430,996,29.7\n"),
]


@pytest.mark.parametrize(("form", "text", "expected"), EXPECTED, ids=[form for form, _, _ in EXPECTED])
def test_a_published_file_becomes_a_table(cli: Cli, tmp_path: Path, form: str, text: str, expected: str) -> None:
    source, out = tmp_path / "theirs.csv", tmp_path / "ours.csv"
    source.write_text(text)
    done = cli("predict", "table", form, source, "--out", out)
    assert done.code == 0
    assert f"{form}: " in done.out
    assert out.read_text() == expected


@pytest.mark.parametrize(
    ("form", "text", "words"),
    [
        ("nothing", SINGLE, "known: lucid-jobs, lucid-pairs, gpumemnet"),
        ("lucid-pairs", SINGLE, "row 1: no 'speed1'; is it another form"),
        ("lucid-jobs", PAIRS, "row 1: no 'batchsize'"),
        ("gpumemnet", SINGLE, "row 1: no 'Avg GPUTL'"),
    ],
)
def test_another_form_is_refused(cli: Cli, tmp_path: Path, form: str, text: str, words: str) -> None:
    source = tmp_path / "theirs.csv"
    source.write_text(text)
    done = cli("predict", "table", form, source, "--out", tmp_path / "ours.csv")
    assert done.code in (2, 3)
    assert words in done.err
    assert not (tmp_path / "ours.csv").exists()
