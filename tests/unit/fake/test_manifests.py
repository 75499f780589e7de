"""The builders give the manifests that KEP-498 shows."""

from __future__ import annotations

import yaml

from jobset_gate.fake import manifests

WORKERS = """
    - name: workers
      replicas: 3
      template:
        spec:
          backoffLimit: 0
          completions: 100
          parallelism: 100
          template:
            spec:
              containers:
                - name: pytorch
                  image: pytorch/pytorch:latest
                  command:
                    - bash
                    - -c
                    - train.py
"""
STORY_1 = f"""
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata:
  name: my-jobset
  namespace: default
spec:
  groupSchedulingConfig:
    timeoutAfterSeconds: 300
  replicatedJobs:{WORKERS}"""
STORY_2 = f"""
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata:
  name: my-jobset
  namespace: default
spec:
  groupSchedulingConfig:
    timeoutAfterSeconds: 300
    targetReplicatedJobs:
    - workers
  replicatedJobs:{WORKERS}
    - name: auxiliary
      replicas: 1
      template:
        spec:
          backoffLimit: 0
          completions: 1
          parallelism: 1
          template:
            spec:
              containers:
                - name: auxiliary
                  image: python:3.10
                  command:
                    - bash
                    - -c
                    - run.py
"""


def test_story_1_is_the_one_of_the_proposal() -> None:
    assert manifests.story1() == yaml.safe_load(STORY_1)


def test_story_2_is_the_one_of_the_proposal() -> None:
    assert manifests.story2() == yaml.safe_load(STORY_2)


def test_a_gang_has_the_size_and_the_timeout_asked_for() -> None:
    made = manifests.gang("big", "team", jobs=2, pods=5, timeout=None, max_restarts=4, suspend=True)
    assert made["metadata"] == {"name": "big", "namespace": "team"}
    assert made["spec"]["groupSchedulingConfig"] == {}
    assert made["spec"]["failurePolicy"] == {"maxRestarts": 4}
    assert made["spec"]["suspend"] is True
    job = made["spec"]["replicatedJobs"][0]
    assert job["replicas"] == 2
    assert job["template"]["spec"]["parallelism"] == job["template"]["spec"]["completions"] == 5
