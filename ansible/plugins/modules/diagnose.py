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
      - Password of O(user). It is passed in the environment of the program, never as an argument.
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
import select
import signal
import threading

from ansible.module_utils.basic import AnsibleModule

DONE = (0, 3)
MORE_SECONDS = 60
"""That a run may take longer than its budget: connecting and removing its files."""


def command_of(wanted):
    """The words to run, without the password."""
    stage = wanted["stage"]
    words = list(wanted["command"])
    words += ["probe", stage] if stage else ["diagnose"]
    words += [wanted["share"], "--json", "-", "--yes", "--quiet"]
    words += ["--budget", "{0:g}".format(wanted["budget"]), "--folder", wanted["folder"]]
    for key in ("user", "domain", "agent", "size", "copy"):
        if wanted[key]:
            words += ["--" + key, wanted[key]]
    if wanted["seconds"]:
        words += ["--seconds", "{0:g}".format(wanted["seconds"])]
    if wanted["allow_guest"]:
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
    wanted = module.params
    if module.check_mode:
        module.exit_json(changed=False, report={})
    environment = {"BOTTLENECK_CONFIG": "", "PYTHONSAFEPATH": "1"}
    if wanted["password"] is not None:
        environment["BOTTLENECK_PASSWORD"] = wanted["password"]
    limit = [
        "timeout",
        "--signal=INT",
        "--kill-after=20",
        str(int(wanted["budget"]) + MORE_SECONDS),
    ]
    code, out, err = module.run_command(
        limit + command_of(wanted),
        environ_update=environment,
        cwd="/",
        expand_user_and_vars=False,
        before_communicate_callback=end_with_caller,
    )
    last = (err.strip().splitlines() or ["no message"])[-1][:300]
    try:
        report = json.loads(out)
    except ValueError:
        report = {}
    if code not in DONE or not report:
        module.fail_json(msg=last, report=report, exit_code=code)
    module.exit_json(changed=False, report=report, exit_code=code)


if __name__ == "__main__":
    main()
