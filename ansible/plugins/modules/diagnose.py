#!/usr/bin/python
# -*- coding: utf-8 -*-

# Copyright: (c) 2026, the copy-bottleneck authors
# MIT License (see LICENSE or https://opensource.org/licenses/MIT)
# SPDX-License-Identifier: MIT

from __future__ import annotations

DOCUMENTATION = r"""
module: diagnose
short_description: Measure SMB file copies between this host and a share
version_added: 0.1.0
description:
  - Runs C(bottleneck diagnose), or one test of it, on the host against a share.
  - Returns the report of the program.
  - The report names what limits the copies, for example a disk, the network or a CPU.
  - Test files of the run are removed at its end. Nothing else on the host or the share changes.
  - The run ends early if nothing waits for its answer any more, as after an interrupt.
author:
  - the copy-bottleneck authors (@copy-bottleneck)
options:
  share:
    description:
      - The share, as C(//SERVER/SHARE[/FOLDER]), or a folder where one is mounted.
    type: str
    required: true
  user:
    description:
      - User name for the SMB login.
    type: str
  domain:
    description:
      - Domain or workgroup of O(user).
    type: str
  password:
    description:
      - Password of O(user). The program reads it from a pipe.
    type: str
  allow_guest:
    description:
      - Log in as guest if O(user) is not set.
    type: bool
    default: false
  stage:
    description:
      - One test to run instead of all, for example V(latency) or V(path).
    type: str
  copy:
    description:
      - The only copy that V(smb-copy) as O(stage) makes, for example V(pull.cached).
    type: str
  seconds:
    description:
      - Duration of each copy of O(stage). The size of the test file depends on it.
    type: float
  budget:
    description:
      - Time limit of the run in seconds.
    type: float
    default: 20
  folder:
    description:
      - Directory of the host for test files.
    type: path
    default: "~"
  agent:
    description:
      - How the host reaches the server for measurements there, for example C(ssh://nas).
    type: str
  size:
    description:
      - Size of the test file, for example V(256MiB).
    type: str
  command:
    description:
      - The program, as a list of words.
    type: list
    elements: str
    default:
      - /opt/copy-bottleneck/bin/bottleneck
attributes:
  check_mode:
    description: In check mode, nothing is measured and the report is empty.
    support: full
  diff_mode:
    description: There is no difference to show, because the module changes nothing.
    support: none
"""

EXAMPLES = r"""
- name: Diagnose copies to the NAS
  copy_bottleneck.smb.diagnose:
    share: //nas/media
    user: alice
    password: "{{ vault_nas_password }}"
  register: measured

- name: Show what limits them
  ansible.builtin.debug:
    var: measured.report.diagnosis.summary

- name: Measure the latency only
  copy_bottleneck.smb.diagnose:
    share: //nas/media
    allow_guest: true
    stage: latency
"""

RETURN = r"""
report:
  description: The report, as C(bottleneck diagnose --json) writes it. Empty in check mode.
  returned: always
  type: dict
  sample:
    schema: copy-bottleneck/report/1
    status: complete
exit_code:
  description: Exit code of the program. 0 is done, 3 is done with a missing test.
  returned: when the program ran
  type: int
  sample: 0
"""

import json
import os
import select
import signal
import subprocess
import threading

from ansible.module_utils.basic import AnsibleModule

DONE = (0, 3)
MORE_SECONDS = 60
"""Seconds on top of the budget, for connecting and removing the run's files."""
MOST_BYTES = 16 << 20
"""Upper limit of a report's size; no real report reaches it."""
INTERRUPTED, KILLED = 124, 137
"""Exit codes of timeout(1), for a program that did not end."""
LAST_SECONDS = 5
"""For what is still in the pipes of an ended program."""


def command_of(parameters):
    """The words to run, without the password."""
    stage = parameters["stage"]
    words = list(parameters["command"])
    words += ["probe", stage] if stage else ["diagnose"]
    words += [parameters["share"], "--json", "-", "--yes", "--quiet"]
    words += ["--budget", "{0:g}".format(parameters["budget"]), "--folder", parameters["folder"]]
    for key in ("user", "domain", "agent", "size", "copy"):
        if parameters[key]:
            words += ["--" + key, parameters[key]]
    if parameters["seconds"]:
        words += ["--seconds", "{0:g}".format(parameters["seconds"])]
    if parameters["allow_guest"]:
        words.append("--allow-guest")
    return words


