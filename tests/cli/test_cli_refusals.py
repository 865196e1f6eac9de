"""
What the command line refuses: one table of command, exit code and words of the message.

2 is the command line itself: an option, its value, a name that is not known; the message names the right ones and the
help. 3 is a file: missing, malformed, out of range, not writable; the message names file and field.
"""

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from helpers.broken_files import FAULTS, Fault
from helpers.command_line import DGX1, EXAMPLES, GANGS, INSTANCES, MINSKY, ROOT, Cli, said
from placeopt import generate, write_document
from placeopt.scheduling import policy_names

HUGE = 2**63
PHILLY = "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-01 10:00:00,60,1,60,a\n2017-10-02 10:00:00,60,1,60,a\n"
TREE = "SwitchName=s0 Nodes=n[0-3]\n"
OPENB_NODES = "sn,cpu_milli,memory_mib,gpu,model\nn1,8000,4096,2,T4\n"
OPENB_PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np1,lots,512,1,500\n"
MOSTLY_RIGHT = "--columns submit=a,duration=b,gpus=c"

NAMED = {
    "M": MINSKY,
    "D": DGX1,
    "G": GANGS,
    "S": INSTANCES / "papers" / "sc17-workloads-5.json",
    "I": INSTANCES,
    "T": INSTANCES / "topo" / "dgx1-topo-m.txt",
    "NODES": EXAMPLES / "slurm_nodes.json",
    "JOBS": EXAMPLES / "slurm_jobs.json",
    "KUBE": EXAMPLES / "kubernetes.json",
    "HELIOS": EXAMPLES / "helios.csv",
    "ON": ROOT / "tests" / "importers" / "data" / "openb_nodes.csv",
}
"""
Words of the table that stand for files. R is a round of 4 jobs on 2 nodes, P a plan of M, F a file with the text of the
row's last column, NONE a missing file, O the target, which is not written.
"""

Row = tuple[str, int, str] | tuple[str, int, str, str]
"""Command, exit code, words of the message separated by ``|``, text of F."""

OPTIONS = {
    "solve M": "--time-limit 0 & --time-limit nan & --time-limit inf & --gap -0.1 & --threads 0 & --seed -1",
    "solve R": "--memory-limit 0",
    "check M P": "--strict",
    "show M": "--colour",
    "audit M P": "--moves -1",
    "export R --out O": "--time-limit 0 & --time-limit nan",
    "generate --out O": "--jobs -1 & --jobs 1000000000 & --nodes 0 & --gpus 65 & --seed -1 & --color",
    "simulate S": "--seed -1 & --time-limit 0",
    "slurm run": "--every 0s & --every soon & --every 25h & --max-actions 0 & --rounds 0",
    "whatif fit M --job 1": "--time-limit 0",
    "whatif fail M": "--jobs 0",
    "whatif add S --node-type minsky --until p95_wait<=1h": "--draws x",
    "whatif compare R --vary demand=80": "--jobs 0",
    "whatif defrag M": "--moves -1",
    "bench report I": "--shift 0",
}
"""Options of a command whose values are refused, separated by ``&``: each message names the option and the value."""

