"""The collection: built and installed as its README says; its module, run by the real Ansible."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.long
README = (ROOT / "ansible/README.md").read_text()
BUILT = re.findall(r"^\$ (.+)$", README, re.MULTILINE)
PROGRAM = """#!/bin/sh
echo "$@" > {folder}/arguments
[ -z "$BOTTLENECK_PASSWORD_FD" ] || cat /dev/fd/$BOTTLENECK_PASSWORD_FD > {folder}/password
tr '\\0' '\\n' < /proc/$PPID/environ > {folder}/environment
echo "bottleneck: the last words" >&2
echo '{answer}'
exit {code}
"""


@pytest.fixture(scope="module")
def ansible(tmp_path_factory):
    """Runs a program of Ansible where the collection is installed; nothing of this user's."""
    folder = tmp_path_factory.mktemp("ansible")
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "ANSIBLE_HOME": str(folder / "home"),
        "ANSIBLE_COLLECTIONS_PATH": str(folder / "collections"),
        "ANSIBLE_LOCALHOST_WARNING": "false",
    }

    def run(*command, check=True):
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120
        )
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done

    (folder / "ansible").symlink_to(ROOT / "ansible")
    for line in BUILT:
        run(*shlex.split(line))
    yield run


@pytest.fixture
def module(ansible, tmp_path):
    """Runs the module on this host with a program in the place of bottleneck."""

    def run(arguments, answer="{}", code=0, *extra, script=""):
        program = tmp_path / "program"
        usual = PROGRAM.format(folder=tmp_path, answer=answer, code=code)
        program.write_text(f"#!/bin/sh\n{script}\n" if script else usual)
        program.chmod(0o755)
        text = json.dumps({**arguments, "command": [str(program)]})
        name = "copy_bottleneck.smb.diagnose"
        variables = ("-e", f"ansible_python_interpreter={sys.executable}")
        done = ansible(
            "ansible", "localhost", "-m", name, "-a", text, *variables, *extra, check=False
        )
        text = done.stdout[done.stdout.rindex("=> {") + 3 :]
        answer_facts, _ = json.JSONDecoder().raw_decode(text)
        return done, answer_facts

    return run


def test_a_report_is_returned_and_nothing_is_changed(module, tmp_path):
    report = {"schema": "copy-bottleneck/report/1", "status": "complete"}
    secret = "a pass%word {{ 1 }}"
    parameters = {
        "share": "//nas/media",
        "user": "anna",
        "password": f"{{% raw %}}{secret}{{% endraw %}}",
    }
    done, facts = module(parameters, json.dumps(report), 3, "-vvv")
    assert facts["changed"] is False and facts["report"] == report and facts["exit_code"] == 3
    arguments = (tmp_path / "arguments").read_text().split()
    assert arguments[:6] == ["diagnose", "//nas/media", "--json", "-", "--yes", "--quiet"]
    assert arguments[-2:] == ["--user", "anna"]
    assert arguments[arguments.index("--folder") + 1] == str(Path.home())
    assert (tmp_path / "password").read_text().strip() == secret
    assert secret not in done.stdout + done.stderr
    environment = (tmp_path / "environment").read_text()
    assert "BOTTLENECK_PASSWORD_FD=" in environment and secret not in environment


def test_a_run_that_fails_is_told_in_its_own_words(module):
    done, facts = module({"share": "//nas/media"}, "", 77)
    assert done.returncode != 0 and "FAILED" in done.stdout and facts["exit_code"] == 77
    assert facts["msg"] == "bottleneck: the last words"


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("kill -ALRM $PPID; exec sleep 600", "the program did not end within "),
        ("yes 'what is this'", "the program printed more than 16 MiB and was ended"),
        ("yes 'what is this' >&2", "the program printed more than 16 MiB and was ended"),
        ("yes 'what is this' | head -c 1000", "printed something else than a report: b'what is"),
        ("echo '[]'; exit 4", "printed something else than a report: b'[]"),
        ("exit 5", "the program printed nothing; exit code 5"),
    ],
    ids=["hung", "flood", "flood of errors", "garbage", "no object", "nothing"],
)
def test_a_program_without_a_report_is_told_by_what_it_did(module, script, words):
    done, facts = module({"share": "//nas/media"}, script=script)
    assert done.returncode != 0 and facts["report"] == {}
    assert words in facts["msg"]


