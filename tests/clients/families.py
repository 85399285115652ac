# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The families of docs/clients.md in their order: a module for each source package."""
import os
import sys

TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..')
sys.path += [os.path.join(TESTS, 'harness'), os.path.join(TESTS, 'hosts/paths')]
import ceph  # noqa: E402
import dapl  # noqa: E402
import debuggers  # noqa: E402
import fio  # noqa: E402
import gloo  # noqa: E402
import hpcc  # noqa: E402
import ibverbs_utils  # noqa: E402
import infiniband_diags  # noqa: E402
import iser  # noqa: E402
import libfabric  # noqa: E402
import mpich  # noqa: E402
import nccl  # noqa: E402
import openmpi  # noqa: E402
import perftest  # noqa: E402
import pyverbs  # noqa: E402
import qperf  # noqa: E402
import rdmacm_utils  # noqa: E402
import rsockets  # noqa: E402
import sandboxes  # noqa: E402
import ucx  # noqa: E402

FAMILIES = {module.__name__: module for module in (
    ibverbs_utils,
    infiniband_diags,
    rdmacm_utils,
    perftest,
    qperf,
    ucx,
    libfabric,
    openmpi,
    mpich,
    hpcc,
    gloo,
    nccl,
    pyverbs,
    fio,
    iser,
    ceph,
    dapl,
    rsockets,
    debuggers,
    sandboxes,
)}
