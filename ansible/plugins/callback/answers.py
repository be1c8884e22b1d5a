# -*- coding: utf-8 -*-

# Copyright: (c) 2026, the copy-bottleneck authors
# MIT License (see LICENSE or https://opensource.org/licenses/MIT)
# SPDX-License-Identifier: MIT

from __future__ import annotations

DOCUMENTATION = r"""
name: answers
type: notification
short_description: Keep what each host answered to a measurement
version_added: 0.1.0
description:
  - Writes the report of M(copy_bottleneck.smb.diagnose) of each host to a file of the controller.
  - A host without a report gets a file with the reason.
author:
  - the copy-bottleneck authors (@copy-bottleneck)
options:
  folder:
    description:
      - Directory of the files, each of which is named after its host.
    type: path
    required: true
    env:
      - name: BOTTLENECK_ANSWERS
"""

import json
import os
import time

from ansible.plugins.callback import CallbackBase

ACTION = "copy_bottleneck.smb.diagnose"
LONGEST_REASON = 300


class CallbackModule(CallbackBase):
    """Writes one file for each host and round when its measurement has ended."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "copy_bottleneck.smb.answers"
    CALLBACK_NEEDS_ENABLED = True

    def _keep(self, event, **options):
        if event._task.action != ACTION:
            return
        outcome = event._result
        words = str(outcome.get("msg") or "no report").strip().split("\n", 1)[0]
        answer = {
            "report": outcome.get("report") or {},
            "reason": words[:LONGEST_REASON],
            "exit_code": outcome.get("exit_code"),
            "answered_seconds": time.monotonic(),
        }
        path = os.path.join(self.get_option("folder"), event._host.get_name() + ".json")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with os.fdopen(os.open(path, flags, 0o600), "w") as file:
            json.dump(answer, file)

    v2_runner_on_ok = _keep
    v2_runner_on_failed = _keep
    v2_runner_on_unreachable = _keep