def test_one_copy_of_a_stage_is_asked_for_by_its_name_and_time(module, tmp_path):
    parameters = {
        "share": "//nas/media",
        "stage": "smb-copy",
        "copy": "pull.cached",
        "seconds": 2.5,
    }
    module(parameters, '{"schema": "x"}')
    arguments = (tmp_path / "arguments").read_text().split()
    assert arguments[:3] == ["probe", "smb-copy", "//nas/media"]
    assert arguments[-4:] == ["--copy", "pull.cached", "--seconds", "2.5"]
    done, _ = module({"share": "//nas/media", "copy": "pull.cached"})
    assert done.returncode != 0 and "stage" in done.stdout


def test_in_check_mode_nothing_runs(module, tmp_path):
    _, facts = module({"share": "//nas/media"}, "{}", 0, "--check")
    assert facts["changed"] is False and facts["report"] == {}
    assert not (tmp_path / "arguments").exists()


def test_the_documentation_is_read_and_its_examples_are_yaml(ansible):
    name = "copy_bottleneck.smb.diagnose"
    document = json.loads(ansible("ansible-doc", "-t", "module", "--json", name).stdout)[name]
    parameters = set(
        re.findall(
            r"^            (\w+)=dict\(",
            Path(ROOT / "ansible/plugins/modules/diagnose.py").read_text(),
            re.MULTILINE,
        )
    )
    assert document["doc"]["options"].keys() == parameters
    assert YAML(typ="safe").load(document["examples"])
    (example,) = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
    (play,) = YAML(typ="safe").load(example)
    assert play["tasks"][0][name]["share"]


@pytest.mark.parametrize(
    "command", ["ansible-lint", "antsibull-docs lint-collection-docs --plugin-docs ."]
)
def test_the_tools_of_ansible_have_nothing_to_say(command, tmp_path):
    words = command.split()
    if shutil.which(words[0]) is None:
        pytest.skip(f"NOT RUN: {words[0]} is not installed")
    folder = tmp_path / "ansible_collections" / "copy_bottleneck" / "smb"
    shutil.copytree(ROOT / "ansible", folder)
    environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(tmp_path)}
    subprocess.run(words, cwd=folder, env=environment, check=True)


def test_the_role_never_removes_what_it_did_not_make(ansible, tmp_path):
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "file").touch()
    play = [
        {
            "hosts": "localhost",
            "gather_facts": False,
            "roles": [{"role": "copy_bottleneck.smb.bottleneck"}],
            "vars": {"bottleneck_state": "absent", "bottleneck_environment": str(mine)},
        }
    ]
    (tmp_path / "play.yml").write_text(json.dumps(play))
    ansible("ansible-playbook", str(tmp_path / "play.yml"))
    assert (mine / "file").exists()
    (mine / ".copy-bottleneck").touch()
    ansible("ansible-playbook", str(tmp_path / "play.yml"))
    assert not mine.exists()


def test_a_built_collection_has_no_strange_files(ansible):
    archive = ansible("sh", "-c", "ls $PWD/build/*.tar.gz").stdout.strip()
    with tarfile.open(archive) as built:
        names = {name for name in built.getnames() if Path(name).suffix}
    assert "plugins/modules/diagnose.py" in names
    assert not [name for name in names if Path(name).suffix not in {".py", ".yml", ".md", ".json"}]


def test_the_example_inventory_has_the_groups_that_it_is_made_for(ansible):
    path = str(ROOT / "examples/ansible/inventory.yml")
    document = json.loads(ansible("ansible-inventory", "-i", path, "--list").stdout)
    assert set(document["clients"]["children"]) == {"office", "branch"}
