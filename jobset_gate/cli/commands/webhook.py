"""`webhook`: the admission webhook, served by this process."""

import asyncio

from jobset_gate.cli import logs, settings_file
from jobset_gate.cli.cluster import ClusterOptions
from jobset_gate.cli.options import Config, LogOptions, new_app
from jobset_gate.cli.serve import webhook as serving
from jobset_gate.cli.serve.webhook_options import WebhookOptions

app = new_app()


@app.command("webhook", epilog="Example: {program} webhook --self-signed --register --unregister-on-exit")
def webhook(
    *,
    options: WebhookOptions,
    config: Config = None,
    cluster: ClusterOptions,
    log: LogOptions,
) -> None:
    """Serve the admission webhook over HTTPS until SIGTERM or SIGINT.

    Answers at /mutate, /validate and /mutate-pods, and at /healthz, /readyz and /metrics.
    """
    options.check()
    logs.configure(log.log_format, log.log_level)
    asyncio.run(serving.run(settings_file.read(config).admission, options, cluster))