def end_with_caller(process):
    """Interrupts the program when the other end of our output is gone."""

    def wait():
        ended = select.poll()
        ended.register(1, 0)
        ended.poll()
        process.send_signal(signal.SIGINT)

    threading.Thread(target=wait, daemon=True).start()


def read(process, stream, text):
    """Adds what the program prints; more than MOST_BYTES ends it."""
    for chunk in iter(lambda: os.read(stream.fileno(), 1 << 16), b""):
        text += chunk[: MOST_BYTES + 1 - len(text)]
        if len(text) > MOST_BYTES:
            process.send_signal(signal.SIGINT)


def run(words, environment, password):
    """Exit code of the program, and what it printed to stdout and stderr."""
    reader, writer = os.pipe()
    with os.fdopen(writer, "wb") as file:
        file.write((password or "").encode("utf-8", "surrogateescape"))
    if password is not None:
        environment = dict(environment, BOTTLENECK_PASSWORD_FD=str(reader))
    process = subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd="/",
        env=dict(os.environ, **environment),
        pass_fds=(reader,),
    )
    os.close(reader)
    end_with_caller(process)
    out, err = bytearray(), bytearray()
    readers = [
        threading.Thread(target=read, args=(process, stream, text), daemon=True)
        for stream, text in ((process.stdout, out), (process.stderr, err))
    ]
    for each in readers:
        each.start()
    code = process.wait()
    for each in readers:
        each.join(LAST_SECONDS)
    return code, bytes(out), bytes(err)


def reason(code, out, err, seconds):
    """Why there is no report: in the program's own words, where it has ended by itself."""
    if max(len(out), len(err)) > MOST_BYTES:
        return "the program printed more than {0} MiB and was ended".format(MOST_BYTES >> 20)
    if code in (INTERRUPTED, KILLED, -9):
        return "the program did not end within {0} s{1}".format(
            seconds, " or was killed" if code != INTERRUPTED else ""
        )
    last = err.decode("utf-8", "replace").strip().splitlines()
    if last and code not in DONE:
        return last[-1][:300]
    if out.strip():
        return "the program printed something else than a report: {0!a}".format(out[:60])
    return "the program printed nothing; exit code {0}".format(code)


def main():
    module = AnsibleModule(
        argument_spec=dict(
            share=dict(type="str", required=True),
            user=dict(type="str"),
            domain=dict(type="str"),
            password=dict(type="str", no_log=True),
            allow_guest=dict(type="bool", default=False),
            stage=dict(type="str"),
            copy=dict(type="str"),
            seconds=dict(type="float"),
            budget=dict(type="float", default=20),
            folder=dict(type="path", default="~"),
            agent=dict(type="str"),
            size=dict(type="str"),
            command=dict(
                type="list", elements="str", default=["/opt/copy-bottleneck/bin/bottleneck"]
            ),
        ),
        required_by=dict(copy="stage", seconds="stage"),
        supports_check_mode=True,
    )
    parameters = module.params
    if module.check_mode:
        module.exit_json(changed=False, report={})
    seconds = int(parameters["budget"]) + MORE_SECONDS
    limit = ["timeout", "--signal=INT", "--kill-after=20", str(seconds)]
    environment = {"BOTTLENECK_CONFIG": "", "PYTHONSAFEPATH": "1"}
    try:
        code, out, err = run(limit + command_of(parameters), environment, parameters["password"])
    except OSError as error:
        module.fail_json(msg="timeout: {0}".format(error.strerror), report={})
    try:
        report = json.loads(out)
    except (ValueError, RecursionError):
        report = None
    report = report if isinstance(report, dict) else {}
    if code not in DONE or not report:
        module.fail_json(msg=reason(code, out, err, seconds), report=report, exit_code=code)
    module.exit_json(changed=False, report=report, exit_code=code)


if __name__ == "__main__":
    main()
