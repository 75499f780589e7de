"""What an operator sees of one gang in the metrics of a whole controller."""

from jobset_gate_demo.fake import manifests
from jobset_gate_demo.fake.kubelet import FakeNode
from tests.fakes.eventually import eventually
from tests.flow.conftest import MakeEnvironment

GPU = "nvidia.com/gpu"


async def test_a_gang_is_seen_in_the_metrics_from_its_first_pod_to_its_last_start(make_stage: MakeEnvironment) -> None:
    gang = manifests.gang("train", jobs=1, pods=3)
    template = gang["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    template["containers"][0]["resources"] = {"limits": {GPU: 2}}
    async with make_stage(controller=False, stream=False, nodes=(FakeNode("early", pods=2),)) as stage:
        registry = stage.start_controller().options.registry

        def value(name: str, **labels: str) -> float:
            return registry.get_sample_value(f"jobset_gate_{name}", {"source": "jobset", **labels}) or 0.0

        async def until(name: str, wanted: float, **labels: str) -> None:
            async def shown() -> bool:
                return value(name, **labels) == wanted

            await eventually(shown, lambda: f"{name} is {value(name, **labels)}")

        await stage.create(gang)
        await until("waiting_pods", 2)
        await until("missing_pods", 1, reason="Unscheduled")
        assert (value("waiting_gangs"), value("idle_accelerators", resource=GPU)) == (1, 4)
        first = value("idle_accelerator_seconds_total", resource=GPU)
        assert value("idle_accelerator_seconds_total", resource=GPU) > first
        assert value("longest_wait_seconds") > 0

        await stage.actors.kubelets.add_node(FakeNode(f"{stage.namespace}-late", pods=1))
        await until("start_skew_seconds_count", 1)
        assert value("decisions_total", kind="release", cause="AllPodsStarted") == 1
        for once in ("time_to_release", "last_start_to_release", "release_to_last_main_start", "pod_start_skew"):
            assert value(f"{once}_seconds_count") == 1
        assert value("waiting_gangs") == value("waiting_pods") == value("missing_pods", reason="Unscheduled") == 0
        assert value("idle_accelerators", resource=GPU) == 0
