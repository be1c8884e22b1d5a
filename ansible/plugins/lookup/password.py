# -*- coding: utf-8 -*-

# Copyright: (c) 2026, the copy-bottleneck authors
# MIT License (see LICENSE or https://opensource.org/licenses/MIT)
# SPDX-License-Identifier: MIT

from __future__ import annotations

DOCUMENTATION = r"""
name: password
short_description: Read the password of a run from an open file without a name
version_added: 0.1.0
description:
  - Returns what C(bottleneck fleet) left in the file whose descriptor E(BOTTLENECK_PASSWORD_FD)
    names. Without that variable, it returns nothing.
  - So the password is in no argument, no environment and no named file of the controller.
author:
  - the copy-bottleneck authors (@copy-bottleneck)
"""

EXAMPLES = r"""
- name: Diagnose copies to the NAS
  copy_bottleneck.smb.diagnose:
    share: //nas/media
    user: alice
    password: "{{ lookup('copy_bottleneck.smb.password') | default(omit, true) }}"
"""

RETURN = r"""
_raw:
  description: The password, or nothing.
  type: list
  elements: str
"""

import os

from ansible.plugins.lookup import LookupBase

LONGEST = 1 << 16


class LookupModule(LookupBase):
    """The password, read anew by each process of Ansible."""

    def run(self, terms, variables=None, **kwargs):
        number = os.environ.get("BOTTLENECK_PASSWORD_FD")
        return [os.pread(int(number), LONGEST, 0).decode()] if number else []