USAGE: list[Row] = [
    *(
        (f"{command} {option}", 2, option.replace(" ", "|"))
        for command, options in OPTIONS.items()
        for option in options.split(" & ")
    ),
    ("nonsense", 2, "no such command 'nonsense'"),
    ("--frobnicate", 2, "--frobnicate|placeopt --help"),
    ("import magic", 2, "'magic'"),
    ("whatif nope", 2, "no such command"),
    ("solve M another.json", 2, "another.json|placeopt solve --help"),
    ("solve M --frobnicate", 2, "--frobnicate|placeopt solve --help"),
    ("solve M --out", 2, "--out|argument"),
    ("solve R --method nope", 2, "--method|one of auto|best-fit"),
    ("solve R --policy nope", 2, "--policy|known policies: best-fit"),
    ("solve R --policy horus --method fcfs", 2, "--method: 'fcfs'|scheduling policy 'horus' has its own"),
    ("solve R --policy horus --previous P", 2, "--previous|none beside scheduling policy 'horus'"),
    ("solve R --policy pab", 3, "'pab': watches how fast jobs run"),
    ("export R --out O --policy horus", 2, "--policy: 'horus', expected one of whole rounds"),
    ("solve M --time-limit soon", 2, "--time-limit|valid"),
    ("solve M --gap 1", 2, "--gap|1.0"),
    ("solve M --threads 1.5", 2, "--threads|integer"),
    (f"solve M --seed {2**31}", 2, "--seed|2147483648"),
    ("solve M --solver-option fast", 2, "--solver-option|NAME=VALUE"),
    ("solve M --solver-option =1", 2, "--solver-option|'=1'"),
    ("solve M --solver-option a=1 --solver-option a=2", 2, "--solver-option|once"),
    ("solve M --solver-option a=1 --method fcfs", 2, "--solver-option|'fcfs'"),
    ("solve M --solver-option mars=1", 2, "HiGHS refuses option 'mars' = '1'"),
    ("solve M --method counts-cpsat --solver-option mars=1", 2, "CP-SAT refuses option 'mars' = '1'"),
    ("solve M --previous - --policy -", 2, "'-'|once"),
    ("check M", 2, "PLAN|placeopt check --help"),
    ("check - -", 2, "once"),
    ("show", 2, "FILE|placeopt show --help"),
    ("show - -", 2, "once"),
    ("show M --as yaml", 2, "--as: 'yaml', expected text, json, csv, html"),
    ("show M --as csv --json", 2, "name one of the two"),
    ("show M --as text --out O", 2, "standard output"),
    ("show M P --compare", 2, "--compare: 1 answer|expected two"),
    ("export R --out O --format nl", 2, "'nl', expected one of mps, lp, cp-sat"),
    ("export R --out O --level both", 2, "'both', expected one of value, cost"),
    ("export R --out O --formulation magic", 2, "'magic', expected one of assignment, counts"),
    ("generate", 2, "--out"),
    ("generate --jobs many --out O", 2, "--jobs|integer"),
    ("generate --spec magic --out O", 2, "'magic', expected one of uniform"),
    ("generate --gpus 4 --spec cubemesh --out O", 2, "expected one of uniform"),
    ("generate --nodes 200000 --gpus 16 --out O", 2, "--gpus: 200000 nodes x 16 GPUs, expected"),
    ("show R --out O.pdf", 2, "ending names no form|.html"),
    ("show R --out O", 2, "ending names no form|--as FORM"),
    ("map - -", 2, "standard input"),
    ("map F M --time-limit 0", 2, "--time-limit", "[[0, 1], [1, 0]]"),
    ("map F M --seed -1", 2, "--seed", "[[0, 1], [1, 0]]"),
    ("simulate S --policy fifo", 2, "|".join(["no policy and no file 'fifo'", *policy_names()])),
    ("simulate S --policy fcfs,fcfs", 2, "appears twice"),
    ("simulate S --rule guess", 2, "rate or sc17"),
    ("simulate S --out -", 2, "expected a folder"),
    ("simulate S --estimates none", 2, "--estimates|stated or actual"),
    ("simulate S --estimates -1", 2, "factor: -1"),
    ("simulate S --policy fcfs,best-fit --round O", 2, "one policy"),
    ("simulate S --at 3", 2, "--round"),
    ("simulate S --round S", 2, "overwritten"),
    ("slurm run --own all", 2, "partition=NAME"),
    ("slurm run --worth money", 2, "jobs or gpus"),
]
QUESTIONS: list[Row] = [
    ("whatif fit M --job 1 --price x=1", 2, "--price"),
    ("whatif add R --node-type uniform-2gpu --policy fcfs", 2, "--policy: needs a scenario"),
    ("whatif add S --node-type minsky --until p95_wait<=1h --plan P", 2, "--plan: needs a round"),
    ("whatif compare R --vary demand=80 --draws 0-1", 2, "--draws: needs a scenario"),
    ("whatif fit NONE --job 1", 3, "none.json"),
    ("whatif fit R --job nope", 2, "8xH100"),
    ("whatif fit M --job 8xK80", 2, "no GPU of model 'K80'"),
    ("whatif fit R --job 2x1 --together nope", 2, "node, rack"),
    ("whatif fit M --job 1 --together rack", 2, "rack"),
    ("whatif fit R --job 2x1 --queue nope", 2, "no queue 'nope'"),
    ("whatif fit M --job 1 --plan M", 3, "minsky-1.json"),
    ("whatif fit M --job 1 --patch M", 3, "minsky-1.json"),
    ("whatif fit G --job 1 --cpu -1", 2, "--cpu: -1|at least 0"),
    (f"whatif fit G --job 1 --memory {HUGE}", 2, "--memory: |at most"),
    ("whatif fit G --job 1 --memory -4", 2, "--memory: -4, expected at least 0"),
    ("whatif fail M --level rack", 2, "--level: no level 'rack'"),
    ("whatif fail R --level nope", 2, "--level: no level 'nope'|node, rack"),
    ("whatif fail R --level node --k 9", 2, "--k: 9, expected 1 to 2"),
    ("whatif fail R --level node --domains nope", 2, "node-00000"),
    ("whatif add R --node-type nope", 2, "node type 'nope'|uniform-2gpu"),
    ("whatif add M --node-type node-0 --until p95_wait<=30m", 2, "--until|placed=all"),
    ("whatif add S --node-type minsky", 2, "--until: 'placed=all', the default, is a goal for a round|p95_wait<=30m"),
    ("whatif add S --node-type nope --until p95_wait<=1h --policy fcfs", 2, "minsky"),
    ("whatif add S --node-type minsky --until soon --policy fcfs", 2, "goal 'soon'|p95_wait"),
    ("whatif add S --node-type minsky --until nope<=1h --policy fcfs", 2, "p95_wait"),
    ("whatif add S --node-type minsky --until p95_wait<=1h --policy nope", 2, "--policy|fcfs"),
    ("whatif add S --node-type minsky --until p95_wait<=1h --draws 3", 2, "draws"),
    ("whatif add S --node-type minsky --until p95_wait<=1h --rows F", 3, "given:1", '{"no": 1}\n'),
    ("whatif compare R --vary nodes=1", 2, "expected one of nodes:TYPE"),
    ("whatif compare R --vary patch=gone.json", 3, "gone.json"),
    ("whatif compare R --vary nope=1-2", 2, "demand"),
    ("whatif compare R --vary mars", 2, "--vary: 'mars', expected one of nodes:TYPE=0-10"),
    ("whatif compare S --vary mars", 2, "--vary: 'mars', expected one of nodes:TYPE=0-10"),
    ("whatif compare R --vary nodes:nope=1-2", 2, "node type 'nope': no machine type|uniform-2gpu"),
    ("whatif compare R --vary quota:nope=1-2", 2, "there are: none"),
    ("whatif compare R --vary demand=2000", 2, "demand: 2000 percent, expected 0 to 1000"),
    (f"whatif compare R --vary demand=80 --jobs {HUGE}", 2, "--jobs|1 to 4096"),
    ("whatif compare R --vary demand=90 --csv /dev/null/x", 3, "/dev/null/x"),
    ("whatif compare S --vary nope=1 --policy fcfs", 2, "arrivals"),
    ("whatif compare S --vary load=1", 2, "'load=1'"),
    ("whatif compare S --vary nodes:nope=1 --policy fcfs", 2, "minsky"),
    ("whatif compare S --vary nodes:minsky=1 --policy fcfs --measure nope", 2, "mean_wait"),
    ("whatif compare R --vary machine:nope=uniform-2gpu", 2, "there are: uniform-2gpu"),
    ("whatif compare R --vary machine:uniform-2gpu=nope", 2, "there are: uniform-2gpu"),
    ("whatif compare G --vary 'machine:x=a b'", 2, "no machine type 'x'|gangs-4gpu"),
    ("whatif compare R --vary machine:uniform-2gpu=uniform-2gpu", 3, "of type 'uniform-2gpu' already"),
    ("whatif compare R --vary more=nope", 2, "node, quota"),
    ("whatif compare M --vary more=rack", 2, "'rack'|expected node"),
    ("whatif defrag R --level nope", 2, "node, rack"),
    ("whatif defrag M --exempt nobody", 3, "job 'nobody' is not running"),
    ("whatif edit M --out M", 2, "would be overwritten"),
    ("whatif edit S --plan P --out O", 2, "--plan: needs a round"),
    (
        "whatif edit S --patch F --out O",
        2,
        "set_policy|a scenario has none",
        '{"steps": [{"do": "set_policy", "fields": {"share_mode": "exclusive"}}]}',
    ),
]
BENCH: list[Row] = [
    ("bench run --instances NONE", 2, "no .test lists"),
    ("bench run --instances I --set nope --solvers highs --out O", 2, "no set 'nope'|hand|tiny"),
    ("bench run --instances I --set gap,,tiny --solvers highs --out O", 2, "--set"),
    ("bench run --instances I --set gap --solvers highs", 2, "--out: left out"),
    ("bench run --instances I --set gap --solvers gauss --out O", 2, "'gauss' is not known|highs|best-fit"),
    ("bench run --instances I --set gap --solvers fcfs --out O", 3, "none of fcfs takes"),
    *(
        (f"bench run --instances I --set gap --solvers highs --out O {option}", 2, option.split()[0])
        for option in ("--seeds 4-0", "--seeds a", "--seeds 1,,2", "--case-limit 0", "--jobs 0", "--threads 0")
    ),
    ("bench run --instances I --set gap --solvers highs --out /dev/null/x", 3, "/dev/null/x"),
    ("bench run --instances I --set gap --solvers highs --out O --solu NONE", 3, "none.json: no such file"),
    ("bench report I", 3, "results.jsonl|no such file"),
    ("bench report I --check", 3, "results.jsonl|no such file"),
    (f"bench report none --check --jobs {HUGE}", 2, "--jobs|1 to 4096"),
]
FILES: list[Row] = [
    ("solve NONE", 3, "none.json|No such file"),
    ("solve I", 3, "instances|directory"),
    ("solve F", 3, "given|not JSON", "hello"),
    ("solve P", 3, 'document: "plan", expected'),
    ("solve 'x\0y'", 3, "no file name"),
    ("solve -", 3, "standard stream '-'|empty"),
    ("solve M --previous M", 3, 'document: "round", expected'),
    ("solve M --policy F", 3, "given|share_mode|sharing|exclusive", '{"document": "policy", "share_mode": "sharing"}'),
    ("solve M --policy NONE", 3, "none.json|No such file"),
    ("solve D --previous P", 3, "minsky.json|instance.name|'minsky-1'|'dgx1-1'"),
    ("solve M --out I/no/plan.json", 3, "no folder"),
    ("solve M --out I", 3, "is a folder"),
    ("solve M --log I/no/log", 3, "cannot be written"),
    ("solve R --out R", 2, "input|another output"),
    ("solve R --log R", 2, "another output"),
    ("check P M", 3, 'document: "plan", expected'),
    ("check M NONE", 3, "none.json|No such file"),
    ("show F", 3, 'given|does not state what it is|"document": "round"', '{"machines": [], "nodes": []}'),
    ("show F", 3, "document: 'network', expected", '{"document": "network"}'),
    ("show F", 3, "document: '[1]', expected", '{"document": [1]}'),
    ("show F", 3, "not an object", "[1, 2]"),
    ("show F", 3, "not an object", "3"),
    ("show F", 3, "cluster|an object", '{"document": "round", "cluster": 3}'),
    ("show F", 3, "ends too early", "{"),
    (
        "show F",
        3,
        "cpu_millicores: -1|at least 0",
        '{"document":"machine","id":"m","cpu_millicores":-1,"memory_mib":0}',
    ),
    ("show F", 3, "no column 'x'", '{"document":"view","title":"t","chart":{"kind":"bars","table":"T","x":"x"}}'),
    ("show NONE", 3, "No such file"),
    ("show P D", 3, "instance.digest|minsky-1|dgx1-1"),
    ("explain M P --job nope", 3, "no job 'nope'"),
    ("audit M F", 3, "given", "nothing"),
    ("audit M F", 3, "given|placements", '{"document": "placements", "placements": 1}'),
    ("audit M M", 3, "minsky-1.json"),
    ("export M --out I/no/model.mps", 3, "no folder"),
    ("generate --out I/no/i.json", 3, "no folder"),
    ("show F --out O.html", 3, "does not state what it is", '{"what": 1}'),
    ("show NONE --out O.html", 3, "none.json"),
    ("show I/none.jsonl --out O.html", 3, "none.jsonl"),
    ("simulate NONE", 3, "none.json|cannot be read"),
    ("simulate S --out S", 3, "is a file, expected a folder"),
    ("simulate S --out S/below", 3, "below|Not a directory"),
    ("simulate S --policy F", 3, "given|rounds", '{"document": "scheduling", "name": "mine", "rounds": "some"}'),
    ("simulate S --policy F", 3, "rounds 'each'", '{"document": "scheduling", "name": "mine", "strict": true}'),
    (
        "simulate S --policy F",
        3,
        "'drb-strict' places whole rounds",
        '{"document": "scheduling", "name":"m","rounds":"each","method":"drb-strict"}',
    ),
    ("simulate S --policy F", 3, "no method 'magic'", '{"document": "scheduling", "name": "mine", "method": "magic"}'),
    ("simulate S --policy fcfs --round O --at 1e9", 3, "nothing runs and nothing waits"),
    ("map F", 3, "JSON|machine or instance", "[[0, 1], [1, 0]]"),
    ("map F NONE", 3, "none.json", "[[0, 1], [1, 0]]"),
    ("map F M", 3, "square matrix", ""),
    ("map F M", 3, "row 2|1 entries|expected 2", "0,1\n1"),
    ("map F M", 3, "row 2|'x'|whole numbers", "0,1\nx,0"),
    ("map F M", 3, "row 1|'-1'", "0,-1\n1,0"),
    ("map F M", 3, "row 1|'1.5'", "0,1.5\n1,0"),
    ("map F M", 3, "row 1|'True'", "[[0, true], [1, 0]]"),
    ("map F M", 3, "row 2|'5'", "[[0, 1], 5]"),
    ("map F M", 3, "not JSON", "[[0, 1]"),
    ("map F M", 3, "workers", '{"id": "j", "workers": 2}'),
    ("map F M", 3, "options[0].demand.gpus", '{"id": "j", "options": [{"demand": {"gpus": 0}}]}'),
    ("map F M", 3, "1 rank of 2 GPUs|exactly 2", '{"id": "j", "options": [{"workers": 1, "demand": {"gpus": 2}}]}'),
    ("map F M", 3, "5 ranks of 1 GPU|has 4 GPUs|at least 5", '{"id": "j", "options": [{"workers": 5}]}'),
]
IMPORTS: list[Row] = [
    ("import openb --nodes F --pods F", 2, "--out|placeopt import openb --help", OPENB_NODES),
    ("import openb --nodes F --pods F --out O --limit 0", 2, "--limit|1 or more", OPENB_NODES),
    ("import openb --nodes F --pods NONE --out O", 3, "none.json", OPENB_NODES),
    ("import openb --nodes F --pods F --out O", 3, "no column sn", OPENB_PODS),
    (
        "import openb --nodes ON --pods F --out O",
        3,
        "no row of which a job can be made|cpu is not an amount",
        OPENB_PODS,
    ),
    ("import topo F --out O", 3, "given|expected", "the quick brown fox (jumps) over\n{the} lazy dog\n"),
    ("import topo --out O", 2, "FILE"),
    ("import topo - - --out O", 2, "once"),
    ("import topo T", 2, "--out"),
    ("import topo T --id 'a b' --out O", 3, "id"),
    ("import topo T --gpu-memory-mib -5 --out O", 2, "--gpu-memory-mib"),
    (f"import topo T --gpu-memory-mib {HUGE} --out O", 3, "dgx1-topo-m.txt|gpu: memory_mib"),
    ("import topo F --id x --out O", 3, "describes no machine", TREE),
    ("import topo F --price x=1 --out O", 2, "needs a cluster", TREE),
    ("import slurm --nodes NODES --out O", 2, "--jobs"),
    ("import slurm --nodes - --jobs - --out O", 2, "--jobs"),
    ("import slurm --nodes NODES --jobs NODES --out O", 3, "slurm_nodes.json|'jobs'"),
    ("import slurm --nodes JOBS --jobs JOBS --out O", 3, "scontrol show nodes --json"),
    ("import slurm --nodes NONE --jobs JOBS --out O", 3, "cannot be read"),
    ("import slurm --nodes NODES --jobs F --out O", 3, "given", '{"jobs": [{"job_id": 1'),
    (
        "import slurm --nodes NODES --jobs JOBS --priority-rule F --out O",
        3,
        "given|percent_per_doubling",
        '{"percent_per_doubling": "x"}',
    ),
    ("import kubernetes F --out O", 3, "given|not JSON", '{"items": ['),
    (f"import jobs F --columns philly-csv --nodes 1x8 --out O --from-day {HUGE}", 2, "--from-day|100000", PHILLY),
    (f"import jobs F --columns philly-csv --nodes 1x8 --out O --days {HUGE}", 2, "--days|100000", PHILLY),
    ("import jobs F --columns philly-csv --nodes 1x8 --out O --from-day 9", 3, "days|no job was submitted", PHILLY),
    ("import jobs F --columns philly-csv --nodes 1x8 --out O --load 1e-320", 2, "--load|0.001", PHILLY),
    ("import jobs F --columns philly-csv --nodes 1x8 --out O --load nan", 2, "--load", PHILLY),
    ("import jobs F --columns philly-csv --nodes 1x0 --out O --load 1", 3, "load: 1|on 0 GPUs", PHILLY),
    ("import jobs F --columns openb --nodes 1x8:8:8 --out O", 3, "no column name", PHILLY),
    ("import jobs F --columns helios,id=cluster --nodes 1x8:8:8 --out O", 3, "it lacks cpu_num|submit", PHILLY),
    *(
        (f"import jobs HELIOS --columns '{columns}' --nodes 1x8 --out O", 2, f"--columns|{words}")
        for columns, words in (
            ("submit=a,gpus=b", "no duration, or start and end"),
            ("duration=a,gpus=b", "no submit"),
            ("submit=a,duration=b", "no gpus, or cpu"),
            ("submit=a,duration=b,gpus=c,colour=d", "'colour'"),
            ("helio", "itp, helios"),
            ("submit=a:weeks,duration=b,gpus=c", "a form of submit"),
            ("submit=a,duration=b,gpus=c/0", "above 0"),
            ("submit=a,duration=b,gpus=c,memory=m", "its unit"),
            ("submit=a,duration=b,gpus=c,state=s", "the states"),
            ("submit=a,duration=b,gpus=c,workers=w,nodes=n", "workers and nodes"),
            ("submit=,duration=b,gpus=c", "expected COLUMN"),
            ("", "no submit"),
        )
    ),
    ("import jobs HELIOS --columns helios --nodes 1x8 --out O", 2, "--nodes|cores"),
    ("import jobs HELIOS --columns helios --nodes 8 --out O", 2, "--nodes|COUNTxGPUS"),
    ("import jobs HELIOS --columns helios --out O", 2, "--cluster FILE or --nodes"),
    (f"import jobs F {MOSTLY_RIGHT} --nodes 1x1xA --out O", 3, "no column a, b, c", "time,dur,g\n1,2,3\n"),
    (
        "import jobs F --columns submit=a,duration=b,gpus=C --nodes 1x1 --out O",
        3,
        "no column C; the header is 'a,b,c'",
        "a,b,c\n1,2,3\n",
    ),
    *(
        (f"import jobs HELIOS --columns helios --nodes 3x8xV100:96:512 --out O --price {price}", 2, f"--price|{words}")
        for price, words in (
            ("dgx=1", "'dgx'|8xV100"),
            *(
                (wrong, "TYPE=AMOUNT")
                for wrong in ("8xV100", "8xV100=", "=3", "8xV100=-1", "8xV100=1.2345", "8xV100=1e3")
            ),
            ("8xV100=1 --price 8xV100=2", "each type once"),
        )
    ),
]


@pytest.fixture(scope="module")
def round_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rounds") / "round.json"
    write_document(path, generate("uniform", jobs=4, nodes=2, gpus=2, seed=0))
    return path


@pytest.fixture
def refuse(cli: Cli, tmp_path: Path, round_file: Path, minsky_plan: Path) -> Callable[..., None]:
    """Run a row of the table; neither the target nor what stands beside it is written."""
    target = tmp_path / "target"
    files = {**NAMED, "R": round_file, "P": minsky_plan, "F": tmp_path / "given", "NONE": tmp_path / "none.json"}

    def word(text: str) -> str:
        name, slash, rest = text.partition("/")
        if text.partition(".")[0] == "O":
            return f"{target}{text[1:]}"
        return f"{files[name]}{slash}{rest}" if name in files else text

    def call(command: str, code: int, words: str, given: str = "") -> None:
        files["F"].write_text(given)
        before = round_file.read_bytes()
        done = cli(*map(word, shlex.split(command)))
        said(done, code, *words.split("|"))
        assert code != 2 or "--help'" in done.err
        assert [path.name for path in tmp_path.iterdir()] == ["given"]
        assert round_file.read_bytes() == before

    return call


@pytest.mark.parametrize(
    "row", [*USAGE, *QUESTIONS, *BENCH, *FILES, *IMPORTS], ids=lambda row: f"{row[0]} {row[2]}"[:60]
)
def test_refused(refuse: Callable[..., None], row: Row) -> None:
    refuse(*row)


@pytest.mark.parametrize("fault", [FAULTS[0], FAULTS[len(FAULTS) // 2], FAULTS[-1]], ids=lambda fault: fault.name)
def test_a_broken_file_leaves_the_target_as_it_was(cli: Cli, tmp_path: Path, fault: Fault) -> None:
    """All of these files are read by the library in ``tests/documents/test_broken_files.py``."""
    path, out = tmp_path / "broken.json", tmp_path / "plan.json"
    path.write_bytes(fault.data)
    out.write_text("as before")
    done = cli("solve", path, "--out", out, "--time-limit", 1)
    assert (done.code, done.out) == (3, "")
    assert done.err.startswith(f"error: {path}")
    assert fault.expected_field in done.err
    assert out.read_text() == "as before"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["broken.json", "plan.json"]


def test_a_message_keeps_the_case_of_a_name(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the parser's own messages are put into lower case."""
    monkeypatch.chdir(tmp_path)
    write_document("Round.json", generate("uniform", jobs=4, nodes=2, gpus=2, seed=0))
    assert cli("solve", "Round.json", "--out", "Round.json").err.startswith("error: Round.json is also an input")
    assert cli("nonsense").err.startswith("error: no such command")
